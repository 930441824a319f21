//! What the kernel says of its VCPUs at the end of a run: what they used, and on what terms.

mod support;
use diapason_core::VcpuId;
use support::*;

const MS: u64 = 1_000_000;

/// `V` and an I/O VCPU `X` that serves it with a tenth; process `p` on `V`.
fn lab() -> Plan {
    let plan = Plan::new().main_vcpu("V", MS, 10 * MS, 0).io_vcpu("X", 100_000, 1, 0);
    plan.process("p", 40).with(|p| (p.vcpu, p.vcpus) = (0, 1))
}

/// Process, budget, period, share, longest period, and changes of a VCPU.
fn terms(sys: &Sys<'_>, vcpu: u16) -> Option<[u64; 6]> {
    let w = sys.host.kernel.terms_of(VcpuId::new(vcpu))?;
    assert_eq!(w[0], u64::from(vcpu));
    Some([w[1], w[2], w[3], w[4], w[5], w[7]])
}

#[test]
fn terms_are_those_of_the_description() {
    run(&lab(), |sys| {
        assert_eq!(terms(sys, 0), Some([u64::MAX, MS, 10 * MS, 0, 10 * MS, 0]));
        assert_eq!(terms(sys, 1), Some([u64::MAX, MS, 10 * MS, 100_000, 10 * MS, 0]));
        assert_eq!(terms(sys, 2), None, "nobody has made it yet");
    });
}

#[test]
fn a_vcpu_made_at_run_time_has_its_maker() {
    run(&lab(), |sys| {
        let made = sys.ok(Call::VcpuCreate, &[0, 2 * MS, 30 * MS, 4, 0]);
        assert_eq!(terms(sys, 2), Some([0, 2 * MS, 30 * MS, 0, 30 * MS, 0]));
        sys.ok(Call::VcpuSet, &[made, 2 * MS, 20 * MS]);
        assert_eq!(terms(sys, 2), Some([0, 2 * MS, 20 * MS, 0, 30 * MS, 1]));
        sys.ok(Call::VcpuDelete, &[made]);
        sys.ok(Call::VcpuCreate, &[0, MS, 20 * MS, 4, 0]);
        assert_eq!(terms(sys, 2), Some([0, MS, 20 * MS, 0, 20 * MS, 0]), "a life of its own");
    });
}

#[test]
fn a_change_is_one_of_those_that_serve_it_too() {
    run(&lab(), |sys| {
        let v = sys.ok(Call::VcpuCreate, &[key("V"), 0]);
        for (period, longest, changes) in [(40 * MS, 40 * MS, 1), (20 * MS, 40 * MS, 2)] {
            sys.ok(Call::VcpuSet, &[v, MS, period]);
            assert_eq!(terms(sys, 0), Some([u64::MAX, MS, period, 0, longest, changes]));
            let grant = period / 10;
            assert_eq!(terms(sys, 1), Some([u64::MAX, grant, period, 100_000, longest, changes]));
        }
    });
}
