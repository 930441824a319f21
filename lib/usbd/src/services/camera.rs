//! Cameras: pieces of frames stay where the controller put them, and are told by a pipe.
//!
//! A `[[pipe]]` chooses the frames: the largest that it has room for, at its period.

use super::clients::Clients;
use super::frames::Frames;
use super::judged::{Judge, Judged, Ticks};
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::policy::{CAMERA_PIXELS, REOPEN};
use crate::slots::Shape;
use crate::told::Pipes;
use diapason_abi::{Errno, Nanos};
use diapason_contract::camera::{
    Back, CameraNames, END, FramePiece, NAMES, OUTSIDE, PLACE, QUEUED, RECORDS, WHOLE,
};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::uvc::{Camera, CameraEvent, DEPTH, Mode, PLACES, Piece, modes};

// The plan counts as many transfers as the driver keeps queued.
const _: () = assert!(QUEUED == DEPTH);

/// The pipes and the places.
pub(crate) struct Video<P: Platform> {
    pieces: Writer<'static, FramePiece, RECORDS>,
    returned: Reader<'static, Back, RECORDS>,
    clients: Clients<P::Memory>,
    /// Places that the client has.
    told: u128,
    /// Places that go back to the class.
    back: u128,
    frames: Frames<P>,
    judge: Judge,
    ticks: Ticks,
    /// The piece that came last, as long as the frame may end with it.
    last: Option<FramePiece>,
    /// When places that came back are looked for if the controller has none: it interrupts no more.
    look_at: Nanos,
}

impl<P: Platform> Video<P> {
    /// Returns the service of a seat without its camera.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P, seat: usize, pipes: &Pipes) -> Result<Video<P>, Errno> {
        let CameraNames { pieces, returned, data, .. } = NAMES[seat];
        Ok(Video {
            pieces: platform.writer(pieces)?,
            returned: platform.reader(returned)?,
            clients: Clients::sharing(platform.memory(data)?, PLACE),
            told: 0,
            back: 0,
            frames: Frames::watched(seat),
            judge: Judge::seated(ServiceKind::Cameras, seat, pipes),
            ticks: Ticks::default(),
            last: None,
            look_at: Nanos::FOREVER,
        })
    }

    /// All places there are.
    fn places(&self) -> u128 {
        let count = self.clients.places().min(PLACES as usize);
        u128::MAX.checked_shr(PLACES - count as u32).unwrap_or(0)
    }

    fn tell(&mut self, piece: Piece<'_>, now: Nanos) {
        match piece {
            Piece::Place { place, from, bytes } => {
                self.flush();
                let piece = FramePiece { place, from, bytes, ..plain(now) };
                self.last = Some(piece);
            }
            Piece::End { bytes, whole, time } => {
                let time = time.and_then(|ticks| self.ticks.time(ticks));
                let Judged { time, moved, outside } = self.judge.judge_at(time, bytes, now);
                let narrow = |time: Nanos| u32::try_from(time.0).unwrap_or(u32::MAX);
                let whole = if whole { WHOLE } else { 0 };
                let outside = if outside { OUTSIDE } else { 0 };
                self.last = Some(FramePiece {
                    time: time.0,
                    flags: END | whole | outside,
                    frame: bytes,
                    moved: narrow(moved.beyond),
                    inexact: narrow(moved.inexact),
                    ..self.last.take().unwrap_or(plain(now))
                });
                self.flush();
            }
            Piece::Data(_) => {}
        }
    }

    /// Tells the client of the piece that came last.
    fn flush(&mut self) {
        let Some(piece) = self.last.take() else { return };
        let told = self.pieces.push(&piece);
        if piece.bytes > 0 {
            let bit = 1 << (piece.place % PLACES);
            // Nobody gives back a place that a full pipe dropped.
            if told.is_ok() { self.told |= bit } else { self.back |= bit }
        }
        self.clients.ring(1);
    }
}

/// Returns a record without bytes, taken now.
const fn plain(now: Nanos) -> FramePiece {
    let (taken, time) = (now.0, now.0);
    let (place, from, bytes, flags, frame) = (0, 0, 0, 0, 0);
    FramePiece { taken, time, place, from, bytes, flags, frame, moved: 0, inexact: 0, spare: 0 }
}

/// Returns the largest picture that is not too large; what the camera sends by itself first among
/// equals.
fn usual(found: &Found<'_>) -> Option<Mode> {
    let pixels = |mode: &Mode| u32::from(mode.width) * u32::from(mode.height);
    let fitting = modes(&found.set).filter(|mode| pixels(mode) <= CAMERA_PIXELS);
    fitting.reduce(|best, mode| if pixels(&mode) > pixels(&best) { mode } else { best })
}

impl<P: Platform> Kind<P> for Video<P> {
    type Class = Camera;

    const NAME: &'static str = "a camera";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 2 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Camera> {
        let mode = match self.judge.wanted() {
            Some((bytes, period)) => Mode::fitting(&found.set, bytes, period),
            None => usual(found),
        };
        let mut camera = Camera::find(&found.set, mode?)?;
        camera.share();
        Some(camera)
    }

    fn hear(&mut self, event: CameraEvent<'_>, now: Nanos) -> Next {
        self.frames.hear(&event, now);
        match event {
            CameraEvent::Started { frame_bytes, interval_bytes, clock, .. }
                if interval_bytes as usize <= PLACE =>
            {
                self.judge.restart();
                self.ticks = Ticks::of(clock);
                log!(P, "camera: frames of {frame_bytes} bytes, {interval_bytes} an interval");
                self.back = self.places() & !self.told;
            }
            CameraEvent::Piece(piece) => self.tell(piece, now),
            event => {
                log!(P, "camera: {event:?}");
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, class: Option<&mut Camera>, now: Nanos) {
        self.frames.look(class.as_deref(), now);
        self.flush();
        while let Some(back) = self.returned.pop() {
            let bit = u32::try_from(back.place).ok().and_then(|place| 1u128.checked_shl(place));
            let bit = bit.unwrap_or(0) & self.told;
            self.told &= !bit;
            self.back |= bit;
        }
        let Some(class) = class else { return };
        while self.back != 0 {
            class.lend(self.back.trailing_zeros());
            self.back &= self.back - 1;
        }
        let is_starved = self.told != 0 && self.told == self.places();
        self.look_at = if is_starved { now + REOPEN } else { Nanos::FOREVER };
    }

    fn next_wake(&self) -> Nanos {
        self.look_at
    }

    fn forget(&mut self, now: Nanos) {
        self.frames.end(now);
        self.flush();
        (self.back, self.look_at) = (0, Nanos::FOREVER);
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
