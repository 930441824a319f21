//! Faults and restarts on VCPUs: a report that is handed over without a decision, and a start
//! within the short way of a receive, come out as the kernel would have decided.

use crate::support::*;
use diapason_abi::Nanos;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;
/// The VCPU of processes without one.
const BARE: u16 = u16::MAX;
/// A deadline that makes the way long and changes nothing else: it is beyond every budget.
const FAR: u64 = 1 << 40;

/// The visible state after a step: who runs, the next alarm, all budgets, and all times used.
type Seen = (ThreadId, Nanos, Vec<Option<Nanos>>, Vec<Nanos>);

fn seen(sys: &Sys<'_>) -> Seen {
    let (kernel, now) = (&sys.host.kernel, sys.host.now);
    let budgets = kernel.vcpus.ids().map(|id| kernel.budget_of(id, now)).collect();
    let used = kernel.threads.ids().map(|id| kernel.threads[id].used).collect();
    // That far the deadline is the alarm only if no budget is used.
    let alarm = if kernel.next_alarm() < Nanos(FAR) { kernel.next_alarm() } else { Nanos(FAR) };
    (sys.running(), alarm, budgets, used)
}

/// Returns the process whose thread runs, if any does.
fn process_of(sys: &Sys<'_>) -> Option<u16> {
    sys.running().is_some().then(|| sys.running_process())
}

/// `boss` restarts `first` twenty times. `other` is always ready.
fn play([boss, first, other]: [u16; 3], deadline: u64) -> Vec<Seen> {
    let plan = Plan::new().main_vcpu("U", MS, 10 * MS, 0).main_vcpu("V", 9 * MS, 20 * MS, 0);
    let plan = plan.process("boss", 50).with(|p| p.vcpu = boss);
    let plan = plan.process("first", 40).supervised_by(0).with(|p| p.vcpu = first);
    let plan = plan.with(|p| p.restarts_max = u32::MAX);
    let plan = plan.process("other", 30).with(|p| p.vcpu = other).reports("reports", 2, 0);
    run(&plan, |sys| {
        if process_of(sys) != Some(0) {
            return Vec::new();
        }
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0x40));
        sys.blocks(Call::MboxReceive, &[reports, buffer, deadline]);
        sys.host.tried_every = if deadline == FOREVER { 1 } else { u64::MAX };
        let (mut states, mut now) = (Vec::new(), 0);
        for _ in 0..20 {
            now += 301;
            sys.until(now);
            // A VCPU that is woken more often than its list is long has no budget for a while.
            if process_of(sys) != Some(1) {
                break;
            }
            sys.crash(FaultCause::StackOverflow, 0);
            states.push(seen(sys));
            now += 203;
            sys.until(now);
            if process_of(sys) != Some(0) {
                break;
            }
            sys.call(Call::ProcCreate, &[key("first"), reports, buffer, deadline]);
            states.push(seen(sys));
        }
        let short = sys.host.shortcuts.get(&Call::ProcCreate).copied().unwrap_or(0);
        assert!(deadline == FOREVER || short == 0, "no short way");
        let plain = first == boss || first == 1 && boss == 0;
        let starts = states.len() as u64 / 2;
        assert!(deadline != FOREVER || !plain || short == starts, "{short} short ways of {boss}");
        states
    })
}

#[test]
fn a_restart_is_the_same_by_the_short_and_the_long_way() {
    let mut played = 0;
    for boss in [BARE, 0, 1] {
        for first in [BARE, 0, 1] {
            for other in [BARE, 0, 1] {
                let [short, long] = [FOREVER, FAR].map(|at| play([boss, first, other], at));
                played += short.len();
                for (step, (short, long)) in short.iter().zip(&long).enumerate() {
                    assert_eq!(short, long, "{boss} starts {first} beside {other}, step {step}");
                }
                assert_eq!(short.len(), long.len());
            }
        }
    }
    assert!(played > 100, "{played} states");
}

#[test]
fn a_process_on_a_vcpu_runs_at_once_if_a_thread_without_one_starts_it() {
    let plan = Plan::new().main_vcpu("U", MS, 10 * MS, 0).process("boss", 50);
    let plan = plan.process("first", 40).supervised_by(0).with(|p| p.vcpu = 0);
    let plan = plan.with(|p| p.start_at_boot = false).process("other", 30);
    run(&plan.reports("reports", 2, 0), |sys| {
        let (reports, buffer) = (sys.open(Call::MboxCreate, "reports"), sys.address(0x40));
        sys.host.tried_every = 1;
        sys.blocks(Call::ProcCreate, &[key("first"), reports, buffer, FOREVER]);
        assert_eq!(sys.running_process(), 1, "not the other one, which is ready, too");
    });
}
