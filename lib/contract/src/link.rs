//! A link to another computer: messages in memory that clients, servers and controllers share, so
//! that nobody copies them. Whether `usbd` serves it (a bridge cable, a debug device) or `dbcd`
//! (this computer as a debug device) makes no difference here.
//!
//! A client lends memory for messages and gives messages. From then on that memory is the link's,
//! until it is told as done. All links of a computer share one segment and one client, which may
//! send on one what came from another.

use crate::kinds::PLACE;
use diapason_state::plain;

/// Bytes that a link takes of the memory for all transfers, for its control requests.
pub const BUFFERS: u64 = PLACE;
/// Most links of a computer.
pub const LINKS: usize = 4;
/// The program that serves a link by the debug capability of a controller.
pub const TARGET: &str = "dbcd";
/// Bytes of its stack, of its heap, and the lock of that heap.
pub const TARGET_STACK: u64 = 16 << 10;
pub const TARGET_HEAP: u64 = 4 << 10;
pub const TARGET_SEMAPHORES: usize = 1;
/// The memory that it shares with the controller: a context, rings and events.
pub const TARGET_RINGS: &str = "dbc-rings";
pub const TARGET_RINGS_BYTES: u64 = 8 << 10;
/// The semaphore that a USB server gives when the debug capability of its controller may be
/// enabled.
/// The program that drives the capability waits for it if its second argument is not 0.
pub const ENABLE: &str = "debug.enable";
/// Asks that may wait or be under way; answers that may wait.
pub const RECORDS: usize = 64;
/// Transfers of each direction that a USB server keeps at the controller.
pub const PENDING: usize = 16;
/// Requests that a USB server takes in at once and transfers that have ended, together at most.
pub const TOGETHER: u64 = (RECORDS + 2 * PENDING) as u64;
/// Places are counted in so many bytes.
pub const UNIT: usize = 1024;
/// Most bytes of a message. It must not cross a multiple of this as devices count
///.
pub const MESSAGE_MAX: usize = 65_536;

/// The setting of a program before a cable with another way: the ns that the cable may take for a
/// message until later ones go the other way. It follows from the `patience` of a flow.
pub const PATIENCE: &str = "patience";

/// The setting of a program at which a flow begins: the label that its messages have.
pub const LABEL: &str = "label";
/// The setting of a server of links: the most bytes of a message that each link takes, by the
/// number of the link. It follows from the flows over its cable; 0 says that it has none.
pub const LONGEST: &str = "link-longest";

/// Returns the most bytes of a message that the link with this number takes.
#[must_use]
pub fn longest(words: &[u64], link: usize) -> u32 {
    let said = words.get(link).and_then(|bytes| u32::try_from(*bytes).ok());
    said.filter(|bytes| *bytes > 0).unwrap_or(MESSAGE_MAX as u32)
}

/// Programs that write the labels of flows into messages, and keep the label of a message that they
/// answer.
pub const LABELLING: [&str; 3] = ["link-ping", "link-detour", crate::routes::PROGRAM];

/// Returns the label of the flow with this number in its list. Flows far behind have none.
#[must_use]
pub fn label_of(flow: usize) -> u8 {
    u8::try_from(flow + 1).unwrap_or(0)
}

/// The time for which such a program leaves a cable that gave a message back, in ns. The other side
/// of a bridge hangs then, and each try loses messages.
pub const REST_NS: u64 = 1_000_000_000;

/// In [`Ask::what`] and [`Done::what`]: memory for a message.
pub const FILL: u32 = 0;
/// In [`Ask::what`] and [`Done::what`]: a message.
pub const SEND: u32 = 1;

/// In [`Done::status`]: it moved.
pub const DONE: u32 = 0;
/// In [`Done::status`]: nobody took it, or it was lost.
pub const DROPPED: u32 = 1;
/// In [`Done::status`]: no such memory, or a message that is longer than its flow says.
pub const NONSENSE: u32 = 2;

/// The pipes of asks and of answers, and the semaphore that is given after asks, by the number of
/// the link.
pub const NAMES: [[&str; 3]; LINKS] = [
    ["link0.asks", "link0.done", "link0.ask"],
    ["link1.asks", "link1.done", "link1.ask"],
    ["link2.asks", "link2.done", "link2.ask"],
    ["link3.asks", "link3.done", "link3.ask"],
];
/// The memory of all links.
pub const DATA: &str = "link.data";
/// The semaphore that is given after answers of any link.
pub const READY: &str = "link.ready";

plain! {
    /// A request of a client.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        pub what: u32,
        /// The beginning of the memory, in units of [`UNIT`].
        pub place: u32,
        /// The request's bytes, or those of the message.
        pub bytes: u32,
        /// Not 0: nothing is given when it moved, since its client does not wait for that.
        pub quiet: u32,
    }
}

plain! {
    /// The answer to a request.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Done {
        /// The time at which the server learned of the result, in ns since boot.
        pub taken: u64,
        pub what: u32,
        /// As it was asked for.
        pub place: u32,
        /// Bytes of the message.
        pub bytes: u32,
        /// [`DONE`], [`DROPPED`] or [`NONSENSE`].
        pub status: u32,
    }
}

impl Ask {
    /// Returns whether it names memory that exists, and that one block of a controller can
    /// describe, and no message with more than `longest` bytes. The memory has `length` bytes from
    /// `base` on, as devices count.
    #[must_use]
    pub fn is_sane(&self, (base, length): (u64, u64), longest: u32) -> bool {
        let (at, bytes) = (u64::from(self.place) * UNIT as u64, u64::from(self.bytes));
        let inside = at + bytes <= length && bytes > 0;
        let whole = (base + at) % MESSAGE_MAX as u64 + bytes <= MESSAGE_MAX as u64;
        let fits = self.what == FILL || self.bytes <= longest;
        self.what <= SEND && inside && whole && fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_longer_than_the_longest_flow_of_its_link() {
        let words = [512, 0];
        assert_eq!([0, 1, 2].map(|link| longest(&words, link)), [512, 65_536, 65_536]);
        let memory = (1 << 20, 8 * UNIT as u64);
        let ask = |what, bytes| Ask { what, place: 2, bytes, quiet: 0 };
        assert!(ask(SEND, 512).is_sane(memory, 512));
        assert!(!ask(SEND, 513).is_sane(memory, 512));
        // Memory that is lent may be larger: the neighbour's messages end where they end.
        assert!(ask(FILL, 1_024).is_sane(memory, 512));
        assert!(ask(SEND, 6 * 1_024).is_sane(memory, longest(&words, 1)));
        assert!(!ask(SEND, 6 * 1_024 + 1).is_sane(memory, longest(&words, 1)));
        assert!(!ask(SEND, 0).is_sane(memory, 512));
    }
}
