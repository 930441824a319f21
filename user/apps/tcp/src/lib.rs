//! The two ends of the conversation: who listens where, and which bytes go.

#![no_std]
#![forbid(unsafe_code)]

use core::net::Ipv4Addr;

/// The socket of the program that answers, its address and port.
pub const ANSWERER: &str = "answerer";
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const PORT: u16 = 7;
/// The socket of the program that asks, and its port.
pub const ASKER: &str = "asker";
pub const OWN_PORT: u16 = 49_152;
/// The hosts of the wire share so many bits of their addresses.
pub const PREFIX: u8 = 24;
/// Bytes of each buffer of a connection.
pub const BUFFER: usize = 2_048;

/// Returns the byte at this place of what is sent.
#[must_use]
pub const fn byte(place: u64) -> u8 {
    (place * 7 + (place >> 8) * 3) as u8
}
