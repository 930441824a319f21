//! Declared work: how long what a program does under a name takes.

use diapason_abi::{Key, Nanos};
use diapason_random::Random;
use std::collections::BTreeMap;

/// The declared works of a system. Work that is not declared takes no time.
#[derive(Clone, Debug, Default)]
pub struct Works {
    /// Best and worst case by key.
    known: BTreeMap<u64, (Nanos, Nanos)>,
    /// Draws between the two; without it, everything takes its longest.
    random: Option<Random>,
}

impl Works {
    /// Works that take their longest, or, with a seed, any time between their best and worst.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Works {
        Works { known: BTreeMap::new(), random: seed.map(Random::new) }
    }

    /// Work called `name` takes between `best` and `worst` from now on.
    pub fn declare(&mut self, name: &str, best: Nanos, worst: Nanos) {
        self.known.insert(Key::new(name).0, (best, worst));
    }

    /// Returns how long the work with this key takes this time.
    pub(crate) fn time(&mut self, key: u64) -> Nanos {
        let (best, worst) = self.known.get(&key).copied().unwrap_or_default();
        match &mut self.random {
            Some(random) => Nanos(random.between(best.0, worst.0)),
            None => worst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_between_best_and_worst_and_none_is_the_worst() {
        let declared = |seed| {
            let mut works = Works::new(seed);
            works.declare("filter", Nanos(10), Nanos(20));
            works
        };
        let key = Key::new("filter").0;
        assert_eq!(declared(None).time(key), Nanos(20));
        let draw = |seed: u64| {
            let mut works = declared(Some(seed));
            (0..50).map(|_| works.time(key).0).collect::<Vec<u64>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|time| (10..=20).contains(time)));
        assert_eq!(declared(Some(1)).time(Key::new("other").0), Nanos::ZERO);
    }
}
