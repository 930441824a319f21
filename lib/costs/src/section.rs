//! The longest kernel path of a system, by its sizes.
//!
//! Most paths of the kernel take the same time in every system. Some pass lists: the deletion of a
//! semaphore sends each waiter away, a message goes behind those that are at least as urgent. The
//! kernel passes such a list in one piece, so the longest path follows from the sizes that a
//! description declares. The end of a process is cut into stages of [`STAGE`] instructions, so its
//! size does not matter.
//!
//! Two uses of one table of prices tie the formula to the kernel: the kernel core, on a host,
//! counts the [`Round`]s of each path (`diapason_core::walks`), and its tests hold the sum to
//! [`Dimensions::longest_walk`]; the simulator charges what was counted. `cargo xtask storm` and
//! the cases of `cargo xtask attack cases` hold the prices to the instructions of the real kernel.

use diapason_abi::archive::{
    ObjectKind, ObjectRecord, ProcessRecord, VCPUS_MAX, VcpuKind, VcpuRecord,
};
use diapason_abi::call::MUTEX;

/// One round of a loop in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// A place of a pool is looked at.
    Look,
    /// A message is passed on the right side of a heap, down and up.
    Message,
    /// A thread is passed in a list by urgency.
    Pass,
    /// From the owner of a mutex to the owner of the one it waits for, or from one held mutex to
    /// the next.
    Link,
    /// A thread of a process that ends is stopped.
    Stop,
    /// A mutex is taken from a thread that ends.
    Release,
    /// An event, a timer or an interrupt of a process that ends goes.
    Event,
    /// A segment or a device of a process that ends is hidden.
    Hide,
    /// A waiter learns that what it waits for is gone.
    SendAway,
    /// A thread gives its place up until another one wakes.
    Park,
    /// Such a thread has its place again.
    Unpark,
    /// A VCPU gets a new number among the ranked.
    Rank,
    /// A VCPU of a queue by deadline is compared with the others.
    Compare,
}

impl Round {
    /// Returns the most instructions of this round.
    #[must_use]
    pub const fn price(self) -> u64 {
        match self {
            Round::Look => 8,
            Round::Message => 32,
            Round::Pass => 12,
            Round::Link => 16,
            Round::Stop => 350,
            Round::Release => 40,
            Round::Event => 40,
            Round::Hide => 70,
            Round::SendAway => 350,
            Round::Park => 500,
            Round::Unpark => 300,
            Round::Rank => 60,
            Round::Compare => 19,
        }
    }
}

/// The most instructions of rounds in a stage of the end of a process, or of a deletion.
pub const STAGE: u64 = 800;

/// Most mutexes that a thread took later, and still holds, when it lets one go.
pub const LATER_MAX: u64 = 64;

/// The sizes of a system that make paths of its kernel longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dimensions {
    /// Places of the longest pool that is searched for a name, or for a free place.
    pub places: u64,
    /// Threads of all processes.
    pub all_threads: u64,
    /// VCPUs that the process may make which may make most.
    pub own: u64,
    /// Messages of the largest mailbox.
    pub messages: u64,
    /// Threads that may wait for one semaphore, condition or mailbox.
    pub waiters: u64,
    /// Mutexes that may exist at one time.
    pub mutexes: u64,
    /// Threads that may wait for a mutex at one time.
    pub helped: u64,
    /// VCPUs, if programs may make, change or delete any.
    pub ranked: u64,
    /// I/O VCPUs that serve the Main VCPU that has most.
    pub serving: u64,
    /// VCPUs in the longest queue by deadline.
    pub by_deadline: u64,
}

/// The tables of an archive that sizes follow from.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    pub processes: &'a [ProcessRecord],
    pub objects: &'a [ObjectRecord],
    pub segments: usize,
    pub devices: usize,
    pub vcpus: &'a [VcpuRecord],
    pub dp_queues: u8,
}

impl Tables<'_> {
    /// Returns the sum over the processes of which `mask` has the bit.
    fn among(&self, mask: u64, of: impl Fn(&ProcessRecord) -> u64) -> u64 {
        let bits = (0..u64::BITS).zip(self.processes);
        bits.filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, process)| of(process)).sum()
    }

    fn most(&self, of: impl Fn(&ProcessRecord) -> u64) -> u64 {
        self.processes.iter().map(of).max().unwrap_or(0)
    }

    fn count(&self, kind: ObjectKind) -> u64 {
        self.objects.iter().filter(|object| object.kind == kind).count() as u64
    }

    fn mutexes(&self) -> impl Iterator<Item = &ObjectRecord> {
        let semaphores = self.objects.iter().filter(|o| o.kind == ObjectKind::Semaphore);
        semaphores.filter(|semaphore| semaphore.initial == MUTEX)
    }

    /// Threads that may wait for a mutex at one time: one of those that share it has it.
    fn helped(&self) -> u64 {
        let shared = self.mutexes().fold(0, |mask, mutex| mask | mutex.allowed);
        let together = self.among(shared, |p| p.threads.into()).saturating_sub(1);
        let apart = |p: &ProcessRecord| match p.semaphores {
            0 => 0,
            _ => u64::from(p.threads).saturating_sub(1),
        };
        together + self.among(!shared, apart)
    }

    /// VCPUs in the longest queue by deadline. Those made later join the only one there is.
    fn by_deadline(&self) -> u64 {
        let of = |queue| self.vcpus.iter().filter(|vcpu| vcpu.queue == queue).count() as u64;
        let longest = (0..self.dp_queues).map(of).max();
        longest.map_or(0, |longest| longest + self.made())
    }

    fn serving(&self) -> u64 {
        let ios = || self.vcpus.iter().filter(|vcpu| vcpu.kind == VcpuKind::Io);
        let of = |main: u32| ios().filter(|io| io.serves >> main & 1 == 1).count() as u64;
        (0..u64::BITS).map(of).max().unwrap_or(0)
    }

    /// VCPUs whose rank may change.
    fn ranked(&self, vcpus: u64) -> u64 {
        let set = self.vcpus.iter().any(|vcpu| vcpu.allowed != 0);
        if set || self.made() > 0 { vcpus.min(VCPUS_MAX.into()) } else { 0 }
    }

    /// VCPUs that programs may make.
    fn made(&self) -> u64 {
        self.processes.iter().map(|process| u64::from(process.vcpus)).sum()
    }
}

impl Dimensions {
    /// Returns the sizes of the system that these tables declare.
    #[must_use]
    pub fn of(tables: &Tables<'_>) -> Dimensions {
        let all = |of: fn(&ProcessRecord) -> u16| -> u64 {
            tables.processes.iter().map(|process| u64::from(of(process))).sum()
        };
        let private = all(|p| p.semaphores);
        let vcpus = tables.vcpus.len() as u64 + tables.made();
        let mailboxes = tables.count(ObjectKind::Mailbox);
        let pools = [
            tables.count(ObjectKind::Semaphore),
            tables.count(ObjectKind::Condition),
            mailboxes,
            tables.most(|p| p.threads.into()),
            tables.segments as u64,
            tables.devices as u64,
            tables.processes.len() as u64,
            vcpus.min(VCPUS_MAX.into()),
        ];
        let objects = tables.objects.iter();
        let shared = objects.clone().map(|o| tables.among(o.allowed, |p| p.threads.into())).max();
        // Before its first thread could wait for what only it has, another one must be there.
        let apart = |p: &ProcessRecord| match p.semaphores + p.conditions {
            0 => 0,
            _ => u64::from(p.threads).saturating_sub(1),
        };
        Dimensions {
            places: pools.into_iter().max().unwrap_or(0),
            all_threads: all(|p| p.threads),
            own: tables.most(|p| p.vcpus.into()),
            messages: objects.map(|object| u64::from(object.capacity)).max().unwrap_or(0),
            waiters: shared.unwrap_or(0).max(tables.most(apart)),
            mutexes: tables.mutexes().count() as u64 + private,
            helped: tables.helped(),
            ranked: tables.ranked(vcpus),
            serving: tables.serving(),
            by_deadline: tables.by_deadline(),
        }
    }
}

/// The most instructions of a path with loops besides those of its rounds. The longest paths
/// without loops fill pages.
const FIXED: u64 = 2_000;

const fn rounds(round: Round, count: u64) -> u64 {
    round.price().saturating_mul(count)
}

const fn sum<const N: usize>(parts: [u64; N]) -> u64 {
    let (mut sum, mut place) = (0u64, 0);
    while place < N {
        sum = sum.saturating_add(parts[place]);
        place += 1;
    }
    sum
}

const fn largest<const N: usize>(parts: [u64; N]) -> u64 {
    let (mut largest, mut place) = (0, 0);
    while place < N {
        largest = if parts[place] > largest { parts[place] } else { largest };
        place += 1;
    }
    largest
}

impl Dimensions {
    /// Returns the most instructions of a path, if no path without loops has more than `most`.
    #[must_use]
    pub const fn longest_path(&self, most: u64) -> u64 {
        largest([sum([most, self.decision()]), sum([FIXED, self.longest_walk()])])
    }

    /// Returns the most instructions that one path takes in its loops.
    #[must_use]
    pub const fn longest_walk(&self) -> u64 {
        let called = largest([self.end(), self.delete(), self.search(), self.ranks()]);
        sum([called, self.alarms(), self.decision()])
    }

    /// A chain of owners that wait for each other, once.
    const fn chain(&self) -> u64 {
        let (mutexes, helped) = (self.mutexes, self.helped);
        rounds(Round::Link, if mutexes < helped { mutexes } else { helped })
    }

    /// A list of waiters, once.
    const fn queue(&self) -> u64 {
        rounds(Round::Pass, self.waiters)
    }

    /// A stage of the end of a process; the last one is followed by the report of its fault.
    const fn end(&self) -> u64 {
        // A thread leaves its chain before it lets its mutexes go, and before it is stopped; one at
        // the end of a chain changes its place in a list when those parked with it go.
        let stopped = STAGE / Round::Stop.price() + 2;
        sum([
            STAGE,
            Round::Stop.price(),
            self.chain().saturating_mul(2 * stopped),
            self.queue().saturating_mul(stopped),
            rounds(Round::Look, self.own),
            self.heap(),
        ])
    }

    /// The deletion of what threads wait for: so many of them in one entry as a stage allows.
    const fn delete(&self) -> u64 {
        let waiters = STAGE / Round::SendAway.price();
        let later = if self.mutexes < LATER_MAX { self.mutexes } else { LATER_MAX };
        sum([STAGE, self.chain().saturating_mul(waiters), rounds(Round::Link, later)])
    }

    /// The search for a place or a name, and what a message passes; a thread that joins a list of
    /// waiters.
    const fn search(&self) -> u64 {
        let twice = self.places.saturating_mul(2);
        sum([rounds(Round::Look, twice), self.heap(), self.queue()])
    }

    /// A message leaves the heap of a mailbox and another one comes: two sides are passed to take
    /// one out and one to put one in, each no longer than a number of that size has bits.
    const fn heap(&self) -> u64 {
        rounds(Round::Message, 3 * (u64::BITS - self.messages.leading_zeros()) as u64)
    }

    /// A VCPU is made in the place of an abandoned one, or changed with those that serve it.
    const fn ranks(&self) -> u64 {
        let again = rounds(Round::Rank, self.ranked.saturating_mul(2));
        let look = rounds(Round::Look, self.ranked.saturating_mul(4));
        let others = if self.serving > 1 { self.serving } else { 1 };
        sum([again, look]).saturating_mul(sum([others, 1]))
    }

    /// The alarms that ring before a thread is chosen: each ends a wait in a chain, a list or both.
    /// A parked thread has its place again once.
    const fn alarms(&self) -> u64 {
        let one = sum([self.chain().saturating_mul(2), self.queue()]);
        sum([one.saturating_mul(4), rounds(Round::Unpark, self.helped)])
    }

    /// The choice of a thread. Once one was parked, no alarm rings in that path.
    const fn decision(&self) -> u64 {
        // Each walks to the end of its chain twice: half the chain each time, if all are in one.
        let park = sum([Round::Park.price(), self.chain(), Round::Link.price()]);
        sum([
            park.saturating_mul(self.helped),
            rounds(Round::Pass, self.passed()),
            self.chain().saturating_mul(3),
            rounds(Round::Compare, self.compared()),
        ])
    }

    /// Waiters that are passed when all are parked that can be: those in a list are not parked.
    const fn passed(&self) -> u64 {
        let Dimensions { helped, waiters, all_threads, .. } = *self;
        let apart = all_threads.saturating_sub(waiters);
        let parked = if apart > all_threads / 2 { apart } else { all_threads / 2 };
        let parked = if parked < helped { parked } else { helped };
        let listed = all_threads.saturating_sub(parked);
        parked.saturating_mul(if listed < waiters { listed } else { waiters })
    }

    /// VCPUs of a queue by deadline that are looked at: each choice leaves out the threads that
    /// were parked before it.
    const fn compared(&self) -> u64 {
        let Dimensions { helped, by_deadline, all_threads, .. } = *self;
        // Choices that have enough threads left for all VCPUs.
        let full = all_threads.saturating_sub(by_deadline).saturating_add(1);
        let full = if full < helped { full } else { helped };
        let fewer = helped - full;
        let left_out = fewer.saturating_mul(fewer.saturating_add(1)) / 2;
        let all = by_deadline.saturating_mul(helped.saturating_add(3));
        all.saturating_sub(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_lists_has_the_stage_of_an_end_only() {
        let none = Dimensions::default();
        assert_eq!(none.longest_walk(), none.end().max(none.delete()));
        assert!((STAGE..2 * STAGE).contains(&none.longest_walk()), "{}", none.longest_walk());
    }

    #[test]
    fn no_size_makes_a_path_shorter() {
        let all = |n| Dimensions {
            places: n,
            all_threads: n,
            own: n,
            messages: n,
            waiters: n,
            mutexes: n,
            helped: n,
            ranked: n,
            serving: n,
            by_deadline: n,
        };
        let few = all(2);
        let more = [
            Dimensions { places: 900, ..few },
            Dimensions { all_threads: 9, helped: 9, ..few },
            Dimensions { own: 900, ..few },
            Dimensions { messages: 900, ..few },
            Dimensions { all_threads: 9, waiters: 9, ..few },
            Dimensions { mutexes: 9, helped: 9, ..few },
            Dimensions { all_threads: 9, helped: 9, by_deadline: 9, ..few },
            Dimensions { ranked: 64, ..few },
            Dimensions { by_deadline: 64, ..few },
            Dimensions { serving: 90, ..few },
        ];
        for larger in more {
            assert!(larger.longest_walk() > few.longest_walk(), "{larger:?}");
        }
        assert_eq!(all(u64::MAX).longest_walk(), u64::MAX, "a sum beyond all is no small one");
    }
}
