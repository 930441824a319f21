//! The writing end of a `[[pipe]]` to a disk.
//!
//! A message is a run of blocks. Its writer fills the memory that the controller reads, so nothing
//! copies it. A place is free again when the server knows that the disk has its blocks.

use crate::answered::{Answer, Answers, WrittenEnd};
use crate::blocks::PAUSE;
use crate::inbox::own;
use core::ops::Range;
use diapason_abi::{Errno, Nanos};
use diapason_contract::disk::{Ask, DONE, DiskAnswer, NAMES, RECORDS, SIZE, WRITE, places};
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Writer;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{pipe, time};

/// Why a run of blocks was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoRoom {
    /// The server has not said yet how large the disk is.
    NoDisk,
    /// The area of the pipe holds no whole run: the disk is smaller, or its blocks are larger.
    Small,
    /// As many runs are under way as there are places.
    Full,
}

/// The memory of a run of blocks that is to be written.
pub struct BlockPlace<'a> {
    data: &'a DmaSegment,
    at: usize,
    /// The first of the blocks.
    pub block: u32,
    /// Bytes of all of them, and of each.
    pub bytes: u32,
    pub block_bytes: u32,
}

impl BlockPlace<'_> {
    /// Puts bytes into the run, from `offset` on.
    ///
    /// # Panics
    /// If the run ends before them.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes as usize, "beyond the run");
        self.data.copy_in(self.at + offset, bytes);
    }
}

/// The writer of an area of a disk, from its first block to its last and again.
///
/// It measures what it writes and reports once a second, in whatever call its program is then. So
/// its program calls [`BlockWriter::write`] or [`BlockWriter::answer`] at least that often.
pub struct BlockWriter {
    asks: Writer<'static, Ask, RECORDS>,
    answers: Answers<DiskAnswer, RECORDS>,
    asked: Semaphore,
    data: DmaSegment,
    /// Bytes of a run.
    bytes: u32,
    /// The blocks that it may write.
    area: Range<u32>,
    /// Bytes of a block; 0 until the server has said it.
    block_bytes: u32,
    /// The first block of the next run.
    next: u32,
    /// Runs that were written.
    begun: u64,
    /// The time at which it asks for the size of the disk again.
    asks_at: Nanos,
}

impl Answer for DiskAnswer {
    fn end(&self) -> Option<WrittenEnd> {
        let DiskAnswer { status, ask, begun, taken, outside, .. } = *self;
        (ask.what == WRITE).then_some(WrittenEnd {
            written: ask.due,
            taken: begun,
            ended: taken,
            status,
            outside: outside as u32,
        })
    }
}

impl BlockWriter {
    /// Opens the pipe to the disk, whose description says the same `bytes`. It writes to the blocks
    /// of `area` only, as far as the disk has them.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(bytes: u32, area: Range<u32>) -> Result<BlockWriter, Errno> {
        let (_, source) = own(ServiceKind::Disks)?;
        let names = NAMES[source.seat().unwrap_or_default()];
        Ok(BlockWriter {
            asks: pipe::writer(names.asks)?,
            answers: Answers::of(source)?,
            asked: Semaphore::open(names.asked)?,
            data: DmaSegment::attach(names.data)?,
            bytes,
            next: area.start,
            area,
            block_bytes: 0,
            begun: 0,
            asks_at: Nanos::ZERO,
        })
    }

    /// Returns what the driver says of disks, and the name of the work that is done for one run.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.answers.source
    }

    /// Writes a run that `fill` puts into its place, and returns its first block. Does not wait,
    /// and takes in the answers to those before.
    ///
    /// # Errors
    /// Nothing was written, and `fill` was not called.
    pub fn write(&mut self, fill: impl FnOnce(&BlockPlace<'_>)) -> Result<u32, NoRoom> {
        while self.take().is_some() {}
        let written = self.place().map(|place| {
            fill(&place);
            (place.at as u32, place.block)
        });
        let now = time::now();
        let written = match written {
            Ok(place) => self.ask(place, now),
            Err(NoRoom::NoDisk) => {
                self.ask_size(now);
                Err(NoRoom::NoDisk)
            }
            Err(other) => Err(other),
        };
        self.answers.fill();
        self.answers.look(now);
        written
    }

    /// Returns the next answer to a run. Waits for it until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if a semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<DiskAnswer, Errno> {
        loop {
            self.answers.look(time::now());
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            self.answers.wait(deadline)?;
        }
    }

    /// Returns the place of the next run.
    fn place(&self) -> Result<BlockPlace<'_>, NoRoom> {
        let (bytes, block_bytes) = (self.bytes, self.block_bytes);
        let count = bytes.checked_div(block_bytes).ok_or(NoRoom::NoDisk)?;
        if count == 0 || !bytes.is_multiple_of(block_bytes) || count as usize > self.area.len() {
            return Err(NoRoom::Small);
        }
        let places = places(bytes as usize) as u64;
        if self.answers.open >= places {
            return Err(NoRoom::Full);
        }
        let at = (self.begun % places) as usize * bytes as usize;
        let fits = self.area.end - self.next >= count;
        let block = if fits { self.next } else { self.area.start };
        Ok(BlockPlace { data: &self.data, at, block, bytes, block_bytes })
    }

    fn ask(&mut self, (place, block): (u32, u32), now: Nanos) -> Result<u32, NoRoom> {
        let count = self.bytes / self.block_bytes;
        let ask = Ask { what: WRITE, block, count, place, due: now.0 };
        self.asks.push(&ask).map_err(|_| NoRoom::Full)?;
        (self.begun, self.next) = (self.begun + 1, block + count);
        self.answers.open += 1;
        // At its limit it has been given often enough.
        let _ = self.asked.give();
        Ok(block)
    }

    fn ask_size(&mut self, now: Nanos) {
        if now < self.asks_at {
            return;
        }
        self.asks_at = now + PAUSE;
        let ask = Ask { what: SIZE, block: 0, count: 0, place: 0, due: now.0 };
        if self.asks.push(&ask).is_ok() {
            let _ = self.asked.give();
        }
    }

    /// Takes in answers up to the first one to a run.
    fn take(&mut self) -> Option<DiskAnswer> {
        loop {
            let answer = self.answers.take()?;
            if answer.ask.what == WRITE {
                return Some(answer);
            }
            self.learn(&answer);
        }
    }

    /// Takes in the size of the disk.
    fn learn(&mut self, answer: &DiskAnswer) {
        let DiskAnswer { blocks, block_bytes, status, .. } = *answer;
        if status == DONE && self.block_bytes == 0 && block_bytes > 0 {
            let end = self.area.end.min(u32::try_from(blocks).unwrap_or(u32::MAX));
            self.area = self.area.start.min(end)..end;
            (self.next, self.block_bytes) = (self.area.start, block_bytes);
        }
    }
}
