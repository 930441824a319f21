//! The processor's side of a pipe: whether there is room for other reservations, and setting them
//! all or none.

use crate::platform::Reserve;
use crate::policy::{PATIENCE, RETRY};
use alloc::vec::Vec;
use diapason_abi::archive::{BUDGET_MIN, PERIOD_MAX, PERIOD_MIN};
use diapason_abi::pipe::CLOSED;
use diapason_abi::{Errno, Nanos};

/// The VCPU of a place, and C and T before and after.
#[derive(Clone, Copy)]
pub struct Move {
    /// The place.
    pub place: usize,
    /// What it has.
    pub from: Terms,
    /// What it is to have.
    pub to: Terms,
}

/// C and T.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub budget: Nanos,
    pub period: Nanos,
}

impl Terms {
    /// What the thread of a closed pipe has.
    pub const CLOSED: Terms = Terms { budget: CLOSED.0, period: CLOSED.1 };

    /// As the kernel takes them: a budget that is of use, a period that is one. `None` if there are
    /// none such.
    pub fn possible(budget: Nanos, period: Nanos) -> Option<Terms> {
        let budget = budget.max(BUDGET_MIN);
        let fits = (PERIOD_MIN..=PERIOD_MAX).contains(&period) && budget <= period;
        fits.then_some(Terms { budget, period })
    }

    /// How much of `period` this is, rounded up.
    fn part_of(&self, period: Nanos) -> u128 {
        let part = u128::from(self.budget.0) * u128::from(period.0);
        part.div_ceil(u128::from(self.period.0.max(1)))
    }

    fn is_more_than(&self, other: &Terms) -> bool {
        let (mine, its) = (u128::from(self.budget.0), u128::from(other.budget.0));
        mine * u128::from(other.period.0) > its * u128::from(self.period.0)
    }
}

/// Would the core admit all of this, as far as one can tell without doing it? What becomes less is
/// not free at once, so only what becomes more counts.
pub fn fits(reserve: &mut impl Reserve, moves: &[Move]) -> bool {
    let more = || moves.iter().filter(|it| it.to.is_more_than(&it.from));
    let Some(shortest) = more().map(|it| it.to.period).min() else { return true };
    let wanted = more().map(|it| {
        let before = u128::from(it.from.budget.0) * u128::from(shortest.0);
        it.to.part_of(shortest) - before / u128::from(it.from.period.0.max(1))
    });
    let room = u128::from(reserve.fit(shortest).0);
    wanted.sum::<u128>() <= room
}

/// Set all of it. First what becomes more, so that nobody has less before everybody has enough.
///
/// # Errors
/// The terms that the kernel does not admit: everything is as it was then.
pub fn set(reserve: &mut impl Reserve, moves: &[Move]) -> Result<(), Terms> {
    let (more, less): (Vec<Move>, Vec<Move>) =
        moves.iter().partition(|it| it.to.is_more_than(&it.from));
    let mut done: Vec<Move> = Vec::with_capacity(moves.len());
    for it in more.iter().chain(&less).filter(|it| it.from != it.to) {
        if set_one(reserve, it.place, it.to).is_err() {
            for it in done.iter().rev() {
                let _ = set_one(reserve, it.place, it.from);
            }
            return Err(it.to);
        }
        done.push(*it);
    }
    Ok(())
}

/// What somebody else has just given back is not free yet: it is waited for.
fn set_one(reserve: &mut impl Reserve, place: usize, terms: Terms) -> Result<(), Errno> {
    let until = reserve.now() + PATIENCE;
    loop {
        match reserve.set(place, terms.budget, terms.period) {
            Err(Errno::Busy) if reserve.now() < until => reserve.rest(RETRY),
            done => return done,
        }
    }
}
