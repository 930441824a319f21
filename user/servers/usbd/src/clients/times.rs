//! When a bottom half was where, activation by activation: what the way of a transfer through the
//! server costs. The server tells it only if its description asks for it.

use diapason_abi::Errno;
use diapason_pipe::{Reader, Writer};
use diapason_rt::pipe;
use diapason_state::plain;

/// Activations in the pipe.
pub const RECORDS: usize = 64;

plain! {
    /// One activation, in ns since boot.
    #[derive(Debug, PartialEq, Eq, Default)]
    pub struct Times {
        /// The thread is back from its wait.
        pub woken: u64,
        /// It has the server's lock, and begins.
        pub begun: u64,
        /// It has served everything, and given the lock back.
        pub done: u64,
        /// It has told the clients.
        pub told: u64,
    }
}

/// The server's end.
pub type Outlet = Writer<'static, Times, RECORDS>;
/// The end of who wants to know.
pub type Inlet = Reader<'static, Times, RECORDS>;

/// The server's end.
///
/// # Errors
/// None for what the description grants.
pub fn outlet() -> Result<Outlet, Errno> {
    pipe::writer("usb-times")
}

/// The end of who wants to know.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<Inlet, Errno> {
    pipe::reader("usb-times")
}
