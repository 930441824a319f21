//! A USB-CAN interface that speaks `gs_usb`, the protocol of candleLight and its relatives, as an
//! unmodified Linux driver speaks it. It works at high speed, as the faster ones do. A channel on a
//! bus with CAN FD has such frames, too, if the host starts it so.
//!
//! Behind each channel is a bus that is right to the bit ([`CanBus`]). A transfer carries one
//! frame. A frame of the host comes back when it is through. A controller that was bus-off comes
//! back by itself. Request 14 tells how it is.

mod channel;
mod outbox;
mod wire;

pub use wire::{HostFrame, feature, passing, request};

use crate::can::{CanBus, WakeTimes};
use crate::descriptors::Descriptors;
use crate::device::{Answer, Handshake, Stall, UsbDevice};
use crate::standard::{EndpointStatus, Standard, reply};
use channel::Channel;
use diapason_abi::Nanos;
use diapason_can::WireError;
use diapason_can::bus::{BusEvent, EventKind};
use diapason_usb::descriptor::{self, build};
use diapason_usb::{Setup, Speed};
use outbox::Outbox;

/// Frames go to the host here.
pub const IN: u8 = 0x81;
/// Frames come from the host here.
pub const OUT: u8 = 0x02;
/// Channels of the largest interface there is a model of.
pub const CHANNELS: usize = 5;
/// Frames from buses that wait for the host, and frames of the host under way. Further ones of the
/// host are held off.
pub const POOL: usize = 64;
/// Vendor and product of these devices.
pub const IDENTITY: (u16, u16) = (0x1d50, 0x606f);

const TO_DEVICE: u8 = 0x41;
const FROM_DEVICE: u8 = 0xc1;
/// The host's numbers have their low byte first.
const LITTLE_ENDIAN: [u8; 4] = [0xef, 0xbe, 0, 0];

/// A model of the interface.
pub struct GsUsbModel {
    standard: Standard,
    channels: Vec<Channel>,
    /// The times at which something may happen at the channels.
    alarms: WakeTimes,
    outbox: Outbox,
    /// The time at which the interface was reset.
    epoch: Nanos,
    /// The time that the interface's clock shows after a reset.
    begins: Nanos,
}

impl GsUsbModel {
    /// Returns an interface with a channel for each of `buses`, at most five; `None` is a channel
    /// with no cable in it.
    #[must_use]
    pub fn new(serial: u32, buses: &[Option<CanBus>]) -> GsUsbModel {
        let alarms = WakeTimes::default();
        let channels = (0..).zip(buses.iter().take(CHANNELS)).map(|(number, bus)| {
            Channel::new(number, bus.as_ref().map(|bus| bus.plug_among(POOL, &alarms)))
        });
        let channels: Vec<Channel> = channels.collect();
        GsUsbModel {
            standard: Standard::new(descriptors(serial)),
            outbox: Outbox::new(channels.len()),
            alarms,
            channels,
            epoch: Nanos::ZERO,
            begins: Nanos::ZERO,
        }
    }

    /// The interface with a clock that shows this time after a reset, as if it had run before.
    #[must_use]
    pub const fn clock_begins(mut self, time: Nanos) -> GsUsbModel {
        self.begins = time;
        self
    }

    /// Returns how many frames of a channel were lost because the host did not fetch others.
    #[must_use]
    pub fn overruns(&self, channel: usize) -> u64 {
        self.outbox.overruns(channel)
    }

    /// Returns how many frames from buses wait for the host.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.outbox.frames()
    }

    /// Returns the interface's clock, which wraps.
    fn micros(&self, time: Nanos) -> u32 {
        ((time - self.epoch + self.begins).0 / 1_000) as u32
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
        let micros = self.micros(time);
        let Some(channel) = self.channels.get_mut(index) else { return };
        let stamp = channel.stamps.then_some(micros);
        match kind {
            EventKind::Received { frame } => match channel.stray() {
                None => self.outbox.frame(channel.received(&frame), stamp),
                Some(turns_passive) => {
                    self.outbox.frame(channel.bus_error(WireError::Stuff), stamp);
                    if turns_passive {
                        self.outbox.state(channel.changed(), stamp);
                    }
                }
            },
            EventKind::Error { error, .. } => self.outbox.frame(channel.bus_error(error), stamp),
            EventKind::Health { .. } => self.outbox.state(channel.changed(), stamp),
            EventKind::Sent { ticket, .. } => {
                let echo = ticket.and_then(|ticket| channel.acknowledge(ticket));
                echo.into_iter().for_each(|echo| self.outbox.echo(echo, stamp));
            }
            // Nothing is sent once only.
            EventKind::Dropped { .. } => {}
        }
    }

    fn has_room(&self) -> bool {
        let under_way: usize = self.channels.iter().map(Channel::outstanding).sum();
        under_way + self.outbox.echoes() < POOL
    }

    /// Carries out a request with data for the device.
    fn ordered(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Option<()> {
        let words = |bytes: &[u8]| {
            let words = bytes.chunks_exact(4).map(|word| <[u8; 4]>::try_from(word).ok());
            words.map(|word| word.map_or(0, u32::from_le_bytes)).collect::<Vec<_>>()
        };
        if setup.request == request::HOST_FORMAT {
            return (data == LITTLE_ENDIAN).then_some(());
        }
        let channel = self.channels.get_mut(usize::from(setup.value))?;
        match (setup.request, words(data).as_slice()) {
            (request::BIT_TIMING, &[propagation, phase1, after, jump, prescaler]) => {
                channel.set_timing([propagation, phase1, after, jump, prescaler]).then_some(())
            }
            (request::DATA_BIT_TIMING, &[propagation, phase1, after, jump, prescaler]) => {
                let timing = [propagation, phase1, after, jump, prescaler];
                channel.set_data_timing(timing).then_some(())
            }
            (request::MODE, [0, _]) => {
                channel.stop(now);
                self.outbox.forget(setup.value as u8);
                Some(())
            }
            (request::MODE, &[1, flags]) => channel.start(now, flags).then_some(()),
            _ => None,
        }
    }

    /// Returns the answer to a request.
    fn asked(&self, now: Nanos, setup: Setup) -> Option<Vec<u8>> {
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let channel = self.channels.get(usize::from(setup.value));
        Some(match setup.request {
            request::DEVICE_CONFIG => {
                let last = self.channels.len().checked_sub(1)? as u8;
                [&[0, 0, 0, last][..], &2u32.to_le_bytes(), &1u32.to_le_bytes()].concat()
            }
            request::TIMESTAMP => bytes(&[self.micros(now)]),
            request::TIMING_LIMITS => bytes(&channel?.limits(false)?),
            request::ALL_TIMING_LIMITS => bytes(&channel?.limits(true)?),
            request::GET_STATE => bytes(&channel?.state()),
            _ => return None,
        })
    }
}

impl UsbDevice for GsUsbModel {
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
        self.epoch = now;
    }

    fn control(&mut self, now: Nanos, setup: Setup, data: &[u8]) -> Result<Vec<u8>, Stall> {
        self.advance(now);
        if let Some(answer) = self.standard.control(setup) {
            return answer;
        }
        match (setup.kind, setup.index) {
            (TO_DEVICE, 0) if self.standard.configured() => {
                self.ordered(now, setup, data).map(|()| Vec::new()).ok_or(Stall)
            }
            (FROM_DEVICE, 0) if self.standard.configured() => {
                self.asked(now, setup).ok_or(Stall).and_then(|bytes| reply(setup, bytes))
            }
            _ => Err(Stall),
        }
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
        if let Some(frame) = HostFrame::read(packet)
            && let Some(channel) = self.channels.get_mut(usize::from(frame.channel))
        {
            channel.transmit(now, frame);
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
        self.alarms.first()
    }

    fn advance(&mut self, now: Nanos) {
        let mut time = self.alarms.first();
        while time <= now {
            self.collect(time);
            time = self.alarms.first();
        }
    }
}

fn descriptors(serial: u32) -> Descriptors {
    let (vendor, product) = IDENTITY;
    let device = descriptor::DeviceDescriptor {
        usb: 0x0200,
        class: 0,
        subclass: 0,
        protocol: 0,
        packet: 64,
        vendor,
        product,
        version: 0x0002,
        texts: [1, 2, 3],
        configurations: 1,
    };
    let pipes = build::Interface::new(0).class(0xff, 0xff, 0xff);
    let pipes = pipes.endpoint(build::bulk(IN, 512)).endpoint(build::bulk(OUT, 512));
    let strings = ["Diapason", "gs_usb interface", &format!("{serial:012}")];
    Descriptors {
        device: device.bytes(Speed::High),
        configuration: build::Configuration::new(1).with(pipes).bytes(Speed::High),
        high_speed: true,
        strings: strings.map(String::from).into(),
        ..Descriptors::default()
    }
}
