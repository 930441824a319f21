//! How many slots a buffer needs, computed from periods and deadlines at compile time.
//!
//! Let `x` be the largest number of writes that can touch the time of one read, from its load of
//! the count to its last word. Then `N = max(2, x + 1)` slots are enough, and with `x` slots some
//! read is torn. It remains to bound `x`. The bound depends on the scheduler's promise:
//!
//! | function | the schedule | `x` at most |
//! |---|---|---|
//! | [`depth_one_core`] | one core runs the most urgent ready job | `⌈(R + J) / P⌉` |
//! | [`depth_one_core_edf`] | so, by earliest deadline | also `1 + ⌊(d_r + J − d_w) / P⌋` |
//! | [`depth_any_schedule`] | any that meets the deadlines | `⌈(R + d_w) / P⌉` |
//!
//! `P`, `d_w`, `J` are the writer's period, deadline and release jitter, `R` is the longest time a
//! read can take ([`ReaderTiming::read_time_max`]), `d_r` the reader's deadline.
//!
//! **Choosing one.** The promise of the first two is easily lost: a server that runs out of budget
//! in the middle of a job lets less urgent jobs run, and so does a lock held across a write. If in
//! doubt take [`depth_any_schedule`]: it assumes only that deadlines are met, and costs at most one
//! slot more per period of `d_w`. [`depth_as_published`] is the formula of
//! [EMERALDS 1998, §3.4.2], one short in some cases; it is here to be compared, not to be used.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_state::depth::*;
//! const MS: fn(u64) -> Nanos = Nanos::from_millis;
//! let writer = WriterTiming::new(MS(5), MS(1));
//! let reader = ReaderTiming::new(MS(8), MS(6), MS(6));
//! assert_eq!(depth_as_published(writer, &[reader]), 2); // EDF tears this one
//! assert_eq!(depth_one_core_edf(writer, &[reader]), 3);
//! assert_eq!(depth_any_schedule(writer, &[reader]), 3);
//! ```

use diapason_abi::Nanos;

/// When the writer writes: once per job, jobs released at least `period` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriterTiming {
    /// Least time between two releases.
    pub period: Nanos,
    /// Each job has finished its write this long after its release. On several cores add the time
    /// a store takes to become visible elsewhere.
    pub deadline: Nanos,
    /// Longest time from a release to the moment the scheduler knows of it (timer latency).
    pub jitter: Nanos,
}

impl WriterTiming {
    /// Returns a writer without release jitter.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: if the period is zero, or the deadline is not in
    /// `0 < deadline <= period`.
    #[must_use]
    pub const fn new(period: Nanos, deadline: Nanos) -> Self {
        assert!(period.0 > 0, "a writer's period must not be zero");
        assert!(deadline.0 > 0, "a writer's deadline must not be zero");
        assert!(deadline.0 <= period.0, "a writer's deadline must not be after its next release");
        WriterTiming { period, deadline, jitter: Nanos::ZERO }
    }

    /// Lets the scheduler notice the writer up to `jitter` after each release.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: if the jitter exceeds the deadline.
    #[must_use]
    pub const fn with_jitter(self, jitter: Nanos) -> Self {
        assert!(jitter.0 <= self.deadline.0, "a writer released after its deadline cannot meet it");
        WriterTiming { jitter, ..self }
    }
}

/// How long a read can take: the longest job of the reader, and the read in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReaderTiming {
    /// Each job has finished this long after its release.
    pub deadline: Nanos,
    /// Worst execution time of a job, alone on the machine.
    pub work: Nanos,
    /// Worst execution time of one read in it, alone on the machine.
    pub read: Nanos,
}

impl ReaderTiming {
    /// Returns a reader.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: unless `0 < read <= work <= deadline`.
    #[must_use]
    pub const fn new(deadline: Nanos, work: Nanos, read: Nanos) -> Self {
        assert!(read.0 > 0, "a read takes some time");
        assert!(read.0 <= work.0, "the read is a part of the reader's work");
        assert!(work.0 <= deadline.0, "the reader's work does not fit before its deadline");
        ReaderTiming { deadline, work, read }
    }

    /// Returns the longest time from the begin to the end of a read, preemption included: what is
    /// left of the deadline when the rest of the job has had its time, `d − (c − c_r)`.
    ///
    /// Right only if the deadline is *guaranteed for every execution time up to `work`*; a reader
    /// that merely happens to meet its deadlines may take up to `deadline` for its read.
    #[must_use]
    pub const fn read_time_max(&self) -> Nanos {
        let elsewhere = self.work.0.saturating_sub(self.read.0);
        Nanos(self.deadline.0.saturating_sub(elsewhere))
    }
}

/// `⌈length / period⌉`: releases at least `period` apart in a half-open interval of `length`.
const fn releases_in(length: u64, period: u64) -> u64 {
    if period == 0 { u64::MAX } else { length.div_ceil(period) }
}

/// Most writes touching one read on one core, if at every moment the most urgent of the released
/// and unfinished jobs runs, and the order of two jobs never changes.
#[must_use]
pub const fn overlaps_one_core(writer: WriterTiming, reader: ReaderTiming) -> u64 {
    let window = reader.read_time_max().0.saturating_add(writer.jitter.0);
    at_least_one(releases_in(window, writer.period.0))
}

/// Most writes touching one read on one core under earliest deadline first.
#[must_use]
pub const fn overlaps_one_core_edf(writer: WriterTiming, reader: ReaderTiming) -> u64 {
    let any_priority = overlaps_one_core(writer, reader);
    let by_deadline = match urgent_window(writer, reader) {
        Some(window) if writer.period.0 > 0 => 1 + window / writer.period.0,
        Some(_) => u64::MAX,
        None => 0,
    };
    at_least_one(if by_deadline < any_priority { by_deadline } else { any_priority })
}

/// From the first to the last release of writer jobs that arrive after the reader and have a
/// deadline no later than the reader's; `None` if no job can.
const fn urgent_window(writer: WriterTiming, reader: ReaderTiming) -> Option<u64> {
    reader.deadline.0.saturating_add(writer.jitter.0).checked_sub(writer.deadline.0)
}

/// Most writes touching one read under any schedule that meets the deadlines, on any number of
/// cores.
#[must_use]
pub const fn overlaps_any_schedule(writer: WriterTiming, reader: ReaderTiming) -> u64 {
    let window = reader.read_time_max().0.saturating_add(writer.deadline.0);
    at_least_one(releases_in(window, writer.period.0))
}

/// Returns the `x_max` of [EMERALDS 1998], `1 + ⌊(R − (P − d_w)) / P⌋`. It can be one too small:
/// see the crate's tests for writers and readers that break it.
#[must_use]
pub const fn overlaps_as_published(writer: WriterTiming, reader: ReaderTiming) -> u64 {
    // The floor of a negative number above -1 is -1, which makes x_max zero.
    let slack = writer.period.0.saturating_sub(writer.deadline.0);
    match reader.read_time_max().0.checked_sub(slack) {
        Some(_) if writer.period.0 == 0 => u64::MAX,
        Some(rest) => 1 + rest / writer.period.0,
        None => 0,
    }
}

/// Returns a count of writes, at least 1: a read that begins inside a write always has that one,
/// and `N` is at least 2.
const fn at_least_one(writes: u64) -> u64 {
    if writes == 0 { 1 } else { writes }
}

/// `max(2, x + 1)`.
const fn slots(writes: u64) -> usize {
    let slots = at_least_one(writes).saturating_add(1);
    if slots > usize::MAX as u64 { usize::MAX } else { slots as usize }
}

/// Defines the depth for all readers of a message: that of the most demanding one.
macro_rules! depth_for_all {
    ($(#[$note:meta])* $name:ident, $overlaps:ident) => {
        $(#[$note])*
        #[must_use]
        pub const fn $name(writer: WriterTiming, readers: &[ReaderTiming]) -> usize {
            let mut depth = 2;
            let mut at = 0;
            while at < readers.len() {
                let needed = slots($overlaps(writer, readers[at]));
                if needed > depth {
                    depth = needed;
                }
                at += 1;
            }
            depth
        }
    };
}

depth_for_all!(
    /// Slots needed on one core under any scheduling by priority (fixed, EDF, or CSD's mixture),
    /// as long as no job is held back by a budget or a lock in the middle of a read or write.
    ///
    /// Readers that always outrank the writer may be left out: two slots are enough for them. So
    /// may slow readers ([`StateReader::read_slow`](crate::StateReader::read_slow)).
    depth_one_core,
    overlaps_one_core
);
depth_for_all!(
    /// Slots needed on one core under earliest deadline first: never more than
    /// [`depth_one_core`], and under the same conditions.
    depth_one_core_edf,
    overlaps_one_core_edf
);
depth_for_all!(
    /// Slots needed if nothing is known but that deadlines are met: readers and writer on
    /// different cores, servers with budgets, priorities that change.
    depth_any_schedule,
    overlaps_any_schedule
);
depth_for_all!(
    /// The N of [EMERALDS 1998], for comparison only: one short for some task sets.
    depth_as_published,
    overlaps_as_published
);

#[cfg(test)]
mod tests {
    use super::*;

    const fn writer(period: u64, deadline: u64) -> WriterTiming {
        WriterTiming::new(Nanos(period), Nanos(deadline))
    }

    const fn reader(deadline: u64, work: u64, read: u64) -> ReaderTiming {
        ReaderTiming::new(Nanos(deadline), Nanos(work), Nanos(read))
    }

    #[test]
    fn the_papers_figure_has_five_writes() {
        // [EMERALDS 1998, figure 3.4]: four whole periods after the first write.
        assert_eq!(overlaps_as_published(writer(10, 8), reader(42, 5, 5)), 5);
    }

    #[test]
    fn the_general_bound_is_the_papers_with_a_ceiling() {
        for (period, deadline, time) in [(5, 1, 8), (5, 5, 8), (4, 3, 9), (7, 2, 30), (3, 3, 3)] {
            let rest = time - (period - deadline);
            let corrected = 1 + u64::div_ceil(rest, period);
            let bound = overlaps_any_schedule(writer(period, deadline), reader(time, 1, 1));
            assert_eq!(bound, corrected);
        }
    }

    #[test]
    fn the_most_demanding_reader_counts() {
        let readers = [reader(5, 1, 1), reader(50, 1, 1), reader(20, 1, 1)];
        assert_eq!(depth_one_core(writer(10, 10), &readers), 6);
        assert_eq!(depth_one_core(writer(10, 10), &[]), 2);
    }

    #[test]
    fn jitter_widens_the_window_of_one_core_only() {
        let late = writer(10, 5).with_jitter(Nanos(1));
        assert_eq!(overlaps_one_core(writer(10, 5), reader(20, 1, 1)), 2);
        assert_eq!(overlaps_one_core(late, reader(20, 1, 1)), 3);
        assert_eq!(overlaps_any_schedule(late, reader(20, 1, 1)), 3);
        assert_eq!(overlaps_any_schedule(writer(10, 5), reader(20, 1, 1)), 3);
    }

    #[test]
    fn extreme_times_saturate() {
        let forever = ReaderTiming { deadline: Nanos::FOREVER, work: Nanos(1), read: Nanos(1) };
        assert_eq!(depth_any_schedule(writer(1, 1), &[forever]), usize::MAX);
        let broken = WriterTiming { period: Nanos(0), deadline: Nanos(0), jitter: Nanos(0) };
        assert_eq!(depth_one_core_edf(broken, &[forever]), usize::MAX);
    }
}
