//! Properties: against looking everywhere, against simulation, and for every input whatever.

use diapason_abi::Nanos;
use diapason_analysis::server::tasks::{Miss, PriorityOrder, SporadicTask, edf, response_times};
use diapason_analysis::server::{
    BudgetServer, Found, InterruptSource, IoSupply, IoVcpu, MainVcpu, PERIOD_MAX, Queue,
    SharedCore, SharedIo, Shortfall, Stream, Supply, Unfit, Utilization, admit, breakdown,
    equation_one, first_failure, largest_budget, smallest_period, wide,
};
use diapason_vcpu::sim::Random;

fn tasks(random: &mut Random, constrained: bool) -> Vec<SporadicTask> {
    let count = random.between(1, 5);
    let mut tasks = Vec::new();
    for _ in 0..count {
        let period = [4, 5, 6, 8, 10, 12, 15, 20, 24, 30][random.below(10) as usize];
        let cost = random.between(1, 1 + 2 * period / (count + 1));
        let latest = if constrained { period } else { 2 * period };
        let deadline = if random.one_in(2) { period } else { random.between(cost, latest) };
        tasks.push(SporadicTask {
            cost: Nanos(cost),
            period: Nanos(period),
            deadline: Nanos(deadline),
        });
    }
    tasks
}

/// Returns the worst response of each task when all are released at 0 and run by `urgent` for
/// `horizon`.
fn scheduled(tasks: &[SporadicTask], horizon: u64, urgent: impl Fn(usize, u64) -> u64) -> Vec<u64> {
    let mut worst = vec![0; tasks.len()];
    // Pending jobs: task, release, what is left.
    let mut jobs: Vec<(usize, u64, u64)> = Vec::new();
    for now in 0..horizon {
        for (index, task) in tasks.iter().enumerate() {
            if now % task.period.0 == 0 {
                jobs.push((index, now, task.cost.0));
            }
        }
        let next = (0..jobs.len()).min_by_key(|at| (urgent(jobs[*at].0, jobs[*at].1), jobs[*at]));
        let Some(next) = next else { continue };
        jobs[next].2 -= 1;
        if jobs[next].2 == 0 {
            let (index, release, _) = jobs.remove(next);
            worst[index] = worst[index].max(now + 1 - release);
        }
    }
    for (index, release, _) in jobs {
        worst[index] = worst[index].max(horizon - release);
    }
    worst
}

/// A common multiple of all periods that [`tasks`] draws.
const HYPERPERIOD: u64 = 120;

/// Too much work in the long run shows as a backlog, not always as a miss before the end.
fn overloaded(tasks: &[SporadicTask]) -> bool {
    let load = tasks.iter().map(|task| task.cost.0 * HYPERPERIOD / task.period.0);
    load.sum::<u64>() > HYPERPERIOD
}

#[test]
fn response_times_are_those_of_the_critical_instant() {
    let mut random = Random::new(1);
    let (mut met, mut missed) = (0, 0);
    for _ in 0..3_000 {
        let tasks = tasks(&mut random, false);
        let by_period = |index: usize, _| tasks[index].period.0 * 8 + index as u64;
        let seen = scheduled(&tasks, 2 * HYPERPERIOD, by_period);
        let late = overloaded(&tasks)
            || (0..tasks.len()).any(|index| seen[index] > tasks[index].deadline.0);
        match response_times(&tasks, PriorityOrder::RateMonotonic, Nanos::ZERO) {
            Ok(found) => {
                met += 1;
                assert_eq!(found.iter().map(|time| time.0).collect::<Vec<_>>(), seen, "{tasks:?}");
            }
            Err(Miss::Late(_, _)) => {
                missed += 1;
                assert!(late, "{tasks:?}");
            }
            Err(other) => panic!("{other:?} of {tasks:?}"),
        }
    }
    assert!(met > 500 && missed > 500, "{met} {missed}");
}

#[test]
fn edf_is_exact() {
    let mut random = Random::new(2);
    let (mut met, mut missed) = (0, 0);
    for _ in 0..3_000 {
        let tasks = tasks(&mut random, false);
        let by_deadline = |index: usize, release: u64| release + tasks[index].deadline.0;
        let seen = scheduled(&tasks, 2 * HYPERPERIOD, by_deadline);
        let late = overloaded(&tasks)
            || (0..tasks.len()).any(|index| seen[index] > tasks[index].deadline.0);
        assert_eq!(edf(&tasks, Nanos::ZERO).is_err(), late, "{tasks:?} {seen:?}");
        if late { missed += 1 } else { met += 1 }
    }
    assert!(met > 500 && missed > 500, "{met} {missed}");
}

/// Returns a small system; not always one that makes sense.
fn small(random: &mut Random) -> SharedCore {
    let count = random.between(1, 4);
    let mains = (0..count).map(|_| {
        let period = random.between(4, 40);
        let budget = random.between(1, 1 + period / count);
        MainVcpu {
            chunks: random.between(1, 4) as u32,
            ..MainVcpu::new(Nanos(budget), Nanos(period))
        }
    });
    let mut system = SharedCore::new(mains.collect(), vec![]);
    for _ in 0..random.below(3) {
        let share =
            Utilization::from_ppm([50_000, 100_000, 150_000, 250_000][random.below(4) as usize]);
        let mut io = IoVcpu::new(share.unwrap(), vec![random.below(count) as usize]);
        io.wake_gap = Nanos(random.between(1, 20));
        io.wakes = random.between(1, 3) as u32;
        system.ios.push(io);
    }
    if random.one_in(2) {
        system.sources.push(InterruptSource::free(Nanos(random.between(4, 20)), Nanos(1)));
        system.kernel_section = Nanos(random.below(3));
    }
    system.switch = Nanos(u64::from(random.one_in(4)));
    system.overrun = Nanos(u64::from(random.one_in(4)));
    system
}

/// §1.2, written down once more: R(c) by counting up, from the description alone.
fn response_by_counting(system: &SharedCore, vcpu: usize) -> Option<u64> {
    let own = system.mains[vcpu];
    let cost = |main: &MainVcpu| main.budget.0 + 2 * system.switch.0 * u64::from(main.chunks);
    (1..=own.period.0).find(|w| {
        let mut sum = system.kernel_section.0 + cost(&own) + system.overrun.0;
        sum += system.overrun.0 * system.ios.len() as u64;
        for (index, main) in system.mains.iter().enumerate() {
            if (main.period, index) < (own.period, vcpu) {
                sum += w.div_ceil(main.period.0) * cost(main) + system.overrun.0;
            }
        }
        for io in &system.ios {
            sum += w.div_ceil(io.wake_gap.0) * u64::from(io.wakes) * 2 * system.switch.0;
            let period = system.mains[io.serves[0]].period;
            if period <= own.period {
                let quantum = io.quantum(period).0;
                let run = if *w <= quantum { *w } else { quantum + io.share.of(w - quantum) };
                sum += run + 2 * system.switch.0 * (run.div_ceil(quantum) + 1);
            }
        }
        let halves = system.sources.iter().map(|source| w.div_ceil(source.gap.0) * source.cost.0);
        sum + halves.sum::<u64>() <= *w
    })
}

#[test]
fn the_test_is_its_formula() {
    let mut random = Random::new(3);
    let (mut held, mut failed) = (0, 0);
    for _ in 0..5_000 {
        let system = small(&mut random);
        if system.check().is_err() {
            continue;
        }
        let order = system.precedence();
        let counted = order.iter().map(|vcpu| (*vcpu, response_by_counting(&system, *vcpu)));
        let first = counted.clone().find(|(_, response)| response.is_none());
        match admit(&system) {
            Ok(admission) => {
                held += 1;
                for (vcpu, response) in counted {
                    let found = admission.responses[vcpu].response.0;
                    assert_eq!(Some(found), response, "{vcpu} of {system:?}");
                }
            }
            Err(Unfit::Refused(refusal)) => {
                failed += 1;
                assert_eq!(first.map(|(vcpu, _)| vcpu), Some(refusal.vcpu), "{system:?}");
                assert!(matches!(refusal.failure, Shortfall::Late(_)), "{system:?}");
            }
            Err(nonsense) => panic!("{nonsense:?}"),
        }
    }
    assert!(held > 500 && failed > 500, "{held} {failed}");
}

#[test]
fn what_would_have_fit_fits_and_more_does_not() {
    let mut random = Random::new(4);
    let mut remedies = 0;
    for _ in 0..1_500 {
        let system = small(&mut random);
        let Err(Unfit::Refused(refusal)) = admit(&system) else { continue };
        let holds = |change: &dyn Fn(&mut MainVcpu)| {
            let mut changed = system.clone();
            change(&mut changed.mains[refusal.vcpu]);
            first_failure(&changed) == Ok(None)
        };
        if let Some(budget) = refusal.largest_budget {
            remedies += 1;
            assert!(holds(&|main| main.budget = budget));
            assert!(!holds(&|main| main.budget = budget + Nanos(1)), "{system:?}");
        }
        if let Some(period) = refusal.smallest_period {
            remedies += 1;
            assert!(holds(&|main| main.period = period));
            assert!(!holds(&|main| main.period = period - Nanos(1)), "{system:?}");
        }
    }
    assert!(remedies > 300, "{remedies}");
}

#[test]
fn the_breakdown_factor_is_the_edge() {
    let mut random = Random::new(5);
    for _ in 0..800 {
        let system = small(&mut random);
        if first_failure(&system) != Ok(None) {
            continue;
        }
        let factor = breakdown(&system).unwrap();
        assert!(factor >= 1000);
        let scaled = |factor: u64| {
            let mut scaled = system.clone();
            for main in &mut scaled.mains {
                main.budget = Nanos((main.budget.0 * factor).div_ceil(1000).max(1));
            }
            first_failure(&scaled) == Ok(None)
        };
        assert!(scaled(factor) && !scaled(factor + 1), "{factor} {system:?}");
    }
}

#[test]
fn a_closed_form_never_admits_what_the_exact_test_does_not() {
    let mut random = Random::new(6);
    let mut closed = 0;
    for _ in 0..5_000 {
        let system = small(&mut random);
        if system.check().is_ok() && wide(&system).holds() {
            closed += 1;
            assert_eq!(first_failure(&system), Ok(None), "{system:?}");
        }
        // A closed form refuses grants below a nanosecond in the shortest period.
        let longer = |main: &MainVcpu| MainVcpu {
            budget: Nanos(1_000 * main.budget.0),
            period: Nanos(1_000 * main.period.0),
            ..*main
        };
        let mains = system.mains.iter().map(longer).collect();
        let quiet = SharedCore { mains, ios: system.ios, ..SharedCore::default() };
        if quiet.check().is_ok() && equation_one(&quiet).holds() {
            assert!(wide(&quiet).holds(), "{quiet:?}");
        }
    }
    assert!(closed > 200, "{closed}");
}

#[test]
fn the_response_of_an_io_vcpu_is_the_worst_over_all_beginnings() {
    let mut random = Random::new(7);
    let mut compared = 0;
    for _ in 0..600 {
        let mut system = small(&mut random);
        (system.switch, system.overrun) = (Nanos::ZERO, Nanos::ZERO);
        for io in 0..system.ios.len() {
            let Some(supply) = IoSupply::of(&system, io) else { continue };
            let work = Nanos(random.between(1, supply.budget().0));
            let worst = worst_beginning(&system, io, work.0);
            let found = supply.response(work).0;
            let others = system.ios.len() as u64 - 1;
            let period = system.mains[system.ios[io].serves[0]].period.0;
            assert!(found >= worst.min(period), "{found} {worst} {system:?}");
            assert!(found <= worst + 4 * others, "{found} {worst} {system:?}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// max over x of w(x) − x, for every x of the busy period.
fn worst_beginning(system: &SharedCore, io: usize, work: u64) -> u64 {
    let (server, mut others) = (&system.ios[io], system.clone());
    let beneficiary = server.serves[0];
    others.ios.remove(io);
    // A VCPU that comes before all of its period sees what the I/O VCPU sees.
    let mut probe = system.mains[beneficiary];
    probe.budget = Nanos(1);
    others.mains.retain(|main| main.period < probe.period);
    let gone: Vec<usize> = (0..system.mains.len())
        .filter(|index| system.mains[*index].period >= probe.period)
        .collect();
    let place = others.mains.len();
    for other in &mut others.ios {
        let serves = other.serves[0];
        let period = system.mains[serves].period;
        // Those below cannot preempt; those at the level go on doing so.
        other.serves = if period <= probe.period && !gone.contains(&serves) {
            let before = gone.iter().filter(|index| **index < serves).count();
            vec![serves - before]
        } else {
            vec![place]
        };
    }
    let mut kept = Vec::new();
    for (index, other) in system.ios.iter().enumerate().filter(|(index, _)| *index != io) {
        let at = if index < io { index } else { index - 1 };
        if system.mains[other.serves[0]].period <= probe.period {
            kept.push(others.ios[at].clone());
        }
    }
    others.ios = kept;
    others.mains.push(probe);
    let above = others.interference(place);
    (0..4 * PERIODS)
        .map_while(|x| {
            let end = above.response(Nanos(server.share.of(x) + work), Nanos(PERIODS * 10)).ok()?;
            (end.0 > x).then_some(end.0 - x)
        })
        .max()
        .unwrap_or(0)
}

/// More than any busy period of a small system that is admitted.
const PERIODS: u64 = 1_000;

#[test]
fn supply_and_its_lines_are_in_order() {
    let mut random = Random::new(8);
    for _ in 0..200 {
        let mut system = small(&mut random);
        if random.one_in(3) {
            system.mains.iter_mut().for_each(|main| main.queue = Queue::Dp(0));
        }
        if first_failure(&system) != Ok(None) {
            continue;
        }
        let vcpu = random.below(system.mains.len() as u64) as usize;
        let supply = Supply::of(&system, vcpu).unwrap();
        for window in (0..200).map(Nanos) {
            let least = supply.supply(window);
            assert!(supply.any(least) <= window && supply.any(least + Nanos(1)) > window);
            assert!(supply.line_below(window) <= least, "{window:?} {system:?}");
            assert!(supply.sync(window) <= supply.any(window));
            assert!(supply.any(window) <= supply.merge(window));
        }
    }
}

#[test]
fn the_delay_of_a_stream_is_the_worst_over_all_windows() {
    let mut random = Random::new(9);
    let (mut compared, mut lates) = (0, 0);
    for _ in 0..1_000 {
        let system = small(&mut random);
        let Some(supply) = Supply::of(&system, 0) else { continue };
        let stream = Stream {
            work: Nanos(random.between(1, 6)),
            period: Nanos(random.between(4, 60)),
            jitter: Nanos(random.below(40)),
        };
        let late = match supply.found(&stream) {
            Found::Apart => Nanos::ZERO,
            Found::Late(late) => {
                let [all, filled] = waits_for_a_place(&supply, &stream);
                assert!(late == all || late == filled, "{late:?} {stream:?} {system:?}");
                lates += u32::from(late == all && late > Nanos::ZERO && all < filled);
                late
            }
            Found::Unknown => supply.period(),
        };
        let enough = stream.work.0 * supply.period().0 <= supply.budget().0 * stream.period.0;
        let windows = (0..2_000).map(Nanos);
        let worst = windows.map(|d| supply.sync(stream.demand(d)) - d).max().unwrap();
        assert_eq!(supply.delay(&stream), enough.then_some(worst + late), "{stream:?} {system:?}");
        if enough && supply.conforms(&stream) {
            assert!(worst <= supply.response(supply.budget()));
            compared += 1;
        }
    }
    assert!(compared > 50 && lates > 5, "{compared} {lates}");
}

/// The longest time until a place is free, window by window: as many wake-ups as fill the list so
/// many times fit into as many periods, and as many as fill it once are before the one that waits.
/// The second is what these say alone, which stands if too many windows would have to be looked at.
fn waits_for_a_place(supply: &Supply, stream: &Stream) -> [Nanos; 2] {
    let (period, places) = (supply.period().0, supply.wakeups() + 1);
    let late = |window| {
        let full = (stream.events(Nanos(window)) - 1) / places;
        (full * period).saturating_sub(window)
    };
    let late = (0..2_000).map(late).max().unwrap_or_default();
    let filled = (0..period).find(|window| stream.events(Nanos(*window)) >= places);
    let filled = period - filled.unwrap_or(period);
    [late.min(filled), filled].map(Nanos)
}

/// Any number, mostly strange ones.
fn strange(random: &mut Random) -> Nanos {
    Nanos(match random.below(6) {
        0 => random.below(3),
        1 => u64::MAX - random.below(3),
        2 => PERIOD_MAX.0 - random.below(3),
        3 => 1 << random.below(64),
        4 => random.bits() >> random.below(64),
        _ => random.between(1, 1_000_000_000),
    })
}

#[test]
fn no_input_makes_it_panic() {
    let mut random = Random::new(10);
    for _ in 0..2_500 {
        let count = random.below(4);
        let mut system = SharedCore::default();
        for _ in 0..count {
            let queue = match random.below(3) {
                0 => Queue::Dp(random.below(2) as u8),
                _ => Queue::Fp,
            };
            let period = strange(&mut random);
            let budget = strange(&mut random).min(period);
            let chunks = strange(&mut random).0 as u32;
            system.mains.push(MainVcpu { budget, period, chunks, queue });
        }
        for _ in 0..random.below(3) {
            let ppm = strange(&mut random).0 as u32 % 1_200_000;
            let Some(share) = Utilization::from_ppm(ppm) else { continue };
            let serves = (0..random.below(3)).map(|_| random.below(4) as usize).collect();
            let (cap, wake_gap) = (strange(&mut random), strange(&mut random));
            let wakes = 1 + random.below(3) as u32;
            system.ios.push(IoVcpu { share, cap, serves, wake_gap, wakes, woken: None });
        }
        if random.one_in(2) {
            let (gap, cost) = (strange(&mut random), strange(&mut random));
            system.sources.push(InterruptSource::free(gap, cost));
            system.kernel_section = strange(&mut random);
            system.switch = strange(&mut random);
            system.overrun = strange(&mut random);
        }
        survives(&system, &mut random);
    }
}

fn survives(system: &SharedCore, random: &mut Random) {
    let verdict = admit(system);
    if let Err(Unfit::Refused(refusal)) = &verdict {
        assert!(!refusal.to_string().is_empty());
    }
    let _ = (equation_one(system).ppm(), wide(system).ppm(), breakdown(system));
    let (work, window) = (strange(random), strange(random));
    let stream = Stream { work: strange(random), period: strange(random), jitter: strange(random) };
    for vcpu in 0..system.mains.len() {
        let _ = (largest_budget(system, vcpu), smallest_period(system, vcpu));
        if let Some(supply) = Supply::of(system, vcpu) {
            let _ = (supply.any(work), supply.merge(work), supply.supply(window));
            let _ = (supply.line_below(window), supply.delay(&stream), supply.conforms(&stream));
        }
        for io in 0..system.ios.len() {
            if let Some(shared) = SharedIo::of(system, io, vcpu) {
                let _ = shared.delay(work, window.0);
            }
            if let Some(supply) = IoSupply::of(system, io) {
                let _ = (supply.any(work), supply.delay(&stream), supply.supply(window));
            }
        }
    }
}

#[test]
fn no_task_makes_it_panic() {
    let mut random = Random::new(11);
    for _ in 0..4_000 {
        let tasks: Vec<SporadicTask> = (0..random.below(4))
            .map(|_| SporadicTask {
                cost: strange(&mut random),
                period: strange(&mut random),
                deadline: strange(&mut random),
            })
            .collect();
        let blocking = if random.one_in(2) { Nanos::ZERO } else { strange(&mut random) };
        let _ = response_times(&tasks, PriorityOrder::DeadlineMonotonic, blocking);
        let _ = edf(&tasks, blocking);
    }
}
