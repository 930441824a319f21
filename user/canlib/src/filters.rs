//! The filters of a channel.

use crate::error::Error;
use diapason_can::{Filter, Id, accepts};

/// Most filters of a channel.
pub const FILTERS: usize = 16;

/// The filters that are set.
pub(crate) struct Filters {
    all: [Filter; FILTERS],
    count: usize,
}

impl Default for Filters {
    fn default() -> Filters {
        Filters { all: [Filter::all(false); FILTERS], count: 0 }
    }
}

impl Filters {
    /// Replaces all of them. Refuses more than there is room for.
    pub(crate) fn set(&mut self, filters: &[Filter]) -> Result<(), Error> {
        let places = self.all.get_mut(..filters.len()).ok_or(Error::TooManyFilters)?;
        places.copy_from_slice(filters);
        self.count = filters.len();
        Ok(())
    }

    /// Returns whether one of them passes a frame with this identifier, or there is none.
    pub(crate) fn pass(&self, id: Id) -> bool {
        accepts(self.all.get(..self.count).unwrap_or(&[]), id)
    }
}
