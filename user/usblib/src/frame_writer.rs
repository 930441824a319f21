//! The writing end of a `[[pipe]]` to a network device.

use crate::answered::{Answer, Answers, WrittenEnd};
use crate::network;
use diapason_abi::{Errno, Nanos};
use diapason_contract::network::{
    ASKED, Ask, BACK, BEGIN, BEGUN, FRAME_MAX, News, OPENED, OUTSIDE, RECORDS, SEND, SINK, SLOTS,
    STATE, TO,
};
use diapason_contract::source::PipeSource;
use diapason_pipe::Writer;
use diapason_rt::memory::DmaSegment;
use diapason_rt::sync::Semaphore;
use diapason_rt::{pipe, time};

/// Why a frame was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSent {
    /// There is no device so far.
    NoDevice,
    /// Every place has a frame that the device has not taken.
    Full,
    /// The frame is longer than any frame.
    Length,
}

/// The place of a frame, which the caller fills.
pub struct FramePlace<'w> {
    data: &'w DmaSegment,
    slot: u32,
    /// The address of the device, which frames from it bear.
    pub address: [u8; 6],
}

/// The writer of a network device.
///
/// It measures what it writes and reports once a second, in whatever call its program is then. So
/// its program calls [`FrameWriter::write`], [`FrameWriter::answer`] or [`FrameWriter::hear`] at
/// least that often.
pub struct FrameWriter {
    asks: Writer<'static, Ask, RECORDS>,
    answers: Answers<News, RECORDS>,
    asked: Semaphore,
    data: DmaSegment,
    /// Slots without a frame, as bits.
    free: u128,
    /// The address of the device, once it was there. Frames for one that is gone come back.
    device: Option<[u8; 6]>,
}

impl Answer for News {
    fn end(&self) -> Option<WrittenEnd> {
        let News { what, taken, time, begun, status, flags, .. } = *self;
        (what == BACK).then_some(WrittenEnd {
            written: time,
            taken: begun,
            ended: taken,
            status,
            outside: u32::from(flags & OUTSIDE != 0),
        })
    }
}

impl FramePlace<'_> {
    /// Writes bytes of the frame from `offset` on, which is a multiple of four.
    ///
    /// # Panics
    /// The bytes are beyond the longest frame.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= FRAME_MAX, "bytes beyond the frame");
        network::write(self.data, (self.slot, offset), bytes);
    }
}

impl FrameWriter {
    /// Opens the pipe to the network device.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<FrameWriter, Errno> {
        let mut writer = FrameWriter {
            asks: pipe::writer(TO.asks)?,
            answers: Answers::of(&SINK)?,
            asked: Semaphore::open(ASKED)?,
            data: DmaSegment::attach(TO.data)?,
            free: u128::MAX >> (u128::BITS - SLOTS),
            device: None,
        };
        // A writer that was started again hears of the device so.
        writer.ask(&Ask { what: BEGIN, slot: 0, bytes: 0, written: 0 })?;
        Ok(writer)
    }

    /// Returns what the driver says of network devices, and the name of the work that is done for
    /// one frame.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.answers.source
    }

    /// Writes a frame of so many bytes, which `fill` puts into its place. Does not wait, and takes
    /// in the answers to those before.
    ///
    /// # Errors
    /// Nothing was written, and `fill` was not called.
    pub fn write(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&FramePlace<'_>),
    ) -> Result<(), NotSent> {
        self.write_hearing(bytes, fill, &mut |_| {})
    }

    /// Writes a frame as [`FrameWriter::write`] does, and calls `hear` with each answer to a frame
    /// that it takes in.
    ///
    /// # Errors
    /// Nothing was written, and `fill` was not called.
    pub fn write_hearing(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&FramePlace<'_>),
        hear: &mut dyn FnMut(&News),
    ) -> Result<(), NotSent> {
        self.hear(hear);
        let filled = self.place(bytes).map(|place| {
            fill(&place);
            place.slot
        });
        let written = filled.and_then(|slot| self.send(slot, bytes as u16));
        self.answers.fill();
        written
    }

    /// Calls `hear` with each answer to a frame that has come, and reports if that is due. Does not
    /// wait.
    pub fn hear(&mut self, hear: &mut dyn FnMut(&News)) {
        while let Some(answer) = self.take() {
            hear(&answer);
        }
        self.answers.look(time::now());
    }

    /// Returns whether there was a device, and a place is free for a frame.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.device.is_some() && self.free != 0
    }

    /// Returns the next answer to a frame. Waits for it until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if a semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<News, Errno> {
        loop {
            self.answers.look(time::now());
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            self.answers.wait(deadline)?;
        }
    }

    /// Returns the place of the next frame.
    fn place(&self, bytes: usize) -> Result<FramePlace<'_>, NotSent> {
        if bytes > FRAME_MAX {
            return Err(NotSent::Length);
        }
        let address = self.device.ok_or(NotSent::NoDevice)?;
        if self.free == 0 {
            return Err(NotSent::Full);
        }
        Ok(FramePlace { data: &self.data, slot: self.free.trailing_zeros(), address })
    }

    fn send(&mut self, slot: u32, bytes: u16) -> Result<(), NotSent> {
        let ask = Ask { what: SEND, slot, bytes, written: time::now().0 };
        self.ask(&ask).map_err(|_| NotSent::Full)?;
        self.free &= !(1 << slot);
        self.answers.open += 1;
        Ok(())
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)?;
        // At its limit it has been given often enough.
        let _ = self.asked.give();
        Ok(())
    }

    /// Takes in news up to the first answer to a frame.
    fn take(&mut self) -> Option<News> {
        loop {
            let news = self.answers.take()?;
            match news.what {
                STATE | BEGUN if news.flags & OPENED != 0 => self.device = Some(news.address),
                BACK => {
                    self.free |= 1u128.checked_shl(news.slot).unwrap_or(0);
                    return Some(news);
                }
                _ => {}
            }
        }
    }
}
