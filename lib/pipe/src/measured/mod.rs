//! The ends of pipes measure, and report in words.
//!
//! A report is a record: the kernel adds the process that made it, so nobody reports for another,
//! and no text that a program logs is one. Words are packed and read here and nowhere else.

mod can;
mod chain;
mod counted;
mod delays;
mod frames;
mod gauge;
mod served;
mod time;

pub use can::{CanGauge, CanReport, ControllerCounts, HeardReport, next_report};
pub use chain::{ChainGauge, ChainMessage, MESSAGE_WORDS};
pub use counted::{CostReport, NAME_BYTES};
pub use delays::{PARTS, PipeDelays, SIZES, longest_of, size_of_delay};
pub use frames::{DiscardReport, FrameEnd, FrameGauge, FrameReport, REASONS};
pub use gauge::{Gauge, ReadMessage};
pub use served::{
    CameraReport, DeviceReport, Fate, LinkReport, ModeReport, ModeStep, NetworkReport, NetworkStep,
};
pub use time::TimeReport;

use diapason_abi::Nanos;
pub use diapason_abi::pipe::HOPS;
use diapason_abi::record::{MEASURED_VALUES, MEASURED_WORDS};

/// Reports of a pipe, a chain or a tuned pipe come so often.
pub const REPORT: Nanos = Nanos::from_secs(1);

/// The words of a report, without the process.
pub type Words = [u64; MEASURED_WORDS];
/// The values of a report.
type Values = [u64; MEASURED_VALUES];

/// A report: a measurement, and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reported {
    /// The time at which it was written.
    pub at: Nanos,
    pub said: Measurement,
}

/// A measurement of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measurement {
    /// How a pipe of the description does.
    Pipe(PipeReport),
    /// How the delays of its messages are spread.
    Delays(PipeDelays),
    /// How a chain of threads does.
    Chain(ChainReport),
    /// How a pipe does that a program opened while it ran.
    Tuned(TunedReport),
    /// How such a pipe to a device does.
    Written(WrittenReport),
    /// The fate of a USB device.
    Device(DeviceReport),
    /// The state of a link to another computer.
    Link(LinkReport),
    /// A step on the way into a network of hosts.
    Network(NetworkReport),
    /// The frames of a camera.
    Camera(CameraReport),
    /// A step of a change of the mode of operation.
    Mode(ModeReport),
    /// The cost of an operation that a benchmark counted.
    Cost(CostReport),
    /// How frames do at an adapter, or at one end of a socket.
    Frames(FrameReport),
    /// The frames that were discarded there, by reason.
    Discards(DiscardReport),
    /// Reads of a state message that its writer has overtaken.
    State(StateReport),
    /// How a message does that a CAN controller sends.
    Can(CanReport),
    /// How a message of another node does that a CAN controller hears.
    Heard(HeardReport),
    /// The common time of a host.
    Time(TimeReport),
}

/// How a pipe does, as its reader or writer sees it. Times are the longest since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeReport {
    /// The pipe goes to a device.
    pub to_device: bool,
    /// The channel of the device.
    pub channel: u8,
    /// Messages read so far; of a pipe to a device, those that are through.
    pub messages: u64,
    /// Messages that were lost so far, on whatever part of the way.
    pub lost: u32,
    /// Messages outside of the contract so far.
    pub outside: u32,
    /// Most that ever waited in the buffer; of a pipe to a device, that were under way.
    pub peak: u32,
    /// By how much `moving` and `whole` may be too short, because two clocks drift.
    pub inexact: u32,
    /// From the server to the reader. Of a pipe to a device: its acknowledgement to the server,
    /// beyond the fastest.
    pub reading: Nanos,
    /// From the device to the server, beyond the fastest: the two have clocks of their own. Of a
    /// pipe to a device: from the writer until it is through on the device's bus.
    pub moving: Nanos,
    /// The longest sum of the two for one message.
    pub whole: Nanos,
    /// Time of a message to a device from its writer until the server took it.
    pub taking: Nanos,
    /// The smallest difference between the host's clock and the device's, of all messages since
    /// the last report, modulo 2^64; [`NO_DISTANCE`] if there were none.
    pub distance: u64,
}

/// No messages came whose clocks could be compared.
pub const NO_DISTANCE: u64 = 1 << 63;

/// How the messages of a chain do, from the device to the chain's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainReport {
    /// The number of the sender at the end of several flows, in their order in the list of hosts.
    pub source: u8,
    /// Messages at the end so far.
    pub messages: u64,
    /// Messages that are missing there, and that no newer one stands for.
    pub lost: u64,
    /// Messages that a newer one stands for: a thread took the newest only.
    pub replaced: u64,
    /// The longest that one took since the last report, beyond the fastest way from the device to
    /// the server.
    pub whole: Nanos,
    /// The longest until a message had passed each thread since the last report.
    pub reached: [Nanos; HOPS],
}

/// How a pipe does that a program opened while it ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunedReport {
    /// The pipe's place in the description.
    pub place: u8,
    /// The channel it comes from.
    pub channel: u8,
    /// Messages read so far.
    pub messages: u64,
    /// Messages that found its buffer full.
    pub lost: u64,
    /// Times the device said that it had lost some.
    pub overruns: u32,
    /// Messages outside of the pipe's contract.
    pub outside: u32,
    /// Times the channel was not there for a while.
    pub outages: u32,
    /// By how much `longest` may be too short, because two clocks drift.
    pub inexact: u32,
    /// Most that ever waited in its buffer.
    pub peak: u32,
    /// Most that may, on the terms it has; none if it is closed.
    pub slots: u32,
    /// The longest that one took since the last report, beyond the fastest.
    pub longest: Nanos,
    /// The longest that one may, beyond the fastest; zero if it is closed.
    pub bound: Nanos,
}

/// How such a pipe to a device does, from the write, or from the arrival of what is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WrittenReport {
    /// The pipe's place in the description.
    pub place: u8,
    /// The channel it goes to.
    pub channel: u8,
    /// Messages that are through.
    pub through: u64,
    /// Messages that will not be sent any more, or found no room.
    pub lost: u64,
    /// Times the channel was not there for a while.
    pub outages: u64,
    /// The longest until the server had taken one, since the last report, and the longest promised.
    pub taken: (Nanos, Nanos),
    /// The longest until it was known to be through, and the longest promised; zero if it is
    /// closed.
    pub whole: (Nanos, Nanos),
}

/// Reads of a state message that its writer has overtaken. A reader without any does not report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateReport {
    /// The message's number in the description.
    pub number: u8,
    /// Reads that were overtaken so far.
    pub overtaken: u64,
    /// Most writes that touched one of them.
    pub writes: u64,
}

/// Kinds of reports, as numbers.
const PIPE: u8 = 1;
const DELAYS: u8 = 2;
const CHAIN: u8 = 3;
const TUNED: u8 = 4;
const WRITTEN: u8 = 5;
const DEVICE: u8 = 6;
const LINK: u8 = 7;
const CAMERA: u8 = 8;
const COST: u8 = 9;
const NETWORK: u8 = 10;
const STATE: u8 = 11;
const CAN: u8 = 12;
const MODE: u8 = 13;
const HEARD: u8 = 14;
const FRAMES: u8 = 20;
const DISCARDS: u8 = 21;
const TIME: u8 = 22;

/// Packs two numbers into one word.
const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

/// Splits such a word.
const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Reported {
    /// Returns it as words.
    #[must_use]
    pub fn words(&self) -> Words {
        let (what, values) = self.said.packed();
        let [a, b, c, d, e, f, g, h] = values;
        [self.at.0, u32::from_le_bytes(what).into(), a, b, c, d, e, f, g, h]
    }

    /// Reads a report from words; `None` if they are none.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<Reported> {
        let &[at, what, a, b, c, d, e, f, g, h] = words else { return None };
        let what = u32::try_from(what).ok()?.to_le_bytes();
        let said = Measurement::unpacked(what, [a, b, c, d, e, f, g, h])?;
        Some(Reported { at: Nanos(at), said })
    }
}

impl Measurement {
    /// Returns the subject (kind, place or way, channel, part) and the values.
    fn packed(&self) -> ([u8; 4], Values) {
        match self {
            Measurement::Pipe(report) => {
                ([PIPE, report.to_device.into(), report.channel, 0], report.values())
            }
            Measurement::Delays(delays) => {
                let way = delays.to_device.into();
                ([DELAYS, way, delays.channel, delays.part], delays.values())
            }
            Measurement::Chain(report) => ([CHAIN, report.source, 0, 0], report.values()),
            Measurement::Tuned(report) => {
                ([TUNED, report.place, report.channel, 0], report.values())
            }
            Measurement::Written(report) => {
                ([WRITTEN, report.place, report.channel, 0], report.values())
            }
            Measurement::Device(report) => ([DEVICE, report.connector, 0, 0], report.values()),
            Measurement::Link(report) => {
                ([LINK, report.number, report.here.into(), 0], report.values())
            }
            Measurement::Network(report) => {
                ([NETWORK, report.step as u8, report.port, 0], report.values())
            }
            Measurement::Camera(report) => {
                ([CAMERA, report.stream.into(), report.number, 0], report.values())
            }
            Measurement::Mode(report) => {
                ([MODE, report.mode, report.step as u8, report.wanted], report.values())
            }
            Measurement::Cost(report) => ([COST, report.is_part.into(), 0, 0], report.values()),
            Measurement::State(report) => {
                let StateReport { number, overtaken, writes } = *report;
                ([STATE, number, 0, 0], [overtaken, writes, 0, 0, 0, 0, 0, 0])
            }
            Measurement::Can(report) => {
                let [low, high] = report.number.to_le_bytes();
                ([CAN, low, high, 0], report.values())
            }
            Measurement::Heard(report) => {
                let [low, high] = report.number.to_le_bytes();
                ([HEARD, low, high, 0], report.values())
            }
            Measurement::Frames(report) => {
                ([FRAMES, report.end as u8, report.number, 0], report.values())
            }
            Measurement::Discards(report) => {
                let DiscardReport { end, number, part, .. } = *report;
                ([DISCARDS, end as u8, number, part], report.values())
            }
            Measurement::Time(report) => ([TIME, report.adapter, 0, 0], report.values()),
        }
    }

    fn unpacked(what: [u8; 4], values: Values) -> Option<Measurement> {
        Some(match what {
            [PIPE, way @ 0..=1, channel, 0] => {
                Measurement::Pipe(PipeReport::of(way == 1, channel, values))
            }
            [DELAYS, way @ 0..=1, channel, part] => {
                Measurement::Delays(PipeDelays::of(way == 1, channel, part, values)?)
            }
            [CHAIN, source, 0, 0] => Measurement::Chain(ChainReport::of(source, values)),
            [TUNED, place, channel, 0] => {
                Measurement::Tuned(TunedReport::of(place, channel, values))
            }
            [WRITTEN, place, channel, 0] => {
                Measurement::Written(WrittenReport::of(place, channel, values))
            }
            [DEVICE, connector @ 1..=255, 0, 0] => {
                Measurement::Device(DeviceReport::of(connector, values)?)
            }
            [LINK, number, here @ 0..=1, 0] => {
                Measurement::Link(LinkReport::of(number, here == 1, values))
            }
            [NETWORK, step, port, 0] => {
                Measurement::Network(NetworkReport::of(step, port, values)?)
            }
            [CAMERA, stream @ 0..=1, number, 0] => {
                Measurement::Camera(CameraReport::of(stream == 1, number, values))
            }
            [MODE, mode, step, wanted] => {
                Measurement::Mode(ModeReport::of(mode, step, wanted, values)?)
            }
            [COST, part @ 0..=1, 0, 0] => Measurement::Cost(CostReport::of(part == 1, values)),
            [STATE, number, 0, 0] => {
                let [overtaken, writes, ..] = values;
                Measurement::State(StateReport { number, overtaken, writes })
            }
            [CAN, low, high, 0] => {
                Measurement::Can(CanReport::of(u16::from_le_bytes([low, high]), values))
            }
            [HEARD, low, high, 0] => {
                Measurement::Heard(HeardReport::of(u16::from_le_bytes([low, high]), values))
            }
            [FRAMES, end, number, 0] => Measurement::Frames(FrameReport::of(end, number, values)?),
            [DISCARDS, end, number, part] => {
                Measurement::Discards(DiscardReport::of(end, number, part, values)?)
            }
            [TIME, adapter, 0, 0] => Measurement::Time(TimeReport::of(adapter, values)),
            _ => return None,
        })
    }
}

impl PipeReport {
    fn values(&self) -> Values {
        let PipeReport { messages, lost, outside, peak, inexact, distance, .. } = *self;
        let [reading, moving, whole, taking] =
            [self.reading, self.moving, self.whole, self.taking].map(|time| time.0);
        let (counts, more) = (pair(lost, outside), pair(peak, inexact));
        [messages, counts, more, reading, moving, whole, taking, distance]
    }

    fn of(to_device: bool, channel: u8, values: Values) -> PipeReport {
        let [messages, counts, more, reading, moving, whole, taking, distance] = values;
        let [reading, moving, whole, taking] = [reading, moving, whole, taking].map(Nanos);
        let ((lost, outside), (peak, inexact)) = (halves(counts), halves(more));
        PipeReport {
            to_device,
            channel,
            messages,
            lost,
            outside,
            peak,
            inexact,
            reading,
            moving,
            whole,
            taking,
            distance,
        }
    }
}

impl ChainReport {
    fn values(&self) -> Values {
        let ChainReport { messages, lost, replaced, whole, reached, .. } = *self;
        let [a, b, c, d] = reached.map(|time| time.0);
        [messages, lost, replaced, whole.0, a, b, c, d]
    }

    fn of(source: u8, [messages, lost, replaced, whole, a, b, c, d]: Values) -> ChainReport {
        let (whole, reached) = (Nanos(whole), [a, b, c, d].map(Nanos));
        ChainReport { source, messages, lost, replaced, whole, reached }
    }
}

impl TunedReport {
    fn values(&self) -> Values {
        let TunedReport { messages, lost, overruns, outside, outages, inexact, .. } = *self;
        let TunedReport { peak, slots, longest, bound, .. } = *self;
        let (counts, more) = (pair(overruns, outside), pair(outages, inexact));
        [messages, lost, counts, more, pair(peak, slots), longest.0, bound.0, 0]
    }

    fn of(place: u8, channel: u8, values: Values) -> TunedReport {
        let [messages, lost, counts, more, fill, longest, bound, _] = values;
        let ((overruns, outside), (outages, inexact)) = (halves(counts), halves(more));
        let ((peak, slots), longest, bound) = (halves(fill), Nanos(longest), Nanos(bound));
        TunedReport {
            place,
            channel,
            messages,
            lost,
            overruns,
            outside,
            outages,
            inexact,
            peak,
            slots,
            longest,
            bound,
        }
    }
}

impl WrittenReport {
    fn values(&self) -> Values {
        let WrittenReport { through, lost, outages, taken, whole, .. } = *self;
        [through, lost, outages, taken.0.0, taken.1.0, whole.0.0, whole.1.0, 0]
    }

    fn of(place: u8, channel: u8, values: Values) -> WrittenReport {
        let [through, lost, outages, taken, taken_most, whole, whole_most, _] = values;
        let taken = (Nanos(taken), Nanos(taken_most));
        let whole = (Nanos(whole), Nanos(whole_most));
        WrittenReport { place, channel, through, lost, outages, taken, whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_random::Random;

    fn any(random: &mut Random) -> Measurement {
        let mut time = || Nanos(random.bits());
        let (a, b, c, d) = (time(), time(), time(), time());
        let small = |word: Nanos| word.0 as u32;
        let (channel, place) = (a.0 as u8, b.0 as u8);
        match c.0 % 16 {
            0 => Measurement::Pipe(PipeReport {
                to_device: d.0 & 1 == 1,
                channel,
                messages: a.0,
                lost: small(a),
                outside: small(b),
                peak: small(c),
                inexact: small(d),
                reading: a,
                moving: b,
                whole: c,
                taking: d,
                distance: b.0 ^ c.0,
            }),
            1 => {
                let counts = [small(a); 16];
                let part = b.0 as u8 % PARTS as u8;
                Measurement::Delays(PipeDelays { to_device: d.0 & 1 == 1, channel, part, counts })
            }
            2 => Measurement::Chain(ChainReport {
                source: place,
                messages: a.0,
                lost: b.0,
                replaced: c.0,
                whole: d,
                reached: [a, b, c, d],
            }),
            3 => Measurement::Tuned(TunedReport {
                place,
                channel,
                messages: a.0,
                lost: b.0,
                overruns: small(a),
                outside: small(b),
                outages: small(c),
                inexact: small(d),
                peak: small(b),
                slots: small(a),
                longest: c,
                bound: d,
            }),
            13 | 14 => any_of_can(c.0 % 16, [a.0, b.0, c.0, d.0]),
            12 => Measurement::State(StateReport { number: place, overtaken: a.0, writes: c.0 }),
            7 => Measurement::Cost(CostReport {
                is_part: d.0 & 1 == 1,
                median: small(a),
                max: small(b),
                runs: small(c),
                expensive: [small(d), small(a), small(b)],
                ..CostReport::named("an operation with a name of many words, some of them long")
            }),
            4..=6 | 9 => any_of_usb(c.0 % 16, [a.0, b.0, c.0, d.0]),
            10 | 11 | 15 => any_of_frames(c.0 % 16, [a.0, b.0, c.0, d.0]),
            _ => Measurement::Written(WrittenReport {
                place,
                channel,
                through: a.0,
                lost: b.0,
                outages: c.0,
                taken: (a, b),
                whole: (c, d),
            }),
        }
    }

    fn any_of_frames(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
        let number = a as u8;
        if kind == 10 {
            return Measurement::Frames(FrameReport {
                offered: a,
                passed: b,
                outside: c,
                peak: d as u32,
                longest: Nanos(a),
                slowest: b,
                sent: c,
                foreign: d,
                link: c as u32,
                ..FrameReport::new(FrameEnd::Program, number)
            });
        }
        if kind == 15 {
            let common = (d & 1 == 0).then_some(Nanos(a));
            let (grandmaster, unstamped, lost) = (b, c, d);
            let report = TimeReport { adapter: number, common, grandmaster, unstamped, lost };
            return Measurement::Time(report);
        }
        let (end, part, counts) = (FrameEnd::Server, (d & 1) as u8, [a as u32; 16]);
        Measurement::Discards(DiscardReport { end, number, part, counts })
    }

    fn any_of_can(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
        match kind {
            13 => Measurement::Can(CanReport::of(d as u16, [a; 8])),
            _ => Measurement::Heard(HeardReport::of(d as u16, [a, b, c, d, a, b, 0, 0])),
        }
    }

    fn any_of_usb(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
        let (number, odd) = (b as u8, d & 1 == 1);
        match kind {
            4 => Measurement::Device(DeviceReport {
                connector: (a as u8).max(1),
                route: b as u32,
                identity: (c as u16, d as u16),
                fate: [Fate::Works, Fate::Failed, Fate::Dead][(d % 3) as usize],
            }),
            9 => {
                let step = [NetworkStep::Enumerate, NetworkStep::Stranger][(d % 2) as usize];
                Measurement::Network(NetworkReport { step, port: number, peer: a })
            }
            5 => Measurement::Link(LinkReport { number, here: odd, found: a, came: b, sent: c }),
            8 => {
                let step = [ModeStep::Stops, ModeStep::Starts, ModeStep::Runs, ModeStep::Without];
                let (step, taken, begun) = (step[(a % 4) as usize], Nanos(c), Nanos(d));
                Measurement::Mode(ModeReport { mode: number, step, wanted: a as u8, taken, begun })
            }
            _ => {
                let (whole, broken, missed, period, late) = (a, b, c, Nanos(d), Nanos(a ^ c));
                Measurement::Camera(CameraReport {
                    stream: odd,
                    number,
                    whole,
                    broken,
                    missed,
                    breaks: b ^ d,
                    period,
                    late,
                })
            }
        }
    }

    #[test]
    fn what_is_reported_is_read() {
        let mut random = Random::new(7);
        for _ in 0..10_000 {
            let report = Reported { at: Nanos(random.bits()), said: any(&mut random) };
            assert_eq!(Reported::of(&report.words()), Some(report));
        }
    }

    #[test]
    fn other_words_are_no_report() {
        let words =
            Reported { at: Nanos(1), said: Measurement::Chain(ChainReport::default()) }.words();
        assert_eq!(Reported::of(&words[..9]), None);
        for what in
            [0, 6, 2 << 8 | 9, 1 << 32, 2 << 8 | 1, 1 << 24 | 3, u64::MAX, (PARTS as u64) << 24 | 2]
                .into_iter()
                .chain([1 << 16 | 11, 3 << 8 | 20, 3 << 8 | 21, 1 << 24 | 20, 2 << 24 | 21])
        {
            let mut words = words;
            words[1] = what;
            assert_eq!(Reported::of(&words), None, "{what:#x}");
        }
    }
}
