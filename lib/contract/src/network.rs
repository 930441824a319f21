//! A network device: whole Ethernet frames in memory that a client shares with the controller.
//!
//! Each direction has its own objects, so a reader and a writer need not be one process.
//!
//! A reader lends all slots of its memory at once ([`BEGIN`]), and they stay lent when the device
//! goes. It lends a slot again when it is done with the frame in it, and need not give the
//! semaphore then: the server looks for such slots whenever a frame has come, and once in a while
//! if the device has no slot left.
//!
//! A writer gives frames. From then on the slot is the server's, until it is told as back. Without
//! a device every slot comes back at once, so a writer begins when it hears of one ([`STATE`]), and
//! after [`GONE`] waits for the next.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, SharedPlaces, segment};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The semaphore that a reader or a writer gives after an ask.
pub const ASKED: &str = "network.ask";

/// The objects of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameNames {
    /// The pipe of asks.
    pub asks: &'static str,
    /// The pipe of news.
    pub news: &'static str,
    /// The memory that is shared.
    pub data: &'static str,
    /// The semaphore that is given after news.
    pub ready: &'static str,
}

/// The objects of frames from the device.
pub const FROM: FrameNames = FrameNames {
    asks: "network.asks",
    news: "network.news",
    data: "network.data",
    ready: "network.ready",
};

/// The objects of frames to the device.
pub const TO: FrameNames = FrameNames {
    asks: "network-to.asks",
    news: "network-to.news",
    data: "network-to.data",
    ready: "network-to.ready",
};

/// The bottom half of a network device, for frames from and to it.
pub const HOME: Home = Home::new("usb-network", "network", "usbd.network")
    .each("usbd.network.message")
    .paced(Nanos::from_micros(125))
    .asked(ASKED)
    .ready(&[FROM.ready, TO.ready]);

/// The work of a reader or writer for one frame, by its name in descriptions.
pub const MESSAGE: &str = "network.message";

/// The segments that the server shares with its clients.
pub(crate) const SEGMENTS: [&str; 6] = [FROM.asks, FROM.news, FROM.data, TO.asks, TO.news, TO.data];

/// The pipe from a network device. Its messages are frames.
pub const SOURCE: PipeSource = carries(FROM, MessageForm::Frame(places(FROM)));

/// The pipe to a network device.
pub const SINK: PipeSource = carries(TO, MessageForm::SentFrame(places(TO)));

const fn places(names: FrameNames) -> SharedPlaces {
    SharedPlaces {
        data: (names.data, SLOTS as u64 * SLOT_BYTES as u64),
        returned: (names.asks, segment(RECORDS, size_of::<Ask>())),
    }
}

const fn carries(names: FrameNames, form: MessageForm) -> PipeSource {
    PipeSource {
        kind: ServiceKind::Networks,
        pipe: (names.news, segment(RECORDS, size_of::<News>())),
        ready: names.ready,
        form,
        home: &HOME,
        message: MESSAGE,
        attributes: EndpointAttributes {
            max_channels: 1,
            max_tput: 8 * FRAME_MAX as u64,
            // The packets of the longest frame take 27 us at high speed.
            min_latency: Nanos::from_micros(50),
            buffer: 16,
            packet: (FRAME_MIN, FRAME_MAX),
            slots: RECORDS,
            transfer: (SLOT_BYTES as usize, QUEUED),
        },
    }
}

/// Transfers of each direction that the driver keeps queued.
pub const QUEUED: usize = 32;

/// Frames to the device that the server has room for, whatever their length.
pub const UNDER_WAY: u64 = 64;

/// Frames that lie in the memory of one direction at a time.
pub const SLOTS: u32 = 128;
/// Bytes from one to the next: more than a frame has, and whole packets.
pub const SLOT_BYTES: u32 = 2048;
/// Most bytes of a frame, without its checksum.
pub const FRAME_MAX: usize = 1514;
/// Bytes of the shortest frame, without its checksum.
pub const FRAME_MIN: usize = 60;
/// Asks and news that may wait: more than there are slots.
pub const RECORDS: usize = 192;

/// In [`Ask::what`], of a reader: a slot for a frame that comes.
pub const LEND: u16 = 0;
/// In [`Ask::what`], of a writer: a frame.
pub const SEND: u16 = 1;
/// In [`Ask::what`]: the process begins, and knows nothing. All slots of a reader are lent from
/// then on, whatever it knew of them before.
pub const BEGIN: u16 = 2;

/// In [`News::what`]: a frame came to this slot, which is the client's again.
pub const CAME: u32 = 0;
/// In [`News::what`]: this slot is the client's again, and no frame came to it.
pub const BACK: u32 = 1;
/// In [`News::what`]: there is a device, and this is known of it.
pub const STATE: u32 = 2;
/// In [`News::what`]: there is no device any more.
pub const GONE: u32 = 3;
/// In [`News::what`], the answer to [`BEGIN`]: frames that were told before are no longer there.
pub const BEGUN: u32 = 4;

/// In [`News::status`]: the frame is with the device.
pub const DONE: u32 = 0;
/// In [`News::status`]: there is no device, or it went with the frame.
pub const DROPPED: u32 = 2;
/// In [`News::status`]: no such slot, or it is the server's already; no such frame.
pub const NONSENSE: u32 = 3;

/// In [`News::flags`]: the device does not say that there is no network.
pub const CONNECTED: u16 = 1 << 0;
/// In [`News::flags`]: the frame is outside of the contract of its pipe.
pub const OUTSIDE: u16 = 1 << 1;
/// In [`News::flags`]: something was lost before the frame.
pub const LOST_BEFORE: u16 = 1 << 2;
/// In [`News::flags`] with [`STATE`]: the device is open from now on. With [`BEGUN`]: it is open.
pub const OPENED: u16 = 1 << 3;

plain! {
    /// A request of a client.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        pub slot: u32,
        pub what: u16,
        /// Bytes of the frame.
        pub bytes: u16,
        /// The time at which the client wrote the frame, in ns since boot.
        pub written: u64,
    }
}

plain! {
    /// One event of the interface.
    #[derive(Debug, PartialEq, Eq)]
    pub struct News {
        /// The time at which the server learned of the change, in ns since boot.
        pub taken: u64,
        /// The time that the sender of a frame wrote into it; `taken` if the description does not
        /// say where that is. If the frame went to the device, the time at which it was written.
        pub time: u64,
        /// The time at which the server took a frame for the device in hand.
        pub begun: u64,
        /// [`CAME`], [`BACK`], [`STATE`], [`GONE`] or [`BEGUN`].
        pub what: u32,
        pub slot: u32,
        /// Bytes of the frame.
        pub bytes: u32,
        /// The fate of a slot that is back: [`DONE`], [`DROPPED`] or [`NONSENSE`].
        pub status: u32,
        /// Bits per second from and to the network, as the device says; 0 if it does not.
        pub speed: [u32; 2],
        /// The delay of a frame that came, beyond the fastest one, and by how much that may be too
        /// short, in ns.
        pub moved: u32,
        pub inexact: u32,
        pub address: [u8; 6],
        /// [`CONNECTED`], [`OUTSIDE`], [`LOST_BEFORE`] and [`OPENED`], as far as they are true.
        pub flags: u16,
    }
}
