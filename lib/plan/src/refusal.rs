//! Why a system is not admitted, at the first place that fails, and what would make it fit.

use crate::allocate;
use crate::core::queue_name;
use crate::driver::Driver;
use crate::human;
use crate::pipes::{NoBill, Piped};
use crate::verdict::{Plan, Sum};
use diapason_abi::Nanos;
use diapason_abi::archive::{BUDGET_MIN, PERIOD_MAX};
use diapason_analysis::server::{
    AdmissionRefusal, Nonsense, Queue, Shortfall, Unfit, first_failure,
};
use diapason_system::{Diagnostics, PipeDirection, PipeSpec, Place, System};

/// Returns the problem of a plan that does not hold.
pub(crate) fn refusal(plan: &Plan, system: &System) -> Diagnostics {
    match &plan.exact {
        Err(Unfit::Refused(refusal)) => of_exact(plan, system, refusal),
        Err(Unfit::Nonsense(Nonsense::BudgetLost(vcpu, least))) => {
            of_lost(plan.core.mains[*vcpu], "budget", *least, system)
        }
        Err(Unfit::Nonsense(Nonsense::GrantLost(io, least))) => {
            of_lost(plan.core.ios[*io], "grant", *least, system)
        }
        Err(Unfit::Nonsense(nonsense)) => {
            let title = format!("the analysis cannot make sense of this: {nonsense}");
            let help = "report this as a bug, with the description";
            system.problem(Place::Scheduling, [&title, "", "", help])
        }
        Ok(_) => of_closed(plan, system),
    }
}

/// Returns a budget or a grant that is too small to be one.
fn of_lost(vcpu: u16, what: &str, least: Nanos, system: &System) -> Diagnostics {
    let name = &system.vcpus[usize::from(vcpu)].name;
    let title = format!("the kernel may take more than half of each {what} of `{name}`");
    let note = "the charge of the kernel for them at this clock, in the worst case".to_owned();
    let least = human(least.0);
    let help = match what {
        "budget" => format!(
            "give it at least {least}, or shorter lists (`replenishments`) to it and to what is \
             more urgent"
        ),
        _ => format!(
            "a grant must be at least {least}: raise `utilization`, or the periods that it serves"
        ),
    };
    system.problem(Place::Vcpu(vcpu), [&title, "", &note, &help])
}

/// Returns the problems of pipes: no bound, one that is too long, a buffer that is too small. A
/// number that several pipes lack is one problem.
pub(crate) fn of_pipes(plan: &Plan, system: &System) -> Vec<Diagnostics> {
    let mut said: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for (number, (pipe, piped)) in (0u16..).zip(system.pipes.iter().zip(&plan.pipes)) {
        let mut say = |[title, note, help]: [String; 3]| {
            found.push(system.problem(Place::Pipe(number), [&title, "", &note, &help]));
        };
        let lacking = plan.lacking.get(usize::from(number)).map_or(&[][..], Vec::as_slice);
        if !matches!(piped.bill, Err(NoBill::Missing(..))) || lacking.is_empty() {
            let driver = Driver::of(system, pipe.usb, pipe.source(), 0);
            of_pipe(pipe, piped, &driver).into_iter().for_each(say);
            continue;
        }
        for (what, remedy) in lacking {
            if !said.contains(&what.as_str()) {
                said.push(what);
                let title = format!("`{}` has no bound: {what}", pipe.name);
                say([title, String::new(), remedy.clone()]);
            }
        }
    }
    found
}

fn of_pipe(pipe: &PipeSpec, piped: &Piped, driver: &Driver) -> Option<[String; 3]> {
    let name = &pipe.name;
    let bill = match &piped.bill {
        Ok(bill) => bill,
        Err(none) => return Some(none.words(name)),
    };
    let items: Vec<String> =
        bill.items().iter().map(|i| format!("{} {}", i.what.name(), human(i.value.0))).collect();
    let note = items.join(", ");
    // A pipe to a CAN interface makes its writer wait.
    let fills = pipe.way == PipeDirection::FromDevice || pipe.is_written();
    let Driver { slots, kept, .. } = *driver;
    if fills && bill.slots > slots {
        let title =
            format!("`{name}` may have {} messages waiting; its buffer holds {slots}", bill.slots);
        return Some([title, note, "make the bound shorter or the rate smaller".into()]);
    }
    if fills && bill.device > kept {
        let title = format!(
            "{} messages may wait in the device of `{name}`, which keeps {kept}",
            bill.device
        );
        return Some([
            title,
            note,
            "make the wait for a transfer shorter, or the rates smaller".into(),
        ]);
    }
    let wanted = pipe.latency_ns.filter(|wanted| *wanted < bill.total.0)?;
    let longest = bill.items().iter().max_by_key(|item| item.value)?;
    let title = format!(
        "messages of `{name}` may take {}; at most {} is wanted",
        human(bill.total.0),
        human(wanted)
    );
    let help = format!(
        "write `latency = \"{}us\"`, or shorten the longest item, {}",
        bill.total.0.div_ceil(1_000),
        longest.what.name()
    );
    Some([title, note, help])
}

/// The exact test admits it, the closed form does not.
fn of_closed(plan: &Plan, system: &System) -> Diagnostics {
    let help = "write `admission = \"exact\"`: the exact test admits the system";
    let (title, note) = match plan.wide {
        Sum::Silent(_) => (
            "the closed form cannot judge queues that are not in the order of periods".to_owned(),
            "it holds if no VCPU has a longer period than one in a lower queue".to_owned(),
        ),
        Sum::Says(form) => {
            let (wanted, bound) = form.ppm();
            let title = format!(
                "the closed form admits up to {}, the VCPUs want {}",
                share(bound),
                share(wanted)
            );
            (title, kernel(plan))
        }
    };
    system.problem(Place::Scheduling, [&title, "", &note, help])
}

fn of_exact(plan: &Plan, system: &System, refusal: &AdmissionRefusal) -> Diagnostics {
    let number = plan.core.mains[refusal.vcpu];
    let name = system.vcpu_name(number).unwrap_or_default();
    let budget = human(plan.core.system.mains[refusal.vcpu].budget.0);
    let (title, label) = what_fails(refusal, name, &budget);
    let help = remedies(plan, system, refusal);
    system.problem(Place::Vcpu(number), [&title, &label, &kernel(plan), &help])
}

/// Returns the failure, and its size.
fn what_fails(refusal: &AdmissionRefusal, name: &str, budget: &str) -> (String, String) {
    let (limit, queue) = (refusal.limit, queue_name(refusal.queue));
    match refusal.failure {
        Shortfall::Late(Some(response)) => {
            let (after, period) = (human(response.0), human(limit.0));
            let title =
                format!("`{name}` gets its {budget} only after {after}; its period is {period}");
            (title, format!("{} too late", human((response - limit).0)))
        }
        Shortfall::Late(None) => {
            let title = format!("`{name}` may never get its {budget}");
            (title, "the VCPUs above it leave nothing".to_owned())
        }
        Shortfall::Overfull { window, demand } => {
            let (window_shown, demand_shown) = (human(window.0), human(demand.0));
            let title = format!(
                "in some {window_shown}, {demand_shown} of work is due in queue {queue} and those \
                 above it"
            );
            (title, format!("{} too much", human((demand - window).0)))
        }
        Shortfall::Overload => {
            let title =
                format!("queue {queue} and those above it want more than the whole processor");
            (title, "the last of that queue".to_owned())
        }
        Shortfall::Undecided => {
            let title = format!("`{name}` is so close to the edge that the test cannot tell");
            (title, "counts as refused".to_owned())
        }
    }
}

/// Returns the kernel's time: a refusal without these numbers could not be checked by hand.
fn kernel(plan: &Plan) -> String {
    let system = &plan.core.system;
    format!(
        "the kernel's longest path takes {}, a switch {}; each replenishment in a list \
         is charged two switches a period",
        human(system.kernel_section.0),
        human(system.switch.0)
    )
}

/// Everything that would make it fit, one of which is enough.
fn remedies(plan: &Plan, system: &System, refusal: &AdmissionRefusal) -> String {
    let mut ways = Vec::new();
    if let Some(budget) = refusal.largest_budget.and_then(|most| tidy_budget(most, refusal)) {
        ways.push(format!("`budget = \"{}\"`", written(budget)));
    }
    let period = refusal.smallest_period.filter(|period| *period <= PERIOD_MAX);
    if let Some(period) = period.map(|least| tidy_period(plan, refusal, least)) {
        ways.push(format!("`period = \"{}\"`", written(period)));
    }
    if let Some(queues) = plan.cheapest() {
        ways.push(format!("`{}` under `[scheduling]`", other_queues(plan, system, queues)));
    }
    if ways.is_empty() {
        let name = system.vcpu_name(plan.core.mains[refusal.vcpu]).unwrap_or_default();
        let margin = plan.margin().filter(|margin| *margin > 0);
        let scaled = margin.map(|margin| {
            format!("; all would fit with {}.{} % of their budgets", margin / 10, margin % 10)
        });
        return format!(
            "take time from the VCPUs that come before `{name}`{}",
            scaled.unwrap_or_default()
        );
    }
    format!("write {}", ways.join(", or "))
}

fn other_queues(plan: &Plan, system: &System, queues: &[Queue]) -> String {
    let names = plan.core.mains.iter().map(|number| system.vcpu_name(*number).unwrap_or_default());
    allocate::lines(queues, &names.collect::<Vec<_>>())
}

/// Returns a whole microsecond at or below what fits, if that is more than nothing and less than
/// asked.
fn tidy_budget(most: Nanos, refusal: &AdmissionRefusal) -> Option<Nanos> {
    let tidy = Nanos(most.0 / 1_000 * 1_000).min(refusal.limit);
    (tidy >= BUDGET_MIN).then_some(tidy)
}

/// Returns a whole microsecond at or above the least that fits, if it fits too.
fn tidy_period(plan: &Plan, refusal: &AdmissionRefusal, least: Nanos) -> Nanos {
    let tidy = Nanos(least.0.div_ceil(1_000) * 1_000).min(PERIOD_MAX);
    let mut trial = plan.core.system.clone();
    trial.mains[refusal.vcpu].period = tidy;
    if first_failure(&trial) == Ok(None) { tidy } else { least }
}

/// Returns a duration as descriptions have it.
fn written(time: Nanos) -> String {
    const UNITS: [(&str, u64); 4] =
        [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let unit = UNITS.iter().find(|(_, scale)| time.0 >= *scale && time.0.is_multiple_of(*scale));
    unit.map_or_else(|| "0ns".to_owned(), |(unit, scale)| format!("{}{unit}", time.0 / scale))
}

/// Parts per million as a percentage.
#[must_use]
pub fn share(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}
