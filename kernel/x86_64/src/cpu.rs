//! Privileged instructions, each in a function of its own.

use core::arch::asm;
use diapason_abi::PAGE;

/// Returns the 32 bits of a device's register, or of memory that others write, too, at an address
/// that boot found and mapped.
#[inline(always)]
pub fn read(register: u64) -> u32 {
    // SAFETY: the callers name registers, tables for devices, or a ring. Reading changes nothing.
    unsafe { (register as *const u32).read_volatile() }
}

/// Sets the 32 bits of a device's register, of a table for devices, or of memory that others read,
/// at an address that boot found and mapped.
#[inline(always)]
pub fn write(register: u64, value: u32) {
    // SAFETY: the callers name registers whose effects they know, and memory of their own.
    unsafe { (register as *mut u32).write_volatile(value) }
}

/// Writes a byte to an I/O port.
///
/// # Safety
/// The caller knows the device behind the port and may command it.
#[inline(always)]
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) }
}

/// Reads a byte from an I/O port.
///
/// # Safety
/// As for [`out8`]: reading may have effects.
#[inline(always)]
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) }
    value
}

/// Reads four bytes from an I/O port.
///
/// # Safety
/// As for [`in8`].
pub unsafe fn in32(port: u16) -> u32 {
    let value;
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack)) }
    value
}

/// Writes four bytes to an I/O port.
///
/// # Safety
/// As for [`out8`].
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: the caller vouches for the port.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack)) }
}

/// Writes a block of bytes to an I/O port.
///
/// # Safety
/// As for [`out8`].
pub unsafe fn out_block(port: u16, bytes: &[u8]) {
    // SAFETY: reads only the slice; the caller vouches for the port.
    unsafe {
        asm!("rep outsb", in("dx") port, inout("rsi") bytes.as_ptr() => _,
             inout("rcx") bytes.len() => _, options(readonly, nostack));
    }
}

/// Writes a model-specific register.
///
/// # Safety
/// The register exists and the value keeps what the compiler and the other code rely on.
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: the caller vouches for register and value.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack));
    }
}

/// Reads a model-specific register.
///
/// # Safety
/// The register exists.
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller vouches for the register; those that the kernel reads have no effect.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
             options(nomem, nostack));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the processor's counter.
#[inline(always)]
pub fn counter() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reading the time-stamp counter has no effect. It clears the upper halves.
    unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack)) }
    high << 32 | low
}

/// Loads the top of an address space.
///
/// # Safety
/// `root` is the physical address of a level-4 table that maps the kernel.
#[inline(always)]
pub unsafe fn load_address_space(root: u64) {
    // SAFETY: the kernel stays mapped, so the next instruction is there.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack)) }
}

/// Forgets the translation of the page at `address`, even if it is global.
///
/// # Safety
/// Nobody relies on the page being where it was.
pub unsafe fn forget_page(address: u64) {
    // SAFETY: the caller vouches for the page.
    unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack)) }
}

/// The address that faulted.
pub fn fault_address() -> u64 {
    let address;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) }
    address
}

/// Fills a page with zeros, a word at a time.
///
/// # Safety
/// The page at `address` is mapped one to one, and nobody uses it.
pub unsafe fn clear_page(address: u64) {
    // SAFETY: the caller vouches for the page.
    unsafe {
        asm!("rep stosq", inout("rdi") address => _, inout("rcx") PAGE / 8 => _, in("rax") 0,
             options(nostack));
    }
}

/// Sets bits of CR4.
///
/// # Safety
/// The processor has the features the bits name.
pub unsafe fn set_cr4(bits: u64) {
    // SAFETY: the caller checked the features.
    unsafe {
        asm!("mov {t}, cr4", "or {t}, {bits}", "mov cr4, {t}", t = out(reg) _, bits = in(reg) bits,
             options(nostack));
    }
}

/// Returns which features of the processor are on.
pub fn cr4() -> u64 {
    let bits;
    // SAFETY: reading CR4 has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) bits, options(nomem, nostack)) }
    bits
}

/// One leaf of the processor's description of itself: eax, ebx, ecx, edx.
pub fn identify(leaf: u32) -> [u32; 4] {
    let r = core::arch::x86_64::__cpuid_count(leaf, 0);
    [r.eax, r.ebx, r.ecx, r.edx]
}

/// Stops the processor for ever.
pub fn stop() -> ! {
    loop {
        // SAFETY: interrupts stay off; nothing runs on this core any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}
