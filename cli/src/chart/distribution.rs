//! Many lengths of time as a whole: what is asked of them, and what they must not exceed.

use crate::duration::human;
use serde_json::{Value, json};

/// Lengths of time in ns, by rising length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    pub name: String,
    /// The bound that no value should exceed.
    pub bound: Option<u64>,
    values: Vec<u64>,
}

impl Distribution {
    /// These, in any order.
    #[must_use]
    pub fn new(name: String, mut values: Vec<u64>, bound: Option<u64>) -> Distribution {
        values.sort_unstable();
        Distribution { name, bound, values }
    }

    /// Returns all of them, the shortest first.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the smallest value.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.values.first().copied().unwrap_or(0)
    }

    /// Returns the largest value.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.values.last().copied().unwrap_or(0)
    }

    /// Returns the mean, rounded down.
    #[must_use]
    pub fn mean(&self) -> u64 {
        let sum: u128 = self.values.iter().map(|value| u128::from(*value)).sum();
        let count = self.values.len().max(1) as u128;
        u64::try_from(sum / count).unwrap_or(u64::MAX)
    }

    /// Returns the shortest that at least so many per cent do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.values.len() * percent).div_ceil(100).max(1);
        self.values.get(rank - 1).copied().unwrap_or(0)
    }

    /// Returns how many are longer than the bound.
    #[must_use]
    pub fn beyond(&self) -> usize {
        let within = |bound| self.values.partition_point(|value| *value <= bound);
        self.bound.map_or(0, |bound| self.values.len() - within(bound))
    }

    /// Returns the distribution as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "count": self.values.len(),
            "min_ns": self.min(),
            "mean_ns": self.mean(),
            "p99_ns": self.percentile(99),
            "max_ns": self.max(),
            "bound_ns": self.bound,
            "beyond": self.beyond(),
        })
    }

    /// Returns all of this in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{}: {}, min {}, mean {}, p99 {}, max {}",
            self.name,
            self.values.len(),
            human(self.min()),
            human(self.mean()),
            human(self.percentile(99)),
            human(self.max())
        );
        if let Some(bound) = self.bound {
            text += &format!(", bound {}, {} beyond", human(bound), self.beyond());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_numbers() {
        let numbers = Distribution::new("n".into(), (1..=100).rev().collect(), Some(97));
        assert_eq!((numbers.min(), numbers.max(), numbers.mean()), (1, 100, 50));
        assert_eq!((numbers.percentile(99), numbers.percentile(100)), (99, 100));
        assert_eq!((numbers.percentile(0), numbers.beyond()), (1, 3));
        let text = "n: 100, min 1 ns, mean 50 ns, p99 99 ns, max 100 ns, bound 97 ns, 3 beyond";
        assert_eq!(numbers.summary(), text);
    }

    #[test]
    fn one_and_none() {
        let one = Distribution::new("one".into(), vec![7], None);
        assert_eq!((one.min(), one.percentile(99), one.max(), one.beyond()), (7, 7, 7, 0));
        let none = Distribution::new("none".into(), Vec::new(), Some(1));
        assert_eq!((none.percentile(50), none.mean(), none.beyond()), (0, 0, 0));
        let most = Distribution::new("most".into(), vec![u64::MAX; 3], None);
        assert_eq!(most.mean(), u64::MAX);
    }
}
