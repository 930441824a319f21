//! Short ways: the same random moves of a few threads are made twice. The host lets every other
//! call go a short way if it has one, and one entry more before the first swaps them; whatever can
//! be seen must be the same after each move.

use crate::support::lab;
use crate::support::*;
use diapason_abi::CallNumber;
use diapason_abi::call::NO_HINT;
use diapason_random::Random;
use std::collections::BTreeMap;

const ROOM: u64 = 1 << 32;

fn plan() -> Plan {
    let plan = lab::plan().semaphore("signal", 0).semaphore("places", 2).condition("changed");
    let plan = plan.mailbox("request", 2).mailbox("reply", 1).mailbox("service", 0);
    let plan = plan.served_with(2);
    plan.device("chime", 6, false, EVERYBODY)
}

/// The device that a thread of the experiment waits for.
const CHIME: u16 = 1;

/// The objects of the experiment.
struct Things {
    mutexes: [u64; 2],
    semaphores: [u64; 2],
    condition: u64,
    mailboxes: [u64; 2],
    /// A mailbox with a server, and the mutex of the server.
    service: [u64; 2],
    chime: u64,
}

impl Things {
    fn open(sys: &mut Sys<'_>) -> Things {
        Things {
            mutexes: ["m1", "m2"].map(|name| sys.open(Call::SemCreate, name)),
            semaphores: ["signal", "places"].map(|name| sys.open(Call::SemCreate, name)),
            condition: sys.open(Call::CvCreate, "changed"),
            mailboxes: ["request", "reply"].map(|name| sys.open(Call::MboxCreate, name)),
            service: [(Call::MboxCreate, "service"), (Call::SemCreate, "m3")]
                .map(|(call, name)| sys.open(call, name)),
            chime: sys.ok(Call::SetIsr, &[key("chime")]),
        }
    }

    /// The mutex that the running thread took last and still holds.
    fn held(&self, sys: &Sys<'_>) -> Option<u64> {
        let held = sys.host.kernel.threads[sys.running()].held;
        self.mutexes.into_iter().find(|mutex| held.is_some() && *mutex as u16 == held.index())
    }

    /// A call with words that mostly make sense.
    fn call(
        &self,
        random: &mut Random,
        at: u64,
        later: u64,
        held: Option<u64>,
    ) -> (Call, Vec<u64>) {
        let pick = |random: &mut Random, of: [u64; 2]| of[random.below(2) as usize];
        let deadline = if random.one_in(6) { later } else { FOREVER };
        let mutex = pick(random, self.mutexes);
        let semaphore = pick(random, self.semaphores);
        let mailbox = pick(random, self.mailboxes);
        let hint = if random.one_in(3) { mutex } else { NO_HINT };
        // Sometimes a place that the process does not have.
        let place = if random.one_in(200) { 8 } else { at };
        match random.below(19) {
            16 | 17 => (Call::EventWait, vec![self.chime, deadline, hint]),
            0 => (Call::SleepUntil, vec![later, hint]),
            1 | 2 | 18 => (Call::Yield, vec![]),
            3 | 4 => (Call::SemLock, vec![mutex, deadline, hint]),
            5 | 6 => (Call::SemUnlock, vec![mutex]),
            7 => (Call::SemLock, vec![semaphore, deadline, hint]),
            8 | 9 => (Call::SemUnlock, vec![semaphore]),
            10 => (Call::CvWait, vec![self.condition, held.unwrap_or(mutex), deadline]),
            11 => (Call::CvSignal, vec![self.condition, random.below(3)]),
            12 | 13 => (Call::MboxSend, vec![mailbox, place, random.below(20), 1, NOW]),
            14 => (Call::MboxReceive, vec![mailbox, place, deadline, hint]),
            _ => {
                let [send, receive] = self.mailboxes;
                (Call::MboxCall, vec![send, place, random.below(20) * ROOM, receive, deadline])
            }
        }
    }

    /// A call of a thread that locks, says before that it will, or waits for a change. Some threads
    /// never wait for others.
    fn contend(
        &self,
        random: &mut Random,
        thread: ThreadId,
        held: Option<u64>,
    ) -> (Call, Vec<u64>) {
        let ([mutex, _], [signal, _]) = (self.mutexes, self.semaphores);
        let waits = !thread.index().is_multiple_of(3);
        match (random.below(4), held) {
            (0 | 1, None) if waits => (Call::SemLock, vec![signal, FOREVER, mutex]),
            (0 | 1, Some(mutex)) if waits => (Call::CvWait, vec![self.condition, mutex, FOREVER]),
            (2, Some(mutex)) => (Call::SemUnlock, vec![mutex]),
            (3, _) => (Call::CvSignal, vec![self.condition, 1]),
            (_, Some(_)) => (Call::SemUnlock, vec![signal]),
            (_, None) => (Call::SemLock, vec![mutex, FOREVER, NO_HINT]),
        }
    }

    /// The call of a server that waits for a request, or of its client.
    fn exchange(&self, random: &mut Random, at: u64) -> (Call, Vec<u64>) {
        let [request, reply] = self.mailboxes;
        let (send, receive) = if random.one_in(2) { (request, reply) } else { (reply, request) };
        match random.below(3) {
            0 => (Call::MboxReceive, vec![receive, at, FOREVER, NO_HINT]),
            _ => (Call::MboxCall, vec![send, at, random.below(20) * ROOM, receive, FOREVER]),
        }
    }

    /// Returns whether this is a call to the server, or its answer.
    fn is_served(&self, call: Call, words: &[u64]) -> bool {
        call == Call::MboxCall && words[0] == self.service[0] && words[3] == words[0]
    }

    /// A call of the server that answers or waits, of a client, or of a thread that becomes the
    /// server: mostly one without a VCPU.
    fn converse(&self, random: &mut Random, sys: &Sys<'_>, at: u64) -> (Call, Vec<u64>) {
        let [mailbox, mutex] = self.service;
        let thread = &sys.host.kernel.threads[sys.running()];
        let serves = thread.held.is_some() && thread.held.index() == mutex as u16;
        let deadline = if random.one_in(12) { sys.host.now.0 + 100 } else { FOREVER };
        let call = vec![mailbox, at, random.below(20) * ROOM, mailbox, deadline];
        let receive = vec![mailbox, at, deadline, NO_HINT];
        match (random.below(12), serves) {
            (0, true) => (Call::SemUnlock, vec![mutex]),
            (1, true) => (Call::MboxReceive, receive),
            (1 | 2, _) => (Call::SleepUntil, vec![sys.host.now.0 + 5_000, NO_HINT]),
            (..7, false) if thread.vcpu.is_none() => (Call::SemTryLock, vec![mutex]),
            _ => (Call::MboxCall, call),
        }
    }
}

/// The visible state after a move.
type Seen = (Outcome, Vec<String>, Vec<(u64, u8)>, (ThreadId, Nanos), Vec<Option<Nanos>>);

fn seen(sys: &mut Sys<'_>, outcome: Outcome) -> Seen {
    let ids: Vec<_> = sys.host.kernel.threads.ids().collect();
    let thread = |t: &ThreadId, sys: &mut Sys<'_>| {
        let result = sys.result(*t);
        let t = &sys.host.kernel.threads[*t];
        format!("{:?} {:?} {:?} {:?} {result:?}", t.state, t.wait, t.used, t.held)
    };
    let threads = ids.iter().map(|t| thread(t, sys)).collect();
    let memory = sys.host.machine.memory.iter().map(|(a, b)| (*a, *b)).collect();
    let (kernel, now) = (&sys.host.kernel, sys.host.now);
    let budgets = kernel.vcpus.ids().map(|id| kernel.budget_of(id, now)).collect();
    (outcome, threads, memory, (sys.running(), kernel.next_alarm()), budgets)
}

/// Five threads, of few priorities, for 200 moves, after a number of entries more.
fn play(seed: u64, before: u64) -> (Vec<Seen>, BTreeMap<CallNumber, u64>, [u64; 2]) {
    lab::with(&plan(), |sys| {
        let mut random = Random::new(seed);
        let things = Things::open(sys);
        let levels = 1 + random.below(38);
        for _ in 0..4 {
            sys.spawn(1 + random.below(levels) as u8);
        }
        (0..before).for_each(|_| sys.host.enter(Cause::Timer));
        let (mut moves, mut hinted, mut served) = (Vec::new(), 0, 0);
        for step in 0..200u64 {
            let later = sys.host.now.0 + 1 + random.below(50);
            if random.one_in(10) {
                sys.ring(CHIME);
                moves.push(seen(sys, Outcome::Blocked));
            }
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
            let held = things.held(sys);
            let (call, words) = match random.below(if seed.is_multiple_of(2) { 5 } else { 1 }) {
                _ if seed % 3 == 2 => things.converse(&mut random, sys, at),
                0 => things.call(&mut random, at, later, held),
                _ => things.contend(&mut random, sys.running(), held),
            };
            let before = short_ways(sys);
            let outcome = sys.call(call, &words);
            let taken = short_ways(sys) - before;
            hinted += taken * u64::from(by_a_hint(sys));
            served += taken * u64::from(things.is_served(call, &words));
            moves.push(seen(sys, outcome));
        }
        (moves, sys.host.shortcuts.clone(), [hinted, served])
    })
}

/// Returns how many calls went a short way.
fn short_ways(sys: &Sys<'_>) -> u64 {
    sys.host.shortcuts.values().sum()
}

/// Returns whether a thread runs in the place of one that will lock its mutex.
fn by_a_hint(sys: &Sys<'_>) -> bool {
    let (kernel, place) = (&sys.host.kernel, sys.host.kernel.scheduler.place);
    place != sys.running() && matches!(kernel.threads[place].wait, Wait::Hint(_))
}

#[test]
fn a_short_way_leads_where_the_long_way_leads() {
    let (mut taken, mut others) = (BTreeMap::<CallNumber, u64>::new(), [0; 2]);
    for seed in 0..600 {
        let [(one, first, h1), (other, second, h2)] = [0, 1].map(|before| play(seed, before));
        others = [0, 1].map(|which| others[which] + h1[which] + h2[which]);
        let differ = one.iter().zip(&other).position(|(a, b)| a != b);
        let at = differ.unwrap_or(0);
        assert_eq!(differ, None, "seed {seed}: {:#?}\n{:#?}", one[at], other[at]);
        assert_eq!(one.len(), other.len(), "seed {seed}");
        for (call, times) in first.into_iter().chain(second) {
            *taken.entry(call).or_default() += times;
        }
    }
    let [hinted, served] = others;
    assert!(hinted > 20, "{hinted} short ways to a thread with a hint");
    assert!(served > 20, "{served} short ways to a server or back");
    // `MboxCall` has its short way in `exchange`.
    let short = [Call::Yield, Call::SemLock, Call::SemUnlock, Call::CvSignal];
    for call in short.iter().chain(&[Call::MboxSend, Call::MboxReceive]) {
        let times = taken.get(call).copied().unwrap_or(0);
        assert!(times > 50, "{}: {times} short ways", call.name());
    }
}

/// Where the threads of a game on VCPUs live: two queues by period, one by deadline, or both. Half
/// of the games have two VCPUs more: one for I/O, and one with a short list.
fn on_vcpus(seed: u64) -> Plan {
    let queues = (seed % 3) as u8;
    let (first, second) = if queues == 2 { (0, 1) } else { (0, 0) };
    let plan = plan().dp_queues(queues.min(1));
    let plan = plan.main_vcpu("A", 2 * MS, 10 * MS, first).main_vcpu("B", 3 * MS, 20 * MS, second);
    if seed.is_multiple_of(2) {
        return plan;
    }
    let plan = plan.io_vcpu("C", 100_000, 1, first).main_vcpu("D", MS, 15 * MS, second);
    plan.with_vcpu(|vcpu| (vcpu.replenishments, vcpu.background) = (2, true))
}

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

/// Every thread's time and the budget that its job used, and every VCPU's account.
type Accounts = (Vec<(Nanos, Option<[u64; 4]>)>, Vec<Option<[u64; 8]>>);

/// Short ways of each call: how many, and how many of them made another VCPU pay.
type Ways = BTreeMap<CallNumber, (u64, u64)>;

/// Returns the same without the alarm. The long way looks at the budget again: if more has come
/// since, it sets the timer to a later end. So the alarm may be too early, but never too late.
fn in_time(sys: &mut Sys<'_>, mut seen: Seen) -> Seen {
    const SPARED: Nanos = Nanos(3 * US);
    let (kernel, now) = (&sys.host.kernel, sys.host.now);
    if let Some(left) = kernel.vcpus.get(kernel.payer().index()).map(|_| kernel.payer()) {
        let left = kernel.budget_of(left, now).unwrap_or_default();
        let late = kernel.next_alarm() > now + left + SPARED;
        assert!(left == Nanos::ZERO || !late, "the timer rings after the budget's end");
    }
    seen.3.1 = Nanos::ZERO;
    seen
}

/// Six threads on two VCPUs and on none, for 300 moves that take time.
fn play_on_vcpus(seed: u64, before: u64) -> (Vec<Seen>, Accounts, Ways, [u64; 4]) {
    lab::with(&on_vcpus(seed), |sys| {
        let mut random = Random::new(seed);
        let things = Things::open(sys);
        let names = if seed.is_multiple_of(2) { &["A", "B"][..] } else { &["A", "B", "C", "D"] };
        let open = |name: &&str| sys.ok(Call::VcpuCreate, &[key(name), 0, 0, 0, 0]);
        let vcpus: Vec<_> = names.iter().map(open).collect();
        for _ in 0..5 {
            let vcpu = vcpus[random.below(vcpus.len() as u64) as usize];
            let vcpu = if random.one_in(5) { 0 } else { vcpu };
            let priority = 1 + random.below(38);
            sys.call(Call::ThreadCreate, &[0x1000, 0, priority, 0, vcpu]);
        }
        (0..before).for_each(|_| sys.host.enter(Cause::Timer));
        let (mut moves, mut ways) = (Vec::new(), Ways::new());
        let (mut hinted, mut served) = (0, 0);
        // Much of what is done takes less time than is spared for a switch.
        let pause = [200 * US, 2 * US][seed as usize / 2 % 2];
        for step in 0..300u64 {
            sys.until(sys.host.now.0 + random.below(pause));
            if random.one_in(10) {
                sys.ring(CHIME);
                let state = seen(sys, Outcome::Blocked);
                moves.push(in_time(sys, state));
            }
            let later = sys.host.now.0 + (1 + random.below(50)) * 100 * US;
            if sys.running().is_none() || random.one_in(20) {
                sys.until(later);
                let state = seen(sys, Outcome::Blocked);
                moves.push(in_time(sys, state));
                continue;
            }
            if sys.running_process() != 0 {
                break;
            }
            let at = sys.address(0x100 * u64::from(sys.running().index() + 1));
            sys.poke(at, &[step as u8; 20]);
            let held = things.held(sys);
            let (call, words) = match (random.below(20), seed % 5) {
                (0, _) | (..=9, 0 | 1) => things.exchange(&mut random, at),
                (..=17, 3) => things.converse(&mut random, sys, at),
                (..=14, 2) => things.contend(&mut random, sys.running(), held),
                _ => things.call(&mut random, at, later, held),
            };
            let short = |sys: &Sys<'_>| sys.host.shortcuts.get(&call).copied().unwrap_or(0);
            let (payer, before) = (sys.host.kernel.payer(), short(sys));
            let outcome = sys.call(call, &words);
            let (taken, crossed) = (short(sys) - before, sys.host.kernel.payer() != payer);
            hinted += taken * u64::from(by_a_hint(sys));
            served += taken * u64::from(things.is_served(call, &words));
            let way = ways.entry(call).or_default();
            (way.0, way.1) = (way.0 + taken, way.1 + taken * u64::from(crossed));
            let state = seen(sys, outcome);
            moves.push(in_time(sys, state));
        }
        let now = sys.host.now;
        let kernel = &mut sys.host.kernel;
        kernel.close_accounts(now);
        let of = |id| (kernel.threads[id].used, kernel.job_account(id, now));
        let used = kernel.threads.ids().map(of).collect();
        let accounts = kernel.vcpus.ids().map(|id| kernel.account_of(id)).collect();
        check_books(kernel, now);
        let plain = [sys.host.plain_interrupts, sys.host.plain_alarms];
        (moves, (used, accounts), ways, [plain[0], plain[1], hinted, served])
    })
}

#[test]
fn on_vcpus_a_short_way_leads_where_the_long_way_leads_and_costs_the_same_budget() {
    let (mut taken, mut others) = (Ways::new(), [0; 4]);
    for seed in 0..1_000 {
        let [one, other] = [0, 1].map(|before| play_on_vcpus(seed, before));
        let differ = one.0.iter().zip(&other.0).position(|(a, b)| a != b);
        let at = differ.unwrap_or(0);
        assert_eq!(differ, None, "seed {seed} {at}: {}", difference(&one.0[at], &other.0[at]));
        assert_eq!(one.1, other.1, "seed {seed}");
        others = [0, 1, 2, 3].map(|which| others[which] + one.3[which] + other.3[which]);
        for (call, times) in one.2.into_iter().chain(other.2) {
            let sum = taken.entry(call).or_default();
            (sum.0, sum.1) = (sum.0 + times.0, sum.1 + times.1);
        }
    }
    let [interrupts, alarms, hinted, served] = others;
    assert!(served > 500, "{served} short ways to a server or back");
    assert!(alarms > 500, "{alarms} sleepers ran at once");
    assert!(interrupts > 100, "{interrupts} interrupts went to their threads at once");
    assert!(hinted > 20, "{hinted} short ways to a thread with a hint");
    let within = [Call::Yield, Call::SemLock];
    let across = [Call::SemUnlock, Call::CvSignal, Call::MboxSend, Call::MboxReceive];
    for call in within.iter().chain(&across).chain(&[Call::MboxCall]) {
        let (times, _) = taken.get(call).copied().unwrap_or_default();
        assert!(times > 20, "{}: {times} short ways", call.name());
    }
    for call in across.iter().chain(&[Call::SemLock, Call::MboxCall]) {
        let (_, times) = taken.get(call).copied().unwrap_or_default();
        assert!(times > 4, "{}: {times} short ways from VCPU to VCPU", call.name());
    }
}

/// The lines in which two states after a move differ.
fn difference(one: &Seen, other: &Seen) -> String {
    let [one, other] = [one, other].map(|seen| {
        let (outcome, threads, _, last, budgets) = seen;
        let rest = [format!("{outcome:?}"), format!("{last:?}"), format!("{budgets:?}")];
        threads.iter().cloned().chain(rest).collect::<Vec<_>>()
    });
    let differ = one.iter().zip(&other).filter(|(a, b)| a != b);
    differ.map(|(a, b)| format!("\n{a}\n{b}")).collect()
}
