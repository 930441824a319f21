//! The processor's actions, instant by instant, and the state of every thread meanwhile.

use crate::observe::{Moment, Observer};
use diapason_abi::Nanos;
use diapason_core::{Cause, Decision, Kernel, Standing, ThreadId};
use std::collections::VecDeque;
use std::rc::Rc;

/// An action of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// The processor ran a thread.
    Thread(ThreadId),
    /// The processor ran the kernel, for this reason.
    Kernel(Cause),
    Idle,
}

/// A part of the time that a thread was concerned with something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistorySpan {
    pub from: Nanos,
    pub to: Nanos,
    /// The action of the processor.
    pub doing: Doing,
    /// Where the thread stood.
    pub standing: Standing,
}

/// Most stretches that are kept.
const STRETCHES_MAX: usize = 1 << 20;

/// A stretch of the processor's time, with where every thread stood.
struct Stretch {
    from: Nanos,
    to: Nanos,
    doing: Doing,
    standings: Rc<[Standing]>,
}

/// The events since the oldest instant that is not forgotten: without gaps, in order.
#[derive(Default)]
pub struct History {
    stretches: VecDeque<Stretch>,
    /// Where every thread stands since the last decision. All stretches until the next share it.
    standings: Rc<[Standing]>,
}

impl History {
    fn stretch(&mut self, from: Nanos, to: Nanos, doing: Doing) {
        if to <= from {
            return;
        }
        // A thread that runs on is told in pieces.
        if let Some(last) = self.stretches.back_mut()
            && (last.to, last.doing) == (from, doing)
            && Rc::ptr_eq(&last.standings, &self.standings)
        {
            last.to = to;
            return;
        }
        let standings = Rc::clone(&self.standings);
        self.stretches.push_back(Stretch { from, to, doing, standings });
        if self.stretches.len() > STRETCHES_MAX {
            self.stretches.pop_front();
        }
    }

    /// Returns the events from one instant to another, as this thread saw them.
    #[must_use]
    pub fn items(&self, thread: ThreadId, from: Nanos, to: Nanos) -> Vec<HistorySpan> {
        let slot = usize::from(thread.index());
        let mut items: Vec<HistorySpan> = Vec::new();
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        for s in self.stretches.range(first..).take_while(|stretch| stretch.from < to) {
            let (from, to) = (s.from.max(from), s.to.min(to));
            let standing = s.standings.get(slot).copied().unwrap_or(Standing::Absent);
            match items.last_mut() {
                Some(last) if (last.doing, last.standing) == (s.doing, standing) => last.to = to,
                _ => items.push(HistorySpan { from, to, doing: s.doing, standing }),
            }
        }
        items
    }

    /// Returns when this thread first stood so, from one instant to another.
    #[must_use]
    pub fn first(
        &self,
        thread: ThreadId,
        from: Nanos,
        to: Nanos,
        stood: impl Fn(Standing) -> bool,
    ) -> Option<Nanos> {
        let slot = usize::from(thread.index());
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let mut known = self.stretches.range(first..).take_while(|stretch| stretch.from < to);
        let standing = |s: &Stretch| s.standings.get(slot).copied().unwrap_or(Standing::Absent);
        known.find(|stretch| stood(standing(stretch))).map(|stretch| stretch.from.max(from))
    }

    /// Returns whether everything is known from `from` on.
    #[must_use]
    pub fn reaches(&self, from: Nanos) -> bool {
        self.stretches.front().is_some_and(|first| first.from <= from)
    }

    /// Returns the first end of an entry into the kernel for this reason that began at or after
    /// `from`, and ended by `to`.
    #[must_use]
    pub fn handled(&self, cause: Cause, from: Nanos, to: Nanos) -> Option<Nanos> {
        let first = self.stretches.partition_point(|stretch| stretch.to <= from);
        let known = self.stretches.range(first..).take_while(|stretch| stretch.to <= to);
        let is_it =
            |stretch: &&Stretch| stretch.doing == Doing::Kernel(cause) && stretch.from >= from;
        let mut of_it = known.skip_while(|stretch| !is_it(stretch));
        let mut end = of_it.next()?.to;
        // An entry is two moments.
        while let Some(next) = of_it.next().filter(|next| next.doing == Doing::Kernel(cause)) {
            end = next.to;
        }
        Some(end)
    }

    /// Forgets what ended before `oldest`.
    pub fn forget(&mut self, oldest: Nanos) {
        while self.stretches.len() > 1 && self.stretches[0].to <= oldest {
            self.stretches.pop_front();
        }
    }
}

impl Observer for History {
    fn moment(&mut self, from: Nanos, to: Nanos, what: Moment) {
        // Up to `from` nobody reported anything.
        let end = self.stretches.back().map_or(from, |last| last.to);
        self.stretch(end, from, Doing::Idle);
        let doing = match what {
            Moment::Runs(thread) => Doing::Thread(thread),
            Moment::Kernel(cause) => Doing::Kernel(cause),
        };
        self.stretch(from, to, doing);
    }

    fn decided(&mut self, _: Nanos, _: Nanos, kernel: &Kernel<'_>, _: &Decision) {
        self.standings = kernel.threads.ids().map(|id| kernel.standing_of(id)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(number: u16) -> ThreadId {
        ThreadId::new(number)
    }

    #[test]
    fn the_first_instant_at_which_a_thread_stands_somewhere() {
        let mut history = History::default();
        let mut stands = |standing, from, to| {
            history.standings = Rc::from([Standing::Absent, standing]);
            history.moment(Nanos(from), Nanos(to), Moment::Runs(thread(0)));
        };
        stands(Standing::Absent, 10, 14);
        stands(Standing::Ready, 14, 20);
        stands(Standing::Absent, 20, 30);
        let ready = |from, to| {
            let ready = |standing| standing == Standing::Ready;
            history.first(thread(1), Nanos(from), Nanos(to), ready)
        };
        assert_eq!(
            [ready(10, 30), ready(14, 15), ready(16, 30)],
            [14, 14, 16].map(|at| Some(Nanos(at)))
        );
        assert_eq!([ready(10, 14), ready(20, 30)], [None; 2]);
    }

    #[test]
    fn items_add_up_to_any_part_of_what_happened() {
        let mut history = History::default();
        history.moment(Nanos(10), Nanos(14), Moment::Kernel(Cause::Boot));
        history.moment(Nanos(14), Nanos(20), Moment::Runs(thread(1)));
        history.moment(Nanos(30), Nanos(32), Moment::Kernel(Cause::Irq(3)));
        history.moment(Nanos(32), Nanos(33), Moment::Kernel(Cause::Irq(3)));
        for (from, to) in [(10, 33), (12, 25), (15, 16), (20, 30), (31, 33)] {
            let items = history.items(thread(1), Nanos(from), Nanos(to));
            let sum: u64 = items.iter().map(|item| (item.to - item.from).0).sum();
            assert_eq!(sum, to - from);
            assert!(items.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
        let doings = |from, to| -> Vec<Doing> {
            let items = history.items(thread(1), Nanos(from), Nanos(to));
            items.iter().map(|item| item.doing).collect()
        };
        let (runs, irq) = (Doing::Thread(thread(1)), Doing::Kernel(Cause::Irq(3)));
        assert_eq!(doings(14, 33), [runs, Doing::Idle, irq]);
        let handled = |from, to| history.handled(Cause::Irq(3), Nanos(from), Nanos(to));
        assert_eq!([handled(9, 33), handled(30, 33)], [Some(Nanos(33)); 2]);
        assert_eq!([handled(33, 40), handled(9, 31)], [None; 2]);
        history.forget(Nanos(20));
        assert!(history.reaches(Nanos(20)) && !history.reaches(Nanos(19)));
    }
}
