//! The targets of `diapason_costs` against what was measured.

use super::Operation;
use diapason_costs::targets::Target;

/// The medians of a target's operations added, or `None` if one was not measured.
#[must_use]
pub fn ours(target: &Target, measured: &[Operation]) -> Option<u64> {
    let medians = target
        .operations
        .iter()
        .map(|name| measured.iter().find(|operation| operation.name == *name).map(|op| op.median));
    medians.sum()
}

/// The names of a target's operations, as in a sum.
#[must_use]
pub fn name(target: &Target) -> String {
    target.operations.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_costs::targets::TARGETS;

    fn operation(name: &str, median: u64) -> Operation {
        Operation { name: name.into(), median, max: median, runs: 1, cr3: 0, msr: 0, mmio: 0 }
    }

    #[test]
    fn pairs_are_added_and_gaps_noticed() {
        let pair = &TARGETS[2];
        let measured = [operation("sem_lock_free", 50), operation("sem_unlock_free", 60)];
        assert_eq!(ours(pair, &measured), Some(110));
        assert_eq!(ours(pair, &measured[..1]), None);
        assert_eq!(name(pair), "sem_lock_free + sem_unlock_free");
    }
}
