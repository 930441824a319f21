//! Modes: each endpoint has the same slots in all of them, and a guarantee holds in every mode and
//! through every change.

use crate::common::*;
use diapason_bus::sim::Random;
use diapason_bus::{
    BusInstance, BusPlan, Criticality, EndpointId, Guarantee, InvalidDemand, ModePlan, NoModes,
    PeriodicEndpoint, Picos, Placed, RefusalReason, plan, plan_modes,
};

const HIGH: Criticality = Criticality::High;

/// Returns the schedules of modes, each a list of numbers.
fn planned(
    (bus, asyncs): (&BusInstance, &[diapason_bus::Async]),
    periodic: &[PeriodicEndpoint],
    modes: &[&[u32]],
) -> Result<ModePlan, NoModes> {
    let ids: Vec<Vec<EndpointId>> =
        modes.iter().map(|mode| mode.iter().copied().map(EndpointId).collect()).collect();
    let ids: Vec<&[EndpointId]> = ids.iter().map(Vec::as_slice).collect();
    plan_modes(bus, periodic, asyncs, &ids)
}

fn start(plan: &BusPlan, id: u32) -> u32 {
    let is_it = |placed: &&Placed| placed.id == EndpointId(id);
    plan.placed.iter().find(is_it).unwrap_or_else(|| panic!("{id} has no slot")).start
}

#[test]
fn cameras_that_do_not_fit_together_share_a_bus_in_modes() {
    let bus = BusInstance::uncoded();
    let cameras = [camera(1, 1, HIGH), camera(2, 2, HIGH), camera(3, 2, HIGH), camera(4, 8, HIGH)];
    assert!(plan(&bus, &cameras, &[]).is_err());
    // The motorway needs the front camera in every microframe; the others have their turns.
    let modes: [&[u32]; 3] = [&[1], &[2, 3], &[3, 4]];
    let found = planned((&bus, &[]), &cameras, &modes).unwrap();
    assert_eq!(start(&found.modes[1], 3), start(&found.modes[2], 3), "it stays");
    assert_ne!(start(&found.modes[1], 2), start(&found.modes[1], 3));
    assert!(found.modes.iter().flat_map(|mode| &mode.load).all(|it| *it <= bus.periodic_limit()));
    let pairs: Vec<_> = found.changes.iter().map(|change| change.modes).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
}

#[test]
fn the_slots_of_one_mode_are_chosen_for_the_change_to_another() {
    // Scenario 2 of [USB 2023, table 5]: i1 with i2, or i1 with i3 and i4, but not all of them.
    let (bus, bulk) = (timing_alone(), four(6_144, 2));
    let cameras = [1, 2, 4, 8].map(|period| camera(period, period, HIGH));
    assert!(plan(&bus, &cameras, &bulk).is_err());
    let found = planned((&bus, &bulk), &cameras, &[&[1, 2], &[1, 4, 8]]).unwrap();
    let (even, second) = (start(&found.modes[0], 2), &found.modes[1]);
    assert_eq!((start(second, 4) % 2, start(second, 8) % 2), (even, even));
    let worst = |plan: &BusPlan| plan.promises.iter().map(|it| it.worst).max().unwrap();
    assert_eq!(worst(&found.modes[0]).nanos().0, 215_576);
    let change = found.changes[0].promises.iter().map(|it| it.worst).max().unwrap();
    assert_eq!(change, worst(&found.modes[0]), "the change costs nothing");
    assert_eq!(found.rest, 3);
}

#[test]
fn a_mode_that_does_not_fit_is_named_with_what_would() {
    let bus = BusInstance::uncoded();
    let cameras = [camera(1, 1, HIGH), camera(2, 1, HIGH)];
    let Err(NoModes::Mode { mode, refusal }) =
        planned((&bus, &[]), &cameras, &[&[1], &[1, 2], &[2]])
    else {
        panic!("90.9 % of a microframe")
    };
    assert_eq!(mode, 1);
    assert!(
        matches!(refusal.reason, RefusalReason::Slot { missing, .. } if missing.0 == 1_072_800)
    );
    let unknown = planned((&bus, &[]), &cameras, &[&[1], &[7]]);
    assert_eq!(unknown, Err(NoModes::Nonsense(InvalidDemand::Unknown(EndpointId(7)))));
    let alone = planned((&bus, &four(1 << 20, 1)), &cameras, &[&[1]]);
    assert!(matches!(alone, Err(NoModes::Mode { mode: 0, .. })), "{alone:?}");
}

#[test]
fn modes_that_fit_without_common_slots_are_refused() {
    // Each two of three can take turns. No two of them can stay where they are for the third.
    let bus = BusInstance::uncoded();
    let cameras = [1, 2, 3].map(|id| camera(id, 2, HIGH));
    let modes: [&[u32]; 3] = [&[1, 2], &[2, 3], &[1, 3]];
    for mode in &modes {
        assert!(planned((&bus, &[]), &cameras, &[mode]).is_ok());
    }
    let refused = planned((&bus, &[]), &cameras, &modes);
    assert!(matches!(refused, Err(NoModes::Change { modes: (a, b), .. }) if a == b), "{refused:?}");
}

#[test]
fn a_change_that_breaks_a_guarantee_is_refused() {
    // The first mode keeps 1 and 2 in microframes of their own. Beside 3, each leaves enough time
    // for bulk in every other microframe. A change from one to the other would meet two full ones
    // in a row.
    let (bus, bulk) = (BusInstance::uncoded(), four(6_144, 2));
    let third = PeriodicEndpoint { burst: 9, ..camera(3, 1, HIGH) };
    let cameras = [camera(1, 2, HIGH), camera(2, 2, HIGH), third];
    let found = planned((&bus, &bulk), &cameras, &[&[1, 3], &[2, 3]]).unwrap();
    assert_eq!(start(&found.modes[0], 1), start(&found.modes[1], 2));
    let modes: [&[u32]; 3] = [&[1, 2], &[1, 3], &[2, 3]];
    let refused = planned((&bus, &bulk), &cameras, &modes);
    assert!(matches!(refused, Err(NoModes::Change { modes: (1, 2), .. })), "{refused:?}");
    assert!(planned((&bus, &[]), &cameras, &modes).is_ok(), "the guarantee is the reason");
    let single = planned((&bus, &bulk), &cameras, &[&[1, 2, 3]]);
    assert!(matches!(single, Err(NoModes::Mode { mode: 0, .. })), "{single:?}");
}

/// Returns a random endpoint of a camera with so many packets.
fn any(random: &mut Random, id: u32) -> PeriodicEndpoint {
    let (burst, mult) = (random.within(3, 10), random.within(1, 2));
    PeriodicEndpoint { burst, mult, ..camera(id, 1 << random.within(0, 3), HIGH) }
}

/// Returns the loads of a bus that leaves mode `a` in slot `at` for mode `b`, after long enough
/// in each. Near the change less may run than in either.
fn changed(random: &mut Random, [a, b]: [&BusPlan; 2], rest: usize, at: usize) -> Vec<Picos> {
    let slots = a.load.len();
    let each = rest.next_multiple_of(slots) + slots;
    let of =
        |slot: usize| if slot < each + at { a.load[slot % slots] } else { b.load[slot % slots] };
    let mut load: Vec<Picos> = (0..2 * each + slots).map(of).collect();
    let from = random.within(0, 3) as usize;
    let near = (each + at).saturating_sub(from)..each + at + from;
    for load in &mut load[near] {
        *load = Picos(load.0 * u64::from(random.within(0, 2)) / 2);
    }
    load
}

#[test]
fn no_transfer_is_later_than_promised_whenever_the_mode_changes() {
    let (mut found, mut refused, mut met, mut longer) = (0, 0, 0, 0);
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let bus = timing_alone();
        let count = random.within(2, 6);
        let periodic: Vec<_> = (1..=count).map(|id| any(&mut random, id)).collect();
        let asyncs: Vec<_> = (0..random.within(1, 3))
            .map(|id| {
                let (bytes, period) = (1 + random.within(0, 16_000), random.within(1, 4));
                bulk(101 + id, Some(Guarantee { bytes, period }))
            })
            .collect();
        let modes: Vec<Vec<u32>> = (0..random.within(2, 4))
            .map(|_| (1..=count).filter(|_| random.within(0, 1) == 1).collect())
            .collect();
        let modes: Vec<&[u32]> = modes.iter().map(Vec::as_slice).collect();
        let Ok(all) = planned((&bus, &asyncs), &periodic, &modes) else {
            refused += 1;
            continue;
        };
        found += 1;
        for (mode, ids) in all.modes.iter().zip(&modes) {
            assert!(mode.load.iter().all(|load| *load <= bus.periodic_limit()));
            assert!(mode.placed.iter().map(|it| it.id.0).eq(ids.iter().copied()), "seed {seed}");
            assert_eq!(mode.promises.len(), asyncs.len(), "seed {seed}: a guarantee does not hold");
        }
        for id in 1..=count {
            let mut starts = all.modes.iter().flat_map(|mode| &mode.placed);
            let first = starts.find(|it| it.id.0 == id).map(|it| it.start);
            assert!(starts.filter(|it| it.id.0 == id).all(|it| Some(it.start) == first));
        }
        for change in &all.changes {
            assert_eq!(change.promises.len(), asyncs.len(), "seed {seed}");
            let (a, b) = (&all.modes[change.modes.0], &all.modes[change.modes.1]);
            let ways = if random.within(0, 1) == 0 { [a, b] } else { [b, a] };
            let at = random.within(0, a.load.len() as u32 - 1) as usize;
            let load = changed(&mut random, ways, all.rest as usize, at);
            let changing = BusPlan { load, ..a.clone() };
            for promise in &change.promises {
                let Guarantee { bytes, period } = promise.guarantee;
                let worst = changing.worst_time(&bus, &asyncs, promise.id, bytes).unwrap();
                let worst = worst.unwrap_or_else(|| panic!("seed {seed}: it never ends"));
                assert!(worst <= promise.worst, "seed {seed}: {worst:?} of {:?}", promise.worst);
                assert!(promise.worst <= bus.speed.slot().times(period.into()));
                let of = |plan: &BusPlan| {
                    plan.promises.iter().find(|it| it.id == promise.id).map(|it| it.worst)
                };
                met += 1;
                longer += u32::from(Some(worst) > of(a).max(of(b)));
            }
        }
    }
    println!("{found} found, {refused} refused, {met} changes met, {longer} longer");
    assert!(found > 500 && refused > 200 && met > 1_000 && longer > 10);
}
