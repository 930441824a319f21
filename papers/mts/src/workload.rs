//! Random workloads of [EMERALDS 1998, §7.5.1], and that of table 7.2.
//!
//! The dissertation leaves open how long messages are, how much longer than its deadline a period
//! is, and which frame is the longest possible. Here a message has 0 to [`BYTES`] bytes, all alike;
//! a period is up to a tenth longer; the longest frame has 8 bytes. Of lengths up to 8 bytes the
//! number of streams of the figures would make utilizations of 60 to 115 %, not "50-100 %".

use diapason_can::wire;
use diapason_random::Random;

/// Most bytes of a message.
pub const BYTES: u64 = 5;
/// Nanoseconds of a bit at 1 Mbit/s.
pub const BIT: u64 = 1_000;
/// The shortest time between two messages of a sporadic stream.
const MIT: u64 = 2_000_000_000;
const MS: u64 = 1_000_000;

/// The parameters of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadKind {
    /// Streams of high speed: periodic, sporadic.
    pub high: (usize, usize),
    /// Streams of low speed: periodic, sporadic.
    pub low: (usize, usize),
    /// Deadlines of high-speed messages in ns, shortest and longest.
    pub high_deadlines: (u64, u64),
    /// Those of low-speed messages.
    pub low_deadlines: (u64, u64),
    /// Length of an epoch in ns.
    pub epoch: u64,
}

impl WorkloadKind {
    /// Returns the parameters of §7.5.1 with so many high-speed periodic streams.
    #[must_use]
    pub const fn usual(high: usize) -> WorkloadKind {
        WorkloadKind {
            high: (high, 2),
            low: (25, 4),
            high_deadlines: (MS / 2, 2 * MS),
            low_deadlines: (2 * MS, 100 * MS),
            epoch: 2 * MS,
        }
    }
}

/// How long frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLengths {
    /// As the dissertation counts: no stuff bits.
    Printed,
    /// The longest that the bytes can make.
    Stuffed,
}

impl FrameLengths {
    /// Bits of a frame, without the interframe space.
    #[must_use]
    pub const fn bits(self, bytes: u32) -> u32 {
        match self {
            FrameLengths::Printed => wire::shortest(false, bytes),
            FrameLengths::Stuffed => wire::worst(false, bytes),
        }
    }
}

/// A stream of messages; times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageStream {
    pub bytes: u32,
    pub period: u64,
    pub deadline: u64,
    /// The stream comes at any time, not every period.
    pub sporadic: bool,
}

/// Streams in the order of their deadlines, and how long their frames are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub high: Vec<MessageStream>,
    pub low: Vec<MessageStream>,
    pub lengths: FrameLengths,
    pub epoch: u64,
}

impl Workload {
    /// Workload `number` of a kind.
    #[must_use]
    pub fn random(kind: WorkloadKind, lengths: FrameLengths, seed: u64, number: u64) -> Workload {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut streams = |(periodic, sporadic): (usize, usize), (from, to): (u64, u64)| {
            let mut streams: Vec<MessageStream> = (0..periodic + sporadic)
                .map(|place| {
                    let deadline = random.between(from, to);
                    let sporadic = place >= periodic;
                    let longer = random.below(deadline / 10 + 1);
                    let period = if sporadic { MIT } else { deadline + longer };
                    let bytes = random.below(BYTES + 1) as u32;
                    MessageStream { bytes, period, deadline, sporadic }
                })
                .collect();
            streams.sort_by_key(|stream| stream.deadline);
            streams
        };
        let high = streams(kind.high, kind.high_deadlines);
        let low = streams(kind.low, kind.low_deadlines);
        Workload { high, low, lengths, epoch: kind.epoch }
    }

    /// Returns the workload of table 7.2, each task with a message of eight bytes: six of high
    /// speed and eleven of low speed, as the text divides them.
    #[must_use]
    pub fn avionics(lengths: FrameLengths, epoch: u64) -> Workload {
        let stream = |(deadline, period): &(u64, u64)| MessageStream {
            bytes: 8,
            period: period * MS,
            deadline: deadline * MS,
            sporadic: false,
        };
        let low = AVIONICS[6..].iter().map(stream).collect();
        Workload { high: AVIONICS[..6].iter().map(stream).collect(), low, lengths, epoch }
    }

    /// This workload with all times divided by `permille` / 1000.
    #[must_use]
    pub fn faster(&self, permille: u64) -> Workload {
        let scaled = |streams: &[MessageStream]| {
            let each = streams.iter().map(|stream| MessageStream {
                period: stream.period * 1_000 / permille,
                deadline: stream.deadline * 1_000 / permille,
                ..*stream
            });
            each.collect()
        };
        Workload { high: scaled(&self.high), low: scaled(&self.low), ..self.clone() }
    }

    /// Time of a frame on the bus with the interframe space, and without.
    #[must_use]
    pub fn costs(&self, stream: &MessageStream) -> (u64, u64) {
        let bits = u64::from(self.lengths.bits(stream.bytes));
        ((bits + u64::from(wire::INTERFRAME_BITS)) * BIT, bits * BIT)
    }

    /// Time of the longest possible frame with the space.
    #[must_use]
    pub fn longest(&self) -> u64 {
        u64::from(self.lengths.bits(8) + wire::INTERFRAME_BITS) * BIT
    }

    /// Returns all streams, those of high speed first.
    pub fn streams(&self) -> impl Iterator<Item = &MessageStream> + Clone {
        self.high.iter().chain(&self.low)
    }

    /// Σ C/T in parts per million, rounded up.
    #[must_use]
    pub fn load_ppm(&self) -> u64 {
        self.streams().map(|s| (self.costs(s).0 * 1_000_000).div_ceil(s.period)).sum()
    }
}

/// Deadline and period of the tasks of table 7.2, in ms.
pub const AVIONICS: [(u64, u64); 17] = [
    (5, 200),
    (25, 25),
    (25, 25),
    (40, 40),
    (40, 40),
    (50, 50),
    (59, 59),
    (80, 80),
    (80, 80),
    (100, 100),
    (200, 200),
    (200, 200),
    (200, 200),
    (200, 200),
    (200, 200),
    (1_000, 1_000),
    (1_000, 1_000),
];
