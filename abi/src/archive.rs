//! The boot archive: one file with the compiled description of a system and its programs.
//!
//! The builder (`lib/system`) proves the description and writes this; the kernel reads it at boot
//! and trusts nothing: lengths, counts and checksums are verified before use, by total functions
//! that cannot panic. A damaged header or table refuses the archive; a damaged program refuses
//! that program, and the rest boots.
//!
//! Layout, little-endian: a header of [`HEADER_BYTES`], then the process, object, segment and
//! device tables, then the ELF images.

use crate::{PRIORITIES, PROCESSES_MAX, layout};

/// "DIAPASON".
pub const MAGIC: u64 = u64::from_le_bytes(*b"DIAPASON");
/// Raised whenever a field moves.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// "No such thing" in 16-bit fields.
pub const NONE: u16 = u16::MAX;
/// Bytes of one entry of the process table.
pub const PROCESS_BYTES: usize = 112;
/// Bytes of one entry of the object, segment and device tables.
pub const ENTRY_BYTES: usize = 32;
/// Most entries in any one table but that of the objects.
pub const TABLE_MAX: u16 = 64;
/// Most declared objects.
pub const OBJECTS_MAX: u16 = 1024;

/// Options of a run, in the header.
pub mod flags {
    /// Keep the flight recorder.
    pub const RECORD: u32 = 1;
    /// Time every kernel path and report the longest.
    pub const WATCH: u32 = 2;
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why an archive or a program in it cannot be used.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Refusal { $($(#[$doc])* $name = $number,)* }

        impl Refusal {
            /// Every reason.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$name,)*];
            /// In words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Refusal::$name => $text,)* }
            }
        }
    };
}

refusals! {
    /// Shorter than its header or than it says.
    Truncated = 1, "the archive is shorter than it says";
    /// Not an archive.
    Magic = 2, "this is not a Diapason archive";
    /// Made by another version of the tools.
    Version = 3, "the archive was made by another version of the tools";
    /// Header or tables damaged.
    TablesChecksum = 4, "the archive's tables are damaged (checksum)";
    /// A table entry is out of range.
    Table = 5, "a table of the archive has an impossible entry";
    /// The image lies outside the archive.
    ImageRange = 6, "the program lies outside the archive";
    /// The image is damaged.
    ImageChecksum = 7, "the program is damaged (checksum)";
    /// Not a 64-bit x86 position-independent ELF file.
    NotElf = 8, "the program is not a position-independent x86-64 ELF file";
    /// A header or segment lies outside the file or the window.
    ElfRange = 9, "a segment of the program lies outside its file or its window";
    /// A segment is both writable and executable.
    WriteExecute = 10, "a segment of the program is both writable and executable";
    /// A relocation is of an unknown kind or outside the data.
    Relocation = 11, "the program has a relocation the loader does not do";
    /// Two segments share a page.
    Overlap = 12, "two segments of the program share a page";
    /// No memory left.
    Memory = 13, "the machine has too little memory for it";
}

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
    /// See [`flags`].
    pub flags: u32,
    /// Bytes to set aside for the flight recorder.
    pub recorder_bytes: u32,
}

/// One process, as the description declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessRecord {
    /// Its name.
    pub key: u64,
    /// Where its image lies in the archive.
    pub image_offset: u32,
    /// Bytes of the image.
    pub image_length: u32,
    /// CRC-32 of the image.
    pub image_crc: u32,
    /// Highest priority of its threads, and that of its first.
    pub priority: u8,
    /// Start it at boot?
    pub start_at_boot: bool,
    /// The process that gets its fault reports, or [`NONE`].
    pub supervisor: u16,
    /// Most threads.
    pub threads: u16,
    /// Most private semaphores.
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
    /// Which processes may start it, one bit each.
    pub starters: u64,
    /// Passed to its entry point.
    pub arguments: [u64; 4],
}

/// What kind of object a table entry declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    /// Mutex (`initial` = `call::MUTEX`) or counting semaphore.
    Semaphore = 2,
    /// Condition variable.
    Condition = 3,
    /// Mailbox.
    Mailbox = 4,
}

/// A semaphore, condition variable or mailbox shared by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRecord {
    /// Its name.
    pub key: u64,
    /// Which processes may use it, one bit each.
    pub allowed: u64,
    /// Semaphores: the initial count, or `call::MUTEX`.
    pub initial: u64,
    /// What it is.
    pub kind: ObjectKind,
    /// Mailboxes: most messages.
    pub capacity: u16,
    /// Mailboxes: the process whose fault reports' receiver this is, or [`NONE`].
    pub faults_of: u16,
}

/// A memory segment shared by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentRecord {
    /// Its name.
    pub key: u64,
    /// Which processes may attach it, one bit each.
    pub allowed: u64,
    /// Its size.
    pub pages: u32,
}

/// A memory-mapped device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceRecord {
    /// Its name.
    pub key: u64,
    /// Which processes may map it and wait for its interrupt, one bit each.
    pub allowed: u64,
    /// Physical address of its registers.
    pub address: u64,
    /// Pages of registers.
    pub pages: u32,
    /// Its interrupt line at the I/O APIC, or [`NONE`].
    pub irq: u16,
    /// Level-triggered (else edge)?
    pub level: bool,
}

/// CRC-32 (IEEE 802.3), bit by bit: the kernel has no room for a table.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

/// Reads fields in order; past the end it reads zeros (lengths are checked before).
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.0 = rest;
                *head
            }
            None => [0; N],
        }
    }
    #[inline(always)]
    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }
    #[inline(always)]
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
    #[inline(always)]
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    #[inline(always)]
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Writes fields in order into a fixed buffer.
struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn new() -> Self {
        Writer { bytes: [0; N], at: 0 }
    }
    fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }
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
        w.bytes
    }

    /// Bytes of header and tables together.
    #[must_use]
    pub const fn tables_end(&self) -> usize {
        HEADER_BYTES
            + self.processes as usize * PROCESS_BYTES
            + (self.objects as usize + self.segments as usize + self.devices as usize) * ENTRY_BYTES
    }
}

impl ProcessRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PROCESS_BYTES] {
        let mut w = Writer::<PROCESS_BYTES>::new();
        w.put(&self.key.to_le_bytes());
        for word in [self.image_offset, self.image_length, self.image_crc] {
            w.put(&word.to_le_bytes());
        }
        w.put(&[self.priority, u8::from(self.start_at_boot)]).put(&self.supervisor.to_le_bytes());
        for half in
            [self.threads, self.semaphores, self.conditions, self.events, self.stack_pages, 0]
        {
            w.put(&half.to_le_bytes());
        }
        w.put(&self.heap_pages.to_le_bytes()).put(&self.restarts_max.to_le_bytes());
        w.put(&self.backoff.to_le_bytes()).put(&self.starters.to_le_bytes());
        for word in self.arguments {
            w.put(&word.to_le_bytes());
        }
        w.bytes
    }

    fn parse(bytes: &[u8; PROCESS_BYTES]) -> ProcessRecord {
        let mut r = Reader(bytes);
        let key = r.u64();
        let (image_offset, image_length, image_crc) = (r.u32(), r.u32(), r.u32());
        let (priority, start_at_boot, supervisor) = (r.u8(), r.u8() != 0, r.u16());
        let (threads, semaphores, conditions) = (r.u16(), r.u16(), r.u16());
        let (events, stack_pages, _) = (r.u16(), r.u16(), r.u16());
        ProcessRecord {
            key,
            image_offset,
            image_length,
            image_crc,
            priority,
            start_at_boot,
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
        }
    }

    fn is_possible(&self, processes: u16) -> bool {
        let supervised = self.supervisor == NONE || self.supervisor < processes;
        supervised
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
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&self.initial.to_le_bytes()).put(&[self.kind as u8, 0]);
        w.put(&self.capacity.to_le_bytes()).put(&self.faults_of.to_le_bytes());
        w.bytes
    }

    fn parse(bytes: &[u8; ENTRY_BYTES]) -> Option<ObjectRecord> {
        let mut r = Reader(bytes);
        let (key, allowed, initial) = (r.u64(), r.u64(), r.u64());
        let kind = match r.u8() {
            2 => ObjectKind::Semaphore,
            3 => ObjectKind::Condition,
            4 => ObjectKind::Mailbox,
            _ => return None,
        };
        r.u8();
        Some(ObjectRecord { key, allowed, initial, kind, capacity: r.u16(), faults_of: r.u16() })
    }
}

impl SegmentRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&self.pages.to_le_bytes());
        w.bytes
    }

    fn parse(bytes: &[u8; ENTRY_BYTES]) -> SegmentRecord {
        let mut r = Reader(bytes);
        SegmentRecord { key: r.u64(), allowed: r.u64(), pages: r.u32() }
    }
}

impl DeviceRecord {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&self.address.to_le_bytes()).put(&self.pages.to_le_bytes());
        w.put(&self.irq.to_le_bytes()).put(&[u8::from(self.level)]);
        w.bytes
    }

    fn parse(bytes: &[u8; ENTRY_BYTES]) -> DeviceRecord {
        let mut r = Reader(bytes);
        DeviceRecord {
            key: r.u64(),
            allowed: r.u64(),
            address: r.u64(),
            pages: r.u32(),
            irq: r.u16(),
            level: r.u8() != 0,
        }
    }
}

/// A verified archive.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    /// The header.
    pub header: Header,
}

impl<'a> Archive<'a> {
    /// Check `bytes` as far as the tables go; images are checked one by one by [`Archive::image`].
    ///
    /// # Errors
    /// The [`Refusal`] that applies.
    pub fn parse(bytes: &'a [u8]) -> Result<Archive<'a>, Refusal> {
        let mut r = Reader(bytes.get(..HEADER_BYTES).ok_or(Refusal::Truncated)?);
        if r.u64() != MAGIC {
            return Err(Refusal::Magic);
        }
        if r.u32() != VERSION {
            return Err(Refusal::Version);
        }
        let crc = r.u32();
        let header = Header {
            length: r.u32(),
            processes: r.u16(),
            objects: r.u16(),
            segments: r.u16(),
            devices: r.u16(),
            flags: r.u32(),
            horizon: r.u64(),
            recorder_bytes: r.u32(),
        };
        let bytes = bytes.get(..header.length as usize).ok_or(Refusal::Truncated)?;
        let covered = bytes.get(CRC_FROM..header.tables_end()).ok_or(Refusal::Truncated)?;
        if crc32(covered) != crc {
            return Err(Refusal::TablesChecksum);
        }
        let archive = Archive { bytes, header };
        if archive.is_possible() { Ok(archive) } else { Err(Refusal::Table) }
    }

    fn is_possible(&self) -> bool {
        let h = &self.header;
        let counts = h.processes as usize <= PROCESSES_MAX
            && h.processes > 0
            && h.objects <= OBJECTS_MAX
            && h.segments <= TABLE_MAX
            && h.devices <= TABLE_MAX;
        counts
            && self.processes().all(|p| p.is_possible(h.processes))
            && (0..h.objects).all(|i| self.object(i).is_some())
            && self.segments().all(|s| (1..=layout::SLOT_PAGES).contains(&u64::from(s.pages)))
            && self.devices().all(|d| u64::from(d.pages) <= layout::SLOT_PAGES)
    }

    /// An entry of the table that begins at `start`; zeros past the end of the archive.
    fn entry<const N: usize>(&self, start: usize, index: u16) -> &'a [u8; N] {
        let rest = self.bytes.get(start + N * index as usize..);
        rest.and_then(|bytes| bytes.first_chunk()).unwrap_or(&[0; N])
    }

    const fn objects_start(&self) -> usize {
        HEADER_BYTES + PROCESS_BYTES * self.header.processes as usize
    }

    const fn segments_start(&self) -> usize {
        self.objects_start() + ENTRY_BYTES * self.header.objects as usize
    }

    const fn devices_start(&self) -> usize {
        self.segments_start() + ENTRY_BYTES * self.header.segments as usize
    }

    /// A process, by its place in the description.
    #[inline(never)]
    #[must_use]
    pub fn process(&self, index: u16) -> ProcessRecord {
        ProcessRecord::parse(self.entry(HEADER_BYTES, index))
    }

    /// A declared object; `None` if the entry is of no known kind.
    #[inline(never)]
    #[must_use]
    pub fn object(&self, index: u16) -> Option<ObjectRecord> {
        ObjectRecord::parse(self.entry(self.objects_start(), index))
    }

    /// A declared segment.
    #[must_use]
    pub fn segment(&self, index: u16) -> SegmentRecord {
        SegmentRecord::parse(self.entry(self.segments_start(), index))
    }

    /// A declared device.
    #[must_use]
    pub fn device(&self, index: u16) -> DeviceRecord {
        DeviceRecord::parse(self.entry(self.devices_start(), index))
    }

    /// The processes, in the description's order.
    pub fn processes(&self) -> impl Iterator<Item = ProcessRecord> + '_ {
        (0..self.header.processes).map(|i| self.process(i))
    }

    /// The declared objects.
    pub fn objects(&self) -> impl Iterator<Item = ObjectRecord> + '_ {
        (0..self.header.objects).filter_map(|i| self.object(i))
    }

    /// The declared segments.
    pub fn segments(&self) -> impl Iterator<Item = SegmentRecord> + '_ {
        (0..self.header.segments).map(|i| self.segment(i))
    }

    /// The declared devices.
    pub fn devices(&self) -> impl Iterator<Item = DeviceRecord> + '_ {
        (0..self.header.devices).map(|i| self.device(i))
    }

    /// The program of a process, if it is where and what the table says.
    ///
    /// # Errors
    /// `ImageRange` or `ImageChecksum`.
    pub fn image(&self, process: &ProcessRecord) -> Result<&'a [u8], Refusal> {
        let start = process.image_offset as usize;
        let image = start
            .checked_add(process.image_length as usize)
            .and_then(|end| self.bytes.get(start..end))
            .ok_or(Refusal::ImageRange)?;
        if crc32(image) == process.image_crc { Ok(image) } else { Err(Refusal::ImageChecksum) }
    }
}

/// The checksum covers everything after itself up to the end of the tables.
pub const CRC_FROM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> ProcessRecord {
        ProcessRecord {
            key: 1,
            image_offset: 0,
            image_length: 0,
            image_crc: 0,
            priority: 5,
            start_at_boot: true,
            supervisor: NONE,
            threads: 2,
            semaphores: 3,
            conditions: 4,
            events: 5,
            stack_pages: 4,
            heap_pages: 7,
            restarts_max: 8,
            backoff: 9,
            starters: 10,
            arguments: [11, 12, 13, 14],
        }
    }

    fn archive_of(process: ProcessRecord, image: &[u8]) -> Vec<u8> {
        let object = ObjectRecord {
            key: 2,
            allowed: 1,
            initial: 3,
            kind: ObjectKind::Mailbox,
            capacity: 4,
            faults_of: NONE,
        };
        let segment = SegmentRecord { key: 3, allowed: 1, pages: 2 };
        let device =
            DeviceRecord { key: 4, allowed: 1, address: 5, pages: 1, irq: NONE, level: true };
        let mut header = Header {
            length: 0,
            processes: 1,
            objects: 1,
            segments: 1,
            devices: 1,
            horizon: 77,
            flags: flags::RECORD,
            recorder_bytes: 4096,
        };
        let offset = header.tables_end();
        header.length = (offset + image.len()) as u32;
        let process = ProcessRecord {
            image_offset: offset as u32,
            image_length: image.len() as u32,
            image_crc: crc32(image),
            ..process
        };
        let mut bytes = header.to_bytes(0).to_vec();
        bytes.extend(process.to_bytes());
        bytes.extend(object.to_bytes());
        bytes.extend(segment.to_bytes());
        bytes.extend(device.to_bytes());
        let crc = crc32(&bytes[CRC_FROM..]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes.extend(image);
        bytes
    }

    #[test]
    fn crc_is_the_standard_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn tables_come_back_as_written() {
        let bytes = archive_of(process(), b"image");
        let archive = Archive::parse(&bytes).unwrap();
        let read = archive.processes().next().unwrap();
        assert_eq!(
            ProcessRecord { image_offset: 0, image_length: 0, image_crc: 0, ..read },
            process()
        );
        assert_eq!(archive.image(&read), Ok(&b"image"[..]));
        assert_eq!(archive.objects().next().unwrap().capacity, 4);
        assert_eq!(archive.segments().next().unwrap().pages, 2);
        assert!(archive.devices().next().unwrap().level);
        assert_eq!((archive.header.horizon, archive.header.recorder_bytes), (77, 4096));
    }

    #[test]
    fn every_single_bit_flip_is_noticed() {
        let good = archive_of(process(), b"image");
        let tables = Archive::parse(&good).unwrap().header.tables_end();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            match Archive::parse(&bad) {
                Err(_) => assert!(bit / 8 < tables),
                Ok(archive) => {
                    let record = archive.processes().next().unwrap();
                    assert_eq!(archive.image(&record), Err(Refusal::ImageChecksum));
                }
            }
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        let good = archive_of(process(), b"image");
        for length in 0..good.len() {
            assert!(Archive::parse(&good[..length]).is_err());
        }
    }

    #[test]
    fn impossible_entries_are_refused_though_the_checksum_is_right() {
        for bad in [
            ProcessRecord { priority: 64, ..process() },
            ProcessRecord { threads: 0, ..process() },
            ProcessRecord { threads: 65, ..process() },
            ProcessRecord { stack_pages: 64, ..process() },
            ProcessRecord { supervisor: 1, ..process() },
            ProcessRecord { heap_pages: 0x8001, ..process() },
        ] {
            assert_eq!(Archive::parse(&archive_of(bad, b"")).unwrap_err(), Refusal::Table);
        }
    }
}
