//! The test itself: which VCPU fails first, and why.

use super::demand::{self, Overfull};
use super::level::Late;
use super::model::{Queue, SharedCore};
use super::response::{self, Response};
use diapason_abi::Nanos;

/// Why a VCPU does not get its budget in every period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortfall {
    /// Worst-case time from eligibility until its budget is used; `None`: it may wait for ever.
    Late(Option<Nanos>),
    /// In some window, the queues up to its own have more to do by their deadlines than fits.
    Overfull {
        /// Length of the window.
        window: Nanos,
        /// The work that must be done in the window.
        demand: Nanos,
    },
    /// In the long run its queue and those above want more than the whole processor.
    Overload,
    /// So close to the edge that the test gives up. Counts as a failure.
    Undecided,
}

/// The test, for those that come at `place` of the order or later.
pub(super) fn test(
    system: &SharedCore,
    order: &[usize],
    place: usize,
    mut found: impl FnMut(Response),
) -> Result<(), (usize, Shortfall)> {
    let mut at = 0;
    while let Some(Queue::Dp(number)) = order.get(at).map(|index| system.mains[*index].queue) {
        let queue = Queue::Dp(number);
        let rest = order[at..].iter();
        let end = at + rest.take_while(|index| system.mains[**index].queue == queue).count();
        if end > place {
            let members = &order[at..end];
            demand::of_queue(system, queue).map_err(|full| blamed(system, members, full))?;
            members.iter().for_each(|vcpu| {
                let limit = system.mains[*vcpu].period;
                found(Response { vcpu: *vcpu, response: limit, limit, exact: false });
            });
        }
        at = end;
    }
    let fixed = response::of_fixed_priorities(system, order, at.max(place), found);
    fixed.map_err(|(vcpu, late)| {
        let failure = match late {
            Late::Undecided => Shortfall::Undecided,
            Late::Never => Shortfall::Late(None),
            Late::After(_) => Shortfall::Late(response::however_late(system, order, vcpu)),
        };
        (vcpu, failure)
    })
}

/// Returns the member of a DP queue that a failure is shown at: the last with a deadline in the
/// window, or the first that is too much in the long run.
fn blamed(system: &SharedCore, members: &[usize], full: Overfull) -> (usize, Shortfall) {
    let last = members.last().copied().unwrap_or_default();
    match full {
        Overfull::Window(window, demand) => {
            let due = |vcpu: &&usize| window / system.mains[**vcpu].period.0.max(1);
            let deadline = |vcpu: &&usize| due(vcpu).saturating_mul(system.mains[**vcpu].period.0);
            let vcpu = members.iter().max_by_key(deadline).copied().unwrap_or(last);
            (vcpu, Shortfall::Overfull { window: Nanos(window), demand: Nanos(demand) })
        }
        Overfull::Rate => (last, Shortfall::Overload),
        Overfull::Undecided => (last, Shortfall::Undecided),
    }
}
