//! Programs: from the archive's ELF images to address spaces ready to run.
//!
//! Code and constants are mapped as they are. A program's data pages come with a second, pristine
//! and read-only copy, which the program copies over them at each start: restarting a process costs
//! the kernel nothing, and runs on the process's own time.

use super::memory::BootMemory;
use crate::machine::Program;
use crate::paging::{Space, bits};
use diapason_abi::archive::{Archive, ProcessRecord, Refusal};
use diapason_abi::elf::{self, Segment};
use diapason_abi::{PAGE, layout};

/// A process ready to start.
pub struct Loaded {
    pub space: Space,
    pub program: Program,
}

/// Loads the program of `record` as process `process`.
#[inline(never)]
pub fn load(
    archive: &Archive<'_>,
    record: &ProcessRecord,
    process: u16,
    info_table: u64,
    memory: &mut BootMemory,
) -> Result<Loaded, Refusal> {
    let program = elf::Program::parse(archive.image(record)?)?;
    // Check every relocation before anything is mapped.
    relocate(&program, None)?;
    let space = Space::new(memory, process).ok_or(Refusal::Memory)?;
    let base = layout::base(process);
    for segment in program.segments() {
        let writable = segment.flags & elf::WRITE != 0;
        let bytes = program.bytes(&segment);
        let file = copy(&segment, bytes, memory).ok_or(Refusal::Memory)?;
        if writable {
            relocate(&program, Some((&segment, file, base)))?;
        }
        map(&space, &segment, file, memory).ok_or(Refusal::Memory)?;
    }
    stacks(&space, record, memory).ok_or(Refusal::Memory)?;
    space.reserve(memory, layout::HEAP, u64::from(record.heap_pages)).ok_or(Refusal::Memory)?;
    space.show(layout::INFO, info_table);
    let entry = base + program.entry;
    Ok(Loaded { space, program: Program { entry, arguments: record.arguments } })
}

/// The file's part of a segment, in pages of its own.
fn copy(segment: &Segment, bytes: &[u8], memory: &mut BootMemory) -> Option<u64> {
    let pages = segment.file_end_page() - segment.first_page();
    let start = memory.cut(pages.max(1) * PAGE as u64)?;
    let offset = segment.address % PAGE as u64;
    // SAFETY: fresh memory, large enough for the offset and the bytes: both lie in these pages.
    unsafe {
        let to = (start + offset) as *mut u8;
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
    }
    Some(start)
}

/// Checks every relocation; writes those that lie in a segment, of which there is a copy, for a
/// program at a base.
#[inline(never)]
fn relocate(
    program: &elf::Program<'_>,
    target: Option<(&Segment, u64, u64)>,
) -> Result<(), Refusal> {
    program.relocations(|place, addend| {
        let Some((segment, copy, base)) = target else { return };
        let end = segment.address + segment.file_size;
        if place >= segment.address && place + 8 <= end {
            let at = copy + segment.address % PAGE as u64 + (place - segment.address);
            // SAFETY: the word lies within the copied bytes.
            unsafe { (at as *mut u64).write_unaligned(base + addend) }
        }
    })
}

fn map(space: &Space, segment: &Segment, file: u64, memory: &mut BootMemory) -> Option<()> {
    let writable = segment.flags & elf::WRITE != 0;
    let execute = if segment.flags & elf::EXECUTE != 0 { 0 } else { bits::NO_EXECUTE };
    for page in segment.first_page()..segment.end_page() {
        let offset = page * PAGE as u64;
        let copied = file + (page - segment.first_page()) * PAGE as u64;
        let from_file = page < segment.file_end_page();
        if writable {
            let fresh = memory.page()?;
            space.map(memory, offset, fresh, bits::WRITE | bits::NO_EXECUTE)?;
            if from_file {
                space.map(memory, layout::DATA_IMAGE + offset, copied, bits::NO_EXECUTE)?;
            }
        } else if from_file {
            space.map(memory, offset, copied, execute)?;
        }
    }
    Some(())
}

fn stacks(space: &Space, record: &ProcessRecord, memory: &mut BootMemory) -> Option<()> {
    for slot in 0..u64::from(record.threads) {
        let top = layout::STACKS + (slot + 1) * layout::STACK_STRIDE;
        for page in 1..=u64::from(record.stack_pages) {
            let fresh = memory.page()?;
            let rights = bits::WRITE | bits::NO_EXECUTE;
            space.map(memory, top - page * PAGE as u64, fresh, rights)?;
        }
    }
    Some(())
}
