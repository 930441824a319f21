//! Cameras over isochronous endpoints (UVC): a mode is negotiated, a setting with enough bandwidth
//! is chosen, and payloads become frames whose losses are counted.
//!
//! Frames are told in pieces as they come, then their end and whether they are whole. A mode that
//! does not fit the bus is told with what it needs: the caller tries a smaller one. With memory
//! that is shared with a client, pieces stay in places that the client lends ([`Camera::lend`]).
//!
//! Not here: still images, controls of lens and picture, bulk cameras, decompression.

mod assemble;
mod negotiate;

pub use assemble::{PictureCounts, Piece};
pub use negotiate::{Mode, modes};

use super::flow::Errand;
use super::{Class, Completion, Landed, Request, TransferFault};
use crate::Setup;
use crate::descriptor::{Configuration, EndpointDescriptor};
use assemble::Assembler;
use diapason_abi::Nanos;
use diapason_bus::Transfer;
use negotiate::{BLOCK_MAX, Block, block_bytes};

const STREAMING: [u8; 2] = [14, 2];
/// Transfers kept pending: intervals that may pass before the driver must run again.
pub const DEPTH: usize = 16;
/// Settings that are considered.
const SETTINGS_MAX: usize = 16;
/// Most places that can be lent.
pub const PLACES: u32 = 128;
const SET_CURRENT: u8 = 1;
const GET_CURRENT: u8 = 0x81;
const PROBE: u16 = 1 << 8;
const COMMIT: u16 = 2 << 8;

/// An event of the camera.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CameraEvent<'a> {
    /// Frames come from now on.
    Started {
        /// Most bytes of a frame.
        frame_bytes: u32,
        /// Bytes reserved in each interval.
        interval_bytes: u32,
        /// Time from one frame to the next, as the camera agreed to; zero if it did not say.
        frame_time: Nanos,
        /// Most bytes that the camera sends in an interval, its head included.
        payload: u32,
        /// Ticks of the camera's clock in a second; zero if it did not say.
        clock: u32,
    },
    /// A piece of a frame, or its end.
    Piece(Piece<'a>),
    /// No setting has this much in an interval, or the bus has no room for it.
    NoBandwidth {
        /// Bytes needed in each interval.
        needed: u32,
    },
    /// Frames come no more, as asked.
    Stopped,
    /// The camera does not do this mode, or does not work.
    Failed,
}

/// A setting with an isochronous endpoint to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Setting {
    alternate: u8,
    endpoint: u8,
    bytes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Probe,
    Answer,
    Commit,
    Choose(Setting),
    Streaming(Setting),
    /// Transfers are to be cancelled, then setting 0 is chosen.
    Stop(Setting),
    Stopping,
    /// As asked: it may stream again.
    Stopped,
    Ended,
}

/// Returns the settings of the first camera of a configuration in which it can stream, each by its
/// number and with its isochronous endpoint to the host. [`Camera`] considers these.
pub fn settings<'a>(
    configuration: &Configuration<'a>,
) -> impl Iterator<Item = (u8, EndpointDescriptor)> + use<'a> {
    let first = configuration.interfaces().find(|i| i.class[..2] == STREAMING);
    let number = first.map(|interface| interface.number);
    let all = configuration.interfaces().filter(move |i| Some(i.number) == number);
    let usable = all.filter_map(|interface| {
        let mut endpoints = interface.endpoints();
        let usable = |e: &EndpointDescriptor| {
            e.transfer == Transfer::Isochronous && e.is_in() && e.packet > 0
        };
        endpoints.find(usable).map(|endpoint| (interface.alternate, endpoint))
    });
    usable.take(SETTINGS_MAX)
}

/// The driver of one camera.
#[derive(Clone, Debug)]
pub struct Camera {
    interface: u8,
    block_bytes: usize,
    mode: Mode,
    settings: [Option<Setting>; SETTINGS_MAX],
    step: Step,
    block: Block,
    errand: Errand,
    assembler: Assembler,
    /// Least bytes of the setting to stream in, and most that the camera may need of it; 0: the
    /// camera decides.
    reserved: u32,
    pending: usize,
    cancelled: bool,
    /// Places in shared memory that are free, one bit each; `None` if there is no such memory.
    free: Option<u128>,
}

impl Camera {
    /// Returns the class for the first camera of the configuration, in this mode (see [`modes`]).
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, mode: Mode) -> Option<Camera> {
        let first = configuration.interfaces().find(|i| i.class[..2] == STREAMING)?;
        let mut settings = [None; SETTINGS_MAX];
        for (place, (alternate, end)) in settings.iter_mut().zip(self::settings(configuration)) {
            let (endpoint, bytes) = (end.address, end.interval_bytes);
            *place = Some(Setting { alternate, endpoint, bytes });
        }
        settings[0]?;
        Some(Camera {
            interface: first.number,
            block_bytes: block_bytes(configuration),
            mode,
            settings,
            step: Step::Probe,
            block: Block::new(&mode),
            errand: Errand::new(),
            assembler: Assembler::new(0, false),
            reserved: 0,
            pending: 0,
            cancelled: false,
            free: None,
        })
    }

    /// Bytes come to places in shared memory from now on; those below [`PLACES`] can be lent.
    pub fn share(&mut self) {
        self.free.get_or_insert(0);
    }

    /// A place in shared memory, large enough for an interval, may be written to.
    pub fn lend(&mut self, place: u32) {
        if let Some(free) = self.free.as_mut().filter(|_| place < PLACES) {
            *free |= 1 << place;
        }
    }

    /// A transfer of the stream is over. Returns whether its data is wanted.
    fn streamed(&mut self, endpoint: u8) -> bool {
        let before = self.pending;
        self.pending = before.saturating_sub(1);
        let wanted = matches!(self.step, Step::Streaming(setting) if setting.endpoint == endpoint);
        before > 0 && wanted
    }

    /// Returns the counts of lost data.
    #[must_use]
    pub const fn counts(&self) -> PictureCounts {
        self.assembler.counts()
    }

    /// Ends the stream; [`CameraEvent::Stopped`] follows.
    pub fn stop(&mut self) {
        if let Step::Streaming(setting) = self.step {
            (self.step, self.cancelled) = (Step::Stop(setting), false);
        }
    }

    /// Begins without a stream: a camera that still has one from before ends it. Only a camera that
    /// was asked for nothing yet can be told so. [`CameraEvent::Stopped`] follows.
    pub fn rest(&mut self) {
        if let (Step::Probe, [Some(setting), ..]) = (self.step, self.settings) {
            (self.step, self.cancelled) = (Step::Stop(setting), false);
        }
    }

    /// Streams in this mode after [`CameraEvent::Stopped`], in the smallest setting with so many
    /// bytes in an interval. A camera that needs more than this setting has is told by
    /// [`CameraEvent::NoBandwidth`]. Returns false if the camera has not stopped.
    pub fn resume(&mut self, mode: Mode, reserved: u32) -> bool {
        if self.step != Step::Stopped {
            return false;
        }
        (self.mode, self.block, self.step) = (mode, Block::new(&mode), Step::Probe);
        self.reserved = reserved;
        true
    }

    fn ask(&self, request: u8, value: u16) -> Setup {
        let kind = if request & 0x80 != 0 { 0xa1 } else { 0x21 };
        let (index, length) = (self.interface.into(), self.block_bytes as u16);
        Setup { kind, request, value, index, length }
    }

    fn begin(&mut self) {
        if !self.errand.is_idle() {
            return;
        }
        let bytes: [u8; BLOCK_MAX] = self.block.0;
        let data = &bytes[..self.block_bytes];
        match self.step {
            Step::Probe => self.errand.begin(self.ask(SET_CURRENT, PROBE), data),
            Step::Answer => self.errand.begin(self.ask(GET_CURRENT, PROBE), &[]),
            Step::Commit => self.errand.begin(self.ask(SET_CURRENT, COMMIT), data),
            Step::Choose(setting) => self.errand.choose(self.interface, setting.alternate),
            Step::Stop(_) if self.pending == 0 => {
                self.step = Step::Stopping;
                self.errand.choose(self.interface, 0);
            }
            Step::Streaming(_) | Step::Stop(_) | Step::Stopping | Step::Stopped | Step::Ended => {}
        }
    }

    /// Returns the smallest setting with as many bytes in an interval as are reserved, if these are
    /// enough; without a reservation the smallest that is.
    fn setting(&self, needed: u32) -> Option<Setting> {
        let least = if self.reserved == 0 { needed } else { self.reserved };
        let all = self.settings.iter().flatten().filter(|setting| setting.bytes >= least);
        all.min_by_key(|setting| setting.bytes).copied().filter(|it| it.bytes >= needed)
    }

    fn end(&mut self, event: CameraEvent<'_>, tell: &mut dyn FnMut(CameraEvent<'_>)) {
        self.step = Step::Ended;
        tell(event);
    }

    /// A control transfer ended.
    fn answered(
        &mut self,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(CameraEvent<'_>),
    ) {
        let needed = self.block.payload();
        match (self.step, result) {
            (Step::Ended | Step::Stopped, _) => {}
            (Step::Stopping, Ok(_)) => {
                self.step = Step::Stopped;
                tell(CameraEvent::Stopped);
            }
            (Step::Choose(_), Err(TransferFault::NoBandwidth)) => {
                self.end(CameraEvent::NoBandwidth { needed }, tell);
            }
            (_, Err(_)) => self.end(CameraEvent::Failed, tell),
            (Step::Probe, Ok(_)) => self.step = Step::Answer,
            (Step::Answer, Ok(bytes)) => match Block::decode(bytes, &self.mode) {
                Some(block) => (self.block, self.step) = (block, Step::Commit),
                None => self.end(CameraEvent::Failed, tell),
            },
            (Step::Commit, Ok(_)) => match self.setting(needed) {
                Some(setting) => self.step = Step::Choose(setting),
                None => self.end(CameraEvent::NoBandwidth { needed }, tell),
            },
            (Step::Choose(setting), Ok(_)) => {
                let frame_bytes = self.block.frame();
                self.step = Step::Streaming(setting);
                self.assembler = Assembler::new(frame_bytes, !self.mode.compressed);
                let (interval_bytes, frame_time) = (setting.bytes, self.block.frame_time());
                let (payload, clock) = (needed, self.block.clock());
                tell(CameraEvent::Started {
                    frame_bytes,
                    interval_bytes,
                    frame_time,
                    payload,
                    clock,
                });
            }
            (Step::Streaming(_) | Step::Stop(_), Ok(_)) => {}
        }
    }
}

/// Returns the next transfer of the stream, unless it needs a place and there is none.
fn stream(setting: Setting, free: &mut Option<u128>) -> Option<Request<'static>> {
    let Setting { endpoint, bytes, .. } = setting;
    let length = bytes as usize;
    match free {
        None => Some(Request::In { endpoint, length }),
        Some(0) => None,
        Some(free) => {
            let place = free.trailing_zeros();
            *free &= *free - 1;
            Some(Request::Shared { endpoint, place, length })
        }
    }
}

impl Class for Camera {
    type Event<'a> = CameraEvent<'a>;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        self.begin();
        if let Some(request) = self.errand.request(now) {
            return Some(request);
        }
        match self.step {
            Step::Streaming(setting) if self.pending < DEPTH => {
                let request = stream(setting, &mut self.free);
                self.pending += usize::from(request.is_some());
                request
            }
            Step::Stop(Setting { endpoint, .. }) if !self.cancelled && self.pending > 0 => {
                self.cancelled = true;
                Some(Request::Cancel { endpoint })
            }
            _ => None,
        }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(CameraEvent<'_>)) {
        if done.endpoint == 0 {
            if let Some(result) = self.errand.end(done.result) {
                self.answered(result, tell);
            }
            return;
        }
        if !self.streamed(done.endpoint) {
            return;
        }
        match done.result {
            Ok(bytes) => self.assembler.take(bytes, &mut |piece| tell(CameraEvent::Piece(piece))),
            Err(TransferFault::Gone) => self.end(CameraEvent::Failed, tell),
            Err(_) => self.assembler.miss(),
        }
    }

    fn landed(&mut self, _: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(CameraEvent<'_>)) {
        let mut told = false;
        if self.streamed(done.endpoint) {
            match done.result {
                Ok(bytes) => {
                    let payload = (done.head, bytes);
                    told = self.assembler.take_shared(done.place, payload, &mut |piece| {
                        tell(CameraEvent::Piece(piece));
                    });
                }
                Err(TransferFault::Gone) => self.end(CameraEvent::Failed, tell),
                Err(_) => self.assembler.miss(),
            }
        }
        if !told {
            self.lend(done.place);
        }
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake()
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(CameraEvent<'_>)) {
        self.errand.wake(now);
    }
}
