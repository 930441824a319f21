//! A keyboard: keys that go down and come up.

use diapason_abi::Errno;
use diapason_pipe::{Reader, Writer};
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::plain;

/// Keys in the pipe.
pub const RECORDS: usize = 64;

plain! {
    /// What happened to a key.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Key {
        /// When the server learned of it, in ns since boot.
        pub taken: u64,
        /// Its usage on the keyboard page: 4 is A.
        pub usage: u32,
        /// 1 if it went down, 0 if it came up.
        pub down: u32,
    }
}

/// The server's end.
pub type Outlet = Writer<'static, Key, RECORDS>;
/// The client's end.
pub type Inlet = Reader<'static, Key, RECORDS>;

/// The server's end, and what it gives after it put something in.
///
/// # Errors
/// None for what the description grants.
pub fn outlet() -> Result<(Outlet, Semaphore), Errno> {
    Ok((pipe::writer("keyboard")?, Semaphore::open("keyboard.ready")?))
}

/// The client's end, and what it takes before it looks.
///
/// # Errors
/// None for what the description grants.
pub fn inlet() -> Result<(Inlet, Semaphore), Errno> {
    Ok((pipe::reader("keyboard")?, Semaphore::open("keyboard.ready")?))
}
