//! The kernel's last words: a panic, an exception in the kernel, and the way out.

use crate::console::{announce, write_out};
use crate::{cpu, screen, seat};
use core::panic::PanicInfo;
use diapason_abi::Key;
use diapason_abi::record::{Record, exit};

/// The port through which an emulator is told to stop, with a status.
const EXIT_PORT: u16 = 0xf4;

/// The vector by which hardware, or another core, says that something is broken.
const NMI: u64 = 2;

/// The vector by which a processor says that hardware is broken.
const MACHINE_CHECK: u64 = 18;

/// Says what the banks of the processor know about a machine check.
fn tell_banks() {
    const CAPABILITIES: u32 = 0x179;
    const FIRST_BANK: u32 = 0x400;
    const VALID: u64 = 1 << 63;
    const WITH_ADDRESS: u64 = 1 << 58;
    // SAFETY: a processor that raises this vector has the capabilities and, of each bank that these
    // count, a status and, where that says so, an address.
    unsafe {
        for bank in 0..cpu::read_msr(CAPABILITIES) as u32 & 0xff {
            let status = cpu::read_msr(FIRST_BANK + 4 * bank + 1);
            if status & VALID != 0 {
                let known = status & WITH_ADDRESS != 0;
                let address = if known { cpu::read_msr(FIRST_BANK + 4 * bank + 2) } else { 0 };
                announce(Record::MachineCheck, &[bank.into(), status, address]);
            }
        }
    }
}

/// Writes out what is left, waits until the run is over on all cores, and stops the machine.
pub fn rest(status: u8) -> ! {
    if !matches!(status, exit::FINISHED | exit::HALTED) {
        leave(status);
    }
    write_out();
    let Some(core) = seat::gather(status == exit::FINISHED) else { halt(status) };
    announce(Record::CoreStopped, &[core]);
    leave(exit::PANIC)
}

/// Writes out what is left of a run that went wrong, and stops the machine.
pub fn leave(status: u8) -> ! {
    write_out();
    seat::end_others(status);
    halt(status)
}

/// Shows the verdict and stops the machine.
#[inline(never)]
fn halt(status: u8) -> ! {
    if screen::is_open() {
        screen::end(status);
    }
    // SAFETY: nothing runs on the core after this; a PC has nothing at the exit port.
    unsafe {
        cpu::out8(EXIT_PORT, status);
    }
    cpu::stop()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or((0, 0), |at| (Key::new(at.file()).0, at.line()));
    announce(Record::Panic, &[file, u64::from(line)]);
    leave(exit::PANIC)
}

/// An exception in ring 0 that is not a failed copy: the kernel's own bug, or broken hardware.
#[unsafe(no_mangle)]
extern "C" fn on_kernel_fault(vector: u64, error: u64, instruction: u64) -> ! {
    if vector == MACHINE_CHECK {
        tell_banks();
    }
    if vector == NMI
        && let Some(status) = seat::ended_by_another()
    {
        halt(status);
    }
    announce(Record::KernelFault, &[vector, error, cpu::fault_address(), instruction]);
    leave(exit::PANIC)
}
