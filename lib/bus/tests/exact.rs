//! `worst_time` against a clock that is moved by hand: every start instant of small patterns.

use crate::common;
use diapason_bus::reserve::{Start, least_reservation};
use diapason_bus::sim::Random;
use diapason_bus::{Async, BusInstance, Pattern, Picos, Rotation, Unit};

/// Step by step, with no sums: from `start` on, one item after the other.
fn by_hand(load: &[Picos], slot: u64, pass: &[Picos], items: u64, start: u64) -> Option<u64> {
    let (mut at, mut done, mut stuck) = (start, 0, 0);
    while done < items {
        let f = at / slot;
        let opens = f * slot + load[f as usize % load.len()].0;
        let begin = at.max(opens);
        let item = pass[(done % pass.len() as u64) as usize].0;
        if begin + item <= (f + 1) * slot {
            at = begin + item;
            done += 1;
            stuck = 0;
        } else {
            at = (f + 1) * slot;
            stuck += 1;
            if stuck > load.len() + 1 {
                return None;
            }
        }
        // An item that ends with the slot leaves the clock at the start of the next one.
    }
    Some(at - start)
}

#[test]
fn the_worst_time_is_the_supremum_over_all_starts() {
    let (mut finite, mut never) = (0, 0);
    for index in 0..3_000 {
        let random = &mut Random::stream(21, index);
        let slot = u64::from(random.within(20, 120));
        let slots = 1 << random.within(0, 3);
        let most = random.within(1, slot as u32);
        let load: Vec<Picos> =
            (0..slots).map(|_| Picos(u64::from(random.within(0, most)))).collect();
        let pass: Vec<Picos> =
            (0..random.within(1, 4)).map(|_| Picos(u64::from(random.within(2, 30)))).collect();
        let items = u64::from(random.within(1, 12));
        let rotation = Rotation::from_items(&pass, items);
        let pattern = Pattern { load: &load, slot: Picos(slot) };
        let exact = pattern.worst_time(&rotation, Picos(u64::MAX));
        // Starts are instants of a line: the supremum is just after one of them.
        let starts = 0..slot * load.len() as u64;
        let seen: Option<Vec<u64>> =
            starts.map(|start| by_hand(&load, slot, &pass, items, start)).collect();
        let highest = seen.map(|seen| seen.into_iter().max().unwrap());
        match (exact, highest) {
            (None, None) => never += 1,
            // On a grid of 1 the supremum is missed by at most 1.
            (Some(exact), Some(highest)) => {
                finite += 1;
                assert!(highest <= exact.0 && exact.0 <= highest + 1, "{index}: {exact} {highest}");
            }
            other => panic!("{index}: {other:?}"),
        }
        let at_starts = pattern.worst_at_slot_starts(&rotation, Picos(u64::MAX));
        assert!(at_starts <= exact || exact.is_none());
        if let Some(exact) = exact {
            assert_eq!(pattern.worst_time(&rotation, exact), Some(exact));
            assert_eq!(pattern.worst_time(&rotation, exact - Picos(1)), None);
        }
    }
    assert!(finite > 1_000 && never > 100, "{finite} {never}");
}

#[test]
fn more_load_or_longer_items_are_never_faster() {
    for index in 0..1_000 {
        let random = &mut Random::stream(22, index);
        let mut load: Vec<Picos> = (0..4).map(|_| Picos(u64::from(random.within(0, 60)))).collect();
        let mut pass: Vec<Picos> = (0..3).map(|_| Picos(u64::from(random.within(1, 20)))).collect();
        let items = u64::from(random.within(1, 12));
        let worst = |load: &[Picos], pass: &[Picos]| {
            let pattern = Pattern { load, slot: Picos(100) };
            pattern.worst_time(&Rotation::from_items(pass, items), Picos(u64::MAX))
        };
        let before = worst(&load, &pass).unwrap();
        load[random.within(0, 3) as usize].0 += 10;
        let fuller = worst(&load, &pass).unwrap();
        pass[random.within(0, 2) as usize].0 += 1;
        assert!(before <= fuller && fuller <= worst(&load, &pass).unwrap(), "{index}");
    }
}

#[test]
fn an_unknown_order_costs_no_more_than_promised() {
    let bus = BusInstance::uncoded();
    for index in 0..400 {
        let random = &mut Random::stream(23, index);
        let bytes = random.within(1, 20) * 1024;
        let endpoint = |id: u32, random: &mut Random| Async {
            packet: random.within(1, 1024),
            burst: random.within(0, 6),
            ..common::bulk(id, None)
        };
        let asyncs: Vec<Async> = (0..3).map(|id| endpoint(id, random)).collect();
        let load: Vec<Picos> =
            (0..4).map(|_| Picos(u64::from(random.within(0, 90_000)) * 1_000)).collect();
        let pattern = Pattern { load: &load, slot: bus.speed.slot() };
        for whole in [false, true] {
            let end = Picos(u64::MAX);
            let [a, b, c] = [asyncs[0], asyncs[1], asyncs[2]];
            let safe = pattern.safe_any_order(&Rotation::new(&bus, &asyncs, 0, bytes, whole), end);
            for order in [[a, b, c], [a, c, b]] {
                let rotation = Rotation::new(&bus, &order, 0, bytes, whole);
                let exact = pattern.worst_time(&rotation, end);
                assert!(safe.is_none() || exact <= safe, "{index} {exact:?} {safe:?}");
            }
        }
    }
}

#[test]
fn the_smallest_reservation_is_the_smallest() {
    for index in 0..60 {
        let random = &mut Random::stream(24, index);
        let period = random.within(1, 6);
        let guarantee =
            diapason_bus::Guarantee { bytes: random.within(1, 10 * period) * 1024, period };
        let asyncs = [
            Async { burst: random.within(0, 3), ..common::bulk(1, Some(guarantee)) },
            Async { packet: random.within(1, 1024), ..common::bulk(2, None) },
        ];
        let bus = common::with_unit([Unit::Packet, Unit::Burst][random.within(0, 1) as usize]);
        for start in [Start::Slot, Start::Any] {
            let Some(t_a) = least_reservation(&bus, &asyncs, start) else { continue };
            let holds = |t_a: Picos| {
                let load = [bus.speed.slot() - t_a];
                let pattern = Pattern { load: &load, slot: bus.speed.slot() };
                let rotation = Rotation::all(&bus, &asyncs, 0, guarantee).remove(0);
                let limit = bus.speed.slot().times(period.into());
                match start {
                    Start::Slot => pattern.worst_at_slot_starts(&rotation, limit).is_some(),
                    Start::Any => pattern.worst_time(&rotation, limit).is_some(),
                }
            };
            assert!(holds(t_a) && !holds(t_a - Picos(1)), "{index}");
        }
    }
}

#[test]
fn a_start_inside_a_slot_can_cost_more_than_whole_slots() {
    // Leftovers 317, 548, 317, 686 of 2000; two packets of 118 fit into any of them, so equation 6
    // says one slot. Started when only 117 are left of the long one, they take 2037.
    let load = [317, 548, 317, 686].map(|left| Picos(2_000 - left));
    let pattern = Pattern { load: &load, slot: Picos(2_000) };
    let rotation = Rotation::from_items(&[Picos(118)], 2);
    assert_eq!(pattern.worst_at_slot_starts(&rotation, Picos(9_999)), Some(Picos(1_919)));
    assert_eq!(pattern.worst_time(&rotation, Picos(9_999)), Some(Picos(2_037)));
}

#[test]
fn whole_bursts_need_more_slots_than_their_time() {
    // Four bursts of four packets in 12.5 µs each: 3 by equation 6, but only one burst fits.
    let asyncs = [Async { burst: 3, ..common::bulk(1, None) }];
    let bus = common::with_unit(Unit::Burst);
    let rotation = Rotation::new(&bus, &asyncs, 0, 16 * 1024, true);
    let load = [Picos::from_nanos(112_500)];
    let pattern = Pattern { load: &load, slot: bus.speed.slot() };
    let worst = pattern.worst_at_slot_starts(&rotation, Picos(u64::MAX)).unwrap();
    assert_eq!(worst.0.div_ceil(common::SLOT), 4);
    assert_eq!((16 * common::W_BULK).div_ceil(12_500_000), 3);
}
