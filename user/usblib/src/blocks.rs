//! The reading end of a `[[pipe]]` from a disk.
//!
//! A message is a run of blocks. The library asks for the next run once a period. The time that its
//! caller spends between two calls is delay. A run stays where the controller put it until the next
//! call.

use crate::inbox::{Arrived, Inbox, own};
use diapason_abi::{Errno, Nanos};
use diapason_contract::disk::{Ask, DONE, DiskAnswer, NAMES, READ, RECORDS, SIZE, places};
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Writer;
use diapason_pipe::clock::Delay;
use diapason_pipe::measured::ReadMessage;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{pipe, time};

/// A disk that is not there yet is asked for so often.
pub(crate) const PAUSE: Nanos = Nanos::from_millis(100);

impl Arrived for DiskAnswer {
    fn passed(&self, read: Nanos) -> Option<ReadMessage> {
        let (time, taken) = (Nanos(self.ask.due), Nanos(self.taken));
        let is_message = self.ask.what == READ && self.status == DONE;
        is_message.then_some(ReadMessage {
            time,
            taken,
            read,
            // One clock measures both.
            moved: Delay { beyond: taken - time, inexact: Nanos::ZERO },
            outside: self.outside != 0,
            lost_before: false,
        })
    }
}

/// A run of blocks that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRun {
    /// The first of them.
    pub block: u32,
    /// Bytes of all its blocks.
    pub bytes: u32,
    /// Where they begin in the shared memory.
    place: u32,
}

/// The blocks of a disk, from the first to the last and again.
pub struct Blocks {
    answers: Inbox<DiskAnswer, RECORDS>,
    asks: Writer<'static, Ask, RECORDS>,
    asked: Semaphore,
    data: DmaSegment,
    /// Bytes of a run, and the time from one to the next.
    bytes: u32,
    period: Nanos,
    places: u64,
    /// Blocks of the disk, and bytes of each; nothing before it is there.
    disk: Option<(u64, u32)>,
    /// When the next ask is due, and the first block of it.
    due: Nanos,
    next: u64,
    /// Runs that were asked for, and those whose place is free again.
    begun: u64,
    done: u64,
    is_held: bool,
}

impl Blocks {
    /// Opens the pipe from the disk that this program reads. Its description says the same `bytes`
    /// and `period`.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(bytes: u32, period: Nanos) -> Result<Blocks, Errno> {
        let (number, source) = own(ServiceKind::Disks)?;
        let names = NAMES[source.seat().unwrap_or_default()];
        Ok(Blocks {
            answers: Inbox::open((number, source))?,
            asks: pipe::writer(names.asks)?,
            asked: Semaphore::open(names.asked)?,
            data: DmaSegment::attach(names.data)?,
            bytes,
            period,
            places: places(bytes as usize) as u64,
            disk: None,
            due: Nanos::ZERO,
            next: 0,
            begun: 0,
            done: 0,
            is_held: false,
        })
    }

    /// Returns what the driver says of disks, and the name of the work that is done for one run.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.answers.source()
    }

    /// Returns the next run, or waits for it until `deadline`. The run before is given back. A run
    /// that could not be read counts as lost, and the next one is returned.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if a semaphore was deleted.
    pub fn read_wait(&mut self, deadline: Nanos) -> Result<BlockRun, Errno> {
        self.done += u64::from(core::mem::take(&mut self.is_held));
        loop {
            self.ask(time::now());
            let has_place = self.begun - self.done < self.places;
            let until = if has_place { deadline.min(self.due) } else { deadline };
            match self.answers.read_wait(until) {
                Ok(answer) => {
                    if let Some(run) = self.take(&answer) {
                        return Ok(run);
                    }
                }
                Err(Errno::TimedOut) if until < deadline => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Returns the four bytes of a run from `offset` on, the least significant first.
    #[must_use]
    pub fn word(&self, run: &BlockRun, offset: u32) -> u32 {
        self.data.read32((run.place + offset) as usize)
    }

    /// Returns how many bytes a block has; 0 before the disk is there.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.disk.map_or(0, |(_, bytes)| bytes)
    }

    /// Counts runs that the caller found missing by their contents: they are reported as lost.
    pub fn missed(&mut self, runs: u64) {
        self.answers.missed(runs);
    }

    /// Asks for everything that is due and has a place.
    fn ask(&mut self, now: Nanos) {
        let mut rings = false;
        while now >= self.due && self.begun - self.done < self.places {
            let Some((blocks, block_bytes)) = self.disk else {
                let nothing = Ask { what: SIZE, block: 0, count: 0, place: 0, due: now.0 };
                rings = self.asks.push(&nothing).is_ok();
                self.due = now + PAUSE;
                break;
            };
            let count = self.bytes / block_bytes;
            let place = (self.begun % self.places) as u32 * self.bytes;
            let block = self.next as u32;
            let ask = Ask { what: READ, block, count, place, due: self.due.0 };
            if self.asks.push(&ask).is_err() {
                break;
            }
            (rings, self.due, self.begun) = (true, self.due + self.period, self.begun + 1);
            let behind = self.next + u64::from(count);
            self.next = if behind + u64::from(count) > blocks { 0 } else { behind };
        }
        if rings {
            // At its limit it has been given often enough.
            let _ = self.asked.give();
        }
    }

    /// Takes in an answer, and returns the run that came with it.
    fn take(&mut self, answer: &DiskAnswer) -> Option<BlockRun> {
        let DiskAnswer { blocks, block_bytes, status, ask, .. } = *answer;
        if ask.what == READ {
            self.is_held = status == DONE;
            if !self.is_held {
                self.done += 1;
                self.answers.missed(1);
            }
            let run = BlockRun { block: ask.block, bytes: self.bytes, place: ask.place };
            return self.is_held.then_some(run);
        }
        let fits = block_bytes > 0
            && self.bytes.is_multiple_of(block_bytes)
            && u64::from(self.bytes / block_bytes) <= blocks;
        if status == DONE && fits && self.disk.is_none() {
            (self.disk, self.due) = (Some((blocks, block_bytes)), time::now());
        }
        None
    }
}
