//! The few things ACPI tables say that the kernel needs: processors, interrupt routing, clocks,
//! where PCI functions are configured, and which IOMMUs they are behind.

use super::pci::Function;
use crate::pci::PORTS;
use diapason_abi::apic::Madt;
use diapason_abi::dmar::{Bridges, Dmar, number};

/// The ACPI tables that boot reads.
#[derive(Clone, Copy, Default)]
pub struct Acpi {
    /// Address of the root pointer; 0 if there is none.
    pub rsdp: u64,
    /// Read from the table of interrupt controllers.
    pub madt: Madt,
    /// Registers of the high-precision timer; 0 if there is none.
    pub hpet: u64,
    /// Port of the timer that counts 3,579,545 ticks a second; 0 if there is none.
    pub pm_timer: u16,
    /// Configuration of PCI: where that of bus 0 is or would be, and the first and the last bus it
    /// is there for. It is behind ports unless a table names memory.
    pub pci: u64,
    pub buses: (u8, u8),
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
                Some(b"APIC") => acpi.madt = Madt::read(found),
                Some(b"FACP") => acpi.pm_timer = number(found, 76, 2) as u16,
                Some(b"DMAR") => acpi.dmar = found,
                Some(b"HPET") => acpi.hpet = number(found, 44, 8),
                // The first of its entries is that of the machine's own buses.
                Some(b"MCFG") => {
                    acpi.pci = number(found, 44, 8);
                    acpi.buses = (number(found, 54, 1) as u8, number(found, 55, 1) as u8);
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
}
