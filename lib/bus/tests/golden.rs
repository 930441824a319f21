//! Every figure of [USB 2023] that belongs to the bus, with the reading that gives it, and the
//! exact one beside it.

use crate::common;
use crate::common::*;
use diapason_bus::reserve::{self, Start};
use diapason_bus::{
    BusInstance, Criticality, EndpointId, Guarantee, NoSchedule, Pattern, PeriodicEndpoint, Picos,
    RefusalReason, Rotation, plan, uniform,
};

/// Budget, period, and the c of [USB 2023].
const TABLE_2: [(u32, u32, u64); 5] =
    [(1024, 1, 1), (8192, 8, 2), (20_480, 20, 4), (40_960, 40, 8), (88_064, 86, 16)];

fn cameras_of_table_2(criticality: Criticality) -> [PeriodicEndpoint; 2] {
    [camera(1, 1, criticality), camera(2, 2, criticality)]
}

fn slots(t_a: Picos) -> Vec<u64> {
    let c = |(bytes, period, _)| {
        let asyncs = four(bytes, period);
        uniform::latency_slots(&BusInstance::uncoded(), &asyncs, &asyncs[0], t_a).unwrap()
    };
    TABLE_2.iter().map(|row| c(*row)).collect()
}

#[test]
fn table_2_in_the_papers_reading() {
    // 31.9 % of a microframe is what two cameras leave on average.
    assert_eq!(slots(Picos::from_nanos(39_875)), [1, 2, 4, 8, 16]);
    let (kept, mean) = uniform::amortised(
        &BusInstance::uncoded(),
        &cameras_of_table_2(Criticality::High),
        Picos::ZERO,
    )
    .unwrap();
    assert_eq!(kept, [true, true]);
    assert_eq!(mean, ns10(398_204), "31.86 %, which [USB 2023] rounds up");
    // Algorithm 2 itself stops at its first step, 10 %.
    let low = cameras_of_table_2(Criticality::Low);
    for (bytes, period, _) in TABLE_2 {
        let asyncs = four(bytes, period);
        let step = Picos::from_nanos(12_500);
        let t_a = uniform::reservation(&BusInstance::uncoded(), &asyncs, &low, step);
        assert_eq!(t_a, Some(Picos::from_nanos(12_500)));
    }
    assert_eq!(slots(Picos::from_nanos(12_500)), [1, 5, 12, 23, 49]);
}

#[test]
fn table_2_with_both_cameras_critical_is_refused_by_the_algorithm() {
    let cameras = cameras_of_table_2(Criticality::High);
    let step = Picos::from_nanos(12_500);
    for (bytes, period, _) in TABLE_2 {
        assert_eq!(
            uniform::algorithm(&BusInstance::uncoded(), &cameras, &four(bytes, period), step),
            None
        );
    }
}

#[test]
fn table_2_exactly() {
    // On the cameras' own pattern, and in Algorithm 2's uniform 12.5 µs; in tenths of µs.
    let both = 2 * 33 * W_CAMERA;
    let pattern = [Picos(both), Picos(both / 2)];
    let uniform = [Picos(SLOT - 12_500_000)];
    let exact = [(1225, 1214), (2298, 6214), (4869, 14_946), (9727, 28_749), (19_869, 62_411)];
    for ((bytes, _, c), (ours, literal)) in TABLE_2.into_iter().zip(exact) {
        let rotation = Rotation::new(&BusInstance::uncoded(), &four(bytes, 1), 0, bytes, false);
        let worst = |load: &[Picos]| {
            let pattern = Pattern { load, slot: Picos(SLOT) };
            pattern.worst_time(&rotation, Picos(u64::MAX)).unwrap().0
        };
        assert_eq!((worst(&pattern) + 50_000) / 100_000, ours);
        assert_eq!((worst(&uniform) + 50_000) / 100_000, literal);
        assert!(worst(&pattern) <= c * SLOT, "the c of [USB 2023] holds on the real pattern");
    }
    // Equation 6 with that reservation says 49 microframes, 6125 µs: it takes more.
}

#[test]
fn table_2_is_refused_at_90_percent_and_planned_without_that_limit() {
    for (bytes, _, c) in TABLE_2 {
        // The guarantee to ask for is the latency of [USB 2023].
        let asyncs = four(bytes, c as u32);
        let cameras = cameras_of_table_2(Criticality::High);
        let Err(NoSchedule::Refused(refusal)) = plan(&BusInstance::uncoded(), &cameras, &asyncs)
        else {
            panic!("two cameras are 90.86 % of a microframe");
        };
        let missing = Picos(2 * 33 * W_CAMERA - SLOT / 10 * 9);
        assert_eq!(refusal.reason, RefusalReason::Slot { slot: 0, missing });
        assert_eq!((refusal.id, refusal.would_fit.amount), (EndpointId(2), Some(32)));
        let plan = plan(&timing_alone(), &cameras, &asyncs).unwrap();
        assert_eq!(plan.promises.len(), 4);
        assert!(plan.promises.iter().all(|p| p.worst.0 <= c * SLOT));
    }
}

#[test]
fn smallest_reservations() {
    for (bytes, period, at_start, any) in [(6144, 2, 213_408, 231_192), (8192, 1, 569_088, 586_872)]
    {
        let (bus, asyncs) = (BusInstance::uncoded(), four(bytes, period));
        assert_eq!(uniform::least_enough(&bus, &asyncs, &[]), Some(ns10(at_start)));
        assert_eq!(reserve::least_reservation(&bus, &asyncs, Start::Slot), Some(ns10(at_start)));
        assert_eq!(reserve::least_reservation(&bus, &asyncs, Start::Any), Some(ns10(any)));
    }
}

#[test]
fn the_step_search_passes_by_a_reservation_that_would_do() {
    // Errata 9: between 62.5 µs and 75 µs, where t_Amax lies, no step comes by.
    let (bus, asyncs) = (BusInstance::uncoded(), four(9216, 1));
    let camera = [camera(1, 1, Criticality::High)];
    let most = uniform::most_reservation(&bus, &camera);
    assert!(uniform::is_enough(&bus, &asyncs, most));
    let by_steps = |ns| uniform::reservation(&bus, &asyncs, &camera, Picos::from_nanos(ns));
    assert_eq!(by_steps(12_500), None);
    assert_eq!(uniform::least_enough(&bus, &asyncs, &camera), Some(Picos(4 * 9 * W_BULK)));
    let fine = by_steps(1).unwrap();
    assert!(fine.0 - 4 * 9 * W_BULK < 1_000);
}

#[test]
fn packets_are_not_divided() {
    // 246 packets, 12.5 µs in each microframe: 35 by equation 6, but only 7 fit into each.
    let asyncs = [common::bulk(1, Some(Guarantee { bytes: 246 * 1024, period: 100 }))];
    let bus = BusInstance::uncoded();
    let t_a = Picos::from_nanos(12_500);
    assert_eq!(uniform::latency_slots(&bus, &asyncs, &asyncs[0], t_a), Some(35));
    let load = [Picos(SLOT) - t_a];
    let rotation = Rotation::new(&bus, &asyncs, 0, 246 * 1024, false);
    let pattern = Pattern { load: &load, slot: Picos(SLOT) };
    let worst = pattern.worst_at_slot_starts(&rotation, Picos(u64::MAX)).unwrap();
    assert_eq!(worst.0.div_ceil(SLOT), 36);
    // One packet less is the last case in which the two agree.
    let rotation = Rotation::new(&bus, &asyncs, 0, 245 * 1024, false);
    let worst = pattern.worst_at_slot_starts(&rotation, Picos(u64::MAX)).unwrap();
    assert_eq!(worst.0.div_ceil(SLOT), 35);
}

/// i₁ critical, the others not, at the periods of table 5.
fn cameras_of_table_5() -> [PeriodicEndpoint; 4] {
    let low = Criticality::Low;
    [camera(1, 1, Criticality::High), camera(2, 2, low), camera(3, 4, low), camera(4, 8, low)]
}

const TABLE_5: [(u32, u32); 3] = [(4096, 8), (6144, 2), (8192, 1)];

#[test]
fn table_5_is_amortised_but_for_scenario_2() {
    let kept = |(bytes, period)| {
        let (bus, cameras) = (BusInstance::uncoded(), cameras_of_table_5());
        let t_a = uniform::least_enough(&bus, &four(bytes, period), &cameras).unwrap();
        uniform::amortised(&bus, &cameras, t_a).unwrap()
    };
    assert_eq!(kept(TABLE_5[0]).0, [true, true, true, true]);
    // §6.1.2 says that scenario 2 is schedulable with all four. They and the bulk sum to 102.25 %,
    // so no reading keeps them; without i4, 20.5 % are left, which is near the 20.05 % that it
    // prints.
    let (cameras, left) = kept(TABLE_5[1]);
    assert_eq!(cameras, [true, true, true, false]);
    assert_eq!(left.0 * 1000 / SLOT, 204);
    let all: u64 = cameras_of_table_5()
        .iter()
        .map(|c| 1000 * c.cost(&BusInstance::uncoded()).0 / u64::from(c.period))
        .sum();
    let bulk = 4 * 6 * 1000 * W_BULK / 2;
    assert_eq!((all + bulk) / SLOT, 1022, "in tenths of a per cent");
    assert_eq!(kept(TABLE_5[2]).0, [true, false, false, true], "i2 and i3 are rejected");
}

#[test]
fn table_5_by_the_algorithms_keeps_one_camera_everywhere() {
    for (bytes, period) in TABLE_5 {
        let (bus, cameras) = (BusInstance::uncoded(), cameras_of_table_5());
        let step = Picos(W_BULK);
        let outcome =
            uniform::algorithm(&bus, &cameras, &four(bytes, period), step).expect("i1 fits");
        assert_eq!(outcome.starts, [Some(0), None, None, None]);
        let ours = plan(&bus, &cameras, &four(bytes, period)).unwrap();
        assert_eq!(ours.placed.len(), 1);
        for refusal in &ours.refused {
            let missing = Picos(2 * 33 * W_CAMERA - SLOT / 10 * 9);
            assert!(
                matches!(refusal.reason, RefusalReason::Slot { missing: m, .. } if m == missing)
            );
        }
    }
}

#[test]
fn table_5_by_timing_alone() {
    let kept = |(bytes, period): (u32, u32)| -> Vec<u32> {
        let plan = plan(&timing_alone(), &cameras_of_table_5(), &four(bytes, period)).unwrap();
        plan.placed.iter().map(|placed| placed.id.0).collect()
    };
    assert_eq!(kept(TABLE_5[0]), [1, 2, 3, 4]);
    assert_eq!(kept(TABLE_5[1]), [1, 2], "or i3 and i4, which come later in the order");
    assert_eq!(kept(TABLE_5[2]), [1]);
}

#[test]
fn the_plan_finds_the_best_starts_of_table_5() {
    for ((bytes, period), best) in TABLE_5.into_iter().zip([3725, 2156, 1155]) {
        let plan = plan(&timing_alone(), &cameras_of_table_5(), &four(bytes, period)).unwrap();
        assert!(plan.promises.iter().all(|p| (p.worst.0 + 50_000) / 100_000 == best));
    }
}

/// The smallest worst time of bulk over every choice of starts, in tenths of µs.
fn smallest(cameras: &[PeriodicEndpoint], bytes: u32) -> u64 {
    let bus = timing_alone();
    let rotation = Rotation::new(&bus, &four(bytes, 1), 0, bytes, false);
    let mut best = u64::MAX;
    let total: u32 = cameras.iter().map(|camera| camera.period).product();
    for mut choice in 0..total {
        let mut load = vec![Picos::ZERO; 8];
        for camera in cameras {
            let start = (choice % camera.period) as usize;
            choice /= camera.period;
            for f in (start..8).step_by(camera.period as usize) {
                load[f] = load[f] + camera.cost(&bus);
            }
        }
        if load.iter().any(|load| load.0 > SLOT) {
            continue;
        }
        let pattern = Pattern { load: &load, slot: Picos(SLOT) };
        let worst = pattern.worst_time(&rotation, Picos(u64::MAX));
        best = best.min(worst.map_or(u64::MAX, |worst| worst.0));
    }
    (best + 50_000) / 100_000
}

#[test]
fn table_5_exactly_with_the_best_starts() {
    let [i1, i2, i3, i4] = cameras_of_table_5();
    let sets: [&[PeriodicEndpoint]; 5] =
        [&[i1], &[i1, i2], &[i1, i3], &[i1, i2, i3], &[i1, i2, i3, i4]];
    let worst = |bytes| sets.map(|set| smallest(set, bytes));
    assert_eq!(worst(4096), [870, 2013, 2013, 3725, 3725]);
    assert_eq!(worst(6144), [1012, 2156, 2156, 4442, 5010]);
    assert_eq!(worst(8192), [1155, 2298, 2298, 4585, 7439]);
    assert_eq!(smallest(&[i1, i4], 8192), 2298, "[USB 2023] judges i4 on average");
    assert!(smallest(&[i1, i3, i4], 6144) <= 2500);
}
