//! Descriptions that make no sense, in words: another thing than what does not fit.

use crate::limits::{BYTES_MAX, ENDPOINTS_MAX, EndpointId, GUARANTEE_SLOTS_MAX, PERIOD_MAX};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// A description that makes no sense: the caller's mistake, not a lack of room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidDemand {
    /// The periodic share is not from 1 to 100 percent.
    Percent(u32),
    /// More repetitions than this module calculates with (65,535).
    Retries(u32),
    /// More than [`ENDPOINTS_MAX`] endpoints of a kind.
    Endpoints(usize),
    /// Two endpoints have the same name.
    Twice(EndpointId),
    /// The transfer type belongs to the other kind of endpoint, or the speed does not have it.
    Type(EndpointId),
    /// The packet has no bytes or more than the given number.
    Packet(EndpointId, u32),
    /// A burst or transfer has more packets than the given number.
    Packets(EndpointId, u32),
    /// The period is not a power of two from 1 to [`PERIOD_MAX`], or the longest one is shorter.
    Period(EndpointId),
    /// The guarantee is for no bytes, for more than [`BYTES_MAX`], or within no time or too long.
    Guarantee(EndpointId),
    /// No endpoint of that name is on the bus.
    Unknown(EndpointId),
}

impl InvalidDemand {
    /// Returns the endpoint that makes no sense, unless it is the bus.
    #[must_use]
    pub const fn endpoint(&self) -> Option<EndpointId> {
        match *self {
            InvalidDemand::Percent(_) | InvalidDemand::Retries(_) | InvalidDemand::Endpoints(_) => {
                None
            }
            InvalidDemand::Twice(id)
            | InvalidDemand::Type(id)
            | InvalidDemand::Packet(id, _)
            | InvalidDemand::Packets(id, _)
            | InvalidDemand::Period(id)
            | InvalidDemand::Guarantee(id)
            | InvalidDemand::Unknown(id) => Some(id),
        }
    }

    /// Returns the mistake in words, with a name for the endpoint, and the values to use instead.
    #[must_use]
    pub fn describe(&self, name: impl Fn(EndpointId) -> String) -> (String, String) {
        let fault = |id, what: &str, give: String| (format!("{} {what}", name(id)), give);
        match *self {
            InvalidDemand::Percent(n) => {
                let what = format!("{n} % of a slot for periodic endpoints");
                (what, "give 1 to 100".to_string())
            }
            InvalidDemand::Retries(n) => {
                (format!("{n} repeated packets"), "give at most 65535".into())
            }
            InvalidDemand::Endpoints(n) => {
                (format!("{n} endpoints of a kind on one bus"), format!("at most {ENDPOINTS_MAX}"))
            }
            InvalidDemand::Twice(id) => {
                fault(id, "is on the bus twice", "give each its own number".into())
            }
            InvalidDemand::Type(id) => {
                let rule = "isochronous and interrupt are periodic, bulk and control are not, low \
                            speed has neither bulk nor isochronous";
                fault(id, "has a transfer type that is not possible here", rule.into())
            }
            InvalidDemand::Packet(id, most) => {
                let what = "has packets of a size that is not possible";
                fault(id, what, format!("give 1 to {most} bytes"))
            }
            InvalidDemand::Packets(id, most) => {
                fault(id, "has too many packets in one go", format!("at most {most}"))
            }
            InvalidDemand::Period(id) => fault(
                id,
                "has an impossible period",
                format!(
                    "give a power of two from 1 to {PERIOD_MAX} slots, and a longest period not \
                     below it"
                ),
            ),
            InvalidDemand::Guarantee(id) => fault(
                id,
                "has an impossible guarantee",
                format!("give 1 to {BYTES_MAX} bytes within 1 to {GUARANTEE_SLOTS_MAX} slots"),
            ),
            InvalidDemand::Unknown(id) => {
                fault(id, "is not on this bus", "name one that is".into())
            }
        }
    }
}

impl fmt::Display for InvalidDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, give) = self.describe(|id| id.to_string());
        write!(f, "{what}: {give}")
    }
}
