//! Numbered frames on their way to a CAN channel, and what came of them.

use diapason_can::Id;
use diapason_can::frame::standard;
use diapason_canlib::{
    AnyFrame, CanFrame, Channel, Classic, Error, FdFrame, Flexible, Format, Status,
};
use diapason_rt::{Nanos, log, time};

/// The server answers within this time.
pub const ANSWER: Nanos = Nanos::from_secs(5);
/// Time between two reports.
pub const REPORT: Nanos = Nanos::from_secs(1);
/// Messages under way at the end are through within this time, and the last receipt is here.
const END: Nanos = Nanos::from_secs(1);
const LAST_RECEIPT: Nanos = Nanos::from_millis(100);
/// Identifiers of what it sends begin here, one for each channel.
const FIRST_ID: u32 = 0x100;

/// The sent messages, and their fate.
pub struct SentStream<F: Format = Classic> {
    number: u64,
    channel: Channel<F>,
    /// Frames written, and those of them that are known to be through.
    written: u64,
    through: u64,
    /// The receiver's last receipt.
    receipt: (u32, u32),
    /// Frames through, and when by the interface's clock and by the own one, as of the last report.
    last: (u64, [Nanos; 2]),
}

/// A format of frames that carry numbers.
pub trait Numbered: Format {
    /// Returns the frame with this number.
    fn numbered(id: Id, number: u64) -> Option<Self::Frame>;

    /// Returns the data of a frame.
    fn data(frame: &Self::Frame) -> &[u8];
}

impl Numbered for Classic {
    fn numbered(id: Id, number: u64) -> Option<CanFrame> {
        CanFrame::data(id, &number.to_le_bytes()).ok()
    }

    fn data(frame: &CanFrame) -> &[u8] {
        frame.bytes()
    }
}

impl Numbered for Flexible {
    fn numbered(id: Id, number: u64) -> Option<AnyFrame> {
        let bytes = number.to_le_bytes();
        if number % 2 == 1 {
            return Some(CanFrame::data(id, &bytes).ok()?.into());
        }
        let all: [u8; 64] = core::array::from_fn(|at| bytes[at % bytes.len()]);
        Some(FdFrame::new(id, &all).ok()?.with_fast(true).into())
    }

    fn data(frame: &AnyFrame) -> &[u8] {
        frame.bytes()
    }
}

impl SentStream {
    /// Returns a stream to this channel, which is put on its bus.
    pub fn open(number: u64) -> Result<SentStream, Error> {
        SentStream::on(Channel::open(number as usize, time::now() + ANSWER)?, number)
    }
}

impl<F: Numbered> SentStream<F> {
    /// Returns a stream to an open channel, which is put on its bus.
    pub fn on(mut channel: Channel<F>, number: u64) -> Result<SentStream<F>, Error> {
        // The interface may be plugged in later.
        channel.bus_on(Nanos::FOREVER)?;
        let (written, through, receipt, last) = (0, 0, (0, 0), (0, [Nanos::ZERO; 2]));
        Ok(SentStream { number, channel, written, through, receipt, last })
    }

    /// The next frame, if the pipe has room for it.
    pub fn write(&mut self) -> Result<(), Error> {
        let id = standard(FIRST_ID + self.number as u32).map_err(|_| Error::NoSuchChannel)?;
        let frame = F::numbered(id, self.written).ok_or(Error::NoSuchChannel)?;
        self.channel.write(&frame)?;
        self.written += 1;
        Ok(())
    }

    /// Returns the number of written frames.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Looks at the fate of written frames: calls `each` for every frame that is through, with its
    /// number, and when that was known.
    pub fn look(&mut self, mut each: impl FnMut(u64, Nanos)) -> Result<(), Error> {
        self.channel.read_status()?;
        while let Some(mark) = self.channel.next_mark() {
            let through = mark.through.min(self.written).max(self.through);
            (self.through..through).for_each(|frame| each(frame, mark.known));
            self.through = through;
        }
        Ok(())
    }

    /// The receipts that came.
    pub fn read(&mut self) {
        while let Ok(message) = self.channel.read() {
            if let Some((count, wrong)) = receipt(F::data(&message.frame)) {
                self.channel.missed(wrong.saturating_sub(self.receipt.1).into());
                self.receipt = (count, wrong);
            }
        }
    }

    /// One line for people.
    pub fn say(&mut self) -> Result<(), Error> {
        let status = self.channel.read_status()?;
        let Status { through, given_up, last_through: (at, known), .. } = status;
        let (before, since) = core::mem::replace(&mut self.last, (through, [at, known]));
        // The clock of an interface that was plugged in again begins anew.
        let span = if at >= since[0] { at - since[0] } else { known - since[1] };
        let span = span.0.max(1);
        let rate = ((through - before) * 1_000_000_000 + span / 2) / span;
        let (number, pending, (read, wrong)) = (self.number, status.pending(), self.receipt);
        log!("OUT {number} {rate} {through} {pending} {given_up} {read} {wrong}");
        Ok(())
    }

    /// Waits for what is under way, and says whether all of it was received.
    pub fn end(mut self) -> Result<(), Error> {
        self.channel.write_sync(time::now() + END)?;
        time::sleep(LAST_RECEIPT);
        self.read();
        let status = self.channel.read_status()?;
        let (number, written, (read, wrong)) = (self.number, self.written, self.receipt);
        let whole = status.through == written && u64::from(read) == written && wrong == 0;
        let verdict = if whole { "WHOLE" } else { "NOT WHOLE" };
        log!("OUT {number} {verdict} {written} written, {read} received, {wrong} wrong");
        self.channel.bus_off(time::now() + ANSWER)
    }
}

/// Returns the content of a receiver's receipt: how many frames it has read, and how many were
/// wrong.
fn receipt(bytes: &[u8]) -> Option<(u32, u32)> {
    let &[a, b, c, d, e, f, g, h] = bytes else { return None };
    Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
}
