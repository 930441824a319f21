//! A camera: isochronous, SuperSpeed, up to 33 packets of 1,024 bytes in each
//! interval, with a 4 MB buffer (USB Video Class 1.1).
//!
//! A frame becomes whole at its instant and waits in the buffer; one that does not fit beside what
//! still waits is lost. Each word of a frame says where it belongs ([`content`]), so that a reader
//! sees every byte that was lost on the way.

mod about;
mod negotiation;

pub use about::{ALTERNATES, FRAMES, FrameFormat};
pub use negotiation::StreamSettings;

use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard};
use diapason_abi::Nanos;
use diapason_usb::{Setup, Speed};
use negotiation::Negotiation;
use std::collections::VecDeque;
use std::ops::Range;

/// Frames come from here.
pub const IN: u8 = 0x81;
/// Bytes of a packet.
pub const PACKET: usize = 1_024;
/// Bytes of its memory.
pub const BUFFER: usize = 4 << 20;
/// Bytes before the content of each interval.
pub const HEADER: usize = 12;
pub const INTERVAL: Nanos = Nanos::from_micros(125);

/// Flags of the header: which of two frames, the last of it, times are present, end of header.
pub mod flag {
    /// Changes from frame to frame.
    pub const TOGGLE: u8 = 1;
    /// The frame ends in this interval.
    pub const END: u8 = 2;
    /// A presentation time is present.
    pub const PRESENTATION: u8 = 4;
    /// A source clock is present.
    pub const CLOCK: u8 = 8;
    pub const HEADER_END: u8 = 0x80;
}

/// Ticks of the camera's clock in a microsecond.
const TICKS_PER_MICRO: u64 = 48;

/// Byte `at` of frame `number`: each eight bytes are the number and the place (in eights), u32.
#[must_use]
pub fn content(number: u32, at: usize) -> u8 {
    let word = u64::from(number) | ((at / 8) as u64) << 32;
    word.to_le_bytes()[at % 8]
}

/// Appends these bytes of a frame, eight at a time where there are so many.
fn fill(bytes: &mut Vec<u8>, number: u32, places: Range<usize>) {
    let mut at = places.start;
    while at < places.end {
        let word = u64::from(number) | ((at / 8) as u64) << 32;
        let most = (8 - at % 8).min(places.end - at);
        bytes.extend_from_slice(&word.to_le_bytes()[at % 8..][..most]);
        at += most;
    }
}

/// A frame in the buffer.
#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u32,
    toggle: bool,
    time: Nanos,
    size: usize,
    sent: usize,
}

/// The bytes sent in the current interval.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    interval: u64,
    begun: bool,
    ended: bool,
    /// Bytes that may still be sent.
    room: usize,
}

/// A model of a camera.
#[derive(Clone, Debug)]
pub struct CameraModel {
    standard: Standard,
    negotiation: Negotiation,
    next: Nanos,
    number: u32,
    toggle: bool,
    waiting: VecDeque<Frame>,
    lost: u64,
    burst: Burst,
    /// A frame follows the other without a pause.
    busy: bool,
}

impl Default for CameraModel {
    fn default() -> CameraModel {
        CameraModel {
            standard: Standard::new(about::descriptors()),
            negotiation: Negotiation::default(),
            next: Nanos::FOREVER,
            number: 0,
            toggle: false,
            waiting: VecDeque::new(),
            lost: 0,
            burst: Burst::default(),
            busy: false,
        }
    }
}

impl CameraModel {
    /// Returns a camera whose next frame is whole as soon as the last one is gone: it fills every
    /// interval.
    #[must_use]
    pub fn busy() -> CameraModel {
        CameraModel { busy: true, ..CameraModel::default() }
    }

    /// Frames that found no room in the buffer. Their numbers are missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the settings that the host committed to.
    #[must_use]
    pub fn settings(&self) -> StreamSettings {
        self.negotiation.committed()
    }

    /// Begins or ends streaming, as the alternate setting says.
    fn note_alternate(&mut self, now: Nanos, before: u8) {
        let alternate = self.standard.alternate(1);
        if alternate == before {
            return;
        }
        self.waiting.clear();
        self.burst = Burst::default();
        let period = self.settings().period();
        let ends = alternate == 0 || self.busy;
        self.next = if ends { Nanos::FOREVER } else { now + period };
    }

    fn expose(&mut self, time: Nanos) {
        let size = self.settings().format().bytes();
        let held: usize = self.waiting.iter().map(|frame| frame.size - frame.sent).sum();
        if held + size <= BUFFER {
            let (number, toggle) = (self.number, self.toggle);
            self.waiting.push_back(Frame { number, toggle, time, size, sent: 0 });
            self.toggle = !self.toggle;
        } else {
            self.lost += 1;
        }
        self.number = self.number.wrapping_add(1);
    }

    /// The bytes of the next interval begin.
    fn enter(&mut self, now: Nanos) {
        let interval = now.0 / INTERVAL.0;
        if interval == self.burst.interval && self.burst.begun {
            return;
        }
        let alternate = usize::from(self.standard.alternate(1));
        let bytes = alternate.checked_sub(1).and_then(|at| ALTERNATES.get(at));
        let bytes = bytes.map_or(0, |bursts| bursts.bytes());
        let room = bytes.min(self.settings().payload());
        self.burst = Burst { interval, begun: true, ended: false, room };
        if self.busy && self.waiting.is_empty() && room > HEADER {
            self.expose(now);
        }
        if let Some(frame) = self.waiting.front_mut().filter(|_| room > HEADER) {
            self.burst.room = room.min(HEADER + frame.size - frame.sent);
        } else {
            self.burst.ended = true;
        }
    }

    fn header(frame: &Frame, now: Nanos, content: usize) -> [u8; HEADER] {
        let ticks = |time: Nanos| (time.0 * TICKS_PER_MICRO / 1_000) as u32;
        let end = if frame.sent + content == frame.size { flag::END } else { 0 };
        let toggle = if frame.toggle { flag::TOGGLE } else { 0 };
        let flags = flag::HEADER_END | flag::CLOCK | flag::PRESENTATION | end | toggle;
        let ([p0, p1, p2, p3], [c0, c1, c2, c3]) =
            (ticks(frame.time).to_le_bytes(), ticks(now).to_le_bytes());
        let [s0, s1] = ((now.0 / 1_000_000) as u16 & 0x7ff).to_le_bytes();
        [HEADER as u8, flags, p0, p1, p2, p3, c0, c1, c2, c3, s0, s1]
    }

    /// The next packet of the interval; a short one ends it.
    fn packet(&mut self, now: Nanos) -> Vec<u8> {
        let first = !self.burst.begun || self.burst.interval != now.0 / INTERVAL.0;
        self.enter(now);
        let Some(frame) = self.waiting.front_mut().filter(|_| !self.burst.ended) else {
            return Vec::new();
        };
        let mut bytes = Vec::with_capacity(PACKET);
        if first {
            bytes.extend(CameraModel::header(frame, now, self.burst.room - HEADER));
        }
        let length = self.burst.room.min(PACKET);
        let (at, count) = (frame.sent, length - bytes.len());
        fill(&mut bytes, frame.number, at..at + count);
        frame.sent += count;
        self.burst.room -= length;
        self.burst.ended = self.burst.room == 0;
        if frame.sent == frame.size {
            self.waiting.pop_front();
        }
        bytes
    }
}

impl UsbDevice for CameraModel {
    fn speed(&self) -> Speed {
        Speed::Super
    }

    fn reset(&mut self, now: Nanos) {
        let before = self.standard.alternate(1);
        self.standard.reset();
        self.negotiation = Negotiation::default();
        self.note_alternate(now, before);
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        let before = self.standard.alternate(1);
        match self.standard.control(setup) {
            Some(answer) => {
                self.note_alternate(now, before);
                answer
            }
            None => self.negotiation.control(setup, data),
        }
    }

    fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
        Handshake::Error
    }

    fn send(&mut self, now: Nanos, endpoint: u8, buffer: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready => Answer::packet(buffer, &self.packet(now)),
            EndpointStatus::Halted => Answer::Stall,
            EndpointStatus::Absent => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.next
    }

    fn advance(&mut self, now: Nanos) {
        while self.next <= now && self.next < Nanos::FOREVER {
            self.expose(self.next);
            self.next += self.settings().period();
        }
    }
}
