//! The frames that go to a USB network device: this process writes its `[[pipe]]`.
//!
//! The contract of the pipe has one frame in a period. So the process looks once in each, and sends
//! the oldest frame of one socket: of the next one in turn that has some. Nobody wakes it.

use crate::outlets::Outlets;
use crate::report::Reports;
use diapason_abi::Key;
use diapason_contract::ethernet::{OutFrame, SOCKETS, SocketTerms};
use diapason_contract::network::FRAME_MIN;
use diapason_rt::{Errno, Nanos, log, thread, time};
use diapason_usblib::network::{FramePlace, FrameWriter};

/// The writer of the pipe.
pub(crate) struct Going {
    frames: FrameWriter,
    outlets: Outlets,
    reports: Reports,
    /// The most bytes of a frame of the pipe.
    bytes: usize,
    /// The address that the description gives the device.
    mac: [u8; 6],
    /// The socket whose turn is next.
    next: usize,
    sent: u64,
    /// The device was found to have another address, and that was said.
    has_complained: bool,
}

impl Going {
    /// Opens the pipe, of frames of at most so many bytes, and those of all sockets that send.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open(
        reports: Reports,
        (bytes, mac): (u16, [u8; 6]),
        all: impl Iterator<Item = SocketTerms>,
    ) -> Result<Going, Errno> {
        Ok(Going {
            frames: FrameWriter::open()?,
            outlets: Outlets::open(all)?,
            reports,
            bytes: bytes.into(),
            mac,
            next: 0,
            sent: 0,
            has_complained: false,
        })
    }

    /// Sends a frame in each of these periods at most, for ever.
    pub fn run(mut self, period: Nanos) -> ! {
        let work = Key::new(self.frames.source().message);
        let mut jobs = thread::periodic(time::now(), period, period);
        loop {
            self.frames.hear(&mut |_| {});
            // Frames that find no device, or no place, wait in the pipes of their sockets.
            if self.frames.is_ready()
                && let Some((frame, bytes)) = time::work_of(work, || self.take())
            {
                self.send(&frame.data[..bytes]);
            }
            let counts = ([self.sent, self.outlets.foreign], &[0; SOCKETS]);
            self.reports.look(time::now(), counts, None, || 0);
            jobs.wait();
        }
    }

    /// Returns the oldest frame of the next socket that has one, and its bytes, if the socket may
    /// send it.
    fn take(&mut self) -> Option<(OutFrame, usize)> {
        let mut turns = (0..SOCKETS).map(|step| (self.next + step) % SOCKETS);
        let (number, terms, frame) = turns.find_map(|number| {
            let outlet = self.outlets.all[number].as_mut()?;
            Some((number, outlet.terms, outlet.frames.pop()?))
        })?;
        self.next = number + 1;
        let bytes = self.outlets.allow(&terms, &frame)?.len();
        if !(FRAME_MIN..=self.bytes).contains(&bytes) {
            self.outlets.foreign += 1;
            return None;
        }
        Some((frame, bytes))
    }

    fn send(&mut self, bytes: &[u8]) {
        let Going { mac, has_complained, .. } = self;
        let fill = |place: &FramePlace<'_>| {
            if place.address != *mac && !core::mem::replace(has_complained, true) {
                let [a, b, c, d, e, f] = place.address;
                log!("the device is {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
            }
            place.put(0, bytes);
        };
        self.sent += u64::from(self.frames.write(bytes.len(), fill).is_ok());
    }
}
