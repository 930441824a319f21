//! The kernel's accounts of its VCPUs at the end of a run: use, terms, and the cost of jobs.

use crate::support::*;
use diapason_abi::call::MUTEX;
use diapason_core::VcpuId;
use diapason_costs::SWITCH_GRACE;

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
fn what_a_vcpu_paid_counts_when_another_takes_its_place() {
    run(&lab(), |sys| {
        let made = sys.ok(Call::VcpuCreate, &[0, MS, 10 * MS, 4, 0]);
        let child = sys.ok(Call::ThreadCreate, &[0x1000, 0, 40, 0, made]);
        sys.ok(Call::ThreadDetach, &[child]);
        sys.blocks(Call::SleepUntil, &[30 * MS]);
        sys.until(20 * MS + MS / 2);
        assert_eq!(sys.call(Call::ThreadExit, &[0]), Outcome::Ended);
        sys.until(30 * MS);
        sys.ok(Call::VcpuDelete, &[made]);
        let paid = sys.host.kernel.account_of(VcpuId::new(2)).expect("it existed")[1];
        assert!(paid > 0);
        assert_eq!(sys.host.kernel.retired().0, 0);
        sys.ok(Call::VcpuCreate, &[0, MS, 20 * MS, 4, 0]);
        assert_eq!(sys.host.kernel.retired().0, paid);
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

/// Returns the largest cost of a thread's jobs in the accounts.
fn job(sys: &mut Sys<'_>, thread: ThreadId) -> [u64; 2] {
    sys.host.kernel.close_accounts(sys.host.now);
    let w = sys.host.kernel.job_account(thread, sys.host.now).expect("it has jobs");
    [w[2], w[3]]
}

#[test]
fn a_job_costs_the_budget_that_its_own_work_uses() {
    let plan = Plan::new().main_vcpu("U", MS, 5 * MS, 0).main_vcpu("V", 4 * MS, 10 * MS, 0);
    let plan = plan.process("u", 40).with(|p| p.vcpu = 0).process("v", 30).with(|p| p.vcpu = 1);
    run(&plan, |sys| {
        let (u, v) = (sys.thread(0, 0), sys.thread(1, 0));
        assert_eq!(sys.running(), u);
        assert_eq!(sys.host.kernel.job_account(u, sys.host.now), None, "it is not periodic");
        sys.blocks(Call::SleepUntil, &[11 * MS]);
        assert_eq!(sys.running(), v);
        sys.until(10_000);
        sys.blocks(Call::JobsStart, &[10 * MS, 10 * MS, 10 * MS]);
        sys.until(10 * MS);
        // U has 300 us of the job's time, and each switch to V is spared.
        sys.until(11 * MS);
        sys.until(11 * MS + 300_000);
        sys.blocks(Call::SleepUntil, &[80 * MS]);
        sys.until(12 * MS);
        let cost = 2 * MS - 300_000 - 2 * SWITCH_GRACE.0;
        assert_eq!(job(sys, v), [1, cost], "one that is under way has used so much at least");
        sys.blocks(Call::JobWait, &[]);
        sys.until(20 * MS);
        sys.until(20 * MS + 50_000);
        sys.blocks(Call::JobWait, &[]);
        assert_eq!(job(sys, v), [1, cost], "the longest counts");
        // A job that waits for budget is one job: 4 ms, and 1 ms of the next period.
        sys.until(30 * MS);
        sys.until(34 * MS + SWITCH_GRACE.0);
        assert_eq!(sys.running(), ThreadId::NONE);
        sys.until(40 * MS);
        sys.until(41 * MS + SWITCH_GRACE.0);
        sys.call(Call::JobWait, &[]);
        assert_eq!(job(sys, v), [1, 5 * MS]);
    });
}

#[test]
fn a_job_that_is_helped_costs_its_own_work_whoever_pays() {
    let plan = Plan::new().main_vcpu("U", 2 * MS, 5 * MS, 0).main_vcpu("V", MS, 10 * MS, 0);
    let plan = plan.semaphore("s", MUTEX);
    let plan = plan.process("u", 40).with(|p| p.vcpu = 0).process("v", 30).with(|p| p.vcpu = 1);
    run(&plan, |sys| {
        let (u, v) = (sys.thread(0, 0), sys.thread(1, 0));
        let s = sys.open(Call::SemCreate, "s");
        sys.blocks(Call::JobsStart, &[10 * MS + 500_000, 20 * MS, 20 * MS]);
        let mine = sys.open(Call::SemCreate, "s");
        sys.blocks(Call::JobsStart, &[10 * MS, 20 * MS, 20 * MS]);
        sys.until(10 * MS);
        assert_eq!(sys.running(), v);
        sys.ok(Call::SemLock, &[mine, FOREVER]);
        sys.until(10 * MS + 500_000);
        assert_eq!(sys.running(), u);
        sys.until(10 * MS + 600_000);
        sys.call(Call::SemLock, &[s, FOREVER]);
        assert_eq!(sys.running(), v, "in the place of u");
        sys.until(10 * MS + 900_000);
        sys.call(Call::SemUnlock, &[mine]);
        assert_eq!(sys.running(), u);
        let grace = SWITCH_GRACE.0;
        assert_eq!(job(sys, v), [1, 800_000 - grace], "its own 500 us, and 300 us that U paid");
        assert_eq!(job(sys, u), [0, 100_000 - grace]);
    });
}
