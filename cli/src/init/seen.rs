//! The traffic that a log shows: how often messages of a bus come, and how many at once.

use diapason_abi::Nanos;
use diapason_can::Id;
use diapason_can::dbc::Dbc;
use diapason_can::frame::CanFrame;
use diapason_can::wire;
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
/// Bits between two frames.
const SPACE: u64 = 3;

/// One message of a bus, by its identifier.
#[derive(Clone, Debug, Default)]
pub struct MessageTraffic {
    /// Its name and its cycle in ms, if a DBC file has them.
    pub name: Option<String>,
    pub cycle_ms: Option<u64>,
    pub times: u64,
    last: Nanos,
    /// The shortest and the longest time from one to the next.
    pub apart: Option<(Nanos, Nanos)>,
}

/// The traffic of one channel.
#[derive(Clone, Debug, Default)]
pub struct ChannelTraffic {
    pub number: usize,
    pub frames: u64,
    /// From the first frame to the last.
    pub length: Nanos,
    /// The shortest time between two frames.
    pub closest: Option<Nanos>,
    /// Messages by identifier: extended, and its bits.
    pub messages: BTreeMap<(bool, u32), MessageTraffic>,
    /// The most in a second in the long run, and the most at once.
    pub rate: u64,
    pub burst: u64,
    /// Bits of all frames.
    bits: u64,
}

impl ChannelTraffic {
    /// Returns a channel of which there is no log.
    pub fn unseen(number: usize) -> ChannelTraffic {
        ChannelTraffic { number, ..ChannelTraffic::default() }
    }

    /// Returns what these frames show.
    pub fn of(number: usize, frames: Vec<(Nanos, CanFrame)>) -> ChannelTraffic {
        let mut seen = ChannelTraffic::unseen(number);
        let times: Vec<Nanos> = frames.iter().map(|(at, _)| *at).collect();
        let ends = times.first().zip(times.last());
        seen.length = ends.map_or(Nanos::ZERO, |(first, last)| *last - *first);
        seen.frames = times.len() as u64;
        seen.closest = times.windows(2).map(|two| two[1] - two[0]).min();
        seen.rate = rate(seen.frames, seen.length);
        seen.burst = burst(&times, seen.rate);
        for (at, frame) in &frames {
            seen.bits += u64::from(wire::length(frame)) + SPACE;
            let message = seen.messages.entry((frame.is_extended(), frame.raw_id())).or_default();
            if message.times > 0 {
                let gap = *at - message.last;
                let (shortest, longest) = message.apart.unwrap_or((gap, gap));
                message.apart = Some((shortest.min(gap), longest.max(gap)));
            }
            message.times += 1;
            message.last = *at;
        }
        seen
    }

    /// Adds what a DBC file knows. Messages with a cycle that were not seen count: they may come.
    pub fn know(&mut self, dbc: &Dbc) {
        for known in &dbc.messages {
            let key = match known.id {
                Id::Standard(id) => (false, u32::from(id.as_raw())),
                Id::Extended(id) => (true, id.as_raw()),
            };
            let message = self.messages.entry(key).or_default();
            message.name = Some(known.name.clone());
            message.cycle_ms = known.cycle_ms;
            if let Some(cycle) = known.cycle_ms.filter(|cycle| *cycle > 0 && message.times == 0) {
                self.rate += 1_000_u64.div_ceil(cycle);
                self.burst += 1;
            }
        }
    }

    /// Returns the usual bit rate that has room for it.
    pub fn bit_rate(&self) -> u32 {
        let length = self.length.0.max(SECOND / 100);
        let each = u128::from(self.bits) * u128::from(SECOND) / u128::from(length);
        if each > 400_000 { 1_000_000 } else { 500_000 }
    }
}

/// Returns a rate with a tenth to spare.
fn rate(frames: u64, length: Nanos) -> u64 {
    let gaps = u128::from(frames.saturating_sub(1)) * u128::from(SECOND) * 11;
    let rate = gaps.div_ceil(10 * u128::from(length.0.max(1)));
    u64::try_from(rate).unwrap_or(u64::MAX).clamp(1, 1_000_000)
}

/// Returns the least burst with which these messages keep to a rate.
fn burst(times: &[Nanos], rate: u64) -> u64 {
    let (mut ahead, mut most) = (0u64, 0);
    let mut last = times.first().copied().unwrap_or_default();
    for at in times {
        ahead = ahead.saturating_sub((*at - last).0.saturating_mul(rate)) + SECOND;
        (last, most) = (*at, most.max(ahead));
    }
    most.div_ceil(SECOND).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_pipe::meter::Meter;
    use diapason_pipe::size::Bucket;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_burst_is_the_least_that_holds(
            gaps in proptest::collection::vec(0u64..50_000_000, 1..60), rate in 1u64..2_000,
        ) {
            let mut at = Nanos(7);
            let times: Vec<Nanos> = gaps.iter().map(|gap| { at += Nanos(*gap); at }).collect();
            let burst = burst(&times, rate);
            let keeps = |burst| {
                let mut meter = Meter::new(Bucket::per_second(rate).with_burst(burst));
                times.iter().all(|at| meter.admits(*at))
            };
            prop_assert!(keeps(burst));
            prop_assert!(burst == 1 || !keeps(burst - 1));
        }
    }
}
