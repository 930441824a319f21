//! The supply of a bottom half, with what follows from its work for each wake-up.

use super::io::IoSupply;
use super::model::SharedCore;
use diapason_abi::Nanos;
use diapason_pipe::bill::Service;

/// The supply of a bottom half.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BottomHalf {
    supply: IoSupply,
    /// By when all is done that a wake-up brought, if none waits for a grant.
    done: Option<Nanos>,
    /// The VCPUs of the core, if more is known of them than the share of this bottom half.
    known: Option<SharedCore>,
}

impl BottomHalf {
    /// Returns a bottom half of which nothing is known but its share.
    #[must_use]
    pub fn of(supply: IoSupply) -> BottomHalf {
        BottomHalf { supply, done: None, known: None }
    }

    /// Returns the bottom half at `place` of a core on which its work is known
    /// ([`SharedCore::knowing`]).
    #[must_use]
    pub fn knowing(self, known: SharedCore, place: usize) -> BottomHalf {
        let done = known.ios.get(place).and_then(|io| io.woken).map(|woken| woken.done);
        let supply = IoSupply::inherited(&known, place).unwrap_or(self.supply);
        BottomHalf { supply, done, known: Some(known) }
    }

    /// Returns the VCPUs of the core, if more is known of them than the share of this bottom half.
    #[must_use]
    pub fn known(&self) -> Option<&SharedCore> {
        self.known.as_ref()
    }

    fn soon(&self, work: Nanos, late: Nanos) -> Nanos {
        self.done.filter(|_| work > Nanos::ZERO).map_or(late, |done| late.min(done))
    }
}

impl Service for BottomHalf {
    fn budget(&self) -> Nanos {
        Service::budget(&self.supply)
    }

    fn lost(&self) -> Nanos {
        Service::lost(&self.supply)
    }

    fn period(&self) -> Nanos {
        Service::period(&self.supply)
    }

    fn sync(&self, work: Nanos) -> Nanos {
        self.soon(work, Service::sync(&self.supply, work))
    }

    fn any(&self, work: Nanos) -> Nanos {
        self.soon(work, Service::any(&self.supply, work))
    }

    fn wakeups(&self) -> u64 {
        Service::wakeups(&self.supply)
    }
}
