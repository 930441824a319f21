//! What goes wrong around a controller, and when: drawn from a seed, so that it can be had again.

use diapason_abi::Nanos;
use diapason_random::Random;

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The next interrupt never arrives.
    LoseInterrupt,
    /// The next interrupt arrives so much later.
    DelayInterrupt(Nanos),
    /// The next interrupt arrives twice.
    RepeatInterrupt(Nanos),
    /// So many packets of an endpoint are damaged on the wire: slot, endpoint.
    DamagePackets(u8, u8, u32),
    /// What is plugged into this connector (counted among those that have something) is pulled, and
    /// plugged in again so much later.
    Unplug(usize, Nanos),
    /// The controller halts with a system error.
    SystemError,
    /// The controller breaks, until it is reset.
    ControllerError,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |time: &Nanos| time.0 / 1_000;
        match self {
            Fault::LoseInterrupt => write!(f, "the next interrupt is lost"),
            Fault::DelayInterrupt(by) => write!(f, "the next interrupt is {} us late", us(by)),
            Fault::RepeatInterrupt(after) => {
                write!(f, "the next interrupt comes again after {} us", us(after))
            }
            Fault::DamagePackets(slot, endpoint, packets) => {
                write!(f, "{packets} packets of slot {slot}, endpoint {endpoint} are damaged")
            }
            Fault::Unplug(which, back) => {
                write!(f, "device {which} is unplugged for {} us", us(back))
            }
            Fault::SystemError => write!(f, "system error"),
            Fault::ControllerError => write!(f, "controller error"),
        }
    }
}

/// The shortest and the longest time between two faults.
const DISTANCE: (u64, u64) = (20_000_000, 600_000_000);
/// Endpoints that packets are damaged of: the control endpoint and the first bulk ones.
const ENDPOINTS: [u8; 3] = [1, 4, 5];

/// Faults to come.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    random: Random,
    next: (Nanos, Fault),
}

impl Faults {
    /// The faults of a seed; the first comes when devices have had time to be found.
    pub fn new(seed: u64) -> Faults {
        let mut random = Random::stream(seed, 1);
        let next = (Nanos::from_millis(800), draw(&mut random));
        Faults { random, next }
    }

    /// When the next one comes.
    pub fn next(&self) -> Nanos {
        self.next.0
    }

    /// The one that is due, if one is.
    pub fn take(&mut self, now: Nanos) -> Option<Fault> {
        let (at, fault) = self.next;
        if at > now {
            return None;
        }
        let distance = Nanos(self.random.between(DISTANCE.0, DISTANCE.1));
        self.next = (at + distance, draw(&mut self.random));
        Some(fault)
    }
}

fn draw(random: &mut Random) -> Fault {
    let span = |random: &mut Random, most| Nanos::from_micros(random.between(1, most));
    match random.below(16) {
        0..3 => Fault::LoseInterrupt,
        3..6 => Fault::DelayInterrupt(span(random, 3_000)),
        6..9 => Fault::RepeatInterrupt(span(random, 500)),
        9..13 => {
            let (slot, endpoint) = (random.between(1, 2) as u8, random.pick(&ENDPOINTS));
            Fault::DamagePackets(slot, endpoint, random.within(1, 6))
        }
        13 => Fault::Unplug(random.index(4), span(random, 300_000)),
        14 => Fault::SystemError,
        _ => Fault::ControllerError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_its_faults_and_they_keep_their_distance() {
        let all = |seed| {
            let (mut faults, mut taken) = (Faults::new(seed), Vec::new());
            for _ in 0..200 {
                let at = faults.next();
                assert_eq!(faults.take(at - Nanos(1)), None);
                taken.push((at, faults.take(at).unwrap()));
            }
            taken
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        for pair in all(3).windows(2) {
            let distance = pair[1].0 - pair[0].0;
            assert!((DISTANCE.0..=DISTANCE.1).contains(&distance.0));
        }
        let unplugged = |(_, fault): &(Nanos, Fault)| matches!(fault, Fault::Unplug(..));
        assert!(all(4).iter().any(unplugged));
    }
}
