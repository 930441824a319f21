//! Nobody's budget pays for the alarms, naps and timers of others, on a machine whose kernel takes
//! time: every entry takes some before it reads the clock, and more after that.

use crate::support::*;
use diapason_random::Random;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// The time of an entry before the clock is read, and after that.
const ENTRY: (u64, u64) = (80, 500);

/// How long others run before they nap.
const BURST: u64 = 300;

/// The victim's budget that went for something else, in the worst of 3 periods. The others make
/// their `missing` threads, and nap for at most so long.
fn stolen(sys: &mut Sys<'_>, victim: ThreadId, missing: &mut [u64; 4], naps: [u64; 4]) -> u64 {
    let mut random = Random::new(3);
    let (mut user, mut seen, mut worst, mut period) = (0, (0, 0), 0, 0);
    let vcpu = sys.host.kernel.threads[victim].vcpu;
    while period < 3 {
        let now = sys.host.now.0;
        if now / (10 * MS) > period {
            period = now / (10 * MS);
            let charged = sys.host.kernel.vcpus[vcpu].used.0;
            let (of_budget, of_user) = (charged - seen.0, user - seen.1);
            worst = worst.max(of_budget.saturating_sub(of_user));
            seen = (charged, user);
        }
        let (running, alarm) = (sys.running(), sys.host.kernel.next_alarm().0.max(now));
        if running.is_none() || running == victim {
            user += if running == victim { alarm - now } else { 0 };
            enter(sys, alarm, None);
            continue;
        }
        let process = usize::from(sys.running_process());
        if alarm <= now + BURST {
            enter(sys, alarm, None);
        } else if missing[process] > 0 {
            missing[process] -= 1;
            sys.host.now.0 += BURST;
            sys.call(Call::ThreadCreate, &[0x1000, 0, 40, 0]);
        } else {
            enter(sys, now + BURST, Some(1 + random.below(naps[process])));
        }
    }
    worst
}

/// At `at` the timer interrupts, or the running thread naps.
fn enter(sys: &mut Sys<'_>, at: u64, nap: Option<u64>) {
    sys.host.now = Nanos(at + ENTRY.0);
    match nap {
        None => sys.host.enter(Cause::Timer),
        Some(nap) => {
            let wake = sys.host.now.0 + ENTRY.1 + nap;
            sys.host.call(Call::SleepUntil, &[wake]);
        }
    }
    sys.host.now.0 += ENTRY.1;
}

/// A victim with 4 ms in 10 ms that always runs, and its neighbours: a more urgent one, a less
/// urgent one and one without a VCPU, each with so many threads.
fn neighbours(list: u8, threads: [u64; 3], naps: [u64; 3]) -> u64 {
    let plan = Plan::new().main_vcpu("A", MS, 5 * MS, 0).with_vcpu(|v| v.replenishments = list);
    let plan = plan.main_vcpu("V", 4 * MS, 10 * MS, 0).main_vcpu("L", MS, 20 * MS, 0);
    let plan = plan.process("a", 40).with(|p| p.vcpu = 0).process("v", 40).with(|p| p.vcpu = 1);
    let plan = plan.process("l", 40).with(|p| p.vcpu = 2).process("u", 40);
    run(&plan, |sys| {
        let victim = sys.thread(1, 0);
        let naps = [naps[0], 0, naps[1], naps[2]];
        let mut missing = [threads[0] - 1, 0, threads[1] - 1, threads[2] - 1];
        let worst = stolen(sys, victim, &mut missing, naps);
        assert_eq!(missing[0], 0, "the more urgent one ran");
        worst
    })
}

#[test]
fn nobody_takes_more_than_half_a_percent_of_anybodys_budget() {
    let most = 4 * MS / 200;
    for list in [2] {
        for naps in [[2 * US, 2 * US, 2 * US], [20 * US, 5 * US, 900], [700 * US, US, 40 * US]] {
            for threads in [[1, 4, 4], [4, 4, 4]] {
                let worst = neighbours(list, threads, naps);
                assert!(worst <= most, "{worst} ns of {} with {threads:?} {naps:?}", 4 * MS);
            }
        }
    }
}
