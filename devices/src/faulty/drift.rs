//! A device whose clock is not the host's: it goes faster or slower from some instant on.

use crate::device::{Answer, Handshake, Stall, UsbDevice};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

const MILLION: i64 = 1_000_000;

/// From some host's time on the clock goes faster by so many parts per million.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rate {
    from: Nanos,
    ppm: i32,
    /// The gain until then.
    gained: i128,
}

impl Rate {
    /// Returns the gain of the clock at a later time, if this rate lasts until then.
    fn gained(&self, now: Nanos) -> i128 {
        let span = now.0 - self.from.0;
        let small = i64::try_from(span).ok().and_then(|span| span.checked_mul(self.ppm.into()));
        let whole = || i128::from(span) * i128::from(self.ppm) / i128::from(MILLION);
        // This is asked millions of times a second, and a division of 128 bits is long.
        self.gained + small.map_or_else(whole, |product| (product / MILLION).into())
    }

    /// Returns the clock's time at which the rate begins.
    fn own(&self) -> i128 {
        i128::from(self.from.0) + self.gained
    }

    /// Returns the first host's time at which the clock shows a later time or more, if this rate
    /// lasts until then.
    ///
    /// With d the clock's time since the rate began and r its rate, a gain is cut off towards zero:
    /// a fast clock shows ⌊s·r⌋ after s, which is d at s = ⌈d/r⌉. A slow one shows ⌈s·r⌉, which is
    /// more than d - 1 at s = ⌊(d - 1)/r⌋ + 1.
    fn host(&self, own: Nanos) -> Nanos {
        let passed = u64::try_from(i128::from(own.0) - self.own()).unwrap_or(u64::MAX);
        let rate = (MILLION + i64::from(self.ppm)).unsigned_abs();
        let (whole, up, more) =
            if self.ppm < 0 { (passed.saturating_sub(1), 0, 1) } else { (passed, rate - 1, 0) };
        let million = MILLION.unsigned_abs();
        let small = whole.checked_mul(million).and_then(|product| product.checked_add(up));
        let large = || {
            let product = u128::from(whole) * u128::from(million) + u128::from(up);
            u64::try_from(product / u128::from(rate)).unwrap_or(u64::MAX)
        };
        let span = small.map_or_else(large, |product| product / rate);
        Nanos(self.from.0.saturating_add(span).saturating_add(more))
    }
}

/// The clock of a device, with the rates that it has in turn.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OwnClock(Vec<Rate>);

impl OwnClock {
    /// Returns one that changes its rate, in parts per million, at these times of the host, in
    /// order; before the first it is the host's.
    #[must_use]
    pub fn new(changes: Vec<(Nanos, i32)>) -> OwnClock {
        let mut rates: Vec<Rate> = Vec::with_capacity(changes.len());
        for (from, ppm) in changes {
            let gained = rates.last().map_or(0, |last| last.gained(from));
            rates.push(Rate { from, ppm, gained });
        }
        OwnClock(rates)
    }

    /// Returns the clock of the world, as a host sees it whose own clock gains `ppm` millionths.
    /// Things between hosts go by it: they are devices with a clock that is not the host's.
    #[must_use]
    pub fn world(ppm: i32) -> OwnClock {
        OwnClock::new(if ppm == 0 { Vec::new() } else { vec![(Nanos::ZERO, -ppm)] })
    }

    /// Returns how far it is ahead.
    fn gained(&self, now: Nanos) -> i128 {
        let begun = self.0.partition_point(|rate| rate.from < now);
        self.0[..begun].last().map_or(0, |rate| rate.gained(now))
    }

    /// Returns the device's time at a host's time.
    #[must_use]
    pub fn own(&self, now: Nanos) -> Nanos {
        if now == Nanos::FOREVER || self.0.is_empty() {
            return now;
        }
        Nanos(u64::try_from(i128::from(now.0) + self.gained(now)).unwrap_or(u64::MAX))
    }

    /// Returns the first host's time at which the device's clock shows `own` or more.
    #[must_use]
    pub fn host(&self, own: Nanos) -> Nanos {
        if own == Nanos::FOREVER || self.0.is_empty() {
            return own;
        }
        let begun = self.0.partition_point(|rate| rate.own() < i128::from(own.0));
        self.0[..begun].last().map_or(own, |rate| rate.host(own))
    }
}

/// A device that lives by a clock of its own. That clock decides when it acts, and the times that
/// it reports. All its acts are at times of the host.
pub struct Drifting<D> {
    device: D,
    clock: OwnClock,
}

impl<D: UsbDevice> Drifting<D> {
    /// Returns a device that goes by this clock.
    #[must_use]
    pub fn by(device: D, clock: OwnClock) -> Drifting<D> {
        Drifting { device, clock }
    }

    /// `device` with a clock that changes its rate, in parts per million, at these times of the
    /// host, in order; before the first it is the host's.
    #[must_use]
    pub fn new(device: D, changes: Vec<(Nanos, i32)>) -> Drifting<D> {
        Drifting::by(device, OwnClock::new(changes))
    }

    /// The first host's time at which the device's clock shows `own` or more.
    fn host(&self, own: Nanos) -> Nanos {
        self.clock.host(own)
    }

    /// The device's time at a host's time.
    fn own(&self, now: Nanos) -> Nanos {
        self.clock.own(now)
    }
}

impl<D: UsbDevice> UsbDevice for Drifting<D> {
    fn speed(&self) -> Speed {
        self.device.speed()
    }

    fn reset(&mut self, now: Nanos) {
        self.device.reset(self.own(now));
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.device.control(self.own(now), setup, data)
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.device.receive(self.own(now), endpoint, packet)
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.device.send(self.own(now), endpoint, packet)
    }

    fn next_change(&self) -> Nanos {
        self.host(self.device.next_change())
    }

    fn advance(&mut self, now: Nanos) {
        self.device.advance(self.own(now));
    }

    fn is_there(&self) -> bool {
        self.device.is_there()
    }

    fn unplugged(&mut self, now: Nanos) {
        self.device.unplugged(self.own(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensor::Sensor;
    use diapason_random::Random;

    fn drifting(changes: Vec<(Nanos, i32)>) -> Drifting<Sensor> {
        Drifting::new(Sensor::default(), changes)
    }

    #[test]
    fn a_fast_clock_gains_its_share_from_then_on() {
        let second = Nanos::from_secs(1);
        let fast = drifting(vec![(second, 100), (Nanos::from_secs(3), -100)]);
        let own = |seconds| fast.own(Nanos::from_secs(seconds)).0;
        let even = 1_000_000_000;
        assert_eq!([own(1), own(2), own(3)], [even, 2 * even + 100_000, 3 * even + 200_000]);
        assert_eq!([own(4), own(5)], [4 * even + 100_000, 5 * even]);
    }

    #[test]
    fn the_host_is_never_told_too_late_or_too_early() {
        let mut random = Random::new(7);
        for _ in 0..1_000 {
            let ppm = random.between(0, 200_000) as i32 - 100_000;
            let clock = drifting(vec![(Nanos(random.between(0, 5_000_000_000)), ppm)]);
            let own = Nanos(random.between(0, 20_000_000_000));
            let host = clock.host(own);
            assert!(clock.own(host) >= own);
            assert!(host == Nanos::ZERO || clock.own(host - Nanos(1)) < own);
        }
        assert_eq!(drifting(vec![(Nanos(1), 5)]).host(Nanos::FOREVER), Nanos::FOREVER);
        assert_eq!(drifting(Vec::new()).host(Nanos(77)), Nanos(77));
    }

    #[test]
    fn a_clock_of_years_is_exact() {
        let mut random = Random::new(9);
        for _ in 0..2_000 {
            let ppm = random.between(0, 200) as i32 - 100;
            let clock = drifting(vec![(Nanos(random.between(0, 1 << 40)), ppm)]);
            let own = Nanos(random.between(1 << 41, 1 << 62));
            let host = clock.host(own);
            assert!(clock.own(host) >= own && clock.own(host - Nanos(1)) < own);
        }
    }

    /// A cable's time at two hosts: nobody is told before it has come, and nobody waits too long.
    #[test]
    fn the_world_is_seen_alike_by_all_hosts() {
        let mut random = Random::new(19);
        for _ in 0..2_000 {
            let world = OwnClock::world(random.between(0, 200) as i32 - 100);
            let at = Nanos(random.between(1, 1 << 50));
            let seen = world.host(at);
            assert!(world.own(seen) >= at && world.own(seen - Nanos(1)) < at);
            assert!(world.own(at) <= world.own(at + Nanos(1)));
            let apart = seen.0.abs_diff(at.0);
            assert!(apart <= at.0 / 9_990 + 2, "{apart} ns at {at:?}");
        }
        assert_eq!(OwnClock::world(-100).own(Nanos::FOREVER), Nanos::FOREVER);
        let second = Nanos::from_secs(1);
        assert_eq!(OwnClock::world(100).own(second), second - Nanos(100_000));
    }

    #[test]
    fn many_rates_are_as_good_as_one() {
        let mut random = Random::new(8);
        for _ in 0..200 {
            let mut from = 0;
            let changes = (0..6).map(|_| {
                from += random.between(1, 3_000_000_000);
                (Nanos(from), random.between(0, 200_000) as i32 - 100_000)
            });
            let clock = drifting(changes.collect());
            for _ in 0..50 {
                let own = Nanos(random.between(1, 30_000_000_000));
                let host = clock.host(own);
                assert!(clock.own(host) >= own && clock.own(host - Nanos(1)) < own);
            }
        }
    }
}
