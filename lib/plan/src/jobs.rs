//! Jobs: when what a thread does from a release until it waits for the next one is done.
//!
//! One rule says when a job waits for nothing but what is more urgent. Either jobs begin at least a
//! period apart, wake their VCPU once and fit into its budget: then all of it is back when the next
//! one begins, whatever the list. Or they come more often, and the list has places for all wake-ups
//! of a period, that of the program's start among them.

use crate::core::Core;
use crate::human;
use crate::missing::Missing;
use crate::mutexes::Mutexes;
use crate::supplies::is_alone;
use diapason_abi::Nanos;
use diapason_abi::archive::REPLENISHMENTS_MAX;
use diapason_analysis::server::{BudgetServer as _, Stream, Supply};
use diapason_pipe::bill::{Coming, keeps_apart};
use diapason_system::{Diagnostics, Place, ServerSpec, System};

/// Steps to a job that is done within the time that its help was counted for.
const WINDOWS_MAX: usize = 16;

/// The bound of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobBound {
    /// Most budget that it uses for itself.
    pub work: Nanos,
    /// Most that it does for others that hold its mutexes.
    pub help: Nanos,
    /// Shortest time between the beginnings of two.
    pub every: Nanos,
    /// Worst-case time from its start until it is done.
    pub done: Nanos,
    /// Most wake-ups of its VCPU in a period, the start of its program included.
    pub wakes: u64,
    /// Whether the bound relies on the list never being full.
    pub relies: bool,
    /// Whether the job may wait for budget.
    pub waits: bool,
}

/// Why a job has no bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoJob {
    /// Something it needs is not in the description: what, and the remedy.
    Missing(Vec<(String, String)>),
    /// The list has fewer places than its wake-ups need.
    List { needed: u64, places: u64 },
    /// Jobs use more than their budget, `help` of it for others.
    Budget { asked: Nanos, help: Nanos, budget: Nanos },
    /// A job may be done only after the next one should begin. It `waits` for budget, or only for
    /// more urgent VCPUs.
    Late { done: Nanos, every: Nanos, waits: bool },
}

impl JobBound {
    /// Returns why this job has no bound: the next one waits for it, and that delay is not counted.
    fn late(self) -> NoJob {
        let JobBound { done, every, waits, .. } = self;
        NoJob::Late { done, every, waits }
    }
}

/// By place of a Main VCPU: the bound of its job, if one is described and the VCPU gets its budget.
pub type Jobs = Vec<Option<Result<JobBound, NoJob>>>;

/// The keys of a VCPU that are about its jobs.
#[derive(Clone, Copy)]
struct Declared {
    work: Nanos,
    every: Option<Nanos>,
    wakes: u64,
}

/// Returns the bounds of all jobs. `mutexes` learns whose budgets last.
pub(crate) fn jobs(system: &System, core: &Core, mutexes: &mut Mutexes<'_>) -> Jobs {
    let mut jobs: Jobs = vec![None; core.mains.len()];
    // The work of a job for others depends on the budgets of those before it.
    for place in core.system.precedence() {
        let all = Asked { system, core, mutexes };
        let job = all.job(place);
        let finds = job.as_ref().is_some_and(|job| job.as_ref().is_ok_and(|job| !job.waits));
        if finds && all.is_alone(core.mains[place]) {
            mutexes.lasts(place);
        }
        jobs[place] = job;
    }
    jobs
}

struct Asked<'a> {
    system: &'a System,
    core: &'a Core,
    mutexes: &'a Mutexes<'a>,
}

impl Asked<'_> {
    /// Returns the processes whose first thread is on a VCPU.
    fn on(&self, number: u16) -> impl Iterator<Item = u16> {
        let numbered = (0u16..).zip(&self.system.processes);
        numbered.filter(move |(_, it)| it.vcpu == Some(number)).map(|(process, _)| process)
    }

    /// Returns the processes that may have threads on a VCPU.
    fn users(&self, number: u16) -> impl Iterator<Item = u16> {
        let all = (0u16..).zip(&self.system.processes).map(|(process, _)| process);
        all.filter(move |process| self.system.may_be_on(usize::from(*process), number))
    }

    /// Returns whether one thread has the VCPU for itself.
    fn is_alone(&self, number: u16) -> bool {
        let mut on = self.on(number);
        on.next().is_some_and(|process| is_alone(process, self.system).is_ok())
    }

    /// Returns what is missing where no process begins on a VCPU, and not exactly one thread may be
    /// put there.
    fn crowded(&self, number: u16) -> Option<Missing> {
        let vcpu = self.system.vcpus.get(usize::from(number))?;
        let others = |process| u32::from(self.system.processes[usize::from(process)].threads) - 1;
        let threads: u32 = self.users(number).map(others).sum();
        (self.on(number).next().is_none() && threads != 1).then(|| {
            let what = match threads {
                0 => format!("no thread can be on `{}`", vcpu.name),
                _ => format!("up to {threads} threads may be on `{}`", vcpu.name),
            };
            (what, "give it to one process, as its `vcpu`, with `threads = 1`".to_owned())
        })
    }

    fn job(&self, place: usize) -> Option<Result<JobBound, NoJob>> {
        let number = self.core.mains[place];
        let declared = declared(&self.system.vcpus.get(usize::from(number))?.server)?;
        let supply = Supply::of(&self.core.system, place)?;
        let own = self.on(number).map(|process| is_alone(process, self.system).err());
        let shared = own.flatten().next().or_else(|| self.crowded(number));
        let locks = self.users(number).flat_map(|process| self.mutexes.lacks(process));
        let missing: Vec<Missing> = shared.into_iter().chain(locks).collect();
        if !missing.is_empty() {
            return Some(Err(NoJob::Missing(missing)));
        }
        let shares = self.users(number).any(|process| self.mutexes.shared_by(process).is_some());
        let mut window = supply.sync(declared.work);
        for _ in 0..WINDOWS_MAX {
            let help = if shares { self.mutexes.help(place, window) } else { Nanos::ZERO };
            let job = match self.bound(place, &supply, (declared, help), shares) {
                Ok(job) => job,
                refused => return Some(refused),
            };
            if job.done <= window || !shares {
                return Some(Ok(job));
            }
            window = job.done;
        }
        let (asked, budget) = (Nanos::FOREVER, supply.budget());
        Some(Err(NoJob::Budget { asked, help: Nanos::FOREVER, budget }))
    }

    fn bound(
        &self,
        place: usize,
        supply: &Supply,
        (declared, help): (Declared, Nanos),
        shares: bool,
    ) -> Result<JobBound, NoJob> {
        let period = self.core.system.mains[place].period;
        let Declared { work, wakes, .. } = declared;
        let every = declared.every.unwrap_or(period);
        let asked = work + help;
        let stream = Stream { work: asked, period: every, jitter: Nanos::ZERO };
        // The program's start is one more.
        let most = stream.events(period - Nanos(1)).saturating_mul(wakes).saturating_add(1);
        let job = JobBound {
            work,
            help,
            every,
            done: supply.sync(asked),
            wakes: most,
            relies: false,
            waits: false,
        };
        if every >= period && wakes == 1 && asked <= supply.budget() {
            return Ok(job);
        }
        let apart = |supply: &Supply| {
            keeps_apart(
                supply,
                &Coming {
                    wakeups: |window| stream.events(window).saturating_mul(wakes).saturating_add(1),
                    work: |window| stream.demand(window),
                    least: if wakes == 1 { asked } else { Nanos::ZERO },
                },
            )
        };
        if apart(supply) {
            let job = JobBound { relies: true, ..job };
            return if job.done <= every { Ok(job) } else { Err(job.late()) };
        }
        let (needed, places) = (most.saturating_add(1), supply.wakeups() + 1);
        if needed > places && self.with_places(place, needed).is_none_or(|longer| apart(&longer)) {
            return Err(NoJob::List { needed, places });
        }
        let budget = supply.budget();
        let too_much = NoJob::Budget { asked, help, budget };
        if shares || wakes > 1 {
            return Err(too_much);
        }
        match supply.delay(&stream) {
            Some(done) if done <= every => Ok(JobBound { done, waits: true, ..job }),
            Some(done) => Err(JobBound { done, waits: true, ..job }.late()),
            None => Err(too_much),
        }
    }

    /// Returns the supply of a VCPU if its list had so many places. `None`: no list is that long,
    /// or the system would not hold.
    fn with_places(&self, place: usize, places: u64) -> Option<Supply> {
        let mut system = self.core.system.clone();
        let places = u8::try_from(places).ok().filter(|places| *places <= REPLENISHMENTS_MAX)?;
        system.mains[place].chunks = places.into();
        Supply::of(&system, place)
    }
}

fn declared(server: &ServerSpec) -> Option<Declared> {
    let ServerSpec::Main { job_ns, interval_ns, wakes, .. } = *server else { return None };
    Some(Declared { work: Nanos(job_ns?), every: interval_ns.map(Nanos), wakes: wakes.into() })
}

/// Returns the jobs without a bound.
pub(crate) fn refusals(jobs: &Jobs, core: &Core, system: &System) -> Vec<Diagnostics> {
    let mut found = Vec::new();
    for (job, number) in jobs.iter().zip(&core.mains) {
        let Some(Err(why)) = job else { continue };
        let name = system.vcpu_name(*number).unwrap_or_default();
        let mut say = |[title, note, help]: [String; 3]| {
            found.push(system.problem(Place::Vcpu(*number), [&title, "", &note, &help]));
        };
        match why {
            NoJob::Missing(lacking) => lacking.iter().for_each(|(what, remedy)| {
                let title = format!("a job on `{name}` has no bound: {what}");
                say([title, String::new(), remedy.clone()]);
            }),
            NoJob::List { needed, places } => say(of_list(name, *needed, *places)),
            NoJob::Budget { asked, help, budget } => say(of_budget(name, *asked, *help, *budget)),
            NoJob::Late { done, every, waits } => say(of_late(name, (*done, *every), *waits)),
        }
    }
    found
}

fn of_list(name: &str, needed: u64, places: u64) -> [String; 3] {
    let wakes = needed - 1;
    let title =
        format!("jobs wake `{name}` up to {wakes} times in a period; its list has {places}");
    let note = "the list needs a place for each wake-up, the start of the program among them, \
     and one more"
        .to_owned();
    let help = if needed <= REPLENISHMENTS_MAX.into() {
        format!("write `replenishments = {needed}` at least, or a longer `interval`")
    } else {
        let most = REPLENISHMENTS_MAX;
        format!("give it a shorter period, or a longer `interval`: a list has {most} at most")
    };
    [title, note, help]
}

fn of_late(name: &str, (done, every): (Nanos, Nanos), waits: bool) -> [String; 3] {
    let (done, every) = (human(done.0), human(every.0));
    let title = format!("a job on `{name}` may take {done}, and the next one begins after {every}");
    let (note, help) = if waits {
        let note = "it may wait for budget, for a period and more";
        (note, "make its `budget` larger, or `interval` longer")
    } else {
        let note = "more urgent VCPUs run first, and the next job waits for this one, too";
        (note, "make `interval` longer, or its `period` shorter")
    };
    [title, note.to_owned(), help.to_owned()]
}

fn of_budget(name: &str, asked: Nanos, help: Nanos, budget: Nanos) -> [String; 3] {
    let title = match asked {
        Nanos::FOREVER => format!("jobs on `{name}` may wait for mutexes without end"),
        asked => format!(
            "jobs on `{name}` may use {} each, and its budget does not cover that",
            human(asked.0)
        ),
    };
    let left = format!("the kernel leaves {} of a budget", human(budget.0));
    if help == Nanos::ZERO {
        return [title, left, "make its `budget` larger, or `interval` longer".to_owned()];
    }
    let note = format!("{} of it for others that hold its mutexes; {left}", human(help.0));
    let help = "make its `budget` larger, or sections with its mutexes shorter".to_owned();
    [title, note, help]
}
