//! The boot loader's information: of QEMU by the PVH interface, of GRUB by multiboot2.
//!
//! Both leave the archive, a map of the memory and the root of the ACPI tables. Their structures
//! lie below 4 GiB in memory that the map calls free, so they are read before any memory is cut.

use diapason_abi::PAGE;
use diapason_screen::Framebuffer;
use diapason_screen::frame::TAG_WORDS;

/// The part of a loader's information that the kernel needs.
#[derive(Default)]
pub struct Handed {
    /// Address and bytes of the archive.
    pub archive: [u64; 2],
    /// Where the map of the memory is, and the number of its entries.
    map: u64,
    entries: u32,
    /// Bytes from one entry to the next.
    stride: u32,
    /// Address of the root pointer of ACPI; 0 if the loader names none.
    pub rsdp: u64,
    /// The framebuffer, if there is one.
    pub frame: Option<Framebuffer>,
}

/// The word at which information by the PVH interface begins.
const PVH: u32 = 0x336e_c578;
/// A module begins with a page that nobody reads: GRUB may put it at address 0, where no reference
/// may lead.
const LEADING: u64 = PAGE as u64;
/// The value in EAX by which a multiboot2 loader says that it is one.
const MULTIBOOT: u32 = 0x36d7_6289;
/// Kinds of multiboot2 tags, each with a size behind its kind.
const END: u32 = 0;
const MODULE: u32 = 3;
const MEMORY_MAP: u32 = 6;
const FRAMEBUFFER: u32 = 8;
const OLD_RSDP: u32 = 14;
const NEW_RSDP: u32 = 15;
/// The kind of memory that may be used.
const RAM: u32 = 1;

impl Handed {
    /// Reads what the loader left at `address`: nothing, if that is something unknown.
    #[inline(never)]
    pub fn read(address: u64, magic: u32) -> Handed {
        match (magic, word(address)) {
            (MULTIBOOT, _) => Handed::multiboot(address),
            (_, PVH) => Handed::pvh(address),
            _ => Handed::default(),
        }
    }

    /// Returns the archive, with what an image has behind it; empty if the loader left none.
    pub fn module(&self) -> &'static [u8] {
        let [start, length] = self.archive;
        if length == 0 {
            return &[];
        }
        // SAFETY: the module the loader placed; never written.
        unsafe { core::slice::from_raw_parts(start as *const u8, length as usize) }
    }

    /// Version 1 of the interface.
    fn pvh(info: u64) -> Handed {
        let modules = long(info + 16);
        let archive = if word(info + 12) > 0 { [long(modules), long(modules + 8)] } else { [0; 2] };
        let (map, entries, rsdp) = (long(info + 40), word(info + 48), long(info + 32));
        Handed { archive, map, entries, stride: 24, rsdp, frame: None }
    }

    /// The first module is the archive. Firmware that has the extended root pointer gives both, and
    /// the extended one counts.
    fn multiboot(info: u64) -> Handed {
        let mut handed = Handed::default();
        let mut extended = false;
        let (mut at, end) = (info + 8, info + u64::from(word(info)));
        while at < end {
            let size = word(at + 4);
            match word(at) {
                END => break,
                MODULE if handed.archive[1] == 0 => {
                    let (start, end) = (u64::from(word(at + 8)) + LEADING, word(at + 12));
                    handed.archive = [start, u64::from(end).saturating_sub(start)];
                }
                MEMORY_MAP => {
                    (handed.map, handed.stride) = (at + 16, word(at + 8).max(1));
                    handed.entries = size.saturating_sub(16) / handed.stride;
                }
                FRAMEBUFFER if size as usize >= 4 * TAG_WORDS => {
                    let words = core::array::from_fn(|number| word(at + 4 * number as u64));
                    handed.frame = Framebuffer::of_tag(&words);
                }
                OLD_RSDP if !extended => handed.rsdp = at + 8,
                NEW_RSDP => (handed.rsdp, extended) = (at + 8, true),
                _ => {}
            }
            at += u64::from(size.max(8)).next_multiple_of(8);
        }
        handed
    }

    /// First and last address of each stretch of usable memory. Both interfaces lay out an entry in
    /// the same way.
    pub fn memory(&self) -> impl Iterator<Item = (u64, u64)> {
        let entry = |number| self.map + u64::from(number) * u64::from(self.stride);
        let entries = (0..self.entries).map(entry).filter(|at| word(at + 16) == RAM);
        entries.map(|at| (long(at), long(at).saturating_add(long(at + 8))))
    }
}

#[inline(never)]
fn word(address: u64) -> u32 {
    // SAFETY: within the loader's structures, which are below 4 GiB and mapped; boot has written
    // nothing there yet.
    unsafe { (address as *const u32).read_unaligned() }
}

#[inline(never)]
fn long(address: u64) -> u64 {
    u64::from(word(address)) | u64::from(word(address + 4)) << 32
}
