//! `usb-network` and `usb-ring`: hosts that are joined by debug cables alone, or by Ethernet,
//! simulated whole ([Bridging, §4.3 to §4.5]).

mod hosts;
mod machine;
mod network;
mod rates;
mod ring;
mod way;
mod wires;

pub use hosts::CABLE_NS;
pub use network::reproduce as network;
pub use ring::reproduce as ring;
pub use way::{BEFORE_PORT, BEHIND_PORT, PacketWay, SENSOR_NS, TERMS, Ways, sum};
pub use wires::{HEADS, PACKET, SWITCH_PPM};

use diapason::chart::Distribution;

/// Returns times with their bound, in ns.
pub fn times(name: &str, values: impl Iterator<Item = u64>, bound: u64) -> Distribution {
    Distribution::new(name.into(), values.collect(), Some(bound))
}

/// Returns a time in us.
pub fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

/// Returns the standard deviation of times, in us.
pub fn deviation(of: &Distribution) -> f64 {
    let (mean, count) = (micros(of.mean()), of.values().len().max(1));
    let squares = of.values().iter().map(|ns| (micros(*ns) - mean).powi(2));
    (squares.sum::<f64>() / count as f64).sqrt()
}
