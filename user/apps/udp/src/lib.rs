//! The content of a datagram of both programs: a number, a time, and bytes that follow from the
//! number.

#![no_std]
#![forbid(unsafe_code)]

/// Bytes of the number and of the time.
pub const HEAD: usize = 16;
/// Most bytes of a datagram.
pub const MOST: usize = 1_472;

/// Writes a datagram into `bytes`, which has at least [`HEAD`].
pub fn write(bytes: &mut [u8], number: u64, time: u64) {
    let Some((head, rest)) = bytes.split_first_chunk_mut::<HEAD>() else { return };
    let (first, second) = head.split_at_mut(HEAD / 2);
    first.copy_from_slice(&number.to_le_bytes());
    second.copy_from_slice(&time.to_le_bytes());
    (0_u8..=u8::MAX).cycle().zip(rest).for_each(|(place, byte)| *byte = place ^ number as u8);
}

/// Reads the number and the time of a datagram; `None` if a byte of it is wrong.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (time, rest) = rest.split_first_chunk()?;
    let (number, time) = (u64::from_le_bytes(*number), u64::from_le_bytes(*time));
    let mut places = (0_u8..=u8::MAX).cycle().zip(rest);
    places.all(|(place, byte)| *byte == place ^ number as u8).then_some((number, time))
}
