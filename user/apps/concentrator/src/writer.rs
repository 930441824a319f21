//! Writes numbered frames to one CAN channel of the USB server, as many as its pipe takes.
//!
//! Once a second it says `OUT channel rate through pending given-up received wrong`: frames a
//! second by the interface's clock, frames acknowledged on the bus, frames under way, frames that
//! will not be sent, and what the receiver on the bus says of them in its receipts: how many it
//! read, and how many were missing or out of order. It says besides how its pipe does, in the line
//! that the tools read (`PipeReport`). Arguments: channel, after how many seconds it ends with a
//! verdict (0: never), and how often it fills the pipe, in us.

#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod underway;

use diapason_abi::pipe::{PipeDelays, PipeReport};
use diapason_can::frame::standard;
use diapason_canlib::{Channel, Error, Frame, Status};
use diapason_rt::{Arguments, Nanos, entry, heap, log, time};
use underway::{Longest, UnderWay};

entry!(main);
// Parts of `diapason-can` that nothing here calls would allocate: no page of it is ever taken.
heap!(4 * 1024);

const BIT_RATE: u32 = 500_000;
const SAMPLE_POINT: u16 = 800;
/// The server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
/// How often it says how it goes.
const REPORT: Nanos = Nanos::from_secs(1);
/// What is under way at the end is through within this time, and the last receipt is here.
const END: Nanos = Nanos::from_secs(1);
const LAST_RECEIPT: Nanos = Nanos::from_millis(100);
/// Identifiers of what it sends begin here, one for each channel.
const FIRST_ID: u32 = 0x100;

fn main(Arguments([number, seconds, period, _]): Arguments) {
    if let Err(error) = write(number, seconds, Nanos(period * 1_000)) {
        log!("can{number}: not written: {error}");
    }
}

/// What is sent, and what came of it.
struct Stream {
    number: u64,
    channel: Channel,
    frames: UnderWay,
    /// The receiver's last receipt.
    receipt: (u32, u32),
    /// Frames through, and when, as of the last report.
    last: (u64, Nanos),
}

fn write(number: u64, seconds: u64, period: Nanos) -> Result<(), Error> {
    let mut channel = Channel::open(number as usize, time::now() + ANSWER)?;
    channel.set_bus_params(BIT_RATE, SAMPLE_POINT)?;
    // The interface may be plugged in later.
    channel.bus_on(Nanos::FOREVER)?;
    let (frames, receipt, last) = (UnderWay::default(), (0, 0), (0, Nanos::ZERO));
    let mut stream = Stream { number, channel, frames, receipt, last };
    let (mut fill_at, mut report_at, mut reports) = (time::now(), time::now() + REPORT, 0);
    while seconds == 0 || reports < seconds {
        time::sleep_until(fill_at.min(report_at));
        let now = time::now();
        if now >= fill_at {
            stream.fill()?;
            fill_at += period;
        }
        stream.read();
        if now >= report_at {
            stream.report()?;
            report_at += REPORT;
            reports += 1;
        }
    }
    stream.end()
}

impl Stream {
    /// As many frames as the pipe takes.
    fn fill(&mut self) -> Result<(), Error> {
        let id = standard(FIRST_ID + self.number as u32).map_err(|_| Error::NoSuchChannel)?;
        loop {
            let bytes = self.frames.written().to_le_bytes();
            let Ok(frame) = Frame::data(id, &bytes) else { return Ok(()) };
            let now = time::now();
            match self.channel.write(&frame) {
                Ok(()) => self.frames.write(now),
                Err(Error::Full) => return self.look(),
                Err(error) => return Err(error),
            }
            self.look()?;
        }
    }

    /// What became of what was written.
    fn look(&mut self) -> Result<(), Error> {
        self.channel.read_status()?;
        while let Some(mark) = self.channel.next_mark() {
            self.frames.through(mark);
        }
        self.frames.count();
        Ok(())
    }

    /// The receipts that came.
    fn read(&mut self) {
        while let Ok(message) = self.channel.read() {
            if let Some((count, wrong)) = receipt(message.frame.bytes()) {
                self.receipt = (count, wrong);
            }
        }
    }

    fn report(&mut self) -> Result<(), Error> {
        self.look()?;
        let status = self.channel.read_status()?;
        let Status { through, given_up, last_through: (at, _), .. } = status;
        let (before, since) = core::mem::replace(&mut self.last, (through, at));
        let span = (at - since).0.max(1);
        let rate = ((through - before) * 1_000_000_000 + span / 2) / span;
        let (number, pending, (read, wrong)) = (self.number, status.pending(), self.receipt);
        log!("OUT {number} {rate} {through} {pending} {given_up} {read} {wrong}");
        let (channel, lost, peak) = (number as u8, given_up + u64::from(wrong), self.frames.peak());
        let Longest { moving, back: reading, whole } = self.frames.take_longest();
        let messages = through;
        log!("{}", PipeReport { channel, messages, lost, peak, reading, moving, whole });
        PipeDelays::lines(channel, self.frames.spread()).for_each(|line| log!("{line}"));
        Ok(())
    }

    /// Waits for what is under way, and says whether all of it was received.
    fn end(mut self) -> Result<(), Error> {
        self.channel.write_sync(time::now() + END)?;
        time::sleep(LAST_RECEIPT);
        self.read();
        let status = self.channel.read_status()?;
        let (number, written, (read, wrong)) = (self.number, self.frames.written(), self.receipt);
        let whole = status.through == written && u64::from(read) == written && wrong == 0;
        let verdict = if whole { "WHOLE" } else { "NOT WHOLE" };
        log!("OUT {number} {verdict} {written} written, {read} received, {wrong} wrong");
        self.channel.bus_off(time::now() + ANSWER)
    }
}

/// What a receiver says it has read: how many, and how many were wrong.
fn receipt(bytes: &[u8]) -> Option<(u32, u32)> {
    let &[a, b, c, d, e, f, g, h] = bytes else { return None };
    Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])))
}
