//! The count of a camera's frames and their pace, and when they are reported.

use crate::platform::{Platform, report};
use core::marker::PhantomData;
use diapason_abi::Nanos;
use diapason_pipe::clock::DeviceClock;
use diapason_pipe::measured::{CameraReport, Measurement, REPORT};
use diapason_usb::class::uvc::{Camera, CameraEvent, Piece};

/// Millionths by which the clocks of a camera and of the host may run apart.
const DRIFT: u32 = 1_000;

/// The frames of a camera so far.
pub(crate) struct Frames<P: Platform> {
    report: CameraReport,
    /// The camera runs at the rate that it agrees to.
    is_paced: bool,
    /// Frames since it started. The camera's clock, as far as it shows it.
    number: u64,
    clock: DeviceClock,
    /// Intervals without data that the class had counted at the last look.
    missed: u64,
    /// The time of the next report; `FOREVER` if no frames come.
    due: Nanos,
    platform: PhantomData<fn() -> P>,
}

impl<P: Platform> Frames<P> {
    /// Returns the count of the camera with this number among those that clients watch.
    pub fn watched(number: usize) -> Frames<P> {
        let number = number as u8;
        Frames::new(CameraReport { number, ..CameraReport::default() }, true)
    }

    /// Returns the count of the stream with this number. One that is not paced has less of the bus
    /// than it asks for, so its frames may take any time.
    pub fn of_stream(number: usize, is_paced: bool) -> Frames<P> {
        let number = number as u8;
        Frames::new(CameraReport { stream: true, number, ..CameraReport::default() }, is_paced)
    }

    fn new(report: CameraReport, is_paced: bool) -> Frames<P> {
        Frames {
            report,
            is_paced,
            number: 0,
            clock: DeviceClock::new(DRIFT),
            missed: 0,
            due: Nanos::FOREVER,
            platform: PhantomData,
        }
    }

    /// Takes in an event of the class.
    pub fn hear(&mut self, event: &CameraEvent<'_>, now: Nanos) {
        match event {
            CameraEvent::Started { frame_time, .. } => {
                (self.due, self.missed, self.number) = (now + REPORT, 0, 0);
                self.report.period = if self.is_paced { *frame_time } else { Nanos::ZERO };
                self.clock.restart();
            }
            CameraEvent::Piece(Piece::End { whole, .. }) => {
                let of = if *whole { &mut self.report.whole } else { &mut self.report.broken };
                *of += 1;
                self.pace(now);
            }
            _ => {}
        }
    }

    /// A frame came. It is late by as much as it came after its turn, beyond the one that came
    /// earliest.
    fn pace(&mut self, now: Nanos) {
        if self.report.period == Nanos::ZERO {
            return;
        }
        self.number += 1;
        let turn = Nanos(self.report.period.0.wrapping_mul(self.number));
        self.report.late = self.report.late.max(self.clock.measure(now, turn).beyond);
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

    /// Notes that no frames come any more, though they were to.
    pub fn break_off(&mut self, now: Nanos) {
        self.report.breaks += u64::from(self.due < Nanos::FOREVER);
        self.end(now);
    }

    /// Notes that no frames come any more.
    pub fn end(&mut self, now: Nanos) {
        if self.due < Nanos::FOREVER {
            self.due = Nanos::FOREVER;
            report::<P>(now, Measurement::Camera(self.report));
        }
    }
}
