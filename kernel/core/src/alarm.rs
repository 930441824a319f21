//! What is due when: a binary heap over thread time-outs and timers.
//!
//! Each sleeper has at most one alarm. Setting, cancelling and expiring one take O(log n) steps,
//! so the longest path stays short however many timers a description declares.

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

/// Place of a sleeper that has no alarm.
pub const NOT_SET: u16 = u16::MAX;

/// The pending alarms. `heap[..count]` is a min-heap by due time; `place[s]` is where sleeper `s`
/// is in it.
pub struct Alarms<'a> {
    heap: &'a mut [Alarm],
    place: &'a mut [u16],
    count: u16,
    /// Due time of the first, kept where every entry looks for it.
    next: Nanos,
}

impl<'a> Alarms<'a> {
    /// No alarms; both slices have one element per sleeper.
    pub fn new(heap: &'a mut [Alarm], place: &'a mut [u16]) -> Alarms<'a> {
        Alarms { heap, place, count: 0, next: Nanos::FOREVER }
    }

    /// When the next one is due.
    #[inline(always)]
    pub fn next_due(&self) -> Nanos {
        self.next
    }

    /// Is one set for `sleeper`?
    pub fn is_set(&self, sleeper: u16) -> bool {
        self.place.get(sleeper as usize).is_some_and(|place| *place != NOT_SET)
    }

    /// Wake `sleeper`, which has no alarm, at `due`. A due time of for ever sets nothing.
    pub fn set(&mut self, sleeper: u16, due: Nanos) {
        if due == Nanos::FOREVER {
            return;
        }
        let at = self.count;
        self.count += 1;
        self.rise(at, Alarm { due, sleeper });
        self.note_next();
    }

    fn note_next(&mut self) {
        self.next = if self.count > 0 { self.heap[0].due } else { Nanos::FOREVER };
    }

    /// Forget the alarm of `sleeper`, if it has one.
    pub fn cancel(&mut self, sleeper: u16) {
        let at = self.place[sleeper as usize];
        if at != NOT_SET {
            self.remove(at);
        }
    }

    /// The sleeper whose alarm is due at `now`, its alarm removed.
    pub fn take_due(&mut self, now: Nanos) -> Option<u16> {
        if self.next_due() > now || self.count == 0 {
            return None;
        }
        let sleeper = self.heap[0].sleeper;
        self.remove(0);
        Some(sleeper)
    }

    #[inline(never)]
    fn remove(&mut self, at: u16) {
        self.place[self.heap[at as usize].sleeper as usize] = NOT_SET;
        self.count -= 1;
        if at < self.count {
            let last = self.heap[self.count as usize];
            let at = self.rise(at, last);
            self.sink(at, last);
        }
        self.note_next();
    }

    fn put(&mut self, at: u16, alarm: Alarm) {
        self.heap[at as usize] = alarm;
        self.place[alarm.sleeper as usize] = at;
    }

    /// Put `alarm` at `at` or as far above as it belongs; returns where.
    fn rise(&mut self, mut at: u16, alarm: Alarm) -> u16 {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent as usize].due <= alarm.due {
                break;
            }
            self.put(at, self.heap[parent as usize]);
            at = parent;
        }
        self.put(at, alarm);
        at
    }

    /// Move `alarm`, now at `at`, as far down as it belongs.
    fn sink(&mut self, mut at: u16, alarm: Alarm) {
        loop {
            let mut child = 2 * at + 1;
            if child >= self.count {
                break;
            }
            let right = child + 1;
            if right < self.count && self.heap[right as usize].due < self.heap[child as usize].due {
                child = right;
            }
            if alarm.due <= self.heap[child as usize].due {
                break;
            }
            self.put(at, self.heap[child as usize]);
            at = child;
        }
        self.put(at, alarm);
    }

    /// Every alarm lies above its children, and `place` is the inverse of `heap`.
    pub fn check(&self) {
        for at in 0..self.count as usize {
            let alarm = self.heap[at];
            assert!(at == 0 || self.heap[(at - 1) / 2].due <= alarm.due, "alarm heap order");
            assert_eq!(self.place[alarm.sleeper as usize] as usize, at, "alarm place");
        }
        let set = self.place.iter().filter(|place| **place != NOT_SET).count();
        assert_eq!(set, self.count as usize, "alarm count");
        let first = self.heap[..self.count as usize].first();
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
        let (mut heap, mut place) = ([Alarm::UNUSED; 40], [NOT_SET; 40]);
        let mut alarms = Alarms::new(&mut heap, &mut place);
        let mut model: Vec<(u64, u16)> = Vec::new();
        for _ in 0..100_000 {
            let sleeper = (random() % 40) as u16;
            if random() % 3 == 0 {
                let now = (random() % 1000) as u64;
                let due = model.iter().map(|(due, _)| *due).min();
                assert_eq!(alarms.next_due(), Nanos(due.unwrap_or(u64::MAX)));
                match alarms.take_due(Nanos(now)) {
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
                    alarms.set(sleeper, Nanos(due));
                    model.push((due, sleeper));
                }
            }
            alarms.check();
        }
    }
}
