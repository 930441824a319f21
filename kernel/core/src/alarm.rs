//! What is due when: binary heaps over thread time-outs, timers and replenishments.
//!
//! Each sleeper has at most one alarm. Setting, cancelling and expiring one take O(log n) steps,
//! so the longest path stays short however many timers a description declares. There are two heaps:
//! what concerns nobody with a VCPU does not interrupt those who have one, and waits until they are
//! done.

use crate::pool::{Id, Pool};
use diapason_abi::Nanos;

/// One pending alarm.
#[derive(Clone, Copy, Debug)]
pub struct Alarm {
    due: Nanos,
    sleeper: u16,
}

impl Alarm {
    /// Content of unused slots.
    pub const UNUSED: Alarm = Alarm { due: Nanos::FOREVER, sleeper: 0 };
}

/// Where each sleeper is in its heap.
type Places<'a> = Pool<'a, u16>;

/// Place of a sleeper that has no alarm.
pub const NOT_SET: u16 = u16::MAX;
/// Set in the place of a sleeper that is in the second heap.
const SECOND: u16 = 1 << 15;

/// Whose alarm it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Something that may run on a VCPU waits for it: it may ring at any time.
    Reserved,
    /// Nobody with a VCPU does: it must not interrupt those who have one.
    Unreserved,
}

/// A min-heap by due time.
struct Heap<'a> {
    alarms: Pool<'a, Alarm>,
    count: u16,
    /// Due time of the first, kept where every entry looks for it.
    next: Nanos,
    /// What its places are marked with.
    mark: u16,
}

/// The pending alarms. `place[s]` is where sleeper `s` is in its heap.
pub struct Alarms<'a> {
    reserved: Heap<'a>,
    unreserved: Heap<'a>,
    place: Places<'a>,
}

impl<'a> Alarms<'a> {
    /// Most sleepers.
    pub const SLEEPERS_MAX: usize = SECOND as usize - 1;

    /// No alarms; each slice has one element per sleeper.
    pub fn new(
        reserved: &'a mut [Alarm],
        unreserved: &'a mut [Alarm],
        place: &'a mut [u16],
    ) -> Alarms<'a> {
        let heap =
            |alarms, mark| Heap { alarms: Pool::new(alarms), count: 0, next: Nanos::FOREVER, mark };
        let place = Pool::new(place);
        Alarms { reserved: heap(reserved, 0), unreserved: heap(unreserved, SECOND), place }
    }

    /// When the next one is due.
    #[inline(always)]
    pub fn next_due(&self) -> Nanos {
        self.reserved.next.min(self.unreserved.next)
    }

    /// When the next one is due that may interrupt a VCPU.
    #[inline(always)]
    pub fn next_reserved(&self) -> Nanos {
        self.reserved.next
    }

    /// Is one set for `sleeper`?
    #[inline(always)]
    pub fn is_set(&self, sleeper: u16) -> bool {
        self.place[Id::new(sleeper)] != NOT_SET
    }

    /// Wake `sleeper`, which has no alarm, at `due`. A due time of for ever sets nothing.
    #[inline(never)]
    pub fn set(&mut self, sleeper: u16, due: Nanos, class: Class) {
        if due == Nanos::FOREVER {
            return;
        }
        let heap = match class {
            Class::Reserved => &mut self.reserved,
            Class::Unreserved => &mut self.unreserved,
        };
        let at = heap.count;
        heap.count += 1;
        heap.rise(&mut self.place, at, Alarm { due, sleeper });
        heap.note_next();
    }

    /// Forget the alarm of `sleeper`, if it has one.
    #[inline(never)]
    pub fn cancel(&mut self, sleeper: u16) {
        let at = self.place[Id::new(sleeper)];
        if at != NOT_SET {
            self.remove(at);
        }
    }

    /// Somebody with a VCPU waits for what `sleeper` does next: its alarm may ring at any time.
    pub fn promote(&mut self, sleeper: u16) {
        let place = self.place[Id::new(sleeper)];
        if place != NOT_SET && place & SECOND != 0 {
            let due = self.unreserved.alarms[Id::new(place & !SECOND)].due;
            self.remove(place);
            self.set(sleeper, due, Class::Reserved);
        }
    }

    /// A sleeper whose alarm is due at `now`, its alarm removed; of the unreserved ones only if
    /// `all`.
    pub fn take_due(&mut self, now: Nanos, all: bool) -> Option<u16> {
        let heap = if self.reserved.next <= now { &self.reserved } else { &self.unreserved };
        let other = heap.mark == SECOND;
        if heap.next > now || heap.count == 0 || other && !all {
            return None;
        }
        let sleeper = heap.alarms[Id::new(0)].sleeper;
        self.remove(heap.mark);
        Some(sleeper)
    }

    #[inline(never)]
    fn remove(&mut self, place: u16) {
        let heap = if place & SECOND == 0 { &mut self.reserved } else { &mut self.unreserved };
        heap.remove(&mut self.place, place & !SECOND);
    }

    /// Both heaps are in order, and every place is in one of them.
    pub fn check(&self) {
        self.reserved.check(&self.place);
        self.unreserved.check(&self.place);
        let set = self.place.ids().filter(|s| self.place[*s] != NOT_SET).count();
        assert_eq!(set, (self.reserved.count + self.unreserved.count) as usize, "alarm count");
    }
}

impl Heap<'_> {
    #[inline(always)]
    fn note_next(&mut self) {
        self.next = if self.count > 0 { self.alarms[Id::new(0)].due } else { Nanos::FOREVER };
    }

    #[inline(always)]
    fn remove(&mut self, place: &mut Places<'_>, at: u16) {
        place[Id::new(self.alarms[Id::new(at)].sleeper)] = NOT_SET;
        self.count -= 1;
        if at < self.count {
            let last = self.alarms[Id::new(self.count)];
            let at = self.rise(place, at, last);
            self.sink(place, at, last);
        }
        self.note_next();
    }

    #[inline(always)]
    fn put(&mut self, place: &mut Places<'_>, at: u16, alarm: Alarm) {
        self.alarms[Id::new(at)] = alarm;
        place[Id::new(alarm.sleeper)] = at | self.mark;
    }

    /// Put `alarm` at `at` or as far above as it belongs; returns where.
    #[inline(always)]
    fn rise(&mut self, place: &mut Places<'_>, mut at: u16, alarm: Alarm) -> u16 {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.alarms[Id::new(parent)].due <= alarm.due {
                break;
            }
            self.put(place, at, self.alarms[Id::new(parent)]);
            at = parent;
        }
        self.put(place, at, alarm);
        at
    }

    /// Move `alarm`, now at `at`, as far down as it belongs.
    #[inline(never)]
    fn sink(&mut self, place: &mut Places<'_>, mut at: u16, alarm: Alarm) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.count {
                break;
            }
            let right = child + 1;
            let sooner = |a: u16, b: u16| self.alarms[Id::new(a)].due < self.alarms[Id::new(b)].due;
            if right < self.count && sooner(right, child) {
                child = right;
            }
            if alarm.due <= self.alarms[Id::new(child)].due {
                break;
            }
            self.put(place, at, self.alarms[Id::new(child)]);
            at = child;
        }
        self.put(place, at, alarm);
    }

    /// Every alarm lies above its children, and `place` is the inverse of the heap.
    fn check(&self, place: &Places<'_>) {
        for at in 0..self.count {
            let alarm = self.alarms[Id::new(at)];
            let parent = at.saturating_sub(1) / 2;
            assert!(self.alarms[Id::new(parent)].due <= alarm.due, "alarm heap order");
            assert_eq!(place[Id::new(alarm.sleeper)], at | self.mark, "alarm place");
        }
        let first = self.alarms.get(0).filter(|_| self.count > 0);
        assert_eq!(self.next, first.map_or(Nanos::FOREVER, |alarm| alarm.due), "next alarm");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_sorted_list() {
        let mut seed = 1u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        };
        let (mut first, mut second) = ([Alarm::UNUSED; 40], [Alarm::UNUSED; 40]);
        let mut place = [NOT_SET; 40];
        let mut alarms = Alarms::new(&mut first, &mut second, &mut place);
        let class = |s: u16| if s.is_multiple_of(3) { Class::Reserved } else { Class::Unreserved };
        let mut model: Vec<(u64, u16)> = Vec::new();
        for _ in 0..100_000 {
            let sleeper = (random() % 40) as u16;
            if random() % 3 == 0 {
                let now = (random() % 1000) as u64;
                let all = random() % 2 == 0;
                let due = model.iter().map(|(due, _)| *due).min();
                assert_eq!(alarms.next_due(), Nanos(due.unwrap_or(u64::MAX)));
                // Those of the first class go first, whenever they are due.
                let of = |wanted| {
                    model.iter().filter(|(_, s)| class(*s) == wanted).map(|(due, _)| *due).min()
                };
                let (first, second) = (of(Class::Reserved), of(Class::Unreserved));
                assert_eq!(alarms.next_reserved(), Nanos(first.unwrap_or(u64::MAX)));
                let second = second.filter(|_| all);
                let due = first.filter(|due| *due <= now).or(second);
                match alarms.take_due(Nanos(now), all) {
                    None => assert!(due.is_none_or(|due| due > now)),
                    Some(s) => {
                        let at = model.iter().position(|(_, m)| *m == s).unwrap();
                        assert_eq!(Some(model.swap_remove(at).0), due);
                    }
                }
            } else {
                alarms.cancel(sleeper);
                model.retain(|(_, s)| *s != sleeper);
                if random() % 4 > 0 {
                    let due = (random() % 1000) as u64;
                    alarms.set(sleeper, Nanos(due), class(sleeper));
                    model.push((due, sleeper));
                }
            }
            alarms.check();
        }
    }
}
