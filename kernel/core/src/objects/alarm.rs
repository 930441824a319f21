//! The alarm of a thread.

use crate::ids::ThreadId;
use crate::pool::Id;
use diapason_abi::Nanos;

/// Names a group: the VCPU's place in its pool, or one of those below.
pub type Group = u8;

/// Place in no group.
pub(crate) const NO_GROUP: Group = Group::MAX;

/// The alarm of one thread and its place in the heap of its group.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    pub(crate) due: Nanos,
    pub(crate) left: ThreadId,
    pub(crate) right: ThreadId,
    pub(crate) above: ThreadId,
    /// Steps to the nearest gap on the right.
    pub(crate) depth: u8,
    pub(crate) group: Group,
}

impl Alarm {
    pub const UNSET: Alarm = Alarm {
        due: Nanos::FOREVER,
        left: Id::NONE,
        right: Id::NONE,
        above: Id::NONE,
        depth: 0,
        group: NO_GROUP,
    };

    /// Returns whether the alarm is set.
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.group != NO_GROUP
    }

    /// Returns when the alarm rings.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// The group it is in, if it is set.
    pub fn group(&self) -> Group {
        self.group
    }
}
