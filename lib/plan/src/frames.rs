//! The shortest and the longest frames on the bus of a channel, with the space between frames.
//!
//! On a channel with CAN FD there are frames of both formats. Those that the host sends have their
//! data at the rate of the data: the server sends no others.

use diapason_abi::Nanos;
use diapason_can::fd::{FD_BYTES_MAX, FdLength};
use diapason_can::wire::{self, INTERFRAME_BITS};
use diapason_contract::can::FRAME_BITS;
use diapason_system::UsbPlug;

const SECOND: u64 = 1_000_000_000;
/// Bits of the shortest frame of CAN FD at the rate of arbitration, and those without data at the
/// rate of the data: a short identifier and no stuff bits.
const FD_SHORTEST: (u64, u64) = (26, 33);
/// Bits without data at the rate of the data if there are more than 16 bytes.
const FD_LONG: u64 = 38;

/// The rates of a channel, in bits a second.
#[derive(Clone, Copy)]
pub(crate) struct Frames {
    rate: u64,
    /// The rate of the data of CAN FD, if the channel has it.
    data: Option<u64>,
}

impl Frames {
    /// Returns the frames of a channel; `None` if there is no such channel.
    pub(crate) fn of(plug: &UsbPlug, channel: usize) -> Option<Frames> {
        let rate = u64::from(*plug.bit_rates.get(channel)?);
        let data = plug.data_rates.get(channel).copied().unwrap_or(0);
        (rate > 0).then_some(Frames { rate, data: (data > 0).then_some(data.into()) })
    }

    /// Returns the least time of a frame of CAN FD with `bytes` bytes, if there is one.
    fn flexible(&self, bytes: u64) -> Option<u64> {
        let (nominal, rest) = FD_SHORTEST;
        let rest = if bytes > 16 { FD_LONG } else { rest };
        let fast = (rest + 8 * bytes) * SECOND / self.data?;
        Some((nominal + u64::from(INTERFRAME_BITS)) * SECOND / self.rate + fast)
    }

    /// Returns the least time of any frame.
    pub(crate) fn shortest(&self) -> Nanos {
        let classic = FRAME_BITS.0 * SECOND / self.rate;
        Nanos(self.flexible(0).map_or(classic, |flexible| classic.min(flexible)))
    }

    /// Returns the least time of a frame with eight bytes.
    pub(crate) fn numbered(&self, extended: bool) -> Nanos {
        let bits = u64::from(wire::shortest(extended, 8) + INTERFRAME_BITS);
        let classic = bits * SECOND / self.rate;
        Nanos(self.flexible(8).map_or(classic, |flexible| classic.min(flexible)))
    }

    /// Returns the least time of two frames of the models' traffic: on a channel with CAN FD one of
    /// them has 64 bytes.
    pub(crate) fn two_of_traffic(&self, extended: bool) -> Nanos {
        let bits = u64::from(wire::shortest(extended, 8) + INTERFRAME_BITS);
        let classic = bits * SECOND / self.rate;
        Nanos(classic + self.flexible(FD_BYTES_MAX.into()).unwrap_or(classic))
    }

    /// Returns the longest time of any frame that the host sends.
    pub(crate) fn longest(&self) -> Nanos {
        let classic = (FRAME_BITS.1 * SECOND).div_ceil(self.rate);
        let flexible = self.data.map_or(0, |data| {
            let FdLength { nominal, data: fast } = FdLength::worst(true, FD_BYTES_MAX);
            let nominal = u64::from(nominal + INTERFRAME_BITS);
            (nominal * SECOND).div_ceil(self.rate) + (u64::from(fast) * SECOND).div_ceil(data)
        });
        Nanos(classic.max(flexible))
    }
}

/// Returns whether any channel of an interface has CAN FD.
pub(crate) fn has_fd(plug: &UsbPlug) -> bool {
    plug.data_rates.iter().any(|rate| *rate > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_can::frame::{extended, standard};
    use diapason_can::{AnyFrame, BitRate, CanFrame, FdFrame};
    use diapason_devices::can::CanBus;
    use diapason_random::Random;

    /// Returns how long the frames of the bus take, one after the other.
    fn times(rate: u32, data: u32, frames: &[AnyFrame]) -> Vec<Nanos> {
        let bus =
            CanBus::with_data_rate(BitRate::new(rate).unwrap(), BitRate::of_data(data).unwrap());
        let begin = Nanos::from_millis(1);
        bus.add_replay(frames.iter().map(|frame| (begin, *frame)).collect());
        bus.add_unit(Vec::new());
        bus.record(frames.len());
        bus.advance(Nanos::from_secs(10));
        let ends: Vec<Nanos> = bus.take_record().iter().map(|sent| sent.time).collect();
        assert_eq!(ends.len(), frames.len());
        ends.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Any frames of a bus that is right to the bit keep between the two, and come near to both.
    #[test]
    fn no_frame_is_shorter_or_longer() {
        let mut random = Random::new(20);
        for (rate, data) in [(500_000, 2_000_000), (1_000_000, 8_000_000), (250_000, 250_000)] {
            let frames = Frames { rate: rate.into(), data: Some(data.into()) };
            let one = |random: &mut Random| -> AnyFrame {
                let id = match random.one_in(2) {
                    true => extended(random.bits() as u32 & 0x1fff_ffff),
                    false => standard(random.bits() as u32 & 0x7ff),
                };
                let length = random.pick(&[0, 8, 12, 64]);
                let byte = random.pick(&[0, 0xff, 0x55, random.clone().bits() as u8]);
                match random.one_in(3) {
                    true => {
                        CanFrame::data(id.unwrap(), &[byte; 8][..length.min(8)]).unwrap().into()
                    }
                    false => {
                        let frame = FdFrame::new(id.unwrap(), &[byte; 64][..length]).unwrap();
                        frame.with_fast(true).into()
                    }
                }
            };
            // A node sends the most urgent first, so equal frames follow each other.
            let mut worst = (Nanos::FOREVER, Nanos::ZERO);
            for _ in 0..60 {
                let all: Vec<AnyFrame> = [one(&mut random); 3].into();
                for time in times(rate, data, &all) {
                    worst = (worst.0.min(time), worst.1.max(time));
                }
            }
            let (least, most) = (frames.shortest(), frames.longest());
            assert!(worst.0 + Nanos(2_000) >= least && worst.1 <= most + Nanos(2_000), "{worst:?}");
            assert!(worst.0 <= least + Nanos(least.0 / 5), "{worst:?} {least:?}");
            assert!(worst.1.0 >= most.0 - most.0 / 3, "{worst:?} {most:?}");
        }
    }

    #[test]
    fn a_classic_channel_has_classic_frames() {
        let frames = Frames { rate: 500_000, data: None };
        assert_eq!((frames.shortest(), frames.longest()), (Nanos(94_000), Nanos(320_000)));
        assert_eq!(frames.two_of_traffic(false).0, 2 * frames.numbered(false).0);
    }
}
