//! Memory of programs: each process's window, which on the first host lies where it does on the
//! metal.
//!
//! The windows lie at fixed addresses of this host process, so the images run as they are and every
//! pointer of the first host means the same on both machines. Rights are kept twice, as page
//! protection for what the programs do and as a table for what the kernel does for them.

use diapason_abi::archive::SegmentRecord;
use diapason_abi::{PAGE, layout};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// The rights of a program on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rights {
    Nothing,
    Read,
    Execute,
    Write,
}

impl Rights {
    const fn protection(self) -> i32 {
        match self {
            Rights::Nothing => libc::PROT_NONE,
            Rights::Read => libc::PROT_READ,
            Rights::Execute => libc::PROT_READ | libc::PROT_EXEC,
            Rights::Write => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// The window of one process.
pub(crate) struct Window {
    base: u64,
    /// By page of the window.
    rights: Vec<u8>,
    /// The protected parts, by first page: how many pages, and how.
    parts: BTreeMap<u64, (u64, Rights)>,
    /// The window's process cannot run now, so nobody may touch it.
    sealed: bool,
}

impl Window {
    /// Reserve the window that begins at `base`, with nothing in it.
    pub fn reserve(base: u64) -> Result<Window, Error> {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a fresh mapping that replaces nothing.
        let at = unsafe {
            libc::mmap(base as *mut _, layout::WINDOW as usize, libc::PROT_NONE, flags, -1, 0)
        };
        if at as u64 != base {
            return Err(Error::last_os_error());
        }
        let rights = vec![Rights::Nothing as u8; layout::WINDOW as usize / PAGE];
        Ok(Window { base, rights, parts: BTreeMap::new(), sealed: false })
    }

    /// Takes everything away, until it is unsealed: another process runs.
    pub fn seal(&mut self) {
        self.sealed = true;
        self.apply(0, layout::WINDOW / PAGE as u64, Rights::Nothing);
    }

    /// Opens the window of a process that runs again.
    pub fn unseal(&mut self) {
        self.sealed = false;
        for (offset, (pages, rights)) in &self.parts {
            self.apply(*offset, *pages, *rights);
        }
    }

    /// Returns the first address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Gives the program rights to `pages` pages from `offset`.
    pub fn protect(&mut self, offset: u64, pages: u64, rights: Rights) {
        self.note(offset, pages, rights);
        if !self.sealed {
            self.apply(offset, pages, rights);
        }
    }

    fn apply(&self, offset: u64, pages: u64, rights: Rights) {
        let (at, bytes) = ((self.base + offset) as *mut _, pages as usize * PAGE);
        // SAFETY: pages of this window, which only programs and `bytes` use.
        let done = unsafe { libc::mprotect(at, bytes, rights.protection()) };
        assert_eq!(done, 0, "mprotect: {}", Error::last_os_error());
    }

    fn note(&mut self, offset: u64, pages: u64, rights: Rights) {
        let first = offset as usize / PAGE;
        self.rights[first..first + pages as usize].fill(rights as u8);
        let covered = self.parts.range(offset..offset + pages * PAGE as u64);
        let covered: Vec<u64> = covered.map(|(start, _)| *start).collect();
        for start in covered {
            self.parts.remove(&start);
        }
        if rights != Rights::Nothing {
            self.parts.insert(offset, (pages, rights));
        }
    }

    /// Takes `pages` pages from `offset` away; when they come back they are zero.
    pub fn clear(&mut self, offset: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        self.protect(offset, pages, Rights::Nothing);
        let (at, bytes) = ((self.base + offset) as *mut _, pages as usize * PAGE);
        // SAFETY: as above; anonymous private pages read as zero afterwards.
        unsafe { libc::madvise(at, bytes, libc::MADV_DONTNEED) };
    }

    /// Shows the first `pages` pages of `shared` at `offset`.
    pub fn show(&mut self, offset: u64, shared: &Shared, pages: u64) {
        if pages == 0 {
            return;
        }
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let rights = if self.sealed { Rights::Nothing } else { Rights::Write };
        let protection = rights.protection();
        let bytes = pages as usize * PAGE;
        // SAFETY: replaces pages of this window with those of the segment.
        let at = unsafe {
            libc::mmap(
                (self.base + offset) as *mut _,
                bytes,
                protection,
                flags,
                shared.file.as_raw_fd(),
                0,
            )
        };
        assert_eq!(at as u64, self.base + offset, "mmap: {}", Error::last_os_error());
        self.note(offset, pages, Rights::Write);
    }

    /// Hides what was shown at `offset`.
    pub fn hide(&mut self, offset: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let (at, bytes) = ((self.base + offset) as *mut _, pages as usize * PAGE);
        // SAFETY: replaces pages of this window with reserved ones.
        let done = unsafe { libc::mmap(at, bytes, libc::PROT_NONE, flags, -1, 0) };
        assert_eq!(done as u64, self.base + offset, "mmap: {}", Error::last_os_error());
        self.note(offset, pages, Rights::Nothing);
    }

    /// Returns the memory at `address`, if it is of the part that the kernel copies and the program
    /// may read (or write) all of it.
    pub fn range(&self, address: u64, length: u64, write: bool) -> Option<NonNull<u8>> {
        let offset = address.wrapping_sub(self.base);
        let end = offset.checked_add(length)?;
        if offset >= layout::COPYABLE || end > layout::COPYABLE {
            return None;
        }
        let pages = offset as usize / PAGE..(end as usize).div_ceil(PAGE);
        let allowed = |rights: &u8| {
            *rights == Rights::Write as u8 || (!write && *rights != Rights::Nothing as u8)
        };
        if self.rights[pages].iter().all(allowed) { NonNull::new(address as *mut u8) } else { None }
    }

    /// Returns whether the program has any right on the page at `offset`.
    pub fn has(&self, offset: u64) -> bool {
        self.rights.get(offset as usize / PAGE).is_some_and(|own| *own != Rights::Nothing as u8)
    }

    /// Returns a sum over the program's memory, without the segments that it shows. A sealed window
    /// is open meanwhile.
    pub fn sum(&self) -> u64 {
        let parts = self.parts.iter().filter(|(offset, _)| **offset < layout::SEGMENTS);
        parts.fold(0, |sum, (offset, (pages, _))| {
            if self.sealed {
                self.apply(*offset, *pages, Rights::Read);
            }
            let at = (self.base + offset) as *const u8;
            // SAFETY: pages of this window that can be read now; no program runs while the
            // reference lives.
            let bytes = unsafe { std::slice::from_raw_parts(at, *pages as usize * PAGE) };
            let sum = added(sum, bytes);
            if self.sealed {
                self.apply(*offset, *pages, Rights::Nothing);
            }
            sum
        })
    }

    /// The pages themselves, for the loader.
    pub fn bytes(&mut self, offset: u64, length: usize) -> &mut [u8] {
        assert!(offset + length as u64 <= layout::WINDOW);
        // SAFETY: within the window; the loader made these pages writable first, and no program
        // runs while the reference lives.
        unsafe { std::slice::from_raw_parts_mut((self.base + offset) as *mut u8, length) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the window is this object's; its threads do not run any more.
        unsafe { libc::munmap(self.base as *mut _, layout::WINDOW as usize) };
    }
}

/// Returns a sum with whole pages added to it. One changed byte changes it, wherever it is.
fn added(sum: u64, pages: &[u8]) -> u64 {
    let (words, _) = pages.as_chunks();
    words.iter().fold(sum, |sum, word| {
        (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

/// Memory that several processes, or a process and a device, see.
pub(crate) struct Shared {
    file: File,
    host: NonNull<u8>,
    bytes: usize,
}

impl Shared {
    /// Zeroed memory of so many pages.
    pub fn new(pages: u64) -> Result<Shared, Error> {
        let bytes = (pages as usize * PAGE).max(PAGE);
        // SAFETY: system calls that create a new object, which is this one's.
        let file = unsafe {
            let file = libc::memfd_create(c"segment".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 || libc::ftruncate(file, bytes as libc::off_t) < 0 {
                return Err(Error::last_os_error());
            }
            File::from_raw_fd(file)
        };
        Shared::of(file, bytes)
    }

    /// Maps the memory once more, for another core.
    pub fn again(&self) -> Result<Shared, Error> {
        Shared::of(self.file.try_clone()?, self.bytes)
    }

    fn of(file: File, bytes: usize) -> Result<Shared, Error> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping that replaces nothing.
        let host =
            unsafe { libc::mmap(null, bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match NonNull::new(host.cast()) {
            Some(host) if host.as_ptr() as isize != -1 => Ok(Shared { file, host, bytes }),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Returns a sum over the memory.
    pub fn sum(&self) -> u64 {
        let mut bytes = vec![0; self.bytes];
        let read = self.file.read_exact_at(&mut bytes, 0);
        assert!(read.is_ok(), "{read:?}");
        added(0, &bytes)
    }

    /// Returns the memory as the simulator and its devices see it.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping lives as long as this object; programs, which see it too, do not run
        // while the reference lives.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.bytes) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this object's own mapping.
        unsafe { libc::munmap(self.host.as_ptr().cast(), self.bytes) };
    }
}

/// Memory that several cores show, by the names of segments.
#[derive(Default)]
pub(crate) struct Commons(BTreeMap<u64, Shared>);

impl Commons {
    /// The memory of a segment, and its pages: that of all cores, if they have it in common.
    pub fn segment(&mut self, record: &SegmentRecord) -> Result<(Shared, u64), Error> {
        let pages = u64::from(record.pages);
        let shared = match self.0.get(&record.key) {
            Some(shared) if record.common => shared.again(),
            _ => Shared::new(pages),
        };
        let shared = shared?;
        if record.common {
            self.0.insert(record.key, shared.again()?);
        }
        Ok((shared, pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_common_is_the_same_memory_and_nothing_else_is() {
        let mut commons = Commons::default();
        let mut record = SegmentRecord { key: 7, allowed: 1, pages: 1, dma: false, common: true };
        let (mut one, _) = commons.segment(&record).unwrap();
        let (mut other, pages) = commons.segment(&record).unwrap();
        one.bytes()[17] = 3;
        assert_eq!((other.bytes()[17], pages), (3, 1));
        let sum = one.sum();
        one.bytes()[PAGE - 1] = 1;
        assert_ne!(other.sum(), sum);
        one.bytes()[PAGE - 1] = 0;
        assert_eq!(other.sum(), sum);
        record.common = false;
        let (mut own, _) = commons.segment(&record).unwrap();
        assert_eq!(own.bytes()[17], 0);
    }
}
