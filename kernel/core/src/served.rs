//! This kernel serves the calls and the kinds of objects that it is compiled with.
//!
//! Every table of calls asks [`SERVED`], and so does every pool. A call that is left out is
//! refused, and a kind that is left out has no object, so the compiler drops the code that only
//! they reach. The tools set the variable for the kernel of one description
//! (`cli/src/own_kernel.rs`). Without it the kernel serves everything.

use diapason_abi::served::{Facility, Served};

/// The calls and services of this kernel.
pub const SERVED: Served = match option_env!("DIAPASON_SERVED") {
    None => Served::ALL,
    Some(text) => match Served::parse(text) {
        Some(served) => served,
        None => panic!("DIAPASON_SERVED is no set of calls and services"),
    },
};

/// Threads say which mutex they lock next. A kernel without hints takes no notice of them.
pub(crate) const HINTS: bool = SERVED.has(Facility::Hints);

/// Mailboxes may have a mutex. A kernel without such has no short or long way for their calls.
pub(crate) const SERVERS: bool = SERVED.has(Facility::Servers);

/// Tells the ids of one kind of objects apart from others, and whether there are any.
pub trait Tag {
    /// This kernel can have objects of the kind.
    const EXISTS: bool;
    /// The lowest index that no object of the kind has.
    const END: u16 = if Self::EXISTS { u16::MAX } else { 0 };
}

/// Objects that only some descriptions have.
macro_rules! optional {
    ($($tag:ident of $service:ident,)*) => {
        $(impl Tag for crate::ids::$tag {
            const EXISTS: bool = SERVED.has(Facility::$service);
        })*
    };
}

optional! {
    SemaphoreTag of Semaphores,
    ConditionTag of Conditions,
    MailboxTag of Mailboxes,
    MessageTag of Mailboxes,
    EventTag of Events,
    SegmentTag of Segments,
    DeviceTag of Devices,
    FrameTag of Frames,
    VcpuTag of Vcpus,
}

impl Tag for crate::ids::ThreadTag {
    const EXISTS: bool = true;
}

impl Tag for crate::ids::ProcessTag {
    const EXISTS: bool = true;
}
