//! Descriptors: what a device says about itself, read from bytes that nobody has checked.
//!
//! Everything here is total: any bytes give a value or a [`DescriptorRefusal`] with the offset and
//! the reason. [`Configuration::parse`] checks a whole set once; its iterators cannot fail after
//! that. Nothing is copied and nothing is followed, so nothing can go round in a circle: what
//! refers to something else (an association, a unit of a camera) is a number for the reader.
//!
//! [`build`] is the other side: it makes descriptors and counts their bytes, for device models.

mod bos;
pub mod build;
mod check;
mod configuration;
mod device;
mod endpoint;
mod hid;
mod hub;
mod interface;
mod plan;
mod refusal;
mod text;
mod walk;

pub use bos::{Bos, Capability, capability};
pub use configuration::Configuration;
pub use device::DeviceDescriptor;
pub use endpoint::EndpointDescriptor;
pub use hid::{Hid, Items, ReportItem};
pub use hub::HubDescriptor;
pub use interface::{Association, ConfigurationHeader, Interface};
pub use plan::{control_asynchronous, control_context};
pub use refusal::{DescriptorFlaw, DescriptorRefusal};
pub use text::{Languages, Text};
pub use walk::{Raw, Walk};

/// Most interfaces of a configuration. A composite device has a handful.
pub const INTERFACES_MAX: usize = 32;
/// Most alternate settings of an interface. A camera has about a dozen.
pub const ALTERNATES_MAX: usize = 64;
/// Most ports of a hub: a route string has four bits for each.
pub const HUB_PORTS_MAX: u8 = 15;
