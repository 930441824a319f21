//! The limits of a description, and the name of an endpoint.

use core::fmt;

/// The longest period in slots, 2¹⁵: `bInterval` 16.
pub const PERIOD_MAX: u32 = 1 << 15;
/// The longest period of a guarantee in slots: 128 ms, or about a second at full and low speed. The
/// exact test follows transfers slot by slot.
pub const GUARANTEE_SLOTS_MAX: u32 = 1 << 10;
/// Most bytes of one guaranteed transfer.
pub const BYTES_MAX: u32 = 1 << 24;
/// Most endpoints of a kind on one instance: 127 devices with 30 endpoints are more, but a round
/// robin over more than this promises nothing anybody wants.
pub const ENDPOINTS_MAX: usize = 256;

/// The caller's name for an endpoint, unique on its bus instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct EndpointId(pub u32);

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {}", self.0)
    }
}
