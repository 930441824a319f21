//! Switches are not paid for by the budget of whom they go to, but only as many as a plan counts:
//! two for each place in a list, there and back. A thread that runs in short pieces pays for all
//! others.

use crate::support::*;
use diapason_core::VcpuId;
use diapason_costs::SWITCH_GRACE;
use diapason_random::Random;

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
        let free = 3 * 8 * SWITCH_GRACE.0;
        assert!(ran <= 2 * MS + free, "ran {ran} ns in two periods, charged {charged}");
        assert!(charged + free >= ran && charged <= 2 * MS);
    });
}

/// Budget that neither of two VCPUs was charged for what their threads ran: U runs for 10 us and
/// naps for 500 us, `times` times, and V runs meanwhile.
fn spared(times: u64) -> u64 {
    let plan = Plan::new().main_vcpu("U", 3 * MS, 10 * MS, 0).main_vcpu("V", 15 * MS, 20 * MS, 0);
    let plan = plan.process("u", 40).with(|p| p.vcpu = 0).process("v", 30).with(|p| p.vcpu = 1);
    run(&plan, |sys| {
        let (u, v) = (sys.thread(0, 0), sys.thread(1, 0));
        for _ in 0..times {
            sys.until(sys.host.now.0 + 10_000);
            let wake = sys.host.now.0 + 500_000;
            sys.call(Call::SleepUntil, &[wake]);
            assert_eq!(sys.running(), v);
            sys.until(wake);
            assert_eq!(sys.running(), u);
        }
        sys.until(sys.host.now.0 + 10_000);
        sys.host.kernel.close_accounts(sys.host.now);
        let charged = |v: u16| sys.host.kernel.vcpus[VcpuId::new(v)].used.0;
        sys.host.now.0 - charged(0) - charged(1)
    })
}

#[test]
fn a_way_there_that_is_spared_brings_the_way_back() {
    // U is spared eight in 10 ms, and so is V each way back. U itself pays for every further
    // switch, and for V's ways back with it.
    for (times, switches) in [(1, 3), (2, 5), (3, 7), (6, 13)] {
        assert_eq!(spared(times), switches * SWITCH_GRACE.0, "{times} times");
    }
}

#[test]
fn no_window_of_a_period_spares_more_switches_than_a_plan_counts() {
    let mut random = Random::new(12);
    for n in [2, 3, 8] {
        let plan = Plan::new().main_vcpu("U", 10 * MS, 10 * MS, 0);
        let plan = plan.with_vcpu(|v| v.replenishments = n).process("u", 40).with(|p| p.vcpu = 0);
        let spares = run(&plan, |sys| spares(sys, &mut random));
        // Each may bring another one its way back, and two are planned for each place.
        for from in &spares {
            let window = spares.iter().filter(|at| (*from..from + 10 * MS).contains(at));
            assert!(window.count() <= usize::from(n), "more than {n} from {from}");
        }
        assert!(spares.len() >= 19 * usize::from(n / 2), "so many are left");
    }
}

#[test]
fn an_io_vcpu_is_spared_a_switch_for_each_wake_up_of_the_plan() {
    let seen = [1, 2].map(|wakes| {
        let plan = Plan::new().main_vcpu("V", MS, 10 * MS, 0).io_vcpu("X", 100_000, 1, 0);
        let plan = plan.with_vcpu(|v| (v.interval, v.replenishments) = (MS, wakes));
        let plan = plan.process("x", 40).with(|p| p.vcpu = 1);
        let spares = run(&plan, |sys| spares(sys, &mut Random::new(7)));
        for from in &spares {
            let window = spares.iter().filter(|at| (*from..from + MS).contains(at));
            assert!(window.count() <= usize::from(wakes), "more than {wakes} from {from}");
        }
        spares.len()
    });
    assert!(seen[0] > 200 / 4, "every nap of its interval or longer: {seen:?}");
    assert!(seen[1] > seen[0], "more of them where it may be woken more often: {seen:?}");
}

/// Returns when switches to the VCPU of a thread that naps were not charged, in 20 periods.
fn spares(sys: &mut Sys<'_>, random: &mut Random) -> Vec<u64> {
    let (u, mut spares, mut seen) = (sys.thread(0, 0), Vec::new(), 0);
    while sys.host.now.0 < 200 * MS {
        if sys.running() != u {
            let next = sys.host.kernel.next_alarm().0;
            sys.until(next.max(sys.host.now.0 + 1));
            continue;
        }
        let ran_from = sys.host.now.0;
        sys.until(ran_from + 10_000);
        if sys.running() == u {
            sys.call(Call::SleepUntil, &[sys.host.now.0 + 1 + random.below(4 * MS)]);
        }
        let kernel = &sys.host.kernel;
        let spared = kernel.threads[u].used.0 - kernel.vcpus[kernel.threads[u].vcpu].used.0;
        if spared > seen {
            let count = (spared - seen) / SWITCH_GRACE.0;
            spares.extend((0..count).map(|_| ran_from));
        }
        seen = spared;
    }
    spares
}
