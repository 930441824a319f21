//! The services again, written to be obviously right and nothing else: vectors instead of lists,
//! every priority recomputed from nothing after every change, every search linear.
//!
//! The kernel's promises about order are stated here, in one place each:
//! - the most urgent place is run in, among equals the one that is first in `ready`; a thread that
//!   becomes ready goes last, one that yields in its own place last;
//! - a thread that waits for a mutex keeps its place: the end of its chain of owners runs there. If
//!   that one finds its mutex free it takes it; if it waits for something else, the place is given
//!   up until it wakes;
//! - a thread that asks a server waits for the mutex that the server holds. If the server waits for
//!   a request, it gets that of the thread before it in the chain;
//! - a hint is followed like a wait for a mutex, unless nobody could run then, or its thread runs;
//!   a thread that yields in its place ends it;
//! - of several waiters the most urgent is served, among equals the one that waits longest; who is
//!   parked with a waiter makes it as urgent, and last of its new equals.

pub mod life;
pub mod mail;
pub mod sync;
pub mod system;

use diapason_abi::{Errno, FaultCause, Handle, Kind, encode_result};
pub use system::{Blueprint, Model};

/// The object that a blocked thread waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The thread's time only; what its call returns then.
    Time(u64),
    Semaphore(usize),
    /// A mutex, and which life of it; what the call returns that has it (of a condition wait), or
    /// 0.
    Mutex(usize, u32, u64),
    /// A condition; the mutex, and which life of it.
    Condition(usize, usize, u32),
    /// A message, for this address.
    Receive(usize, u64),
    /// The answer of the server of a mailbox, which holds this mutex of this life; the address for
    /// it; and the request, until the server has it.
    Answer(usize, (usize, u32), u64, Option<(Vec<u8>, u32)>),
    /// Room for this message.
    Send(usize, Vec<u8>, u32),
    Event(usize),
    /// The end of a thread.
    Join(usize),
}

/// Where a thread is in its life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Life {
    /// No thread in this slot.
    Free,
    Ready,
    Blocked(Wait),
    /// Ended with this code, not joined yet.
    Ended(u64),
}

/// Periodic jobs of a thread slot.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Jobs {
    pub release: u64,
    pub period: u64,
    pub deadline: u64,
    pub active: bool,
    pub done: u64,
    pub misses: u64,
    pub skipped: u64,
    pub response_max: u64,
}

/// A slot for a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    pub process: usize,
    pub slot: u16,
    pub life: Life,
    pub generation: u32,
    pub priority: u8,
    /// The mutex it will lock next, and the one it will once it wakes.
    pub hint: Option<usize>,
    pub after: Option<usize>,
    /// With whom it is parked.
    pub parked_with: Option<usize>,
    /// The threads that are parked with it.
    pub parked: Vec<usize>,
    /// Result waiting to be delivered when it runs, and a message that goes to memory then.
    pub result: Option<u64>,
    pub delivery: Option<Delivery>,
    /// The time at which the thread's wait ends.
    pub due: Option<u64>,
    /// Mutexes it holds, the latest last.
    pub held: Vec<usize>,
    pub joiner: Option<usize>,
    pub detached: bool,
    pub jobs: Jobs,
    pub used: u64,
}

/// A slot for a semaphore.
#[derive(Clone, Default, Debug)]
pub struct Semaphore {
    pub key: u64,
    pub allowed: u64,
    pub initial: u64,
    pub alive: bool,
    pub generation: u32,
    pub mutex: bool,
    pub count: u32,
    pub owner: Option<usize>,
    pub owner_died: bool,
    /// In the order of their coming.
    pub waiters: Vec<usize>,
}

/// A slot for a condition.
#[derive(Clone, Default, Debug)]
pub struct Condition {
    pub key: u64,
    pub allowed: u64,
    pub alive: bool,
    pub generation: u32,
    pub waiters: Vec<usize>,
}

/// A mailbox of the model.
#[derive(Clone, Default, Debug)]
pub struct Mailbox {
    pub key: u64,
    pub allowed: u64,
    pub capacity: usize,
    pub faults_of: Option<usize>,
    /// The mutex that its server holds, and the caller whose request it took last.
    pub mutex: Option<usize>,
    pub client: Option<usize>,
    pub alive: bool,
    pub generation: u32,
    /// In the order of arrival.
    pub messages: Vec<(Vec<u8>, u32)>,
    pub receivers: Vec<usize>,
    pub senders: Vec<usize>,
    pub event: Option<usize>,
}

/// The source that raises an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Plain,
    /// The next expiry that nobody was told of (0: stopped), and those after it.
    Timer {
        period: u64,
        next: u64,
    },
    Irq(usize),
}

/// A slot for an event.
#[derive(Clone, Debug)]
pub struct Event {
    pub allowed: u64,
    pub alive: bool,
    pub generation: u32,
    pub source: Source,
    pub pending: u32,
    pub waiter: Option<usize>,
}

/// A device: the line's number, its kind, its event, and whether the line is let through.
#[derive(Clone, Debug)]
pub struct Device {
    pub key: u64,
    pub irq: u16,
    pub level: bool,
    /// The machine does not have it.
    pub absent: bool,
    pub event: Option<usize>,
    pub open: bool,
    pub mapped: Vec<usize>,
}

/// A segment: pages prepared, and who has it.
#[derive(Clone, Debug)]
pub struct Segment {
    pub key: u64,
    pub pages: u32,
    pub prepared: u32,
    /// Where devices find it, if it is for them.
    pub bus: Option<u64>,
    pub attached: Vec<usize>,
}

/// A process of the system.
#[derive(Clone, Debug)]
pub struct Process {
    pub key: u64,
    pub state: diapason_core::ProcessState,
    pub priority: u8,
    pub supervisor: Option<usize>,
    pub starters: u64,
    pub heap: u32,
    pub heap_max: u32,
    pub starts: u32,
    pub faults: u32,
    pub restarts_max: u32,
    pub backoff: u64,
}

/// A message and the address it goes to.
pub type Delivery = (u64, Vec<u8>);

/// How a call leaves its caller.
pub enum Outcome {
    Done(u64),
    /// The caller waits, or is gone.
    Away,
    /// The caller returns this error.
    Refused(Errno),
    Misuse(FaultCause, u64),
}

/// A call's outcome; refusals are early returns.
pub type Step = Result<Outcome, Outcome>;

/// The handle of a life of a slot.
pub fn handle(kind: Kind, index: usize, generation: u32) -> u64 {
    Handle::new(kind, index as u16, generation).0
}

/// Returns the result that a caller with `errno` sees.
pub fn error(errno: Errno) -> u64 {
    encode_result(Err(errno))
}

/// Returns the receipt for a receiver.
pub fn receipt(bytes: &[u8], priority: u32) -> u64 {
    (bytes.len() as u64) << 32 | u64::from(priority)
}
