//! Properties of delays between clocks that drift, on true times that only the tests know.

use super::*;
use diapason_random::Random;

const LEAST: u64 = 120_000;
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// A device's clock whose rate wanders.
struct Wandering {
    random: Random,
    /// In millionths, at most.
    most: i64,
    rate: i64,
    host: u64,
    device: u64,
}

impl Wandering {
    fn new(seed: u64, most: i64) -> Wandering {
        let mut random = Random::new(seed);
        let device = random.bits();
        Wandering { random, most, rate: most, host: 0, device }
    }

    /// Returns the device's time, so much later.
    fn after(&mut self, step: u64) -> u64 {
        if self.random.one_in(50) {
            self.rate = self.random.below(2 * self.most as u64 + 1) as i64 - self.most;
        }
        if self.random.one_in(400) {
            self.rate = if self.random.one_in(2) { self.most } else { -self.most };
        }
        // A nanosecond less than the rate allows: times are whole.
        let drift = step as i128 * i128::from(self.rate) / 1_000_000;
        let drift = drift - drift.signum() * i128::from(drift != 0);
        self.host += step;
        self.device = self.device.wrapping_add((step as i128 - drift) as u64);
        self.device
    }
}

/// Measures a message that is `late` beyond `LEAST`, or held back by the one before, which came at
/// `last`: how late it was, and what is measured.
fn measured(
    clock: &mut DeviceClock,
    device: &mut Wandering,
    step: u64,
    late: u64,
    last: &mut u64,
) -> (u64, Delay) {
    let gap = device.random.below(2 * step) + 1;
    let time = device.after(gap);
    let fastest = device.host + LEAST;
    *last = (fastest + late).max(*last + 1);
    (*last - fastest, clock.measure(Nanos(*last), Nanos(time)))
}

#[test]
fn a_drift_within_the_stated_rate_never_alarms_falsely() {
    for seed in 0..6 {
        let drift = [100, 1, 5_000][seed as usize % 3];
        let (mut clock, mut device) = (DeviceClock::new(drift), Wandering::new(seed, drift.into()));
        let mut last = 0;
        while device.host < 3 * DAY {
            let late = device.random.below(4_000_000);
            let (late, delay) = measured(&mut clock, &mut device, 4 * SECOND, late, &mut last);
            assert!(delay.beyond.0 <= late, "{late} {delay:?} at {last} with {drift}");
        }
    }
}

#[test]
fn what_is_late_is_found_within_the_stated_inexactness() {
    for seed in 0..6 {
        let drift = [100, 20, 2_000][seed as usize % 3];
        let (mut clock, mut device) = (DeviceClock::new(drift), Wandering::new(seed, drift.into()));
        let (mut found, mut largest, mut last) = (0, Nanos::ZERO, 0);
        for number in 0..60_000u64 {
            // One in four is as fast as can be; one in a thousand is late by 20 ms.
            let late = match number {
                _ if number.is_multiple_of(1_000) && number > 0 => 20_000_000,
                _ if number.is_multiple_of(4) => 0,
                _ => device.random.below(900_000),
            };
            let (late, delay) = measured(&mut clock, &mut device, 25_000_000, late, &mut last);
            assert!(delay.beyond.0 <= late);
            let least = late.saturating_sub(delay.inexact.0);
            assert!(delay.beyond.0 >= least, "{late}: {delay:?}");
            found += u64::from(delay.beyond.0 > 15_000_000);
            largest = largest.max(delay.inexact);
        }
        assert!(found >= 59);
        // A little more than two seconds at twice the rate.
        assert!(largest.0 <= 21 * SECOND / 5 * u64::from(drift) / 1_000_000, "{largest:?}");
    }
}

#[test]
fn no_clock_makes_nonsense() {
    for drift in [0, 100, 1_000_000, u32::MAX] {
        let mut random = Random::new(u64::from(drift));
        let mut clock = DeviceClock::new(drift);
        let mut now = Nanos::ZERO;
        for _ in 0..20_000 {
            let bits = random.below(50);
            now += Nanos(random.below(1 << bits));
            let delay = clock.measure(now, Nanos(random.bits()));
            assert!(delay.beyond.0 < 1 << 63);
        }
    }
    // A device that overtakes the host: its clock is 10 % fast.
    let mut clock = DeviceClock::new(100);
    for second in 1..100 {
        let (now, time) = (Nanos::from_secs(second), Nanos(second * SECOND * 11 / 10));
        assert_eq!(clock.measure(now, time).beyond, Nanos::ZERO);
    }
}

/// Returns the floors of so many seconds of a clock with this rate, and what each is late by.
fn floors(seconds: u64, rate: i64, late: impl Fn(u64) -> u64) -> Vec<Floor> {
    let floor = |second: u64| {
        let drift = (second * SECOND) as i128 * i128::from(rate) / 1_000_000;
        let distance = (drift as u64).wrapping_add(late(second)).wrapping_sub(5 * SECOND);
        Floor { at: Nanos(second * SECOND), distance }
    };
    (1..=seconds).map(floor).collect()
}

#[test]
fn a_clock_beyond_the_stated_rate_is_named() {
    let variation = Nanos::from_millis(4);
    let noise = |second: u64| second * 37 % 5 * 100_000;
    for (rate, seconds) in [(5_000, 4), (-5_000, 5), (-100_000, 4), (200, 60), (-200, 60)] {
        let found = beyond(&floors(seconds, rate, noise), 100, variation).unwrap();
        assert!((found - rate).abs() <= rate.abs() / 10 + 10, "{rate} {found}");
    }
    // Within the rate, for days: nothing.
    for rate in [0, 100, -100, 99] {
        assert_eq!(beyond(&floors(200_000, rate, noise), 100, variation), None, "{rate}");
    }
}

#[test]
fn messages_that_are_late_are_no_clock() {
    let variation = Nanos::from_millis(4);
    let once = |second: u64| if second == 7 { 50_000_000u64 } else { 0 };
    let for_a_while = |second: u64| if (5..9).contains(&second) { 20_000_000 } else { 0 };
    let from_then_on = |second: u64| if second >= 6 { 30_000_000 } else { 0 };
    let more_and_less = |second: u64| (second % 7) * 9_000_000;
    for late in [&once as &dyn Fn(u64) -> u64, &for_a_while, &from_then_on] {
        assert_eq!(beyond(&floors(20, 50, late), 100, variation), None);
    }
    assert_eq!(beyond(&floors(5, 0, more_and_less), 20_000, variation), None);
    assert_eq!(beyond(&[], 100, variation), None);
    assert_eq!(beyond(&floors(3, 5_000, |_| 0), 100, variation), None);
}
