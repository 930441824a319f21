//! Interrupt controllers: the core's own with its timer, and the one devices are wired to.

use crate::cpu;
use crate::tables::{FIRST_DEVICE, SPURIOUS, TIMER};

const LOCAL: *mut u32 = 0xfee0_0000 as *mut u32;
const TIMER_MASKED: u32 = 1 << 16;
const TIMER_DEADLINE: u32 = 2 << 17;
const DEADLINE_MSR: u32 = 0x6e0;

/// The core's interrupt controller.
pub struct LocalApic {
    /// The timer takes absolute counter values.
    pub deadline_mode: bool,
}

fn write(register: usize, value: u32) {
    // SAFETY: a register of the local APIC, at its architectural address, mapped uncached.
    unsafe { LOCAL.byte_add(register).write_volatile(value) }
}

fn read(register: usize) -> u32 {
    // SAFETY: as above; the registers read here have no side effects.
    unsafe { LOCAL.byte_add(register).read_volatile() }
}

impl LocalApic {
    /// Switch it on, everything masked; silence the PC's old controllers.
    pub fn enable() -> LocalApic {
        // SAFETY: masks the two legacy controllers, then enables the APIC at its default address.
        unsafe {
            cpu::out8(0x21, 0xff);
            cpu::out8(0xa1, 0xff);
            cpu::write_msr(0x1b, cpu::read_msr(0x1b) | 1 << 11);
        }
        write(0x80, 0);
        write(0xf0, 1 << 8 | SPURIOUS as u32);
        write(0x3e0, 0xb);
        write(0x320, TIMER_MASKED | TIMER as u32);
        LocalApic { deadline_mode: false }
    }

    /// Count down from the top with the interrupt masked, for calibration.
    pub fn free_run(&mut self) {
        write(0x380, u32::MAX);
    }

    /// The timer's count.
    pub fn current(&self) -> u32 {
        read(0x390)
    }

    /// Let the timer interrupt.
    pub fn open_timer(&mut self, deadline_mode: bool) {
        self.deadline_mode = deadline_mode;
        write(0x380, 0);
        write(0x320, TIMER as u32 | if deadline_mode { TIMER_DEADLINE } else { 0 });
    }

    /// Interrupt once, `ticks` from now; 0 stops it.
    #[inline(always)]
    pub fn count_down(&self, ticks: u32) {
        write(0x380, ticks);
    }

    /// Interrupt once, when the counter reaches `value`; 0 stops it.
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

/// The controller devices are wired to.
pub struct IoApic {
    registers: *mut u32,
    first_line: u32,
    lines: u32,
}

impl IoApic {
    /// The I/O APIC at `address` (0: none), every line masked.
    pub fn open(address: u64, first_line: u32) -> IoApic {
        let mut io = IoApic { registers: address as *mut u32, first_line, lines: 0 };
        if address != 0 {
            io.lines = (io.read(1) >> 16 & 0xff) + 1;
            for line in 0..io.lines {
                io.write(0x10 + 2 * line, 1 << 16);
            }
        }
        io
    }

    fn write(&mut self, register: u32, value: u32) {
        // SAFETY: the select and window registers of the I/O APIC the ACPI tables name.
        unsafe {
            self.registers.write_volatile(register);
            self.registers.add(4).write_volatile(value);
        }
    }

    fn read(&mut self, register: u32) -> u32 {
        // SAFETY: as above.
        unsafe {
            self.registers.write_volatile(register);
            self.registers.add(4).read_volatile()
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
        self.write(0x10 + 2 * line, mask | trigger | vector);
    }
}
