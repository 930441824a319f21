//! Random systems with VCPUs, step by step against an oracle and afterwards against what budgets
//! promise. The normal run draws few; all of them:
//! `DIAPASON_SETS=200000 cargo test --release -p diapason-core --test all budgets::`.

use crate::support;
use crate::support::audit::{Audit, check_choice};
use crate::support::chance::draw;
use crate::support::stage::{Stage, play_with};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Says which set it was, if one fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the set with seed {}", self.0);
        }
    }
}

#[derive(Default, Debug)]
struct Tally {
    sets: u64,
    decisions: u64,
    helped: u64,
    depleted: u64,
    background: u64,
    calls: u64,
    errors: u64,
}

impl Tally {
    fn add(&mut self, stage: &Stage<'_>) {
        self.sets += 1;
        self.decisions += stage.trace.len() as u64;
        let helped = |v: &support::stage::View| v.place != v.runs;
        self.helped += stage.trace.iter().filter(|(_, v)| helped(v)).count() as u64;
        self.background += stage.trace.iter().filter(|(_, v)| v.beyond).count() as u64;
        let vcpus = &stage.host.kernel.vcpus;
        self.depleted += vcpus.ids().map(|v| u64::from(vcpus[v].depleted)).sum::<u64>();
        self.calls += stage.results.0;
        self.errors += stage.results.1;
    }
}

#[test]
fn budgets_are_kept_and_given_in_every_system() {
    let (sets, first) = (setting("DIAPASON_SETS", 500), setting("DIAPASON_SEED", 0));
    let mut tally = Tally::default();
    for seed in first..first + sets {
        let at = Seed(seed);
        let drawn = draw(seed);
        play_with(&drawn.script, drawn.end, (drawn.late, seed), check_choice, |stage| {
            Audit::new(stage, &drawn).check();
            tally.add(stage);
        });
        drop(at);
    }
    println!("{tally:?}");
    assert!(sets < 500 || tally.helped > sets && tally.depleted > sets && tally.background > 0);
}
