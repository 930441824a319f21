//! A keyboard: keys that go down and come up.

use crate::home::Home;
use diapason_abi::Nanos;
use diapason_state::plain;

/// The pipe of keys.
pub const KEYS: &str = "keyboard";
/// The semaphore that is given after keys.
pub const READY: &str = "keyboard.ready";

/// The bottom half of a keyboard.
pub const HOME: Home = Home::new("usb-keyboard", "keyboard", "usbd.keyboard")
    .moderated(Nanos::from_millis(8))
    .ready(&[READY]);

/// Keys in the pipe.
pub const RECORDS: usize = 64;

plain! {
    /// A key that went down or came up.
    #[derive(Debug, PartialEq, Eq)]
    pub struct KeyChange {
        /// The time at which the server learned of the key, in ns since boot.
        pub taken: u64,
        /// The key's usage on the keyboard page: 4 is A.
        pub usage: u32,
        /// 1 if it went down, 0 if it came up.
        pub down: u32,
    }
}
