//! The processor's side of a pipe: other reservations are set all or none. The kernel has room for
//! all that the description lets pipes ask for.

use crate::platform::Reserve;
use crate::policy::{PATIENCE, RETRY};
use alloc::vec::Vec;
use diapason_abi::archive::{BUDGET_MIN, PERIOD_MAX, PERIOD_MIN};
use diapason_abi::pipe::CLOSED;
use diapason_abi::{Errno, Nanos};

/// The VCPU of a place, and C and T before and after.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub place: usize,
    pub from: Terms,
    pub to: Terms,
}

impl Move {
    fn grows(&self) -> bool {
        self.to.is_more_than(&self.from)
    }
}

/// The budget C and the period T.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub budget: Nanos,
    pub period: Nanos,
}

impl Terms {
    /// The terms of a closed pipe's thread.
    pub const CLOSED: Terms = Terms { budget: CLOSED.0, period: CLOSED.1 };

    /// Returns the terms as the kernel takes them: a budget that is of use, a period that is one.
    /// `None` if there are none such.
    pub fn possible(budget: Nanos, period: Nanos) -> Option<Terms> {
        let budget = budget.max(BUDGET_MIN);
        let fits = (PERIOD_MIN..=PERIOD_MAX).contains(&period) && budget <= period;
        fits.then_some(Terms { budget, period })
    }

    fn is_more_than(&self, other: &Terms) -> bool {
        let (mine, its) = (u128::from(self.budget.0), u128::from(other.budget.0));
        mine * u128::from(other.period.0) > its * u128::from(self.period.0)
    }
}

/// The result of [`set`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The present terms of each move's VCPU.
    pub standing: Vec<Terms>,
    /// The terms that the kernel did not admit. Nobody has less than before then.
    pub refused: Option<Terms>,
}

/// Sets all of it: first what becomes more, so that nobody has less before everybody has enough.
///
/// A refusal of more takes back what was set before it. That, or setting less, may not succeed in
/// time: such a VCPU keeps more than it is to have, which breaks no promise, and the outcome says
/// so.
pub fn set(reserve: &mut impl Reserve, moves: &[Move]) -> Outcome {
    let mut standing: Vec<Terms> = moves.iter().map(|it| it.from).collect();
    let differs = |it: &Move| it.from != it.to;
    let mut refused = None;
    for (number, it) in moves.iter().enumerate().filter(|(_, it)| differs(it) && it.grows()) {
        if set_one(reserve, it.place, it.to).is_err() {
            refused = Some(it.to);
            break;
        }
        standing[number] = it.to;
    }
    let later = moves.iter().zip(&mut standing);
    for (it, has) in later.filter(|(it, _)| differs(it) && it.grows() == refused.is_some()) {
        let to = if refused.is_some() { it.from } else { it.to };
        if *has != to && set_one(reserve, it.place, to).is_ok() {
            *has = to;
        }
    }
    Outcome { standing, refused }
}

/// A share that another has just released is not free yet, so this function waits for it.
fn set_one(reserve: &mut impl Reserve, place: usize, terms: Terms) -> Result<(), Errno> {
    let until = reserve.now() + PATIENCE;
    loop {
        match reserve.set(place, terms.budget, terms.period) {
            Err(Errno::Busy) if reserve.now() < until => reserve.rest(RETRY),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Nanos = Nanos::from_millis(10);

    fn terms(micros: u64) -> Terms {
        Terms { budget: Nanos::from_micros(micros), period: T }
    }

    #[test]
    fn a_budget_fits_into_its_period() {
        let period = Nanos::from_millis(1);
        let whole = Terms { budget: period, period };
        assert_eq!(Terms::possible(period, period), Some(whole));
        assert_eq!(Terms::possible(period + Nanos(1), period), None);
        assert_eq!(Terms::possible(BUDGET_MIN, PERIOD_MAX + Nanos(1)), None);
    }

    fn moves(all: &[(u64, u64)]) -> Vec<Move> {
        let each = all.iter().enumerate();
        each.map(|(place, (from, to))| Move { place, from: terms(*from), to: terms(*to) }).collect()
    }

    /// A core that refuses or delays what a test says, call by call.
    #[derive(Default)]
    struct Core {
        has: Vec<Terms>,
        calls: usize,
        /// Calls that are refused: by their number, and with which error.
        refusals: Vec<(usize, Errno)>,
        /// Until then every call is too early.
        busy: Nanos,
        now: Nanos,
    }

    impl Core {
        fn with(moves: &[Move]) -> Core {
            Core { has: moves.iter().map(|it| it.from).collect(), ..Core::default() }
        }
    }

    impl Reserve for Core {
        fn set(&mut self, place: usize, budget: Nanos, period: Nanos) -> Result<(), Errno> {
            self.calls += 1;
            let refused = self.refusals.iter().find(|(call, _)| *call == self.calls);
            if let Some((_, errno)) = refused {
                return Err(*errno);
            }
            if self.now < self.busy {
                return Err(Errno::Busy);
            }
            self.has[place] = Terms { budget, period };
            Ok(())
        }

        fn now(&mut self) -> Nanos {
            self.now
        }

        fn rest(&mut self, time: Nanos) {
            self.now += time;
        }
    }

    #[test]
    fn everybody_has_enough_before_anybody_has_less() {
        let moves = moves(&[(300, 100), (100, 400), (50, 50)]);
        let mut core = Core::with(&moves);
        core.refusals.push((2, Errno::Overload));
        let done = set(&mut core, &moves);
        // The first call was the one that grows; the shrinking one was refused, and keeps more.
        assert_eq!(done.standing, [terms(300), terms(400), terms(50)]);
        assert_eq!((done.refused, core.calls), (None, 2));
        assert_eq!(core.has, done.standing);
    }

    #[test]
    fn a_refusal_at_any_step_leaves_nobody_with_less() {
        let moves = moves(&[(100, 200), (500, 300), (100, 300), (200, 900)]);
        for call in 1..=3 {
            let mut core = Core::with(&moves);
            core.refusals.push((call, Errno::Overload));
            let done = set(&mut core, &moves);
            assert!(done.refused.is_some(), "{call}");
            assert_eq!(core.has, moves.iter().map(|it| it.from).collect::<Vec<_>>(), "{call}");
            assert_eq!(done.standing, core.has, "{call}");
        }
    }

    #[test]
    fn a_step_back_that_fails_is_known() {
        let moves = moves(&[(100, 200), (100, 300)]);
        let mut core = Core::with(&moves);
        core.refusals.extend([(2, Errno::Overload), (3, Errno::Overload)]);
        let done = set(&mut core, &moves);
        assert_eq!(done.refused, Some(terms(300)));
        assert_eq!(done.standing, [terms(200), terms(100)]);
        assert_eq!(core.has, done.standing);
    }

    /// Every set of calls may fail, those of a roll-back, too: nobody has less than is promised.
    #[test]
    fn whatever_is_refused_nobody_has_less_than_promised() {
        let moves = moves(&[(100, 200), (500, 300), (100, 300), (700, 50), (80, 80), (200, 900)]);
        for calls in 0..1_u32 << 8 {
            let mut core = Core::with(&moves);
            let refused = (0..8).filter(|call| calls >> call & 1 != 0);
            core.refusals.extend(refused.map(|call| (call + 1, Errno::Overload)));
            let done = set(&mut core, &moves);
            assert_eq!(done.standing, core.has, "{calls:b}");
            let grows = calls & 0b111 == 0;
            assert_eq!(done.refused.is_none(), grows, "{calls:b}");
            for (it, has) in moves.iter().zip(&core.has) {
                let promised = if grows { it.to } else { it.from };
                assert!(!promised.is_more_than(has), "{calls:b}");
                assert!(*has == it.from || *has == it.to, "{calls:b}");
            }
        }
    }

    #[test]
    fn what_is_not_free_yet_is_waited_for() {
        let moves = moves(&[(100, 200)]);
        let mut core = Core { busy: Nanos::from_millis(300), ..Core::with(&moves) };
        assert_eq!(set(&mut core, &moves).refused, None);
        assert_eq!(core.has, [terms(200)]);
        let mut core = Core { busy: PATIENCE + Nanos::from_secs(1), ..Core::with(&moves) };
        assert_eq!(set(&mut core, &moves).refused, Some(terms(200)));
        assert!(core.now >= PATIENCE);
    }
}
