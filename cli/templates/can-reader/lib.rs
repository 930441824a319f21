//! The computing part of the program. It knows no Diapason, so `cargo test` tests it here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Reads the signal of a frame: here a number that counts up, in eight bytes, least byte first.
#[must_use]
pub fn signal(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// The frames so far.
#[derive(Debug, Default)]
pub struct Numbers {
    pub frames: u64,
    /// Numbers that were skipped.
    pub missing: u64,
    next: Option<u64>,
}

impl Numbers {
    /// Counts a frame with this number. Returns how many are missing before it.
    pub fn count(&mut self, number: u64) -> u64 {
        let missing = self.next.map_or(0, |next| number.saturating_sub(next));
        self.frames += 1;
        self.missing += missing;
        self.next = Some(number + 1);
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_numbers_are_missing() {
        let mut tally = Numbers::default();
        let missing: Vec<u64> = [7, 8, 11, 12].map(|number| tally.count(number)).into();
        assert_eq!((missing, tally.missing), (vec![0, 0, 2, 0], 2));
    }

    #[test]
    fn a_short_frame_has_no_signal() {
        assert_eq!(signal(&[1, 0, 0, 0, 0, 0, 0, 0]), Some(1));
        assert_eq!(signal(&[1, 0]), None);
    }
}
