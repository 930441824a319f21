//! Runs the shares that have no result yet, as many at once as there are cores. A share that dies
//! is named and runs once more.

use super::results::{Outcome, Results};
use super::shard::Shard;
use diapason::Failure;
use std::collections::VecDeque;
use std::sync::Mutex;

/// How often a share may run until it is left alone.
const TRIES: usize = 2;

/// The end of a share's commands.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ended {
    /// The commands came to their end.
    Outcome(Outcome),
    /// One of them neither held nor found anything: a panic, a signal, a build that fails.
    Died(String),
}

/// The shares that wait, and the sums of those that ended.
struct State {
    waiting: VecDeque<(Shard, usize)>,
    seconds: f64,
    ended: usize,
    found: usize,
    died: Vec<Shard>,
    failure: Option<Failure>,
}

/// Runs `shards` with `run`, `jobs` at once, and keeps their results. Returns those that died each
/// time.
///
/// # Errors
/// If a result cannot be written, or `run` cannot start anything.
pub fn run(
    shards: Vec<Shard>,
    jobs: usize,
    results: &Results,
    run: &(dyn Fn(Shard) -> Result<Ended, Failure> + Sync),
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Shard>, Failure> {
    let all = shards.len();
    let state = Mutex::new(State {
        waiting: shards.into_iter().map(|shard| (shard, 1)).collect(),
        seconds: 0.0,
        ended: 0,
        found: 0,
        died: Vec::new(),
        failure: None,
    });
    let jobs = jobs.clamp(1, all.max(1));
    let worker = || {
        loop {
            let next = lock(&state).next();
            let Some((shard, tries)) = next else { return };
            let ended = run(shard).and_then(|ended| {
                if let Ended::Outcome(outcome) = &ended {
                    results.write(shard, outcome)?;
                }
                Ok(ended)
            });
            let mut state = lock(&state);
            let said = state.note(shard, tries, ended);
            let left = all - state.ended - state.died.len();
            let each = state.seconds / (state.ended.max(1) * jobs) as f64;
            let Some(said) = said else { continue };
            tell(&format!(
                "{said}; {} of {all} shares, {} with findings, {:.3} core-hours, about {:.0} min \
                 left",
                state.ended,
                state.found,
                state.seconds / 3_600.0,
                each * left as f64 / 60.0
            ));
        }
    };
    std::thread::scope(|scope| {
        (0..jobs).for_each(|_| drop(scope.spawn(worker)));
    });
    let state = state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match state.failure {
        Some(failure) => Err(failure),
        None => Ok(state.died),
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl State {
    fn next(&mut self) -> Option<(Shard, usize)> {
        if self.failure.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Returns what is to be said of the end of a share.
    fn note(
        &mut self,
        shard: Shard,
        tries: usize,
        ended: Result<Ended, Failure>,
    ) -> Option<String> {
        match ended {
            Ok(Ended::Outcome(outcome)) => {
                self.ended += 1;
                self.found += usize::from(!outcome.holds);
                self.seconds += outcome.seconds;
                let said = if outcome.holds { "holds" } else { "found something" };
                Some(format!("share {shard} {said}"))
            }
            Ok(Ended::Died(why)) if tries < TRIES => {
                self.waiting.push_back((shard, tries + 1));
                Some(format!("share {shard} died ({why}) and runs again"))
            }
            Ok(Ended::Died(why)) => {
                self.died.push(shard);
                Some(format!("share {shard} died again ({why})"))
            }
            Err(failure) => {
                self.failure.get_or_insert(failure);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs six shares; returns those that died, what was said, and in which order they ran.
    fn six(
        name: &str,
        of: &(dyn Fn(Shard, usize) -> Ended + Sync),
    ) -> (Vec<Shard>, String, Vec<Shard>) {
        let folder = std::env::temp_dir().join(format!("campaign-{name}-{}", std::process::id()));
        let results = Results::new(folder.clone(), String::from("a campaign")).unwrap();
        let (said, ran) = (Mutex::new(String::new()), Mutex::new(Vec::new()));
        let left = Shard::all(6).filter(|shard| results.read(*shard).unwrap().is_none()).collect();
        let one = |shard| {
            let mut ran = ran.lock().unwrap();
            ran.push(shard);
            Ok(of(shard, ran.iter().filter(|other| **other == shard).count()))
        };
        let tell = |line: &str| *said.lock().unwrap() += &format!("{line}\n");
        let died = run(left, 2, &results, &one, &tell).unwrap();
        let whole = Shard::all(6).all(|shard| results.read(shard).unwrap().is_some());
        assert_eq!(whole, died.is_empty(), "who did not die has a result");
        if whole {
            std::fs::remove_dir_all(folder).unwrap();
        }
        (died, said.into_inner().unwrap(), ran.into_inner().unwrap())
    }

    fn holds() -> Ended {
        Ended::Outcome(Outcome { holds: true, findings: Vec::new(), seconds: 36.0 })
    }

    #[test]
    fn a_share_that_dies_runs_once_more() {
        let (died, said, ran) = six("once", &|shard, times| match (shard.index(), times) {
            (3, 1) => Ended::Died(String::from("signal 9")),
            _ => holds(),
        });
        assert!(died.is_empty());
        assert_eq!(ran.len(), 7);
        assert!(said.contains("share 3/6 died (signal 9) and runs again"), "{said}");
        assert!(said.contains("6 of 6 shares, 0 with findings, 0.060 core-hours"), "{said}");
    }

    #[test]
    fn a_campaign_goes_on_where_it_was_interrupted() {
        let dead = |shard: Shard, _| match shard.index() {
            1 | 4 => Ended::Died(String::from("exit code 101")),
            _ => holds(),
        };
        let (died, said, ran) = six("on", &dead);
        assert_eq!(died.iter().map(|shard| shard.index()).collect::<Vec<u64>>(), [1, 4]);
        assert!(said.contains("share 4/6 died again (exit code 101)"), "{said}");
        assert_eq!(ran.len(), 8);
        let (died, _, mut ran) = six("on", &|_, _| holds());
        ran.sort_unstable();
        assert_eq!(ran.iter().map(|shard| shard.index()).collect::<Vec<u64>>(), [1, 4]);
        assert!(died.is_empty());
    }

    #[test]
    fn shares_with_findings_are_counted() {
        let (_, said, _) = six("found", &|shard, _| match shard.index() {
            2 => Ended::Outcome(Outcome {
                holds: false,
                findings: vec![String::from("again")],
                seconds: 1.0,
            }),
            _ => holds(),
        });
        assert!(said.contains("share 2/6 found something"), "{said}");
        assert!(said.contains("6 of 6 shares, 1 with findings"), "{said}");
    }
}
