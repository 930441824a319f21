//! Little-endian fields, one behind the other, in buffers of fixed length.

/// Reads fields in order; past the end it reads zeros (lengths are checked before).
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.0 = rest;
                *head
            }
            None => [0; N],
        }
    }
    #[inline(always)]
    pub(super) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }
    #[inline(always)]
    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
    #[inline(always)]
    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    #[inline(always)]
    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// Writes fields in order into a fixed buffer.
pub(super) struct Writer<const N: usize> {
    pub(super) bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    pub(super) fn new() -> Self {
        Writer { bytes: [0; N], at: 0 }
    }
    pub(super) fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }
}
