//! Places for tuned pipes: names and sizes. The content of their mailboxes is
//! `diapason_pipe::tuned::{Request, DiskAnswer}`; that of their rings is `diapason_can::exchange`.
//!
//! A place for a pipe is a ring, a semaphore, two mailboxes and a VCPU, shared by the server and
//! one program. The server writes the ring, gives the semaphore, and sets the VCPU.

use diapason_abi::pipe::PLACES;

/// Records in the ring of a place.
pub const RECORDS: usize = diapason_abi::pipe::SLOTS;

/// Bytes of a message in a quality of service: a frame as Linux has it.
pub const MESSAGE_BYTES: u64 = 16;

/// Names of a place's objects.
#[derive(Clone, Copy, Debug)]
pub struct PlaceNames {
    pub ring: &'static str,
    /// Given when something was put into the ring.
    pub ready: &'static str,
    /// The mailbox of questions, from the program.
    pub questions: &'static str,
    /// The mailbox of answers.
    pub answers: &'static str,
    /// The VCPU of the pipe's thread.
    pub vcpu: &'static str,
    /// The ring of a pipe to a device.
    pub out: &'static str,
    /// The server's reports about it.
    pub reports: &'static str,
    /// The mailbox that wakes the server.
    pub control: &'static str,
}

/// The names of one place.
macro_rules! names {
    ($name:literal) => {
        PlaceNames {
            ring: $name,
            ready: concat!($name, ".ready"),
            questions: concat!($name, ".ask"),
            answers: concat!($name, ".answer"),
            vcpu: concat!($name, ".vcpu"),
            out: concat!($name, ".out"),
            reports: concat!($name, ".report"),
            control: concat!($name, ".control"),
        }
    };
}

const NAMES: [PlaceNames; PLACES] =
    [names!("tpipe0"), names!("tpipe1"), names!("tpipe2"), names!("tpipe3"), names!("tpipe4")];

/// Returns the names of the place of this number, if there is one.
#[must_use]
pub fn names(place: usize) -> Option<&'static PlaceNames> {
    NAMES.get(place)
}
