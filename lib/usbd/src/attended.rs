//! Why the server or a branch is attended to, and what that leaves to be done.

use diapason_abi::Nanos;
use diapason_abi::pipe::PLACES;
use diapason_contract::can::CHANNELS;
use diapason_contract::link::LINKS;
use diapason_contract::threads::WORDS;

/// Why the server, or a branch of it, is attended to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WakeCause {
    Interrupt(u16),
    Time,
    /// A client wants something.
    Asked,
    /// A branch has left something for the server, or the server for a branch.
    Posts(u16),
}

/// Bells to be rung: bit n stands for the bell with number n, over all services.
pub type Fresh = u64;

// CAN channels and places have a bell each, and so have links and the other services. The service
// for both pipes of a device has two.
const _: () = assert!(CHANNELS + PLACES + LINKS + WORDS.len() < Fresh::BITS as usize);

/// The state of a branch after its thread, or a visit, was there.
#[derive(Clone, Copy, Default)]
pub struct Attended {
    /// Bells to be rung when nobody holds the branch.
    pub fresh: Fresh,
    /// There is something for the server: [`UsbServer::attend`](crate::UsbServer::attend) is to
    /// take it.
    pub posts: bool,
    pub wake: Nanos,
    /// Messages that were put into pipes.
    pub messages: u32,
    /// Transfers that had ended.
    pub transfers: u32,
}
