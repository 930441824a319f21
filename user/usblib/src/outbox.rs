//! The writing end of a `[[pipe]]` to the endpoint of any device.

use diapason_abi::{Errno, Nanos};
use diapason_contract::sensor::PACKET;
use diapason_contract::sink::{
    ANSWERS, ASKED, DONE, GONE, PacketAnswer, PacketWrite, READY, RECORDS, WRITES,
};
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use diapason_pipe::measured::Gauge;
use diapason_pipe::{Reader, Writer};
use diapason_rt::sync::Semaphore;
use diapason_rt::{log, pipe, time};

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
    answers: Reader<'static, PacketAnswer, RECORDS>,
    asked: Semaphore,
    ready: Semaphore,
    gauge: Gauge,
    source: &'static PipeSource,
    /// Packets that were written and not answered.
    open: u64,
    /// The device has taken a packet.
    works: bool,
}

/// Opens the pipe to the endpoint of a device. The description says which device and which
/// endpoint.
///
/// # Errors
/// None for what the description grants.
pub fn usb_open_to() -> Result<UsbWriter, Errno> {
    let (number, source) = PipeSource::of(ServiceKind::Sinks).ok_or(Errno::Absent)?;
    Ok(UsbWriter {
        writes: pipe::writer(WRITES)?,
        answers: pipe::reader(ANSWERS)?,
        asked: Semaphore::open(ASKED)?,
        ready: Semaphore::open(READY)?,
        gauge: Gauge::new(true, u8::try_from(number).unwrap_or(u8::MAX)),
        source,
        open: 0,
        works: false,
    })
}

impl UsbWriter {
    /// Returns what the driver says of the endpoint, and the name of the work that is done for one
    /// packet.
    #[must_use]
    pub const fn source(&self) -> &'static PipeSource {
        self.source
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
            self.open += 1;
            // At its limit it has been given often enough.
            let _ = self.asked.give();
        }
        // Until the device is there, the server answers packets when it looks at the pipe.
        if self.works {
            self.gauge.fill(self.open);
        }
        self.look(now);
        written
    }

    /// Returns the next answer. Waits for it until `deadline`.
    ///
    /// # Errors
    /// `TimedOut` if none came, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<PacketAnswer, Errno> {
        loop {
            let now = time::now();
            self.look(now);
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            let due = self.gauge.due(now);
            match self.ready.take(deadline.min(due)) {
                Err(Errno::TimedOut) if due < deadline => {}
                taken => taken?,
            }
        }
    }

    /// Calls `hear` with each answer that has come. Does not wait.
    pub fn hear(&mut self, hear: &mut dyn FnMut(&PacketAnswer)) {
        self.take_in(hear);
        self.look(time::now());
    }

    fn take_in(&mut self, hear: &mut dyn FnMut(&PacketAnswer)) {
        while let Some(answer) = self.take() {
            hear(&answer);
        }
    }

    fn put(&mut self, bytes: &[u8], now: Nanos) -> Result<(), NotWritten> {
        let mut data = [0; PACKET];
        let room = data.get_mut(..bytes.len()).filter(|room| !room.is_empty());
        room.ok_or(NotWritten::Length)?.copy_from_slice(bytes);
        // An answer that its pipe has no room for would be lost.
        if self.open >= RECORDS as u64 {
            return Err(NotWritten::Full);
        }
        let packet = PacketWrite { written: now.0, length: bytes.len() as u32, spare: 0, data };
        self.writes.push(&packet).map_err(|_| NotWritten::Full)
    }

    /// Takes in an answer. A packet that the device did not take counts as lost, but not while the
    /// device has not come yet.
    fn take(&mut self) -> Option<PacketAnswer> {
        let answer = self.answers.pop()?;
        let PacketAnswer { written, taken, ended, status, outside } = answer;
        let [taking, whole] = [taken, ended].map(|time| Nanos(time) - Nanos(written));
        match status {
            DONE => {
                self.works = true;
                let moving = Nanos(ended) - Nanos(taken);
                self.gauge.through(1, [taking, moving, Nanos::ZERO], whole, Nanos::ZERO);
            }
            GONE if !self.works => {}
            _ => self.gauge.missed(1),
        }
        self.gauge.exceeded(outside);
        self.open = self.open.saturating_sub(1);
        Some(answer)
    }

    fn look(&mut self, now: Nanos) {
        self.gauge.look(now, self.answers.lost(), &mut log::measured);
    }
}
