//! The reading end of a `[[pipe]]` from a network device.
//!
//! A message is a frame. It stays where the controller put it until its reader takes the next one.

use crate::inbox::{Arrived, Inbox, delay};
use crate::network;
use diapason_abi::{Errno, Nanos};
use diapason_contract::network::{
    ASKED, Ask, BEGIN, BEGUN, CAME, FROM, LEND, LOST_BEFORE, News, OPENED, OUTSIDE, RECORDS,
    SLOT_BYTES, STATE,
};
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::Writer;
use diapason_pipe::measured::ReadMessage;
use diapason_rt::memory::DmaSegment;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;

impl Arrived for News {
    fn passed(&self, read: Nanos) -> Option<ReadMessage> {
        (self.what == CAME).then_some(ReadMessage {
            time: Nanos(self.time),
            taken: Nanos(self.taken),
            read,
            moved: delay(self.moved, self.inexact),
            outside: self.flags & OUTSIDE != 0,
            lost_before: self.flags & LOST_BEFORE != 0,
        })
    }
}

/// A frame that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CameFrame {
    slot: u32,
    pub bytes: u32,
    /// The time at which the server took it from the controller.
    pub taken: Nanos,
    /// Times that the device was found before.
    pub session: u32,
}

impl CameFrame {
    /// Returns its place in the memory that the controller shares ([`FROM`]). It is the reader's
    /// until it takes the next frame.
    #[must_use]
    pub const fn place(&self) -> u16 {
        self.slot as u16
    }
}

/// The frames that a network device brings.
pub struct FrameReader {
    news: Inbox<News, RECORDS>,
    asks: Writer<'static, Ask, RECORDS>,
    asked: Semaphore,
    data: DmaSegment,
    /// The slot of the frame that the reader has.
    held: Option<u32>,
    /// The server has all slots without a frame. Frames that were told before are not there.
    is_begun: bool,
    session: u32,
}

impl FrameReader {
    /// Opens the pipe from the network device.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<FrameReader, Errno> {
        let mut frames = FrameReader {
            news: Inbox::of(ServiceKind::Networks)?,
            asks: pipe::writer(FROM.asks)?,
            asked: Semaphore::open(ASKED)?,
            data: DmaSegment::attach(FROM.data)?,
            held: None,
            is_begun: false,
            session: 0,
        };
        frames.begin();
        Ok(frames)
    }

    /// Returns what the driver says of network devices, and the name of the work that is done for
    /// one frame.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.news.source()
    }

    /// Returns the next frame, or waits for it until `deadline`. The frame before is given back.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if a semaphore was deleted.
    pub fn read_wait(&mut self, deadline: Nanos) -> Result<CameFrame, Errno> {
        // The server looks for this slot when it has taken the next frame.
        if let Some(slot) = self.held.take() {
            // There is room for more slots than there are.
            let _ = self.asks.push(&Ask { what: LEND, slot, bytes: 0, written: 0 });
        }
        loop {
            let news = self.news.read_wait(deadline)?;
            let News { slot, bytes, taken, .. } = news;
            match news.what {
                CAME if self.is_begun => {
                    self.held = Some(slot);
                    let session = self.session;
                    return Ok(CameFrame { slot, bytes, taken: Nanos(taken), session });
                }
                BEGUN => self.is_begun = true,
                // The server may be another one than before.
                STATE if news.flags & OPENED != 0 => {
                    self.session += 1;
                    self.begin();
                }
                _ => {}
            }
        }
    }

    /// Returns the four bytes of a frame from `offset` on, the least significant first.
    #[must_use]
    pub fn word(&self, frame: &CameFrame, offset: u32) -> u32 {
        self.data.read32((frame.slot * SLOT_BYTES + offset) as usize)
    }

    /// Copies the beginning of a frame.
    pub fn copy(&self, frame: &CameFrame, into: &mut [u8]) {
        network::read(&self.data, frame.slot, into);
    }

    /// Counts frames that the caller found missing by their contents: they are reported as lost.
    pub fn missed(&mut self, frames: u64) {
        self.news.missed(frames);
    }

    /// News that the pipe had no room for: its reader was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.news.lost()
    }

    /// Lends all slots, whatever became of them, and lets the server know.
    fn begin(&mut self) {
        self.is_begun = false;
        let begun = self.asks.push(&Ask { what: BEGIN, slot: 0, bytes: 0, written: 0 });
        debug_assert!(begun.is_ok(), "there is room for more asks than there are slots");
        // At its limit it has been given often enough.
        let _ = self.asked.give();
    }
}
