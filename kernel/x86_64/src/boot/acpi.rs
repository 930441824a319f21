//! The few things ACPI tables say that the kernel needs: processors, interrupt routing, clocks,
//! where PCI functions are configured, and which IOMMUs they are behind.

use super::pci::Function;
use crate::pci::PORTS;
use diapason_abi::archive::CORES_MAX;
use diapason_abi::dmar::{Bridges, Dmar, number};

/// The ACPI tables that boot reads.
#[derive(Clone, Copy, Default)]
pub struct Acpi {
    /// Address of the root pointer; 0 if there is none.
    pub rsdp: u64,
    pub processors: u64,
    /// The numbers by which interrupts are addressed to the first of them.
    pub apic_ids: [u8; CORES_MAX],
    pub io_apics: u64,
    /// Registers of the first I/O APIC, and its first line.
    pub io_apic: u64,
    pub first_line: u32,
    /// The number of this I/O APIC.
    pub io_apic_id: u64,
    /// Registers of the high-precision timer; 0 if there is none.
    pub hpet: u64,
    /// Port of the timer that counts 3,579,545 ticks a second; 0 if there is none.
    pub pm_timer: u16,
    /// Configuration of PCI: where that of bus 0 is or would be, and the first and the last bus it
    /// is there for. It is behind ports unless a table names memory.
    pub pci: u64,
    pub buses: (u64, u64),
    /// The table of IOMMUs; empty if there is none.
    pub dmar: &'static [u8],
}

/// Everything below 4 GiB is mapped; tables elsewhere are taken as absent.
#[inline(never)]
fn bytes(address: u64, length: u64) -> &'static [u8] {
    match address.checked_add(length) {
        Some(end) if address != 0 && end < 1 << 32 => {
            // SAFETY: mapped one to one and never written by the kernel: firmware tables.
            unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) }
        }
        _ => &[],
    }
}

const HEADER: u64 = 36;

fn table(address: u64) -> &'static [u8] {
    let length = number(bytes(address, HEADER), 4, 4);
    if length > 1 << 20 { &[] } else { bytes(address, length) }
}

impl Acpi {
    /// Walks the tables from the root pointer at `rsdp`.
    pub fn read(rsdp: u64) -> Acpi {
        let mut acpi = Acpi { rsdp, pci: PORTS, buses: (0, 255), ..Acpi::default() };
        let root = bytes(rsdp, 36);
        if !root.starts_with(b"RSD PTR ") {
            return Acpi { rsdp: 0, ..acpi };
        }
        let extended = number(root, 15, 1) >= 2 && number(root, 24, 8) != 0;
        let (at, size) = if extended { (24, 8) } else { (16, 4) };
        let list = table(number(root, at, size));
        let mut entry = HEADER as usize;
        while entry + size <= list.len() {
            let found = table(number(list, entry, size));
            match found.get(..4) {
                Some(b"APIC") => acpi.read_madt(found),
                Some(b"FACP") => acpi.pm_timer = number(found, 76, 2) as u16,
                Some(b"DMAR") => acpi.dmar = found,
                Some(b"HPET") => acpi.hpet = number(found, 44, 8),
                // The first of its entries is that of the machine's own buses.
                Some(b"MCFG") => {
                    acpi.pci = number(found, 44, 8);
                    acpi.buses = (number(found, 54, 1), number(found, 55, 1));
                }
                _ => {}
            }
            entry += size;
        }
        acpi
    }

    /// Returns the table of IOMMUs.
    pub fn dmar(&self) -> Dmar<'static> {
        let behind = |base, place| Function::at(base, place).buses_behind();
        Dmar { table: self.dmar, bridges: Bridges { base: self.pci, behind } }
    }

    #[inline(never)]
    fn read_madt(&mut self, madt: &[u8]) {
        let mut at = 44;
        while at + 2 <= madt.len() {
            let length = number(madt, at + 1, 1) as usize;
            match number(madt, at, 1) {
                0 if number(madt, at + 4, 4) & 1 == 1 => {
                    if let Some(id) = self.apic_ids.get_mut(self.processors as usize) {
                        *id = number(madt, at + 3, 1) as u8;
                    }
                    self.processors += 1;
                }
                1 => {
                    if self.io_apics == 0 {
                        self.io_apic = number(madt, at + 4, 4);
                        self.first_line = number(madt, at + 8, 4) as u32;
                        self.io_apic_id = number(madt, at + 2, 1);
                    }
                    self.io_apics += 1;
                }
                _ => {}
            }
            if length < 2 {
                break;
            }
            at += length;
        }
    }
}
