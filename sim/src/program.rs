//! Programs: the images that boot, put into their windows with the simulator behind their stubs.

use crate::context;
use crate::memory::{Rights, Window};
use diapason_abi::archive::{Archive, ProcessRecord, Refusal};
use diapason_abi::elf::{self, Segment};
use diapason_abi::{PAGE, layout};
use std::ops::Range;

/// The first bytes of a program.
const MAGIC: &[u8; 8] = b"DIAPROG1";
/// `movabs r11, entry; jmp r11`.
const PATCH_BYTES: usize = 13;
/// Stubs a header names, behind the entry point.
const STUBS: usize = 10;

/// A program in its window.
pub(crate) struct Program {
    pub window: Window,
    pub entry: u64,
    pub arguments: [u64; 4],
}

/// Loads the program of `record` into the window that begins at `base`.
pub(crate) fn load(
    archive: &Archive<'_>,
    record: &ProcessRecord,
    base: u64,
) -> Result<Program, Refusal> {
    let program = elf::Program::parse(archive.image(record)?)?;
    program.relocations(|_, _| {})?;
    let mut window = Window::reserve(base).map_err(|_| Refusal::Memory)?;
    for segment in program.segments() {
        place(&mut window, &program, &segment)?;
    }
    patch(&mut window, &program)?;
    for segment in program.segments() {
        protect(&mut window, &segment);
    }
    for slot in 0..u64::from(record.threads) {
        let top = layout::STACKS + (slot + 1) * layout::STACK_STRIDE;
        let pages = u64::from(record.stack_pages);
        window.protect(top - pages * PAGE as u64, pages, Rights::Write);
    }
    info_page(&mut window, archive.header.horizon);
    let entry = base + program.entry;
    Ok(Program { window, entry, arguments: record.arguments })
}

fn is_writable(segment: &Segment) -> bool {
    segment.flags & elf::WRITE != 0
}

/// Offsets of the segment's pages that come from the file, and of all of them.
fn pages(segment: &Segment) -> (Range<u64>, Range<u64>) {
    let (first, page) = (segment.first_page(), PAGE as u64);
    (first * page..segment.file_end_page() * page, first * page..segment.end_page() * page)
}

fn count(range: &Range<u64>) -> u64 {
    (range.end - range.start) / PAGE as u64
}

/// Copies a segment: code and constants where they belong, data to its pristine copy.
fn place(
    window: &mut Window,
    program: &elf::Program<'_>,
    segment: &Segment,
) -> Result<(), Refusal> {
    let (file, _) = pages(segment);
    let distance = if is_writable(segment) { layout::DATA_IMAGE } else { 0 };
    window.protect(file.start + distance, count(&file), Rights::Write);
    let bytes = program.bytes(segment);
    window.bytes(segment.address + distance, bytes.len()).copy_from_slice(bytes);
    if !is_writable(segment) {
        return Ok(());
    }
    let base = window.base();
    let end = segment.address + segment.file_size;
    program.relocations(|at, addend| {
        if at >= segment.address && at + 8 <= end {
            let word = (base + addend).to_le_bytes();
            window.bytes(at + distance, 8).copy_from_slice(&word);
        }
    })
}

/// The rights a segment has once everything is in place.
fn protect(window: &mut Window, segment: &Segment) {
    let (file, all) = pages(segment);
    if is_writable(segment) {
        window.protect(file.start + layout::DATA_IMAGE, count(&file), Rights::Read);
        window.protect(all.start, count(&all), Rights::Write);
    } else {
        let executable = segment.flags & elf::EXECUTE != 0;
        let rights = if executable { Rights::Execute } else { Rights::Read };
        window.protect(file.start, count(&file), rights);
    }
}

/// Writes a jump to the simulator over each stub that the header names.
fn patch(window: &mut Window, program: &elf::Program<'_>) -> Result<(), Refusal> {
    let code = program.segments().next().filter(|s| s.flags & elf::EXECUTE != 0 && s.address == 0);
    let bytes = program.bytes(&code.ok_or(Refusal::ElfRange)?);
    let header = bytes.get(..8 + 4 * (STUBS + 2)).ok_or(Refusal::ElfRange)?;
    if !header.starts_with(MAGIC) {
        return Err(Refusal::NotElf);
    }
    let (words, _) = header[12..].as_chunks::<4>();
    for (stub, entry) in words.iter().zip(context::entries()) {
        let at = u32::from_le_bytes(*stub) as usize;
        if at.checked_add(PATCH_BYTES).is_none_or(|end| end > bytes.len()) {
            return Err(Refusal::ElfRange);
        }
        let mut jump = [0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3];
        jump[2..10].copy_from_slice(&entry.to_le_bytes());
        window.bytes(at as u64, PATCH_BYTES).copy_from_slice(&jump);
    }
    Ok(())
}

/// The page every process may read.
fn info_page(window: &mut Window, horizon: u64) {
    window.protect(layout::INFO, 1, Rights::Write);
    let at = layout::INFO + 8 * layout::info::HORIZON as u64;
    window.bytes(at, 8).copy_from_slice(&horizon.to_le_bytes());
    window.protect(layout::INFO, 1, Rights::Read);
}
