//! A storm of hostile processes, a supervisor, a neighbour, and a clock and devices at random.

use super::audit::check_books;
use super::memo::{Memo, remember};
use super::shell::{Memory, Shell, USER_BYTES};
use super::weights::WEIGHTS;
use super::{Call, Cause, EVERYBODY, Errno, FaultCause, Nanos, Plan, ProcessState, State, key};
use diapason_abi::archive::Archive;
use diapason_abi::call::{MEASUREMENT, MUTEX, NO_HINT, PARTIAL};
use diapason_abi::{Handle, Kind, MESSAGE_BYTES, PRIORITIES, decode_result, layout};
use diapason_core::host::with_kernel;
use diapason_core::{Fault, Id, Sizes};
use diapason_costs::section::STAGE;
use diapason_random::Random;
use std::collections::BTreeMap;

const BOSS: u16 = 0;
const NEIGHBOUR: u16 = 1;
const HOSTILE: [u16; 5] = [2, 3, 4, 5, 6];
const NAMES: [&str; 7] = ["boss", "neighbour", "h0", "h1", "h2", "h3", "h4"];
const SEMAPHORES: [&str; 5] = ["m1", "m2", "m3", "s0", "s9"];
const MAILBOXES: [&str; 4] = ["b1", "b2", "b9", "b0"];
/// The place of the mailbox that has a server, which holds `m1`.
const SERVED: u16 = 3;
const SEGMENTS: [&str; 3] = ["narrow", "wide", "rings"];
const DEVICES: [&str; 5] = ["edge", "level", "deaf", "lost", "here"];
/// Doorbells: one that is answered here, one on another core.
const BELLS: [&str; 2] = ["here", "there"];
/// The machine lacks the fourth device.
pub const LACKING: u64 = 0b1000;
/// The hostile processes that may start others, one bit each.
const STARTERS: u64 = 0b0101_0100;
/// The neighbour's period; lateness of the clock stays below it.
const PERIOD: u64 = 10_000;
const LATENESS: u64 = 3_000;

/// The description of the system in the storm.
pub fn plan() -> Plan {
    let mut plan = Plan::new().process(NAMES[0], 63).process(NAMES[1], 62);
    for (i, process) in HOSTILE.iter().enumerate() {
        plan = plan.process(NAMES[*process as usize], 50 - 7 * i as u8).supervised_by(BOSS);
        plan = plan.with(|p| {
            (p.threads, p.semaphores, p.conditions) = (5, 3, 2);
            (p.events, p.heap_pages, p.restarts_max) = (3, 9, u32::MAX);
            (p.vcpus, p.starters, p.counters) = (2, STARTERS, i % 2 == 0);
        });
    }
    let some = 0b0111_1100;
    plan = plan.mutex("m1").mutex("m2").mutex("m3").only(0b0011_1100).semaphore("s0", 0);
    plan = plan.semaphore("s9", 9).condition("c1").condition("c2").only(some);
    plan = plan.mailbox("b1", 1).mailbox("b2", 4).mailbox("b9", 9).only(0b0001_1100);
    plan = plan.mailbox("b0", 0).served_with(0);
    plan = plan.reports("reports", HOSTILE.len() as u16, BOSS);
    plan = plan.segment("narrow", 3, EVERYBODY).segment("wide", 7, 0b0110_0101);
    plan = plan.segment("rings", 6, EVERYBODY).for_devices();
    plan = plan.device("edge", 3, false, some).device("level", 4, true, some);
    plan = plan.device("deaf", diapason_abi::archive::NONE, false, some);
    plan = plan.device("lost", 5, false, some);
    let irq = diapason_abi::archive::MESSAGES;
    plan.bell("here", 0, irq, EVERYBODY).bell("there", 1, diapason_abi::archive::NONE, EVERYBODY)
}

/// The counts of events, to see that the storm reaches everything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tally {
    pub calls: u64,
    /// Calls of each number that returned well at once.
    pub good: [u64; WEIGHTS.len()],
    /// Errors of each number that were returned at once.
    pub errors: [u64; 11],
    pub faults: [u64; 32],
    /// Starts of hostile processes.
    pub starts: u64,
    /// Calls that went a short way, by kind.
    pub shortcuts: BTreeMap<Call, u64>,
    /// Hash of every decision.
    pub hash: u64,
}

/// A storm under way.
pub struct Storm<'a> {
    pub shell: Shell<'a>,
    random: Random,
    memos: Vec<Memo>,
    /// The last call of each thread.
    last_calls: Vec<u64>,
    tally: Tally,
    frames: u32,
    total_weight: u64,
    report_box: u64,
    boss_next: u16,
}

/// Boots the storm's system and runs `body` on it.
pub fn with_storm<R>(seed: u64, record: bool, body: impl FnOnce(&mut Storm<'_>) -> R) -> R {
    let (plan, bytes) = (plan(), plan().to_bytes());
    let archive = Archive::parse(&bytes).expect("a possible plan");
    let sizes = Sizes::of(&archive).expect("it fits");
    with_kernel(&archive, |mut kernel| {
        kernel.lack_devices(LACKING);
        if !record {
            // Ends in stages that are as short as can be, as long as they are, or longer.
            kernel.stage = [STAGE / 2, STAGE, 4 * STAGE][seed as usize % 3];
        }
        let mut shell = Shell::boot(kernel, Memory::new(NAMES.len(), sizes.frames, record));
        shell.longest_walk = plan.sizes().longest_walk();
        let tally = Tally {
            calls: 0,
            good: [0; WEIGHTS.len()],
            errors: [0; 11],
            faults: [0; 32],
            starts: 0,
            shortcuts: BTreeMap::new(),
            hash: 0,
        };
        let mut storm = Storm {
            frames: shell.kernel.free_frames(),
            last_calls: vec![0; sizes.threads],
            shell,
            random: Random::new(seed),
            memos: vec![Memo::default(); NAMES.len()],
            tally,
            total_weight: WEIGHTS.iter().map(|(_, weight)| weight).sum(),
            report_box: 0,
            boss_next: 0,
        };
        body(&mut storm)
    })
}

impl Storm<'_> {
    /// Makes `calls` calls, then ends everything and checks that nothing leaked.
    pub fn rage(&mut self, calls: u64) -> Tally {
        while self.tally.calls < calls {
            self.step();
        }
        self.calm_down();
        check_books(&mut self.shell.kernel, self.shell.now);
        self.tally.hash = self.shell.hash;
        self.tally.shortcuts = self.shell.shortcuts.clone();
        self.tally.faults = self.shell.memory.faults;
        self.tally.clone()
    }

    /// Makes one random step.
    pub fn step(&mut self) {
        if self.shell.running().is_none() || self.random.one_in(24) {
            return self.pass_time();
        }
        if self.random.one_in(40) {
            let device = self.random.below(5) as u16;
            self.shell.enter(Cause::Irq(device));
            return self.note_delivered();
        }
        if self.shell.enter_hidden() {
            return self.note_delivered();
        }
        match self.shell.process() {
            BOSS => self.boss(),
            NEIGHBOUR => self.neighbour(),
            process => self.hostile(process),
        }
        self.note_delivered();
    }

    fn pass_time(&mut self) {
        let next = self.shell.decision.alarm;
        self.shell.now = match self.random.below(4) {
            0 => self.shell.now + Nanos(self.random.below(500)),
            1 if next < Nanos::FOREVER => {
                self.shell.now.max(next + Nanos(self.random.below(LATENESS)))
            }
            _ if next < Nanos::FOREVER => self.shell.now.max(next),
            _ => self.shell.now + Nanos(1),
        };
        // Never so late that the neighbour could be: the clock stops at its release.
        let release = self.shell.kernel.threads[Id::new(self.first_thread(NEIGHBOUR))].jobs.release;
        if release > Nanos::ZERO {
            self.shell.now = self.shell.now.min(release + Nanos(LATENESS));
        }
        self.shell.enter(Cause::Timer);
        self.note_delivered();
    }

    fn first_thread(&self, process: u16) -> u16 {
        self.shell.kernel.processes[Id::new(process)].threads.first
    }

    /// The supervisor: waits for reports, restarts what ended, now and then kills.
    fn boss(&mut self) {
        self.tally.calls += 1;
        if self.report_box == 0 {
            let opened = self.shell.call(Call::MboxCreate as u64, [key("reports"), 0, 0, 0, 0]);
            self.report_box = opened.expect("opens at once");
        }
        self.boss_next = (self.boss_next + 1) % (HOSTILE.len() as u16 + 1);
        if let Some(process) = HOSTILE.get(self.boss_next as usize) {
            let state = self.shell.kernel.processes[Id::new(*process)].state;
            let key = key(NAMES[*process as usize]);
            if state != ProcessState::Running {
                // A VCPU may get its budget back meanwhile: then its thread runs first.
                let created = self.shell.call(Call::ProcCreate as u64, [key, 0, 0, 0, 0]);
                assert!(matches!(created, Some(0 | PARTIAL) | None));
                self.tally.starts += u64::from(created != Some(PARTIAL));
            } else if self.random.one_in(100) {
                let killed = self.shell.call(Call::ProcKill as u64, [key, 0, 0, 0, 0]);
                assert!(matches!(killed, Some(0) | None));
            }
            return;
        }
        let wake = self.shell.now.0 + 1_000 + self.random.below(4_000);
        let buffer = layout::base(BOSS) + 0x100;
        self.shell.call(Call::MboxReceive as u64, [self.report_box, buffer, wake, NO_HINT, 0]);
    }

    fn neighbour(&mut self) {
        self.tally.calls += 1;
        let thread = self.shell.running();
        let result = if self.shell.kernel.threads[thread].jobs.period == Nanos::ZERO {
            let first = self.shell.now.0 + PERIOD;
            self.shell.call(Call::JobsStart as u64, [first, PERIOD, LATENESS, NO_HINT, 0])
        } else {
            self.shell.call(Call::JobWait as u64, [NO_HINT, 0, 0, 0, 0])
        };
        assert_eq!(result, None, "it waits for a release in the future");
        let jobs = self.shell.kernel.threads[thread].jobs;
        assert_eq!((jobs.misses, jobs.skipped), (0, 0), "the neighbour was late");
    }

    fn hostile(&mut self, process: u16) {
        self.tally.calls += 1;
        if self.random.one_in(1_500) {
            let cause = self.random.pick(FaultCause::ALL);
            let (address, instruction) = (self.random.bits(), self.random.bits());
            self.shell.enter(Cause::Fault(Fault { cause, address, instruction }));
            return;
        }
        let wild = self.random.one_in(400);
        let mut number =
            if wild { self.random.below(WEIGHTS.len() as u64) } else { self.sensible(process) };
        let mut arguments = [0; 5];
        let caller = self.shell.running();
        for (place, argument) in arguments.iter_mut().enumerate() {
            let odd = wild && self.random.one_in(2);
            *argument = if odd { self.anything() } else { self.plausible(process, number, place) };
            if self.shell.running() != caller {
                // It opened something first, and an alarm rang meanwhile.
                return;
            }
        }
        if !wild {
            (number, arguments) = self.mail(process, number, arguments);
        }
        self.last_calls[caller.index() as usize] = number;
        let quick = self.shell.call(number, arguments);
        if let Some(result) = quick
            && self.shell.delivered.is_empty()
        {
            self.note(caller.index(), number, result);
        }
    }

    /// Returns a call to a mailbox that does not end the process: to the server of the one that has
    /// one, or with two others.
    fn mail(&mut self, process: u16, number: u64, mut a: [u64; 5]) -> (u64, [u64; 5]) {
        let call = match Call::decode(number) {
            Some(call @ (Call::MboxCall | Call::MboxSend | Call::MboxReceive)) => call,
            _ => return (number, a),
        };
        let known = &self.memos[process as usize].mailboxes;
        let served = known.iter().copied().find(|handle| *handle as u16 == SERVED);
        let mut plain = known.iter().copied().filter(|handle| *handle as u16 != SERVED);
        let pair = (plain.next(), plain.next());
        let holds = self.shell.kernel.threads[self.shell.running()].held.index() == 0;
        match (call, served, pair) {
            (Call::MboxReceive, Some(served), _) if holds => a[0] = served,
            (Call::MboxReceive, ..) => {}
            (Call::MboxCall, Some(served), _) if holds || self.random.one_in(2) => {
                (a[0], a[3]) = (served, served);
            }
            (Call::MboxCall, _, (Some(one), Some(other))) => (a[0], a[3]) = (one, other),
            (Call::MboxSend, _, (Some(one), _)) if a[0] as u16 == SERVED => a[0] = one,
            (Call::MboxSend, _, (Some(_), _)) => {}
            _ => {
                let key = self.granted(process, &MAILBOXES, false);
                return (Call::MboxCreate as u64, [key, 0, 0, 0, 0]);
            }
        }
        (number, a)
    }

    /// Notes what was delivered to hostile threads, at once or after a wait.
    fn note_delivered(&mut self) {
        for (thread, result) in std::mem::take(&mut self.shell.delivered) {
            self.note(thread.index(), self.last_calls[thread.index() as usize], result);
        }
    }

    /// A call that makes sense for the running thread.
    fn sensible(&mut self, process: u16) -> u64 {
        let periodic = self.shell.kernel.threads[self.shell.running()].jobs.period > Nanos::ZERO;
        if periodic && self.random.one_in(6) {
            return Call::JobWait as u64;
        }
        let number = self.weighted();
        let empty_handed = self.shell.kernel.threads[self.shell.running()].held.is_none();
        let releases = [Call::SemUnlock as u64, Call::CvWait as u64].contains(&number);
        if releases && empty_handed && !self.random.one_in(4) {
            return Call::SemLock as u64;
        }
        let useless = number == Call::ProcCreate as u64 && STARTERS >> process & 1 == 0;
        if useless && !self.random.one_in(50) { Call::Yield as u64 } else { number }
    }

    fn weighted(&mut self) -> u64 {
        let mut at = self.random.below(self.total_weight);
        for (call, weight) in WEIGHTS {
            match at.checked_sub(weight) {
                Some(rest) => at = rest,
                None => return call as u64,
            }
        }
        0
    }

    /// Any word: small, huge, a handle or an address of anybody.
    fn anything(&mut self) -> u64 {
        let someone = self.random.below(NAMES.len() as u64) as u16;
        match self.random.below(7) {
            0 => self.random.bits(),
            1 => self.random.below(80),
            2 => u64::MAX - self.random.below(80),
            3 => layout::base(someone) + self.random.below(2 * USER_BYTES),
            4 => layout::base(someone).wrapping_sub(self.random.below(80)),
            5 => {
                let memo = &self.memos[someone as usize];
                let all = [&memo.semaphores, &memo.conditions, &memo.mailboxes, &memo.events];
                let list = all[self.random.below(4) as usize].clone();
                if list.is_empty() { 0 } else { self.random.pick(&list) }
            }
            _ => key(self.random.pick(&NAMES)),
        }
    }

    fn deadline(&mut self) -> u64 {
        let now = self.shell.now.0;
        match self.random.below(16) {
            0 => u64::MAX,
            1..4 => 0,
            4 => now,
            5 => now.saturating_sub(self.random.below(100)),
            _ => now + self.random.below(8_000),
        }
    }

    /// A handle of this kind the process was given at some time.
    fn handle(&mut self, process: u16, list: fn(&Memo) -> &Vec<u64>, or: Call) -> u64 {
        let known = list(&self.memos[process as usize]);
        if known.is_empty() {
            return self.open(or);
        }
        known[self.random.bits() as usize % known.len()]
    }

    /// A semaphore the running thread holds, if it knows its handle; else any.
    fn held(&mut self, process: u16) -> u64 {
        let held = self.shell.kernel.threads[self.shell.running()].held;
        let known = &self.memos[process as usize].semaphores;
        let found = known.iter().rev().find(|handle| **handle as u16 == held.index());
        match found.copied() {
            Some(handle) => handle,
            None => self.handle(process, |m| &m.semaphores, Call::SemCreate),
        }
    }

    /// Nothing known of a kind: the key of something granted lets the call open it first.
    fn open(&mut self, call: Call) -> u64 {
        let key = match call {
            Call::SemCreate => key(self.random.pick(&SEMAPHORES[..2])),
            Call::CvCreate => key("c1"),
            Call::MboxCreate => key("b2"),
            _ => 0,
        };
        let (caller, process) = (self.shell.running(), self.shell.process());
        self.last_calls[caller.index() as usize] = call as u64;
        let words = match call {
            Call::VcpuCreate => [key, 1_000, 500_000, 4, 1],
            _ => [key, 0, 0, 0, 0],
        };
        let result = self.shell.call(call as u64, words);
        self.note_delivered();
        let first_event = Handle::new(Kind::Event, 8 + 3 * (process - 2), 1).0;
        result.filter(|r| decode_result(*r).is_ok()).unwrap_or(first_event)
    }

    /// An argument a program that knows its rights might pass.
    fn plausible(&mut self, process: u16, number: u64, place: usize) -> u64 {
        let Some(call) = Call::decode(number) else { return 0 };
        let ceiling = 50 - 7 * (u64::from(process) - 2);
        if call.hint_word() == Some(place) {
            let hinted = self.random.one_in(3);
            let hint = |storm: &mut Self| storm.handle(process, |m| &m.semaphores, Call::SemCreate);
            return if hinted { hint(self) } else { NO_HINT };
        }
        match (call, place) {
            (Call::ThreadCreate, 2) => self.random.below(ceiling.min(PRIORITIES as u64) + 1),
            (Call::ThreadCreate, 4) => {
                let last = self.memos[process as usize].vcpus.last().copied().unwrap_or(0);
                if self.random.one_in(3) { last } else { 0 }
            }
            (Call::ThreadJoin | Call::ThreadDetach, 0) => {
                let slot = self.first_thread(process) + self.random.below(5) as u16;
                let thread = &self.shell.kernel.threads[Id::new(slot)];
                let caller = &self.shell.kernel.threads[self.shell.running()];
                if thread.state == State::Free { caller.handle } else { thread.handle }
            }
            (Call::MboxCall, 4) if self.random.one_in(2) => u64::MAX,
            (Call::SleepUntil | Call::JobsStart, 0)
            | (Call::ThreadJoin | Call::SemLock | Call::EventWait | Call::TimerStart, 1)
            | (Call::CvWait | Call::MboxReceive, 2)
            | (Call::MboxSend | Call::MboxCall, 4)
            | (Call::ProcCreate, 3) => self.deadline(),
            (Call::MboxCall, 2) => {
                self.random.below(MESSAGE_BYTES as u64 + 1) << 32 | self.random.below(4)
            }
            (Call::JobsStart, 1) => 500 + self.random.below(5_000),
            (Call::SemCreate, 0) => self.granted(process, &SEMAPHORES, true),
            (Call::SemCreate, 1) => self.random.pick(&[MUTEX, MUTEX, 0, 1, u64::from(u32::MAX)]),
            (Call::CvCreate, 0) => self.granted(process, &["c1", "c2"], true),
            (Call::MboxCreate, 0) => self.granted(process, &MAILBOXES, false),
            (Call::MboxCreate | Call::ProcCreate, 1) if self.random.one_in(2) => 0,
            (Call::TimerStart, 2) => self.random.pick(&[0, 700, 1_900, 10_000]),
            // The call on a segment that is not for devices would end the process.
            (Call::ShmBus, 0) => key("rings"),
            (Call::ShmAttach | Call::ShmDetach, 0) => self.granted(process, &SEGMENTS, false),
            (Call::MapDevice | Call::SetIsr, 0) => key(self.random.pick(&DEVICES)),
            // The call on any other device would end the process.
            (Call::Ring, 0) => key(self.random.pick(&BELLS)),
            (Call::MemAlloc, 0) => 1,
            (Call::VcpuCreate, 0 | 4) => 0,
            (Call::VcpuCreate | Call::VcpuSet, 1) => 1_000 + self.random.below(3_000),
            (Call::VcpuCreate | Call::VcpuSet, 2) | (Call::VcpuFit, 0) => {
                20_000 + self.random.below(900_000)
            }
            (Call::ProcCreate, 0) => key(NAMES[HOSTILE[self.random.below(5) as usize] as usize]),
            (Call::MboxSend, 2) => self.random.below(MESSAGE_BYTES as u64 + 1),
            (Call::MboxSend, 3) | (Call::CvSignal, 1) => self.random.below(4),
            (Call::Log, 1) => [self.random.below(113), MEASUREMENT][self.random.index(2)],
            (Call::ReadSlow, 2) => self.random.below(200),
            (Call::MboxSend | Call::MboxReceive | Call::MboxCall | Call::ReadSlow, 1)
            | (Call::Log | Call::ReadSlow, 0)
            | (Call::ProcCreate, 2) => {
                layout::base(process) + 8 + self.random.below(USER_BYTES - 256)
            }
            _ => self.plausible_handle(process, call, place),
        }
    }

    fn plausible_handle(&mut self, process: u16, call: Call, place: usize) -> u64 {
        match (call, place) {
            (Call::SemUnlock, 0) | (Call::CvWait, 1) if !self.random.one_in(8) => {
                self.held(process)
            }
            (Call::SemLock | Call::SemTryLock | Call::SemUnlock | Call::SemDelete, 0)
            | (Call::CvWait, 1) => self.handle(process, |m| &m.semaphores, Call::SemCreate),
            (Call::CvWait | Call::CvSignal | Call::CvDelete, 0) => {
                self.handle(process, |m| &m.conditions, Call::CvCreate)
            }
            (Call::MboxSend | Call::MboxReceive | Call::MboxDelete, 0)
            | (Call::MboxCall, 0 | 3)
            | (Call::ProcCreate, 1) => self.handle(process, |m| &m.mailboxes, Call::MboxCreate),
            (Call::VcpuSet | Call::VcpuDelete, 0) => {
                self.handle(process, |m| &m.vcpus, Call::VcpuCreate)
            }
            (Call::TimerStart | Call::EventWait | Call::EventDelete, 0) | (Call::MboxCreate, 1) => {
                self.handle(process, |m| &m.events, Call::TimerCreate)
            }
            _ => self.random.bits() >> 40,
        }
    }

    /// A key this process may use (or now and then one it may not), or that of a private object.
    fn granted(&mut self, process: u16, names: &[&str], private: bool) -> u64 {
        if private && self.random.below(8) < 3 {
            return 0;
        }
        let name = self.random.pick(names);
        let refused = match name {
            "m3" => process == 6,
            "b9" => process > 4,
            "wide" => ![2, 5, 6].contains(&process),
            _ => false,
        };
        key(if refused && !self.random.one_in(400) { names[0] } else { name })
    }

    /// Learns from a result.
    fn note(&mut self, thread: u16, number: u64, result: u64) {
        let process = self.shell.kernel.threads[Id::new(thread)].process.index();
        if !HOSTILE.contains(&process) {
            return;
        }
        let memo = &mut self.memos[process as usize];
        match decode_result(result) {
            Err(errno) => {
                self.tally.errors[errno as usize] += 1;
                if errno == Errno::Gone && self.random.one_in(2) {
                    *memo = Memo::default();
                }
                return;
            }
            Ok(_) => self.tally.good[number as usize] += 1,
        }
        match Call::decode(number) {
            Some(Call::SemCreate) => remember(&mut memo.semaphores, result),
            Some(Call::CvCreate) => remember(&mut memo.conditions, result),
            Some(Call::MboxCreate) => remember(&mut memo.mailboxes, result),
            Some(Call::VcpuCreate) => remember(&mut memo.vcpus, result),
            Some(Call::EventCreate | Call::TimerCreate | Call::SetIsr) => {
                remember(&mut memo.events, result);
            }
            _ => {}
        }
    }

    fn wait_for_boss(&mut self) {
        while self.shell.running().is_none() || self.shell.process() != BOSS {
            if self.shell.enter_hidden() {
                continue;
            }
            let next = self.shell.decision.alarm;
            self.shell.now = self.shell.now.max(next);
            self.shell.enter(Cause::Timer);
        }
    }

    /// The supervisor makes a call; what it returns, even if others run first.
    fn order(&mut self, call: Call, key: u64) -> u64 {
        let boss = self.shell.running();
        self.shell.delivered.clear();
        if let Some(result) = self.shell.call(call as u64, [key, 0, 0, 0, 0]) {
            return result;
        }
        self.wait_for_boss();
        let result = self.shell.delivered.iter().find(|(thread, _)| *thread == boss);
        result.expect("it returns").1
    }

    /// The supervisor kills everything; nothing may be left of it.
    fn calm_down(&mut self) {
        self.wait_for_boss();
        for process in HOSTILE {
            let key = key(NAMES[process as usize]);
            // Its threads may have no budget for a long time, so the supervisor does the stages of
            // its end. The call that does the last one starts it again.
            loop {
                match self.shell.kernel.processes[Id::new(process)].state {
                    ProcessState::Running => assert_eq!(self.order(Call::ProcKill, key), 0),
                    ProcessState::Ending => {
                        let created = self.order(Call::ProcCreate, key);
                        assert!(matches!(created, 0 | PARTIAL), "{created}");
                    }
                    _ => break,
                }
            }
        }
        for name in SEGMENTS {
            // A process that died while it prepared a segment left pages that wait for the next
            // one.
            while self.order(Call::ShmAttach, key(name)) & PARTIAL != 0 {}
            assert_eq!(self.order(Call::ShmDetach, key(name)), 0);
        }
        self.shell.kernel.check_invariants();
        assert_eq!(self.shell.kernel.free_frames(), self.frames, "frames leaked");
        let live = |t: &_| self.shell.kernel.threads[*t].state != State::Free;
        assert_eq!(self.shell.kernel.threads.ids().filter(live).count(), 2, "threads leaked");
        assert!(!self.shell.memory.supervisor_died);
        assert_eq!(self.shell.memory.reports_lost, 0, "a report for every fault");
    }
}
