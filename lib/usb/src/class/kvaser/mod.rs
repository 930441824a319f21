//! USB-CAN interfaces of the Kvaser "hydra" family: up to five channels over one bulk pair.
//!
//! [`Kvaser`] probes the device, then opens and closes channels, sends frames and tells what comes.
//! Each channel has as many slots for frames on their way as the device grants; a slot is free
//! again when the frame was acknowledged on the CAN bus. Losses are reported: the device flags the
//! first frame after an overrun.
//!
//! | file | topic |
//! |---|---|
//! | `command.rs`, `stream.rs` | bytes of commands; commands out of transfers that cut them |
//! | `probe.rs`, `personality.rs` | what the device is; its clocks and limits |
//! | `channel.rs` | phases and slots of a channel |
//! | `transmit.rs`, `receive.rs` | frames to commands; commands to events |
//!
//! Not here: CAN FD, and waiting for a slot (the caller queues by its own priorities).

mod channel;
mod command;
mod personality;
mod probe;
mod receive;
mod stream;
mod transmit;

pub use personality::{BusParameters, Personality};
pub use probe::InterfaceIdentity;

use super::can::{
    CloseCause, DiscardCounts, InterfaceEvent, InterfaceFailure, Mode, ProbeStep, Refused,
    SLOTS_MAX, WrappingClock,
};
use super::flow::{Inlet, Messages};
use super::{Class, Completion, Request};
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, DeviceDescriptor};
use channel::{Channel, Phase};
pub use command::SENT_MAX;
use command::{Command, number};
use diapason_abi::Nanos;
use diapason_can::adapters;
use probe::{Next, Probe};
use stream::Stream;

/// Most channels of a device.
pub const CHANNELS_MAX: usize = 5;
/// The vendor id of the makers.
pub const VENDOR: u16 = adapters::KVASER_VENDOR;
/// First and last product number of the family.
pub const PRODUCTS: (u16, u16) = adapters::KVASER_PRODUCTS;
/// Bytes of a transfer from the device, and how many are kept pending. A transfer is one packet:
/// what waits in the device is taken at once, and a request for what comes next is there.
pub const TRANSFER: (usize, usize) = (512, 28);
/// The bus guarantees the time of so many transfers in a row.
pub const RUN: usize = 6;
/// Bytes of a message in a transfer that is a frame.
pub const MESSAGE: usize = 64;
/// Where programs may open pipes while the system runs, the bus guarantees the time of a transfer,
/// and never a shorter one: two slots of a bus of high speed.
pub const GUARANTEED: Nanos = Nanos::from_micros(250);
/// Interrupts for what it sends need not come more often: together with the transfers pending that
/// makes batches, and what comes meanwhile stays in the device, which has room for 64 frames, 9 ms
/// of 7,000 frames a second.
pub const MODERATION: Nanos = Nanos::from_millis(1);
/// The device has so long for an answer.
pub const ANSWER_TIME: Nanos = Nanos::from_secs(1);
/// Commands to the device that fit into its queue.
const ROOM: usize = 64;
/// Slots that are kept for commands that are no frames: each channel needs at most four at a
/// time, and the probing one.
const RESERVED: usize = 24;
/// Transfers to the device pending at once. Some controllers take no more than a ring segment
/// holds.
const DEPTH: usize = 16;
/// Frames to the device that are taken before they are sent, and those that are being sent.
pub const SENDING: (usize, usize) = (ROOM - RESERVED, DEPTH);
/// Frames of a channel between [`Kvaser::send`] and their acknowledgement, at most.
pub const HELD: usize = SLOTS_MAX as usize;
/// The interface's endpoints: nothing else is used.
const BULK_IN: u8 = 0x82;
const BULK_OUT: u8 = 0x02;

/// The driver of one device.
#[derive(Clone, Debug)]
pub struct Kvaser {
    inlet: Inlet,
    queue: Messages<ROOM, SENT_MAX>,
    stream: Stream,
    probe: Probe,
    channels: [Channel; CHANNELS_MAX],
    state: State,
    transaction: u8,
    clock: WrappingClock<48>,
    counts: DiscardCounts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Probing,
    Ready,
    Failed,
}

impl Kvaser {
    /// Returns whether it is one of these devices, with the endpoints they have.
    #[must_use]
    pub fn fits(device: &DeviceDescriptor, configuration: &Configuration<'_>) -> bool {
        let (first, last) = PRODUCTS;
        let named = device.vendor == VENDOR && (first..=last).contains(&device.product);
        let Some(interface) = configuration.interface(0, 0) else { return false };
        let has =
            |address, kind| interface.endpoints().any(|e| e.address == address && e.kind() == kind);
        named && has(BULK_IN, EndpointKind::BulkIn) && has(BULK_OUT, EndpointKind::BulkOut)
    }

    /// Begins to probe. `extended`: tell the device that frames may travel as extended commands; it
    /// decides.
    #[must_use]
    pub fn new(now: Nanos, extended: bool) -> Kvaser {
        let (length, depth) = TRANSFER;
        let mut new = Kvaser {
            inlet: Inlet::new(BULK_IN, length, depth),
            queue: Messages::new(BULK_OUT, DEPTH),
            stream: Stream::new(),
            probe: Probe::new(extended),
            channels: [Channel::NEW; CHANNELS_MAX],
            state: State::Probing,
            transaction: 1,
            clock: WrappingClock::default(),
            counts: DiscardCounts::default(),
        };
        let first = new.probe.ask(ProbeStep::Map(0), now + ANSWER_TIME, 0);
        new.queue.push(&[first.bytes()]);
        new
    }

    /// Returns the identity of the interface once it is ready.
    #[must_use]
    pub fn identity(&self) -> Option<InterfaceIdentity> {
        (self.state == State::Ready).then_some(self.probe.identity)
    }

    /// Returns the counts of data that was not used.
    #[must_use]
    pub const fn counts(&self) -> DiscardCounts {
        self.counts
    }

    /// Frames of a channel that are not acknowledged.
    #[must_use]
    pub fn outstanding(&self, channel: u8) -> u32 {
        self.channels.get(usize::from(channel)).map_or(0, |it| it.slots.outstanding())
    }

    /// Opens a channel; [`InterfaceEvent::Opened`] or [`InterfaceEvent::Failed`] follows.
    ///
    /// # Errors
    /// The caller's wish cannot be done.
    pub fn open(
        &mut self,
        now: Nanos,
        channel: u8,
        wanted: BusParameters,
        mode: Mode,
    ) -> Result<(), Refused> {
        let (index, entity) = self.find(channel)?;
        if self.channels[index].phase != Phase::Closed {
            return Err(Refused::WrongPhase);
        }
        if !self.probe.identity.personality.allows(&wanted) {
            return Err(Refused::Parameters);
        }
        if self.queue.room() < 2 {
            return Err(Refused::Busy);
        }
        self.say(number::SET_BUSPARAMS, entity, &wanted.encode());
        self.say(number::GET_BUSPARAMS, entity, &[]);
        let deadline = now + ANSWER_TIME;
        self.channels[index].enter(Phase::Setting { deadline, wanted, mode });
        Ok(())
    }

    /// Closes a channel; [`InterfaceEvent::Closed`] follows, after a time-out at the latest.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, now: Nanos, channel: u8) -> Result<(), Refused> {
        let (index, entity) = self.find(channel)?;
        if self.channels[index].phase != Phase::Open {
            return Err(Refused::WrongPhase);
        }
        if self.queue.room() < 1 {
            return Err(Refused::Busy);
        }
        self.say(number::FLUSH, entity, &[]);
        let deadline = now + ANSWER_TIME;
        self.channels[index].enter(Phase::Flushing { deadline, cause: CloseCause::Asked });
        Ok(())
    }

    /// Asks how a controller is; [`InterfaceEvent::ChipState`] follows.
    ///
    /// # Errors
    /// There is no such channel, or no room.
    pub fn ask_chip_state(&mut self, channel: u8) -> Result<(), Refused> {
        let (_, entity) = self.find(channel)?;
        if self.queue.room() <= RESERVED {
            return Err(Refused::Busy);
        }
        self.say(number::GET_CHIP_STATE, entity, &[]);
        Ok(())
    }

    /// Returns a channel's place and entity.
    fn find(&self, channel: u8) -> Result<(usize, u8), Refused> {
        if self.state != State::Ready {
            return Err(Refused::NotReady);
        }
        let index = usize::from(channel);
        let known = self.channels.get(index).and_then(|channel| channel.entity);
        known.map(|entity| (index, entity)).ok_or(Refused::NoSuchChannel)
    }

    /// Queues an ordinary command. If there is no room the answer does not come, and a client that
    /// waits for it learns that from the time.
    fn say(&mut self, number: u8, to: u8, body: &[u8]) {
        let transaction = self.transaction();
        let command = Command::new(number, to, transaction).put(4, body);
        self.queue.push(&[command.bytes()]);
    }

    /// Returns the next number of an ordinary command, 1 to 255.
    fn transaction(&mut self) -> u16 {
        self.transaction = self.transaction.checked_add(1).unwrap_or(1);
        self.transaction.into()
    }

    fn fail(&mut self, reason: InterfaceFailure, tell: &mut dyn FnMut(InterfaceEvent)) {
        if self.state != State::Failed {
            self.state = State::Failed;
            self.probe.end();
            self.channels.iter_mut().for_each(|channel| channel.enter(Phase::Closed));
            tell(InterfaceEvent::Failed { channel: None, reason });
        }
    }

    /// Takes the bytes of a transfer from the device.
    fn received(&mut self, now: Nanos, bytes: &[u8], tell: &mut dyn FnMut(InterfaceEvent)) {
        let mut rest = bytes;
        while let Some((command, behind)) = self.stream.whole(rest) {
            self.command(now, command, tell);
            rest = behind;
        }
        if rest.is_empty() {
            return;
        }
        let mut stream = self.stream;
        let sane = stream.feed(rest, |command| self.command(now, command, tell));
        self.stream = stream;
        self.counts.broken_streams += u64::from(!sane);
    }

    /// Takes the next step after an answer to a question of the probe.
    fn proceed(&mut self, next: Next, tell: &mut dyn FnMut(InterfaceEvent)) {
        match next {
            Next::Wait => self.counts.skipped += 1,
            Next::Fail(reason) => self.fail(reason, tell),
            Next::Ask(command) => {
                self.queue.push(&[command.bytes()]);
            }
            Next::Ready(entities) => {
                self.probe.end();
                self.state = State::Ready;
                let there = usize::from(self.probe.identity.channels);
                for (channel, entity) in self.channels.iter_mut().zip(entities).take(there) {
                    channel.entity = Some(entity);
                }
                let InterfaceIdentity { channels, serial, .. } = self.probe.identity;
                tell(InterfaceEvent::Ready { channels, serial: Some(serial) });
            }
        }
    }
}

impl Class for Kvaser {
    type Event<'a> = InterfaceEvent;

    fn request(&mut self, _: Nanos) -> Option<Request<'_>> {
        if self.state == State::Failed {
            return None;
        }
        self.inlet.request().or_else(|| self.queue.request())
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(InterfaceEvent)) {
        match done.endpoint {
            BULK_OUT => {
                self.queue.complete(done.result);
            }
            BULK_IN => match self.inlet.pipe.end(done.result) {
                Some(bytes) => self.received(now, bytes, tell),
                None => self.stream.restart(),
            },
            _ => {}
        }
        if self.inlet.pipe.is_dead() || self.queue.pipe.is_dead() {
            self.fail(InterfaceFailure::Pipe, tell);
        }
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        let works = endpoint == BULK_IN && self.state != State::Failed;
        if works { self.inlet.renew() } else { None }
    }

    fn next_wake(&self) -> Nanos {
        let channels = self.channels.iter().map(Channel::deadline);
        channels.fold(self.probe.deadline(), Nanos::min)
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(InterfaceEvent)) {
        if now >= self.probe.deadline() {
            self.fail(InterfaceFailure::NoAnswer(self.probe.step()), tell);
        }
        for index in 0..CHANNELS_MAX {
            if now >= self.channels[index].deadline() {
                self.late(now, index, tell);
            }
        }
    }
}
