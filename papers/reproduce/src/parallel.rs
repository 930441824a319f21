//! The same function for many indices, on all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// `work(0)` to `work(count - 1)`, in this order. `done` is told how many
/// are finished.
pub fn map<T: Send>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    done: impl Fn(usize) + Sync,
) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    on(threads, count, work, done)
}

fn on<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    done: impl Fn(usize) + Sync,
) -> Vec<T> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return results;
            }
            results.push((index, work(index)));
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let results = workers.into_iter().map(|worker| match worker.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.flatten().collect()
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|index| index * index).collect();
        for threads in [0, 1, 2, 7] {
            let seen = AtomicUsize::new(0);
            let done = |count| {
                seen.fetch_max(count, Ordering::Relaxed);
            };
            assert_eq!(on(threads, 100, |index| index * index, done), expected);
            assert_eq!(seen.into_inner(), 100);
        }
        assert_eq!(map(0, |index| index, |_| ()), [0; 0]);
    }
}
