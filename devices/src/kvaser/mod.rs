//! The USB-CAN interface with five channels.
//!
//! The protocol is Kvaser's "hydra", as an unmodified Linux driver speaks it. Behind each channel
//! is a bus that is right to the bit ([`CanBus`]); two channels, of one interface or of two, may
//! share one. Frames carry the time at which the bus delivered them.

mod channel;
mod command;
mod outbox;
mod passing;
mod personality;
mod requests;

pub use command::{
    CommandHeader, CommandStream, HostCommand, ImpossibleLength, KvaserCommand, number,
};
pub use outbox::{BUFFER, FRAMES};
pub use passing::passing;
pub use personality::ControllerKind;

use crate::can::{CanBus, WakeTimes};
use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard};
use channel::{Channel, Failed};
use diapason_abi::Nanos;
use diapason_can::bus::{BusEvent, EventKind};
use diapason_usb::descriptor::{self, build};
use diapason_usb::{Setup, Speed};
use outbox::Outbox;

/// Frames go to the host here.
pub const IN: u8 = 0x82;
/// Commands come from the host here.
pub const OUT: u8 = 0x02;
pub const CHANNELS: usize = 5;
/// Replies of a request beyond acknowledgements that may wait before commands are held off.
const REPLIES: usize = 64;
/// Addresses of entities whose upper and lower bits are both in use.
const FIRST_CHANNEL: u8 = 0x13;
const DEBUGGER: u8 = 0x2a;
const ROUTER: u8 = 0x00;
const NOBODY: u8 = 0x3e;

/// The identity of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The interface's kind of controller.
    pub personality: ControllerKind,
    pub serial: u32,
    /// Frames that the host may have under way on each channel, at most 4,095.
    pub outstanding: u16,
}

impl Default for Identity {
    fn default() -> Identity {
        Identity { personality: ControllerKind::Kcan, serial: 1, outstanding: 128 }
    }
}

/// A model of the interface.
pub struct Hydra {
    identity: Identity,
    standard: Standard,
    channels: Vec<Channel>,
    /// The times at which something may happen at the channels.
    alarms: WakeTimes,
    stream: CommandStream,
    outbox: Outbox,
    /// Frames travel as extended commands.
    extended: bool,
    /// The time at which the interface was reset.
    epoch: Nanos,
    /// The time that the interface's clock shows after a reset.
    begins: Nanos,
}

impl Hydra {
    /// Returns an interface with a channel for each of `buses`, at most five; `None` is a channel
    /// with no cable in it.
    #[must_use]
    pub fn new(identity: Identity, buses: &[Option<CanBus>]) -> Hydra {
        let outstanding = identity.outstanding.clamp(1, 4_095);
        let identity = Identity { outstanding, ..identity };
        let entities = FIRST_CHANNEL..;
        let alarms = WakeTimes::default();
        let channels = entities.zip(buses.iter().take(CHANNELS)).map(|(entity, bus)| {
            let plug = bus.as_ref().map(|bus| bus.plug_among(outstanding.into(), &alarms));
            Channel::new(entity, plug, outstanding.into())
        });
        let channels: Vec<Channel> = channels.collect();
        Hydra {
            identity,
            standard: Standard::new(descriptors(identity)),
            outbox: Outbox::new(channels.len()),
            alarms,
            channels,
            stream: CommandStream::default(),
            extended: identity.personality.extended(),
            epoch: Nanos::ZERO,
            begins: Nanos::ZERO,
        }
    }

    /// The interface with a clock that shows this time after a reset, as if it had run before.
    #[must_use]
    pub const fn clock_begins(mut self, time: Nanos) -> Hydra {
        self.begins = time;
        self
    }

    /// An interface on the five buses of [`BUSY`](crate::can::BUSY), and the buses.
    #[must_use]
    pub fn busy(identity: Identity) -> (Hydra, Vec<CanBus>) {
        let buses: Vec<CanBus> = (0..CHANNELS).filter_map(CanBus::busy).collect();
        let plugged: Vec<Option<CanBus>> = buses.iter().cloned().map(Some).collect();
        (Hydra::new(identity, &plugged), buses)
    }

    /// Frames of a channel that were overwritten before the host fetched them.
    #[must_use]
    pub fn overruns(&self, channel: usize) -> u64 {
        self.outbox.overruns(channel)
    }

    /// Frames that wait in the receive buffer.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.outbox.frames()
    }

    fn ticks(&self, time: Nanos) -> u64 {
        self.identity.personality.ticks(time - self.epoch + self.begins)
    }

    fn next_event(&self) -> Nanos {
        self.alarms.first()
    }

    /// Fetches what happened on all buses until `time`, the earliest instant at which anything did:
    /// so it comes in order of time, and then of channels.
    fn collect(&mut self, time: Nanos) {
        for index in 0..self.channels.len() {
            while let Some(event) = self.poll(index, time) {
                self.on_event(event.time, index, event.kind);
            }
        }
    }

    fn poll(&self, index: usize, time: Nanos) -> Option<BusEvent> {
        self.channels.get(index)?.plug()?.poll_due(time)
    }

    fn on_event(&mut self, time: Nanos, index: usize, kind: EventKind) {
        let (ticks, extended) = (self.ticks(time), self.extended);
        let Some(channel) = self.channels.get_mut(index) else { return };
        match kind {
            EventKind::Received { .. } if let Some(turns_passive) = channel.stray() => {
                let message = channel.bus_error(index as u8, ticks, extended);
                self.outbox.frame(index, message);
                if turns_passive {
                    self.outbox.state(index, channel.state(0, ticks));
                }
            }
            EventKind::Received { frame } => {
                // The controllers of the model know no CAN FD, so that none of its frames comes.
                let Some(frame) = frame.classic() else { return };
                let message = channel.received(index as u8, &frame, ticks, extended);
                self.outbox.frame(index, message);
            }
            EventKind::Error { .. } => {
                let message = channel.bus_error(index as u8, ticks, extended);
                self.outbox.frame(index, message);
            }
            EventKind::Health { .. } => self.outbox.state(index, channel.state(0, ticks)),
            EventKind::Sent { ticket, .. } => {
                let ticket = ticket.and_then(|t| channel.acknowledge(t, ticks, Failed::No));
                ticket.into_iter().for_each(|message| self.outbox.reply(message));
            }
            EventKind::Dropped { ticket, error } => {
                let failed = error.map_or(Failed::Arbitration, Failed::Error);
                let message = channel.acknowledge(ticket, ticks, failed);
                message.into_iter().for_each(|message| self.outbox.reply(message));
            }
        }
    }

    /// Replies may pile up only as far as the host has frames under way, and a little more.
    fn has_room(&self) -> bool {
        let frames = usize::from(self.identity.outstanding) * self.channels.len();
        self.outbox.replies() < frames + REPLIES
    }
}

impl UsbDevice for Hydra {
    fn speed(&self) -> Speed {
        Speed::High
    }

    fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.standard.reset();
        for channel in &mut self.channels {
            channel.reset(now);
        }
        self.outbox = Outbox::new(self.channels.len());
        self.stream = CommandStream::default();
        self.extended = self.identity.personality.extended();
        self.epoch = now;
    }

    fn control(&mut self, now: Nanos, setup: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        self.standard.control(setup).unwrap_or(Err(Stall))
    }

    fn receive(&mut self, now: Nanos, endpoint: u8, packet: &[u8]) -> Handshake {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == OUT => {}
            EndpointStatus::Halted => return Handshake::Stall,
            _ => return Handshake::Error,
        }
        if !self.has_room() {
            return Handshake::Nak;
        }
        self.stream.push(packet);
        while let Some(command) = self.stream.pop() {
            match command {
                Ok(command) => self.perform(now, &command),
                Err(ImpossibleLength) => self.refuse_unreadable(now),
            }
        }
        Handshake::Ack
    }

    fn send(&mut self, now: Nanos, endpoint: u8, packet: &mut [u8]) -> Answer {
        self.advance(now);
        match self.standard.endpoint(endpoint) {
            EndpointStatus::Ready if endpoint == IN => self.outbox.send(packet),
            EndpointStatus::Halted => Answer::Stall,
            _ => Answer::Error,
        }
    }

    fn next_change(&self) -> Nanos {
        self.next_event()
    }

    fn advance(&mut self, now: Nanos) {
        let mut time = self.next_event();
        while time <= now {
            self.collect(time);
            time = self.next_event();
        }
    }
}

fn descriptors(identity: Identity) -> Descriptors {
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 0xff,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor: 0x0bfd,
        product: 0x0105,
        version: 0x0100,
        texts: [1, 2, 3],
        configurations: 1,
    };
    let pipes = build::Interface::new(0).class(0xff, 0, 0);
    let pipes = pipes.endpoint(build::bulk(IN, 512)).endpoint(build::bulk(OUT, 512));
    let strings = ["Kvaser AB", "Kvaser USBcan Pro 5xHS", &identity.serial.to_string()];
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: build::Configuration::new(1).with(pipes).bytes(Speed::High),
        high_speed: true,
        strings: strings.map(String::from).into(),
        ..Descriptors::default()
    }
}
