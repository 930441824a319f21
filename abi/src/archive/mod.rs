//! The boot archive: one file with the compiled description of a system and its programs.
//!
//! The builder (`lib/system`) proves the description and writes this; the kernel reads it at boot
//! and trusts nothing: lengths, counts and checksums are verified before use, by total functions
//! that cannot panic. A damaged header or table refuses the archive; a damaged program refuses
//! that program, and the rest boots.
//!
//! Layout, little-endian: a header of [`HEADER_BYTES`], then the process, object, segment and
//! device and VCPU tables, then the ELF images.

mod codec;
mod device;
mod records;
#[cfg(test)]
mod tests;
mod vcpu;

pub use device::{
    Absence, BARS, BELLS_MAX, DeviceRecord, INTERRUPTS_MAX, Location, MESSAGES, PciFunction,
};
pub use records::{
    Header, ObjectKind, ObjectRecord, ProcessRecord, STACK_BYTES_MAX, SegmentRecord,
};
pub use vcpu::{
    BUDGET_MIN, DP_QUEUES_MAX, PERIOD_MAX, PERIOD_MIN, REPLENISHMENTS_MAX, REPLENISHMENTS_MIN,
    VCPU_BYTES, VCPUS_MAX, VcpuKind, VcpuRecord, WAKES_MAX, WHOLE_PPM,
};

use crate::{PROCESSES_MAX, layout};
use codec::Reader;

pub const MAGIC: u64 = u64::from_le_bytes(*b"DIAPASON");
/// Raised whenever a field moves.
pub const VERSION: u32 = 7;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// "No such thing" in 16-bit fields.
pub const NONE: u16 = u16::MAX;
/// Bytes of one entry of the process table.
pub const PROCESS_BYTES: usize = 112;
/// Bytes of one entry of the object, segment and device tables.
pub const ENTRY_BYTES: usize = 40;
/// Most entries in any one table but that of the objects.
pub const TABLE_MAX: u16 = 64;
pub const OBJECTS_MAX: u16 = 1024;
/// Most cores of a host. The archives of the others lie behind that of the first.
pub const CORES_MAX: usize = 8;
/// Each of these archives begins at a multiple of this.
pub const ARCHIVE_ALIGN: usize = 8;

/// Options of a run, in the header.
pub mod flags {
    /// Keep the flight recorder.
    pub const RECORD: u32 = 1;
    /// Time every kernel path and report the longest.
    pub const WATCH: u32 = 2;
    /// The exact test admitted the declared VCPUs: the closed form need not.
    pub const EXACT: u32 = 4;
    /// From this bit on, a number n of four bits: the clock of the kernel goes 2^n times slower
    /// than the processor's. An emulator that is held up for a while then loses little time.
    pub const SLOWER_FROM: u32 = 8;

    /// Returns n of [`SLOWER_FROM`].
    #[must_use]
    pub const fn slower(flags: u32) -> u32 {
        flags >> SLOWER_FROM & 15
    }
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why an archive or a program in it cannot be used, or nothing can start on a machine.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Refusal { $($(#[$doc])* $name = $number,)* }

        impl Refusal {
            pub const ALL: &'static [Refusal] = &[$(Refusal::$name,)*];
            /// Returns the reason in words.
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
    Memory = 13, "the machine has too little memory for it";
    /// A VCPU is out of range.
    Vcpu = 14, "a virtual CPU of the archive has impossible numbers";
    /// The entry point is not in its code.
    ElfEntry = 15, "the program's entry point does not lie in its code";
    /// The run is to be recorded or watched, and the kernel has nothing for that.
    Observed = 16, "the run is to be observed, and this kernel was built without what that takes";
    /// The machine, not the archive: its time-stamp counter is not invariant.
    CounterVaries = 17, "the processor's counter changes its speed (it has no invariant TSC)";
    /// The machine has no clock of known speed.
    NoReference = 18, "no clock ticks that the processor's counter could be compared with: neither \
        the HPET nor ACPI's timer nor the PIT, and the processor names no speed";
    /// The clocks were compared, and the results differ.
    Unsteady = 19, "the processor's counter or timer had another speed each time it was compared \
        with a clock: something holds the processor up";
    /// The kernel is that of another description.
    Unserved = 20, "the system has objects of a kind that this kernel was built without";
    /// A core of the system has no processor that starts.
    Processors = 21, "the machine has too few processors for the cores of the system, or one does \
        not start";
    /// The machine: its timer and its interrupts are those of the local APIC.
    Apic = 22, "the processor has no local APIC, or firmware switched it off";
    /// The machine: the registers of its local APIC cannot be put into memory.
    X2Apic = 23, "firmware has locked the processor's local APIC in the mode x2APIC";
    /// The machine: data of programs could be executed.
    NoExecute = 24, "the processor has no no-execute (NX, XD), or firmware switched it off";
    /// The machine: one of two accounts of the counter's speed is wrong.
    Disagree = 25, "the processor names another speed of its counter than a clock shows";
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

/// An archive whose checksums and structure were verified.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    pub header: Header,
}

impl<'a> Archive<'a> {
    /// Returns the checksum of its tables, which have the checksums of all programs.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.bytes.get(CRC_FROM - 4..CRC_FROM).map_or(0, |bytes| Reader(bytes).u32())
    }

    /// Checks `bytes` as far as the tables go; images are checked one by one by [`Archive::image`].
    ///
    /// # Errors
    /// The [`Refusal`] that applies.
    #[inline(never)]
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
            vcpus: r.u16(),
            dp_queues: r.u8(),
            switch_grace: r.u32(),
            interrupt_grace: r.u32(),
            longest_path: r.u32(),
        };
        let bytes = bytes.get(..header.length as usize).ok_or(Refusal::Truncated)?;
        let covered = bytes.get(CRC_FROM..header.tables_end()).ok_or(Refusal::Truncated)?;
        if crc32(covered) != crc {
            return Err(Refusal::TablesChecksum);
        }
        let archive = Archive { bytes, header };
        if !archive.is_possible() {
            return Err(Refusal::Table);
        }
        if archive.vcpus_are_possible() { Ok(archive) } else { Err(Refusal::Vcpu) }
    }

    #[inline(never)]
    fn is_possible(&self) -> bool {
        let h = &self.header;
        let counts = h.processes as usize <= PROCESSES_MAX
            && h.processes > 0
            && h.objects <= OBJECTS_MAX
            && h.segments <= TABLE_MAX
            && h.devices <= TABLE_MAX;
        counts
            && self.processes().all(|p| p.is_possible(h))
            && (0..h.objects).all(|i| self.object(i).is_some())
            && self.segments().all(|s| (1..=layout::SLOT_PAGES).contains(&u64::from(s.pages)))
            && self.devices_are_possible()
    }

    #[inline(never)]
    fn devices_are_possible(&self) -> bool {
        let is_pci = |i| self.device(i).is_some_and(|d| matches!(d.location, Location::Pci(_)));
        let possible = |i| self.device(i).is_some_and(|d| d.is_possible(i, is_pci));
        let is_bell = |d: &DeviceRecord| matches!(d.location, Location::Bell { .. });
        let interrupting = self.devices().filter(|d| d.irq != NONE && !is_bell(d)).count();
        (0..self.header.devices).all(possible) && interrupting <= INTERRUPTS_MAX
    }

    fn vcpus_are_possible(&self) -> bool {
        let h = &self.header;
        if h.vcpus > VCPUS_MAX || h.dp_queues > DP_QUEUES_MAX {
            return false;
        }
        let quotas: u32 = self.processes().map(|p| u32::from(p.vcpus)).sum();
        let main = |record: &VcpuRecord| u64::from(record.kind == VcpuKind::Main);
        let mask = |mask, i| mask | self.vcpu(i).map_or(0, |record| main(&record) << i);
        let main = (0..h.vcpus).fold(0u64, mask);
        u32::from(h.vcpus) + quotas <= u32::from(VCPUS_MAX)
            && (0..h.vcpus)
                .all(|i| self.vcpu(i).is_some_and(|vcpu| vcpu.is_possible(h.dp_queues, main)))
    }

    /// An entry of the table that begins at `start`; zeros past the end of the archive.
    #[inline(never)]
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

    const fn vcpus_start(&self) -> usize {
        self.devices_start() + ENTRY_BYTES * self.header.devices as usize
    }

    /// Returns a process, by its place in the description.
    #[inline(never)]
    #[must_use]
    pub fn process(&self, index: u16) -> ProcessRecord {
        ProcessRecord::parse(self.entry(HEADER_BYTES, index))
    }

    /// Returns a declared object; `None` if the entry is of no known kind.
    #[inline(never)]
    #[must_use]
    pub fn object(&self, index: u16) -> Option<ObjectRecord> {
        ObjectRecord::parse(self.entry(self.objects_start(), index))
    }

    /// Returns the declared segment at `index`.
    #[must_use]
    pub fn segment(&self, index: u16) -> SegmentRecord {
        SegmentRecord::parse(self.entry(self.segments_start(), index))
    }

    /// Returns a declared device; `None` if the entry is of no known kind.
    #[inline(never)]
    #[must_use]
    pub fn device(&self, index: u16) -> Option<DeviceRecord> {
        DeviceRecord::parse(self.entry(self.devices_start(), index))
    }

    /// Returns a declared VCPU; `None` if the entry is of no known kind.
    #[inline(never)]
    #[must_use]
    pub fn vcpu(&self, index: u16) -> Option<VcpuRecord> {
        VcpuRecord::parse(self.entry(self.vcpus_start(), index))
    }

    /// Returns the processes, in the description's order.
    pub fn processes(&self) -> impl Iterator<Item = ProcessRecord> + '_ {
        (0..self.header.processes).map(|i| self.process(i))
    }

    /// Returns the declared objects in order.
    pub fn objects(&self) -> impl Iterator<Item = ObjectRecord> + '_ {
        (0..self.header.objects).filter_map(|i| self.object(i))
    }

    /// Returns the declared segments in order.
    pub fn segments(&self) -> impl Iterator<Item = SegmentRecord> + '_ {
        (0..self.header.segments).map(|i| self.segment(i))
    }

    /// Returns the declared devices in order.
    pub fn devices(&self) -> impl Iterator<Item = DeviceRecord> + '_ {
        (0..self.header.devices).filter_map(|i| self.device(i))
    }

    /// Returns whether a thread of process number `process` may run on a VCPU.
    #[must_use]
    pub fn may_reserve(&self, process: u16) -> bool {
        let record = self.process(process);
        let granted = |v: VcpuRecord| v.allowed >> (process & 63) & 1 == 1;
        record.vcpu != NONE || record.vcpus > 0 || self.vcpus().any(granted)
    }

    /// Returns the declared VCPUs in order.
    pub fn vcpus(&self) -> impl Iterator<Item = VcpuRecord> + '_ {
        (0..self.header.vcpus).filter_map(|i| self.vcpu(i))
    }

    /// Returns the program of a process, if it is where and what the table says.
    ///
    /// # Errors
    /// Returns `ImageRange` or `ImageChecksum` if the image is damaged.
    pub fn image(&self, process: &ProcessRecord) -> Result<&'a [u8], Refusal> {
        let start = process.image_offset as usize;
        let image = start
            .checked_add(process.image_length as usize)
            .and_then(|end| self.bytes.get(start..end))
            .ok_or(Refusal::ImageRange)?;
        if crc32(image) == process.image_crc { Ok(image) } else { Err(Refusal::ImageChecksum) }
    }
}

/// Adds flags to an archive. Something else than an archive stays as it is.
pub fn add_flags(archive: &mut [u8], more: u32) {
    let Ok(Archive { mut header, .. }) = Archive::parse(archive) else { return };
    header.flags |= more;
    let (whole, end) = (header.to_bytes(0), header.tables_end());
    archive[..HEADER_BYTES].copy_from_slice(&whole);
    let crc = crc32(&archive[CRC_FROM..end]);
    archive[..HEADER_BYTES].copy_from_slice(&header.to_bytes(crc));
}

/// The checksum covers everything after itself up to the end of the tables.
pub const CRC_FROM: usize = 16;
