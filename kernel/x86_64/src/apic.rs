//! Interrupt controllers: the core's own with its timer, that of the lines, tables of messages.

use crate::cpu;
use crate::seat::Turn;
use crate::tables::FIRST_DEVICE;

pub const LOCAL: *mut u32 = diapason_abi::apic::REGISTERS as *mut u32;
const DEADLINE_MSR: u32 = 0x6e0;

/// The core's interrupt controller.
pub struct LocalApic {
    /// The timer takes absolute counter values.
    pub deadline_mode: bool,
}

/// Writes a register of the local APIC.
pub fn write(register: usize, value: u32) {
    // SAFETY: a register of the local APIC, at its architectural address, mapped uncached.
    unsafe { LOCAL.byte_add(register).write_volatile(value) }
}

/// Raises a vector of this core.
pub fn interrupt_self(vector: u32) {
    const THIS_CORE: u32 = 1 << 18;
    write(0x300, THIS_CORE | vector);
}

/// Raises a vector of another core.
pub fn interrupt_core(id: u32, vector: u32) {
    send_command(id, vector);
}

/// Sends a command to another core, once the one before has left.
#[inline(never)]
pub fn send_command(id: u32, command: u32) {
    const PENDING: u32 = 1 << 12;
    const LOOKS_MAX: u32 = 1 << 12;
    let leaves = |_: &u32| cpu::read(LOCAL as u64 + 0x300) & PENDING == 0;
    let _ = (0..LOOKS_MAX).find(leaves);
    write(0x310, id << 24);
    write(0x300, command);
}

impl LocalApic {
    /// Interrupts once, `ticks` from now; 0 stops it.
    #[inline(always)]
    pub fn count_down(&self, ticks: u32) {
        write(0x380, ticks);
    }

    /// Interrupts once, when the counter reaches `value`; 0 stops it.
    #[inline(always)]
    pub fn set_deadline(&self, value: u64) {
        // SAFETY: only called when the processor has the register.
        unsafe { cpu::write_msr(DEADLINE_MSR, value) }
    }

    /// The interrupt being served is done.
    #[inline(always)]
    pub fn end_of_interrupt(&self) {
        write(0xb0, 0);
    }
}

/// Stands for the mask of a message that has none (MSI): it is written and never read.
pub static mut NO_MASK: u32 = 0;

/// Lets a message through, or holds it back: what comes meanwhile is sent later. `mask` is the last
/// word of its entry in the device's table.
pub fn set_message(mask: *mut u32, enabled: bool) {
    // SAFETY: boot found the table and hides it from programs.
    unsafe { mask.write_volatile(u32::from(!enabled)) }
}

/// The controller devices are wired to.
pub struct IoApic {
    pub registers: *mut u32,
    pub first_line: u32,
    pub lines: u32,
}

impl IoApic {
    /// Writes `value` to a register of the controller.
    pub fn write(&mut self, register: u32, value: u32) {
        // SAFETY: the select and window registers of the I/O APIC the ACPI tables name.
        unsafe {
            self.registers.write_volatile(register);
            self.registers.add(4).write_volatile(value);
        }
    }

    /// Route a line to a device vector of this core, or mask it. A line that does not exist is
    /// left alone.
    pub fn set(&mut self, line: u16, vector_index: usize, level: bool, enabled: bool) {
        let Some(line) = u32::from(line).checked_sub(self.first_line) else { return };
        if line >= self.lines {
            return;
        }
        let vector = FIRST_DEVICE as u32 + vector_index as u32;
        // Level-triggered lines of a PC are active low.
        let trigger = if level { 1 << 15 | 1 << 13 } else { 0 };
        let mask = if enabled { 0 } else { 1 << 16 };
        let _turn = Turn::at_lines();
        self.write(0x10 + 2 * line, mask | trigger | vector);
    }
}
