//! Memory at run time: pages, shared segments, device registers, and copies in one piece.

use crate::sys::{self, call1};
use diapason_abi::call::PARTIAL;
use diapason_abi::{CallNumber, Errno, Key, PAGE, PAGES_PER_CALL, decode_result};

/// `pages` pages of zeroed memory, one behind the other. The process keeps them until it ends;
/// asking for more than its quota ends it.
///
/// # Errors
/// `Busy` if another thread allocated at the same time, so that the pages are not in one piece.
pub fn allocate(pages: usize) -> Result<&'static mut [u8], Errno> {
    let mut start = 0;
    let mut done = 0;
    while done < pages {
        let step = (pages - done).min(PAGES_PER_CALL);
        let address = call1(CallNumber::MemAlloc, step as u64)?;
        if done == 0 {
            start = address;
        } else if address != start + (done * PAGE) as u64 {
            return Err(Errno::Busy);
        }
        done += step;
    }
    if pages == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the kernel mapped these pages for this call and gives them to nobody else.
    Ok(unsafe { core::slice::from_raw_parts_mut(start as *mut u8, pages * PAGE) })
}

/// A shared segment that is attached. Dropping it detaches it.
#[derive(Debug)]
pub struct Segment {
    key: Key,
    address: u64,
}

impl Segment {
    /// Attach the declared segment of this name. The first to attach finds it zeroed; the last to
    /// detach frees it.
    ///
    /// # Errors
    /// None for a segment the description grants; without the grant the process ends.
    pub fn attach(name: &str) -> Result<Segment, Errno> {
        let key = Key::new(name);
        loop {
            let answer = call1(CallNumber::ShmAttach, key.0)?;
            if answer & PARTIAL == 0 {
                return Ok(Segment { key, address: answer });
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.address as *mut u8
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = call1(CallNumber::ShmDetach, self.key.0);
    }
}

/// Registers of a granted device.
#[derive(Clone, Copy, Debug)]
pub struct Registers(u64);

impl Registers {
    /// Map the registers of the device of this name.
    ///
    /// # Errors
    /// None for a device the description grants.
    pub fn map(device: &str) -> Result<Registers, Errno> {
        call1(CallNumber::MapDevice, Key::new(device).0).map(Registers)
    }

    /// Read a 64-bit register.
    ///
    /// # Safety
    /// `offset` is a register of the device.
    #[must_use]
    pub unsafe fn read64(&self, offset: usize) -> u64 {
        // SAFETY: the caller vouches for the offset; the mapping lives as long as the process.
        unsafe { (self.0 as *const u64).byte_add(offset).read_volatile() }
    }

    /// Write a 64-bit register.
    ///
    /// # Safety
    /// `offset` is a register of the device, and the value one it may have.
    pub unsafe fn write64(&self, offset: usize, value: u64) {
        // SAFETY: as above.
        unsafe { (self.0 as *mut u64).byte_add(offset).write_volatile(value) }
    }
}

/// The kernel's copy with interrupts off, for slow readers of state messages.
pub struct Kernel;

// SAFETY: the call copies exactly `length` bytes with interrupts off on this core.
unsafe impl diapason_state::CopyInOnePiece for Kernel {
    unsafe fn copy(&self, destination: *mut u8, source: *const u8, length: usize) {
        let call = CallNumber::ReadSlow as u64;
        // SAFETY: passed on to the caller.
        let done = unsafe { sys::raw3(call, destination as u64, source as u64, length as u64) };
        debug_assert!(decode_result(done).is_ok());
    }
}
