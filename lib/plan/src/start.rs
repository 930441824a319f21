//! How long a server of USB devices takes until it has found them.
//!
//! Nothing promises that time, but a system whose devices come after minutes is none. The thread
//! that manages visits each device several times. A visit is its work, and what holds a lock that
//! it needs: the works of the branches, which it may have to finish on its own budget.

use crate::driver;
use crate::missing;
use diapason_abi::Nanos;
use diapason_contract::settings::PROGRAM;
use diapason_contract::threads::MANAGE;
use diapason_system::{Diagnostics, Place, ProcessSpec, ServerSpec, System};

/// Visits until a device works: resets, addresses, descriptors, configurations and what its class
/// asks first, and as many again.
const VISITS: u64 = 32;
/// Switches between the end of a bottom half's work and the lock of the thread that waited for it.
const SWITCHES: u64 = 4;
/// Nobody waits longer for devices.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// The time that a server may take until it has found its devices.
struct Start {
    /// The number of the VCPU of the thread that manages.
    vcpu: u16,
    /// The description says how long a visit is.
    is_told: bool,
    /// The longest time of all visits together.
    work: Nanos,
    /// The longest work of a bottom half, which holds a lock that a visit needs, and its name.
    held: (Nanos, &'static str),
    /// The time from its end until the lock is taken.
    taken: Nanos,
    within: Nanos,
    period: Nanos,
    budget: Nanos,
}

impl Start {
    /// Returns that of a process, if it is a server whose thread that manages has a budget.
    fn of(system: &System, number: u16) -> Option<Start> {
        let process = system.processes.get(usize::from(number))?;
        let vcpu = process.vcpu.filter(|_| process.program == PROGRAM)?;
        let server = &system.vcpus.get(usize::from(vcpu))?.server;
        let ServerSpec::Main { budget_ns, period_ns, replenishments, background, .. } = *server
        else {
            return None;
        };
        let halves = system.bottom_halves(number);
        let halves = || halves.iter().map(|home| (driver::held(system, home), home.work));
        let works = halves().map(|(held, _)| held.0).fold(0, u64::saturating_add);
        let manage = driver::worst(system, MANAGE);
        // A description without pipes may leave it out: no bound depends on it.
        let is_told = manage.is_some() || system.pipes.is_empty() && system.tpipes.is_empty();
        let visit = works.saturating_add(manage.unwrap_or_default().0);
        // In the background it gets the lock when nobody else wants the processor.
        let held = halves().filter(|_| !background).max().unwrap_or_default();
        let switch = system.kernel_times().switch(core::iter::empty());
        let taken = Nanos(switch.0.saturating_mul(SWITCHES));
        let visits = VISITS * (1 + system.usb.len() as u64);
        let work = visit.saturating_mul(visits);
        // A list that is full waits for the next period, however much budget is left.
        let lists = visits.div_ceil(u64::from(replenishments.max(1)));
        let periods = work.div_ceil(budget_ns.max(1)).max(lists) + 1;
        let within = Nanos(periods.saturating_mul(period_ns));
        let (period, budget) = (Nanos(period_ns), Nanos(budget_ns));
        Some(Start { vcpu, is_told, work: Nanos(work), held, taken, within, period, budget })
    }

    /// Returns the refusal, if the thread that manages may never get a lock. It waits for a bottom
    /// half on its own budget. If that ends first, the bottom half may have the lock again whenever
    /// there is budget.
    fn starved(&self, system: &System, process: &ProcessSpec) -> Option<Diagnostics> {
        let Start { vcpu, held: (held, half), taken, budget, .. } = *self;
        let least = Nanos(held.0.saturating_add(taken.0));
        if held == Nanos::ZERO || budget >= least {
            return None;
        }
        let name = &system.vcpus[usize::from(vcpu)].name;
        let title = format!("`{}` may never find its devices", process.name);
        let note = format!(
            "`{half}` holds a lock for up to {held}, on the budget of the thread that waits for \
             it; `{name}` has {budget} in each period, and may never get the lock"
        );
        let help = format!("give `{name}` at least {least} in each period, or have shorter works");
        Some(system.problem(Place::Vcpu(vcpu), [&title, "", &note, &help]))
    }

    /// Returns the refusal, if nobody would wait so long.
    fn refusal(&self, system: &System, process: &ProcessSpec) -> Option<Diagnostics> {
        let Start { vcpu, work, within, period, budget, is_told, .. } = *self;
        if !is_told {
            let (what, help) = missing::works(&[MANAGE]);
            let title = format!("`{}` has no bound for finding its devices: {what}", process.name);
            return Some(system.problem(Place::Vcpu(vcpu), [&title, "", "", &help]));
        }
        if within <= PATIENCE {
            return self.starved(system, process);
        }
        let name = &system.vcpus[usize::from(vcpu)].name;
        let title = format!("`{}` would need {within} to find its devices", process.name);
        let note = format!(
            "the visits of its managing thread take {work} in all, with the works that hold its \
             locks; `{name}` has {budget} in {period}"
        );
        let periods = (PATIENCE.0 / period.0).saturating_sub(1);
        let help = match work.0.checked_div(periods).map(|least| Nanos(least + 1)) {
            Some(least) if least > budget && least < period => {
                format!("give `{name}` at least {least} in each period, or have shorter works")
            }
            _ => format!("give `{name}` a shorter period, or have shorter works"),
        };
        Some(system.problem(Place::Vcpu(vcpu), [&title, "", &note, &help]))
    }
}

/// Returns the refusals of servers that would find their devices too late.
pub(crate) fn refusals(system: &System) -> impl Iterator<Item = Diagnostics> {
    let processes = (0..).zip(&system.processes);
    processes.filter_map(|(number, process)| Start::of(system, number)?.refusal(system, process))
}

/// Returns the time after which the servers of a system have found the devices that are plugged in.
/// It is an estimate with room, not a promise.
#[must_use]
pub fn found_within(system: &System) -> Nanos {
    let numbers = (0..).zip(&system.processes).map(|(number, _)| number);
    let starts = numbers.filter_map(|number| Start::of(system, number));
    starts.map(|start| start.within).max().unwrap_or_default()
}
