//! A model of schedules that is explored completely, for the largest number of writes that any
//! schedule can bring into one read.
//!
//! Three tasks (the writer, the reader, and one that only gets in the way) release jobs at any
//! time not closer than their periods. Time is cut into slots; between two slots every release,
//! every arrival up to the jitter, and every early end of the parts around the read or write is a
//! choice, and all choices are followed. Nothing here knows the formulas under test.

pub const WRITER: usize = 0;
pub const READER: usize = 1;
pub const OTHER: usize = 2;

/// A sporadic task. Of its `work` slots those in `section` are the read or the write.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub period: u8,
    pub work: u8,
    pub deadline: u8,
    pub jitter: u8,
    pub section: (u8, u8),
}

impl Task {
    pub const ABSENT: Task = Task { period: 1, work: 0, deadline: 1, jitter: 0, section: (0, 0) };
}

/// The threads that may run in a slot.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// One core, the ready task of the smallest rank.
    Fixed([u8; 3]),
    /// One core, the ready task with the earliest deadline; ties both ways.
    Edf,
    /// One core, any ready task or none: budgets, locks, anything. Jobs take their whole work.
    AnyOneCore,
    /// A core per task, and any of them may be held back.
    AnyParallel,
}

#[derive(Clone, Copy, Default)]
struct Job {
    /// Slots since the release, or since the last one up to the period.
    since: u8,
    /// Slots executed; all of them when idle.
    done: u8,
    arrived: bool,
}

#[derive(Clone, Copy)]
struct State {
    jobs: [Job; 3],
    /// Writes that have touched the read in progress.
    writes: u8,
}

const WRITES_LIMIT: u8 = 15;

struct Explorer<'a> {
    tasks: &'a [Task; 3],
    policy: Policy,
    seen: Vec<u64>,
    open: Vec<State>,
    most_writes: u8,
}

/// The most writes in one read, or `None` if some schedule misses a deadline: then the assumption
/// of every bound is broken. The policies without a rule only follow schedules without a miss.
pub fn most_writes(tasks: &[Task; 3], policy: Policy) -> Option<u8> {
    let mut explorer = Explorer {
        tasks,
        policy,
        seen: vec![0; state_count(tasks).div_ceil(64)],
        open: Vec::new(),
        most_writes: 0,
    };
    let idle = |task: Task| Job { since: task.period, done: task.work, arrived: false };
    explorer.visit(State { jobs: tasks.map(idle), writes: 0 });
    while let Some(state) = explorer.open.pop() {
        explorer.choose(&state);
        if missed(tasks, &state) {
            if explorer.holds_deadlines_by_rule() {
                return None;
            }
            continue;
        }
        explorer.pass_slot(&state);
    }
    Some(explorer.most_writes)
}

fn state_count(tasks: &[Task; 3]) -> usize {
    let per_task = |task: &Task| (task.period as usize + 1) * (task.work as usize + 1) * 2;
    tasks.iter().map(per_task).product::<usize>() * (WRITES_LIMIT as usize + 1)
}

fn state_number(tasks: &[Task; 3], state: &State) -> usize {
    let mut number = state.writes as usize;
    for (task, job) in tasks.iter().zip(&state.jobs) {
        number = number * (task.period as usize + 1) + job.since as usize;
        number = number * (task.work as usize + 1) + job.done as usize;
        number = number * 2 + usize::from(job.arrived);
    }
    number
}

fn missed(tasks: &[Task; 3], state: &State) -> bool {
    let late = |(task, job): (&Task, &Job)| job.done < task.work && job.since >= task.deadline;
    tasks.iter().zip(&state.jobs).any(late)
}

/// The job is inside its read or write: begun and not ended.
fn inside(task: &Task, job: &Job) -> bool {
    task.section.0 < job.done && job.done < task.section.1
}

impl Explorer<'_> {
    fn holds_deadlines_by_rule(&self) -> bool {
        matches!(self.policy, Policy::Fixed(_) | Policy::Edf)
    }

    fn visit(&mut self, state: State) {
        let number = state_number(self.tasks, &state);
        let bit = 1 << (number % 64);
        if self.seen[number / 64] & bit == 0 {
            self.seen[number / 64] |= bit;
            self.open.push(state);
        }
    }

    /// Everything that may happen between two slots, one event at a time.
    fn choose(&mut self, state: &State) {
        for who in [WRITER, READER, OTHER] {
            let task = self.tasks[who];
            let job = state.jobs[who];
            let mut next = *state;
            if task.work == 0 {
                continue;
            } else if job.done == task.work {
                if job.since < task.period {
                    continue;
                }
                next.jobs[who] = Job { since: 0, done: 0, arrived: task.jitter == 0 };
            } else if !job.arrived {
                next.jobs[who].arrived = true;
            } else if self.holds_deadlines_by_rule() && job.done < task.section.0 {
                next.jobs[who].done = task.section.0;
            } else if self.holds_deadlines_by_rule() && job.done >= task.section.1 {
                next.jobs[who].done = task.work;
            } else {
                continue;
            }
            self.visit(next);
        }
    }

    /// One slot of time, for each choice of the thread that runs in it.
    fn pass_slot(&mut self, state: &State) {
        let due = |who: &usize| {
            let (task, job) = (&self.tasks[*who], &state.jobs[*who]);
            job.done < task.work && !job.arrived && job.since >= task.jitter
        };
        if [WRITER, READER, OTHER].iter().any(due) {
            return; // the arrival comes first
        }
        for running in 0..8_u8 {
            if self.may_run(state, running) {
                self.run(state, running);
            }
        }
    }

    /// Returns whether exactly the tasks of the set `running` may run now.
    fn may_run(&self, state: &State, running: u8) -> bool {
        let is_ready =
            |who: usize| state.jobs[who].arrived && state.jobs[who].done < self.tasks[who].work;
        let ready = (0..3).fold(0_u8, |set, who| set | (u8::from(is_ready(who)) << who));
        let one = running.count_ones() == 1;
        if running & !ready != 0 {
            return false;
        }
        let urgency = |who: usize| match self.policy {
            Policy::Fixed(rank) => rank[who],
            _ => self.tasks[who].deadline - state.jobs[who].since,
        };
        match self.policy {
            Policy::AnyParallel => true,
            Policy::AnyOneCore => one || running == 0,
            Policy::Fixed(_) | Policy::Edf if ready == 0 => running == 0,
            Policy::Fixed(_) | Policy::Edf => {
                let chosen = running.trailing_zeros() as usize;
                one && (0..3).all(|who| !is_ready(who) || urgency(chosen) <= urgency(who))
            }
        }
    }

    fn run(&mut self, state: &State, running: u8) {
        let mut next = *state;
        let runs = |who: usize| running & (1 << who) != 0;
        let [writer, reader] = [&self.tasks[WRITER], &self.tasks[READER]];
        let was_writing = inside(writer, &state.jobs[WRITER]);
        let read_begins = runs(READER) && state.jobs[READER].done == reader.section.0;
        let reads = read_begins || inside(reader, &state.jobs[READER]);
        let write_begins = runs(WRITER) && state.jobs[WRITER].done == writer.section.0;
        if read_begins {
            next.writes = u8::from(was_writing);
        }
        if reads && write_begins {
            next.writes += 1;
            assert!(next.writes <= WRITES_LIMIT, "the model is too small for this task set");
        }
        self.most_writes = self.most_writes.max(next.writes);
        for (who, task) in self.tasks.iter().enumerate() {
            next.jobs[who].done += u8::from(runs(who));
            next.jobs[who].since = task.period.min(next.jobs[who].since + 1);
            next.jobs[who].arrived &= next.jobs[who].done < task.work;
        }
        if !inside(reader, &next.jobs[READER]) {
            next.writes = 0; // forgotten once noted, to keep the space small
        }
        self.visit(next);
    }
}
