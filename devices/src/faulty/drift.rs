//! A device whose clock is not the host's: it goes faster or slower from some instant on.

use crate::device::{Answer, Device, Handshake, Stall};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};

const MILLION: i128 = 1_000_000;

/// A device that lives by a clock of its own. What it does takes place at the host's time of
/// course; when it does it, and what times it reports, its own clock says.
pub struct Drifting<D> {
    device: D,
    /// From then on, of the host's time, the clock goes faster by so many parts per million.
    changes: Vec<(Nanos, i32)>,
}

impl<D: Device> Drifting<D> {
    /// `device` with a clock that changes its rate at these times, in order; before the first it is
    /// the host's.
    #[must_use]
    pub fn new(device: D, changes: Vec<(Nanos, i32)>) -> Drifting<D> {
        Drifting { device, changes }
    }

    /// The device's time at a host's time: what each rate adds or takes, over all rates so far.
    fn own(&self, now: Nanos) -> Nanos {
        let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([Nanos::FOREVER]);
        let gained = self.changes.iter().zip(ends).filter(|((from, _), _)| *from < now);
        let gained: i128 = gained
            .map(|((from, ppm), end)| {
                let span = now.min(end) - *from;
                i128::from(span.0) * i128::from(*ppm) / MILLION
            })
            .sum();
        Nanos(u64::try_from(i128::from(now.0) + gained).unwrap_or(u64::MAX))
    }

    /// The first host's time at which the device's clock shows `own` or more.
    fn host(&self, own: Nanos) -> Nanos {
        if own == Nanos::FOREVER {
            return own;
        }
        // Rates are within a tenth of 1, so the answer is within an eighth of `own`.
        let (mut low, mut high) = (own.0 - own.0 / 8, own.0.saturating_add(own.0 / 8 + 1));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.own(Nanos(middle)) < own { low = middle + 1 } else { high = middle }
        }
        Nanos(low)
    }
}

impl<D: Device> Device for Drifting<D> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensor::Sensor;
    use diapason_random::Random;

    fn drifting(changes: Vec<(Nanos, i32)>) -> Drifting<Sensor> {
        Drifting::new(Sensor::article(), changes)
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
    }
}
