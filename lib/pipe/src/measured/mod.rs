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
mod machine;
mod served;
mod time;

#[cfg(test)]
mod tests;

pub use can::{CanGauge, CanReport, ControllerCounts, HeardReport, next_report};
pub use chain::{ChainGauge, ChainMessage, MESSAGE_WORDS};
pub use counted::{CostReport, NAME_BYTES, probe};
pub use delays::{PARTS, PipeDelays, SIZES, longest_of, size_of_delay};
pub use frames::{DiscardReport, FrameEnd, FrameGauge, FrameReport, REASONS};
pub use gauge::{Gauge, ReadMessage};
pub use machine::{MachineReport, PROCESSOR_BYTES};
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
    /// The computer itself, as a program measured it.
    Machine(MachineReport),
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
    pub lost: u32,
    /// Lost messages with numbers before that of the first message at the end.
    pub before: u32,
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

/// The reads of a state message that its writer has overtaken, or the writes that came too soon. An
/// end that saw neither does not report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateReport {
    /// The message's number in the description.
    pub number: u8,
    /// Reads that were overtaken so far.
    pub overtaken: u64,
    /// Most writes that touched one of them.
    pub writes: u64,
    /// Writes so far that came sooner than the description says.
    pub early: u64,
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
const MACHINE: u8 = 23;

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
                let StateReport { number, overtaken, writes, early } = *report;
                ([STATE, number, 0, 0], [overtaken, writes, early, 0, 0, 0, 0, 0])
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
            Measurement::Machine(report) => {
                let (part, values) = report.packed();
                ([MACHINE, part, 0, 0], values)
            }
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
                let [overtaken, writes, early, ..] = values;
                Measurement::State(StateReport { number, overtaken, writes, early })
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
            [MACHINE, part, 0, 0] => Measurement::Machine(MachineReport::of(part, values)?),
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
        let ChainReport { messages, lost, before, replaced, whole, reached, .. } = *self;
        let [a, b, c, d] = reached.map(|time| time.0);
        [messages, pair(lost, before), replaced, whole.0, a, b, c, d]
    }

    fn of(source: u8, [messages, counts, replaced, whole, a, b, c, d]: Values) -> ChainReport {
        let (lost, before) = halves(counts);
        let (whole, reached) = (Nanos(whole), [a, b, c, d].map(Nanos));
        ChainReport { source, messages, lost, before, replaced, whole, reached }
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
