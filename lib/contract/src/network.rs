//! A network device: whole Ethernet frames in memory that the client shares with the controller.
//!
//! A client lends slots for frames that come and gives frames. From then on the slot is the
//! server's, until it is told as come or back. Without a device every slot comes back at once, so a
//! client begins when it hears of one ([`STATE`]), and after [`GONE`] waits for the next.
//!
//! The process at the end of a `[[pipe]]` is such a client. The reader of a pipe from the device
//! lends all slots at once ([`BEGIN`]), and they stay lent when the device goes. It need not give
//! the semaphore when it lends a slot again: the server looks for such slots whenever a frame has
//! come, and once in a while if the device has no slot left.

use crate::home::Home;
use crate::kinds::ServiceKind;
use crate::source::{EndpointAttributes, MessageForm, PipeSource, SharedPlaces, segment};
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of asks.
pub const ASKS: &str = "network.asks";
/// The pipe of news.
pub const TOLD: &str = "network.news";
/// The memory that is shared.
pub const DATA: &str = "network.data";
/// The semaphore that is given after an ask.
pub const ASKED: &str = "network.ask";
/// The semaphore that is given after news.
pub const READY: &str = "network.ready";

/// The bottom half of a network device, for frames from and to it.
pub const HOME: Home = Home::new("usb-network", "network", "usbd.network")
    .each("usbd.network.message")
    .paced(Nanos::from_micros(125))
    .asked(ASKED)
    .ready(&[READY]);

/// The work of a reader or writer for one frame, by its name in descriptions.
pub const MESSAGE: &str = "network.message";

/// The pipe from a network device, or to it. Its messages are frames.
pub const SOURCE: PipeSource = PipeSource {
    kind: ServiceKind::Networks,
    pipe: (TOLD, segment(RECORDS, size_of::<News>())),
    ready: READY,
    form: MessageForm::Frame(SharedPlaces {
        data: (DATA, SLOTS as u64 * SLOT_BYTES as u64),
        returned: (ASKS, segment(RECORDS, size_of::<Ask>())),
    }),
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
};

/// The setting that is [`SEND`] if the pipe goes to the device. It follows from a pipe.
pub const PIPED: &str = "network";

/// Transfers of each direction that the driver keeps queued.
pub const QUEUED: usize = 32;

/// Frames that lie in the memory at a time.
pub const SLOTS: u32 = 128;
/// Bytes from one to the next: more than a frame has, and whole packets.
pub const SLOT_BYTES: u32 = 2048;
/// Most bytes of a frame, without its checksum.
pub const FRAME_MAX: usize = 1514;
/// Bytes of the shortest frame, without its checksum.
pub const FRAME_MIN: usize = 60;
/// Asks and news that may wait: more than there are slots.
pub const RECORDS: usize = 192;

/// In [`Ask::what`]: a slot for a frame that comes.
pub const LEND: u16 = 0;
/// In [`Ask::what`]: a frame.
pub const SEND: u16 = 1;
/// In [`Ask::what`], of the process at the end of a pipe: it begins, and knows nothing. All slots
/// of a reader are lent from then on, whatever it knew of them before.
pub const BEGIN: u16 = 2;

/// In [`News::what`]: a frame came to this slot, which is the client's again.
pub const CAME: u32 = 0;
/// In [`News::what`]: this slot is the client's again.
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
/// In [`News::flags`] with [`BACK`]: the slot had a frame for the device.
pub const SENT: u16 = 1 << 3;
/// In [`News::flags`] with [`STATE`]: the device is open from now on. With [`BEGUN`]: it is open.
pub const OPENED: u16 = 1 << 4;

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
        /// [`CONNECTED`], [`OUTSIDE`], [`LOST_BEFORE`], [`SENT`] and [`OPENED`], as far as they are
        /// true.
        pub flags: u16,
    }
}
