//! One channel: where it is between closed and open, and its slots for frames on their way.

use super::personality::BusParameters;
use diapason_abi::Nanos;

/// Most slots of a channel, whatever the device says.
pub(super) const SLOTS_MAX: u16 = 128;

/// Where a channel is. Each phase that waits for an answer knows its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Closed,
    /// The channel's parameters are set and read back.
    Setting {
        deadline: Nanos,
        wanted: BusParameters,
        mode: Mode,
    },
    Starting {
        deadline: Nanos,
    },
    Open,
    Flushing {
        deadline: Nanos,
        cause: CloseCause,
    },
    Stopping {
        deadline: Nanos,
        cause: CloseCause,
    },
}

/// How a channel takes part in its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Sends, acknowledges, reports errors.
    Normal,
    /// Is not seen on the bus.
    ListenOnly,
}

/// Why a channel was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseCause {
    /// The closing was asked for.
    Asked,
    /// The controller went bus-off: its frames did not get through.
    BusOff,
    NotOpened,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// The address of its entity; `None` before it is known.
    pub(super) entity: Option<u8>,
    pub(super) phase: Phase,
    /// Bit n: slot n holds a frame that is not acknowledged.
    used: u128,
    next: u16,
}

impl Channel {
    pub(super) const NEW: Channel =
        Channel { entity: None, phase: Phase::Closed, used: 0, next: 0 };

    /// Returns the next free slot of `slots`, in turn, and takes it.
    pub(super) fn take(&mut self, slots: u16) -> Option<u8> {
        let slots = slots.min(SLOTS_MAX);
        let free = |slot: &u16| self.used & 1 << slot == 0;
        let slot = (self.next..slots).chain(0..self.next.min(slots)).find(free)?;
        self.used |= 1 << slot;
        self.next = (slot + 1) % slots;
        Some(slot as u8)
    }

    /// Frees a slot; false if it was free.
    pub(super) fn free(&mut self, slot: u16) -> bool {
        let held = slot < SLOTS_MAX && self.used & 1 << slot != 0;
        if held {
            self.used &= !(1 << slot);
        }
        held
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.used.count_ones()
    }

    /// Goes to `phase`; a closed channel has nothing on its way.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Closed {
            self.used = 0;
        }
    }

    pub(super) const fn deadline(&self) -> Nanos {
        match self.phase {
            Phase::Closed | Phase::Open => Nanos::FOREVER,
            Phase::Setting { deadline, .. }
            | Phase::Starting { deadline }
            | Phase::Flushing { deadline, .. }
            | Phase::Stopping { deadline, .. } => deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_round_and_come_back_once() {
        let mut channel = Channel::NEW;
        assert!((0..16).all(|slot| channel.take(16) == Some(slot)));
        assert_eq!((channel.take(16), channel.outstanding()), (None, 16));
        assert!(channel.free(5) && !channel.free(5) && !channel.free(128) && !channel.free(4095));
        assert_eq!(channel.take(16), Some(5));
        let mut wide = Channel::NEW;
        assert_eq!((0..200).filter_map(|_| wide.take(1000)).count(), 128);
        assert_eq!(wide.take(0), None);
    }
}
