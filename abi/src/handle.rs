//! Handles: what a program holds of a kernel object.

/// The kinds of object a handle can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A thread of the caller's own process.
    Thread = 1,
    /// A mutex or counting semaphore.
    Semaphore = 2,
    Condition = 3,
    Mailbox = 4,
    /// A source of events: a timer, an interrupt, a mailbox's arrivals.
    Event = 5,
    Vcpu = 6,
}

/// A pool slot, the kind of object in it, and which of the slot's successive lives is meant.
///
/// The generation is never reused (32 bits), so a handle to a deleted object is recognized for
/// ever. Zero is no handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(transparent)]
pub struct Handle(pub u64);

impl Handle {
    pub const NONE: Handle = Handle(0);

    /// Returns the handle of generation `generation` (1 or more) of slot `index`.
    #[must_use]
    pub const fn new(kind: Kind, index: u16, generation: u32) -> Handle {
        Handle((kind as u64) << 48 | (generation as u64) << 16 | index as u64)
    }

    /// Returns the slot in its pool.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.0 as u16
    }

    /// Returns the slot's life that is meant.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// Returns the bits that say the kind; compare with `Kind as u16`.
    #[must_use]
    pub const fn kind_bits(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let h = Handle::new(Kind::Mailbox, 0xfedc, 0xdead_beef);
        assert_eq!((h.index(), h.generation()), (0xfedc, 0xdead_beef));
        assert_eq!(h.kind_bits(), Kind::Mailbox as u16);
        assert!((h.0 as i64) > 0, "a handle must not look like an error");
    }
}
