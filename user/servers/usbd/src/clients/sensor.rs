//! A sensor on a serial line: what it sends, packet by packet.

use diapason_abi::Errno;
use diapason_pipe::{Reader, Writer};
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Most bytes of a packet.
pub const PACKET: usize = 512;
/// Packets in the pipe: 160 ms of the article's sensor.
pub const RECORDS: usize = 64;

plain! {
    /// What came in one packet.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Packet {
        /// When the server took it from the controller, in ns since boot.
        pub taken: u64,
        /// How many of its bytes mean something.
        pub length: u32,
        /// How often the sensor was found before.
        pub session: u32,
        /// The bytes.
        pub data: [u8; PACKET],
    }
}

/// The server's end.
pub type Outlet = Writer<'static, Packet, RECORDS>;
/// The client's end.
pub type Inlet = Reader<'static, Packet, RECORDS>;

/// The server's end, and what it gives after it put something in.
///
/// # Errors
/// None for what the description grants.
pub fn outlet() -> Result<(Outlet, Semaphore), Errno> {
    Ok((pipe::writer("sensor")?, Semaphore::open("sensor.ready")?))
}

/// The client's end, and what it takes before it looks.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<(Inlet, Semaphore), Errno> {
    Ok((pipe::reader("sensor")?, Semaphore::open("sensor.ready")?))
}
