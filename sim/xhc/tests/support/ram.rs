//! Memory from 1 MiB on that is handed out piece by piece; nothing else may be touched.

use diapason_xhc::{Denied, Memory};

const BASE: u64 = 0x10_0000;
const SIZE: usize = 8 << 20;

pub struct Ram {
    bytes: Vec<u8>,
    next: u64,
}

impl Ram {
    pub fn new() -> Ram {
        Ram { bytes: vec![0; SIZE], next: BASE }
    }

    /// Memory that does not cross a multiple of 64 KiB if it is not longer.
    pub fn take(&mut self, bytes: u64, align: u64) -> u64 {
        let mut at = self.next.next_multiple_of(align);
        if at / 0x1_0000 != (at + bytes.max(1) - 1) / 0x1_0000 {
            at = at.next_multiple_of(0x1_0000);
        }
        self.next = at + bytes;
        assert!(self.next < BASE + SIZE as u64, "out of memory");
        at
    }

    pub fn buffer(&mut self, bytes: u32) -> u64 {
        self.take(u64::from(bytes), 16)
    }

    fn range(&self, address: u64, length: usize) -> Result<std::ops::Range<usize>, Denied> {
        let begin =
            usize::try_from(address.checked_sub(BASE).ok_or(Denied)?).map_err(|_| Denied)?;
        let end = begin.checked_add(length).filter(|&end| end <= SIZE).ok_or(Denied)?;
        Ok(begin..end)
    }

    pub fn bytes(&self, address: u64, length: usize) -> &[u8] {
        &self.bytes[self.range(address, length).unwrap()]
    }

    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let range = self.range(address, bytes.len()).unwrap();
        self.bytes[range].copy_from_slice(bytes);
    }

    pub fn words<const N: usize>(&self, address: u64) -> [u32; N] {
        let bytes = self.bytes(address, 4 * N);
        std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
    }

    pub fn put_words(&mut self, address: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(address, &bytes);
    }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Denied> {
        let range = self.range(address, bytes.len())?;
        bytes.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        let range = self.range(address, bytes.len())?;
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }
}
