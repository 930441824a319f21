//! From the order in which things become known to the order in which they happened.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Things that wait until nothing earlier can come any more. Those of one time keep the order in
/// which they were given.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    waiting: BTreeMap<(Nanos, u64), T>,
    given: u64,
}

impl<T> Default for ReorderBuffer<T> {
    fn default() -> ReorderBuffer<T> {
        ReorderBuffer { waiting: BTreeMap::new(), given: 0 }
    }
}

impl<T> ReorderBuffer<T> {
    /// Adds one thing that happened at `time`.
    pub fn push(&mut self, time: Nanos, thing: T) {
        self.waiting.insert((time, self.given), thing);
        self.given += 1;
    }

    /// Returns the things before `time`, in order. Nothing earlier may be added later.
    pub fn before(&mut self, time: Nanos) -> Vec<T> {
        let later = self.waiting.split_off(&(time, 0));
        core::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    /// Returns all that is left, in order.
    pub fn rest(&mut self) -> Vec<T> {
        core::mem::take(&mut self.waiting).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn time_first_then_the_order_of_giving() {
        let mut order = ReorderBuffer::default();
        for (time, thing) in [(5, 'c'), (3, 'a'), (3, 'b'), (9, 'd')] {
            order.push(Nanos(time), thing);
        }
        assert_eq!(order.before(Nanos(3)), vec![]);
        assert_eq!(order.before(Nanos(9)), vec!['a', 'b', 'c']);
        assert_eq!(order.rest(), vec!['d']);
        assert_eq!(order.rest(), vec![]);
    }
}
