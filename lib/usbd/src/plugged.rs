//! Where devices are plugged in.

use core::fmt;

/// Where a device is plugged in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub port: u8,
    /// Hub ports on the way, four bits each, the first in the lowest.
    pub route: u32,
}

impl Place {
    /// Hubs on the way.
    pub const fn tier(self) -> u8 {
        (32 - self.route.leading_zeros()).div_ceil(4) as u8
    }

    /// Returns the hub it is plugged into, and that hub's port.
    pub fn hub(self) -> Option<(Place, u8)> {
        let shift = 4 * (self.tier().checked_sub(1)?);
        let (above, port) = (self.route & !(0xf << shift), self.route >> shift);
        Some((Place { route: above, ..self }, port as u8))
    }
}

/// Where a device is, as `lsusb -t` has it: root port, then the ports of hubs.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.port)?;
        (0..self.tier()).try_for_each(|tier| write!(f, ".{}", self.route >> (4 * tier) & 0xf))
    }
}
