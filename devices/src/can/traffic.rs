//! The other nodes of a CAN bus: control units with periodic messages, and logs that are replayed.

use diapason_abi::Nanos;
use diapason_can::candump::{self, LineContent, LogError, LogTrouble};
use diapason_can::{AnyFrame, CanFrame, FdFrame, Id};
use diapason_random::Random;
use std::collections::VecDeque;

/// A message that a control unit sends without jitter. Its data is the number of the message,
/// little-endian, as far as it fits: a loss can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicMessage {
    pub id: Id,
    /// Bytes of data. With more than 8 the message is a frame of CAN FD, whose data goes at the
    /// rate of the data.
    pub length: u8,
    /// From one to the next; at least a nanosecond.
    pub period: Nanos,
    /// When the first is queued.
    pub offset: Nanos,
}

/// Returns the message `number` of `id`, with `length` bytes.
#[must_use]
pub fn numbered(id: Id, length: u8, number: u64) -> Option<AnyFrame> {
    match number.to_le_bytes().get(..usize::from(length)) {
        Some(data) => Some(CanFrame::data(id, data).ok()?.into()),
        None => numbered_fd(id, length, number),
    }
}

/// Returns the message `number` of `id` as a frame of CAN FD, with `length` bytes.
pub(super) fn numbered_fd(id: Id, length: u8, number: u64) -> Option<AnyFrame> {
    // The number comes again and again: a frame that lost a part of its data is found out.
    let data: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(length.into()).collect();
    Some(FdFrame::new(id, &data).ok()?.with_fast(true).into())
}

/// Frames with their times.
#[derive(Clone, Debug)]
pub(super) enum Traffic {
    Periodic { message: PeriodicMessage, sent: u64 },
    Replay(VecDeque<(Nanos, AnyFrame)>),
    Unsteady(Unsteady),
}

/// A message whose distance from the next varies between two times, as of a program that loops.
#[derive(Clone, Debug)]
pub(super) struct Unsteady {
    id: Id,
    gap: (Nanos, Nanos),
    random: Random,
    next: Nanos,
    sent: u64,
}

impl Unsteady {
    /// Returns a source whose gaps between frames are random, from `seed`.
    pub fn new(id: Id, gap: (Nanos, Nanos), seed: u64) -> Unsteady {
        Unsteady { id, gap, random: Random::new(seed), next: Nanos::from_millis(1), sent: 0 }
    }

    fn take(&mut self) -> Option<AnyFrame> {
        let (least, most) = self.gap;
        self.next += Nanos(least.0 + self.random.below((most - least).0 + 1));
        self.sent += 1;
        numbered(self.id, 8, self.sent - 1)
    }
}

impl Traffic {
    /// Returns when it has a frame.
    pub fn next(&self) -> Nanos {
        match self {
            Traffic::Periodic { message, sent } => {
                let period = message.period.0.max(1);
                message.offset + Nanos(period.saturating_mul(*sent))
            }
            Traffic::Replay(frames) => frames.front().map_or(Nanos::FOREVER, |(time, _)| *time),
            Traffic::Unsteady(unsteady) => unsteady.next,
        }
    }

    /// Takes the frame that is due.
    pub fn take(&mut self) -> Option<AnyFrame> {
        match self {
            Traffic::Periodic { message, sent } => {
                *sent += 1;
                numbered(message.id, message.length, *sent - 1)
            }
            Traffic::Replay(frames) => frames.pop_front().map(|(_, frame)| frame),
            Traffic::Unsteady(unsteady) => unsteady.take(),
        }
    }
}

/// Why a log cannot be replayed: the line, counted from 1, and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayError {
    pub line: usize,
    pub error: LogError,
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, {}", self.line, self.error)
    }
}

/// Returns the frames of a candump log that were seen on `interface`, at times from the log's first
/// line on. Reports of errors are left out; a time that goes back counts as the time before it.
///
/// # Errors
/// A line that is no record, or that has a frame of CAN FD of this interface.
pub fn replay(log: &str, interface: &str) -> Result<VecDeque<(Nanos, CanFrame)>, ReplayError> {
    let (mut begin, mut last) = (None, Nanos::ZERO);
    let mut frames = VecDeque::new();
    for (line, text) in (1..).zip(log.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let record = candump::parse(text).map_err(|error| ReplayError { line, error })?;
        let begin = *begin.get_or_insert(record.time);
        last = last.max(record.time - begin);
        match record.report {
            LineContent::Frame(_) if record.interface != interface => {}
            LineContent::Frame(AnyFrame::Classic(frame)) => frames.push_back((last, frame)),
            LineContent::Frame(AnyFrame::Fd(_)) => {
                let at = text.find("##").unwrap_or(0);
                let error = LogError { at, what: LogTrouble::FlexibleDataRate };
                return Err(ReplayError { line, error });
            }
            LineContent::Error { .. } => {}
        }
    }
    Ok(frames)
}

/// Numbered messages on a bus: how many a second together, and whether their
/// identifiers are extended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusLoad {
    pub per_second: u32,
    pub extended: bool,
}

/// The rates and the load of a busy bus with CAN FD, for tests and demonstrations.
pub const BUSY_FD: (u32, u32, BusLoad) =
    (500_000, 2_000_000, BusLoad { per_second: 2_000, extended: false });

/// The bit rates and the loads of five busy buses, for tests and demonstrations: 7,000 frames a
/// second in all.
pub const BUSY: [(u32, BusLoad); 5] = [
    (500_000, BusLoad { per_second: 463, extended: false }),
    (250_000, BusLoad { per_second: 391, extended: true }),
    (500_000, BusLoad { per_second: 1_389, extended: false }),
    (500_000, BusLoad { per_second: 1_563, extended: true }),
    (500_000, BusLoad { per_second: 3_194, extended: false }),
];

impl BusLoad {
    /// Returns the messages of the bus of this number: four identifiers that share the load, from
    /// the first millisecond on, when an interface that starts at once has found the bus idle. They
    /// have eight bytes. On a bus with CAN FD every second one has 64.
    #[must_use]
    pub fn messages(self, bus: usize, fd: bool) -> Vec<PeriodicMessage> {
        let Some(period) = 4_000_000_000u64.checked_div(self.per_second.into()) else {
            return Vec::new();
        };
        let message = |index: u32| {
            let raw = 0x100 + 0x40 * index + bus as u32;
            let id = match self.extended {
                true => diapason_can::frame::extended(raw << 12 | raw),
                false => diapason_can::frame::standard(raw),
            };
            let turn = Nanos(period / 4 * u64::from(index) + 10_000 * bus as u64);
            let offset = Nanos::from_millis(1) + turn;
            let length = if fd && index % 2 == 1 { 64 } else { 8 };
            id.ok().map(|id| PeriodicMessage { id, length, period: Nanos(period), offset })
        };
        (0..4).filter_map(message).collect()
    }
}
