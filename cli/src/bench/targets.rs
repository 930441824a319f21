//! The targets of `diapason_costs` against what was measured.

use super::Measurements;
use super::placement;
use diapason_costs::targets::{Placement, Target};

/// Returns the medians of a target's operations added, or `None` if one was not measured.
#[must_use]
pub fn ours(target: &Target, measured: &Measurements) -> Option<u64> {
    let medians = target
        .operations
        .iter()
        .map(|name| measured.find(target.placement, name).map(|operation| operation.median));
    medians.sum()
}

/// Returns the names of a target's operations as in a sum, and where their threads live.
#[must_use]
pub fn name(target: &Target) -> String {
    let operations = target.operations.join(" + ");
    match target.placement {
        Placement::None => operations,
        placement => format!("{operations}, {}", placement::name(placement)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Operation;
    use diapason_costs::targets::TARGETS;

    fn operation(name: &str, median: u64) -> Operation {
        Operation {
            name: name.into(),
            median,
            max: median,
            runs: 1,
            cr3: 0,
            msr: 0,
            mmio: 0,
            touched: None,
        }
    }

    #[test]
    fn pairs_are_added_and_gaps_noticed() {
        let pair = &TARGETS[2];
        let lock = operation("sem_lock_free", 50);
        let mut measured = Measurements::default();
        measured.add(Placement::None, vec![lock.clone()]);
        measured.add(Placement::SameVcpu, vec![lock, operation("sem_unlock_free", 70)]);
        assert_eq!(ours(pair, &measured), None, "the pair of another placement does not count");
        measured.add(Placement::None, vec![operation("sem_unlock_free", 60)]);
        assert_eq!(ours(pair, &measured), Some(110));
        assert_eq!(name(pair), "sem_lock_free + sem_unlock_free");
    }
}
