//! Filters of a controller for received frames: code and mask, as in CAN controllers and CANlib.

use embedded_can::Id;

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

    /// Passes exactly this identifier.
    #[must_use]
    pub fn of(id: Id) -> Filter {
        match id {
            Id::Standard(id) => Filter::only(false, id.as_raw().into()),
            Id::Extended(id) => Filter::only(true, id.as_raw()),
        }
    }

    /// Returns whether frames with this identifier pass the filter.
    #[must_use]
    pub fn passes(&self, id: Id) -> bool {
        let (extended, raw) = match id {
            Id::Standard(id) => (false, id.as_raw().into()),
            Id::Extended(id) => (true, id.as_raw()),
        };
        extended == self.extended && (raw ^ self.code) & self.mask == 0
    }
}

/// Returns whether any filter passes frames with this identifier. No filters pass everything.
#[must_use]
pub fn accepts(filters: &[Filter], id: Id) -> bool {
    filters.is_empty() || filters.iter().any(|filter| filter.passes(id))
}
