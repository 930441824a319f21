//! Where the bits of a signal are.

/// The order of the bytes of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// The least significant one (Intel); the start is the least significant bit.
    Little,
    /// The most significant one (Motorola); the start is the most significant bit.
    Big,
}

/// A range of bits. Bit `n` is bit `n % 8` of byte `n / 8`, counted from the least significant one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitRange {
    pub start: u16,
    /// Bits, 1 to 64.
    pub length: u8,
    pub order: ByteOrder,
}

impl BitRange {
    /// Returns its bits, the least significant one first.
    pub fn bits(self) -> impl Iterator<Item = u32> {
        let (start, length) = (u32::from(self.start), u32::from(self.length));
        // In Motorola's order bits are counted from the left of each byte: then they are adjacent.
        let flipped = start ^ 7;
        (0..length).map(move |index| match self.order {
            ByteOrder::Little => start + index,
            ByteOrder::Big => (flipped + length - 1 - index) ^ 7,
        })
    }

    /// Bytes of data that it needs.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits().max().map_or(0, |last| last / 8 + 1)
    }

    /// Returns the bits from `data`; `None` if they are not all there.
    #[must_use]
    pub fn get(self, data: &[u8]) -> Option<u64> {
        let bit = |at: u32| Some(data.get(at as usize / 8)? >> (at % 8) & 1);
        let set = |sum, (index, at)| Some(sum | u64::from(bit(at)?) << index);
        (0u32..).zip(self.bits()).try_fold(0, set)
    }

    /// The low bits of `raw` into `data`; those that are not there are left out.
    pub fn put(self, data: &mut [u8], raw: u64) {
        for (index, at) in (0u32..).zip(self.bits()) {
            if let Some(byte) = data.get_mut(at as usize / 8) {
                *byte = *byte & !(1 << (at % 8)) | ((raw >> index & 1) as u8) << (at % 8);
            }
        }
    }
}
