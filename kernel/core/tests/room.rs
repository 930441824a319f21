//! The room of a core for VCPUs that programs make and change, by the promises of the others.

use crate::support::plan::key;
use crate::support::*;
use diapason_abi::Errno::Overload;

const MS: u64 = 1_000_000;

fn lab() -> Plan {
    let plan = Plan::new().main_vcpu("V", MS, 10 * MS, 0).main_vcpu("W", 2 * MS, 20 * MS, 0);
    let plan = plan.process("p", 40).with(|p| (p.vcpu, p.vcpus) = (0, 2));
    plan.process("q", 30).with(|p| p.vcpu = 1)
}

#[test]
fn what_was_admitted_with_the_system_needs_no_room() {
    // The closed form leaves no room for as much again, and `plan` has admitted it.
    let full = lab().main_vcpu("X", 9_000_000, 20_000_000, 0);
    run(&full.with_vcpu(|v| (v.most, v.least) = (9_500_000, 19_000_000)), |sys| {
        assert!(sys.ok(Call::VcpuFit, &[20 * MS]) < MS);
        let v = sys.ok(Call::VcpuCreate, &[key("X"), 0]);
        sys.ok(Call::VcpuSet, &[v, 95 * MS / 10, 19 * MS]);
        sys.ok(Call::VcpuSet, &[v, MS, 40 * MS]);
        sys.ok(Call::VcpuSet, &[v, 9 * MS, 19 * MS]);
        assert_eq!(sys.err(Call::VcpuSet, &[v, 96 * MS / 10, 20 * MS]), Overload);
        assert_eq!(sys.err(Call::VcpuSet, &[v, MS, 18 * MS]), Overload);
    });
}

#[test]
fn a_longer_list_and_more_frequent_grants_leave_less() {
    let [few, many] = [2, 8].map(|list| {
        run(&lab(), |sys| {
            sys.ok(Call::VcpuCreate, &[0, MS, 10 * MS, list, 0]);
            sys.ok(Call::VcpuFit, &[10 * MS])
        })
    });
    assert!(few > many && few - many < 100_000, "{few}, {many}");
    // The same share in a shorter period: what serves it is granted less at a time.
    let shorter = |plan: Plan| {
        run(&plan, |sys| {
            let v = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
            let before = sys.ok(Call::VcpuFit, &[MS]);
            sys.ok(Call::VcpuSet, &[v, MS / 2, 5 * MS]);
            before - sys.ok(Call::VcpuFit, &[MS])
        })
    };
    let (alone, served) = (shorter(lab()), shorter(lab().io_vcpu("io", 20_000, 1, 0)));
    assert!(served > alone, "{served}, {alone}");
}
