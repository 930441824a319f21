//! The memory the controller reaches by itself, and what happens if it is not let.

use diapason_abi::Nanos;
use diapason_usb::trb::Trb;

/// This address was not granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denied;

/// Memory by bus address.
pub trait Memory {
    /// Fills `bytes` from `address` on.
    ///
    /// # Errors
    /// Some of it is not the controller's to read.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied>;

    /// Stores `bytes` from `address` on.
    ///
    /// # Errors
    /// Some of it is not the controller's to write.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied>;
}

/// An access that was refused; the controller halts after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Denial {
    pub at: Nanos,
    pub address: u64,
    /// The length of the access.
    pub bytes: usize,
    pub write: bool,
}

impl crate::Xhc {
    /// Reads memory; `None` if that was refused, which halts the controller.
    pub(crate) fn load(
        &mut self,
        memory: &mut dyn Memory,
        address: u64,
        bytes: &mut [u8],
    ) -> Option<()> {
        match memory.read(address, bytes) {
            Ok(()) => Some(()),
            Err(Denied) => self.deny(address, bytes.len(), false),
        }
    }

    /// Writes memory; `None` if that was refused, which halts the controller.
    pub(crate) fn store(
        &mut self,
        memory: &mut dyn Memory,
        address: u64,
        bytes: &[u8],
    ) -> Option<()> {
        match memory.write(address, bytes) {
            Ok(()) => Some(()),
            Err(Denied) => self.deny(address, bytes.len(), true),
        }
    }

    fn deny(&mut self, address: u64, bytes: usize, write: bool) -> Option<()> {
        self.denials.push(Denial { at: self.now, address, bytes, write });
        self.system_error();
        None
    }

    /// Words of memory, at most sixteen.
    pub(crate) fn load_words<const N: usize>(
        &mut self,
        memory: &mut dyn Memory,
        address: u64,
    ) -> Option<[u32; N]> {
        let mut bytes = [0; 64];
        self.load(memory, address, &mut bytes[..4 * N])?;
        let (words, _) = bytes.as_chunks::<4>();
        Some(core::array::from_fn(|i| u32::from_le_bytes(words[i])))
    }

    pub(crate) fn store_words(
        &mut self,
        memory: &mut dyn Memory,
        address: u64,
        words: &[u32],
    ) -> Option<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.store(memory, address, &bytes)
    }

    /// A block of a ring.
    pub(crate) fn fetch(&mut self, memory: &mut dyn Memory, address: u64) -> Option<Trb> {
        self.load_words(memory, address).map(Trb::from_words)
    }
}
