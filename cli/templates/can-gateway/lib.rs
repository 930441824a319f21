//! The computing part of the program. It knows no Diapason, so `cargo test` tests it here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// The identifiers that pass the gateway: the first and the last.
pub const PASS: (u32, u32) = (0x100, 0x7ff);
/// Added to the identifier of a frame that passes, in steps that stay within eleven bits.
pub const SHIFT: u32 = 0x10;

/// Returns the identifier under which a frame leaves, if it passes. Identifiers have eleven bits.
#[must_use]
pub fn route(id: u32) -> Option<u32> {
    (PASS.0..=PASS.1).contains(&id).then_some((id + SHIFT) & 0x7ff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_has_a_new_identifier_of_eleven_bits() {
        assert_eq!(route(0x0ff), None);
        assert_eq!(route(0x100), Some(0x110));
        assert_eq!(route(0x7ff), Some(0x00f));
        assert_eq!(route(0x800), None);
    }
}
