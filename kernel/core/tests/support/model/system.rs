//! The model's state as a whole: from a blueprint, through calls and interrupts, to decisions.

use super::super::{EVERYBODY, Plan, key};
use super::*;
use diapason_abi::call::{MEASUREMENT, MUTEX};
use diapason_abi::{CallNumber as Call, layout};
use diapason_core::ProcessState;
use diapason_core::host::{HOST_BUS, USER_BYTES};

/// Most alarms the kernel handles in one entry.
const ALARMS_PER_ENTRY: usize = 8;
/// Processes of the blueprint: name, priority, threads.
const PROCESSES: [(&str, u8, u16); 3] = [("boss", 6, 2), ("first", 5, 3), ("second", 5, 3)];
const SEMAPHORES: [(&str, u64); 3] = [("m1", MUTEX), ("m2", MUTEX), ("s1", 1)];
/// The server of the last one holds the first semaphore.
const MAILBOXES: [(&str, u16); 3] = [("one", 1), ("two", 2), ("served", 0)];
/// Private slots of each process.
const PRIVATE: (u16, u16, u16) = (2, 1, 2);
const HEAP_PAGES: u32 = 5;
const SEGMENT_PAGES: u32 = 5;

/// The one system that kernel and model both run.
pub struct Blueprint;

impl Blueprint {
    /// Returns the plan for the kernel.
    pub fn plan() -> Plan {
        let mut plan = Plan::new();
        for (i, (name, priority, threads)) in PROCESSES.into_iter().enumerate() {
            plan = plan.process(name, priority).with(|p| {
                (p.threads, p.heap_pages) = (threads, HEAP_PAGES);
                (p.semaphores, p.conditions, p.events) = PRIVATE;
                p.starters = if i == 2 { 0b10 } else { 0 };
                p.counters = i != 2;
            });
            plan = if i > 0 { plan.supervised_by(0) } else { plan };
        }
        for (name, initial) in SEMAPHORES {
            plan = plan.semaphore(name, initial);
        }
        plan = plan.condition("c1");
        for (name, capacity) in MAILBOXES {
            plan = plan.mailbox(name, capacity);
        }
        plan = plan.served_with(0);
        plan = plan.reports("reports", 2, 0).segment("shared", SEGMENT_PAGES, EVERYBODY);
        plan = plan.segment("rings", SEGMENT_PAGES, EVERYBODY).for_devices();
        plan.device("edge", 3, false, EVERYBODY)
            .device("level", 4, true, EVERYBODY)
            .device("lost", 5, false, EVERYBODY)
    }

    /// Keys of the declared semaphores; then conditions, mailboxes, devices, segments, processes.
    pub fn keys() -> [Vec<u64>; 6] {
        let of = |names: &[&str]| names.iter().map(|name| key(name)).collect();
        [
            of(&["m1", "m2", "s1"]),
            of(&["c1"]),
            of(&["one", "two", "served"]),
            of(&["edge", "level", "lost"]),
            of(&["shared", "rings"]),
            of(&["first", "second"]),
        ]
    }
}

/// The model of the kernel.
#[derive(Clone)]
pub struct Model {
    pub now: u64,
    pub threads: Vec<Thread>,
    pub processes: Vec<Process>,
    pub semaphores: Vec<Semaphore>,
    pub conditions: Vec<Condition>,
    pub mailboxes: Vec<Mailbox>,
    pub events: Vec<Event>,
    pub devices: Vec<Device>,
    pub segments: Vec<Segment>,
    pub free_frames: u32,
    /// See the module's rules of order.
    pub ready: Vec<usize>,
    /// The running thread, and the place in which it runs.
    pub running: Option<usize>,
    pub place: Option<usize>,
    pub since: u64,
    pub idle: u64,
    /// Results delivered, and where a message came to lie, since somebody last looked.
    pub delivered: Vec<(usize, u64, Option<Delivery>)>,
    /// Places of private objects that were given back, and those that had an object in this life
    /// of their process.
    pub freed: Vec<(Kind, usize)>,
    pub touched: Vec<(Kind, usize)>,
    /// Answers that reached who had asked.
    pub answers: u64,
}

impl Model {
    /// The place of a new private object: of these, the one that was given back last, or else the
    /// first that nobody used.
    pub(super) fn place_of(&mut self, kind: Kind, places: &[usize]) -> Option<usize> {
        let of = |list: &Vec<(Kind, usize)>, p: usize| list.iter().rposition(|k| *k == (kind, p));
        let freed = places.iter().filter_map(|p| of(&self.freed, *p)).max();
        if let Some(at) = freed {
            return Some(self.freed.remove(at).1);
        }
        let place = *places.iter().find(|p| of(&self.touched, **p).is_none())?;
        self.touched.push((kind, place));
        Some(place)
    }

    /// Returns the booted blueprint.
    pub fn boot() -> Model {
        let mut model = Model::empty();
        for (process, (name, priority, threads)) in PROCESSES.into_iter().enumerate() {
            let supervisor = (process > 0).then_some(0);
            model.add_process(process, key(name), priority, supervisor);
            (0..threads).for_each(|slot| model.add_thread(process, slot));
        }
        for (name, initial) in SEMAPHORES {
            let (key, allowed) = (key(name), EVERYBODY);
            model.semaphores.push(Semaphore { key, allowed, initial, ..Semaphore::default() });
        }
        let (key_of_c1, allowed) = (key("c1"), EVERYBODY);
        model.conditions.push(Condition { key: key_of_c1, allowed, ..Condition::default() });
        for process in 0..PROCESSES.len() {
            model.add_private(process);
        }
        for (name, capacity) in MAILBOXES.into_iter().chain([("reports", 2)]) {
            let reports = name == "reports";
            model.mailboxes.push(Mailbox {
                key: key(name),
                allowed: if reports { 1 } else { EVERYBODY },
                capacity: capacity as usize,
                faults_of: reports.then_some(0),
                mutex: (name == "served").then_some(0),
                alive: reports,
                generation: u32::from(reports),
                ..Mailbox::default()
            });
        }
        for process in 0..PROCESSES.len() {
            model.start_process(process);
        }
        model.decide();
        model
    }

    fn empty() -> Model {
        let device = |(name, irq)| Device {
            key: key(name),
            irq,
            level: name == "level",
            absent: name == "lost",
            event: None,
            open: false,
            mapped: Vec::new(),
        };
        let segment = |name, bus| {
            let (key, pages) = (key(name), SEGMENT_PAGES);
            Segment { key, pages, prepared: 0, bus, attached: Vec::new() }
        };
        Model {
            now: 0,
            threads: Vec::new(),
            processes: Vec::new(),
            semaphores: Vec::new(),
            conditions: Vec::new(),
            mailboxes: Vec::new(),
            events: Vec::new(),
            freed: Vec::new(),
            touched: Vec::new(),
            answers: 0,
            devices: ["edge", "level", "lost"].into_iter().zip(3..).map(device).collect(),
            segments: vec![segment("shared", None), segment("rings", Some(HOST_BUS))],
            free_frames: HEAP_PAGES * PROCESSES.len() as u32 + SEGMENT_PAGES,
            ready: Vec::new(),
            running: None,
            place: None,
            since: 0,
            idle: 0,
            delivered: Vec::new(),
        }
    }

    fn add_process(&mut self, index: usize, key: u64, priority: u8, supervisor: Option<usize>) {
        self.processes.push(Process {
            key,
            state: ProcessState::Idle,
            priority,
            supervisor,
            starters: if index == 2 { 0b10 } else { 0 },
            heap: 0,
            heap_max: HEAP_PAGES,
            starts: 0,
            faults: 0,
            restarts_max: 3,
            backoff: 5_000,
        });
    }

    fn add_thread(&mut self, process: usize, slot: u16) {
        self.threads.push(Thread {
            process,
            slot,
            life: Life::Free,
            generation: 0,
            priority: 0,
            hint: None,
            after: None,
            parked_with: None,
            parked: Vec::new(),
            result: None,
            delivery: None,
            due: None,
            held: Vec::new(),
            joiner: None,
            detached: false,
            jobs: Jobs::default(),
            used: 0,
        });
    }

    fn add_private(&mut self, process: usize) {
        let allowed = 1 << process;
        for _ in 0..PRIVATE.0 {
            self.semaphores.push(Semaphore { allowed, ..Semaphore::default() });
        }
        for _ in 0..PRIVATE.1 {
            self.conditions.push(Condition { allowed, ..Condition::default() });
        }
        for _ in 0..PRIVATE.2 {
            let (source, waiter) = (Source::Plain, None);
            let (alive, generation, pending) = (false, 0, 0);
            self.events.push(Event { allowed, alive, generation, source, pending, waiter });
        }
    }

    /// The running thread; only asked when there is one.
    pub fn caller(&self) -> usize {
        self.running.expect("a thread runs")
    }

    /// Returns the process of the running thread.
    pub fn process(&self) -> usize {
        self.threads[self.caller()].process
    }

    /// Returns whether the running process may access this range.
    pub fn accessible(&self, address: u64, length: u64) -> bool {
        let first = u128::from(layout::base(self.process() as u16));
        let (start, end) = (u128::from(address), u128::from(address) + u128::from(length));
        length == 0 || (start >= first && end <= first + u128::from(USER_BYTES))
    }

    /// The slot a handle of the running process names.
    pub fn lookup(
        &self,
        kind: Kind,
        word: u64,
        slot: impl Fn(&Model, usize) -> Option<(bool, bool, u32)>,
    ) -> Result<usize, Outcome> {
        let given = Handle(word);
        let index = given.index() as usize;
        let known = given.kind_bits() == kind as u16;
        match slot(self, index) {
            Some((true, alive, generation)) if known => {
                if alive && handle(kind, index, generation) == word {
                    Ok(index)
                } else if given.generation() >= 1 && given.generation() <= generation {
                    Err(Outcome::Refused(Errno::Gone))
                } else {
                    Err(Outcome::Misuse(FaultCause::BadHandle, word))
                }
            }
            _ => Err(Outcome::Misuse(FaultCause::BadHandle, word)),
        }
    }

    /// Returns whether the running process may use an object with these grants.
    pub fn granted(&self, allowed: u64) -> bool {
        allowed >> self.process() & 1 == 1
    }

    /// Refuses a call that may not wait until `deadline`.
    pub fn may_wait(&self, deadline: u64) -> Result<(), Outcome> {
        match deadline {
            0 => Err(Outcome::Refused(Errno::WouldBlock)),
            late if late <= self.now => Err(Outcome::Refused(Errno::TimedOut)),
            _ => Ok(()),
        }
    }

    /// Returns the first of these threads.
    pub fn first(&self, threads: &[usize]) -> Option<usize> {
        let most = threads.iter().map(|t| self.urgency(*t)).max()?;
        threads.iter().copied().find(|t| self.urgency(*t) == most)
    }

    /// One's own priority, or that of the most urgent of those who are parked with one.
    fn urgency(&self, thread: usize) -> u8 {
        let t = &self.threads[thread];
        t.parked.iter().map(|p| self.threads[*p].priority).fold(t.priority, u8::max)
    }

    /// A waiting thread's urgency changed: it comes last among its new equals.
    fn reorder(&mut self, thread: usize) {
        let semaphores = self.semaphores.iter_mut().map(|s| &mut s.waiters);
        let conditions = self.conditions.iter_mut().map(|c| &mut c.waiters);
        let boxes = self.mailboxes.iter_mut().flat_map(|m| [&mut m.receivers, &mut m.senders]);
        for queue in semaphores.chain(conditions).chain(boxes) {
            if queue.contains(&thread) {
                queue.retain(|t| *t != thread);
                queue.push(thread);
            }
        }
    }

    /// A ready thread starts to wait, and keeps its place.
    pub fn wait(&mut self, thread: usize, wait: Wait, after: Option<usize>, deadline: u64) {
        let t = &mut self.threads[thread];
        t.life = Life::Blocked(wait);
        (t.hint, t.after) = (None, after);
        t.due = (deadline < u64::MAX).then_some(deadline);
    }

    /// A ready thread starts to wait.
    pub fn block(&mut self, thread: usize, wait: Wait, after: Option<usize>, deadline: u64) {
        self.ready.retain(|t| *t != thread);
        self.wait(thread, wait, after, deadline);
    }

    /// A waiting thread that has its place goes on; its call returns this.
    pub fn go_on(&mut self, thread: usize, result: u64) {
        let t = &mut self.threads[thread];
        (t.life, t.due, t.result, t.hint) = (Life::Ready, None, Some(result), t.after);
    }

    /// A waiting thread is ready; its call returns this.
    pub fn wake(&mut self, thread: usize, result: u64) {
        self.go_on(thread, result);
        self.give_place(thread);
    }

    /// A thread has a place, and so have all that were parked with it.
    pub fn give_place(&mut self, thread: usize) {
        self.ready.push(thread);
        self.unpark_all(thread);
    }

    /// All that are parked with a thread have their places again.
    pub fn unpark_all(&mut self, end: usize) {
        let before = self.urgency(end);
        for thread in std::mem::take(&mut self.threads[end].parked) {
            self.threads[thread].parked_with = None;
            self.ready.push(thread);
        }
        if before != self.urgency(end) {
            self.reorder(end);
        }
    }

    /// In whose place somebody runs, and who.
    fn choose(&mut self) -> (Option<usize>, Option<usize>) {
        loop {
            let Some(place) = self.first(&self.ready) else { return (None, None) };
            let hint = self.threads[place].hint.filter(|_| self.running != Some(place));
            let hinted = hint.and_then(|id| self.semaphores[id].owner);
            let first = hinted.unwrap_or(place);
            let end = self.end_of_chain(first);
            if self.attend_call(first, end) {
                continue;
            }
            match self.threads[end].life {
                Life::Ready => return (Some(place), Some(end)),
                Life::Blocked(Wait::Mutex(id, generation, result)) => {
                    self.take_mutex(end, id, generation, result);
                }
                Life::Blocked(Wait::Answer(..)) => self.go_on(end, error(Errno::Gone)),
                _ if hinted.is_some() => return (Some(place), Some(place)),
                _ => {
                    self.ready.retain(|t| *t != place);
                    self.threads[place].parked_with = Some(end);
                    let before = self.urgency(end);
                    self.threads[end].parked.push(place);
                    if before != self.urgency(end) {
                        self.reorder(end);
                    }
                }
            }
        }
    }

    /// Returns when the next alarm is due.
    pub fn next_alarm(&self) -> u64 {
        let threads = self.threads.iter().filter_map(|t| t.due);
        threads.chain(self.events.iter().filter_map(Event::due)).min().unwrap_or(u64::MAX)
    }

    /// Raises the timer interrupt.
    pub fn timer(&mut self) {
        for _ in 0..ALARMS_PER_ENTRY {
            let next = self.next_alarm();
            if next == u64::MAX || next > self.now {
                break;
            }
            if let Some(event) = self.events.iter().position(|e| e.due() == Some(next)) {
                self.fire(event);
            } else if let Some(thread) = self.threads.iter().position(|t| t.due == Some(next)) {
                self.time_out(thread);
            }
        }
        self.decide();
    }

    /// The running thread faults.
    pub fn crash(&mut self, cause: FaultCause, address: u64, instruction: u64) {
        self.fault(cause, address, instruction);
        self.decide();
    }

    /// Decides which thread runs, and what is delivered to it.
    pub fn decide(&mut self) {
        loop {
            let (place, run) = self.choose();
            self.place = place;
            if run != self.running {
                let elapsed = self.now - self.since;
                match self.running {
                    Some(before) => self.threads[before].used += elapsed,
                    None => self.idle += elapsed,
                }
                (self.running, self.since) = (run, self.now);
            }
            let Some(run) = run else { return };
            let Some(result) = self.threads[run].result.take() else { return };
            let delivery = self.threads[run].delivery.take();
            match &delivery {
                Some((address, bytes)) if !self.accessible(*address, bytes.len() as u64) => {
                    self.fault(FaultCause::BadAddress, *address, 0);
                }
                _ => return self.delivered.push((run, result, delivery)),
            }
        }
    }

    /// The running thread makes a call. `text` is what lies at the address it passes, if any.
    pub fn call(&mut self, number: u64, a: [u64; 5], text: &[u8]) {
        let caller = self.caller();
        let outcome = match Call::decode(number) {
            Some(call) => self.dispatch(call, a, text).unwrap_or_else(|refused| refused),
            None => Outcome::Misuse(FaultCause::BadCall, number),
        };
        match outcome {
            Outcome::Done(value) => self.threads[caller].result = Some(value),
            Outcome::Refused(errno) => self.threads[caller].result = Some(error(errno)),
            Outcome::Away => {}
            Outcome::Misuse(cause, address) => self.fault(cause, address, 0),
        }
        self.decide();
    }

    fn dispatch(&mut self, call: Call, a: [u64; 5], text: &[u8]) -> Step {
        match call {
            Call::Null => Ok(Outcome::Done(0)),
            Call::Fail => Err(Outcome::Misuse(FaultCause::Panic, a[0])),
            Call::Count | Call::Log | Call::ReadSlow => self.odds(call, a),
            Call::VcpuCreate | Call::VcpuSet | Call::VcpuDelete | Call::VcpuFit => {
                unreachable!("the blueprint has no VCPUs")
            }
            Call::Yield
            | Call::ThreadExit
            | Call::ThreadCreate
            | Call::ThreadJoin
            | Call::ThreadDetach
            | Call::SleepUntil
            | Call::JobsStart
            | Call::JobWait => self.thread_call(call, a),
            Call::SemCreate
            | Call::SemDelete
            | Call::SemLock
            | Call::SemTryLock
            | Call::SemUnlock
            | Call::CvCreate
            | Call::CvDelete
            | Call::CvWait
            | Call::CvSignal => self.sync_call(call, a),
            Call::MboxCreate
            | Call::MboxDelete
            | Call::MboxSend
            | Call::MboxReceive
            | Call::MboxCall
            | Call::TimerCreate
            | Call::TimerStart
            | Call::EventCreate
            | Call::EventWait
            | Call::EventDelete
            | Call::SetIsr => self.mail_call(call, a, text),
            Call::ShmAttach
            | Call::ShmDetach
            | Call::ShmBus
            | Call::MemAlloc
            | Call::MapDevice
            | Call::Ring
            | Call::ProcCreate
            | Call::ProcKill => self.process_call(call, a),
        }
    }

    fn odds(&self, call: Call, a: [u64; 5]) -> Step {
        let at = |address: u64, length: u64| self.accessible(address, length);
        let used = self.threads[self.caller()].used + (self.now - self.since);
        match call {
            Call::Count if a[0] == 3 => Ok(Outcome::Done(used)),
            Call::Count if self.process() == 2 => Err(Outcome::Misuse(FaultCause::BadGrant, a[0])),
            Call::Count => Ok(Outcome::Done(0)),
            Call::Log if a[1] == MEASUREMENT && at(a[0], 80) => Ok(Outcome::Done(0)),
            Call::Log if a[1] == MEASUREMENT => Err(Outcome::Misuse(FaultCause::BadAddress, a[0])),
            Call::Log if a[1] > 112 => Err(Outcome::Misuse(FaultCause::BadArgument, a[1])),
            Call::Log if !at(a[0], a[1]) => Err(Outcome::Misuse(FaultCause::BadAddress, a[0])),
            Call::ReadSlow if a[2] > 4096 => Err(Outcome::Misuse(FaultCause::BadArgument, a[2])),
            Call::ReadSlow if !at(a[0], a[2]) || !at(a[1], a[2]) => {
                Err(Outcome::Misuse(FaultCause::BadAddress, a[1]))
            }
            _ => Ok(Outcome::Done(0)),
        }
    }
}
