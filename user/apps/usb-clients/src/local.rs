//! The head of an Ethernet frame for everybody on the network that no other protocol takes.

/// The type of a frame that nobody answers: for local experiments.
const TYPE: [u8; 2] = [0x88, 0xb5];
/// Bytes of both addresses, the type and two bytes of nothing.
pub const HEAD: usize = 16;

/// Returns the head of a frame from this address.
pub fn head(address: [u8; 6]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..6].fill(0xff);
    head[6..12].copy_from_slice(&address);
    head[12..14].copy_from_slice(&TYPE);
    head
}
