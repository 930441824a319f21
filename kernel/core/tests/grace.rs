//! Switches are not paid for by the budget of whom they go to, but only as many as a plan counts:
//! who runs in short pieces pays for all others.

mod support;
use diapason_core::VcpuId;
use support::*;

const MS: u64 = 1_000_000;

#[test]
fn short_runs_are_charged() {
    // V has 1 ms in 10 ms; its thread runs 700 ns, naps 100 ns, for ever. L is always ready.
    let plan = Plan::new().main_vcpu("V", MS, 10 * MS, 0).main_vcpu("L", 5 * MS, 20 * MS, 0);
    let plan = plan.process("v", 40).with(|p| p.vcpu = 0).process("l", 30).with(|p| p.vcpu = 1);
    run(&plan, |sys| {
        let v = sys.thread(0, 0);
        while sys.host.now.0 < 20 * MS {
            let now = sys.host.now.0;
            if sys.running() != v {
                let next = sys.host.kernel.next_alarm().0;
                sys.until(next.clamp(now + 1, 20 * MS));
                continue;
            }
            sys.until(now + 700);
            if sys.running() == v {
                let wake = sys.host.now.0 + 100;
                sys.call(Call::SleepUntil, &[wake]);
            }
        }
        let kernel = &sys.host.kernel;
        let (ran, charged) = (kernel.threads[v].used.0, kernel.vcpus[VcpuId::new(0)].used.0);
        let free = 3 * 8 * diapason_abi::archive::SWITCH_GRACE.0;
        assert!(ran <= 2 * MS + free, "ran {ran} ns in two periods, charged {charged}");
        assert!(charged + free >= ran && charged <= 2 * MS);
    });
}
