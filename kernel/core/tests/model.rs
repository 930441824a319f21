//! The kernel against the model: both make the same random moves, and after each everything that
//! can be seen of one is compared with the other. proptest shrinks what differs to a few moves.

use crate::support;
use crate::support::model::{Blueprint, Life, Model, Wait as ModelWait};
use diapason_abi::archive::Archive;
use diapason_abi::call::MUTEX;
use diapason_abi::{Kind, decode_result, layout};
use diapason_core::host::{Host, with_kernel};
use diapason_core::{Fault, Id};
use proptest::prelude::*;
use std::collections::BTreeMap;

use crate::support::*;
use diapason_random::Random;

/// The draws for one move: its kind, and three numbers to make arguments of.
type Move = (u8, u8, u8, u8);

/// Calls as often as they are worth it.
const CALLS: [Call; 73] = [
    Call::SemLock,
    Call::SemLock,
    Call::SemLock,
    Call::SemLock,
    Call::SemLock,
    Call::SemLock,
    Call::SemLock,
    Call::SemUnlock,
    Call::SemUnlock,
    Call::SemUnlock,
    Call::SemUnlock,
    Call::SemTryLock,
    Call::SemCreate,
    Call::SemCreate,
    Call::SemCreate,
    Call::SemCreate,
    Call::SemDelete,
    Call::ThreadCreate,
    Call::ThreadCreate,
    Call::ThreadCreate,
    Call::ThreadCreate,
    Call::ThreadCreate,
    Call::ThreadExit,
    Call::ThreadJoin,
    Call::ThreadJoin,
    Call::ThreadDetach,
    Call::Yield,
    Call::Yield,
    Call::SleepUntil,
    Call::SleepUntil,
    Call::JobsStart,
    Call::JobWait,
    Call::CvCreate,
    Call::CvCreate,
    Call::CvWait,
    Call::CvWait,
    Call::CvWait,
    Call::CvWait,
    Call::CvWait,
    Call::CvSignal,
    Call::CvSignal,
    Call::CvDelete,
    Call::MboxCreate,
    Call::MboxCreate,
    Call::MboxCreate,
    Call::MboxSend,
    Call::MboxSend,
    Call::MboxSend,
    Call::MboxReceive,
    Call::MboxReceive,
    Call::MboxReceive,
    Call::MboxCall,
    Call::MboxCall,
    Call::MboxCall,
    Call::MboxDelete,
    Call::TimerCreate,
    Call::TimerStart,
    Call::TimerStart,
    Call::EventCreate,
    Call::EventWait,
    Call::EventWait,
    Call::EventDelete,
    Call::SetIsr,
    Call::ShmAttach,
    Call::ShmAttach,
    Call::ShmDetach,
    Call::ShmBus,
    Call::ShmBus,
    Call::MemAlloc,
    Call::MapDevice,
    Call::ProcCreate,
    Call::ProcKill,
    Call::Count,
];

/// Kernel and model side by side.
struct Pair<'a> {
    host: Host<'a>,
    model: Model,
    /// Handles given out so far.
    seen: Vec<(Kind, u64)>,
    /// The last call of each thread.
    last: Vec<Option<Call>>,
    moves: u64,
    /// Calls that returned well, and errors that were returned.
    good: BTreeMap<&'static str, u64>,
    errors: BTreeMap<u8, u64>,
}

impl Pair<'_> {
    fn make(&mut self, chosen: Move) {
        self.moves += 1;
        self.host.forget_results();
        self.model.delivered.clear();
        let (kind, a, b, c) = chosen;
        match kind {
            0..24 => self.pass_time(a, b),
            24..36 => self.interrupt(a),
            _ if self.model.running.is_none() => self.pass_time(a, 0),
            36..38 if self.may_end(b) => {
                let cause = FaultCause::ALL[a as usize % FaultCause::ALL.len()];
                let (address, instruction) = (u64::from(b), u64::from(c));
                self.host.enter(Cause::Fault(Fault { cause, address, instruction }));
                self.model.crash(cause, address, instruction);
            }
            _ => self.call(CALLS[kind as usize % CALLS.len()], a, b, c),
        }
        self.learn();
        self.compare();
    }

    /// The first thread of all seldom ends or waits for ever: it restarts the others.
    fn may_end(&self, b: u8) -> bool {
        self.model.running != Some(0) || b >= 248
    }

    fn interrupt(&mut self, a: u8) {
        let device = u16::from(a % 3);
        self.host.enter(Cause::Irq(device));
        self.model.interrupt(device as usize);
    }

    /// To the next alarm, or past some.
    fn pass_time(&mut self, a: u8, b: u8) {
        let now = self.model.now;
        let next = self.model.next_alarm();
        let to = if b.is_multiple_of(2) && next < now + 50_000 {
            next.max(now)
        } else {
            now + [0, 1, 137, 999, 2_500, 10_000][a as usize % 6]
        };
        (self.model.now, self.host.now) = (to, Nanos(to));
        self.host.enter(Cause::Timer);
        self.model.timer();
    }

    /// Deadlines of different sleepers never coincide: the order of equal ones is not promised.
    fn due(&self, sleeper: u64, b: u8) -> u64 {
        let now = self.model.now;
        match b % 8 {
            0 => NOW,
            1 if self.may_end(b) => FOREVER,
            2 => now,
            3 => now.min(1),
            _ => (now / 1_000 + 1 + u64::from(b / 8 % 8)) * 1_000 + sleeper,
        }
    }

    /// A handle of this kind, mostly one the caller may use.
    fn handle(&self, kind: Kind, a: u8, c: u8) -> u64 {
        if c == 255 {
            return self.seen.get(a as usize % self.seen.len().max(1)).map_or(3, |(_, h)| *h);
        }
        let mine = |(k, h): &&(Kind, u64)| *k == kind && self.usable(kind, *h as u16 as usize);
        let known: Vec<u64> = self.seen.iter().filter(mine).map(|(_, h)| *h).collect();
        let alive: Vec<u64> = known.iter().copied().filter(|h| self.alive(kind, *h)).collect();
        // Seldom one that may be stale.
        let from = if a % 16 == 15 || alive.is_empty() { known } else { alive };
        from.get(a as usize % from.len().max(1)).copied().unwrap_or(u64::from(a))
    }

    fn alive(&self, kind: Kind, handle: u64) -> bool {
        let (model, index) = (&self.model, handle as u16 as usize);
        let (alive, generation) = match kind {
            Kind::Thread => {
                let t = &model.threads[index];
                (t.life != Life::Free, t.generation)
            }
            Kind::Semaphore => (model.semaphores[index].alive, model.semaphores[index].generation),
            Kind::Condition => (model.conditions[index].alive, model.conditions[index].generation),
            Kind::Mailbox => (model.mailboxes[index].alive, model.mailboxes[index].generation),
            Kind::Event => (model.events[index].alive, model.events[index].generation),
            Kind::Vcpu => (false, 0),
        };
        alive && diapason_abi::Handle(handle).generation() == generation
    }

    fn usable(&self, kind: Kind, index: usize) -> bool {
        let model = &self.model;
        match kind {
            Kind::Thread => model.threads[index].process == model.process(),
            Kind::Semaphore => model.granted(model.semaphores[index].allowed),
            Kind::Condition => model.granted(model.conditions[index].allowed),
            Kind::Mailbox => model.granted(model.mailboxes[index].allowed),
            Kind::Event => model.granted(model.events[index].allowed),
            Kind::Vcpu => false,
        }
    }

    fn arguments(&self, call: Call, a: u8, b: u8, c: u8) -> [u64; 5] {
        let caller = self.model.caller() as u64;
        let [semaphores, conditions, mailboxes, devices, segments, processes] = Blueprint::keys();
        let key = |keys: &[u64], private: bool| {
            let own = private && a % 4 == 3;
            if own { 0 } else { keys[a as usize % keys.len()] }
        };
        let semaphore = self.handle(Kind::Semaphore, a, c);
        let event = self.handle(Kind::Event, a, c);
        let mailbox = self.handle(Kind::Mailbox, a, c);
        let condition = self.handle(Kind::Condition, a, c);
        let due = self.due(caller, b);
        let address = match c {
            0 => 0,
            1 => layout::base(self.model.process() as u16) - 1,
            // Every thread receives in a place of its own, and sends from none of these.
            _ if matches!(call, Call::MboxReceive | Call::MboxCall) => {
                layout::base(self.model.process() as u16) + 0x100 * caller
            }
            _ => layout::base(self.model.process() as u16) + 0x4000 + 0x100 * u64::from(c % 8),
        };
        let words = match call {
            Call::SemCreate => [key(&semaphores, true), [MUTEX, 0, 2][b as usize % 3], 0, 0, 0],
            Call::SemLock => [semaphore, due, 0, 0, 0],
            Call::SemTryLock | Call::SemUnlock | Call::SemDelete => [semaphore, 0, 0, 0, 0],
            Call::CvCreate => [key(&conditions, true), 0, 0, 0, 0],
            Call::CvWait => [condition, self.mutex(b, c), self.due(caller, a), 0, 0],
            Call::CvSignal => [condition, u64::from(b % 4), 0, 0, 0],
            Call::CvDelete => [condition, 0, 0, 0, 0],
            Call::MboxCreate if a == 9 => [support::key("reports"), 0, 0, 0, 0],
            Call::MboxCreate => {
                let with = if b.is_multiple_of(2) { 0 } else { self.handle(Kind::Event, b, c) };
                [key(&mailboxes, false), with, 0, 0, 0]
            }
            Call::MboxSend => {
                [self.to_send(a, c), address, u64::from(b % 66), u64::from(c % 3), due]
            }
            Call::MboxReceive => [mailbox, address, due, 0, 0],
            Call::MboxCall => {
                let what = u64::from(b % 66) << 32 | u64::from(c % 3);
                let answers = self.handle(Kind::Mailbox, a.wrapping_add(1), c);
                let ever = self.may_end(b) && !b.is_multiple_of(4);
                [self.to_send(a, c), address, what, answers, if ever { FOREVER } else { due }]
            }
            Call::MboxDelete => [mailbox, 0, 0, 0, 0],
            Call::TimerStart => self.timer(event, b, c),
            Call::EventWait => [event, due, 0, 0, 0],
            Call::EventDelete => [event, 0, 0, 0, 0],
            Call::ThreadCreate => [0x1000, 0, u64::from(a % 8).min(6), 0, 0],
            Call::ThreadJoin => [self.handle(Kind::Thread, a, c), due, 0, 0, 0],
            Call::ThreadDetach => [self.handle(Kind::Thread, a, c), 0, 0, 0, 0],
            Call::JobsStart => {
                let first = if matches!(b % 8, 0 | 2 | 3) { caller } else { due };
                [first, 1_000 * u64::from(1 + c % 4), 700, 0, 0]
            }
            Call::SetIsr | Call::MapDevice => [key(&devices, false), 0, 0, 0, 0],
            Call::ShmBus if self.may_end(b) => [segments[1], 0, 0, 0, 0],
            Call::ShmAttach | Call::ShmDetach | Call::ShmBus => [key(&segments, false), 0, 0, 0, 0],
            Call::ProcCreate | Call::ProcKill => [key(&processes, false), 0, 0, 0, 0],
            Call::SleepUntil => [due, 0, 0, 0, 0],
            Call::MemAlloc if self.may_end(b) => [u64::from(1 + a % 2), 0, 0, 0, 0],
            Call::Count => [u64::from(a % 6), 0, 0, 0, 0],
            _ => [1 + u64::from(a % 2), u64::from(b), u64::from(c), 0, 0],
        };
        self.with_hint(call, words, a ^ b)
    }

    /// A mailbox to send to: seldom one with a server, which takes no messages.
    fn to_send(&self, a: u8, c: u8) -> u64 {
        let served = |handle: &u64| {
            let mailbox = self.model.mailboxes.get(*handle as u16 as usize);
            c > 16 && mailbox.is_some_and(|m| m.mutex.is_some())
        };
        let mut choices = (0..3).map(|more| self.handle(Kind::Mailbox, a.wrapping_add(more), c));
        let first = choices.next().unwrap_or(u64::from(a));
        if served(&first) { choices.find(|h| !served(h)).unwrap_or(first) } else { first }
    }

    /// Half of the calls that may have a hint get one.
    fn with_hint(&self, call: Call, mut words: [u64; 5], a: u8) -> [u64; 5] {
        if let Some(at) = call.hint_word() {
            let known = self.seen.iter().any(|(kind, _)| *kind == Kind::Semaphore);
            let mutex = self.handle(Kind::Semaphore, a / 2, 0);
            words[at] = if a.is_multiple_of(2) || !known { u64::MAX } else { mutex };
        }
        words
    }

    /// Mostly a mutex the caller holds.
    fn mutex(&self, b: u8, c: u8) -> u64 {
        let held = self.model.threads[self.model.caller()].held.last();
        let of_held = |(k, h): &&(Kind, u64)| {
            *k == Kind::Semaphore && Some(*h as u16 as usize) == held.copied()
        };
        let known = self.seen.iter().rev().find(of_held).map(|(_, h)| *h);
        if b.is_multiple_of(16) {
            self.handle(Kind::Semaphore, b, c)
        } else {
            known.unwrap_or(u64::from(b))
        }
    }

    fn timer(&self, event: u64, b: u8, c: u8) -> [u64; 5] {
        let sleeper = 100 + u64::from(event as u16);
        let first = match b % 8 {
            3 => sleeper,
            2 => 0,
            _ => self.due(sleeper, b),
        };
        [event, first, 1_000 * u64::from(c % 4), 0, 0]
    }

    fn call(&mut self, call: Call, a: u8, b: u8, c: u8) {
        let c = if self.may_end(b) { c } else { 2 + c % 253 };
        let full = self.model.processes[0].heap + 2 > self.model.processes[0].heap_max;
        let call = if call == Call::MemAlloc && full { Call::ShmDetach } else { call };
        // A misuse ends the process: let it be rare where a caller knows better.
        let idle = self.model.threads[self.model.caller()].jobs.period == 0;
        let call = if call == Call::JobWait && idle && c > 4 { Call::JobsStart } else { call };
        let wrong_time = call == Call::ThreadExit && !self.may_end(b);
        let call = if wrong_time { Call::ProcCreate } else { call };
        let call = self.knows(call).unwrap_or(call);
        let (call, arguments) = match self.in_service(call, a, b, c) {
            Some(conversation) => conversation,
            None => (call, self.arguments(call, a, b, c)),
        };
        let text = vec![self.moves as u8; (b % 66) as usize];
        let sends = match call {
            Call::MboxSend => Some(arguments[2]),
            Call::MboxCall => Some(arguments[2] >> 32),
            _ => None,
        };
        if sends.is_some_and(|length| self.model.accessible(arguments[1], length)) {
            for (i, byte) in text.iter().enumerate() {
                self.host.machine.memory.insert(arguments[1] + i as u64, *byte);
            }
        }
        self.last[self.model.caller()] = Some(call);
        self.host.call(call, &arguments);
        self.model.call(call as u64, arguments, &text);
    }

    /// Returns the call of a client or of the server of the mailbox that has one, if that may be
    /// meant: a thread takes its mutex, waits for requests, answers, and asks.
    fn in_service(&self, call: Call, a: u8, b: u8, c: u8) -> Option<(Call, [u64; 5])> {
        let meant =
            matches!(call, Call::MboxCall | Call::MboxReceive | Call::MboxSend | Call::SemLock);
        let served = self.model.mailboxes.iter().position(|m| m.mutex.is_some())?;
        let named = |kind, at: usize| {
            let is = |(k, h): &&(Kind, u64)| {
                *k == kind && *h as u16 as usize == at && self.alive(kind, *h)
            };
            self.seen.iter().find(is).map(|(_, handle)| *handle)
        };
        let mailbox = named(Kind::Mailbox, served).filter(|_| meant && !a.is_multiple_of(4))?;
        let mutex = named(Kind::Semaphore, self.model.mailboxes[served].mutex?)?;
        let words = self.arguments(Call::MboxCall, a, b, c);
        let (address, what, due) = (words[1], words[2], words[4]);
        let caller = self.model.caller();
        match self.model.semaphores[mutex as u16 as usize].owner {
            None => Some((Call::SemLock, [mutex, self.due(caller as u64, b), u64::MAX, 0, 0])),
            Some(owner) if owner == caller && b.is_multiple_of(8) => {
                Some((Call::MboxReceive, [mailbox, address, due, u64::MAX, 0]))
            }
            Some(_) => Some((Call::MboxCall, [mailbox, address, what, mailbox, due])),
        }
    }

    /// Returns the call to make instead while the caller knows no object of the kind.
    fn knows(&self, call: Call) -> Option<Call> {
        let (kind, create) = match call {
            Call::SemLock | Call::SemTryLock | Call::SemUnlock | Call::SemDelete => {
                (Kind::Semaphore, Call::SemCreate)
            }
            Call::CvWait if self.model.threads[self.model.caller()].held.is_empty() => {
                return self.knows(Call::SemLock).or(Some(Call::SemLock));
            }
            Call::CvWait | Call::CvSignal | Call::CvDelete => (Kind::Condition, Call::CvCreate),
            Call::MboxSend | Call::MboxReceive | Call::MboxDelete => {
                (Kind::Mailbox, Call::MboxCreate)
            }
            Call::MboxCall => {
                let all = self.seen.iter().filter(|(kind, h)| {
                    *kind == Kind::Mailbox
                        && self.alive(*kind, *h)
                        && self.usable(*kind, *h as u16 as usize)
                });
                return (all.count() < 2).then_some(Call::MboxCreate);
            }
            Call::TimerStart | Call::EventWait | Call::EventDelete => {
                (Kind::Event, Call::TimerCreate)
            }
            Call::ThreadJoin | Call::ThreadDetach => (Kind::Thread, Call::ThreadCreate),
            _ => return None,
        };
        let mine = |(k, h): &(Kind, u64)| *k == kind && self.usable(kind, *h as u16 as usize);
        (!self.seen.iter().any(mine)).then_some(create)
    }

    /// Remember the handles that were given out.
    fn learn(&mut self) {
        for (thread, result, _) in &self.model.delivered {
            match (decode_result(*result), self.last[*thread]) {
                (Ok(_), Some(call)) => *self.good.entry(call.name()).or_default() += 1,
                (Err(errno), _) => *self.errors.entry(errno as u8).or_default() += 1,
                (Ok(_), None) => {}
            }
            let kind = match self.last[*thread] {
                Some(Call::ThreadCreate) => Kind::Thread,
                Some(Call::SemCreate) => Kind::Semaphore,
                Some(Call::CvCreate) => Kind::Condition,
                Some(Call::MboxCreate) => Kind::Mailbox,
                Some(Call::EventCreate | Call::TimerCreate | Call::SetIsr) => Kind::Event,
                _ => continue,
            };
            if decode_result(*result).is_ok() && !self.seen.contains(&(kind, *result)) {
                self.seen.push((kind, *result));
            }
        }
    }

    fn compare(&self) {
        let (host, model) = (&self.host, &self.model);
        let running = Some(host.running()).filter(|t| t.is_some()).map(|t| t.index() as usize);
        assert_eq!(running, model.running, "who runs");
        let delivered: Vec<_> =
            host.results.iter().map(|(t, r)| (t.index() as usize, *r)).collect();
        let expected: Vec<_> = model.delivered.iter().map(|(t, r, _)| (*t, *r)).collect();
        assert_eq!(delivered, expected, "results");
        for (address, bytes) in model.delivered.iter().filter_map(|(_, _, m)| m.as_ref()) {
            let found: Vec<u8> = (*address..)
                .take(bytes.len())
                .map(|at| host.machine.memory.get(&at).copied().unwrap_or(0))
                .collect();
            assert_eq!(&found, bytes, "message");
        }
        assert_eq!(host.kernel.next_alarm().0, model.next_alarm(), "next alarm");
        assert_eq!(host.kernel.free_frames(), model.free_frames, "free frames");
        assert_eq!(host.kernel.scheduler.idle.0, model.idle, "idle time");
        self.compare_threads();
        self.compare_processes();
    }

    fn compare_threads(&self) {
        for (index, expected) in self.model.threads.iter().enumerate() {
            let found = &self.host.kernel.threads[Id::new(index as u16)];
            let wait = match &expected.life {
                Life::Free => (State::Free, None),
                Life::Ready => (State::Ready, None),
                Life::Ended(_) => (State::Ended, None),
                Life::Blocked(wait @ (ModelWait::Mutex(..) | ModelWait::Answer(..))) => {
                    let parked = expected.parked_with.is_some();
                    (if parked { State::Parked } else { State::Ready }, Some(wait))
                }
                Life::Blocked(wait) => (State::Blocked, Some(wait)),
            };
            assert_eq!(found.state, wait.0, "state of thread {index}");
            assert!(same_wait(&found.wait, wait.1), "{:?}, {:?}", found.wait, wait.1);
            if expected.life == Life::Ready {
                let hint = match found.wait {
                    Wait::Hint(mutex) => Some(mutex.index() as usize),
                    _ => None,
                };
                assert_eq!(hint, expected.hint, "hint of thread {index}");
            }
            assert_eq!(found.generation, expected.generation, "generation of thread {index}");
            assert_eq!(found.used.0, expected.used, "time used by thread {index}");
            if matches!(expected.life, Life::Ready | Life::Blocked(_)) {
                assert_eq!(found.priority, expected.priority, "priority of thread {index}");
            }
            let (j, e) = (&found.jobs, &expected.jobs);
            let times = [j.release.0, j.period.0, j.deadline.0, j.response_max.0];
            assert_eq!(times, [e.release, e.period, e.deadline, e.response_max], "job times");
            let counts = (j.active, j.done, j.misses, j.skipped);
            assert_eq!(counts, (e.active, e.done, e.misses, e.skipped), "jobs of thread {index}");
        }
    }

    fn compare_processes(&self) {
        let machine = &self.host.machine;
        for (index, expected) in self.model.processes.iter().enumerate() {
            let found = &self.host.kernel.processes[Id::new(index as u16)];
            assert_eq!(found.state, expected.state, "state of process {index}");
            let counts = (found.starts, found.faults, found.heap.count);
            assert_eq!(counts, (expected.starts, expected.faults, expected.heap), "{index}");
            for (segment, s) in self.model.segments.iter().enumerate() {
                let attached = machine.attached.contains(&(index as u16, segment as u16));
                assert_eq!(attached, s.attached.contains(&index), "attached");
            }
            for (device, d) in self.model.devices.iter().enumerate() {
                let mapped = machine.mapped.contains(&(index as u16, device as u16));
                assert_eq!(mapped, d.mapped.contains(&index), "mapped");
            }
        }
        for device in &self.model.devices {
            assert_eq!(machine.irqs.contains(&device.irq), device.open, "line {}", device.irq);
        }
    }
}

fn same_wait(found: &Wait, expected: Option<&ModelWait>) -> bool {
    let index = |i: u16, e: &usize| i as usize == *e;
    match (found, expected) {
        (Wait::Nothing | Wait::Hint(_), None) | (Wait::Time, Some(ModelWait::Time(_))) => true,
        (Wait::Semaphore(s), Some(ModelWait::Semaphore(e))) => index(s.index(), e),
        (Wait::Mutex(s), Some(ModelWait::Mutex(e, ..) | ModelWait::Answer(_, (e, _), ..))) => {
            index(s.index(), e)
        }
        (Wait::Condition(c), Some(ModelWait::Condition(e, ..))) => index(c.index(), e),
        (Wait::Receive(m), Some(ModelWait::Receive(e, _))) => index(m.index(), e),
        (Wait::Send(m), Some(ModelWait::Send(e, ..))) => index(m.index(), e),
        (Wait::Event(v), Some(ModelWait::Event(e))) => index(v.index(), e),
        (Wait::Join(t), Some(ModelWait::Join(e))) => index(t.index(), e),
        _ => false,
    }
}

/// The coverage of a game: calls that succeeded, errors, and answers of servers.
type Reached = (BTreeMap<&'static str, u64>, BTreeMap<u8, u64>, u64);

fn play(moves: &[Move]) -> Reached {
    let bytes = Blueprint::plan().to_bytes();
    let archive = Archive::parse(&bytes).expect("a possible plan");
    with_kernel(&archive, |mut kernel| {
        // The model knows nothing of stages.
        kernel.stage = u64::MAX;
        kernel.lack_devices(0b100);
        let (host, model) = (Host::boot(kernel), Model::boot());
        let last = vec![None; model.threads.len()];
        let (good, errors) = (BTreeMap::new(), BTreeMap::new());
        let mut pair = Pair { host, model, seen: Vec::new(), last, moves: 0, good, errors };
        pair.compare();
        moves.iter().for_each(|chosen| pair.make(*chosen));
        (pair.good, pair.errors, pair.model.answers)
    })
}

#[test]
fn the_moves_reach_every_call_and_every_error() {
    let (mut good, mut errors, mut answers) = (BTreeMap::new(), BTreeMap::new(), 0);
    let mut random = Random::new(4);
    for _ in 0..800 {
        let mut one = || random.bits() as u8;
        let moves: Vec<Move> = (0..250).map(|_| (one(), one(), one(), one())).collect();
        let reached = play(&moves);
        reached.0.into_iter().for_each(|(name, n)| *good.entry(name).or_insert(0) += n);
        answers += reached.2;
        reached.1.into_iter().for_each(|(errno, n)| *errors.entry(errno).or_insert(0) += n);
    }
    println!("good {good:?}\nerrors {errors:?}\nanswers {answers}");
    assert!(answers > 50, "{answers} answers of servers");
    for call in CALLS.iter().filter(|call| **call != Call::ThreadExit) {
        assert!(good.get(call.name()).is_some_and(|n| *n > 20), "{}", call.name());
    }
    assert!(good[Call::MboxCall.name()] > 50, "few answers");
    for errno in Errno::ALL.into_iter().filter(|errno| !matches!(errno, Full | Errno::Overload)) {
        assert!(errors.get(&(errno as u8)).is_some_and(|n| *n > 20), "{errno:?}");
    }
}

/// Games played: 4,000, or as many as `DIAPASON_MODEL_GAMES` says.
fn games() -> u32 {
    std::env::var("DIAPASON_MODEL_GAMES").map_or(4_000, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: games(),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn kernel_and_model_agree(moves in prop::collection::vec(any::<Move>(), 100..300)) {
        play(&moves);
    }
}
