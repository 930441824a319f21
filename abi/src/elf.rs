//! The little of ELF that a user program needs: load segments and relative relocations.
//!
//! Programs are static position-independent executables. The loader copies their segments, adds
//! the window's base to the words named by `R_X86_64_RELATIVE` relocations, and starts the entry
//! point. Everything is bounds-checked before use; nothing here panics on any input.

use crate::archive::Refusal;
use crate::{PAGE, layout};

pub const EXECUTE: u32 = 1;
pub const WRITE: u32 = 2;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const TYPE_DYN: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const RELATIVE: u64 = 8;
const RELA_BYTES: u64 = 24;
const DT_RELA: u64 = 7;
const DT_RELA_SIZE: u64 = 8;

/// A part of the program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    pub flags: u32,
    /// Offset of its bytes in the file.
    pub offset: u64,
    /// The address of the segment, relative to the window.
    pub address: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// Bytes in memory; the rest is zero.
    pub memory_size: u64,
}

impl Segment {
    /// First page, relative to the window.
    #[must_use]
    pub const fn first_page(&self) -> u64 {
        self.address / PAGE as u64
    }

    /// Returns one past its last page.
    #[must_use]
    pub const fn end_page(&self) -> u64 {
        (self.address + self.memory_size).div_ceil(PAGE as u64)
    }

    /// Returns one past the last page that has bytes from the file.
    #[must_use]
    pub const fn file_end_page(&self) -> u64 {
        (self.address + self.file_size).div_ceil(PAGE as u64)
    }
}

/// A program whose headers are in order.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    file: &'a [u8],
    headers: u64,
    count: u16,
    /// Where to start, relative to the window.
    pub entry: u64,
}

fn u16_at(file: &[u8], at: u64) -> Option<u16> {
    let at = usize::try_from(at).ok()?;
    file.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

#[inline(never)]
fn u32_at(file: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    file.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(file: &[u8], at: u64) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    file.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

impl<'a> Program<'a> {
    /// Checks the headers of `file`.
    ///
    /// # Errors
    /// The [`Refusal`] that applies.
    pub fn parse(file: &'a [u8]) -> Result<Program<'a>, Refusal> {
        let program = Program::header(file).ok_or(Refusal::NotElf)?;
        let (mut end_of_last, mut begins) = (0, false);
        for index in 0..program.count {
            let (kind, segment) = program.raw(index).ok_or(Refusal::ElfRange)?;
            if kind != LOAD || segment.memory_size == 0 {
                continue;
            }
            program.check(&segment)?;
            if segment.first_page() < end_of_last {
                return Err(Refusal::Overlap);
            }
            end_of_last = segment.end_page();
            begins |= program.begins_in(&segment);
        }
        // A thread that begins elsewhere, or nowhere at all, may stop the machine instead of
        // itself.
        if begins { Ok(program) } else { Err(Refusal::ElfEntry) }
    }

    fn header(file: &'a [u8]) -> Option<Program<'a>> {
        let identified = file.starts_with(b"\x7fELF\x02\x01\x01")
            && u16_at(file, 16)? == TYPE_DYN
            && u16_at(file, 18)? == MACHINE_X86_64
            && u16_at(file, 54)? == 56;
        if !identified {
            return None;
        }
        let headers = u64_at(file, 32)?;
        Some(Program { file, headers, count: u16_at(file, 56)?, entry: u64_at(file, 24)? })
    }

    /// Returns whether the first instruction is in the executable bytes of this segment.
    fn begins_in(&self, s: &Segment) -> bool {
        s.flags & EXECUTE != 0 && self.entry >= s.address && self.entry - s.address < s.file_size
    }

    fn raw(&self, index: u16) -> Option<(u32, Segment)> {
        let at = self.headers.checked_add(56 * u64::from(index))?;
        // The last field first: if it is there, all are.
        let memory_size = u64_at(self.file, at.checked_add(40)?)?;
        let segment = Segment {
            flags: u32_at(self.file, at + 4)?,
            offset: u64_at(self.file, at + 8)?,
            address: u64_at(self.file, at + 16)?,
            file_size: u64_at(self.file, at + 32)?,
            memory_size,
        };
        Some((u32_at(self.file, at)?, segment))
    }

    fn check(&self, s: &Segment) -> Result<(), Refusal> {
        let in_window =
            s.address.checked_add(s.memory_size).is_some_and(|end| end <= layout::DATA_IMAGE);
        let in_file =
            s.offset.checked_add(s.file_size).is_some_and(|end| end <= self.file.len() as u64);
        if !in_window || !in_file || s.file_size > s.memory_size {
            return Err(Refusal::ElfRange);
        }
        if s.flags & (WRITE | EXECUTE) == WRITE | EXECUTE {
            return Err(Refusal::WriteExecute);
        }
        Ok(())
    }

    /// Returns the segments to load, by rising address.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        (0..self.count)
            .filter_map(|index| self.raw(index))
            .filter(|(kind, s)| *kind == LOAD && s.memory_size > 0)
            .map(|(_, segment)| segment)
    }

    /// Returns the bytes that a segment has in the file.
    #[must_use]
    pub fn bytes(&self, segment: &Segment) -> &'a [u8] {
        let start = segment.offset as usize;
        self.file.get(start..start + segment.file_size as usize).unwrap_or(&[])
    }

    /// Visits every relocation: the address of a word and the value that the base is added to, both
    /// relative to the window. Each names a word inside the file bytes of a writable segment.
    ///
    /// # Errors
    /// `Relocation` for any other kind or place, through `visit`'s absence: nothing is visited
    /// after the first bad one.
    pub fn relocations(&self, mut visit: impl FnMut(u64, u64)) -> Result<(), Refusal> {
        let Some((table, size)) = self.relocation_table() else { return Ok(()) };
        for i in 0..size / RELA_BYTES {
            let at = table + i * RELA_BYTES;
            let word = |offset: u64| u64_at(self.file, at.checked_add(offset)?);
            match (word(0), word(8), word(16)) {
                (Some(place), Some(RELATIVE), Some(addend)) if self.is_data(place) => {
                    visit(place, addend);
                }
                _ => return Err(Refusal::Relocation),
            }
        }
        Ok(())
    }

    fn is_data(&self, place: u64) -> bool {
        self.segments().any(|s| {
            s.flags & WRITE != 0
                && place.is_multiple_of(8)
                && place >= s.address
                && place.checked_add(8).is_some_and(|end| end <= s.address + s.file_size)
        })
    }

    /// File offset and size of the relocation table, from the dynamic section.
    fn relocation_table(&self) -> Option<(u64, u64)> {
        let dynamic = (0..self.count)
            .filter_map(|index| self.raw(index))
            .find(|(kind, _)| *kind == DYNAMIC)
            .map(|(_, segment)| segment)?;
        let (mut table, mut size) = (None, 0);
        for i in 0..dynamic.file_size / 16 {
            let at = dynamic.offset.checked_add(i * 16)?;
            let value = u64_at(self.file, at.checked_add(8)?)?;
            match u64_at(self.file, at)? {
                0 => break,
                DT_RELA => table = Some(value),
                DT_RELA_SIZE => size = value,
                _ => {}
            }
        }
        Some((self.file_offset(table?)?, size))
    }

    fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments()
            .find(|s| address >= s.address && address - s.address < s.file_size)
            .map(|s| s.offset + (address - s.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a minimal program: code at 0, data at 0x1000 with one relocated word, dynamic
    /// section.
    pub fn sample() -> Vec<u8> {
        let mut file = vec![0u8; 0x400];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &TYPE_DYN.to_le_bytes());
        put(18, &MACHINE_X86_64.to_le_bytes());
        put(24, &0x10u64.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(54, &56u16.to_le_bytes());
        put(56, &3u16.to_le_bytes());
        let mut segment =
            |i: usize, kind: u32, flags: u32, offset: u64, address: u64, size: u64| {
                let at = 64 + 56 * i;
                put(at, &kind.to_le_bytes());
                put(at + 4, &flags.to_le_bytes());
                put(at + 8, &offset.to_le_bytes());
                put(at + 16, &address.to_le_bytes());
                put(at + 32, &size.to_le_bytes());
                put(at + 40, &size.to_le_bytes());
            };
        segment(0, LOAD, EXECUTE, 0, 0, 0x300);
        segment(1, LOAD, WRITE, 0x300, 0x1300, 0x100);
        segment(2, DYNAMIC, WRITE, 0x340, 0x1340, 0x30);
        put(0x340, &DT_RELA.to_le_bytes());
        put(0x348, &0x200u64.to_le_bytes());
        put(0x350, &DT_RELA_SIZE.to_le_bytes());
        put(0x358, &RELA_BYTES.to_le_bytes());
        put(0x200, &0x1300u64.to_le_bytes());
        put(0x208, &RELATIVE.to_le_bytes());
        put(0x210, &0x123u64.to_le_bytes());
        file
    }

    fn digest(file: &[u8]) -> Result<usize, Refusal> {
        let program = Program::parse(file)?;
        let mut sum = 0;
        for segment in program.segments() {
            sum += program.bytes(&segment).len();
        }
        program.relocations(|place, addend| sum += (place ^ addend) as usize & 1)?;
        Ok(sum)
    }

    #[test]
    fn reads_segments_and_relocations() {
        let file = sample();
        let program = Program::parse(&file).unwrap();
        assert_eq!(program.entry, 0x10);
        assert_eq!(program.segments().count(), 2);
        let mut seen = Vec::new();
        program.relocations(|place, addend| seen.push((place, addend))).unwrap();
        assert_eq!(seen, [(0x1300, 0x123)]);
    }

    #[test]
    fn refuses_what_it_cannot_load() {
        let with = |at: usize, byte: u8| {
            let mut file = sample();
            file[at] = byte;
            digest(&file).unwrap_err()
        };
        assert_eq!(with(0, 0), Refusal::NotElf);
        assert_eq!(with(16, 2), Refusal::NotElf);
        assert_eq!(with(64 + 4, 3), Refusal::WriteExecute);
        assert_eq!(with(64 + 56 + 17, 0x02), Refusal::Overlap);
        assert_eq!(with(64 + 8 + 4, 1), Refusal::ElfRange);
        assert_eq!(with(0x208, 1), Refusal::Relocation);
        assert_eq!(with(0x200, 4), Refusal::Relocation);
        assert_eq!(with(0x201, 0x03), Refusal::Relocation);
    }

    #[test]
    fn refuses_an_entry_that_is_not_its_code() {
        let at = |entry: u64| {
            let mut file = sample();
            file[24..32].copy_from_slice(&entry.to_le_bytes());
            Program::parse(&file).map(|program| program.entry)
        };
        assert_eq!(at(0), Ok(0));
        assert_eq!(at(0x2ff), Ok(0x2ff));
        // Behind the code, in the data, outside the window, and where no address can be.
        let wild = [0x300, 0x1300, 0x13ff, layout::WINDOW, 0x7fff_ffff_0000, 1 << 63, u64::MAX];
        for entry in wild {
            assert_eq!(at(entry), Err(Refusal::ElfEntry), "{entry:x}");
        }
    }

    #[test]
    fn no_byte_of_any_value_makes_it_panic() {
        let good = sample();
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = byte;
                let _ = digest(&bad);
            }
        }
        for length in 0..good.len() {
            let _ = digest(&good[..length]);
        }
    }
}
