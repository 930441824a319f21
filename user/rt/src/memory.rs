//! Memory at run time: pages, shared segments, device registers, memory that devices use too, and
//! copies in one piece.

use crate::attached;
use crate::sys::{self, call1};
use diapason_abi::call::unmapped;
use diapason_abi::{CallNumber, Errno, Key, PAGE, PAGES_PER_CALL, decode_result};

/// Returns `pages` contiguous pages of zeroed memory. The process keeps them until it ends; asking
/// for more than its quota ends it.
///
/// # Errors
/// `Busy` if another thread allocated at the same time, so that the pages are not in one piece.
pub fn allocate(pages: usize) -> Result<&'static mut [u8], Errno> {
    let mut start = 0;
    let mut done = 0;
    while done < pages {
        let step = (pages - done).min(PAGES_PER_CALL);
        let address = call1::<{ CallNumber::MemAlloc as u8 }>(step as u64)?;
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

/// A handle of an attached segment. The last one that a process drops detaches the segment.
#[derive(Debug)]
pub struct Segment {
    key: Key,
    address: u64,
}

impl Segment {
    /// Attaches the declared segment of this name. The first process to attach finds it zeroed; the
    /// last to detach frees it.
    ///
    /// # Errors
    /// `Busy` while another thread drops the last handle of it. Without the grant of the
    /// description the process ends.
    pub fn attach(name: &str) -> Result<Segment, Errno> {
        let key = Key::new(name);
        Ok(Segment { key, address: attached::attach(key)? })
    }

    /// Returns the address of the memory.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.address as *mut u8
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        attached::detach(self.key, self.address);
    }
}

/// Registers of a granted device, or a part of them.
///
/// The device defines the effect of a register. Nothing here can tell a harmless value from one
/// that makes the device write where it should not. Without an IOMMU a driver is trusted with that.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    address: u64,
    bytes: usize,
}

impl Registers {
    /// Maps the registers of the device of this name. The pages with the message table of a PCI
    /// device are the kernel's: they are missing from the map.
    ///
    /// # Errors
    /// `Absent` if the machine lacks the device.
    pub fn map(device: &str) -> Result<Registers, Errno> {
        let (address, pages) =
            unmapped(call1::<{ CallNumber::MapDevice as u8 }>(Key::new(device).0)?);
        Ok(Registers { address, bytes: pages as usize * PAGE })
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the `bytes` from `offset` on, if there are so many. For offsets that the device
    /// itself names: they are looked at once, here.
    #[must_use]
    pub fn part(&self, offset: usize, bytes: usize) -> Option<Registers> {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        end.map(|_| Registers { address: self.address + offset as u64, bytes })
    }

    /// Reads a 32-bit register.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[must_use]
    #[inline(always)]
    pub fn read32(&self, offset: usize) -> u32 {
        sys::read32(at::<u32>(self.address, self.bytes, offset))
    }

    /// Writes a 32-bit register.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[inline(always)]
    pub fn write32(&self, offset: usize, value: u32) {
        sys::write32(at::<u32>(self.address, self.bytes, offset), value);
    }

    /// Reads a 64-bit register.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[must_use]
    #[inline(always)]
    pub fn read64(&self, offset: usize) -> u64 {
        sys::read64(at::<u64>(self.address, self.bytes, offset))
    }

    /// Writes a 64-bit register.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[inline(always)]
    pub fn write64(&self, offset: usize, value: u64) {
        sys::write64(at::<u64>(self.address, self.bytes, offset), value);
    }
}

/// Returns the address of a `T` at `offset` of so many bytes.
#[inline(always)]
fn at<T>(address: u64, bytes: usize, offset: usize) -> u64 {
    let room = bytes.checked_sub(size_of::<T>()).is_some_and(|last| offset <= last);
    assert!(room && offset.is_multiple_of(align_of::<T>()), "no such place at {offset:#x}");
    address + offset as u64
}

/// Memory that devices read and write too: a declared segment with `dma = true`, attached.
///
/// Every access is one that the compiler neither leaves out, nor joins, nor moves past another or
/// past that of a register.
#[derive(Debug)]
pub struct DmaSegment {
    segment: Segment,
    bytes: usize,
    bus: u64,
}

impl DmaSegment {
    /// Attaches the segment of this name. The first to attach finds it zeroed.
    ///
    /// # Errors
    /// None for a segment the description grants and declares for devices; else the process ends.
    pub fn attach(name: &str) -> Result<DmaSegment, Errno> {
        let segment = Segment::attach(name)?;
        let (bus, pages) = unmapped(call1::<{ CallNumber::ShmBus as u8 }>(segment.key.0)?);
        Ok(DmaSegment { segment, bytes: pages as usize * PAGE, bus })
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns where devices find the byte at `offset`: below 4 GiB, and the first at the start of
    /// a page.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[must_use]
    pub fn bus_address(&self, offset: usize) -> u64 {
        at::<u8>(self.bus, self.bytes, offset)
    }

    #[inline(always)]
    fn read<T: Copy>(&self, offset: usize) -> T {
        let place = at::<T>(self.segment.address, self.bytes, offset) as *const T;
        // SAFETY: `at` looked; the segment is attached as long as `self` lives, nobody has
        // references into it, and every pattern of bits is a number.
        unsafe { place.read_volatile() }
    }

    #[inline(always)]
    fn write<T: Copy>(&self, offset: usize, value: T) {
        let place = at::<T>(self.segment.address, self.bytes, offset) as *mut T;
        // SAFETY: as above.
        unsafe { place.write_volatile(value) }
    }

    /// Reads a word.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[must_use]
    #[inline(always)]
    pub fn read32(&self, offset: usize) -> u32 {
        self.read(offset)
    }

    /// Writes a word.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[inline(always)]
    pub fn write32(&self, offset: usize, value: u32) {
        self.write(offset, value);
    }

    /// Reads a word of the processor.
    ///
    /// # Panics
    /// If there are none at this offset.
    #[must_use]
    #[inline(always)]
    pub fn read64(&self, offset: usize) -> u64 {
        self.read(offset)
    }

    /// Writes a word of the processor.
    ///
    /// # Panics
    /// If there are none at this offset.
    #[inline(always)]
    pub fn write64(&self, offset: usize, value: u64) {
        self.write(offset, value);
    }

    /// Reads a byte.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[must_use]
    #[inline(always)]
    pub fn read8(&self, offset: usize) -> u8 {
        self.read(offset)
    }

    /// Writes a byte.
    ///
    /// # Panics
    /// If there is none at this offset.
    #[inline(always)]
    pub fn write8(&self, offset: usize, value: u8) {
        self.write(offset, value);
    }

    /// Copies bytes from the memory, word by word where there are whole ones.
    ///
    /// # Panics
    /// If there are fewer from this offset.
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let (words, rest) = bytes.split_at_mut(in_words(offset, bytes.len()));
        let end = offset + words.len();
        for (at, word) in (offset..).step_by(WORD).zip(words.as_chunks_mut().0) {
            *word = self.read64(at).to_le_bytes();
        }
        for (at, byte) in (end..).zip(rest) {
            *byte = self.read8(at);
        }
    }

    /// Copies bytes into the memory, word by word where there are whole ones.
    ///
    /// # Panics
    /// If there is no room for them from this offset.
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let (words, rest) = bytes.split_at(in_words(offset, bytes.len()));
        for (at, word) in (offset..).step_by(WORD).zip(words.as_chunks().0) {
            self.write64(at, u64::from_le_bytes(*word));
        }
        for (at, byte) in (offset + words.len()..).zip(rest) {
            self.write8(at, *byte);
        }
    }
}

/// Bytes of a word of the processor.
const WORD: usize = size_of::<u64>();

/// Returns how many of `bytes` bytes from `offset` are whole words.
const fn in_words(offset: usize, bytes: usize) -> usize {
    if offset.is_multiple_of(WORD) { bytes - bytes % WORD } else { 0 }
}

/// The kernel's copy with interrupts off, for slow readers of state messages.
pub struct KernelCopy;

// SAFETY: the call copies exactly `length` bytes with interrupts off on this core.
unsafe impl diapason_state::CopyInOnePiece for KernelCopy {
    unsafe fn copy(&self, destination: *mut u8, source: *const u8, length: usize) {
        // SAFETY: passed on to the caller.
        let done = unsafe {
            sys::raw3::<{ CallNumber::ReadSlow as u8 }>(
                destination as u64,
                source as u64,
                length as u64,
            )
        };
        debug_assert!(decode_result(done).is_ok());
    }
}
