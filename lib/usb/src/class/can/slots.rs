//! Slots for the frames of a channel that are on their way: a slot is taken when a frame is sent
//! and free again when the frame is through.

/// Most slots of a channel, whatever the device says.
pub const SLOTS_MAX: u16 = 128;

/// The slots of one channel.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Slots {
    /// Bit n: slot n holds a frame that is not acknowledged.
    used: u128,
    next: u16,
}

impl Slots {
    pub(in crate::class) const FREE: Slots = Slots { used: 0, next: 0 };

    /// Returns the next free slot of `slots`, in turn, and takes it.
    pub(in crate::class) fn take(&mut self, slots: u16) -> Option<u8> {
        let slots = slots.min(SLOTS_MAX);
        let free = |slot: &u16| self.used & 1 << slot == 0;
        let slot = (self.next..slots).chain(0..self.next.min(slots)).find(free)?;
        self.used |= 1 << slot;
        self.next = (slot + 1) % slots;
        Some(slot as u8)
    }

    /// Frees a slot; false if it was free.
    pub(in crate::class) fn free(&mut self, slot: u16) -> bool {
        let held = slot < SLOTS_MAX && self.used & 1 << slot != 0;
        if held {
            self.used &= !(1 << slot);
        }
        held
    }

    /// Frees all of them.
    pub(in crate::class) fn clear(&mut self) {
        self.used = 0;
    }

    pub(in crate::class) fn outstanding(&self) -> u32 {
        self.used.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_round_and_come_back_once() {
        let mut channel = Slots::FREE;
        assert!((0..16).all(|slot| channel.take(16) == Some(slot)));
        assert_eq!((channel.take(16), channel.outstanding()), (None, 16));
        assert!(channel.free(5) && !channel.free(5) && !channel.free(128) && !channel.free(4095));
        assert_eq!(channel.take(16), Some(5));
        let mut wide = Slots::FREE;
        assert_eq!((0..200).filter_map(|_| wide.take(1000)).count(), 128);
        assert_eq!(wide.take(0), None);
    }
}
