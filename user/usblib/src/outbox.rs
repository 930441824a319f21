//! The writing end of a `[[pipe]]` to the endpoint of any device.

use crate::answered::{Answer, Answers, WrittenEnd};
use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::PACKET;
use diapason_contract::sink::{self, ASKED, PacketAnswer, PacketWrite, RECORDS, WRITES};
use diapason_contract::source::PipeSource;
use diapason_pipe::Writer;
use diapason_rt::sync::Semaphore;
use diapason_rt::{pipe, time};

/// Why a packet was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotWritten {
    /// As many packets wait as the pipe holds.
    Full,
    /// The packet is empty, or longer than any packet.
    Length,
}

/// The writer of an endpoint.
///
/// It measures what it writes and reports once a second, in whatever call its program is then. So
/// its program calls [`UsbWriter::write`] or [`UsbWriter::answer`] at least that often.
pub struct UsbWriter {
    writes: Writer<'static, PacketWrite, RECORDS>,
    answers: Answers<PacketAnswer, RECORDS>,
    asked: Semaphore,
}

impl Answer for PacketAnswer {
    fn end(&self) -> Option<WrittenEnd> {
        let PacketAnswer { written, taken, ended, status, outside } = *self;
        Some(WrittenEnd { written, taken, ended, status, outside })
    }
}

/// Opens the pipe to the endpoint of a device. The description says which device and which
/// endpoint.
///
/// # Errors
/// None for what the description grants.
pub fn usb_open_to() -> Result<UsbWriter, Errno> {
    Ok(UsbWriter {
        writes: pipe::writer(WRITES)?,
        answers: Answers::of(&sink::SOURCE)?,
        asked: Semaphore::open(ASKED)?,
    })
}

impl UsbWriter {
    /// Returns what the driver says of the endpoint, and the name of the work that is done for one
    /// packet.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.answers.source
    }

    /// Writes a packet. Does not wait, and takes in the answers to those before.
    ///
    /// # Errors
    /// Nothing was written: the pipe is full, or the packet has a wrong length.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), NotWritten> {
        self.write_hearing(bytes, &mut |_| {})
    }

    /// Writes a packet as [`UsbWriter::write`] does, and calls `hear` with each answer that it
    /// takes in.
    ///
    /// # Errors
    /// Nothing was written: the pipe is full, or the packet has a wrong length.
    pub fn write_hearing(
        &mut self,
        bytes: &[u8],
        hear: &mut dyn FnMut(&PacketAnswer),
    ) -> Result<(), NotWritten> {
        self.take_in(hear);
        let now = time::now();
        let written = self.put(bytes, now);
        if written.is_ok() {
            self.answers.open += 1;
            // At its limit it has been given often enough.
            let _ = self.asked.give();
        }
        self.answers.fill();
        self.answers.look(now);
        written
    }

    /// Returns the next answer. Waits for it until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<PacketAnswer, Errno> {
        loop {
            self.answers.look(time::now());
            if let Some(answer) = self.answers.take() {
                return Ok(answer);
            }
            self.answers.wait(deadline)?;
        }
    }

    /// Calls `hear` with each answer that has come. Does not wait.
    pub fn hear(&mut self, hear: &mut dyn FnMut(&PacketAnswer)) {
        self.take_in(hear);
        self.answers.look(time::now());
    }

    fn take_in(&mut self, hear: &mut dyn FnMut(&PacketAnswer)) {
        while let Some(answer) = self.answers.take() {
            hear(&answer);
        }
    }

    fn put(&mut self, bytes: &[u8], now: Nanos) -> Result<(), NotWritten> {
        let mut data = [0; PACKET];
        let room = data.get_mut(..bytes.len()).filter(|room| !room.is_empty());
        room.ok_or(NotWritten::Length)?.copy_from_slice(bytes);
        // An answer that its pipe has no room for would be lost.
        if self.answers.open >= RECORDS as u64 {
            return Err(NotWritten::Full);
        }
        let packet = PacketWrite { written: now.0, length: bytes.len() as u32, spare: 0, data };
        self.writes.push(&packet).map_err(|_| NotWritten::Full)
    }
}
