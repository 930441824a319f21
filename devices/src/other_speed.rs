//! The descriptors of a high-speed device for full speed (USB 2.0 §9.6.2 and §9.6.4).

use crate::descriptors::parts;
use diapason_usb::setup::descriptor_type::{DEVICE_QUALIFIER, ENDPOINT, OTHER_SPEED_CONFIGURATION};

/// The device class of hubs, whose protocol at full speed is 0.
const HUB: u8 = 9;
/// Largest packets at full speed: of control, bulk and interrupt endpoints, and of isochronous
/// ones.
const PACKET: u16 = 64;
const ISOCHRONOUS_PACKET: u16 = 1_023;
/// A frame is 2^3 microframes.
const FRAME_EXPONENT: u8 = 3;

/// Returns the qualifier of a device with this descriptor.
pub fn qualifier(device: &[u8]) -> Option<Vec<u8>> {
    let &[_, _, low, high, class, subclass, protocol, packet, ..] = device else { return None };
    let protocol = if class == HUB { 0 } else { protocol };
    let configurations = *device.get(17)?;
    let kind = DEVICE_QUALIFIER;
    Some(vec![10, kind, low, high, class, subclass, protocol, packet, configurations, 0])
}

/// Returns a configuration of high speed as it is at full speed: the same parts, with smaller
/// packets and intervals in frames.
pub fn configuration(high: &[u8]) -> Vec<u8> {
    let slowed = parts(high).enumerate().flat_map(|(at, part)| {
        let mut part = part.to_vec();
        match part.as_mut_slice() {
            [_, kind, ..] if at == 0 => *kind = OTHER_SPEED_CONFIGURATION,
            [_, ENDPOINT, _, attributes, low, high, interval, ..] => {
                let size = u16::from_le_bytes([*low, *high]);
                let (size, frames) = slow(*attributes & 3, size, *interval);
                ([*low, *high], *interval) = (size.to_le_bytes(), frames);
            }
            _ => {}
        }
        part
    });
    slowed.collect()
}

/// Packet and interval of an endpoint of this kind at full speed.
fn slow(kind: u8, size: u16, interval: u8) -> (u16, u8) {
    let (packet, packets) = (size & 0x7ff, (size >> 11 & 3) + 1);
    match kind {
        // An isochronous interval is a power of two at both speeds.
        1 => {
            let interval = interval.saturating_sub(FRAME_EXPONENT).max(1);
            ((packet * packets).min(ISOCHRONOUS_PACKET), interval)
        }
        // An interrupt endpoint's is a number of frames at full speed.
        3 => {
            let exponent = interval.saturating_sub(1 + FRAME_EXPONENT);
            let frames = 1u32.checked_shl(exponent.into()).unwrap_or(u32::MAX).min(255);
            (packet.min(PACKET), frames as u8)
        }
        _ => (packet.min(PACKET), interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_intervals_of_the_other_speed() {
        assert_eq!(slow(2, 512, 0), (64, 0));
        assert_eq!(slow(3, 16, 7), (16, 8));
        assert_eq!(slow(3, 0x1400, 1), (64, 1));
        assert_eq!(slow(3, 8, 255), (8, 255));
        assert_eq!(slow(1, 0x1400, 4), (1_023, 1));
        assert_eq!(slow(1, 100, 6), (100, 3));
    }

    #[test]
    fn a_hub_is_a_hub_without_translators() {
        let device = [18, 1, 0, 2, 9, 0, 1, 64, 1, 2, 3, 4, 5, 6, 0, 0, 0, 1];
        assert_eq!(qualifier(&device), Some(vec![10, 6, 0, 2, 9, 0, 0, 64, 1, 0]));
        assert_eq!(qualifier(&device[..9]), None);
    }
}
