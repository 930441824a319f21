//! When a bottom half was where, activation by activation: what the way of a transfer through the
//! server costs. The server tells it only if its description asks for it.

use diapason_state::plain;

/// The pipe of activations.
pub const ACTIVATIONS: &str = "usb-times";

/// Activations in the pipe.
pub const RECORDS: usize = 64;

plain! {
    /// One activation, in ns since boot.
    #[derive(Debug, PartialEq, Eq, Default)]
    pub struct Times {
        /// The thread is back from its wait.
        pub woken: u64,
        /// The thread has the lock of its branch, and begins.
        pub begun: u64,
        /// The thread has served its devices, and given the lock back.
        pub done: u64,
        /// Notes that the thread has told the clients.
        pub told: u64,
    }
}
