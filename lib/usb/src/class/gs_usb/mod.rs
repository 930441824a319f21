//! USB-CAN interfaces that speak `gs_usb`: candleLight and its relatives.
//!
//! [`GsUsb`] probes the device, then opens and closes channels, sends frames and tells what comes.
//! A transfer carries one frame. The device returns each frame when it is through. Its clock has
//! microseconds, and is read often enough to know its wraps.
//!
//! | file | topic |
//! |---|---|
//! | `wire.rs` | bytes of requests and frames |
//! | `channel.rs` | limits, phases and slots of a channel |
//! | `answer.rs` | answers to requests; frames to events |
//!
//! A channel is opened for classic frames, or for those of CAN FD, too. Transfers from the device
//! are as long as the frames that can come.
//!
//! Not here: devices without time stamps, which are refused, and the padding that controllers of
//! the LPC546xx need.

mod answer;
mod channel;
mod wire;

pub use channel::SLOTS;
pub use wire::{LONG_SENT, SENT};

use super::can::{
    BusRates, DiscardCounts, InterfaceEvent, InterfaceFailure, Mode, ProbeStep, Refused,
    WrappingClock,
};
use super::flow::{Errand, Inlet, Messages};
use super::{Class, Completion, Request};
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, DeviceDescriptor};
use channel::{Channel, Phase};
use diapason_abi::Nanos;
use diapason_can::{CanFrame, FdFrame, adapters};
use wire::{Ask, Shape, feature};

/// Most channels of a device that are served.
pub const CHANNELS_MAX: usize = 5;
/// Vendors and products of these devices.
pub const DEVICES: [(u16, u16); 5] = adapters::GS_USB;
/// Bytes of a transfer from the device, and how many are kept pending.
pub const TRANSFER: (usize, usize) = (64, 20);
/// Bytes of a transfer from a device with CAN FD: those of its longest frame.
pub const LONG_TRANSFER: usize = wire::LONG_STAMPED;
/// Bytes of a classic frame in such a transfer.
pub const MESSAGE: usize = 24;
/// Frames to the device that fit into its queue, and transfers to it pending at once.
pub const SENDING: (usize, usize) = (40, 8);
/// The clock is read again after this time.
const CLOCK_READ: Nanos = Nanos::from_secs(1_200);

/// Returns the time that microseconds of the device's clock are.
const fn time_of(micros: u64) -> Nanos {
    Nanos(micros.saturating_mul(1_000))
}

/// The driver of one device.
#[derive(Clone, Debug)]
pub struct GsUsb {
    inlet: Inlet,
    queue: Messages<{ SENDING.0 }, LONG_SENT>,
    /// Channels may be opened with CAN FD.
    fd: bool,
    errand: Errand,
    /// The request that the errand carries.
    ask: Option<Ask>,
    stage: Stage,
    channels: [Channel; CHANNELS_MAX],
    there: usize,
    clock: WrappingClock<32>,
    /// The time at which the clock is read again.
    read_at: Nanos,
    counts: DiscardCounts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// This is asked next, or being asked.
    Probing(Ask),
    Ready,
    Failed,
}

/// Returns the addresses of the first bulk endpoints, from the device and to it.
fn endpoints(configuration: &Configuration<'_>) -> Option<(u8, u8)> {
    let interface = configuration.interface(0, 0)?;
    let first = |kind| interface.endpoints().find(|end| end.kind() == kind).map(|end| end.address);
    Some((first(EndpointKind::BulkIn)?, first(EndpointKind::BulkOut)?))
}

impl GsUsb {
    /// Begins to probe a device, if it is one of these and has the endpoints they have. Its
    /// channels can be opened with CAN FD only if `fd` says so.
    #[must_use]
    pub fn find(
        device: &DeviceDescriptor,
        configuration: &Configuration<'_>,
        fd: bool,
    ) -> Option<GsUsb> {
        let (inward, outward) = endpoints(configuration)?;
        let known = DEVICES.contains(&(device.vendor, device.product));
        let (short, depth) = TRANSFER;
        let length = if fd { LONG_TRANSFER } else { short };
        known.then(|| GsUsb {
            inlet: Inlet::new(inward, length, depth),
            queue: Messages::new(outward, SENDING.1),
            fd,
            errand: Errand::new(),
            ask: None,
            stage: Stage::Probing(Ask::Format),
            channels: [Channel::NEW; CHANNELS_MAX],
            there: 0,
            clock: WrappingClock::default(),
            read_at: Nanos::FOREVER,
            counts: DiscardCounts::default(),
        })
    }

    /// Returns whether the device is probed: its channels can be opened.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Returns the counts of data that was not used.
    #[must_use]
    pub const fn counts(&self) -> DiscardCounts {
        self.counts
    }

    /// Returns how many frames of a channel are not through.
    #[must_use]
    pub fn outstanding(&self, channel: u8) -> u32 {
        self.channels.get(usize::from(channel)).map_or(0, |it| it.slots.outstanding())
    }

    /// Opens a channel at these rates. [`InterfaceEvent::Opened`] or [`InterfaceEvent::Failed`]
    /// follows.
    ///
    /// # Errors
    /// The caller's wish cannot be done.
    pub fn open(
        &mut self,
        channel: u8,
        rates: impl Into<BusRates>,
        mode: Mode,
    ) -> Result<(), Refused> {
        let (rates, fd) = (rates.into(), self.fd);
        let known = self.channel(channel)?;
        if known.phase != Phase::Closed {
            return Err(Refused::WrongPhase);
        }
        if rates.data.is_some() && !(fd && known.has_fd()) {
            return Err(Refused::NoFd);
        }
        let (timing, data) = known.timings(&rates).map_err(|_| Refused::Parameters)?;
        known.enter(Phase::Setting { timing, data, mode });
        Ok(())
    }

    /// Closes a channel; [`InterfaceEvent::Closed`] follows, after a time-out at the latest.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, channel: u8) -> Result<(), Refused> {
        let known = self.channel(channel)?;
        if !known.is_open() {
            return Err(Refused::WrongPhase);
        }
        known.enter(Phase::Stopping { cause: super::can::CloseCause::Asked });
        Ok(())
    }

    /// Asks how a controller is; [`InterfaceEvent::ChipState`] follows.
    ///
    /// # Errors
    /// The device has no such channel.
    pub fn ask_chip_state(&mut self, channel: u8) -> Result<(), Refused> {
        self.channel(channel)?.asked = true;
        Ok(())
    }

    /// Returns whether [`GsUsb::send`] would take a frame of this channel now.
    #[must_use]
    pub fn takes(&self, channel: u8) -> bool {
        let known = self.channels[..self.there].get(usize::from(channel));
        known.is_some_and(|known| {
            known.is_open() && known.slots.outstanding() < SLOTS.into() && self.queue.room() > 0
        })
    }

    /// Sends a frame; [`InterfaceEvent::Acknowledged`] with the same slot follows when it is
    /// through.
    ///
    /// # Errors
    /// The channel is not open, or there is no slot: nothing was queued.
    pub fn send(&mut self, channel: u8, frame: &CanFrame) -> Result<u8, Refused> {
        self.enqueue(channel, &Shape::from(frame))
    }

    /// Sends a frame of CAN FD, like [`GsUsb::send`].
    ///
    /// # Errors
    /// The channel is not open for such frames, or there is no slot: nothing was queued.
    pub fn send_fd(&mut self, channel: u8, frame: &FdFrame) -> Result<u8, Refused> {
        self.enqueue(channel, &Shape::from(frame))
    }

    fn enqueue(&mut self, channel: u8, shape: &Shape<'_>) -> Result<u8, Refused> {
        let room = self.queue.room();
        let known = self.channel(channel)?;
        let Phase::Open { fd } = known.phase else { return Err(Refused::WrongPhase) };
        if shape.is_fd() && !fd {
            return Err(Refused::NoFd);
        }
        let slot = if room > 0 { known.slots.take(SLOTS) } else { None };
        let slot = slot.ok_or(Refused::Busy)?;
        let echo = u32::from(known.life) << 8 | u32::from(slot);
        let bytes = shape.sent(echo, channel);
        // While a channel has CAN FD, each frame to it has the length of the longest.
        self.queue.push(&[bytes.get(..if fd { LONG_SENT } else { SENT }).unwrap_or(&bytes)]);
        Ok(slot)
    }

    fn channel(&mut self, channel: u8) -> Result<&mut Channel, Refused> {
        if self.stage != Stage::Ready {
            return Err(Refused::NotReady);
        }
        let there = &mut self.channels[..self.there];
        there.get_mut(usize::from(channel)).ok_or(Refused::NoSuchChannel)
    }

    fn fail(&mut self, reason: InterfaceFailure, tell: &mut dyn FnMut(InterfaceEvent)) {
        if self.stage != Stage::Failed {
            self.stage = Stage::Failed;
            self.read_at = Nanos::FOREVER;
            self.channels.iter_mut().for_each(|channel| channel.enter(Phase::Closed));
            tell(InterfaceEvent::Failed { channel: None, reason });
        }
    }

    /// Returns the request that is due.
    fn due(&self, now: Nanos) -> Option<Ask> {
        match self.stage {
            Stage::Probing(ask) => Some(ask),
            Stage::Failed => None,
            Stage::Ready => {
                let mut channels = (0..).zip(&self.channels[..self.there]);
                let ask = channels.find_map(|(number, channel)| channel.ask(number));
                ask.or((now >= self.read_at).then_some(Ask::Time))
            }
        }
    }

    /// Begins the request that is due, unless one is under way.
    fn begin_due(&mut self, now: Nanos) {
        if self.errand.is_idle()
            && let Some(ask) = self.due(now)
        {
            self.begin(ask);
        }
    }

    fn begin(&mut self, ask: Ask) {
        let mode = |mode, flags| wire::words([mode, flags]);
        let phase = |channel: u8| self.channels.get(usize::from(channel)).map(|it| it.phase);
        let (timing, switch);
        let data: &[[u8; 4]] = match ask {
            Ask::Format => &[wire::LITTLE_ENDIAN],
            Ask::Timing(channel) => match phase(channel) {
                Some(Phase::Setting { timing: set, .. }) => {
                    timing = wire::timing(&set);
                    &timing
                }
                _ => &[],
            },
            Ask::DataTiming(channel) => match phase(channel) {
                Some(Phase::SettingData { data, .. }) => {
                    timing = wire::timing(&data);
                    &timing
                }
                _ => &[],
            },
            Ask::Start(channel) => {
                let started = phase(channel).map_or(0, Phase::features);
                switch = mode(1, feature::TIMESTAMP | started);
                &switch
            }
            Ask::Stop(_) => {
                switch = mode(0, 0);
                &switch
            }
            Ask::Config | Ask::Limits(_) | Ask::DataLimits(_) | Ask::State(_) | Ask::Time => &[],
        };
        let data = data.as_flattened();
        self.errand.begin(ask.setup(data.len()), data);
        self.ask = Some(ask);
    }

    /// Returns the question of the probe that is open.
    fn step(&self) -> ProbeStep {
        match self.ask {
            Some(Ask::Format) => ProbeStep::Format,
            Some(Ask::Config) => ProbeStep::Card,
            Some(Ask::Limits(channel)) => ProbeStep::Limits(channel),
            Some(Ask::DataLimits(channel)) => ProbeStep::DataLimits(channel),
            _ => ProbeStep::Done,
        }
    }
}

impl Class for GsUsb {
    type Event<'a> = InterfaceEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.stage == Stage::Ready
            && let Some(request) = self.inlet.request()
        {
            return Some(request);
        }
        self.begin_due(now);
        let request = self.errand.request(now);
        if request.is_some() || self.stage != Stage::Ready {
            return request;
        }
        self.queue.request()
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(InterfaceEvent)) {
        let endpoint = done.endpoint;
        if endpoint == 0 {
            if let Some(result) = self.errand.end(done.result)
                && let Some(ask) = self.ask
            {
                self.answered(now, ask, result, tell);
                self.ask = None;
            }
        } else if endpoint == self.inlet.pipe.endpoint() {
            if let Some(bytes) = self.inlet.pipe.end(done.result) {
                self.came(bytes, tell);
            }
        } else if endpoint == self.queue.pipe.endpoint() {
            self.queue.complete(done.result);
        }
        if self.inlet.pipe.is_dead() || self.queue.pipe.is_dead() {
            self.fail(InterfaceFailure::Pipe, tell);
        }
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        let works = endpoint == self.inlet.pipe.endpoint() && self.stage == Stage::Ready;
        if works { self.inlet.renew() } else { None }
    }

    fn next_wake(&self) -> Nanos {
        if self.channels.iter().any(Channel::answers_itself) {
            return Nanos::ZERO;
        }
        let read_at = if self.errand.is_idle() { self.read_at } else { Nanos::FOREVER };
        self.errand.next_wake().min(read_at)
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(InterfaceEvent)) {
        self.errand.wake(now);
        self.begin_due(now);
        for number in 0..CHANNELS_MAX {
            if self.channels[number].answers_itself() {
                self.tell_state(number, time_of(self.clock.latest()), tell);
            }
        }
    }
}
