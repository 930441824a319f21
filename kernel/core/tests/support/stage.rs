//! A stage: actors follow a [`Script`] on the kernel core while time passes, and it is written
//! down at each decision who runs, in whose place, and who pays.
//!
//! The actions of an actor besides `run` take no time. The timer may be late, by a random time up
//! to a bound; calls may come while it is.

use super::plan::key;
use super::script::{Op, Script};
use super::{Call, Nanos};
use diapason_abi::archive::Archive;
use diapason_abi::call::{MUTEX, NO_HINT};
use diapason_abi::{Handle, Kind, decode_result, layout};
use diapason_core::host::{Host, with_kernel};
use diapason_core::{Arguments, Cause, Server, State, ThreadId};
use diapason_random::Random;

/// A view of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    pub runs: Option<usize>,
    pub place: Option<usize>,
    pub vcpu: Option<usize>,
    /// Without budget of it.
    pub beyond: bool,
}

/// Where an actor is in its script.
struct Part {
    at: usize,
    left: u64,
    /// The call whose result is awaited.
    calling: Option<Op>,
    thread: ThreadId,
}

/// A system in motion.
pub struct Stage<'a> {
    /// The kernel and its machine.
    pub host: Host<'a>,
    /// The script that it is made from.
    pub script: &'a Script,
    parts: Vec<Part>,
    locks: Vec<u64>,
    mailboxes: Vec<u64>,
    vcpus: Vec<u64>,
    /// The owner of each mutex, as its callers know it.
    pub owners: Vec<Option<usize>>,
    /// Time and decision, at each that differs from the one before.
    pub trace: Vec<(u64, View)>,
    /// The VCPUs that had a ready thread after each step.
    pub ready: Vec<(u64, u64)>,
    /// Results of calls: how many, and how many of them errors.
    pub results: (u64, u64),
    /// Take the metal's short ways.
    simply: bool,
    /// Mutexes are deleted and made again.
    remakes: bool,
    late: Random,
    late_max: u64,
    ring: (Nanos, u64),
}

/// Runs a script until `end`, with the timer up to `late` ns late; then `body` looks at it.
pub fn play<R>(script: &Script, end: u64, late: u64, body: impl FnOnce(&mut Stage<'_>) -> R) -> R {
    play_with(script, end, (late, 1), |_| {}, body)
}

/// Runs a script as [`play`] does, with a seed for the lateness and an eye on every step.
pub fn play_with<R>(
    script: &Script,
    end: u64,
    (late_max, seed): (u64, u64),
    mut look: impl FnMut(&Stage<'_>),
    body: impl FnOnce(&mut Stage<'_>) -> R,
) -> R {
    let bytes = script.plan().to_bytes();
    let archive = Archive::parse(&bytes).expect("a possible script");
    with_kernel(&archive, |mut kernel| {
        kernel.takes_no_time();
        let mut stage = Stage::new(Host::boot(kernel), script, late_max, seed);
        look(&stage);
        while stage.step(end) {
            look(&stage);
        }
        stage.host.kernel.close_accounts(Nanos(end));
        body(&mut stage)
    })
}

impl<'a> Stage<'a> {
    fn new(host: Host<'a>, script: &'a Script, late_max: u64, seed: u64) -> Stage<'a> {
        let part = |at: usize| {
            let of = |t: &ThreadId| host.kernel.threads[*t].process.index() as usize == at;
            let thread = host.kernel.threads.ids().find(of).expect("its thread");
            Part { at: 0, left: 0, calling: None, thread }
        };
        let parts = (0..script.actors.len()).map(part).collect();
        let mut stage = Stage {
            host,
            script,
            parts,
            locks: Vec::new(),
            mailboxes: Vec::new(),
            vcpus: Vec::new(),
            owners: vec![None; script.locks.len()],
            trace: Vec::new(),
            ready: Vec::new(),
            results: (0, 0),
            simply: seed.is_multiple_of(2),
            remakes: script
                .actors
                .iter()
                .any(|a| a.ops.iter().any(|op| matches!(op, Op::Create(_)))),
            late: Random::new(seed),
            late_max,
            ring: (Nanos::FOREVER, u64::MAX),
        };
        for (name, count) in &script.locks {
            let handle = stage.open(Call::SemCreate, name, count.unwrap_or(MUTEX));
            stage.locks.push(handle);
        }
        for (name, _) in &script.mailboxes {
            let handle = stage.open(Call::MboxCreate, name, 0);
            stage.mailboxes.push(handle);
        }
        let vcpu = |at: usize| Handle::new(Kind::Vcpu, at as u16, 1).0;
        stage.vcpus = (0..script.vcpus.len()).map(vcpu).collect();
        stage.note();
        stage
    }

    fn open(&mut self, call: Call, name: &str, word: u64) -> u64 {
        let handle = self.host.value(call, &[key(name), word]).expect("a declared object");
        self.host.forget_results();
        handle
    }

    /// Returns the time in ns.
    pub fn now(&self) -> u64 {
        self.host.now.0
    }

    /// The thread of an actor.
    pub fn thread(&self, actor: usize) -> ThreadId {
        self.parts[actor].thread
    }

    fn actor_of(&self, thread: ThreadId) -> Option<usize> {
        thread.is_some().then(|| self.host.kernel.threads[thread].process.index() as usize)
    }

    /// Returns the budget that VCPU `v` can use now.
    pub fn available(&self, v: usize) -> u64 {
        let now = self.host.now;
        match &self.host.kernel.vcpus[diapason_core::VcpuId::new(v as u16)].server {
            Server::Main(server) => server.available(now).0,
            Server::Io(server, _) => server.available(now).0,
        }
    }

    /// Returns a view of the last decision.
    pub fn view(&self) -> View {
        let s = &self.host.kernel.scheduler;
        let place = self.actor_of(s.place);
        let vcpu = place.and_then(|at| self.script.actors[at].on);
        let beyond = vcpu.is_some_and(|v| self.available(v) == 0);
        View { runs: self.actor_of(s.running), place, vcpu, beyond }
    }

    fn note(&mut self) {
        let (now, view) = (self.now(), self.view());
        if self.trace.last().is_none_or(|(_, last)| *last != view) {
            self.trace.push((now, view));
        }
        let ready = self.ready_vcpus();
        if self.ready.last().is_none_or(|(_, last)| *last != ready) {
            self.ready.push((now, ready));
        }
    }

    fn ready_vcpus(&self) -> u64 {
        let ready = |actor: &usize| {
            self.host.kernel.threads[self.parts[*actor].thread].state == State::Ready
        };
        let on = |actor: usize| self.script.actors[actor].on.map_or(0, |v| 1u64 << v);
        (0..self.parts.len()).filter(ready).map(on).fold(0, |all, one| all | one)
    }

    /// Returns when the timer interrupts: the alarm, and as late as it happens to be this time.
    fn ring(&mut self) -> u64 {
        let alarm = self.host.kernel.next_alarm();
        if self.ring.0 != alarm {
            let late = if self.late_max == 0 { 0 } else { self.late.below(self.late_max + 1) };
            self.ring = (alarm, alarm.0.saturating_add(late));
        }
        self.ring.1.max(self.now())
    }

    /// The next thing that happens; `false` at the end.
    fn step(&mut self, end: u64) -> bool {
        let (now, ring) = (self.now(), self.ring());
        let actor = self.view().runs;
        let call = actor.is_some_and(|a| self.begin(a));
        if call && ring > now {
            self.act(actor.expect("it calls"));
            self.after();
            return true;
        }
        let done = match actor {
            Some(a) if !call => now + self.parts[a].left,
            _ => u64::MAX,
        };
        let next = done.min(ring).min(end);
        if let Some(a) = actor.filter(|_| !call) {
            self.parts[a].left -= next - now;
        }
        self.host.now = Nanos(next);
        if next == ring && next < end {
            self.ring = (Nanos::FOREVER, u64::MAX);
            self.host.enter(Cause::Timer);
            self.after();
        }
        next < end
    }

    fn after(&mut self) {
        self.collect();
        self.note();
    }

    /// Returns whether a running actor wants to call; if not, it has something left to run.
    fn begin(&mut self, actor: usize) -> bool {
        if self.parts[actor].left > 0 {
            return false;
        }
        let op = self.script.actors[actor].ops.get(self.parts[actor].at);
        if let Some(Op::Run(time)) = op {
            self.parts[actor].at += 1;
            self.parts[actor].left = *time;
            return false;
        }
        if op == Some(&Op::Again) {
            self.parts[actor].at = 0;
            return self.begin(actor);
        }
        true
    }

    fn hint(&self, hint: Option<usize>) -> u64 {
        hint.map_or(NO_HINT, |m| self.locks[m])
    }

    fn act(&mut self, actor: usize) {
        let Some(op) = self.script.actors[actor].ops.get(self.parts[actor].at).copied() else {
            return self.host.call(Call::ThreadExit, &[0]);
        };
        self.parts[actor].at += 1;
        self.parts[actor].calling = Some(op);
        let now = self.now();
        let until = |within: u64| if within == 0 { 0 } else { now.saturating_add(within) };
        let address = layout::base(actor as u16);
        let (call, words) = match op {
            Op::Run(_) | Op::Again => unreachable!("no calls"),
            Op::Sleep(time, hint) => (Call::SleepUntil, [time, self.hint(hint), 0, 0, 0]),
            Op::Nap(time, hint) => (Call::SleepUntil, [now + time, self.hint(hint), 0, 0, 0]),
            Op::Lock(m, within, hint) => {
                (Call::SemLock, [self.locks[m], until(within), self.hint(hint), 0, 0])
            }
            Op::Unlock(m) => (Call::SemUnlock, [self.locks[m], 0, 0, 0, 0]),
            Op::Delete(m) => (Call::SemDelete, [self.locks[m], 0, 0, 0, 0]),
            Op::Create(m) => (Call::SemCreate, [key(&self.script.locks[m].0), 0, 0, 0, 0]),
            Op::Send(b, within) => {
                (Call::MboxSend, [self.mailboxes[b], address, 8, 1, until(within)])
            }
            Op::Receive(b, within, hint) => {
                let words = [self.mailboxes[b], address, until(within), self.hint(hint), 0];
                (Call::MboxReceive, words)
            }
            Op::Yield => (Call::Yield, [0; 5]),
            Op::Set(v, budget, period) => (Call::VcpuSet, [self.vcpus[v], budget, period, 0, 0]),
        };
        if let Op::Unlock(m) | Op::Delete(m) = op {
            // The effect comes before the result, which waits until the caller runs again.
            let over = matches!(op, Op::Delete(_)) || self.owners[m] == Some(actor);
            self.owners[m] = self.owners[m].filter(|_| !over);
        }
        self.call(call, words);
    }

    /// A call: by a short way whenever there is one, or never.
    fn call(&mut self, call: Call, words: Arguments) {
        self.host.tried_every = if self.simply { 1 } else { u64::MAX };
        self.host.raw_call(call as u64, words);
    }

    /// Collects the results of calls, and the ownership that follows from them.
    fn collect(&mut self) {
        while let Some((thread, result)) = self.host.results.pop_front() {
            let actor = self.actor_of(thread).expect("a caller");
            let op = self.parts[actor].calling.take().expect("a call");
            let result = decode_result(result);
            self.results.0 += 1;
            self.results.1 += u64::from(result.is_err());
            match (op, result) {
                (Op::Lock(m, ..), Ok(_)) if self.script.locks[m].1.is_none() => {
                    // The result may be of the mutex that was deleted before this one was made.
                    let one = self.owners[m].is_none() || self.remakes;
                    assert!(one, "two hold the same mutex");
                    self.owners[m] = Some(actor);
                }
                (Op::Create(m), Ok(handle)) => self.locks[m] = handle,
                _ => {}
            }
        }
        for owner in &mut self.owners {
            let gone = |a: usize| {
                let state = self.host.kernel.threads[self.parts[a].thread].state;
                matches!(state, State::Free | State::Ended)
            };
            *owner = owner.filter(|a| !gone(*a));
        }
    }

    /// Returns how often somebody else came to run.
    pub fn switches(&self) -> usize {
        let pairs = self.trace.iter().zip(self.trace.iter().skip(1));
        pairs.filter(|((_, a), (_, b))| a.runs != b.runs).count()
    }

    /// Pieces of the trace that lasted: begin, end, what.
    pub fn slices(&self, end: u64) -> Vec<(u64, u64, View)> {
        let ends = self.trace.iter().skip(1).map(|(t, _)| *t).chain([end]);
        let all = self.trace.iter().zip(ends).map(|((from, view), to)| (*from, to, *view));
        all.filter(|(from, to, _)| from < to).collect()
    }

    /// The trace as text.
    pub fn text(&self) -> String {
        let line = |(time, view): &(u64, View)| {
            let name = |at: usize| &self.script.actors[at].name;
            let mut line = format!("{}", time / 1_000);
            if time % 1_000 > 0 {
                line += format!(".{:03}", time % 1_000).trim_end_matches('0');
            }
            line += " ";
            line += view.runs.map_or("nobody", |at| name(at));
            if let Some(place) = view.place.filter(|_| view.place != view.runs) {
                line += &format!(" for {}", name(place));
            }
            if let Some(vcpu) = view.vcpu {
                let how = if view.beyond { "beyond" } else { "on" };
                line += &format!(" {how} {}", self.script.vcpus[vcpu].name);
            }
            line
        };
        self.trace.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Runs a script for so many microseconds and compares its trace with `expected`; what follows `--`
/// in a line is a remark.
#[track_caller]
pub fn golden(script: &str, micros: u64, expected: &str) {
    let clean = |line: &str| {
        let words = line.split("--").next().unwrap_or("").split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let expected: Vec<String> = expected.lines().map(clean).filter(|l| !l.is_empty()).collect();
    let script = Script::parse(script);
    for seed in [1, 2] {
        let of = |stage: &mut Stage<'_>| stage.text();
        let text = play_with(&script, micros * 1_000, (0, seed), |_| {}, of);
        assert_eq!(text, expected.join("\n"), "\n{text}\n");
    }
}
