//! Short ways: the same random moves of a few threads are made twice. The host lets every other
//! call go a short way if it has one, and one entry more before the first swaps them; whatever can
//! be seen must be the same after each move.

mod support;
use diapason_abi::CallNumber;
use diapason_abi::call::NO_HINT;
use diapason_random::Random;
use std::collections::BTreeMap;
use support::lab;
use support::*;

const ROOM: u64 = 1 << 32;

fn plan() -> Plan {
    let plan = lab::plan().semaphore("signal", 0).semaphore("places", 2).condition("changed");
    plan.mailbox("request", 2).mailbox("reply", 1)
}

/// The objects of the experiment.
struct Things {
    mutexes: [u64; 2],
    semaphores: [u64; 2],
    condition: u64,
    mailboxes: [u64; 2],
}

impl Things {
    fn open(sys: &mut Sys<'_>) -> Things {
        Things {
            mutexes: ["m1", "m2"].map(|name| sys.open(Call::SemCreate, name)),
            semaphores: ["signal", "places"].map(|name| sys.open(Call::SemCreate, name)),
            condition: sys.open(Call::CvCreate, "changed"),
            mailboxes: ["request", "reply"].map(|name| sys.open(Call::MboxCreate, name)),
        }
    }

    /// A call with words that mostly make sense.
    fn call(&self, random: &mut Random, at: u64, later: u64) -> (Call, Vec<u64>) {
        let pick = |random: &mut Random, of: [u64; 2]| of[random.below(2) as usize];
        let deadline = if random.one_in(6) { later } else { FOREVER };
        let mutex = pick(random, self.mutexes);
        let semaphore = pick(random, self.semaphores);
        let mailbox = pick(random, self.mailboxes);
        let hint = if random.one_in(6) { mutex } else { NO_HINT };
        // Sometimes a place that the process does not have.
        let place = if random.one_in(200) { 8 } else { at };
        match random.below(16) {
            0 => (Call::SleepUntil, vec![later, hint]),
            1 | 2 => (Call::Yield, vec![]),
            3 | 4 => (Call::SemLock, vec![mutex, deadline, hint]),
            5 | 6 => (Call::SemUnlock, vec![mutex]),
            7 => (Call::SemLock, vec![semaphore, deadline, hint]),
            8 | 9 => (Call::SemUnlock, vec![semaphore]),
            10 => (Call::CvWait, vec![self.condition, mutex, deadline]),
            11 => (Call::CvSignal, vec![self.condition, random.below(3)]),
            12 | 13 => (Call::MboxSend, vec![mailbox, place, random.below(20), 1, NOW]),
            14 => (Call::MboxReceive, vec![mailbox, place, deadline, hint]),
            _ => {
                let [send, receive] = self.mailboxes;
                (Call::MboxCall, vec![send, place, random.below(20) * ROOM, receive, deadline])
            }
        }
    }
}

/// The visible state after a move.
type Seen = (Outcome, Vec<String>, Vec<(u64, u8)>, (ThreadId, Nanos));

fn seen(sys: &mut Sys<'_>, outcome: Outcome) -> Seen {
    let ids: Vec<_> = sys.host.kernel.threads.ids().collect();
    let thread = |t: &ThreadId, sys: &mut Sys<'_>| {
        let result = sys.result(*t);
        let t = &sys.host.kernel.threads[*t];
        format!("{:?} {:?} {:?} {:?} {result:?}", t.state, t.wait, t.used, t.held)
    };
    let threads = ids.iter().map(|t| thread(t, sys)).collect();
    let memory = sys.host.machine.memory.iter().map(|(a, b)| (*a, *b)).collect();
    (outcome, threads, memory, (sys.running(), sys.host.kernel.next_alarm()))
}

/// Five threads, of few priorities, for 200 moves, after a number of entries more.
fn play(seed: u64, before: u64) -> (Vec<Seen>, BTreeMap<CallNumber, u64>) {
    lab::with(&plan(), |sys| {
        let mut random = Random::new(seed);
        let things = Things::open(sys);
        let levels = 1 + random.below(38);
        for _ in 0..4 {
            sys.spawn(1 + random.below(levels) as u8);
        }
        (0..before).for_each(|_| sys.host.enter(Cause::Timer));
        let mut moves = Vec::new();
        for step in 0..200u64 {
            let later = sys.host.now.0 + 1 + random.below(50);
            if sys.running().is_none() || random.one_in(8) {
                sys.until(later);
                moves.push(seen(sys, Outcome::Blocked));
                continue;
            }
            if sys.running_process() != 0 {
                break;
            }
            // Each thread has a place of its own for its messages.
            let at = sys.address(0x100 * u64::from(sys.running().index() + 1));
            sys.poke(at, &[step as u8; 20]);
            let (call, words) = things.call(&mut random, at, later);
            let outcome = sys.call(call, &words);
            moves.push(seen(sys, outcome));
        }
        (moves, sys.host.shortcuts.clone())
    })
}

#[test]
fn a_short_way_leads_where_the_long_way_leads() {
    let mut taken = BTreeMap::<CallNumber, u64>::new();
    for seed in 0..600 {
        let [(one, first), (other, second)] = [0, 1].map(|before| play(seed, before));
        let differ = one.iter().zip(&other).position(|(a, b)| a != b);
        let at = differ.unwrap_or(0);
        assert_eq!(differ, None, "seed {seed}: {:#?}\n{:#?}", one[at], other[at]);
        assert_eq!(one.len(), other.len(), "seed {seed}");
        for (call, times) in first.into_iter().chain(second) {
            *taken.entry(call).or_default() += times;
        }
    }
    // Of `MboxCall`, `exchange` has more.
    let short = [Call::Yield, Call::SemLock, Call::SemUnlock, Call::CvSignal];
    for call in short.iter().chain(&[Call::MboxSend, Call::MboxReceive]) {
        let times = taken.get(call).copied().unwrap_or(0);
        assert!(times > 50, "{}: {times} short ways", call.name());
    }
}
