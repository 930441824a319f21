//! In which order threads had the mutex, and when nobody wanted to run: what decides whether the
//! times of two machines can be held against each other.
//!
//! There is one mutex, so it is unlocked in the order in which it was locked.

use diapason_abi::CallNumber;
use diapason_abi::recorder::{Entry, EntryKind};

const NOBODY: u16 = u16::MAX;

/// An event on a machine, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    /// Nothing wanted to run, from one instant to another.
    Idle(u64, u64),
    /// A thread unlocked the mutex.
    Unlocked(u16),
    /// A job of a thread ended.
    Ended(u16),
}

/// The marks of one machine, in order.
pub(crate) struct Course(Vec<Mark>);

impl Course {
    /// Reads the course from entries.
    pub fn of(entries: &[Entry]) -> Course {
        let (mut marks, mut running, mut idle) = (Vec::new(), NOBODY, None);
        for entry in entries.iter().filter(|entry| entry.kind != EntryKind::Bytes) {
            let quick = entry.kind == EntryKind::Quick;
            if let Some(since) = idle.take_if(|_| !quick) {
                marks.push(Mark::Idle(since, entry.now));
            }
            if matches!(entry.kind, EntryKind::Quick | EntryKind::Syscall) && running != NOBODY {
                match CallNumber::decode(entry.detail.into()) {
                    Some(CallNumber::SemUnlock) => marks.push(Mark::Unlocked(running)),
                    Some(CallNumber::JobWait) => marks.push(Mark::Ended(running)),
                    _ => {}
                }
            }
            if !quick {
                running = entry.run;
                idle = (running == NOBODY).then_some(entry.now);
            }
        }
        Course(marks)
    }

    /// Returns the marks since the machine was idle at an instant.
    fn since(&self, instant: u64) -> &[Mark] {
        let idle =
            |mark: &Mark| matches!(mark, Mark::Idle(from, to) if (from..=to).contains(&&instant));
        let place = self.0.iter().rposition(idle);
        self.0.get(place.map_or(0, |place| place + 1)..).unwrap_or_default()
    }

    fn idle(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().filter_map(|mark| match mark {
            Mark::Idle(from, to) => Some((*from, *to)),
            _ => None,
        })
    }

    /// Returns when everything was done that there was to do.
    pub fn rests(&self) -> impl Iterator<Item = u64> {
        self.idle().map(|(from, _)| from)
    }
}

/// Returns the last instant up to `until` at which both machines were idle.
fn common_idle(courses: [&Course; 2], until: u64) -> u64 {
    let [one, other] = courses;
    let overlap = |(from, to): (u64, u64)| {
        let both = other.idle().map(move |(f, t)| (from.max(f), to.min(t).min(until)));
        both.filter(|(from, to)| from <= to).map(|(_, to)| to).max()
    };
    one.idle().filter_map(overlap).max().unwrap_or(0)
}

/// Returns how often the mutex was unlocked before the `nth` end of a job of this thread.
fn unlocks(marks: &[Mark], thread: u16, nth: usize) -> usize {
    let ends = marks.iter().enumerate().filter(|(_, mark)| **mark == Mark::Ended(thread));
    let end = ends.map(|(at, _)| at).nth(nth).unwrap_or(marks.len());
    marks[..end].iter().filter(|mark| matches!(mark, Mark::Unlocked(_))).count()
}

/// Returns whether threads had the mutex in the same order on both machines, from when both were
/// idle before the release of a job until it ended on both. Earlier events are over.
pub fn same_order(courses: [&Course; 2], thread: u16, job: usize, release: u64) -> bool {
    let instant = common_idle(courses, release);
    let parts = courses.map(|course| course.since(instant));
    let ended = |course: &Course, part: &[Mark]| {
        let before = &course.0[..course.0.len() - part.len()];
        before.iter().filter(|mark| **mark == Mark::Ended(thread)).count()
    };
    let counts = [0, 1].map(|machine| {
        let nth = job.saturating_sub(ended(courses[machine], parts[machine]));
        unlocks(parts[machine], thread, nth)
    });
    let longest = counts[0].max(counts[1]);
    let order = |part: &[Mark]| -> Vec<u16> {
        let who = part.iter().filter_map(|mark| match mark {
            Mark::Unlocked(thread) => Some(*thread),
            _ => None,
        });
        who.take(longest).collect()
    };
    order(parts[0]) == order(parts[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLOCK: u16 = CallNumber::SemUnlock as u16;
    const END: u16 = CallNumber::JobWait as u16;

    /// Each step is who runs from then on, and what the one before did.
    fn course(steps: &[(u64, u16, u16)]) -> Course {
        let entries: Vec<Entry> = steps
            .iter()
            .map(|&(now, call, run)| {
                let quick = Entry::quick(call.into(), [0; 5], 0);
                let kind = if call == 0 { EntryKind::Timer } else { EntryKind::Syscall };
                if now == 0 { quick } else { Entry { kind, now, run, ..quick } }
            })
            .collect();
        Course::of(&entries)
    }

    #[test]
    fn who_had_the_mutex_first_counts_since_both_were_idle() {
        // Threads 1 and 2 change places between idle times; later they do not.
        let one = course(&[
            (10, 0, 1),
            (0, UNLOCK, 0),
            (20, END, 2),
            (0, UNLOCK, 0),
            (30, END, NOBODY),
            (50, 0, 1),
            (60, UNLOCK, 1),
            (70, END, NOBODY),
            (90, 0, 1),
        ]);
        let other = course(&[
            (10, 0, 2),
            (0, UNLOCK, 0),
            (20, END, 1),
            (0, UNLOCK, 0),
            (33, END, NOBODY),
            (50, 0, 1),
            (0, UNLOCK, 0),
            (71, END, NOBODY),
            (90, 0, 1),
        ]);
        let both = [&one, &other];
        assert!(!same_order(both, 1, 0, 10) && !same_order(both, 2, 0, 10));
        assert!(same_order(both, 1, 1, 50));
        assert_eq!(
            [common_idle(both, 20), common_idle(both, 40), common_idle(both, 95)],
            [0, 40, 90]
        );
        assert_eq!(one.rests().collect::<Vec<u64>>(), [30, 70]);
    }
}
