//! Reports of readers. A thread at the end of a pipe says once a second how the pipe does, and
//! wakes for that: it takes a place in the list of its VCPU, and a part of its budget.

use crate::calls::Calls;
use diapason_abi::{CallNumber, Nanos};
use diapason_pipe::bill::Service;
use diapason_pipe::measured::REPORT;

/// Records in which the server of an adapter reports on it, or on a socket, at most.
pub(crate) const FRAME_RECORDS: u64 = 4;

/// The supply of a thread that reports, for the work of its messages.
pub(crate) struct Reporting<'a> {
    service: &'a dyn Service,
    /// Most reports in a period, and what they take.
    count: u64,
    work: Nanos,
}

impl<'a> Reporting<'a> {
    /// Returns the supply `service` of a thread that reports.
    pub fn new(service: &'a dyn Service, calls: &Calls) -> Reporting<'a> {
        Reporting::saying(service, calls, 1)
    }

    /// Returns the supply `service` of a thread that reports with so many records.
    pub fn saying(service: &'a dyn Service, calls: &Calls, records: u64) -> Reporting<'a> {
        let said = calls.of(CallNumber::Log).0.saturating_mul(records);
        let each = calls.of(CallNumber::SemLock).0.saturating_add(said);
        let count = 1 + service.period().0 / REPORT.0;
        let work = each.saturating_mul(count);
        Reporting { service, count, work: Nanos(work) }
    }

    /// Returns the supply of a thread that has the ends of so many pipes. Each end has a record of
    /// its own, and its own time for it.
    pub fn of_ends(self, ends: u64) -> Reporting<'a> {
        let count = self.count.saturating_mul(ends);
        Reporting { count, work: Nanos(self.work.0.saturating_mul(ends)), ..self }
    }

    /// Returns the time that work takes, with that of reports.
    fn with(&self, work: Nanos, takes: impl FnOnce(Nanos) -> Nanos) -> Nanos {
        if work == Nanos::ZERO { Nanos::ZERO } else { takes(work + self.work) }
    }
}

impl Service for Reporting<'_> {
    fn budget(&self) -> Nanos {
        self.service.budget()
    }

    fn lost(&self) -> Nanos {
        self.service.lost() + self.work
    }

    fn period(&self) -> Nanos {
        self.service.period()
    }

    fn sync(&self, work: Nanos) -> Nanos {
        self.with(work, |work| self.service.sync(work))
    }

    fn any(&self, work: Nanos) -> Nanos {
        self.with(work, |work| self.service.any(work))
    }

    fn behind(&self, work: Nanos, brought: Nanos) -> Option<Nanos> {
        self.service.behind(work + self.work, brought)
    }

    fn wakeups(&self) -> u64 {
        match self.service.wakeups() {
            u64::MAX => u64::MAX,
            wakeups => wakeups.saturating_sub(self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_costs::{KERNEL, KernelTimes};

    /// A server whose work takes what it takes, in this period.
    struct Whole(Nanos);

    impl Service for Whole {
        fn budget(&self) -> Nanos {
            self.0
        }

        fn period(&self) -> Nanos {
            self.0
        }

        fn sync(&self, work: Nanos) -> Nanos {
            work
        }

        fn any(&self, work: Nanos) -> Nanos {
            work
        }

        fn wakeups(&self) -> u64 {
            3
        }
    }

    /// A list of four places had room for three wake-ups, and the reader was woken a fourth time
    /// for its report.
    #[test]
    fn each_report_takes_a_place_and_some_budget() {
        let calls = Calls::new(&KernelTimes::new(KERNEL, 1_000_000_000));
        let of = |millis| {
            let whole = Whole(Nanos::from_millis(millis));
            let reader = Reporting::new(&whole, &calls);
            (reader.wakeups(), reader.sync(Nanos(1)), reader.any(Nanos(1)), reader.lost())
        };
        let (wakeups, sync, any, lost) = of(2);
        assert_eq!((wakeups, any), (2, sync));
        assert!(sync > Nanos(1) && sync == lost + Nanos(1), "{sync} {lost}");
        assert_eq!(of(999), of(2));
        let twice = of(1_000);
        assert_eq!((twice.0, twice.3), (1, lost + lost));
        let whole = Whole(Nanos(10));
        assert_eq!(Reporting::new(&whole, &calls).sync(Nanos::ZERO), Nanos::ZERO);
        let ends = Reporting::new(&whole, &calls).of_ends(2);
        assert_eq!((ends.wakeups(), ends.lost()), (1, lost + lost), "one process, two pipes");
    }
}
