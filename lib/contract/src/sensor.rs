//! A sensor on a serial line: what it sends, packet by packet. The packets of any other device's
//! endpoint have the same record.
//!
//! A server has a seat for each sensor with a pipe. Each seat has objects and a bottom half of its
//! own, so no sensor waits for the reader of another one.

use crate::home::Home;
use crate::kinds::{PLACE, ServiceKind};
use crate::settings::MOST;
use crate::source::{EndpointAttributes, MessageForm, PipeSource};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The objects of a sensor's seat, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SensorNames {
    /// The pipe of packets.
    pub packets: &'static str,
    /// The semaphore that is given after packets.
    pub ready: &'static str,
}

/// Makes the tables of seats: names, segments, and bottom halves.
macro_rules! seats {
    ($($name:literal),*) => {
        /// The names of each seat's objects.
        pub const NAMES: [SensorNames; MOST] =
            [$(SensorNames { packets: $name, ready: concat!($name, ".ready") }),*];

        /// The segments of each seat.
        pub(crate) const SEGMENTS: [&[&str]; MOST] = [$(&[$name]),*];

        /// The bottom half of each seat. A sensor sends a packet every 2.5 ms and keeps a few.
        pub const HOMES: [Home; MOST] = [$(
            Home::new(concat!("usb-", $name), "sensor", "usbd.sensor")
                .each("usbd.sensor.message")
                .moderated(Nanos::from_millis(2))
                .ready(&[concat!($name, ".ready")])
        ),*];
    };
}

seats!("sensor", "sensor1", "sensor2", "sensor3");

/// The work of a reader for one packet, by its name in descriptions.
pub const MESSAGE: &str = "sensor.message";

/// The pipe from the sensor of each seat.
pub const SOURCES: [PipeSource; MOST] = [source(0), source(1), source(2), source(3)];

const fn source(seat: usize) -> PipeSource {
    let SensorNames { packets, ready } = NAMES[seat];
    PipeSource {
        kind: ServiceKind::Sensors,
        pipe: (packets, BYTES),
        ready,
        form: MessageForm::Packet,
        home: &HOMES[seat],
        message: MESSAGE,
        attributes: ATTRIBUTES,
    }
}

/// The abilities of an endpoint whose packets are messages.
pub(crate) const ATTRIBUTES: EndpointAttributes = EndpointAttributes {
    max_channels: 1,
    max_tput: 8 * PACKET as u64,
    // A bulk packet of this size takes 9.4 us at high speed.
    min_latency: Nanos::from_micros(10),
    buffer: 8,
    packet: (1, PACKET),
    slots: RECORDS,
    transfer: (PACKET, QUEUED),
};

/// Transfers that the driver keeps queued: each is one packet.
pub const QUEUED: usize = 16;

/// Bytes that the transfers of a sensor take of the memory for all transfers: short ones, packets,
/// and a page of what is written to it.
pub(crate) const BUFFERS: u64 = 4 * PLACE + (QUEUED * PACKET) as u64 + 4_096;

/// Most bytes of a packet.
pub const PACKET: usize = 512;
/// Bytes of the segment with the pipe.
pub(crate) const BYTES: u64 =
    (128 + RECORDS * size_of::<Packet>()).next_multiple_of(diapason_abi::PAGE) as u64;
/// Packets in the pipe: 160 ms of a packet every 2.5 ms.
pub const RECORDS: usize = 64;

/// In [`Packet::flags`]: it is outside of the contract of its pipe.
pub const OUTSIDE: u32 = 1;
/// In [`Packet::flags`]: the sensor said that it had lost something before.
pub const LOST_BEFORE: u32 = 2;

plain! {
    /// A packet of a sensor, or of the endpoint of another device.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Packet {
        /// The time at which the server took the packet from the controller, in ns since boot.
        pub taken: u64,
        /// The time at which the device made the packet, by its own clock; `taken` if the
        /// description does not say where that is written.
        pub time: u64,
        pub length: u32,
        /// Times that the device was found before.
        pub session: u32,
        /// The packet's delay from the device to the server beyond the fastest packet, and by how
        /// much that may be too short, in ns.
        pub moved: u32,
        pub inexact: u32,
        /// [`OUTSIDE`] and [`LOST_BEFORE`], as far as they are true of it.
        pub flags: u32,
        /// Fills the record up to whole words.
        pub spare: u32,
        pub data: [u8; PACKET],
    }
}
