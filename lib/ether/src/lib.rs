//! UDP over Ethernet in real time: the frames, and the way of a received frame from the adapter's
//! buffer to the memory of the program that asked for it.
//!
//! A driver thread passes each frame to [`Demux`], which matches it at fixed offsets
//! ([`Listeners`]) and posts its buffer's number to the [`FrameInbox`] of one program, or discards
//! it with a reason. The program takes it with a [`LazyReceiver`], in its own time: the only copy
//! is made there. A frame that matches exactly bypasses the layers, and any other goes through
//! [`stack::receive`]. The conventional way is [`NetworkThread`], for comparison: it processes
//! every frame in one thread, and copies twice. Programs that do not trust each other have slots of
//! their own, to which [`CopyingDemux`] copies. [`needs`] says how many buffers this takes, and
//! [`adapter`] drives the 82574L.
#![no_std]
#![forbid(unsafe_code)]

pub mod adapter;
pub mod build;
pub mod checksum;
mod conventional;
mod copied;
mod demux;
mod discard;
mod filter;
mod inbox;
mod lazy;
pub mod needs;
pub mod release;
mod sender;
pub mod stack;
pub mod stamps;
pub mod station;
pub mod timed;

pub use build::{UdpFrame, datagram_frame};
pub use conventional::{NetworkThread, SocketBuffers, SocketReader};
pub use copied::{CopyingDemux, Slots};
pub use demux::{Demux, Posted};
pub use discard::{Discard, FrameCounts};
pub use filter::{Listener, ListenerRefusal, Listeners, Match, TCP, UDP};
pub use inbox::{Buffers, FrameInbox, FreeBuffers, INBOX_DEPTH, InboxReader, InboxWriter, Post};
pub use lazy::{LazyReceiver, Received};
pub use sender::{Own, OwnDatagrams};
pub use stack::{Datagram, VlanTag};

/// The bytes of a frame's head without a tag: two addresses and a type.
pub const ETHERNET_HEAD: usize = 14;
/// The bytes of a VLAN tag.
pub const TAG_BYTES: usize = 4;
/// The bytes of an IPv4 header without options.
pub const IPV4_HEAD: usize = 20;
/// The bytes of a UDP header.
pub const UDP_HEAD: usize = 8;
/// The bytes before the payload of a UDP datagram without tag and options.
pub const UDP_PAYLOAD: usize = ETHERNET_HEAD + IPV4_HEAD + UDP_HEAD;
/// Bytes of the shortest frame, without its checksum. Adapters pad shorter ones.
pub const FRAME_MIN: usize = 60;
/// Bytes of the longest frame without a tag and without its checksum.
pub const FRAME_MAX: usize = 1_514;
/// The EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// The EtherType of a VLAN tag.
pub const VLAN: u16 = 0x8100;

/// Returns whether a group means the next neighbour (IEEE 802.1Q, table 8-1): no switch passes its
/// frames on.
#[must_use]
pub fn is_of_neighbours(to: &[u8; 6]) -> bool {
    to.starts_with(&[0x01, 0x80, 0xc2, 0, 0]) && to[5] < 0x10
}
