//! Filters of a controller for received frames: code and mask, as in CAN controllers and CANlib.

use crate::frame::CanFrame;

/// Passes frames of one format whose identifier equals `code` where `mask` has ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The filter is for 29-bit identifiers, not for 11-bit ones.
    pub extended: bool,
    pub code: u32,
    /// The bits that count.
    pub mask: u32,
}

impl Filter {
    /// Passes everything of one format.
    #[must_use]
    pub const fn all(extended: bool) -> Filter {
        Filter { extended, code: 0, mask: 0 }
    }

    /// Passes exactly one identifier.
    #[must_use]
    pub const fn only(extended: bool, id: u32) -> Filter {
        Filter { extended, code: id, mask: u32::MAX }
    }

    /// Returns whether the frame passes the filter.
    #[must_use]
    pub fn passes(&self, frame: &CanFrame) -> bool {
        frame.is_extended() == self.extended && (frame.raw_id() ^ self.code) & self.mask == 0
    }
}

/// Returns whether any filter passes it. No filters pass everything.
#[must_use]
pub fn accepts(filters: &[Filter], frame: &CanFrame) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.passes(frame))
}
