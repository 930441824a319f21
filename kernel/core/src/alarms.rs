//! Due times: one alarm for each thread that waits, in groups.
//!
//! A thread has at most one alarm, for its time-out, its sleep or the timer it waits for; it has to
//! run before it can set the next. The alarms of the threads of one VCPU are a group. So are those
//! of all threads without a VCPU, and those that are *urgent*: somebody with a VCPU waits for a
//! thread that sleeps. `ring` decides which group may ring.
//!
//! A group is a leftist heap whose links live in the threads: setting, cancelling and ringing take
//! O(log n) steps each, and no group needs room for more than its own.

use crate::ids::ThreadId;
use crate::objects::alarm::{Alarm, Group};
use crate::objects::thread::Thread;
use crate::pool::{Id, Pool};
use core::cmp::Ordering;
use diapason_abi::Nanos;
use diapason_abi::archive::VCPUS_MAX;

/// Most VCPUs, and so most groups of theirs and most ranks.
const VCPUS: usize = VCPUS_MAX as usize;

/// Room for all groups: a power of two, so that a remainder is one instruction.
const GROUPS: usize = 2 * VCPUS;
const _: () = assert!(GROUPS.is_power_of_two() && (URGENT as usize) < GROUPS);

/// Threads without a VCPU.
pub const PLAIN: Group = VCPUS as Group;
/// Those who keep somebody with a VCPU waiting.
pub const URGENT: Group = PLAIN + 1;
/// All threads, in which the alarms are.
type Threads<'a> = Pool<'a, Thread>;

/// The pending alarms of a core, and when its VCPUs want to be woken.
pub struct Alarms {
    roots: [ThreadId; GROUPS],
    /// When each ranked VCPU may run next that cannot now.
    pub(crate) wakes: Wakes,
    /// When the next one is due if nobody with a VCPU runs.
    next: Nanos,
}

impl Alarms {
    /// Returns a set without alarms.
    #[must_use]
    pub const fn new() -> Alarms {
        Alarms { roots: [Id::NONE; GROUPS], wakes: Wakes::NEVER, next: Nanos::FOREVER }
    }

    /// Returns when the next one is due if nobody with a VCPU runs.
    #[inline(always)]
    pub fn next_due(&self) -> Nanos {
        self.next
    }

    #[inline(always)]
    fn root(&mut self, group: Group) -> &mut ThreadId {
        &mut self.roots[usize::from(group) % GROUPS]
    }

    /// The thread whose alarm is the first of a group.
    #[inline(always)]
    pub fn first(&self, group: Group) -> ThreadId {
        self.roots[usize::from(group) % GROUPS]
    }

    /// Returns when that is due.
    #[inline(always)]
    pub fn first_due(&self, threads: &Threads<'_>, group: Group) -> Nanos {
        let first = self.first(group);
        if first.is_some() { threads[first].alarm.due } else { Nanos::FOREVER }
    }

    /// As [`Alarms::next_due`], or without the first alarm of the threads without a VCPU (`rings`).
    #[inline(always)]
    pub fn next_due_with(&self, threads: &Threads<'_>, rings: bool) -> Nanos {
        if !rings {
            return self.next;
        }
        let urgent = self.first_due(threads, URGENT);
        self.second_due(threads, PLAIN).min(urgent).min(self.wakes.first())
    }

    /// Returns when the alarm after the first of a group is due.
    #[inline(always)]
    pub fn second_due(&self, threads: &Threads<'_>, group: Group) -> Nanos {
        let Alarm { left, right, .. } = threads[self.first(group)].alarm;
        // The left side is never the less deep one.
        let due = |t: ThreadId| if t.is_some() { threads[t].alarm.due } else { Nanos::FOREVER };
        due(left).min(due(right))
    }

    /// Wakes `thread`, which has no alarm, at `due`.
    #[inline(never)]
    pub fn set(&mut self, threads: &mut Threads<'_>, thread: ThreadId, due: Nanos, group: Group) {
        threads[thread].alarm = Alarm { due, depth: 1, group, ..Alarm::UNSET };
        let root = self.first(group);
        let first = if root.is_none() { thread } else { meld(threads, root, thread) };
        if first != root {
            self.lead(threads, group, first);
        }
    }

    /// A group has another first alarm, or none.
    #[inline(always)]
    fn lead(&mut self, threads: &Threads<'_>, group: Group, first: ThreadId) {
        *self.root(group) = first;
        // That of a VCPU counts through the time at which this wants to be woken.
        if group >= PLAIN {
            self.note(threads);
        }
    }

    /// Forgets the alarm of `thread`, which is set. Mostly it is the only one of its group.
    #[inline(never)]
    pub fn cancel(&mut self, threads: &mut Threads<'_>, thread: ThreadId) {
        let Alarm { left, above, group, .. } = threads[thread].alarm;
        // The left side is never the less deep one.
        if left.is_some() || above.is_some() {
            return self.take_out(threads, thread);
        }
        threads[thread].alarm = Alarm::UNSET;
        self.lead(threads, group, ThreadId::NONE);
    }

    /// Forgets the alarm of `thread`, whichever place in a heap it has.
    #[inline(never)]
    fn take_out(&mut self, threads: &mut Threads<'_>, thread: ThreadId) {
        let Alarm { left, right, above, group, .. } = threads[thread].alarm;
        threads[thread].alarm = Alarm::UNSET;
        // The left side is never the less deep one.
        let mut rest = left;
        if right.is_some() {
            rest = meld(threads, left, right);
        }
        if rest.is_some() {
            threads[rest].alarm.above = above;
        }
        if above.is_none() {
            return self.lead(threads, group, rest);
        }
        let parent = &mut threads[above].alarm;
        if parent.left == thread {
            parent.left = rest;
        } else {
            parent.right = rest;
        }
        mend(threads, above, false);
    }

    /// Sets when the VCPU of this rank may run next, if it cannot now.
    #[inline(always)]
    pub fn wake(&mut self, threads: &Threads<'_>, rank: u8, at: Nanos) {
        if self.wakes.set(rank, at) {
            self.note(threads);
        }
    }

    /// Keeps when the next one is due.
    #[inline(never)]
    pub fn note(&mut self, threads: &Threads<'_>) {
        let bare = self.first_due(threads, PLAIN).min(self.first_due(threads, URGENT));
        self.next = bare.min(self.wakes.first());
    }

    /// Panics if a heap is out of order or an alarm is in none.
    pub fn check(&self, threads: &Threads<'_>) {
        for thread in threads.ids() {
            let alarm = threads[thread].alarm;
            if !alarm.is_set() {
                continue;
            }
            let depth = |t: ThreadId| if t.is_some() { threads[t].alarm.depth } else { 0 };
            assert!(depth(alarm.left) >= depth(alarm.right), "leftist heap");
            assert_eq!(alarm.depth, depth(alarm.right) + 1, "depth of an alarm");
            for below in [alarm.left, alarm.right].into_iter().filter(|t| t.is_some()) {
                assert!(threads[below].alarm.due >= alarm.due, "alarm heap order");
                assert!(threads[below].alarm.above == thread, "alarm place");
            }
            if alarm.above.is_none() {
                assert!(self.first(alarm.group) == thread, "first alarm");
            } else {
                let above = threads[alarm.above].alarm;
                assert!(above.left == thread || above.right == thread, "alarm link");
                assert_eq!(above.group, alarm.group, "group of an alarm");
            }
        }
        let set = |t: &ThreadId| t.is_none() || threads[*t].alarm.is_set();
        assert!(self.roots.iter().all(set), "a group's first alarm");
        let bare = self.first_due(threads, PLAIN).min(self.first_due(threads, URGENT));
        assert_eq!(self.next, bare.min(self.wakes.first()), "next alarm");
    }
}

impl Default for Alarms {
    fn default() -> Alarms {
        Alarms::new()
    }
}

/// Makes one heap of two. Its first has nothing above it.
fn meld(threads: &mut Threads<'_>, mut one: ThreadId, mut other: ThreadId) -> ThreadId {
    let (mut above, mut root) = (ThreadId::NONE, ThreadId::NONE);
    while one.is_some() && other.is_some() {
        if threads[other].alarm.due < threads[one].alarm.due {
            core::mem::swap(&mut one, &mut other);
        }
        hang(threads, &mut root, above, one);
        above = one;
        one = threads[one].alarm.right;
    }
    let rest = if one.is_some() { one } else { other };
    hang(threads, &mut root, above, rest);
    mend(threads, above, true);
    root
}

/// `thread`, if there is one, is on the right of `above`, or the first of all.
#[inline(always)]
fn hang(threads: &mut Threads<'_>, root: &mut ThreadId, above: ThreadId, thread: ThreadId) {
    if thread.is_some() {
        threads[thread].alarm.above = above;
    }
    if above.is_some() {
        threads[above].alarm.right = thread;
    } else {
        *root = thread;
    }
}

/// From here up: the side that is less deep is the right one. `all`: do not stop where nothing
/// changes.
fn mend(threads: &mut Threads<'_>, mut at: ThreadId, all: bool) {
    while at.is_some() {
        let Alarm { left, right, above, depth, .. } = threads[at].alarm;
        let of = |t: ThreadId| if t.is_some() { threads[t].alarm.depth } else { 0 };
        let (on_left, on_right) = (of(left), of(right));
        let new = on_left.min(on_right) + 1;
        let alarm = &mut threads[at].alarm;
        if on_left < on_right {
            (alarm.left, alarm.right) = (right, left);
        }
        alarm.depth = new;
        if !all && new == depth {
            return;
        }
        at = above;
    }
}

/// When the VCPU of each rank may run next: a tree of minima, so that the earliest of all those
/// above a rank is found in as many steps as it has levels.
pub(crate) struct Wakes {
    /// Node 1 is the root, nodes 2n and 2n + 1 are below n, and the leaves come last.
    tree: [Nanos; 2 * VCPUS],
    leaves: u8,
}

impl Wakes {
    const NEVER: Wakes = Wakes { tree: [Nanos::FOREVER; 2 * VCPUS], leaves: 1 };

    #[inline(always)]
    fn node(&self, at: usize) -> Nanos {
        self.tree[at % (2 * VCPUS)]
    }

    /// The earliest of all.
    #[inline(always)]
    pub fn first(&self) -> Nanos {
        self.tree[1]
    }

    /// That of one rank.
    #[inline(always)]
    pub fn of(&self, rank: u8) -> Nanos {
        self.node(usize::from(self.leaves) + usize::from(rank))
    }

    /// Changes the time of one rank. Returns whether the earliest time of all has changed.
    #[inline(always)]
    pub fn set(&mut self, rank: u8, at: Nanos) -> bool {
        // Mostly it stays as it was: nobody on that VCPU sleeps.
        self.of(rank) != at && self.change(rank, at)
    }

    #[cold]
    #[inline(never)]
    fn change(&mut self, rank: u8, at: Nanos) -> bool {
        let mut node = (usize::from(self.leaves) + usize::from(rank)) % (2 * VCPUS);
        let mut least = at;
        while self.tree[node] != least {
            self.tree[node] = least;
            if node <= 1 {
                return true;
            }
            least = least.min(self.node(node ^ 1));
            node /= 2;
        }
        false
    }

    /// The earliest of the ranks from `lowest` on.
    #[inline(always)]
    pub fn from(&self, lowest: u8) -> Nanos {
        if lowest >= self.leaves { Nanos::FOREVER } else { self.least_from(lowest) }
    }

    #[inline(never)]
    fn least_from(&self, lowest: u8) -> Nanos {
        let mut node = usize::from(self.leaves) + usize::from(lowest);
        let mut least = self.node(node);
        while node > 1 {
            if node.is_multiple_of(2) {
                least = least.min(self.node(node + 1));
            }
            node /= 2;
        }
        least
    }

    /// The highest rank of those that want to be woken by `now`.
    pub fn most_urgent_due(&self, now: Nanos) -> Option<u8> {
        if self.first() > now {
            return None;
        }
        let mut node = 1;
        while node < usize::from(self.leaves) {
            node *= 2;
            node += usize::from(self.node(node + 1) <= now);
        }
        Some((node - usize::from(self.leaves)) as u8)
    }

    /// A VCPU comes in at a rank, and there are `ranks` then: those from there on move up. It does
    /// not want to be woken yet.
    pub fn insert(&mut self, rank: u8, ranks: u8) {
        let (old, new) = (self.leaves, ranks.next_power_of_two());
        for at in (0..ranks).rev() {
            let moved = match at.cmp(&rank) {
                Ordering::Less => self.node(usize::from(old + at)),
                Ordering::Equal => Nanos::FOREVER,
                Ordering::Greater => self.node(usize::from(old + at - 1)),
            };
            self.tree[usize::from(new + at) % (2 * VCPUS)] = moved;
        }
        self.build(ranks, new);
    }

    /// The VCPU of a rank goes, and there are `ranks` then: those above it move down.
    pub fn remove(&mut self, rank: u8, ranks: u8) {
        let (old, new) = (self.leaves, ranks.max(1).next_power_of_two());
        for at in 0..ranks {
            let from = old + at + u8::from(at >= rank);
            self.tree[usize::from(new + at) % (2 * VCPUS)] = self.node(usize::from(from));
        }
        self.build(ranks, new);
    }

    /// A VCPU goes from one rank to another.
    pub fn shift(&mut self, from: u8, to: u8) {
        if from == to {
            return;
        }
        let first = usize::from(self.leaves);
        let (from, to) = (first + usize::from(from), first + usize::from(to));
        let moved = self.node(from);
        let (mut at, step) = (from, if from < to { 1 } else { usize::MAX });
        while at != to {
            let next = at.wrapping_add(step);
            self.tree[at % (2 * VCPUS)] = self.node(next);
            at = next;
        }
        self.tree[to % (2 * VCPUS)] = moved;
        self.build(self.leaves, self.leaves);
    }

    /// The leaves of all ranks are in place.
    fn build(&mut self, ranks: u8, leaves: u8) {
        self.leaves = leaves;
        for at in ranks..leaves {
            self.tree[usize::from(leaves + at) % (2 * VCPUS)] = Nanos::FOREVER;
        }
        for node in (1..usize::from(leaves)).rev() {
            self.tree[node % (2 * VCPUS)] = self.node(2 * node).min(self.node(2 * node + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl FnMut() -> usize {
        let mut seed = 1u64;
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        }
    }

    #[test]
    fn groups_behave_like_sorted_lists() {
        let mut random = random();
        let mut threads: Vec<Thread> = (0..40).map(|_| Thread::EMPTY).collect();
        let mut threads = Pool::new(&mut threads);
        let mut alarms = Alarms::new();
        let mut model: Vec<(u64, u16, Group)> = Vec::new();
        let groups = [0, 7, PLAIN, URGENT];
        for _ in 0..100_000 {
            let thread = (random() % 40) as u16;
            if threads[Id::new(thread)].alarm.is_set() {
                alarms.cancel(&mut threads, Id::new(thread));
                model.retain(|(_, t, _)| *t != thread);
            } else {
                let (due, group) = ((random() % 1000) as u64, groups[random() % 4]);
                alarms.set(&mut threads, Id::new(thread), Nanos(due), group);
                model.push((due, thread, group));
            }
            for group in groups {
                let of = model.iter().filter(|(_, _, g)| *g == group).map(|(due, ..)| *due);
                let first = alarms.first_due(&threads, group);
                assert_eq!(first, Nanos(of.min().unwrap_or(u64::MAX)));
            }
            alarms.check(&threads);
        }
    }

    #[test]
    fn ranks_come_and_go() {
        let mut random = random();
        let (mut model, mut wakes) = (Vec::new(), Wakes::NEVER);
        for step in 0..20_000 {
            let rank = random() % (model.len() + 1);
            if model.len() < 64 && (model.is_empty() || random().is_multiple_of(2)) {
                model.insert(rank, Nanos(step));
                wakes.insert(rank as u8, model.len() as u8);
                assert_eq!(wakes.of(rank as u8), Nanos::FOREVER);
                wakes.set(rank as u8, Nanos(step));
            } else if rank < model.len() && random().is_multiple_of(2) {
                let to = random() % model.len();
                let moved = model.remove(rank);
                model.insert(to, moved);
                wakes.shift(rank as u8, to as u8);
            } else if rank < model.len() {
                model.remove(rank);
                wakes.remove(rank as u8, model.len() as u8);
            }
            let found: Vec<_> = (0..model.len()).map(|rank| wakes.of(rank as u8)).collect();
            assert_eq!(found, model);
            let least = model.iter().min().copied().unwrap_or(Nanos::FOREVER);
            assert_eq!(wakes.first(), least);
        }
    }

    #[test]
    fn the_earliest_wake_from_a_rank_on() {
        let mut random = random();
        for ranks in [1u8, 2, 3, 5, 8, 63, 64] {
            let mut model = vec![Nanos::FOREVER; usize::from(ranks)];
            let mut wakes = Wakes::NEVER;
            (1..=ranks).for_each(|ranks| wakes.insert(0, ranks));
            for _ in 0..2_000 {
                let rank = random() % usize::from(ranks);
                let at =
                    if random().is_multiple_of(3) { u64::MAX } else { (random() % 100) as u64 };
                let before = wakes.first();
                let changed = wakes.set(rank as u8, Nanos(at));
                assert_eq!(changed, wakes.first() != before);
                model[rank] = Nanos(at);
                for now in [0, 30, 60, 99, 100] {
                    let due = model.iter().rposition(|wake| *wake <= Nanos(now));
                    let found = wakes.most_urgent_due(Nanos(now));
                    assert_eq!(found.map(usize::from), due, "by {now} of {ranks}");
                }
                for lowest in 0..=ranks {
                    let least = model.iter().skip(usize::from(lowest)).min();
                    let least = least.copied().unwrap_or(Nanos::FOREVER);
                    assert_eq!(wakes.from(lowest), least, "from {lowest} of {ranks}");
                }
            }
        }
    }
}
