//! Cameras that nobody watches: their bytes are counted and forgotten. A load for buses.
//!
//! Once a second it says `STREAM number intervals bytes whole broken`: intervals, bytes and frames
//! of that second.

use super::clients::Clients;
use super::frames::Frames;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use crate::told::StreamTerms;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_bus::Criticality;
use diapason_contract::stream::DATA;
use diapason_usb::class::uvc::{Camera, CameraEvent, Piece, modes};
use diapason_usb::descriptor::Configuration;
use diapason_usb::xhci::EndpointPlan;

/// Bytes of a place: one block of the controller describes it.
const PLACE: usize = 65_536;
/// How often it says what came.
const REPORT: Nanos = Nanos::from_secs(1);

/// The data of a second.
#[derive(Default)]
struct Counts {
    intervals: u64,
    bytes: u64,
    whole: u64,
    broken: u64,
}

/// A camera, and what came of it.
pub(crate) struct Stream<P: Platform> {
    number: usize,
    terms: StreamTerms,
    clients: Clients<P::Memory>,
    report_at: Nanos,
    counts: Counts,
    frames: Frames<P>,
    /// Places that go back to the class.
    back: u128,
    /// There was no room for this camera. To ask the schedule again takes milliseconds in which
    /// nobody is served, so that is done for another one only.
    refused: bool,
}

impl<P: Platform> Stream<P> {
    /// Returns stream number `number`.
    ///
    /// # Errors
    /// The memory is not there.
    pub fn new(platform: &P, number: usize, terms: StreamTerms) -> Result<Stream<P>, Errno> {
        let clients = Clients::sharing(platform.memory(DATA[number % DATA.len()])?, PLACE);
        let (report_at, refused, back) = (Nanos::FOREVER, false, 0);
        let (counts, is_paced) = (Counts::default(), terms.stretch == 0);
        let frames = Frames::new(Some(number), is_paced);
        Ok(Stream { number, terms, clients, report_at, counts, frames, back, refused })
    }

    fn count(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Place { place, bytes, .. } => {
                self.counts.intervals += 1;
                self.counts.bytes += u64::from(bytes);
                self.back |= 1u128.checked_shl(place).unwrap_or(0);
            }
            Piece::End { whole, .. } => {
                self.counts.whole += u64::from(whole);
                self.counts.broken += u64::from(!whole);
            }
            Piece::Data(_) => {}
        }
    }
}

/// Returns the largest picture of a camera, if it is one.
fn camera(set: &Configuration<'_>) -> Option<Camera> {
    let mode = modes(set).max_by_key(|mode| {
        (u32::from(mode.width) * u32::from(mode.height), u32::MAX - mode.interval)
    })?;
    let mut camera = Camera::find(set, mode)?;
    camera.share();
    Some(camera)
}

impl<P: Platform> Kind<P> for Stream<P> {
    type Class = Camera;

    const NAME: &'static str = "a camera nobody watches";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 2 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Camera> {
        camera(&found.set).filter(|_| !self.refused)
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        camera(&found.set).is_some()
    }

    fn welcome(&mut self) {
        self.refused = false;
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        // Frames come by a setting that the class chooses.
        if usual.criticality != Criticality::High {
            return usual;
        }
        let mut plan = if self.terms.critical { usual } else { EndpointPlan::new(usual.endpoint) };
        plan.endpoint.interval = plan.endpoint.interval.saturating_add(self.terms.stretch);
        plan
    }

    fn hear(&mut self, event: CameraEvent<'_>, now: Nanos) -> Next {
        let number = self.number;
        self.frames.hear(&event, now);
        match event {
            CameraEvent::Started { interval_bytes, .. } if interval_bytes as usize <= PLACE => {
                log!(P, "stream {number}: {interval_bytes} bytes an interval");
                let places = self.clients.places().min(128) as u32;
                self.back = u128::MAX.checked_shr(128 - places).unwrap_or(0);
                self.report_at = now + REPORT;
            }
            CameraEvent::Piece(piece) => self.count(piece),
            event => {
                log!(P, "stream {number}: no room for it: {event:?}");
                self.refused = true;
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, class: Option<&mut Camera>, now: Nanos) {
        self.frames.look(class.as_deref(), now);
        if now >= self.report_at {
            let Counts { intervals, bytes, whole, broken } = core::mem::take(&mut self.counts);
            log!(P, "STREAM {} {intervals} {bytes} {whole} {broken}", self.number);
            self.report_at += REPORT;
        }
        let Some(class) = class else { return };
        while self.back != 0 {
            class.lend(self.back.trailing_zeros());
            self.back &= self.back - 1;
        }
    }

    fn forget(&mut self, now: Nanos) {
        self.frames.end(now);
        (self.report_at, self.back) = (Nanos::FOREVER, 0);
    }

    fn next_wake(&self) -> Nanos {
        self.report_at
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
