//! Cameras: pieces of frames stay where the controller put them, and are told by a pipe.

use super::clients::Clients;
use super::frames::Frames;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::policy::{CAMERA_PIXELS, REOPEN};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::camera::{self, Back, DATA, END, PIECES, PLACE, RECORDS, RETURNED, WHOLE};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::uvc::{Camera, CameraEvent, Mode, PLACES, Piece, modes};

/// The pipes and the places.
pub(crate) struct Video<P: Platform> {
    pieces: Writer<'static, camera::FramePiece, RECORDS>,
    returned: Reader<'static, Back, RECORDS>,
    clients: Clients<P::Memory>,
    /// Places that the client has.
    told: u128,
    /// Places that go back to the class.
    back: u128,
    frames: Frames<P>,
    /// When places that came back are looked for if the controller has none: it interrupts no more.
    look_at: Nanos,
}

impl<P: Platform> Video<P> {
    /// Returns the service without a camera.
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(platform: &P) -> Result<Video<P>, Errno> {
        Ok(Video {
            pieces: platform.writer(PIECES)?,
            returned: platform.reader(RETURNED)?,
            clients: Clients::sharing(platform.memory(DATA)?, PLACE),
            told: 0,
            back: 0,
            frames: Frames::new(None, true),
            look_at: Nanos::FOREVER,
        })
    }

    /// All places there are.
    fn places(&self) -> u128 {
        let count = self.clients.places().min(PLACES as usize);
        u128::MAX.checked_shr(PLACES - count as u32).unwrap_or(0)
    }

    fn tell(&mut self, piece: Piece<'_>, now: Nanos) {
        let (place, from, bytes, flags) = match piece {
            Piece::Place { place, from, bytes } => (place, from, bytes, 0),
            Piece::End { bytes, whole } => (0, 0, bytes, END | if whole { WHOLE } else { 0 }),
            Piece::Data(_) => return,
        };
        let taken = now.0;
        let told = self.pieces.push(&camera::FramePiece { taken, place, from, bytes, flags });
        if flags & END == 0 {
            let bit = 1 << (place % PLACES);
            // Nobody gives back a place that a full pipe dropped.
            if told.is_ok() { self.told |= bit } else { self.back |= bit }
        }
        self.clients.ring(1);
    }
}

/// Returns the largest picture that is not too large; what the camera sends by itself first among
/// equals.
fn mode(found: &Found<'_>) -> Option<Mode> {
    let pixels = |mode: &Mode| u32::from(mode.width) * u32::from(mode.height);
    let fitting = modes(&found.set).filter(|mode| pixels(mode) <= CAMERA_PIXELS);
    fitting.reduce(|best, mode| if pixels(&mode) > pixels(&best) { mode } else { best })
}

impl<P: Platform> Kind<P> for Video<P> {
    type Class = Camera;

    const NAME: &'static str = "a camera";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 2 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Camera> {
        let mut camera = Camera::find(&found.set, mode(found)?)?;
        camera.share();
        Some(camera)
    }

    fn hear(&mut self, event: CameraEvent<'_>, now: Nanos) -> Next {
        self.frames.hear(&event, now);
        match event {
            CameraEvent::Started { frame_bytes, interval_bytes, .. }
                if interval_bytes as usize <= PLACE =>
            {
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
        (self.back, self.look_at) = (0, Nanos::FOREVER);
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
