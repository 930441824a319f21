//! Switching the interrupt controllers on.

use super::{CAPABILITIES, TELLS, refuse};
use crate::apic::{IoApic, LOCAL, LocalApic, write};
use crate::cpu;
use crate::seat::Turn;
use crate::tables::{FIRST_INTERRUPT, SPURIOUS, TIMER};
use diapason_abi::apic;
use diapason_abi::archive::Refusal;

const MASKED: u32 = 1 << 16;
const TIMER_DEADLINE: u32 = 2 << 17;

fn read(register: usize) -> u32 {
    // The registers read here have no side effects.
    cpu::read(LOCAL as u64 + register as u64)
}

impl LocalApic {
    /// Switches it on at its default address, everything masked; silences the PC's old controllers,
    /// and the pin at which they interrupt. Nothing starts if firmware has locked its other mode.
    #[inline(never)]
    pub fn enable() -> LocalApic {
        const BASE: u32 = 0x1b;
        const SAYS_LOCK: u64 = 1 << 21;
        const LOCK: u32 = 0xbd;
        const FIRST: u8 = FIRST_INTERRUPT as u8;
        let tells = cpu::identify(7)[3] & TELLS != 0;
        // SAFETY: nobody else uses the two legacy controllers. Every processor with an APIC has the
        // register of its mode, and says whether it has the others. The values lead from state to
        // state as the processor allows.
        unsafe {
            let tell = |register: u16, first: u8, second: u8| {
                cpu::out8(0x20 + register, first);
                cpu::out8(0xa0 + register, second);
            };
            // They begin anew, the second behind the first, and hold back all their lines. Firmware
            // leaves the first where exceptions are, and one that takes a disturbance for a line
            // would raise one.
            tell(0, 0x11, 0x11);
            tell(1, FIRST, FIRST + 8);
            tell(1, 1 << 2, 2);
            tell(1, 1, 1);
            tell(1, 0xff, 0xff);
            let locked = tells
                && cpu::read_msr(CAPABILITIES) & SAYS_LOCK != 0
                && cpu::read_msr(LOCK) & 1 == 1;
            let values = apic::to_memory(cpu::read_msr(BASE), locked);
            for value in values.unwrap_or_else(|| refuse(Refusal::X2Apic)) {
                cpu::write_msr(BASE, value);
            }
        }
        write(0x80, 0);
        write(0xf0, 1 << 8 | SPURIOUS as u32);
        write(0x3e0, 0xb);
        write(0x350, MASKED);
        write(0x320, MASKED | TIMER as u32);
        LocalApic { deadline_mode: false }
    }

    /// Counts down from the top with the interrupt masked, for calibration.
    pub fn free_run(&mut self) {
        write(0x380, u32::MAX);
    }

    /// Returns the timer's count.
    pub fn current(&self) -> u32 {
        read(0x390)
    }

    /// This core, as interrupts are addressed to it.
    pub fn id(&self) -> u32 {
        read(0x20) >> 24
    }

    /// Lets the timer interrupt.
    pub fn open_timer(&mut self, deadline_mode: bool) {
        self.deadline_mode = deadline_mode;
        write(0x380, 0);
        write(0x320, TIMER as u32 | if deadline_mode { TIMER_DEADLINE } else { 0 });
    }
}

impl IoApic {
    /// The I/O APIC at `address` (0: none). Every line is masked, unless the first core did that.
    pub fn open(address: u64, first_line: u32, mask: bool) -> IoApic {
        let mut io = IoApic { registers: address as *mut u32, first_line, lines: 0 };
        if address != 0 {
            io.lines = (io.read(1) >> 16 & 0xff) + 1;
            for line in (0..io.lines).filter(|_| mask) {
                io.write(0x10 + 2 * line, 1 << 16);
            }
        }
        io
    }

    /// Has a line name an entry of the table of interrupts. The lower half of its entry stays as it
    /// is: there the vector must be that of the table.
    pub fn name(&self, line: u16, entry: u32) {
        const NAMED: u32 = 1 << 16;
        let IoApic { registers, first_line, lines } = *self;
        let line = u32::from(line).wrapping_sub(first_line);
        if line < lines {
            let _turn = Turn::at_lines();
            IoApic { registers, first_line, lines }.write(0x11 + 2 * line, entry << 17 | NAMED);
        }
    }

    /// Has a line interrupt this core.
    pub fn address(&mut self, line: u16, core: u32) {
        let line = u32::from(line).wrapping_sub(self.first_line);
        if line < self.lines {
            self.write(0x11 + 2 * line, core << 24);
        }
    }

    fn read(&mut self, register: u32) -> u32 {
        // SAFETY: as above.
        unsafe {
            self.registers.write_volatile(register);
            self.registers.add(4).read_volatile()
        }
    }
}
