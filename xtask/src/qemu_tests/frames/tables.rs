//! Page tables in the memory of a machine, as its processor follows them.

use diapason_abi::{PAGE, layout};
use std::collections::BTreeSet;

const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// The processor sets these by itself: that a page was used, and written.
pub(super) const USED: u64 = 0x60;
const ENTRIES: u64 = 512;
/// Entries of the kernel in a level-3 table, and the bytes of one.
const KERNEL_ENTRIES: u64 = 4;
const GIBIBYTE: u64 = 1 << 30;

/// The memory of a machine, from its first byte on.
pub(super) struct Memory(pub Vec<u8>);

impl Memory {
    /// Returns whether the memory has this frame: registers lie elsewhere.
    pub fn has(&self, frame: u64) -> bool {
        frame + PAGE as u64 <= self.0.len() as u64
    }

    fn frame(&self, frame: u64) -> &[u8] {
        let at = frame as usize;
        self.0.get(at..at + PAGE).unwrap_or_default()
    }

    fn words(&self, frame: u64) -> impl Iterator<Item = u64> {
        let words = self.frame(frame).as_chunks().0.iter();
        words.map(|word| u64::from_le_bytes(*word))
    }

    /// Returns the entries of a table that are there, with their numbers.
    fn entries(&self, table: u64) -> impl Iterator<Item = (u64, u64)> {
        (0..ENTRIES).zip(self.words(table)).filter(|(_, entry)| entry & PRESENT != 0)
    }

    /// Returns the first word of a frame that is another one than in another memory: its place, and
    /// both. `mask` says for each place which bits count.
    pub fn changed(
        &self,
        other: &Memory,
        frame: u64,
        mask: impl Fn(usize) -> u64,
    ) -> Option<(usize, u64, u64)> {
        let mut words = self.words(frame).zip(other.words(frame)).enumerate();
        let (at, (one, two)) = words.find(|(at, (one, two))| (one ^ two) & mask(*at) != 0)?;
        Some((at, one, two))
    }
}

/// A page that a space maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub address: u64,
    pub frame: u64,
    pub writes: bool,
    pub executes: bool,
}

/// A slot of a window that the description grants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    Segment(usize),
    Device(usize),
}

impl Page {
    /// Returns whether it is the page that tells a program about the run.
    pub const fn is_information(&self) -> bool {
        self.address & u32::MAX as u64 == layout::INFO
    }

    /// Returns the slot that it is in, if it is in one.
    pub fn slot(&self) -> Option<Slot> {
        let offset = self.address & u64::from(u32::MAX);
        let number = |from: u64| ((offset - from) / layout::SLOT) as usize;
        match offset {
            layout::SEGMENTS..layout::DEVICES => Some(Slot::Segment(number(layout::SEGMENTS))),
            layout::DEVICES..layout::INFO => Some(Slot::Device(number(layout::DEVICES))),
            _ => None,
        }
    }
}

/// The address space of a process.
pub(super) struct Space {
    pub process: u16,
    /// Its own tables, of all levels; those of segments and devices are in several spaces.
    pub tables: BTreeSet<u64>,
    /// The pages of its window.
    pub pages: Vec<Page>,
    /// The pages below the windows, which are the kernel's, and their tables.
    pub kernel: Vec<Page>,
    pub kernel_tables: BTreeSet<u64>,
}

impl Space {
    /// Returns whether a frame is a table of this space, or of the kernel's code and constants.
    pub fn is_part(&self, frame: u64) -> bool {
        let is_table = self.tables.contains(&frame) || self.kernel_tables.contains(&frame);
        is_table || self.kernel.iter().any(|page| page.frame == frame && !page.writes)
    }
}

/// Returns where the data of a kernel are, from its ELF file.
pub(super) fn data_of(kernel: &[u8]) -> Option<std::ops::Range<u64>> {
    const LOAD: u32 = 1;
    const WRITABLE: u32 = 2;
    let half = |at: usize| Some(u16::from_le_bytes(*kernel.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*kernel.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*kernel.get(at..)?.first_chunk()?));
    let (table, size, count) = (long(32)? as usize, half(54)?, half(56)?);
    let headers = (0..count).map(|number| table + usize::from(number) * usize::from(size));
    let is_data = |at: &usize| word(*at) == Some(LOAD) && word(at + 4).unwrap_or(0) & WRITABLE != 0;
    let at = headers.into_iter().find(is_data)?;
    let start = long(at + 16)?;
    Some(start..start + long(at + 40)?)
}

/// Returns all address spaces, by their processes. A root is found by what it holds: one level-3
/// table, with the kernel's entries and one window.
pub(super) fn spaces(memory: &Memory) -> Vec<Space> {
    let frames = (0..memory.0.len() as u64).step_by(PAGE);
    let mut all: Vec<Space> = frames.filter_map(|root| space(memory, root)).collect();
    all.sort_by_key(|space| space.process);
    all
}

fn space(memory: &Memory, root: u64) -> Option<Space> {
    let first = memory.words(root).next()?;
    if first & (PRESENT | USER) != PRESENT | USER || memory.words(root).skip(1).any(|it| it != 0) {
        return None;
    }
    let upper = first & ADDRESS;
    let there: Vec<(u64, u64)> = memory.entries(upper).collect();
    let (kernel, windows): (Vec<_>, Vec<_>) =
        there.into_iter().partition(|(number, _)| *number < KERNEL_ENTRIES);
    let ([(window, directory)], 4) = (&windows[..], kernel.len()) else { return None };
    let process = (window * GIBIBYTE / (1 << 32)).checked_sub(1)?;
    let mut space = Space {
        process: u16::try_from(process).ok()?,
        tables: [root, upper].into(),
        pages: Vec::new(),
        kernel: Vec::new(),
        kernel_tables: BTreeSet::new(),
    };
    let Space { tables, pages, kernel: own, kernel_tables, .. } = &mut space;
    follow(memory, (window * GIBIBYTE, directory & ADDRESS), tables, pages);
    for (number, directory) in kernel {
        follow(memory, (number * GIBIBYTE, directory & ADDRESS), kernel_tables, own);
    }
    Some(space)
}

/// Follows a level-2 table.
fn follow(
    memory: &Memory,
    (from, directory): (u64, u64),
    tables: &mut BTreeSet<u64>,
    pages: &mut Vec<Page>,
) {
    tables.insert(directory);
    for (number, table) in memory.entries(directory).filter(|(_, entry)| entry & LARGE == 0) {
        tables.insert(table & ADDRESS);
        for (place, entry) in memory.entries(table & ADDRESS) {
            pages.push(Page {
                address: from + number * layout::SLOT + place * PAGE as u64,
                frame: entry & ADDRESS,
                writes: entry & WRITE != 0,
                executes: entry & NO_EXECUTE == 0,
            });
        }
    }
}
