//! The ACPI table DMAR: which IOMMU a PCI function's accesses pass, and which memory firmware wants
//! a function to reach.
//!
//! Firmware writes the table, so nothing in it is believed: lengths that lead nowhere end the
//! reading, and what is missing reads as zero.

/// The bytes of such a table, and the way to look behind the bridges that it names.
#[derive(Clone, Copy, Debug)]
pub struct Dmar<'a> {
    pub table: &'a [u8],
    pub bridges: Bridges,
}

/// The way to ask the machine which buses are behind a bridge.
#[derive(Clone, Copy, Debug)]
pub struct Bridges {
    /// Where functions are configured: the first argument of `behind`.
    pub base: u64,
    /// Returns the first and the last bus behind the function at a place (bus, device and function
    /// as in a configuration address); (0, 0) if it is no bridge.
    pub behind: fn(u64, u64) -> (u64, u64),
}

/// Kinds of structures, and where their scopes begin.
const UNIT: u64 = 0;
const RESERVED: u64 = 1;
const UNIT_SCOPES: usize = 16;
const RESERVED_SCOPES: usize = 24;
/// The structures begin here.
const FIRST: usize = 48;
/// A scope is of one function, of a bridge with all behind it, or of an I/O APIC.
const ENDPOINT: u64 = 1;
const BRIDGE: u64 = 2;
const IO_APIC: u64 = 3;
/// The path of a scope begins here.
const PATH: usize = 6;

/// Returns the number of `size` bytes at `at`. Bytes that are missing are zero.
#[must_use]
#[inline(never)]
pub fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut value = 0;
    for i in (0..size).rev() {
        value = value << 8 | u64::from(bytes.get(at + i).copied().unwrap_or(0));
    }
    value
}

/// The parts that begin at `at`, each with its length in `size` bytes at offset `size`.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
    size: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    #[inline(never)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let length = number(self.bytes, self.at + self.size, self.size) as usize;
        let part = self.bytes.get(self.at..)?.get(..length)?;
        self.at += length;
        (length >= 2 * self.size).then_some(part)
    }
}

/// Returns the scopes of a structure.
fn scopes(structure: &[u8]) -> Parts<'_> {
    let is_unit = number(structure, 0, 2) == UNIT;
    let at = if is_unit { UNIT_SCOPES } else { RESERVED_SCOPES };
    Parts { bytes: structure, at, size: 1 }
}

impl<'a> Dmar<'a> {
    /// Returns the structures of a kind for the first group of buses, which is all that the kernel
    /// knows.
    fn structures(self, kind: u64) -> impl Iterator<Item = &'a [u8]> {
        Parts { bytes: self.table, at: FIRST, size: 2 }
            .filter(move |part| number(part, 0, 2) == kind && number(part, 6, 2) == 0)
    }

    /// Returns the place of the function that a scope names.
    #[inline(never)]
    fn place(self, scope: &[u8]) -> u64 {
        let (mut bus, mut at) = (number(scope, 5, 1), PATH);
        loop {
            let step = bus << 8 | number(scope, at, 1) << 3 & 0xf8 | number(scope, at + 1, 1) & 7;
            at += 2;
            if at >= scope.len() {
                return step;
            }
            bus = self.behind(step).0;
        }
    }

    fn behind(self, place: u64) -> (u64, u64) {
        (self.bridges.behind)(self.bridges.base, place)
    }

    /// Returns whether a scope of a structure names the function at `wanted`, or a bridge above it.
    #[inline(never)]
    fn names(self, structure: &[u8], wanted: u64) -> bool {
        scopes(structure).any(|scope| {
            let (kind, found) = (number(scope, 0, 1), self.place(scope));
            let (first, last) = if kind == BRIDGE { self.behind(found) } else { (0, 0) };
            let behind = first > 0 && (first..=last).contains(&(wanted >> 8));
            behind || found == wanted && matches!(kind, ENDPOINT | BRIDGE)
        })
    }

    /// Returns where the registers of each IOMMU are.
    pub fn units(self) -> impl Iterator<Item = u64> {
        self.structures(UNIT).map(|unit| number(unit, 8, 8))
    }

    /// Returns the address of the registers of the IOMMU that the function at `wanted` is behind.
    #[must_use]
    pub fn unit(self, wanted: u64) -> Option<u64> {
        let mut rest = None;
        for unit in self.structures(UNIT) {
            let registers = Some(number(unit, 8, 8));
            if self.names(unit, wanted) {
                return registers;
            }
            // One unit has everything that no other names.
            if number(unit, 4, 1) & 1 == 1 {
                rest = registers;
            }
        }
        rest
    }

    /// Returns the unit that interrupts of an I/O APIC pass, and the place that they come from.
    #[must_use]
    pub fn io_apic(self, id: u64) -> Option<(u64, u64)> {
        for unit in self.structures(UNIT) {
            for scope in scopes(unit) {
                if number(scope, 0, 1) == IO_APIC && number(scope, 4, 1) == id {
                    return Some((number(unit, 8, 8), self.place(scope)));
                }
            }
        }
        None
    }

    /// Returns the memory, first and last address each, that firmware has the function at `wanted`
    /// use.
    pub fn reserved(self, wanted: u64) -> impl Iterator<Item = (u64, u64)> {
        let memory = move |part| (number(part, 8, 8), number(part, 16, 8));
        self.structures(RESERVED).filter(move |part| self.names(part, wanted)).map(memory)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn scope(kind: u8, id: u8, bus: u8, path: &[(u8, u8)]) -> Vec<u8> {
        let mut scope = vec![kind, 6 + 2 * path.len() as u8, 0, 0, id, bus];
        path.iter().for_each(|(device, function)| scope.extend([*device, *function]));
        scope
    }

    fn structure(kind: u16, head: &[u8], scopes: &[Vec<u8>]) -> Vec<u8> {
        let scopes = scopes.concat();
        let length = (4 + head.len() + scopes.len()) as u16;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), head, &scopes].concat()
    }

    fn unit(flags: u8, segment: u8, base: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
        let head = [&[flags, 0, segment, 0][..], &base.to_le_bytes()].concat();
        structure(0, &head, scopes)
    }

    fn reserved(base: u64, limit: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
        let head = [&[0, 0, 0, 0][..], &base.to_le_bytes(), &limit.to_le_bytes()].concat();
        structure(1, &head, scopes)
    }

    fn table(structures: &[Vec<u8>]) -> Vec<u8> {
        let mut table = vec![0; FIRST];
        table[..4].copy_from_slice(b"DMAR");
        table.extend(structures.concat());
        table
    }

    /// The bridge at 00:1c.0 has the buses 2 to 4, that at 02:00.0 has 3 and 4.
    fn behind(_base: u64, place: u64) -> (u64, u64) {
        match place {
            0xe0 => (2, 4),
            0x200 => (3, 4),
            _ => (0, 0),
        }
    }

    fn dmar(table: &[u8]) -> Dmar<'_> {
        Dmar { table, bridges: Bridges { base: 0, behind } }
    }

    /// As a PC has it: the graphics have a unit alone, and one has the rest.
    fn usual() -> Vec<u8> {
        table(&[
            unit(0, 0, 0xfed9_0000, &[scope(1, 0, 0, &[(2, 0)])]),
            unit(0, 1, 0xfed9_5000, &[scope(1, 0, 0, &[(20, 0)])]),
            unit(1, 0, 0xfed9_1000, &[scope(3, 2, 0xf0, &[(31, 0)])]),
            reserved(0x7d00_0000, 0x7d01_ffff, &[scope(1, 0, 0, &[(20, 0)])]),
        ])
    }

    #[test]
    fn all_units_of_the_first_group_of_buses_are_named() {
        let table = usual();
        let units: Vec<u64> = dmar(&table).units().collect();
        assert_eq!(units, [0xfed9_0000, 0xfed9_1000]);
    }

    #[test]
    fn a_function_is_behind_the_unit_that_names_it_or_behind_the_one_for_the_rest() {
        let bytes = usual();
        let read = dmar(&bytes);
        assert_eq!(read.unit(2 << 3), Some(0xfed9_0000));
        assert_eq!(read.unit(20 << 3), Some(0xfed9_1000));
        assert_eq!(read.io_apic(2), Some((0xfed9_1000, 0xf0f8)));
        assert_eq!(read.io_apic(3), None);
        let memory: Vec<(u64, u64)> = read.reserved(20 << 3).collect();
        assert_eq!(memory, [(0x7d00_0000, 0x7d01_ffff)]);
        assert_eq!(read.reserved(2 << 3).count(), 0);
    }

    #[test]
    fn scopes_go_through_bridges() {
        let through = scope(1, 0, 0, &[(28, 0), (0, 0), (5, 1)]);
        let bytes = table(&[unit(0, 0, 0x1000, &[through])]);
        let read = dmar(&bytes);
        assert_eq!(read.unit(3 << 8 | 5 << 3 | 1), Some(0x1000));
        assert_eq!(read.unit(3 << 8 | 5 << 3), None);
        let bytes = table(&[unit(0, 0, 0x2000, &[scope(2, 0, 0, &[(28, 0)])])]);
        let read = dmar(&bytes);
        for (place, expected) in [(0xe0, true), (0x200, true), (0x4ff, true), (0x500, false)] {
            assert_eq!(read.unit(place).is_some(), expected, "{place:#x}");
        }
    }

    #[test]
    fn a_table_that_is_cut_or_altered_anywhere_is_read_to_an_end() {
        let bytes = usual();
        let read = |bytes: &[u8]| {
            let read = dmar(bytes);
            (read.unit(20 << 3), read.io_apic(2), read.reserved(20 << 3).count())
        };
        for end in 0..bytes.len() {
            let (unit, ..) = read(&bytes[..end]);
            assert!(matches!(unit, None | Some(0xfed9_1000)), "{end}");
        }
        for at in 0..bytes.len() {
            for value in 0..=u8::MAX {
                let mut altered = bytes.clone();
                altered[at] = value;
                read(&altered);
            }
        }
    }
}
