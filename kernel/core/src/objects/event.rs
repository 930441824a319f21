//! Events: what interrupts, timers and arrivals raise, and one thread waits for.

use crate::ids::{EventId, EventTag, ThreadId};
use crate::pool::{FREE, Id, Pooled, Private};
use diapason_abi::Nanos;

/// The source that raises an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Only what it was attached to (a mailbox).
    Plain,
    /// The clock; zero period: once.
    Timer {
        period: Nanos,
        /// The next one; for ever: it is stopped.
        next: Nanos,
    },
    /// The interrupt of a declared device.
    Irq(u16),
}

/// One event slot; slots belong to processes.
pub struct Event {
    /// The event's handle, or [`FREE`] while it does not exist.
    pub handle: u64,
    pub(crate) generation: u32,
    pub(crate) source: Source,
    /// Occurrences nobody has waited for yet.
    pub pending: u32,
    pub(crate) waiter: ThreadId,
    /// The process whose slot it is.
    pub(crate) allowed: u64,
    /// Until when that waits.
    pub(crate) deadline: Nanos,
    pub(crate) next_free: EventId,
}

impl Pooled for Event {
    type Tag = EventTag;
}

impl Event {
    /// A free slot of no process.
    pub const EMPTY: Event = Event {
        handle: FREE,
        generation: 0,
        source: Source::Plain,
        pending: 0,
        waiter: Id::NONE,
        allowed: 0,
        deadline: Nanos::FOREVER,
        next_free: Id::NONE,
    };
}

impl Private for Event {
    /// A slot whose generations are used up stays empty for ever, so that no old handle becomes
    /// valid again.
    fn is_spare(&self) -> bool {
        self.handle == FREE && self.generation < u32::MAX
    }

    fn link(&mut self) -> &mut EventId {
        &mut self.next_free
    }
}
