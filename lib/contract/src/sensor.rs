//! A sensor on a serial line: what it sends, packet by packet.

use crate::home::Home;
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of packets.
pub const PACKETS: &str = "sensor";
/// The semaphore that is given after packets.
pub const READY: &str = "sensor.ready";

/// The bottom half of a sensor, which sends a packet every 2.5 ms and keeps a few.
pub const HOME: Home =
    Home::new("usb-sensor", "sensor", "usbd.sensor").moderated(Nanos::from_millis(2)).ready(READY);

/// Most bytes of a packet.
pub const PACKET: usize = 512;
/// Packets in the pipe: 160 ms of a packet every 2.5 ms.
pub const RECORDS: usize = 64;

plain! {
    /// A packet of the sensor.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Packet {
        /// When the server took it from the controller, in ns since boot.
        pub taken: u64,
        pub length: u32,
        /// Times that the sensor was found before.
        pub session: u32,
        pub data: [u8; PACKET],
    }
}
