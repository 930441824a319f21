//! One channel: where it is between closed and open, and its slots for frames on their way.

use super::personality::BusParameters;
use super::{CloseCause, Mode};
use crate::class::can::Slots;
use diapason_abi::Nanos;

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

#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    /// The address of its entity; `None` before it is known.
    pub(super) entity: Option<u8>,
    pub(super) phase: Phase,
    /// Slots for frames that are not acknowledged.
    pub(super) slots: Slots,
}

impl Channel {
    pub(super) const NEW: Channel =
        Channel { entity: None, phase: Phase::Closed, slots: Slots::FREE };

    /// Goes to `phase`; a closed channel has nothing on its way.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Closed {
            self.slots.clear();
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
