//! From a boot archive to a kernel: how large the pools are, and what is in them at first.

use crate::alarms::Alarms;
use crate::kernel::Kernel;
use crate::objects::condition::Condition;
use crate::objects::event::Event;
use crate::objects::mailbox::{Mailbox, Message};
use crate::objects::memory::{Chain, Device, Frame, Segment};
use crate::objects::process::{Process, ProcessState};
use crate::objects::semaphore::Semaphore;
use crate::objects::thread::Thread;
use crate::objects::vcpu::Vcpu;
use crate::pool::{Id, Places, Pool, Range};
use crate::promise::{Fees, Promise};
use crate::scheduler::Scheduler;
use crate::served::SERVED;
use diapason_abi::archive::{Archive, Location, NONE, ObjectKind, ProcessRecord, VcpuKind};
use diapason_abi::call::MUTEX;
use diapason_abi::served::{Facility, Served};
use diapason_abi::{Nanos, results};
use diapason_costs::section::STAGE;

/// How many of each object a system needs.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub processes: usize,
    /// Threads, of all processes.
    pub threads: usize,
    /// Declared and private semaphores.
    pub semaphores: usize,
    /// Declared and private conditions.
    pub conditions: usize,
    pub mailboxes: usize,
    /// Mailboxes that have a mutex.
    pub servers: usize,
    /// Message slots, of all mailboxes.
    pub messages: usize,
    /// Events, of all processes.
    pub events: usize,
    pub segments: usize,
    /// Segments that the kernel fills with its console.
    pub consoles: usize,
    pub devices: usize,
    /// Frames for all heaps and segments.
    pub frames: usize,
    /// VCPUs, declared and of all processes.
    pub vcpus: usize,
}

impl Sizes {
    /// Returns the sizes that `archive` needs. Returns `None` if a pool would be too large for its
    /// ids, if a mailbox names a mutex that is not declared, or if one without a server has no room
    /// at all: its senders and receivers would wait for each other.
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
            sizes.vcpus += p.vcpus as usize;
        }
        for o in archive.objects() {
            match o.kind {
                ObjectKind::Semaphore => sizes.semaphores += 1,
                ObjectKind::Condition => sizes.conditions += 1,
                // A mailbox with a server holds no messages, and any other holds some.
                ObjectKind::Mailbox if (o.capacity == 0) != (o.mutex != NONE) => return None,
                ObjectKind::Mailbox => {
                    if o.mutex != NONE {
                        let mut all = archive.objects().filter(|o| o.kind == ObjectKind::Semaphore);
                        all.nth(o.mutex.into()).filter(|mutex| mutex.initial == MUTEX)?;
                        sizes.servers += 1;
                    }
                    sizes.mailboxes += 1;
                    sizes.messages += o.capacity as usize;
                }
            }
        }
        for s in archive.segments() {
            sizes.segments += 1;
            sizes.consoles += usize::from(s.key == results::KEY);
            if !s.common {
                sizes.frames += s.pages as usize;
            }
        }
        sizes.vcpus += archive.vcpus().count();
        sizes.devices = archive.devices().count();
        let Sizes { semaphores, conditions, messages, frames, threads, events, .. } = sizes;
        let largest = [semaphores, conditions, messages, frames, threads, events];
        largest.into_iter().all(|n| n < NONE as usize).then_some(sizes)
    }
}

/// Memory for the pools: each slice as long as [`Sizes`] says, every element its type's `EMPTY`.
pub struct Pools<'a> {
    pub processes: &'a mut [Process],
    pub threads: &'a mut [Thread],
    pub semaphores: &'a mut [Semaphore],
    pub conditions: &'a mut [Condition],
    pub mailboxes: &'a mut [Mailbox],
    pub messages: &'a mut [Message],
    pub events: &'a mut [Event],
    pub segments: &'a mut [Segment],
    pub devices: &'a mut [Device],
    pub frames: &'a mut [Frame],
    pub vcpus: &'a mut [Vcpu],
}

/// How much of each pool has been given away.
#[derive(Default)]
struct Given {
    threads: u16,
    semaphores: u16,
    conditions: u16,
    mailboxes: u16,
    messages: u16,
    events: u16,
    vcpus: u16,
    /// Frames that are a segment's for ever.
    frames: u16,
}

/// The next `count` slots of a pool, each prepared by `prepare`.
fn give<T>(
    pool: &mut [T],
    given: &mut u16,
    count: u16,
    mut prepare: impl FnMut(&mut T, u16),
) -> Range {
    let range = Range { first: *given, count };
    for (slot, object) in pool.iter_mut().skip(*given as usize).take(count as usize).enumerate() {
        prepare(object, slot as u16);
    }
    *given += count;
    range
}

impl Pools<'_> {
    #[inline(never)]
    fn declare(&mut self, archive: &Archive<'_>, given: &mut Given) {
        for object in archive.objects() {
            let (key, allowed) = (object.key, object.allowed);
            match object.kind {
                ObjectKind::Semaphore => {
                    give(self.semaphores, &mut given.semaphores, 1, |s, _| {
                        (s.key, s.allowed, s.initial) = (key, allowed, object.initial);
                    });
                }
                ObjectKind::Condition => {
                    give(self.conditions, &mut given.conditions, 1, |c, _| {
                        (c.key, c.allowed) = (key, allowed);
                    });
                }
                ObjectKind::Mailbox => {
                    let slots = Range { first: given.messages, count: object.capacity };
                    given.messages += object.capacity;
                    give(self.mailboxes, &mut given.mailboxes, 1, |b, _| {
                        (b.key, b.allowed, b.slots) = (key, allowed, slots);
                        b.faults_of = Id::new(object.faults_of);
                        b.mutex = Id::new(object.mutex);
                    });
                }
            }
        }
        for (place, record) in self.segments.iter_mut().zip(archive.segments()) {
            (place.key, place.allowed, place.pages) = (record.key, record.allowed, record.pages);
            place.common = record.common;
            if record.dma {
                place.dma = Id::new(given.frames);
                given.frames += if record.common { 0 } else { record.pages as u16 };
            }
        }
        for (place, record) in self.devices.iter_mut().zip(archive.devices()) {
            place.record = record;
        }
        for record in archive.vcpus() {
            give(self.vcpus, &mut given.vcpus, 1, |v, _| {
                (v.key, v.allowed) = (record.key, record.allowed);
            });
        }
    }

    #[inline(never)]
    fn process(&mut self, index: u16, record: &ProcessRecord, given: &mut Given) -> Process {
        let (id, mine) = (Id::new(index), 1 << (index & 63));
        let threads = give(self.threads, &mut given.threads, record.threads, |t, slot| {
            (t.process, t.slot) = (id, slot);
        });
        let semaphores = give(self.semaphores, &mut given.semaphores, record.semaphores, |s, _| {
            s.allowed = mine
        });
        let conditions = give(self.conditions, &mut given.conditions, record.conditions, |c, _| {
            c.allowed = mine
        });
        let events = give(self.events, &mut given.events, record.events, |e, _| {
            e.allowed = mine;
        });
        let vcpus = give(self.vcpus, &mut given.vcpus, record.vcpus, |v, _| v.allowed = mine);
        let supervisor = Id::new(record.supervisor);
        let takes = |b: &Mailbox| supervisor.is_some() && b.faults_of == supervisor;
        let reports = self.mailboxes.iter().position(takes);
        Process {
            key: record.key,
            state: ProcessState::Idle,
            priority: record.priority,
            threads,
            semaphores: Places::of(semaphores),
            conditions: Places::of(conditions),
            events: Places::of(events),
            vcpus,
            vcpu: Id::new(record.vcpu),
            heap_max: record.heap_pages,
            starters: record.starters,
            counters: record.counters,
            supervisor,
            reports: reports.map_or(Id::NONE, |at| Id::new(at as u16)),
            restarts_max: record.restarts_max,
            backoff: record.backoff,
            ..Process::EMPTY
        }
    }

    /// Puts in what the archive declares. `refused` says which programs cannot be used. Returns how
    /// many frames, from the first on, are given away for ever.
    fn fill(&mut self, archive: &Archive<'_>, refused: u64) -> u16 {
        let mut given = Given::default();
        self.declare(archive, &mut given);
        let mut supervisors = 0u64;
        for index in 0..archive.header.processes {
            let record = archive.process(index);
            let mut process = self.process(index, &record, &mut given);
            if refused >> index & 1 == 1 {
                process.state = ProcessState::Refused;
            } else if record.start_at_boot {
                process.state = ProcessState::Running;
            }
            if record.supervisor != NONE {
                supervisors |= 1 << (record.supervisor & 63);
            }
            if let Some(place) = self.processes.get_mut(index as usize) {
                *place = process;
            }
        }
        for (index, process) in self.processes.iter_mut().enumerate() {
            process.supervises = supervisors >> index & 1 == 1;
        }
        given.frames
    }
}

impl<'a> Kernel<'a> {
    /// A kernel for what `archive` describes, in the given memory. `refused` has a bit for each
    /// process whose program cannot be used.
    #[must_use]
    #[inline(never)]
    pub fn new(mut pools: Pools<'a>, archive: &Archive<'_>, refused: u64) -> Kernel<'a> {
        let kept = pools.fill(archive, refused);
        let named = |kind| archive.objects().filter(|o| o.kind == kind).count() as u16;
        let mut frames = Pool::new(pools.frames);
        let free_frames = Chain::of_all(&mut frames, kept);
        let mut kernel = Kernel {
            now: Nanos::ZERO,
            entries: 0,
            quiet: false,
            unsettled: false,
            process: Id::NONE,
            grant: 0,
            scheduler: Scheduler::new(),
            alarms: Alarms::new(),
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
            vcpus: Pool::new(pools.vcpus),
            promise: Promise::of(archive),
            fees: Fees::of(archive),
            stage: STAGE,
            named_semaphores: named(ObjectKind::Semaphore),
            named_conditions: named(ObjectKind::Condition),
        };
        for kind in [VcpuKind::Main, VcpuKind::Io] {
            for (index, record) in archive.vcpus().enumerate() {
                if record.kind == kind {
                    kernel.admit_declared(Id::new(index as u16), &record);
                }
            }
        }
        kernel
    }

    /// The machine lacks these devices, one bit each by their places in the description, and with
    /// them their messages.
    pub fn lack_devices(&mut self, absent: u64) {
        for id in self.devices.ids() {
            let device = &mut self.devices[id];
            let place = match device.record.location {
                Location::Message { of, .. } => of,
                Location::Address(_) | Location::Pci(_) | Location::Bell { .. } => id.index(),
            };
            device.absent = absent >> (place & 63) & 1 == 1;
        }
    }
}

impl Sizes {
    /// Returns the services that a system of these sizes needs, without its calls.
    #[must_use]
    pub fn services(&self) -> Served {
        let pools = [
            (self.semaphores, Facility::Semaphores),
            (self.conditions, Facility::Conditions),
            (self.mailboxes, Facility::Mailboxes),
            (self.servers, Facility::Servers),
            (self.events, Facility::Events),
            (self.segments, Facility::Segments),
            (self.consoles, Facility::Kept),
            (self.devices, Facility::Devices),
            (self.frames, Facility::Frames),
            (self.vcpus, Facility::Vcpus),
        ];
        let used = pools.into_iter().filter(|(objects, _)| *objects > 0);
        used.fold(Served::NONE, |set, (_, service)| set.with(service))
    }

    /// Returns whether this kernel serves all that a system of these sizes needs.
    #[must_use]
    pub fn are_served(&self) -> bool {
        WHOLE || self.services().without(SERVED) == Served::NONE
    }
}

/// This kernel serves everything.
const WHOLE: bool = SERVED.calls == Served::ALL.calls && SERVED.services == Served::ALL.services;
