//! Class drivers as state machines: no hardware, no clock, no memory but their own.
//!
//! All have one shape, [`Class`]. The shell around them (the driver process, the simulator, a test)
//! does three things:
//!
//! ```text
//!            request(now)                 complete(now, how it ended)
//!   class ------------------> shell ------------------------------------> class
//!           what to transfer    |     wake(now), not before next_wake()
//!                               +--> events, told during complete() and wake()
//! ```
//!
//! 1. It takes requests until there is none, and does the transfers. Transfers of one endpoint end
//!    in the order in which they were asked for. Bytes of a request are valid until the next call.
//! 2. It reports how each transfer ended, once, and takes requests again.
//!    It may ask at once whether the same is wanted again ([`Class::renew`]).
//! 3. It calls `wake` at `next_wake`: time-outs are the class's, the clock is the shell's.
//!
//! **Faults.** After a fault an endpoint takes no transfers: what was pending on it ends with
//! [`TransferFault::Cancelled`], in order, until the class asks for [`Request::Recover`].
//! [`Request::Cancel`] makes all transfers of an endpoint end so; it has no completion of its own.
//! An isochronous endpoint does not halt: a fault costs one interval, and it goes on. The control
//! endpoint gets up by itself.
//!
//! **Shared memory.** Some classes can leave data where a client finds it ([`Request::Shared`]):
//! then they say where, and see no more of it than its head.
//!
//! Events may borrow the received bytes: a caller that wants to keep them copies them, no other has
//! to.

pub mod can;
mod cdc;
pub mod cdc_acm;
pub mod cdc_ecm;
pub mod endpoint;
mod flow;
pub mod gs_usb;
pub mod hid;
pub mod hub;
pub mod kvaser;
pub mod link;
pub mod mass_storage;
pub mod pair;
pub mod sink;
pub mod uvc;

use crate::Setup;
use diapason_abi::Nanos;

/// A driver of one function of a device. It owns all its memory.
pub trait Class: 'static {
    /// The event that the class reports. It may borrow received bytes.
    type Event<'a>;

    /// The next transfer it wants now, if any.
    fn request(&mut self, now: Nanos) -> Option<Request<'_>>;

    /// A transfer it asked for has ended.
    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(Self::Event<'_>));

    /// Begins another transfer from an endpoint whose last one has just ended well, if the class
    /// wants one at once, and returns its bytes. A shell that asks need not find new memory for it.
    /// It ends as one that [`Class::request`] asked for.
    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        let _ = endpoint;
        None
    }

    /// A transfer with shared memory has ended. Only classes that ask for such have to listen.
    fn landed(&mut self, now: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(Self::Event<'_>)) {
        let _ = (now, done, tell);
    }

    /// Returns when it wants to be woken; [`Nanos::FOREVER`] if never.
    fn next_wake(&self) -> Nanos;

    /// Tells the driver the time. Early or frequent calls do no harm.
    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(Self::Event<'_>));
}

/// A transfer that a class wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// A control transfer. `data` goes to the device; it is empty if the device answers.
    Control {
        setup: Setup,
        /// The data of the request.
        data: &'a [u8],
    },
    /// As many bytes from an endpoint, or fewer. Of an isochronous one: what one interval brings.
    In { endpoint: u8, length: usize },
    /// These bytes to an endpoint; none is a packet without data.
    Out { endpoint: u8, data: &'a [u8] },
    /// Bytes between an endpoint and memory that is shared with a client, which nobody copies. The
    /// endpoint's address says which way they go. Ends with [`Class::landed`].
    Shared {
        endpoint: u8,
        /// Where they are or go, as the shell's client counts.
        place: u32,
        /// As many, or fewer from the device.
        length: usize,
    },
    /// Make a halted endpoint work again: in the controller, and with `CLEAR_FEATURE` in the
    /// device. Ends like a transfer of that endpoint.
    Recover { endpoint: u8 },
    /// Choose an alternate setting: reserve its bandwidth, configure its endpoints, tell the
    /// device. Ends like a control transfer.
    Alternate { interface: u8, alternate: u8 },
    /// End all that is pending on an endpoint.
    Cancel {
        /// The endpoint's address; 0 for control.
        endpoint: u8,
    },
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion<'a> {
    /// Address of its endpoint; 0 for control.
    pub endpoint: u8,
    /// The bytes that moved, in whichever direction.
    pub result: Result<&'a [u8], TransferFault>,
}

/// How a transfer with shared memory ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Landed<'a> {
    /// Address of its endpoint.
    pub endpoint: u8,
    /// As it was asked for.
    pub place: u32,
    /// How many bytes moved.
    pub result: Result<usize, TransferFault>,
    /// The first of them, if they came from the device: [`HEAD`] or all.
    pub head: &'a [u8],
}

/// Bytes that the class sees of data that landed in shared memory.
pub const HEAD: usize = 12;

/// Why a transfer did not do what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransferFault {
    /// The device does not do that.
    Stall,
    /// The wire, or the device, damaged it: also too many bytes, or no answer.
    Damaged,
    /// Asked for, or a consequence of another fault.
    Cancelled,
    /// The class's own time-out.
    Late,
    /// There is no room on the bus for this setting.
    NoBandwidth,
    /// The device is gone.
    Gone,
}
