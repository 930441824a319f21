//! Facts about ELF files: sizes, entry points, and the part that is loaded.

use crate::failure::Failure;
use diapason_abi::served::{ANY_CALL, Served};
use object::elf::{FileHeader64, NoteHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use object::{Endianness, LittleEndian, Object, ObjectSection, ObjectSegment};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Bytes of an image by kind of section.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ImageSizes {
    pub text: u64,
    pub rodata: u64,
    /// Data with a start value.
    pub data: u64,
    /// Data that starts as zero.
    pub bss: u64,
    /// The part of the code that leaves memory after boot.
    pub boot_text: u64,
    /// The part of the constants that leaves memory after boot.
    pub boot_rodata: u64,
    /// The part of the code that stays only on a machine with a screen.
    pub screen_text: u64,
    /// The part of the constants that stays only on a machine with a screen.
    pub screen_rodata: u64,
}

impl ImageSizes {
    /// Returns the bytes of code and constants.
    #[must_use]
    pub const fn image(&self) -> u64 {
        self.text + self.rodata
    }

    /// Code and constants that leave memory after boot.
    #[must_use]
    pub const fn boot(&self) -> u64 {
        self.boot_text + self.boot_rodata
    }

    /// Code and constants that stay only on a machine with a screen.
    #[must_use]
    pub const fn screen(&self) -> u64 {
        self.screen_text + self.screen_rodata
    }

    /// Code and constants that stay on every machine.
    #[must_use]
    pub const fn resident(&self) -> u64 {
        self.image() - self.boot() - self.screen()
    }
}

/// An ELF file in memory.
#[derive(Clone, Debug)]
pub struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is no 64-bit ELF file.
    pub fn read(path: &Path) -> Result<Image, Failure> {
        let bytes = fs::read(path)
            .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        let image = Image { bytes };
        image.parsed().map(|_| ()).map_err(|error| {
            Failure::Ours(format!("{} is no ELF file: {error}", path.display()))
        })?;
        Ok(image)
    }

    pub(crate) fn parsed(&self) -> object::Result<object::File<'_>> {
        object::File::parse(&*self.bytes)
    }

    /// Bytes per kind of section that is loaded. `.text.hot` counts as `.text`, and so on; every
    /// other loaded section (notes, tables of the linker) counts as constants. Sections whose name
    /// begins with `.boot` count once more as what leaves, and those of `.screen` as the screen's.
    #[must_use]
    pub fn sizes(&self) -> ImageSizes {
        let mut sizes = ImageSizes::default();
        let Ok(file) = self.parsed() else { return sizes };
        for section in file.sections() {
            let size = section.size();
            let before = sizes;
            match section.kind() {
                object::SectionKind::Text => sizes.text += size,
                object::SectionKind::Data | object::SectionKind::Tls => sizes.data += size,
                object::SectionKind::UninitializedData => sizes.bss += size,
                object::SectionKind::ReadOnlyData
                | object::SectionKind::ReadOnlyDataWithRel
                | object::SectionKind::ReadOnlyString => sizes.rodata += size,
                _ if section.address() != 0 => sizes.rodata += size,
                _ => {}
            }
            let (text, rodata) = (sizes.text - before.text, sizes.rodata - before.rodata);
            let name = section.name().unwrap_or_default();
            if name.starts_with(".boot") {
                (sizes.boot_text, sizes.boot_rodata) =
                    (sizes.boot_text + text, sizes.boot_rodata + rodata);
            } else if name.starts_with(".screen") {
                (sizes.screen_text, sizes.screen_rodata) =
                    (sizes.screen_text + text, sizes.screen_rodata + rodata);
            }
        }
        sizes
    }

    /// Returns the calls that a program makes: its section `.calls`, which the runtime and the
    /// linker fill. A program without one was made by an older version, and may make any call.
    #[must_use]
    pub fn calls(&self) -> Served {
        let Ok(file) = self.parsed() else { return Served::of_calls(&[ANY_CALL]) };
        let list = file.section_by_name(".calls").and_then(|section| section.data().ok());
        Served::of_calls(list.unwrap_or(&[ANY_CALL]))
    }

    /// Returns the address in the file's header.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.parsed().map_or(0, |file| file.entry())
    }

    /// Returns a number that is the same for the same loaded bytes at the same addresses: FNV-1a.
    /// Debug data, and so the path of the checkout, are not in it.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let Ok(file) = self.parsed() else { return 0 };
        let numbers = file.segments().map(|s| [s.address().to_le_bytes(), s.size().to_le_bytes()]);
        let segments = file.segments().zip(numbers);
        fnv(segments.map(|(s, n)| [&n.concat(), s.data().unwrap_or_default()].concat()))
    }

    /// Returns where a PVH boot enters the kernel: the note "Xen", type 18.
    #[must_use]
    pub fn pvh_entry(&self) -> Option<u64> {
        const PHYS32_ENTRY: u32 = 18;
        let header = FileHeader64::<Endianness>::parse(&*self.bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &*self.bytes).ok()?;
        let notes =
            segments.iter().filter_map(|segment| segment.notes(endian, &*self.bytes).ok()?);
        notes.flat_map(all_notes).find_map(|(name, kind, value)| {
            (name == b"Xen" && kind == PHYS32_ENTRY).then_some(value)
        })
    }
}

/// Returns a number for bytes, in parts: FNV-1a.
pub(crate) fn fnv<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> u64 {
    parts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, part| {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        part.as_ref().iter().fold(hash, add)
    })
}

/// Name, type and value (little-endian, up to eight bytes) of each note.
fn all_notes<'a>(
    mut notes: NoteIterator<'a, FileHeader64<Endianness>>,
) -> Vec<(&'a [u8], u32, u64)> {
    let mut found = Vec::new();
    while let Ok(Some(note)) = notes.next() {
        let mut word = [0; 8];
        let length = note.desc().len().min(8);
        word[..length].copy_from_slice(&note.desc()[..length]);
        let kind = note.n_type(Endianness::Little).0;
        found.push((note.name(), kind, u64::from_le_bytes(word)));
    }
    found
}

/// Returns the file up to the end of its last segment, its section table disowned: what a loader
/// needs, without symbols and debug data. A file that is not understood stays as it is.
#[must_use]
pub fn without_sections(mut file: Vec<u8>) -> Vec<u8> {
    /// Where the header keeps the section table's place, count, and string table.
    const SECTIONS_OFFSET: std::ops::Range<usize> = 40..48;
    const SECTIONS_COUNT_AND_NAMES: std::ops::Range<usize> = 60..64;
    let Some(end) = segments_end(&file) else { return file };
    if end < SECTIONS_COUNT_AND_NAMES.end || end > file.len() {
        return file;
    }
    file.truncate(end);
    file[SECTIONS_OFFSET].fill(0);
    file[SECTIONS_COUNT_AND_NAMES].fill(0);
    file
}

/// Returns one past the last byte that a segment or the program headers use.
fn segments_end(file: &[u8]) -> Option<usize> {
    let header = FileHeader64::<LittleEndian>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let table_end = header.e_phoff(endian) + std::mem::size_of_val(segments) as u64;
    let ends = segments.iter().filter_map(|s| s.p_offset(endian).checked_add(s.p_filesz(endian)));
    usize::try_from(ends.max()?.max(table_end)).ok()
}

/// Keeps the note header's layout in sight of the compiler: `all_notes` depends on it.
const _: () = assert!(std::mem::size_of::<NoteHeader64<Endianness>>() == 12);

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own executable is an ELF file with everything in it.
    fn own() -> std::path::PathBuf {
        std::env::current_exe().unwrap()
    }

    #[test]
    fn sizes_and_entry_are_found() {
        let image = Image::read(&own()).unwrap();
        let sizes = image.sizes();
        assert!(sizes.text > 10_000 && sizes.rodata > 1_000 && sizes.bss > 0);
        assert!(image.entry() > 0);
        assert_eq!(image.pvh_entry(), None);
    }

    #[test]
    fn a_stripped_image_keeps_its_segments() {
        let whole = fs::read(own()).unwrap();
        let entry = Image { bytes: whole.clone() }.entry();
        let stripped = without_sections(whole.clone());
        assert!(stripped.len() < whole.len());
        let image = Image { bytes: stripped.clone() };
        assert_eq!(image.entry(), entry);
        assert_eq!(segments_end(&stripped), segments_end(&whole));
        assert_eq!(image.parsed().unwrap().sections().count(), 0);
    }

    #[test]
    fn what_is_no_elf_file_is_left_alone() {
        assert_eq!(without_sections(b"text".to_vec()), b"text");
        assert_eq!(without_sections(Vec::new()), b"");
    }
}
