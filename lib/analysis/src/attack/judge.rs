//! Every job of a run against its bound.

use super::report::{CampaignFindings, Which};
use crate::server::{BudgetServer, IoSupply, SharedCore, SharedIo, Supply};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_vcpu::sim::{Job, Run, Who};

/// The bounds of a system, computed once.
pub(crate) struct Bounds {
    mains: Vec<Table>,
    /// Tables of I/O VCPUs whose beneficiaries have one period.
    ios: Vec<Option<Table>>,
    /// By I/O VCPU and beneficiary, of the others.
    shared: Vec<Vec<Option<SharedIo>>>,
}

/// A server whose response times are looked up.
struct Table {
    budget: Nanos,
    period: Nanos,
    /// R(c), from c = 0.
    responses: Vec<Nanos>,
    /// Response times of scattered units, from c = 0.
    scattered: Vec<Nanos>,
}

impl Table {
    fn of(server: &impl BudgetServer) -> Table {
        let budget = server.budget();
        let all = || (0..=budget.0).map(Nanos);
        let responses = all().map(|work| server.response(work)).collect();
        let scattered = all().map(|work| server.scattered(work)).collect();
        Table { budget, period: server.period(), responses, scattered }
    }
}

impl BudgetServer for Table {
    fn budget(&self) -> Nanos {
        self.budget
    }
    fn period(&self) -> Nanos {
        self.period
    }
    fn response(&self, work: Nanos) -> Nanos {
        self.responses[work.0 as usize]
    }
    fn scattered(&self, work: Nanos) -> Nanos {
        self.scattered[work.0 as usize]
    }
    fn wakeups(&self) -> u64 {
        u64::MAX
    }
}

impl Bounds {
    /// Returns the bounds of an admitted system.
    pub fn of(system: &SharedCore) -> Bounds {
        let mains = (0..system.mains.len()).map(|vcpu| {
            let Some(supply) = Supply::of(system, vcpu) else { panic!("admitted: {system:?}") };
            Table::of(&supply)
        });
        let ios = (0..system.ios.len()).map(|io| Some(Table::of(&IoSupply::of(system, io)?)));
        let all = 0..system.mains.len();
        let shared = (0..system.ios.len())
            .map(|io| all.clone().map(|vcpu| SharedIo::of(system, io, vcpu)).collect());
        Bounds { mains: mains.collect(), ios: ios.collect(), shared: shared.collect() }
    }
}

/// Compares everything that happened in `run` with what was promised.
pub fn judge(system: &SharedCore, bounds: &Bounds, run: &Run, report: &mut CampaignFindings) {
    for (vcpu, table) in bounds.mains.iter().enumerate() {
        let counters = run.system.mains[vcpu].server.counters();
        let whole = table.response(table.budget);
        report.compare(Which::Response, counters.late_max, whole, system);
        let jobs: Vec<&Job> = of(run, Who::Main(vcpu));
        if counters.merges == 0 {
            own(table, &jobs, Which::Own, system, report);
        }
        for backlog in any(table, &jobs, counters.merges > 0, run.system.block_first) {
            report.compare(Which::Any, backlog.delay, backlog.bound, system);
            report.single.0 += u64::from(backlog.single);
            report.single.1 += u64::from(backlog.single && backlog.delay > table.period);
        }
    }
    for (io, table) in bounds.ios.iter().enumerate() {
        let jobs = of(run, Who::Io(io));
        match table {
            Some(table) => own(table, &jobs, Which::Io, system, report),
            None => shared(&bounds.shared[io], &jobs, system, report),
        }
    }
}

fn of(run: &Run, who: Who) -> Vec<&Job> {
    run.jobs.iter().filter(|job| job.who == who).collect()
}

/// Theorem 1: unit n may be used from r_n = max(t_n, r_{n−C} + T) on, and is used R(m + 1) after
/// some r_{n−m}.
fn own(
    table: &Table,
    jobs: &[&Job],
    which: Which,
    system: &SharedCore,
    report: &mut CampaignFindings,
) {
    let budget = table.budget.0 as usize;
    let mut eligible: Vec<Nanos> = vec![];
    for job in jobs {
        for _ in 0..job.units.0.min(super::generate::HORIZON.0) {
            let back = eligible.len().checked_sub(budget).map(|n| eligible[n] + table.period);
            eligible.push(back.map_or(job.arrived, |back| back.max(job.arrived)));
        }
        let Some(done) = job.done else { return };
        let last = eligible.len() - 1;
        let used = (0..budget.min(last + 1))
            .map(|m| eligible[last - m] + table.responses[m + 1])
            .max()
            .unwrap_or_default();
        report.compare(which, done - job.arrived, used - job.arrived, system);
    }
}

/// D_any or D_merge of all that was demanded since the VCPU last woke up. `merged`: its list was
/// full at times. `block_first`: work that comes the instant the queue is empty wakes it up again.
fn any(table: &Table, jobs: &[&Job], merged: bool, block_first: bool) -> Vec<Backlog> {
    let mut backlogs: Vec<Backlog> = vec![];
    let (mut begin, mut units, mut before) = (Nanos::ZERO, Nanos::ZERO, None);
    for job in jobs {
        let idle = before.is_none_or(|before| match block_first {
            true => before <= job.arrived,
            false => before < job.arrived,
        });
        if idle {
            (begin, units) = (job.arrived, Nanos::ZERO);
        }
        units += job.units;
        let Some(done) = job.done else { break };
        before = Some(done);
        let bound = if merged { table.merge(units) } else { table.any(units) };
        let single = idle && job.units <= table.budget;
        backlogs.push(Backlog { delay: done - begin, bound, single });
    }
    backlogs
}

/// The demand since a VCPU woke up.
struct Backlog {
    delay: Nanos,
    bound: Nanos,
    /// One job of at most one budget.
    single: bool,
}

/// Work for a beneficiary on an I/O VCPU with several: from when work as urgent began to wait.
fn shared(
    bounds: &[Option<SharedIo>],
    jobs: &[&Job],
    system: &SharedCore,
    report: &mut CampaignFindings,
) {
    let period = |job: &Job| system.mains[job.beneficiary].period;
    for job in jobs {
        let (Some(done), Some(bound)) = (job.done, &bounds[job.beneficiary]) else { continue };
        let as_urgent = jobs.iter().filter(|other| period(other) <= period(job));
        let as_urgent: Vec<&&Job> = as_urgent.collect();
        let begin = backlog_of(job, &as_urgent);
        let meanwhile = as_urgent.iter().filter(|other| {
            begin <= other.arrived && other.arrived < done && before_end(other, job)
        });
        let (mut total, mut raises) = (Nanos::ZERO, 0);
        for other in meanwhile {
            total += other.units;
            raises += u64::from(period(other) < period(job));
        }
        report.compare(Which::Shared, done - begin, bound.delay(total, raises), system);
    }
}

/// Orders equals: those that come later are served later.
fn before_end(other: &Job, job: &Job) -> bool {
    match (other.done, job.done) {
        (Some(theirs), Some(ours)) => theirs <= ours,
        _ => false,
    }
}

/// Since when there was always work as urgent as `job` until it arrived.
fn backlog_of(job: &Job, as_urgent: &[&&Job]) -> Nanos {
    let mut begin = job.arrived;
    loop {
        let earlier = as_urgent
            .iter()
            .filter(|other| other.arrived < begin && other.done.is_none_or(|done| done >= begin));
        match earlier.map(|other| other.arrived).min() {
            Some(earlier) => begin = earlier,
            None => return begin,
        }
    }
}
