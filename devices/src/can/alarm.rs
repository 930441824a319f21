//! When something may happen at the plugs of one device. A controller asks far more often than that
//! changes, so the earliest is at hand.

use diapason_abi::Nanos;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The alarms of one device; clones are the same.
#[derive(Clone, Debug)]
pub struct WakeTimes(Rc<Table>);

#[derive(Debug)]
struct Table {
    first: Cell<Nanos>,
    each: RefCell<Vec<Nanos>>,
}

impl Default for WakeTimes {
    fn default() -> WakeTimes {
        WakeTimes(Rc::new(Table { first: Cell::new(Nanos::FOREVER), each: RefCell::default() }))
    }
}

impl WakeTimes {
    /// Returns the earliest alarm.
    #[must_use]
    pub fn first(&self) -> Nanos {
        self.0.first.get()
    }

    /// Returns one more; it never rings until it is set.
    #[must_use]
    pub fn join(&self) -> WakeTime {
        let mut each = self.0.each.borrow_mut();
        each.push(Nanos::FOREVER);
        WakeTime { alarms: self.clone(), index: each.len() - 1 }
    }
}

/// An alarm of the set.
#[derive(Clone, Debug)]
pub struct WakeTime {
    alarms: WakeTimes,
    index: usize,
}

impl WakeTime {
    /// Returns when it rings.
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.alarms.0.each.borrow()[self.index]
    }

    /// Sets it to ring at `time`.
    pub fn set(&self, time: Nanos) {
        let Table { first, each } = &*self.alarms.0;
        let mut each = each.borrow_mut();
        each[self.index] = time;
        first.set(each.iter().copied().min().unwrap_or(Nanos::FOREVER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_at_hand() {
        let alarms = WakeTimes::default();
        let (a, b) = (alarms.join(), alarms.join());
        a.set(Nanos(7));
        b.set(Nanos(5));
        assert_eq!((alarms.first(), a.time(), b.time()), (Nanos(5), Nanos(7), Nanos(5)));
        b.set(Nanos(9));
        assert_eq!(alarms.first(), Nanos(7));
        a.set(Nanos::FOREVER);
        assert_eq!(alarms.first(), Nanos(9));
    }
}
