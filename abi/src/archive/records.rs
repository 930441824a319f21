//! The entries of the archive's tables: what each holds, and how it lies in the file.

use super::codec::{Reader, Writer};
use super::{
    ENTRY_BYTES, HEADER_BYTES, MAGIC, NONE, OBJECTS_MAX, PROCESS_BYTES, VCPU_BYTES, VCPUS_MAX,
    VERSION,
};
use crate::{PRIORITIES, layout};

/// The header's variable part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of the whole archive.
    pub length: u32,
    /// Entries of the process table.
    pub processes: u16,
    /// Entries of the object table.
    pub objects: u16,
    /// Entries of the segment table.
    pub segments: u16,
    /// Entries of the device table.
    pub devices: u16,
    /// When the run ends, in ns since boot.
    pub horizon: u64,
    pub flags: u32,
    /// Bytes to set aside for the flight recorder.
    pub recorder_bytes: u32,
    /// Entries of the VCPU table.
    pub vcpus: u16,
    /// Queues by earliest deadline, above the one by period.
    pub dp_queues: u8,
    /// Time in ns of a switch to a described VCPU that its budget does not pay.
    pub switch_grace: u32,
    /// Time in ns of an interrupt that switches to nobody, which no budget pays.
    pub interrupt_grace: u32,
    /// Time in ns of the longest path of the kernel in this system.
    pub longest_path: u32,
}

/// One process, as the description declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessRecord {
    pub key: u64,
    /// The place of the process's image in the archive.
    pub image_offset: u32,
    /// Bytes of the image.
    pub image_length: u32,
    /// CRC-32 of the image.
    pub image_crc: u32,
    /// Highest priority of its threads, and that of its first.
    pub priority: u8,
    /// True if boot starts it.
    pub start_at_boot: bool,
    /// True if it may read the counters of the machine.
    pub counters: bool,
    /// The process that gets its fault reports, or [`NONE`].
    pub supervisor: u16,
    pub threads: u16,
    pub semaphores: u16,
    /// Most private condition variables.
    pub conditions: u16,
    /// Most timers and events.
    pub events: u16,
    /// Pages of each thread's stack.
    pub stack_pages: u16,
    /// Most pages of heap.
    pub heap_pages: u32,
    /// Most restarts (`u32::MAX`: no limit).
    pub restarts_max: u32,
    /// First back-off in ns.
    pub backoff: u64,
    /// The processes that may start it, one bit each.
    pub starters: u64,
    /// Passed to its entry point.
    pub arguments: [u64; 4],
    /// The VCPU of its first thread and, if they do not say, of the others; [`NONE`]: none, its
    /// threads run by priority below every VCPU.
    pub vcpu: u16,
    /// Most VCPUs it may make while it runs.
    pub vcpus: u16,
}

/// The kind of object that a table entry declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    /// Mutex (`initial` = `call::MUTEX`) or counting semaphore.
    Semaphore = 2,
    Condition = 3,
    Mailbox = 4,
}

/// A semaphore, condition variable or mailbox shared by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRecord {
    pub key: u64,
    /// The processes that may use it, one bit each.
    pub allowed: u64,
    /// Semaphores: the initial count, or `call::MUTEX`.
    pub initial: u64,
    /// The kind of the object.
    pub kind: ObjectKind,
    pub capacity: u16,
    /// Mailboxes: the process whose fault reports' receiver this is, or [`NONE`].
    pub faults_of: u16,
    /// Mailboxes: the declared semaphore that is the mutex of the server, or [`NONE`].
    pub mutex: u16,
}

/// A memory segment shared by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentRecord {
    pub key: u64,
    /// The processes that may attach it, one bit each.
    pub allowed: u64,
    pub pages: u32,
    /// Devices may be told where it is: it lies in one piece, and is nobody else's ever.
    pub dma: bool,
    /// Processes of other cores may have it, too: it is there from boot on, and stays.
    pub common: bool,
}

impl Header {
    /// As bytes, with the checksum of itself and `tables`.
    #[must_use]
    pub fn to_bytes(&self, tables_crc: u32) -> [u8; HEADER_BYTES] {
        let mut w = Writer::<HEADER_BYTES>::new();
        w.put(&MAGIC.to_le_bytes()).put(&VERSION.to_le_bytes()).put(&tables_crc.to_le_bytes());
        w.put(&self.length.to_le_bytes());
        for count in [self.processes, self.objects, self.segments, self.devices] {
            w.put(&count.to_le_bytes());
        }
        w.put(&self.flags.to_le_bytes()).put(&self.horizon.to_le_bytes());
        w.put(&self.recorder_bytes.to_le_bytes());
        w.put(&self.vcpus.to_le_bytes()).put(&[self.dp_queues]);
        for time in [self.switch_grace, self.interrupt_grace, self.longest_path] {
            w.put(&time.to_le_bytes());
        }
        w.bytes
    }

    /// Bytes of header and tables together.
    #[must_use]
    pub const fn tables_end(&self) -> usize {
        HEADER_BYTES
            + self.processes as usize * PROCESS_BYTES
            + (self.objects as usize + self.segments as usize + self.devices as usize) * ENTRY_BYTES
            + self.vcpus as usize * VCPU_BYTES
    }
}

impl ProcessRecord {
    /// Returns the record as the bytes of an archive.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PROCESS_BYTES] {
        let mut w = Writer::<PROCESS_BYTES>::new();
        w.put(&self.key.to_le_bytes());
        for word in [self.image_offset, self.image_length, self.image_crc] {
            w.put(&word.to_le_bytes());
        }
        let flags = u8::from(self.start_at_boot) | u8::from(self.counters) << 1;
        w.put(&[self.priority, flags]).put(&self.supervisor.to_le_bytes());
        for half in [self.threads, self.semaphores, self.conditions, self.events, self.stack_pages]
        {
            w.put(&half.to_le_bytes());
        }
        w.put(&self.heap_pages.to_le_bytes()).put(&self.restarts_max.to_le_bytes());
        w.put(&self.backoff.to_le_bytes()).put(&self.starters.to_le_bytes());
        for word in self.arguments {
            w.put(&word.to_le_bytes());
        }
        w.put(&self.vcpu.to_le_bytes()).put(&self.vcpus.to_le_bytes());
        w.bytes
    }

    pub(super) fn parse(bytes: &[u8; PROCESS_BYTES]) -> ProcessRecord {
        let mut r = Reader(bytes);
        let key = r.u64();
        let (image_offset, image_length, image_crc) = (r.u32(), r.u32(), r.u32());
        let (priority, flags, supervisor) = (r.u8(), r.u8(), r.u16());
        let (threads, semaphores, conditions) = (r.u16(), r.u16(), r.u16());
        let (events, stack_pages) = (r.u16(), r.u16());
        ProcessRecord {
            key,
            image_offset,
            image_length,
            image_crc,
            priority,
            start_at_boot: flags & 1 != 0,
            counters: flags & 2 != 0,
            supervisor,
            threads,
            semaphores,
            conditions,
            events,
            stack_pages,
            heap_pages: r.u32(),
            restarts_max: r.u32(),
            backoff: r.u64(),
            starters: r.u64(),
            arguments: [r.u64(), r.u64(), r.u64(), r.u64()],
            vcpu: r.u16(),
            vcpus: r.u16(),
        }
    }

    #[inline(never)]
    pub(super) fn is_possible(&self, header: &Header) -> bool {
        let supervised = self.supervisor == NONE || self.supervisor < header.processes;
        supervised
            && (self.vcpu == NONE || self.vcpu < header.vcpus)
            && self.vcpus <= VCPUS_MAX
            && (self.priority as usize) < PRIORITIES
            && (1..=layout::THREADS_PER_PROCESS_MAX).contains(&u64::from(self.threads))
            && self.semaphores <= OBJECTS_MAX
            && self.conditions <= OBJECTS_MAX
            && self.events <= OBJECTS_MAX
            && self.stack_pages >= 1
            && u64::from(self.stack_pages) * crate::PAGE as u64 <= STACK_BYTES_MAX
            && u64::from(self.heap_pages) <= layout::HEAP_PAGES_MAX
    }
}

/// The largest stack: one page below the stride stays unmapped.
pub const STACK_BYTES_MAX: u64 = layout::STACK_STRIDE - crate::PAGE as u64;

impl ObjectRecord {
    /// Returns the record as the bytes of an archive.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&self.initial.to_le_bytes()).put(&[self.kind as u8, 0]);
        w.put(&self.capacity.to_le_bytes()).put(&self.faults_of.to_le_bytes());
        w.put(&self.mutex.to_le_bytes());
        w.bytes
    }

    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> Option<ObjectRecord> {
        let mut r = Reader(bytes);
        let (key, allowed, initial) = (r.u64(), r.u64(), r.u64());
        let kind = match r.u8() {
            2 => ObjectKind::Semaphore,
            3 => ObjectKind::Condition,
            4 => ObjectKind::Mailbox,
            _ => return None,
        };
        r.u8();
        let (capacity, faults_of, mutex) = (r.u16(), r.u16(), r.u16());
        Some(ObjectRecord { key, allowed, initial, kind, capacity, faults_of, mutex })
    }
}

impl SegmentRecord {
    /// Returns the record as the bytes of an archive.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&self.pages.to_le_bytes()).put(&[u8::from(self.dma), u8::from(self.common)]);
        w.bytes
    }

    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> SegmentRecord {
        let mut r = Reader(bytes);
        let (key, allowed, pages) = (r.u64(), r.u64(), r.u32());
        SegmentRecord { key, allowed, pages, dma: r.u8() != 0, common: r.u8() != 0 }
    }
}
