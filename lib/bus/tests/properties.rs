//! Every question gets an answer and no panic, and every promise is within its limits.

use crate::common;
use diapason_bus::sim::Random;
use diapason_bus::{
    Async, BYTES_MAX, BusInstance, BusScheduler, Coding, Criticality, Direction, EndpointId,
    GUARANTEE_SLOTS_MAX, Guarantee, Moves, NoSchedule, PERIOD_MAX, PeriodicEndpoint, Picos, Speed,
    Starts, Transfer, Unit, plan, plan_modes, reserve, uniform,
};

const SPEEDS: [Speed; 4] = [Speed::Low, Speed::Full, Speed::High, Speed::Super];
const TRANSFERS: [Transfer; 4] =
    [Transfer::Control, Transfer::Bulk, Transfer::Interrupt, Transfer::Isochronous];

/// Mostly small, sometimes a power of two, sometimes anything.
fn number(random: &mut Random) -> u32 {
    match random.within(0, 9) {
        0 => random.bits() as u32,
        1 => u32::MAX,
        2..=5 => 1 << random.within(0, 16),
        _ => random.within(0, 20),
    }
}

fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.within(0, of.len() as u32 - 1) as usize]
}

fn garbage_bus(random: &mut Random) -> BusInstance {
    BusInstance {
        speed: one(random, &SPEEDS),
        coding: one(random, &[Coding::Ignored, Coding::EightTen]),
        periodic_percent: one(random, &[90, 80, 100, 1, number(&mut random.clone())]),
        starts: one(random, &[Starts::Chosen, Starts::Unknown]),
        unit: one(random, &[Unit::Packet, Unit::Burst, Unit::Unknown]),
        retries: one(random, &[0, 1, 65_535, number(&mut random.clone())]),
        doorbell: Picos(one(random, &[0, 1_000_000, u64::MAX])),
    }
}

fn garbage_periodic(random: &mut Random, id: u32) -> PeriodicEndpoint {
    let period = number(random);
    PeriodicEndpoint {
        id: EndpointId(id),
        transfer: one(random, &TRANSFERS),
        direction: one(random, &[Direction::In, Direction::Out]),
        packet: number(random),
        burst: number(random) % 17,
        mult: number(random),
        period,
        longest_period: one(random, &[period, PERIOD_MAX, number(&mut random.clone())]),
        criticality: one(random, &[Criticality::High, Criticality::Low]),
    }
}

fn garbage_async(random: &mut Random, id: u32) -> Async {
    let guarantee = Guarantee { bytes: number(random), period: number(random) };
    Async {
        id: EndpointId(id),
        transfer: one(random, &TRANSFERS),
        direction: one(random, &[Direction::In, Direction::Out]),
        packet: number(random),
        burst: number(random),
        guarantee: one(random, &[None, Some(guarantee)]),
    }
}

#[test]
fn no_input_panics() {
    let (mut sane, mut nonsense) = (0, 0);
    for index in 0..20_000 {
        let random = &mut Random::stream(41, index);
        let bus = garbage_bus(random);
        let mut periodic: Vec<PeriodicEndpoint> =
            (0..random.within(0, 2)).map(|id| garbage_periodic(random, id)).collect();
        let mut asyncs: Vec<Async> =
            (0..random.within(0, 2)).map(|id| garbage_async(random, 2 + id)).collect();
        if !random.one_in(5) {
            periodic.retain(|endpoint| endpoint.check(&bus).is_ok());
            asyncs.retain(|endpoint| endpoint.check(&bus).is_ok());
        }
        match plan(&bus, &periodic, &asyncs) {
            Err(NoSchedule::Nonsense(what)) => {
                nonsense += 1;
                assert!(!what.to_string().is_empty());
                assert!(
                    BusScheduler::new(bus)
                        .map_or(Ok(()), |mut scheduler| scheduler
                            .attach(&periodic, &asyncs, Moves::Allowed)
                            .map(|_| ()))
                        .is_err()
                        || BusScheduler::new(bus).is_err()
                );
            }
            found => {
                sane += 1;
                others_do_not_panic(&bus, &periodic, &asyncs);
                if let Ok(plan) = found {
                    assert!(plan.load.iter().all(|load| *load <= bus.periodic_limit()));
                    let _ = asyncs.first().map(|a| plan.worst_time(&bus, &asyncs, a.id, 1_000));
                }
                // Some sets have a schedule in one mode and none in several.
                let ids: Vec<EndpointId> = periodic.iter().map(|endpoint| endpoint.id).collect();
                let modes = [&ids[..], &ids[..ids.len().min(1)], &[]];
                if let Ok(plan) = plan_modes(&bus, &periodic, &asyncs, &modes) {
                    let loads = plan.modes.iter().flat_map(|mode| &mode.load);
                    assert!(loads.into_iter().all(|load| *load <= bus.periodic_limit()));
                }
            }
        }
    }
    assert!(sane > 3_000 && nonsense > 3_000, "{sane} {nonsense}");
}

fn others_do_not_panic(bus: &BusInstance, periodic: &[PeriodicEndpoint], asyncs: &[Async]) {
    let _ = uniform::algorithm(bus, periodic, asyncs, Picos::from_nanos(12_500));
    let _ = uniform::least_enough(bus, asyncs, periodic);
    let _ = uniform::amortised(bus, periodic, uniform::least_reservation(bus));
    let _ = uniform::linux_first_fit(bus, periodic);
    let _ = reserve::least_reservation(bus, asyncs, reserve::Start::Any);
}

#[test]
fn the_largest_numbers_are_planned_or_refused() {
    let bus = BusInstance { retries: 65_535, unit: Unit::Unknown, ..BusInstance::uncoded() };
    let most = Guarantee { bytes: BYTES_MAX, period: GUARANTEE_SLOTS_MAX };
    let asyncs: Vec<Async> =
        (0..256).map(|id| Async { burst: 15, ..common::bulk(id + 1_000, Some(most)) }).collect();
    let small = |id| PeriodicEndpoint {
        packet: 1,
        burst: 0,
        mult: 0,
        longest_period: PERIOD_MAX,
        ..common::camera(id, PERIOD_MAX, Criticality::Low)
    };
    let periodic: Vec<PeriodicEndpoint> = (0..256).map(small).collect();
    assert!(matches!(plan(&bus, &periodic, &asyncs), Err(NoSchedule::Refused(_))));
    let placed = plan(&BusInstance::uncoded(), &periodic, &[]).unwrap();
    assert_eq!(placed.placed.len(), 256);
}
