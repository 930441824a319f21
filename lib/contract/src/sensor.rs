//! A sensor on a serial line: what it sends, packet by packet. The packets of any other device's
//! endpoint have the same record.

use crate::home::Home;
use crate::kinds::{PLACE, ServiceKind};
use crate::source::{EndpointAttributes, MessageForm, PipeSource};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of packets.
pub const PACKETS: &str = "sensor";
/// The semaphore that is given after packets.
pub const READY: &str = "sensor.ready";

/// The bottom half of a sensor, which sends a packet every 2.5 ms and keeps a few.
pub const HOME: Home = Home::new("usb-sensor", "sensor", "usbd.sensor")
    .each("usbd.sensor.message")
    .moderated(Nanos::from_millis(2))
    .ready(&[READY]);

/// The work of a reader for one packet, by its name in descriptions.
pub const MESSAGE: &str = "sensor.message";

/// The pipe from a sensor.
pub const SOURCE: PipeSource = PipeSource {
    kind: ServiceKind::Sensors,
    pipe: (PACKETS, BYTES),
    ready: READY,
    form: MessageForm::Packet,
    home: &HOME,
    message: MESSAGE,
    attributes: ATTRIBUTES,
};

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
