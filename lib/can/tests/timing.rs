//! Bit timing: known settings, exact times, and every setting found held against its limits.

use crate::support::Random;
use diapason_abi::Nanos;
use diapason_can::timing::{QUANTA, TimingLimits, TimingRefusal};
use diapason_can::{BitRate, BitTiming};

fn rate(hertz: u32) -> BitRate {
    BitRate::new(hertz).unwrap()
}

#[test]
fn times_are_exact_and_rounded_up_once() {
    assert_eq!(rate(1_000_000).time(108), Nanos(108_000));
    assert_eq!(rate(512_000).time(1), Nanos(1_954));
    assert_eq!(rate(512_000).time(512_000 * 86_400), Nanos::from_secs(86_400));
    assert_eq!(rate(3).time(u64::MAX), Nanos::FOREVER);
    assert_eq!(BitRate::new(0), Err(TimingRefusal::Rate { hertz: 0 }));
    assert_eq!(BitRate::new(1_000_001), Err(TimingRefusal::Rate { hertz: 1_000_001 }));
}

#[test]
fn known_settings() {
    // 16 quanta at 87.5 %: what CiA recommends for 500 kbit/s from 8 MHz.
    let timing = BitTiming::find(8_000_000, rate(500_000), 875, &TimingLimits::STANDARD).unwrap();
    assert_eq!((timing.prescaler, timing.quanta(), timing.sample_point()), (1, 16, 875));
    assert_eq!(timing.check(8_000_000, &TimingLimits::STANDARD), Ok(rate(500_000)));
    let timing = BitTiming { prescaler: 1, propagation: 8, phase1: 4, phase2: 3, jump: 3 };
    // min(3, 4) / (2 (13 * 16 - 3)) = 0.73 %, 3 / (20 * 16) = 0.94 %: the smaller counts.
    assert_eq!(timing.tolerance_ppm(), 7_317);
    assert_eq!(timing.covers(8_000_000, Nanos(500)), Ok(()));
    let refusal = timing.covers(8_000_000, Nanos(501)).unwrap_err();
    assert_eq!(refusal, TimingRefusal::Propagation { segment: 1_000, needed: 1_002 });
    let refusal =
        BitTiming::find(8_000_000, rate(333_000), 875, &TimingLimits::STANDARD).unwrap_err();
    let nearest = TimingRefusal::NoSetting { clock: 8_000_000, hertz: 333_000, nearest: 333_333 };
    assert_eq!(refusal, nearest);
    assert!(refusal.to_string().ends_with("the nearest possible is 333333 bit/s"));
}

#[test]
fn settings_outside_the_limits_are_refused_by_name() {
    let good = BitTiming { prescaler: 1, propagation: 8, phase1: 4, phase2: 3, jump: 3 };
    let what = |timing: BitTiming| match timing.check(8_000_000, &TimingLimits::STANDARD) {
        Err(TimingRefusal::Outside { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(BitTiming { prescaler: 0, ..good }), "a prescaler");
    assert_eq!(what(BitTiming { prescaler: 65, ..good }), "a prescaler");
    assert_eq!(what(BitTiming { propagation: 0, ..good }), "a propagation segment");
    assert_eq!(what(BitTiming { phase1: 0, ..good }), "a phase segment 1");
    assert_eq!(what(BitTiming { propagation: 14, ..good }), "quanta before the sample");
    assert_eq!(what(BitTiming { phase2: 9, ..good }), "a phase segment 2");
    assert_eq!(what(BitTiming { jump: 4, ..good }), "a synchronisation jump");
    let short = BitTiming { propagation: 1, phase1: 2, phase2: 2, jump: 1, prescaler: 1 };
    assert_eq!(what(short), "quanta in a bit");
    let fast = good.check(40_000_000, &TimingLimits::STANDARD);
    assert_eq!(fast, Err(TimingRefusal::Rate { hertz: 2_500_000 }));
}

#[test]
fn what_is_found_holds_and_nothing_nearer_was_missed() {
    let mut random = Random::new(9);
    for _ in 0..3_000 {
        let clock = random.between(1, 80) as u32 * 1_000_000;
        let hertz = [10_000, 50_000, 125_000, 250_000, 500_000, 800_000, 1_000_000]
            [random.below(7) as usize];
        let sample = random.between(500, 900) as u32;
        let found = BitTiming::find(clock, rate(hertz), sample, &TimingLimits::STANDARD);
        let best = exhaustive(clock, hertz, sample);
        match (found, best) {
            (Ok(timing), Some(off)) => {
                assert_eq!(timing.check(clock, &TimingLimits::STANDARD), Ok(rate(hertz)));
                assert_eq!(clock % timing.cycles(), 0);
                let found = timing.sample_point().abs_diff(sample);
                assert!(found <= off + 1, "{timing:?}: {found} away, {off} is possible");
            }
            (Err(TimingRefusal::NoSetting { nearest, .. }), None) => assert_ne!(nearest, hertz),
            (found, best) => panic!("{clock} {hertz}: {found:?} {best:?}"),
        }
    }
}

/// The smallest distance from the sample point of all settings there are.
fn exhaustive(clock: u32, hertz: u32, sample: u32) -> Option<u32> {
    let mut best = None;
    for prescaler in 1..=64 {
        for quanta in QUANTA.0..=QUANTA.1 {
            if hertz * prescaler * quanta != clock {
                continue;
            }
            for phase2 in 2..=8 {
                let before = quanta - 1 - phase2.min(quanta - 1);
                if (2..=16).contains(&before) {
                    let point = (1 + before) * 1000 / quanta;
                    let off = point.abs_diff(sample);
                    best = Some(best.map_or(off, |best: u32| best.min(off)));
                }
            }
        }
    }
    best
}
