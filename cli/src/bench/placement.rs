//! Where the threads of the benchmark live: on no VCPU, both sides on one, or each on its own.
//!
//! Threads of real systems live on VCPUs. So each operation is counted in every placement, from one
//! description: a placement adds lines to it.

use diapason_costs::targets::Placement;

/// The placements in the order of the report.
pub const PLACEMENTS: [Placement; 4] =
    [Placement::None, Placement::SameVcpu, Placement::TwoVcpus, Placement::ByDeadline];

/// The pause between operations on VCPUs in us. Each wakes a VCPU; so no more than four places of
/// a replenishment list are taken in a period.
const PAUSE: u64 = 5_000;
/// The processes of the benchmark, and whether each one is of the side that ends operations.
const PROCESSES: [(&str, bool); 3] =
    [("bench", false), ("bench-peer", true), ("bench-faulter", false)];
/// The device that interrupts comes no sooner than this.
const INTERVAL: &str = "1ms";

/// Returns the name of a placement in messages.
#[must_use]
pub const fn name(placement: Placement) -> &'static str {
    match placement {
        Placement::None => "no VCPU",
        Placement::SameVcpu => "same VCPU",
        Placement::TwoVcpus => "two VCPUs",
        Placement::ByDeadline => "two VCPUs by deadline",
    }
}

/// Returns the key of a placement for programs.
pub(super) const fn key(placement: Placement) -> &'static str {
    match placement {
        Placement::None => "no_vcpu",
        Placement::SameVcpu => "same_vcpu",
        Placement::TwoVcpus => "two_vcpus",
        Placement::ByDeadline => "by_deadline",
    }
}

/// Returns the description of the benchmark with its threads in this placement.
#[must_use]
pub fn placed(placement: Placement, description: &str) -> String {
    if placement == Placement::None {
        return description.into();
    }
    let one = placement == Placement::SameVcpu;
    let mut text = description.to_string();
    for (process, ends) in PROCESSES {
        let vcpu = if ends && !one { "ends" } else { "begins" };
        let name = format!("[[process]]\nname = \"{process}\"\n");
        let more = format!("{name}vcpu = \"{vcpu}\"\narguments = [{PAUSE}]\n");
        text = text.replacen(&name, &more, 1);
    }
    let device = "[[device]]\nname = \"hpet\"\n";
    text = text.replacen(device, &format!("{device}interval = \"{INTERVAL}\"\n"), 1);
    text.push_str("\n[[vcpu]]\nname = \"begins\"\nbudget = \"12ms\"\nperiod = \"20ms\"\n");
    if !one {
        text.push_str("\n[[vcpu]]\nname = \"ends\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n");
    }
    if placement == Placement::ByDeadline {
        text.push_str("\n[scheduling]\ndynamic = \"all\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placement_is_a_description_that_holds_what_it_says() {
        let text = include_str!("../../../examples/bench.toml");
        for placement in PLACEMENTS {
            let none = |_: &str| Err("no other file".into());
            let system = diapason_system::parse_any("bench", &placed(placement, text), none);
            let Ok(diapason_system::Description::One(system)) = system else {
                panic!("{}: {system:?}", name(placement));
            };
            let vcpus: Vec<_> = system.vcpus.iter().map(|vcpu| &*vcpu.name).collect();
            let expected: &[&str] = match placement {
                Placement::None => &[],
                Placement::SameVcpu => &["begins"],
                Placement::TwoVcpus | Placement::ByDeadline => &["begins", "ends"],
            };
            assert_eq!(vcpus, expected, "{}", name(placement));
        }
    }
}
