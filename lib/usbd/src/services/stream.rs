//! Cameras that nobody watches: their bytes are counted and forgotten. A load for buses.
//!
//! Where a description has modes, a camera rests until its [`Order`] wants bytes of an interval. It
//! stops when the order wants others, and starts anew in the setting for these.
//!
//! Once a second it says `STREAM number intervals bytes whole broken`: intervals, bytes and frames
//! of that second.

use super::clients::Clients;
use super::frames::Frames;
use super::kind::{Kind, Next};
use crate::order::Order;
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::policy::MANAGED;
use crate::slots::Shape;
use crate::told::StreamTerms;
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_bus::Criticality;
use diapason_contract::stream::DATA;
use diapason_usb::class::uvc::{Camera, CameraEvent, Mode, Piece, modes};
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
    /// Bytes of an interval that the camera was told to have, 0 if it rests; `None` while it stops.
    going: Option<u32>,
    /// No interval of the stream has come yet.
    is_first: bool,
    /// The pictures of the camera.
    pictures: Vec<Mode>,
    /// When a camera that is to have another number of bytes is told so again.
    tell_at: Nanos,
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
        let frames = Frames::of_stream(number, is_paced);
        let (going, pictures, tell_at) = (None, Vec::new(), Nanos::FOREVER);
        Ok(Stream {
            number,
            terms,
            clients,
            report_at,
            counts,
            frames,
            back,
            refused,
            going,
            is_first: false,
            pictures,
            tell_at,
        })
    }

    /// Tells a camera what the order wants, if it is at something else.
    fn obey(&mut self, class: &mut Camera, now: Nanos) {
        let Some(order) = &self.terms.order else { return };
        let wanted = order.wanted();
        if self.going == Some(wanted) {
            self.tell_at = Nanos::FOREVER;
            return;
        }
        // A camera that is about to start cannot be stopped before it has started.
        self.tell_at = now + MANAGED;
        if self.going != Some(0) {
            class.stop();
            return;
        }
        if let Some(picture) = largest(&self.pictures, wanted) {
            order.hold(wanted);
            if class.resume(picture, wanted) {
                self.going = Some(wanted);
            }
        }
    }

    /// Notes that the first interval of a stream has come.
    fn note_first(&mut self, now: Nanos) {
        if let (Some(order), Some(bytes)) = (&self.terms.order, self.going)
            && core::mem::take(&mut self.is_first)
        {
            order.runs(bytes, now);
        }
    }

    /// Notes that the camera has stopped and given its part of the bus back.
    fn note_stop(&mut self, now: Nanos) {
        self.frames.end(now);
        (self.report_at, self.back, self.going) = (Nanos::FOREVER, 0, Some(0));
        if let Some(order) = &self.terms.order {
            order.hold(0);
        }
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

/// Returns the largest picture whose camera needs at most so many bytes in an interval of 125 us at
/// its usual rate; the smallest if all need more, which the camera then refuses.
fn largest(pictures: &[Mode], bytes: u32) -> Option<Mode> {
    let pixels = |mode: &&Mode| u32::from(mode.width) * u32::from(mode.height);
    let fitting =
        pictures.iter().filter(|mode| mode.interval_bytes() <= bytes.into()).max_by_key(pixels);
    fitting.or_else(|| pictures.iter().min_by_key(|mode| mode.interval_bytes())).copied()
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
        let mut camera = camera(&found.set).filter(|_| !self.refused)?;
        if let Some(order) = &self.terms.order {
            camera.rest();
            order.comes();
        }
        Some(camera)
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        camera(&found.set).is_some()
    }

    fn welcome(&mut self, found: &Found<'_>) {
        self.refused = false;
        self.pictures = modes(&found.set).collect();
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
                (self.report_at, self.counts) = (now + REPORT, Counts::default());
                self.is_first = true;
            }
            CameraEvent::Piece(piece) => {
                self.count(piece);
                self.note_first(now);
            }
            CameraEvent::Stopped if self.terms.order.is_some() => self.note_stop(now),
            event => {
                log!(P, "stream {number}: no room for it: {event:?}");
                self.refused = self.terms.order.is_none();
                self.terms.order.iter().for_each(Order::fails);
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
        self.obey(class, now);
    }

    fn forget(&mut self, now: Nanos) {
        let wanted = self.terms.order.as_ref().map(Order::wanted);
        // A stream that an order stops, or starts anew, was to end.
        match wanted.is_none() || self.going == wanted {
            true => self.frames.break_off(now),
            false => self.frames.end(now),
        }
        (self.report_at, self.back) = (Nanos::FOREVER, 0);
        (self.going, self.tell_at) = (None, Nanos::FOREVER);
        self.terms.order.iter().for_each(Order::leaves);
    }

    fn next_wake(&self) -> Nanos {
        // A camera that has nothing to be told may have to be told something by now.
        let wanted = self.terms.order.as_ref().map(Order::wanted);
        let is_behind = self.going.is_some() && wanted.is_some() && self.going != wanted;
        let tell_at =
            if is_behind && self.tell_at == Nanos::FOREVER { Nanos::ZERO } else { self.tell_at };
        self.report_at.min(tell_at)
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
