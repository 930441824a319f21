//! Interrupt controllers as firmware leaves them: the ACPI table of them (MADT), and the mode of a
//! processor's own.

use crate::archive::CORES_MAX;
use crate::dmar::number;

/// The interrupt controllers that a MADT names.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Madt {
    pub processors: u32,
    /// The numbers by which interrupts are addressed to the first of them.
    pub apic_ids: [u8; CORES_MAX],
    pub io_apics: u32,
    /// Registers of the first I/O APIC, its first line, and its number.
    pub io_apic: u64,
    pub first_line: u32,
    pub io_apic_id: u32,
}

/// Structures begin here, behind the head of the table.
const FIRST: usize = 44;
/// A structure begins with one of these. Other kinds are passed over.
const PROCESSOR: u64 = 0;
const IO_APIC: u64 = 1;
const WIDE_PROCESSOR: u64 = 9;
/// The number by which all processors are addressed. Greater ones do not fit into 8 bits.
const ALL: u64 = 255;

impl Madt {
    /// Reads the table. Firmware writes it, so a length that leads nowhere ends the reading.
    #[must_use]
    #[inline(never)]
    pub fn read(table: &[u8]) -> Madt {
        let (mut madt, mut at) = (Madt::default(), FIRST);
        while at + 2 <= table.len() {
            let field = |offset, size| number(table, at + offset, size);
            match field(0, 1) {
                PROCESSOR if field(4, 4) & 1 == 1 => madt.add(field(3, 1)),
                WIDE_PROCESSOR if field(8, 4) & 1 == 1 => madt.add(field(4, 4)),
                IO_APIC => {
                    if madt.io_apics == 0 {
                        madt.io_apic = field(4, 4);
                        madt.first_line = field(8, 4) as u32;
                        madt.io_apic_id = field(2, 1) as u32;
                    }
                    madt.io_apics += 1;
                }
                _ => {}
            }
            let length = field(1, 1) as usize;
            if length < 2 {
                break;
            }
            at += length;
        }
        madt
    }

    /// Returns the numbers of the processors that are kept.
    pub fn ids(&self) -> impl Iterator<Item = u8> {
        self.apic_ids.into_iter().take(self.processors as usize)
    }

    /// Adds a processor that a number of 8 bits reaches. Firmware may name one twice, by a
    /// structure of each kind.
    fn add(&mut self, id: u64) {
        if id >= ALL || self.ids().any(|known| u64::from(known) == id) {
            return;
        }
        if let Some(place) = self.apic_ids.get_mut(self.processors as usize) {
            *place = id as u8;
        }
        self.processors += 1;
    }
}

/// Where the registers of a processor's own controller are to be.
pub const REGISTERS: u64 = 0xfee0_0000;
/// Bits of the register that says its mode and address (`IA32_APIC_BASE`): this is the processor
/// that firmware started, the controller is an x2APIC, whose registers are not in memory, and it is
/// on.
const FIRST_CORE: u64 = 1 << 8;
const WIDE: u64 = 1 << 10;
const ON: u64 = 1 << 11;

/// Returns what is to be written to `IA32_APIC_BASE` so that the registers of the controller are
/// in memory, one value after the other: from an x2APIC the only way leads by switching it off.
/// `None`: the processor does not let it leave that mode (`locked`).
#[must_use]
#[inline(never)]
pub fn to_memory(base: u64, locked: bool) -> Option<[u64; 2]> {
    let last = REGISTERS | ON | base & FIRST_CORE;
    match base & WIDE != 0 {
        true if locked => None,
        true => Some([base & !(WIDE | ON), last]),
        false => Some([last, last]),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The processor's rules (Intel SDM 3A, "x2APIC State Transitions"): what a write makes of the
    /// register; `None`: the write is an exception.
    fn write(base: u64, value: u64, locked: bool) -> Option<u64> {
        let mode = |base: u64| (base & ON != 0, base & WIDE != 0);
        let legal = match (mode(base), mode(value)) {
            // An x2APIC that is off is a state that there is not.
            (_, (false, true)) => false,
            ((true, false) | (false, false), (_, false)) => true,
            ((true, false), (true, true)) => true,
            ((false, false), (true, true)) => false,
            ((true, true), (true, true)) => true,
            ((true, true), (false, false)) => !locked,
            ((true, true), (true, false)) => false,
            ((false, true), _) => false,
        };
        legal.then_some(value)
    }

    /// Every value of the bits that matter, at a few addresses.
    #[test]
    fn an_x2apic_comes_back_to_memory_unless_it_is_locked() {
        let addresses = [0, REGISTERS, 0xfec0_0000, 0x000f_ffff_ffff_f000];
        for (address, bits, locked) in addresses
            .into_iter()
            .flat_map(|address| (0..16).map(move |bits| (address, bits << 8)))
            .flat_map(|(address, bits)| [false, true].map(|locked| (address, bits, locked)))
        {
            let base = address | bits;
            // No processor is in the state of an x2APIC that is off.
            if base & (ON | WIDE) == WIDE {
                continue;
            }
            let stays = locked && base & WIDE != 0;
            let Some(values) = to_memory(base, locked) else {
                assert!(stays, "{base:#x}");
                continue;
            };
            assert!(!stays, "{base:#x}");
            let after = values.iter().try_fold(base, |base, value| write(base, *value, locked));
            assert_eq!(after, Some(REGISTERS | ON | base & FIRST_CORE), "{base:#x}");
        }
    }

    fn processor(id: u8, enabled: u8) -> Vec<u8> {
        [[0, 8, 0, id], [enabled, 0, 0, 0]].concat()
    }

    fn wide(id: u32, enabled: u8) -> Vec<u8> {
        [[9, 16, 0, 0], id.to_le_bytes(), [enabled, 0, 0, 0], [0; 4]].concat()
    }

    fn io_apic(id: u8, address: u32, line: u32) -> Vec<u8> {
        [[1, 12, id, 0], address.to_le_bytes(), line.to_le_bytes()].concat()
    }

    fn madt(structures: &[Vec<u8>]) -> Madt {
        Madt::read(&[&[0; FIRST][..], &structures.concat()].concat())
    }

    fn ids(structures: &[Vec<u8>]) -> Vec<u8> {
        madt(structures).ids().collect()
    }

    #[test]
    fn processors_of_both_kinds_are_found_once() {
        assert_eq!(ids(&[processor(0, 1), processor(2, 1)]), [0, 2]);
        assert_eq!(ids(&[wide(0, 1), wide(2, 1), wide(254, 1)]), [0, 2, 254]);
        assert_eq!(ids(&[processor(0, 1), wide(4, 1), wide(0, 1)]), [0, 4]);
        // Nobody can be addressed by these with 8 bits.
        assert_eq!(ids(&[wide(255, 1), wide(256, 1), wide(u32::MAX, 1), processor(255, 1)]), []);
        assert_eq!(ids(&[processor(0, 0), wide(1, 0), wide(2, 2), processor(3, 3)]), [3]);
        let many: Vec<Vec<u8>> = (0..12).map(|id| wide(id, 1)).collect();
        assert_eq!((ids(&many).len(), madt(&many).processors), (CORES_MAX, 12));
    }

    #[test]
    fn the_first_controller_of_lines_is_used() {
        let all = madt(&[io_apic(2, 0xfec0_0000, 0), wide(0, 1), io_apic(3, 0xfec1_0000, 24)]);
        assert_eq!((all.io_apics, all.io_apic, all.io_apic_id), (2, 0xfec0_0000, 2));
        assert_eq!(all.first_line, 0);
    }

    #[test]
    fn lengths_that_lead_nowhere_end_the_reading() {
        assert_eq!(madt(&[]), Madt::default());
        assert_eq!(ids(&[processor(1, 1), [9, 0, 0, 0].to_vec(), processor(2, 1)]), [1]);
        let mut cut = [&[0; FIRST][..], &wide(7, 1)].concat();
        cut.truncate(FIRST + 8);
        assert_eq!(Madt::read(&cut).processors, 0);
    }
}
