//! The questions about a computer that was measured: whether the plan follows everything in its
//! profile that this system meets.

use crate::human;
use diapason_costs::KernelTimes;
use diapason_system::{Diagnostics, Gap, MachineProfile, Place, System};

/// Returns why the plan is not that of the computer that was measured.
pub(crate) fn refusals(system: &System, costs: &KernelTimes) -> Vec<Diagnostics> {
    let Some(machine) = &system.machine else { return Vec::new() };
    let gap = machine.gap;
    let found = [
        emulated(system, machine),
        cores(system, machine),
        interrupts(system, machine),
        gap.and_then(|gap| made(system, gap)),
        gap.and_then(|gap| meets_two(system, costs, gap)),
    ];
    found.into_iter().flatten().collect()
}

fn emulated(system: &System, machine: &MachineProfile) -> Option<Diagnostics> {
    let note = format!("it calls itself `{}`", machine.processor);
    let title = "the profile is of an emulated computer, whose times mean nothing";
    let help = "measure the computer itself: start it from an image of `examples/machine.toml`";
    (!machine.real).then(|| system.problem(Place::Description, [title, "", &note, help]))
}

/// Cores that work at the same time wait for each other's memory. The profile has as much of that
/// as the cores that worked while it was made.
fn cores(system: &System, machine: &MachineProfile) -> Option<Diagnostics> {
    let (seen, wanted) = (machine.cores(), system.cores);
    let title = match seen {
        1 => format!("the host has {wanted} cores, and one worked while the profile was made"),
        _ => format!("the host has {wanted} cores, and {seen} worked while the profile was made"),
    };
    let note = "cores that work at the same time wait for each other's memory, and nothing says \
                how long";
    let help = format!(
        "measure the computer with an image of `examples/machine-cores.toml` whose `cores` are \
         {wanted} or more, or plan a host with at most {seen}"
    );
    (wanted > seen).then(|| system.problem(Place::Cores, [&title, "", note, &help]))
}

fn interrupts(system: &System, machine: &MachineProfile) -> Option<Diagnostics> {
    let device = system.devices.iter().find(|device| device.interrupt.is_some())?;
    let title = format!("nothing says how late interrupts of `{}` are", device.name);
    let note = "the profile has no `interrupt`: the computer lacks the timer (HPET) that it is \
                measured with";
    let help = "measure a computer with a HPET, or switch it on in the firmware's setup";
    let problem = || system.problem(Place::Description, [&title, "", note, help]);
    machine.interrupt.is_none().then(problem)
}

/// The kernel decides itself about a VCPU that a program makes, and knows of no gaps.
fn made(system: &System, gap: Gap) -> Option<Diagnostics> {
    let process = (0u16..).zip(&system.processes).find(|(_, process)| process.vcpus > 0)?;
    let title = format!("`{}` may make VCPUs while the processor is away at times", process.1.name);
    let note = format!("it was seen away for {}", human(gap.longest.0));
    let help = "describe its VCPUs, and remove `vcpus`";
    Some(system.problem(Place::Process(process.0), [&title, "", &note, help]))
}

/// A wait for the kernel meets one gap, and counts one.
fn meets_two(system: &System, costs: &KernelTimes, gap: Gap) -> Option<Diagnostics> {
    let sources = system.devices.iter().filter(|device| device.interrupt.is_some()).count();
    let late = costs.late(system.deadline_queues(), sources as u64);
    let title = "an interrupt may wait for the kernel while the processor is away twice";
    let note = format!(
        "it waits up to {}, and the processor is away every {}",
        human(late.0),
        human(gap.apart.0)
    );
    let help = "look for a setting of the firmware that makes it rarer, and measure again";
    (late >= gap.apart).then(|| system.problem(Place::Description, [title, "", &note, help]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use diapason_abi::Nanos;
    use diapason_system::{MemoryStress, parse, parse_cores};

    const SYSTEM: &str = "[system]\nname = \"s\"\n\
        [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
        [[vcpu]]\nname = \"w\"\nbudget = \"8ms\"\nperiod = \"20ms\"\njob = \"5ms\"\n\
        [[process]]\nname = \"p\"\npriority = 1\nvcpu = \"v\"\n\
        [[process]]\nname = \"q\"\npriority = 1\nvcpu = \"w\"\n";

    fn machine() -> MachineProfile {
        MachineProfile {
            processor: "one of ours".into(),
            real: true,
            kernel: diapason_costs::counted::PLAIN.kernel,
            measured: Nanos::from_secs(60),
            clock_hz: 500_000_000,
            slowest: "yield_switch".into(),
            late: Nanos(4_000),
            interrupt: Some(Nanos(6_000)),
            gap: None,
            register: None,
            stress: None,
        }
    }

    /// Returns the computer as measured while so many cores worked.
    fn stressed(cores: u16) -> MachineProfile {
        let (alone, beside) = (Nanos(80_000), Nanos(240_000));
        let stress = Some(MemoryStress { cores, alone, beside, ring: None });
        MachineProfile { stress, ..machine() }
    }

    fn gap(longest: u64, apart: u64) -> Option<Gap> {
        Some(Gap { longest: Nanos::from_micros(longest), apart: Nanos::from_micros(apart) })
    }

    fn plan(text: &str, machine: MachineProfile) -> Plan {
        let mut system = parse("s.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        system.plan_for(machine);
        Plan::of(&system)
    }

    /// Returns what is refused of a description on a computer.
    fn refused(text: &str, machine: MachineProfile) -> String {
        plan(text, machine).findings.iter().map(Diagnostics::plain).collect()
    }

    #[test]
    fn a_slow_computer_and_one_that_is_away_take_time_from_everybody() {
        let response = |machine| {
            let plan = plan(SYSTEM, machine);
            assert!(plan.holds(), "{:?}", plan.findings);
            plan.response(1).unwrap().response
        };
        let usual = response(machine());
        let slow = response(MachineProfile { clock_hz: 250_000_000, ..machine() });
        let late = response(MachineProfile { late: Nanos(40_000), ..machine() });
        let away = response(MachineProfile { gap: gap(50, 2_000), ..machine() });
        assert!(usual < slow && usual < late && usual < away);
        // The second is there for 8 ms of its own and 1 ms of the first: at least five gaps.
        assert!(away >= usual + Nanos::from_micros(5 * 50), "{usual} and {away}");
    }

    #[test]
    fn the_archive_tells_the_kernel_the_times_of_the_computer() {
        let longest = |gap| {
            let plan = plan(SYSTEM, MachineProfile { gap, ..machine() });
            plan.system().kernel_times().longest_path()
        };
        assert_eq!(longest(gap(50, 2_000)), longest(None) + Nanos::from_micros(50));
    }

    #[test]
    fn gaps_take_from_budgets() {
        let job = |gap| {
            let plan = plan(SYSTEM, MachineProfile { gap, ..machine() });
            plan.core.system.lost_of(1)
        };
        let (none, some) = (job(None), job(gap(50, 2_000)));
        // Ten in a period of 20 ms, and one in the path that is counted once.
        assert_eq!(some, none + Nanos::from_micros(11 * 50));
        let too_much = refused(SYSTEM, MachineProfile { gap: gap(500, 2_000), ..machine() });
        assert!(!too_much.is_empty(), "the smaller budget is lost to them");
    }

    #[test]
    fn a_host_has_no_more_cores_than_worked_while_the_profile_was_made() {
        let refused = |cores: u16, machine: MachineProfile| {
            let task = |core: u16| {
                format!("[[process]]\nname = \"on-{core}\"\npriority = 1\ncore = {core}\n")
            };
            let tasks: String = (1..cores).map(task).collect();
            let text = SYSTEM.replace("name = \"s\"", &format!("name = \"s\"\ncores = {cores}"));
            let mut systems = parse_cores("s.toml", &(text + &tasks)).unwrap();
            systems.iter_mut().for_each(|system| system.plan_for(machine.clone()));
            let plans = Plan::of_cores(&systems);
            plans[0].findings.iter().map(Diagnostics::plain).collect::<String>()
        };
        for (cores, machine) in [(1, stressed(2)), (2, stressed(2)), (2, stressed(8))] {
            assert_eq!(refused(cores, machine), "");
        }
        for (cores, machine, worked) in [(2, machine(), "one"), (3, stressed(2), "2")] {
            let why = refused(cores, machine);
            let title = format!("the host has {cores} cores, and {worked} worked");
            let help = format!("whose `cores` are {cores} or more");
            let place = "s.toml:3:9";
            assert!([&*title, &*help, place].iter().all(|part| why.contains(part)), "{why}");
        }
    }

    #[test]
    fn what_the_plan_does_not_follow_is_refused() {
        assert_eq!(refused(SYSTEM, machine()), "");
        let emulated = refused(SYSTEM, MachineProfile { real: false, ..machine() });
        assert!(emulated.contains("emulated"), "{emulated}");
        let device = "[[device]]\nname = \"d\"\naddress = 0xfed00000\nsize = \"4K\"\n\
            irq = 20\ninterval = \"1ms\"\n";
        let device = format!("{SYSTEM}uses = [\"d\"]\n{device}");
        let unmeasured = refused(&device, MachineProfile { interrupt: None, ..machine() });
        assert!(unmeasured.contains("interrupts of `d`"), "{unmeasured}");
        let makes = format!("{SYSTEM}vcpus = 1\n");
        let makes = refused(&makes, MachineProfile { gap: gap(30, 2_000), ..machine() });
        assert!(makes.contains("may make VCPUs"), "{makes}");
        let often = refused(SYSTEM, MachineProfile { gap: gap(1, 4), ..machine() });
        assert!(often.contains("away twice"), "{often}");
    }
}
