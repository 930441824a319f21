//! From a boot archive to a kernel: how large the pools are, and what is in them at first.

use crate::alarm::{Alarm, Alarms, NOT_SET};
use crate::condition::Condition;
use crate::event::Event;
use crate::kernel::Kernel;
use crate::mailbox::{Mailbox, Message};
use crate::memory::{Chain, Device, Frame, Segment};
use crate::pool::{Id, Pool, Range};
use crate::process::{Process, ProcessState};
use crate::scheduler::Scheduler;
use crate::semaphore::Semaphore;
use crate::thread::Thread;
use diapason_abi::Nanos;
use diapason_abi::archive::{Archive, NONE, ObjectKind, ProcessRecord};

/// How many of each object a system needs.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Processes.
    pub processes: usize,
    /// Threads, of all processes.
    pub threads: usize,
    /// Declared and private semaphores.
    pub semaphores: usize,
    /// Declared and private conditions.
    pub conditions: usize,
    /// Mailboxes.
    pub mailboxes: usize,
    /// Message slots, of all mailboxes.
    pub messages: usize,
    /// Events, of all processes.
    pub events: usize,
    /// Segments.
    pub segments: usize,
    /// Devices.
    pub devices: usize,
    /// Frames for all heaps and segments.
    pub frames: usize,
}

impl Sizes {
    /// What `archive` needs; `None` if a pool would be too large for its ids, or a mailbox has no
    /// room at all: its senders and receivers would wait for each other.
    #[must_use]
    pub fn of(archive: &Archive<'_>) -> Option<Sizes> {
        let mut sizes = Sizes::default();
        for p in archive.processes() {
            sizes.processes += 1;
            sizes.threads += p.threads as usize;
            sizes.semaphores += p.semaphores as usize;
            sizes.conditions += p.conditions as usize;
            sizes.events += p.events as usize;
            sizes.frames += p.heap_pages as usize;
        }
        for o in archive.objects() {
            match o.kind {
                ObjectKind::Semaphore => sizes.semaphores += 1,
                ObjectKind::Condition => sizes.conditions += 1,
                ObjectKind::Mailbox if o.capacity == 0 => return None,
                ObjectKind::Mailbox => {
                    sizes.mailboxes += 1;
                    sizes.messages += o.capacity as usize;
                }
            }
        }
        for s in archive.segments() {
            sizes.segments += 1;
            sizes.frames += s.pages as usize;
        }
        sizes.devices = archive.devices().count();
        let largest = [sizes.semaphores, sizes.conditions, sizes.messages, sizes.frames];
        let alarms = sizes.threads + sizes.events;
        let fits = |n: usize| n < NONE as usize;
        (largest.into_iter().all(fits) && fits(alarms)).then_some(sizes)
    }
}

/// Memory for the pools: each slice at least as long as [`Sizes`] says, with any contents.
pub struct Pools<'a> {
    /// Processes.
    pub processes: &'a mut [Process],
    /// Threads.
    pub threads: &'a mut [Thread],
    /// Semaphores.
    pub semaphores: &'a mut [Semaphore],
    /// Conditions.
    pub conditions: &'a mut [Condition],
    /// Mailboxes.
    pub mailboxes: &'a mut [Mailbox],
    /// Message slots.
    pub messages: &'a mut [Message],
    /// Events.
    pub events: &'a mut [Event],
    /// Segments.
    pub segments: &'a mut [Segment],
    /// Devices.
    pub devices: &'a mut [Device],
    /// Frames.
    pub frames: &'a mut [Frame],
    /// Alarms: one per thread and event.
    pub alarms: &'a mut [Alarm],
    /// Their places: one per thread and event.
    pub places: &'a mut [u16],
}

/// Fills the pools one object at a time, so that the machine can take their memory from wherever it
/// likes: each function yields the initial contents in order.
pub mod fill {
    use super::*;

    /// Threads: each process's slots in turn.
    pub fn threads<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Thread> + 'a {
        archive.processes().enumerate().flat_map(|(i, p)| {
            (0..p.threads).map(move |slot| Thread::empty(Id::new(i as u16), slot))
        })
    }

    /// Semaphores: the declared ones, then each process's private ones.
    pub fn semaphores<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Semaphore> + 'a {
        let declared = archive.objects().filter(|o| o.kind == ObjectKind::Semaphore);
        let private = archive
            .processes()
            .enumerate()
            .flat_map(|(i, p)| (0..p.semaphores).map(move |_| Semaphore::empty(0, 1 << i, 0)));
        declared.map(|o| Semaphore::empty(o.key, o.allowed, o.initial)).chain(private)
    }

    /// Conditions: the declared ones, then each process's private ones.
    pub fn conditions<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Condition> + 'a {
        let declared = archive.objects().filter(|o| o.kind == ObjectKind::Condition);
        let private = archive
            .processes()
            .enumerate()
            .flat_map(|(i, p)| (0..p.conditions).map(move |_| Condition::empty(0, 1 << i)));
        declared.map(|o| Condition::empty(o.key, o.allowed)).chain(private)
    }

    /// Mailboxes with their message slots.
    pub fn mailboxes<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Mailbox> + 'a {
        let mut first = 0;
        archive.objects().filter(|o| o.kind == ObjectKind::Mailbox).map(move |o| {
            let slots = Range { first, count: o.capacity };
            first += o.capacity;
            Mailbox::empty(o.key, o.allowed, slots, Id::new(o.faults_of))
        })
    }

    /// Events: each process's in turn.
    pub fn events<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Event> + 'a {
        archive
            .processes()
            .enumerate()
            .flat_map(|(i, p)| (0..p.events).map(move |_| Event::empty(1 << i)))
    }

    /// Processes. `refused` says which programs cannot be used.
    pub fn processes<'a>(
        archive: &'a Archive<'a>,
        refused: u64,
    ) -> impl Iterator<Item = Process> + 'a {
        let sizes = Sizes::of(archive).unwrap_or_default();
        let declared = |kind| archive.objects().filter(|o| o.kind == kind).count();
        let mut shares = Shares {
            threads: 0,
            semaphores: declared(ObjectKind::Semaphore) as u16,
            conditions: declared(ObjectKind::Condition) as u16,
            events: 0,
        };
        archive.processes().take(sizes.processes).enumerate().map(move |(i, record)| {
            let mut process = shares.next(&record, refused >> i & 1 == 1);
            let mine = |o: &diapason_abi::archive::ObjectRecord| o.faults_of == record.supervisor;
            let boxes = archive.objects().filter(|o| o.kind == ObjectKind::Mailbox);
            if record.supervisor != NONE
                && let Some((at, _)) = boxes.enumerate().find(|(_, o)| mine(o))
            {
                process.reports = Id::new(at as u16);
            }
            process.supervises = archive.processes().any(|p| p.supervisor == i as u16);
            process
        })
    }

    /// Where the next process's ranges begin.
    struct Shares {
        threads: u16,
        semaphores: u16,
        conditions: u16,
        events: u16,
    }

    fn cut(next: &mut u16, count: u16) -> Range {
        let range = Range { first: *next, count };
        *next += count;
        range
    }

    impl Shares {
        fn next(&mut self, record: &ProcessRecord, refused: bool) -> Process {
            let state = match (refused, record.start_at_boot) {
                (true, _) => ProcessState::Refused,
                (false, true) => ProcessState::Running,
                (false, false) => ProcessState::Idle,
            };
            Process {
                key: record.key,
                state,
                priority: record.priority,
                live: 0,
                threads: cut(&mut self.threads, record.threads),
                semaphores: cut(&mut self.semaphores, record.semaphores),
                conditions: cut(&mut self.conditions, record.conditions),
                events: cut(&mut self.events, record.events),
                heap: Chain::EMPTY,
                heap_max: record.heap_pages,
                segments: 0,
                devices: 0,
                starters: record.starters,
                supervisor: Id::new(record.supervisor),
                reports: Id::NONE,
                supervises: false,
                restarts_max: record.restarts_max,
                backoff: record.backoff,
                starts: 0,
                faults: 0,
            }
        }
    }

    /// Segments.
    pub fn segments<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Segment> + 'a {
        archive.segments().map(|s| Segment::new(s.key, s.allowed, s.pages))
    }

    /// Devices.
    pub fn devices<'a>(archive: &'a Archive<'a>) -> impl Iterator<Item = Device> + 'a {
        archive.devices().map(Device::new)
    }

    /// Empty message slots.
    pub fn messages(sizes: &Sizes) -> impl Iterator<Item = Message> + use<> {
        (0..sizes.messages).map(|_| Message::EMPTY)
    }

    /// Frames in no chain.
    pub fn frames(sizes: &Sizes) -> impl Iterator<Item = Frame> + use<> {
        (0..sizes.frames).map(|_| Frame::UNLINKED)
    }

    /// Alarms that are not set, one per thread and event.
    pub fn alarms(sizes: &Sizes) -> impl Iterator<Item = Alarm> + use<> {
        (0..sizes.threads + sizes.events).map(|_| Alarm::UNUSED)
    }
}

impl<'a> Kernel<'a> {
    /// A kernel over pools that hold their initial contents (see [`fill`]).
    #[must_use]
    pub fn new(pools: Pools<'a>) -> Kernel<'a> {
        pools.places.fill(NOT_SET);
        let mut frames = Pool::new(pools.frames);
        let free_frames = Chain::of_all(&mut frames);
        Kernel {
            now: Nanos::ZERO,
            process: Id::NONE,
            grant: 0,
            scheduler: Scheduler::new(),
            alarms: Alarms::new(pools.alarms, pools.places),
            threads: Pool::new(pools.threads),
            processes: Pool::new(pools.processes),
            semaphores: Pool::new(pools.semaphores),
            conditions: Pool::new(pools.conditions),
            mailboxes: Pool::new(pools.mailboxes),
            messages: Pool::new(pools.messages),
            events: Pool::new(pools.events),
            segments: Pool::new(pools.segments),
            devices: Pool::new(pools.devices),
            frames,
            free_frames,
        }
    }
}
