//! The loop of the simulated processor: arrivals, and which VCPU runs until when.

use super::{Arrival, Happening, IoServer, Job, Main, MainServer, Run, Slice, System, Who};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Pending work of one VCPU.
struct Pending {
    /// Index of the job in the run.
    job: usize,
    left: Nanos,
    /// The period of the main VCPU that it is for.
    period: Nanos,
    queue: usize,
}

/// The VCPU that runs now, and in which mode.
#[derive(Clone, Copy)]
struct Choice {
    who: Who,
    background: bool,
}

/// Smaller is more urgent: background last; queue; deadline or period; I/O wins ties; index.
type Rank = (bool, usize, Nanos, bool, usize);

pub(super) struct Engine<M, I> {
    system: System<M, I>,
    main_work: Vec<VecDeque<Pending>>,
    io_work: Vec<VecDeque<Pending>>,
    /// Whether the servers were told of their work.
    main_awake: Vec<bool>,
    now: Nanos,
    horizon: Nanos,
    running: Option<Choice>,
    /// The running one cannot be preempted before.
    section_end: Option<Nanos>,
    /// A section whose runner is not chosen yet.
    section_due: Nanos,
    top_half_due: Nanos,
    slices: Vec<Slice>,
    top_halves: Vec<(Nanos, Nanos)>,
    jobs: Vec<Job>,
    idle: Nanos,
}

impl<M: MainServer, I: IoServer> Engine<M, I> {
    pub(super) fn new(system: System<M, I>, horizon: Nanos) -> Engine<M, I> {
        let queues = |n: usize| (0..n).map(|_| VecDeque::new()).collect::<Vec<_>>();
        Engine {
            main_work: queues(system.mains.len()),
            io_work: queues(system.ios.len()),
            main_awake: system.mains.iter().map(|_| false).collect(),
            system,
            now: Nanos::ZERO,
            horizon,
            running: None,
            section_end: None,
            section_due: Nanos::ZERO,
            top_half_due: Nanos::ZERO,
            slices: Vec::new(),
            top_halves: Vec::new(),
            jobs: Vec::new(),
            idle: Nanos::ZERO,
        }
    }

    pub(super) fn run(mut self, arrivals: &[Arrival]) -> Run<M, I> {
        let mut coming = arrivals.iter().peekable();
        while self.now < self.horizon {
            if self.system.block_first {
                self.tell_empty();
            }
            while let Some(arrival) = coming.next_if(|arrival| arrival.at <= self.now) {
                self.apply(arrival.what);
            }
            self.tell_empty();
            let next = coming.peek().map_or(self.horizon, |arrival| arrival.at.min(self.horizon));
            self.step(next);
            debug_assert!(self.system.mains.iter().all(|main| main.server.is_consistent()));
        }
        Run {
            slices: self.slices,
            top_halves: self.top_halves,
            jobs: self.jobs,
            idle: self.idle,
            system: self.system,
        }
    }

    fn apply(&mut self, what: Happening) {
        match what {
            Happening::Work { main, units } => self.work_arrives(main, units),
            Happening::BottomHalf { io, units, beneficiary } => {
                self.bottom_half_arrives(io, units, beneficiary);
            }
            Happening::Section(length) => self.section_due = length,
            Happening::TopHalf(cost) => self.top_half_due += cost,
        }
    }

    fn work_arrives(&mut self, main: usize, units: Nanos) {
        if units == Nanos::ZERO || main >= self.system.mains.len() {
            return;
        }
        let pending = self.job(Who::Main(main), main, units);
        self.main_work[main].push_back(pending);
        if !self.main_awake[main] {
            self.main_awake[main] = true;
            self.system.mains[main].server.wake(self.now);
        }
    }

    fn bottom_half_arrives(&mut self, io: usize, units: Nanos, beneficiary: usize) {
        let known = io < self.system.ios.len() && beneficiary < self.system.mains.len();
        if units == Nanos::ZERO || !known {
            return;
        }
        let pending = self.job(Who::Io(io), beneficiary, units);
        let work = &mut self.io_work[io];
        let place = if self.system.fifo {
            work.len()
        } else {
            work.iter().position(|other| other.period > pending.period).unwrap_or(work.len())
        };
        let first = work.is_empty();
        work.insert(place, pending);
        let period = most_urgent(work);
        let server = &mut self.system.ios[io];
        if first {
            server.wake(self.now, period);
        } else if period < server.period() {
            server.inherit(self.now, period);
        }
    }

    fn job(&mut self, who: Who, beneficiary: usize, units: Nanos) -> Pending {
        let main = &self.system.mains[beneficiary];
        let (period, queue) = (main.server.period(), main.queue);
        self.jobs.push(Job { who, beneficiary, arrived: self.now, units, done: None });
        Pending { job: self.jobs.len() - 1, left: units, period, queue }
    }

    /// Tells servers whose queues ran empty.
    fn tell_empty(&mut self) {
        for (i, awake) in self.main_awake.iter_mut().enumerate() {
            if *awake && self.main_work[i].is_empty() {
                *awake = false;
                self.system.mains[i].server.block(self.now);
            }
        }
    }

    /// Runs from now to the next event, at most to `next`.
    fn step(&mut self, next: Nanos) {
        if self.section_end.is_some_and(|end| end <= self.now) {
            self.section_end = None;
        }
        if self.section_end.is_none() {
            if self.top_half_due > Nanos::ZERO {
                return self.top_half(next);
            }
            self.running = self.choose();
            if self.running.is_some() && self.section_due > Nanos::ZERO {
                self.section_end = Some(self.now + self.section_due);
            }
        }
        self.section_due = Nanos::ZERO;
        let until = self.next_eligibility().min(next);
        match self.running {
            None => {
                self.idle += until - self.now;
                self.now = until;
            }
            Some(choice) => self.use_processor(choice, until),
        }
    }

    fn top_half(&mut self, next: Nanos) {
        let until = next.min(self.now + self.top_half_due);
        self.top_half_due = self.top_half_due - (until - self.now);
        match self.top_halves.last_mut() {
            Some(last) if last.1 == self.now => last.1 = until,
            _ => self.top_halves.push((self.now, until)),
        }
        self.now = until;
    }

    fn choose(&self) -> Option<Choice> {
        let all = self.everybody().filter_map(|who| Some((self.rank(who)?, who)));
        let (rank, who) = all.min()?;
        Some(Choice { who, background: rank.0 })
    }

    fn everybody(&self) -> impl Iterator<Item = Who> + use<M, I> {
        let mains = (0..self.system.mains.len()).map(Who::Main);
        mains.chain((0..self.system.ios.len()).map(Who::Io))
    }

    /// Nothing if it has no work or may not run.
    fn rank(&self, who: Who) -> Option<Rank> {
        let (left, queue, period, deadline, index) = match who {
            Who::Main(i) => {
                self.main_work[i].front()?;
                let Main { server, queue, .. } = &self.system.mains[i];
                (server.available(self.now), *queue, server.period(), server.deadline(), i)
            }
            Who::Io(k) => {
                let queue = queue_of(&self.io_work[k])?;
                let server = &self.system.ios[k];
                (server.available(self.now), queue, server.period(), server.deadline(), k)
            }
        };
        let by_deadline = queue < self.system.dp_queues;
        let key = if by_deadline { deadline } else { period };
        let is_main = matches!(who, Who::Main(_));
        if left > Nanos::ZERO {
            return Some((false, queue, key, is_main, index));
        }
        let background = matches!(who, Who::Main(i) if self.system.mains[i].background);
        background.then_some((true, queue, key, is_main, index))
    }

    /// Returns when the next VCPU that waits for budget gets some.
    fn next_eligibility(&self) -> Nanos {
        let at = |who: Who| match who {
            Who::Main(i) if !self.main_work[i].is_empty() => {
                self.system.mains[i].server.eligible_at()
            }
            Who::Io(k) if !self.io_work[k].is_empty() => self.system.ios[k].eligible_at(),
            _ => Nanos::FOREVER,
        };
        self.everybody().map(at).filter(|at| *at > self.now).min().unwrap_or(Nanos::FOREVER)
    }

    fn use_processor(&mut self, choice: Choice, until: Nanos) {
        let Choice { who, background } = choice;
        let mut until = self.section_end.map_or(until, |end| until.min(end));
        until = until.min(self.now + self.work(who).front().map_or(Nanos::ZERO, |w| w.left));
        if !background {
            until = until.min(self.now + self.one_chunk(who));
        }
        let used = until - self.now;
        if used > Nanos::ZERO {
            self.note(choice, until);
            self.now = until;
            if !background {
                self.charge(who, used);
            }
        }
        self.progress(who, used);
        let dry = !background && !self.system.overrun && self.available(who) == Nanos::ZERO;
        if dry || self.work(who).is_empty() {
            self.section_end = None;
        }
    }

    fn note(&mut self, choice: Choice, to: Nanos) {
        let (released, period, queue) = match choice.who {
            Who::Main(i) => {
                let main = &self.system.mains[i];
                (main.server.eligible_at(), main.server.period(), main.queue)
            }
            Who::Io(k) => {
                let server = &self.system.ios[k];
                let queue = queue_of(&self.io_work[k]).unwrap_or(0);
                (server.eligibility(), server.period(), queue)
            }
        };
        let Choice { who, background } = choice;
        let slice = Slice { who, from: self.now, to, released, period, queue, background };
        match self.slices.last_mut() {
            Some(last)
                if (Slice { from: last.from, ..slice } == Slice { to, ..*last })
                    && last.to == self.now =>
            {
                last.to = to;
            }
            _ => self.slices.push(slice),
        }
    }

    fn work(&mut self, who: Who) -> &mut VecDeque<Pending> {
        match who {
            Who::Main(i) => &mut self.main_work[i],
            Who::Io(k) => &mut self.io_work[k],
        }
    }

    fn available(&self, who: Who) -> Nanos {
        match who {
            Who::Main(i) => self.system.mains[i].server.available(self.now),
            Who::Io(k) => self.system.ios[k].available(self.now),
        }
    }

    /// Returns how long a VCPU may run on its current chunk. A section may use what is not yet
    /// eligible.
    fn one_chunk(&self, who: Who) -> Nanos {
        match (who, self.available(who)) {
            (Who::Main(i), Nanos::ZERO) => self.system.mains[i].server.left_of_head(),
            (Who::Io(_), Nanos::ZERO) => Nanos::FOREVER,
            (_, available) => available,
        }
    }

    fn charge(&mut self, who: Who, used: Nanos) {
        match who {
            Who::Main(i) => self.system.mains[i].server.charge(used, self.now),
            Who::Io(k) => self.system.ios[k].charge(used, self.now),
        }
    }

    /// Subtracts finished work and tells an I/O VCPU whose work changes.
    fn progress(&mut self, who: Who, used: Nanos) {
        let now = self.now;
        let Some(first) = self.work(who).front_mut() else { return };
        first.left = first.left - used;
        if first.left > Nanos::ZERO {
            return;
        }
        let job = first.job;
        self.work(who).pop_front();
        self.jobs[job].done = Some(now);
        let Who::Io(k) = who else { return };
        let server = &mut self.system.ios[k];
        if self.io_work[k].is_empty() {
            server.stop(now);
        } else {
            server.inherit(now, most_urgent(&self.io_work[k]));
        }
    }
}

/// The smallest period of those the work is for.
fn most_urgent(work: &VecDeque<Pending>) -> Nanos {
    work.iter().map(|pending| pending.period).min().unwrap_or(Nanos::FOREVER)
}

/// The queue of the most urgent one the work is for.
fn queue_of(work: &VecDeque<Pending>) -> Option<usize> {
    work.iter().min_by_key(|pending| pending.period).map(|pending| pending.queue)
}
