//! The registers in which PCI functions are configured: in memory, or behind two ports on a PC
//! whose firmware names no such memory.

use crate::cpu;
use crate::seat::Turn;

/// Stands before the address of a register that is behind the ports. The rest is as in memory: the
/// place of the function (bus, device and function) from bit 12 on, and the register.
pub const PORTS: u64 = 1 << 63;

/// Where the address of a register is written, and where the register is then.
const SELECT: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

/// Reads a register behind the ports, or writes it.
#[inline(always)]
fn behind_ports(register: u64, value: Option<u32>) -> u32 {
    const ENABLED: u32 = 1 << 31;
    let (_turn, place) = (Turn::at_lines(), (register >> 12) as u32 & 0xffff);
    // SAFETY: the ports of PCI's configuration, at their architectural addresses. The callers know
    // the effects of a write, and reading a register changes nothing.
    unsafe {
        cpu::out32(SELECT, ENABLED | place << 8 | register as u32 & 0xfc);
        match value {
            None => cpu::in32(DATA),
            Some(value) => {
                cpu::out32(DATA, value);
                value
            }
        }
    }
}

/// Returns a register. Boot alone calls this.
#[inline(always)]
pub fn read(register: u64) -> u32 {
    if register & PORTS == 0 { cpu::read(register) } else { behind_ports(register, None) }
}

/// Writes a register. Boot alone calls this.
#[inline(always)]
pub fn write(register: u64, value: u32) {
    if register & PORTS == 0 {
        cpu::write(register, value);
    } else {
        behind_ports(register, Some(value));
    }
}

/// Lets the function with this command register access memory by itself, or forbids it.
#[inline(always)]
pub fn set_bus_master(command: *mut u16, enabled: bool) {
    const BUS_MASTER: u16 = 1 << 2;
    let changed = |others: u16| others & !BUS_MASTER | if enabled { BUS_MASTER } else { 0 };
    let register = command as u64;
    if register & PORTS == 0 {
        // SAFETY: the command register that boot found; nobody else writes it.
        unsafe { command.write_volatile(changed(command.read_volatile())) }
    } else {
        // The status behind it keeps what is written as zero.
        let others = behind_ports(register, None) as u16;
        behind_ports(register, Some(changed(others).into()));
    }
}
