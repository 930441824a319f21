//! Work for a stop-watch outside: `time cargo test --release … -- --ignored NAME`, as many sets as
//! the name says. Nothing here reads a clock; what is checked is that the sets are worth the time.

use diapason_abi::Nanos;
use diapason_analysis::server::tasks::{PriorityOrder, SporadicTask, edf, response_times};
use diapason_analysis::server::{
    IoVcpu, MainVcpu, Queue, SharedCore, Unfit, Utilization, admit, breakdown, first_failure,
};
use diapason_vcpu::sim::Random;

/// VCPUs and two I/O VCPUs, periods from 1 ms to 1 s to the nanosecond, each with a percentage of
/// its part of the processor.
fn system(random: &mut Random, count: u64, percent: (u64, u64)) -> SharedCore {
    let mains = (0..count).map(|_| {
        let period = random.between(1_000_000, 10_000_000) * [1, 10, 100][random.below(3) as usize];
        let budget = period / count * random.between(percent.0, percent.1) / 100;
        MainVcpu::new(Nanos(budget), Nanos(period))
    });
    let mut system = SharedCore::new(mains.collect(), vec![]);
    system.kernel_section = Nanos(3_000);
    for io in 0..2 {
        let share = Utilization::from_ppm(10_000).unwrap();
        system.ios.push(IoVcpu { wake_gap: Nanos(125_000), ..IoVcpu::new(share, vec![io]) });
    }
    system
}

#[test]
#[ignore = "for a stop-watch"]
fn a_hundred_thousand_sets_of_ten() {
    let mut random = Random::new(1);
    let (mut fixed, mut deadlines, mut plain, mut plain_edf) = (0, 0, 0, 0);
    for _ in 0..100_000 {
        let mut system = system(&mut random, 10, (70, 115));
        fixed += u32::from(first_failure(&system) == Ok(None));
        system.mains.iter_mut().for_each(|main| main.queue = Queue::Dp(0));
        deadlines += u32::from(first_failure(&system) == Ok(None));
        let tasks = system.mains.iter().map(|main| SporadicTask {
            deadline: Nanos(main.period.0 / 10 * random.between(8, 10)),
            ..SporadicTask::new(main.budget, main.period)
        });
        let tasks: Vec<SporadicTask> = tasks.collect();
        plain += u32::from(
            response_times(&tasks, PriorityOrder::DeadlineMonotonic, Nanos::ZERO).is_ok(),
        );
        plain_edf += u32::from(edf(&tasks, Nanos::ZERO).is_ok());
    }
    println!("of 100000: {fixed} and {deadlines} of servers, {plain} and {plain_edf} of tasks");
    assert!(fixed > 1_000 && deadlines > 1_000 && plain > 1_000 && plain_edf > plain);
}

#[test]
#[ignore = "for a stop-watch"]
fn a_thousand_vcpus_ten_times() {
    let mut random = Random::new(2);
    for _ in 0..10 {
        let mut system = system(&mut random, 1_000, (60, 100));
        system.kernel_section = Nanos(100);
        assert!(admit(&system).is_ok());
        assert!(breakdown(&system) > Some(1_000));
        // And once more with a VCPU that asks for too much, and all that would have fit instead.
        let greedy = random.below(1_000) as usize;
        system.mains[greedy].budget = Nanos(system.mains[greedy].period.0 / 3);
        let Err(Unfit::Refused(refusal)) = admit(&system) else { panic!("too much") };
        println!("{refusal}");
    }
}
