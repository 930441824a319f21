//! Why bytes are no descriptor.

use core::fmt;

/// Bytes that are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DescriptorRefusal {
    /// Where the descriptor begins that is wrong, from the first byte given.
    pub offset: usize,
    /// The reason of the refusal.
    pub reason: DescriptorFlaw,
}

/// The reason why a descriptor is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DescriptorFlaw {
    /// The descriptor's length is less than its kind needs.
    Short { length: usize, needed: usize },
    /// The descriptor goes on after the end of what was read.
    PastEnd {
        length: usize,
        /// The bytes that are left.
        left: usize,
    },
    /// Another kind belongs here.
    Kind(u8),
    /// The second reading says something else than the first.
    Changed,
    /// No interface, or more than [`super::INTERFACES_MAX`].
    InterfaceCount(u8),
    /// The interfaces are not numbered from 0 without gaps.
    InterfaceNumber(u8),
    /// The interfaces are not as many as the configuration says.
    InterfacesMissing {
        said: u8,
        /// How many there are.
        found: u8,
    },
    /// An alternate setting comes twice, or its number is [`super::ALTERNATES_MAX`] or more.
    Alternate(u8),
    /// The alternate settings of this interface are not numbered from 0 without gaps.
    AlternatesMissing(u8),
    /// An endpoint before the first interface.
    Orphan,
    /// The endpoints are not as many as the interface says.
    EndpointCount {
        said: u8,
        /// How many there are.
        found: u8,
    },
    /// Endpoint 0, or reserved bits.
    EndpointAddress(u8),
    /// The endpoint is in this setting already, or belongs to another interface.
    EndpointTwice(u8),
    /// A transfer type that this speed does not have, or a second control endpoint.
    EndpointType(u8),
    /// A packet size that is not possible here.
    PacketSize(u16),
    /// An interval that is not possible here.
    Interval(u8),
    /// The companion of an endpoint is missing, comes twice, or does not belong to this speed.
    Companion,
    /// More packets in a burst, or bursts in an interval, than there can be.
    Burst(u8),
    /// More bytes in an interval than its packets hold, or none.
    IntervalBytes(u32),
    /// An association of interfaces that overlap or do not exist.
    Association(u8),
    /// A text of half a character, or a list without a language.
    Text(u8),
    /// The capabilities are not as many as said.
    Capabilities {
        said: u8,
        /// How many there are.
        found: u8,
    },
    /// A hub of no ports or more than [`super::HUB_PORTS_MAX`].
    Ports(u8),
    /// A number of configurations that is not possible.
    Configurations(u8),
    /// A report with collections that do not close, or with more bits than a report can have.
    Report,
}

impl fmt::Display for DescriptorRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "descriptor at byte {}: ", self.offset)?;
        match self.reason {
            DescriptorFlaw::Short { length, needed } => {
                write!(f, "{length} bytes, it needs {needed}")
            }
            DescriptorFlaw::PastEnd { length, left } => {
                write!(f, "{length} bytes of which {left} are there")
            }
            DescriptorFlaw::Kind(kind) => write!(f, "kind {kind:#04x} does not belong here"),
            DescriptorFlaw::Changed => write!(f, "not the same as when it was read first"),
            DescriptorFlaw::InterfaceCount(n) => write!(f, "{n} interfaces"),
            DescriptorFlaw::InterfaceNumber(n) => {
                write!(f, "interface {n} is not below their number")
            }
            DescriptorFlaw::InterfacesMissing { said, found } => {
                write!(f, "{said} interfaces said, {found} there")
            }
            DescriptorFlaw::Alternate(n) => {
                write!(f, "alternate setting {n} twice, or too many of them")
            }
            DescriptorFlaw::AlternatesMissing(n) => {
                write!(f, "interface {n} lacks an alternate setting")
            }
            DescriptorFlaw::Orphan => write!(f, "an endpoint of no interface"),
            DescriptorFlaw::EndpointCount { said, found } => {
                write!(f, "{said} endpoints said, {found} there")
            }
            DescriptorFlaw::EndpointAddress(n) => {
                write!(f, "endpoint address {n:#04x} is not possible")
            }
            DescriptorFlaw::EndpointTwice(n) => write!(f, "endpoint {n:#04x} twice"),
            DescriptorFlaw::EndpointType(n) => {
                write!(f, "endpoint attributes {n:#04x} are not possible")
            }
            DescriptorFlaw::PacketSize(n) => write!(f, "a packet size of {n:#06x} is not possible"),
            DescriptorFlaw::Interval(n) => write!(f, "an interval of {n} is not possible"),
            DescriptorFlaw::Companion => {
                write!(f, "companion missing, twice, or at the wrong speed")
            }
            DescriptorFlaw::Burst(n) => write!(f, "bursts of {n:#04x} are not possible"),
            DescriptorFlaw::IntervalBytes(n) => {
                write!(f, "{n} bytes in an interval are not possible")
            }
            DescriptorFlaw::Association(n) => {
                write!(f, "association from interface {n} is not possible")
            }
            DescriptorFlaw::Text(n) => write!(f, "a text of {n} bytes"),
            DescriptorFlaw::Capabilities { said, found } => {
                write!(f, "{said} capabilities said, {found} there")
            }
            DescriptorFlaw::Ports(n) => write!(f, "a hub of {n} ports"),
            DescriptorFlaw::Configurations(n) => write!(f, "{n} configurations"),
            DescriptorFlaw::Report => write!(f, "a report that no device can have"),
        }
    }
}

impl core::error::Error for DescriptorRefusal {}
