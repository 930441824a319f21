//! The count of a camera's frames, and when it is reported.

use crate::platform::{Platform, report};
use core::marker::PhantomData;
use diapason_abi::Nanos;
use diapason_pipe::measured::{CameraReport, Measurement, REPORT};
use diapason_usb::class::uvc::{Camera, Event, Piece};

/// The frames of a camera so far.
pub(crate) struct Frames<P: Platform> {
    report: CameraReport,
    /// Intervals without data that the class had counted at the last look.
    missed: u64,
    /// The time of the next report; `FOREVER` if no frames come.
    due: Nanos,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Frames<P> {
    /// Returns the count of a camera, or of the stream with this number.
    pub fn new(stream: Option<usize>) -> Frames<P> {
        let (stream, number) = (stream.is_some(), stream.unwrap_or(0) as u8);
        let report = CameraReport { stream, number, ..CameraReport::default() };
        Frames { report, missed: 0, due: Nanos::FOREVER, platform: PhantomData }
    }

    /// Takes in an event of the class.
    pub fn hear(&mut self, event: &Event<'_>, now: Nanos) {
        match event {
            Event::Started { .. } => (self.due, self.missed) = (now + REPORT, 0),
            Event::Piece(Piece::End { whole: true, .. }) => self.report.whole += 1,
            Event::Piece(Piece::End { whole: false, .. }) => self.report.broken += 1,
            _ => {}
        }
    }

    /// Reports if that is due.
    pub fn look(&mut self, class: Option<&Camera>, now: Nanos) {
        if let Some(class) = class {
            let missed = class.counts().missed;
            self.report.missed += missed.saturating_sub(self.missed);
            self.missed = missed;
        }
        if now >= self.due {
            self.due = now + REPORT;
            report::<P>(now, Measurement::Camera(self.report));
        }
    }

    /// Notes that no frames come any more.
    pub fn end(&mut self, now: Nanos) {
        if self.due < Nanos::FOREVER {
            self.due = Nanos::FOREVER;
            report::<P>(now, Measurement::Camera(self.report));
        }
    }
}
