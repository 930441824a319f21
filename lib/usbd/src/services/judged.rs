//! The arrivals of a source against its contract, and how long they took: as the messages of CAN
//! channels are, but by the time that a message has where the description says.

use crate::told::Pipes;
use diapason_abi::Nanos;
use diapason_contract::source::{MessageShape, PipeSource};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::clock::{Delay, DeviceClock};
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;

/// A message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Judged {
    /// The time at which the device made the message, by its own clock; its arrival, if nothing
    /// tells.
    pub time: Nanos,
    /// The message's delay from the device, as far as its time tells.
    pub moved: Delay,
    /// The message is outside of its contract.
    pub outside: bool,
}

/// Judges the messages of one source.
pub(super) struct Judge {
    shape: Option<MessageShape>,
    meter: Option<Meter>,
    clock: DeviceClock,
}

impl Judge {
    /// Returns the judge of the messages of this kind's first seat. Without a pipe in the
    /// description all are fine.
    pub fn new(kind: ServiceKind, pipes: &Pipes) -> Judge {
        Judge::seated(kind, 0, pipes)
    }

    /// Returns the judge of the messages of this seat.
    pub fn seated(kind: ServiceKind, seat: usize, pipes: &Pipes) -> Judge {
        Judge::numbered(PipeSource::seated(kind, seat).map(|(number, _)| number), pipes)
    }

    /// Returns the judge of the messages of this source.
    pub fn of(source: &PipeSource, pipes: &Pipes) -> Judge {
        Judge::numbered(Some(source.number()), pipes)
    }

    fn numbered(number: Option<usize>, pipes: &Pipes) -> Judge {
        Judge {
            shape: number.and_then(|number| pipes.shape(number)),
            meter: number.and_then(|number| pipes.meter(number)),
            clock: pipes.clock(),
        }
    }

    /// Notes that another device is there, or the same with another clock.
    pub fn restart(&mut self) {
        self.meter.iter_mut().for_each(Meter::restart);
        self.clock.restart();
    }

    /// Returns the most bytes of a message and the time from one to the next, if there is a pipe.
    pub fn wanted(&self) -> Option<(usize, Nanos)> {
        let Bucket { messages, per, .. } = *self.meter.as_ref()?.contract();
        Some((self.shape?.bytes, Nanos(per.0 / messages.max(1))))
    }

    /// Returns the place of the time in a message, if it has one.
    pub fn stamp(&self) -> Option<usize> {
        self.shape?.stamp
    }

    /// Returns the first time at which one more message is within the contract, if there is one.
    pub fn opens(&self) -> Option<Nanos> {
        self.meter.as_ref().map(Meter::opens)
    }

    /// Takes in a message of so many bytes that came now, and that its device made at `time`.
    pub fn judge_at(&mut self, time: Option<Nanos>, bytes: u32, now: Nanos) -> Judged {
        let plain = Judged { time: now, moved: Delay::default(), outside: false };
        let Some(shape) = self.shape else { return plain };
        let too_long = bytes as usize > shape.bytes;
        let Some(time) = time else {
            // A message without the time that it is to have is none of its pipe.
            return Judged { outside: too_long || shape.stamp.is_some(), ..plain };
        };
        let within = self.meter.as_mut().is_none_or(|meter| meter.admits(time));
        let moved = self.clock.measure(now, time);
        Judged { time, moved, outside: too_long || !within }
    }

    /// Takes in a message that came now.
    pub fn judge(&mut self, message: &[u8], now: Nanos) -> Judged {
        let time = self.shape.and_then(|shape| shape.time(message));
        self.judge_at(time, u32::try_from(message.len()).unwrap_or(u32::MAX), now)
    }
}

/// A clock of a device whose 32 bits overflow: its times from the first one on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ticks {
    /// Ticks in a second; zero if that is unknown.
    hertz: u32,
    last: Option<u32>,
    sum: u64,
}

impl Ticks {
    /// Returns a clock of so many ticks in a second.
    pub const fn of(hertz: u32) -> Ticks {
        Ticks { hertz, last: None, sum: 0 }
    }

    /// Returns the time of the next message, which is less than 2^32 ticks after the one before.
    pub fn time(&mut self, ticks: u32) -> Option<Nanos> {
        if self.hertz == 0 {
            return None;
        }
        self.sum += u64::from(ticks.wrapping_sub(self.last.unwrap_or(ticks)));
        self.last = Some(ticks);
        let nanos = u128::from(self.sum) * 1_000_000_000 / u128::from(self.hertz);
        Some(Nanos(nanos as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::ServerSettings;
    use alloc::vec::Vec;
    use diapason_abi::settings::Settings;
    use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
    use diapason_contract::source::SHAPES;

    const PERIOD: Nanos = Nanos::from_micros(2_500);

    /// Returns the judge of sensors whose packets have 24 bytes, with a time here, once a period.
    fn judge(stamp: Option<usize>) -> Judge {
        let (number, _) = PipeSource::of(ServiceKind::Sensors).unwrap();
        let mut contracts = Contracts::default();
        let contract = Contract { messages: 1, per: PERIOD, burst: 1, jitter: Nanos::ZERO };
        contracts.0[number] = Some(contract);
        let mut settings = Settings::NONE;
        settings.put(CONTRACTS, &contracts.words()).unwrap();
        settings.put(SHAPES, &[MessageShape { bytes: 24, stamp }.word()]).unwrap();
        Judge::new(ServiceKind::Sensors, &ServerSettings::read(&settings).pipes)
    }

    fn packet(time: Nanos) -> [u8; 24] {
        let mut packet = [7; 24];
        packet[16..].copy_from_slice(&time.0.to_le_bytes());
        packet
    }

    #[test]
    fn a_packet_that_comes_too_soon_or_is_too_long_is_outside() {
        let mut judge = judge(Some(16));
        let late = Nanos::from_millis(3);
        let (mut at, mut outside) = (Nanos::ZERO, Vec::new());
        for gap in [0, 2_500, 2_500, 1_000, 2_500] {
            at += Nanos::from_micros(gap);
            let judged = judge.judge(&packet(at), at + late);
            assert_eq!((judged.time, judged.moved.beyond), (at, Nanos::ZERO));
            outside.push(judged.outside);
        }
        assert_eq!(outside, [false, false, false, true, false]);
        at += PERIOD;
        let judged = judge.judge(&packet(at), at + late + late);
        // The clocks may have run apart a little.
        assert!(judged.moved.beyond > Nanos(late.0 - 10_000) && !judged.outside, "{judged:?}");
        at += PERIOD;
        let long: Vec<u8> = packet(at).into_iter().chain([0]).collect();
        assert!(judge.judge(&long, at + late).outside);
        assert!(judge.judge(&packet(at)[..23], at + late).outside, "it has no time");
    }

    #[test]
    fn without_times_nothing_is_known_but_the_length() {
        let mut judge = judge(None);
        for at in 0..10 {
            let judged = judge.judge(&packet(Nanos(9)), Nanos(at));
            let plain = Judged { time: Nanos(at), moved: Delay::default(), outside: false };
            assert_eq!(judged, plain);
        }
        assert!(judge.judge(&[0; 25], Nanos(11)).outside);
    }

    #[test]
    fn a_clock_that_overflows_goes_on() {
        let mut clock = Ticks::of(48_000_000);
        let at = |micros: u64| (u64::from(u32::MAX) - 48 * 1_000 + 48 * micros) as u32;
        for micros in [0, 500, 2_000, 40_000_000, 120_000_000] {
            assert_eq!(clock.time(at(micros)), Some(Nanos::from_micros(micros)));
        }
        assert_eq!(Ticks::of(0).time(7), None);
    }

    #[test]
    fn what_has_no_pipe_is_never_outside() {
        let mut judge =
            Judge::new(ServiceKind::Sensors, &ServerSettings::read(&Settings::NONE).pipes);
        assert!((0..10).all(|at| !judge.judge(&[0; 512], Nanos(at)).outside));
    }
}
