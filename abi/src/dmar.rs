//! The ACPI table DMAR: which IOMMU a PCI function's accesses pass, and which memory firmware wants
//! a function to reach.
//!
//! Firmware writes the table, so nothing in it is believed: lengths that lead nowhere end the
//! reading, and what is missing reads as zero.

/// The table, with its header.
#[derive(Clone, Copy, Debug)]
pub struct Dmar<'a>(&'a [u8]);

/// One structure of the table: an IOMMU, or memory reserved by firmware, with the scopes that it is
/// for.
#[derive(Clone, Copy, Debug)]
struct Structure<'a> {
    kind: u64,
    bytes: &'a [u8],
}

/// The buses behind a bridge, first and last, by the place of the bridge (bus, device and function
/// as in a configuration address).
pub type Buses<'a> = &'a dyn Fn(u64) -> (u64, u64);

/// Kinds of structures, and where their scopes begin.
const UNIT: u64 = 0;
const RESERVED: u64 = 1;
const UNIT_SCOPES: usize = 16;
const RESERVED_SCOPES: usize = 24;
/// The structures begin here.
const FIRST: usize = 48;
/// Kinds of scopes.
const ENDPOINT: u64 = 1;
const BRIDGE: u64 = 2;
const IO_APIC: u64 = 3;
/// The path of a scope begins here.
const PATH: usize = 6;

/// A number of `size` bytes.
#[inline(never)]
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let byte = |i: usize| u64::from(bytes.get(at + i).copied().unwrap_or(0));
    (0..size).rev().fold(0, |value, i| value << 8 | byte(i))
}

/// Visits the parts of `bytes` from `at` on, each with its length in `size` bytes at offset
/// `length`, until `visit` returns something.
fn each<'a, T>(
    bytes: &'a [u8],
    mut at: usize,
    (length, size): (usize, usize),
    mut visit: impl FnMut(&'a [u8]) -> Option<T>,
) -> Option<T> {
    while at < bytes.len() {
        let count = number(bytes, at + length, size) as usize;
        let part = bytes.get(at..at + count).filter(|part| part.len() >= length + size)?;
        if let Some(found) = visit(part) {
            return Some(found);
        }
        at += count;
    }
    None
}

/// Returns the place of the function that a scope names.
fn place(scope: &[u8], buses: Buses<'_>) -> Option<u64> {
    let mut bus = number(scope, 5, 1);
    let mut found = None;
    for step in scope.get(PATH..)?.chunks_exact(2) {
        if let Some(bridge) = found {
            bus = buses(bridge).0;
        }
        let (device, function) = (u64::from(step[0] & 31), u64::from(step[1] & 7));
        found = Some(bus << 8 | device << 3 | function);
    }
    found
}

impl<'a> Structure<'a> {
    /// Visits its scopes.
    fn scopes<T>(self, visit: impl FnMut(&'a [u8]) -> Option<T>) -> Option<T> {
        let first = if self.kind == UNIT { UNIT_SCOPES } else { RESERVED_SCOPES };
        each(self.bytes, first, (1, 1), visit)
    }

    /// Returns whether a scope names the function at `wanted`, or a bridge above it.
    fn names(self, wanted: u64, buses: Buses<'_>) -> bool {
        let is_it = |scope: &[u8]| {
            let kind = number(scope, 0, 1);
            let found = place(scope, buses)?;
            let behind = || {
                let (first, last) = buses(found);
                first > 0 && (first..=last).contains(&(wanted >> 8))
            };
            let named = match kind {
                ENDPOINT => found == wanted,
                BRIDGE => found == wanted || behind(),
                _ => false,
            };
            named.then_some(())
        };
        self.scopes(is_it).is_some()
    }
}

impl<'a> Dmar<'a> {
    /// Returns the table in `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Dmar<'a> {
        Dmar(bytes)
    }

    /// Visits the structures for the first group of buses, which is all that the kernel knows.
    fn structures<T>(self, mut visit: impl FnMut(Structure<'a>) -> Option<T>) -> Option<T> {
        each(self.0, FIRST, (2, 2), |bytes| {
            let ours = number(bytes, 6, 2) == 0;
            let structure = Structure { kind: number(bytes, 0, 2), bytes };
            if ours { visit(structure) } else { None }
        })
    }

    /// Returns the address of the registers of the IOMMU that the function at `wanted` is behind.
    #[must_use]
    pub fn unit(self, wanted: u64, buses: Buses<'_>) -> Option<u64> {
        let registers = |unit: Structure<'_>| number(unit.bytes, 8, 8);
        let named = |unit: Structure<'a>| {
            (unit.kind == UNIT && unit.names(wanted, buses)).then(|| registers(unit))
        };
        // One unit has everything that no other names.
        let rest = |unit: Structure<'a>| {
            (unit.kind == UNIT && number(unit.bytes, 4, 1) & 1 == 1).then(|| registers(unit))
        };
        self.structures(named).or_else(|| self.structures(rest))
    }

    /// Returns the unit that interrupts of an I/O APIC pass, and the place that they come from.
    #[must_use]
    pub fn io_apic(self, id: u64, buses: Buses<'_>) -> Option<(u64, u64)> {
        self.structures(|unit| {
            let is_it = |scope: &[u8]| {
                let named = number(scope, 0, 1) == IO_APIC && number(scope, 4, 1) == id;
                if named { place(scope, buses) } else { None }
            };
            let from = if unit.kind == UNIT { unit.scopes(is_it) } else { None };
            from.map(|from| (number(unit.bytes, 8, 8), from))
        })
    }

    /// Visits the memory, first and last address, that firmware has the function at `wanted` use.
    pub fn reserved(self, wanted: u64, buses: Buses<'_>, mut visit: impl FnMut(u64, u64)) {
        let _: Option<()> = self.structures(|memory| {
            if memory.kind == RESERVED && memory.names(wanted, buses) {
                visit(number(memory.bytes, 8, 8), number(memory.bytes, 16, 8));
            }
            None
        });
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
    fn buses(place: u64) -> (u64, u64) {
        match place {
            0xe0 => (2, 4),
            0x200 => (3, 4),
            _ => (0, 0),
        }
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
    fn a_function_is_behind_the_unit_that_names_it_or_behind_the_one_for_the_rest() {
        let bytes = usual();
        let dmar = Dmar::new(&bytes);
        assert_eq!(dmar.unit(2 << 3, &buses), Some(0xfed9_0000));
        assert_eq!(dmar.unit(20 << 3, &buses), Some(0xfed9_1000));
        assert_eq!(dmar.io_apic(2, &buses), Some((0xfed9_1000, 0xf0f8)));
        assert_eq!(dmar.io_apic(3, &buses), None);
        let mut memory = Vec::new();
        dmar.reserved(20 << 3, &buses, |first, last| memory.push((first, last)));
        dmar.reserved(2 << 3, &buses, |first, last| memory.push((first, last)));
        assert_eq!(memory, [(0x7d00_0000, 0x7d01_ffff)]);
    }

    #[test]
    fn scopes_go_through_bridges() {
        let through = scope(1, 0, 0, &[(28, 0), (0, 0), (5, 1)]);
        let bytes = table(&[unit(0, 0, 0x1000, &[through])]);
        let dmar = Dmar::new(&bytes);
        assert_eq!(dmar.unit(3 << 8 | 5 << 3 | 1, &buses), Some(0x1000));
        assert_eq!(dmar.unit(3 << 8 | 5 << 3, &buses), None);
        let bytes = table(&[unit(0, 0, 0x2000, &[scope(2, 0, 0, &[(28, 0)])])]);
        let dmar = Dmar::new(&bytes);
        for (place, expected) in [(0xe0, true), (0x200, true), (0x4ff, true), (0x500, false)] {
            assert_eq!(dmar.unit(place, &buses).is_some(), expected, "{place:#x}");
        }
    }

    #[test]
    fn a_table_that_is_cut_or_altered_anywhere_is_read_to_an_end() {
        let bytes = usual();
        let read = |bytes: &[u8]| {
            let dmar = Dmar::new(bytes);
            dmar.reserved(20 << 3, &buses, |_, _| ());
            (dmar.unit(20 << 3, &buses), dmar.io_apic(2, &buses))
        };
        for end in 0..bytes.len() {
            let (unit, _) = read(&bytes[..end]);
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
