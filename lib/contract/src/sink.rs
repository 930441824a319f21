//! The endpoint of any device that takes packets: what programs write to one, packet by packet.
//!
//! A writer puts each packet into the pipe of what is written and gives `sink.ask`. The server
//! sends them in their order and answers each, in the same order, when the device has it.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::sensor::PACKET;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, segment};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of what is written.
pub const WRITES: &str = "sink.writes";
/// The pipe of answers.
pub const ANSWERS: &str = "sink.answers";
/// The semaphore that is given after a write.
pub const ASKED: &str = "sink.ask";
/// The semaphore that is given after an answer.
pub const READY: &str = "sink.ready";

/// The setting with the number of the endpoint that is written to, 1 to 15. It follows from a pipe.
pub const NUMBER: &str = "sink";

/// The thread that hears of writes, and the bottom half that hears when the device has one.
pub const HOME: Home = Home::new("usb-sink", "sink", "usbd.sink")
    .paced(Nanos::from_micros(125))
    .asked(ASKED)
    .ready(&[READY]);

/// The work of a writer for one packet, by its name in descriptions.
pub const MESSAGE: &str = "sink.message";

/// The pipe to an endpoint: what the server can do. The descriptors of the device bound it further.
pub const SOURCE: PipeSource = PipeSource {
    kind: ServiceKind::Sinks,
    pipe: (ANSWERS, segment(RECORDS, size_of::<PacketAnswer>())),
    ready: READY,
    form: MessageForm::Written((WRITES, segment(RECORDS, size_of::<PacketWrite>()))),
    home: &HOME,
    message: MESSAGE,
    attributes: EndpointAttributes {
        max_channels: 1,
        max_tput: 8 * PACKET as u64,
        // A packet has its answer before the next one is written.
        min_latency: Nanos::from_micros(500),
        buffer: 1,
        packet: (1, PACKET),
        slots: RECORDS,
        transfer: (PACKET, UNDER_WAY),
    },
};

/// Most packets that the controller has at a time.
pub const UNDER_WAY: usize = 4;

/// Packets in the pipe, and answers.
pub const RECORDS: usize = 16;

/// Bytes that the transfers of an endpoint take of the memory for all transfers.
pub(crate) const BUFFERS: u64 = (UNDER_WAY * PACKET) as u64;

/// In [`PacketAnswer::status`]: the device has it.
pub const DONE: u32 = 0;
/// In [`PacketAnswer::status`]: the device would not take it, or took nothing for too long. Whether
/// it has a part of it is not known.
pub const FAILED: u32 = 1;
/// In [`PacketAnswer::status`]: there is no such device.
pub const GONE: u32 = 2;
/// In [`PacketAnswer::status`]: it is empty, or longer than a packet of the endpoint.
pub const NONSENSE: u32 = 3;

plain! {
    /// A packet for the device.
    #[derive(Debug, PartialEq, Eq)]
    pub struct PacketWrite {
        /// The time at which it was written, in ns since boot.
        pub written: u64,
        pub length: u32,
        /// Fills the record up to whole words.
        pub spare: u32,
        pub data: [u8; PACKET],
    }
}

plain! {
    /// The answer to a packet.
    #[derive(Debug, PartialEq, Eq)]
    pub struct PacketAnswer {
        /// As the writer said it.
        pub written: u64,
        /// The time at which the server took the packet in hand, and at which it knew of its end,
        /// in ns since boot.
        pub taken: u64,
        pub ended: u64,
        /// [`DONE`], [`FAILED`], [`GONE`] or [`NONSENSE`].
        pub status: u32,
        /// 1 if it was outside of the contract of its pipe, else 0.
        pub outside: u32,
    }
}
