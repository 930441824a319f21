//! A network device: whole Ethernet frames in memory that the client shares with the controller.
//!
//! A client lends slots for frames that come and gives frames. From then on the slot is the
//! server's, until it is told as come or back. Without a device every slot comes back at once, so a
//! client begins when it hears of one ([`STATE`]), and after [`GONE`] waits for the next.

use crate::home::Home;
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
    .paced(Nanos::from_micros(125))
    .asked(ASKED)
    .ready(&[READY]);

/// Frames that lie in the memory at a time.
pub const SLOTS: u32 = 32;
/// Bytes from one to the next: more than a frame has, and whole packets.
pub const SLOT_BYTES: u32 = 2048;
/// Most bytes of a frame, without its checksum.
pub const FRAME_MAX: usize = 1514;
/// Asks and news that may wait.
pub const RECORDS: usize = 64;

/// In [`Ask::what`]: a slot for a frame that comes.
pub const LEND: u16 = 0;
/// In [`Ask::what`]: a frame.
pub const SEND: u16 = 1;

/// In [`News::what`]: a frame came to this slot, which is the client's again.
pub const CAME: u32 = 0;
/// In [`News::what`]: this slot is the client's again.
pub const BACK: u32 = 1;
/// In [`News::what`]: there is a device, and this is known of it.
pub const STATE: u32 = 2;
/// In [`News::what`]: there is no device any more.
pub const GONE: u32 = 3;

/// In [`News::status`]: the frame is with the device.
pub const DONE: u32 = 0;
/// In [`News::status`]: there is no device, or it went with the frame.
pub const DROPPED: u32 = 1;
/// In [`News::status`]: no such slot, or it is the server's already; no such frame.
pub const NONSENSE: u32 = 2;

plain! {
    /// A request of a client.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Ask {
        pub slot: u32,
        pub what: u16,
        /// Bytes of the frame.
        pub bytes: u16,
    }
}

plain! {
    /// One event of the interface.
    #[derive(Debug, PartialEq, Eq)]
    pub struct News {
        /// The time at which the server learned of the change, in ns since boot.
        pub taken: u64,
        /// [`CAME`], [`BACK`], [`STATE`] or [`GONE`].
        pub what: u32,
        pub slot: u32,
        /// Bytes of the frame.
        pub bytes: u32,
        /// The fate of a slot that is back: [`DONE`], [`DROPPED`] or [`NONSENSE`].
        pub status: u32,
        /// Bits per second from and to the network, as the device says; 0 if it does not.
        pub speed: [u32; 2],
        pub address: [u8; 6],
        /// 1 unless the device says that there is no network.
        pub connected: u16,
    }
}
