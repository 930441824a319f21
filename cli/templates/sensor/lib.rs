//! The computing part of the program. It knows no Diapason, so `cargo test` tests it here.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Bytes before the samples: a signature, a number and a time, of eight bytes each.
const HEAD: usize = 24;
const SIGNATURE: &[u8] = b"DIAPASON";

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SensorPacket {
    /// The number of the packet, one more than that of the packet before.
    pub number: u64,
    /// The smallest and the largest value.
    pub span: (u8, u8),
}

impl SensorPacket {
    /// Reads a packet. Returns `None` if it is none of this sensor's.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<SensorPacket> {
        if !packet.starts_with(SIGNATURE) {
            return None;
        }
        let number = packet.get(8..16)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
        let samples = packet.get(HEAD..)?;
        let span = (*samples.iter().min()?, *samples.iter().max()?);
        Some(SensorPacket { number, span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_a_number_and_samples() {
        let mut packet = SIGNATURE.to_vec();
        packet.extend(7u64.to_le_bytes());
        packet.extend([0; 8]);
        assert_eq!(SensorPacket::of(&packet), None, "there are no samples");
        packet.extend([9, 3, 250]);
        assert_eq!(SensorPacket::of(&packet), Some(SensorPacket { number: 7, span: (3, 250) }));
        packet[0] = b'X';
        assert_eq!(SensorPacket::of(&packet), None, "it is no packet of the sensor");
    }
}
