//! How long one packet occupies the bus: [USB 2023, eq. 3], at every speed.
//!
//! `w = h + p + α·⌊19/6 + 8·γ·b⌋` with `b` bytes of payload. The constants:
//!
//! | speed | α | p: bulk, interrupt, control | p: isochronous | γ | h |
//! |---|---|---|---|---|---|
//! | super | 0.2 ns | 84 bytes | 48 bytes | 1 | 5 ns |
//! | high | 1/0.48 ns | 55 bytes | 38 bytes | 7/6 | 5 ns |
//! | full | 83.54 ns | 9107 ns | in 7268 ns, out 6265 ns | 7/6 | 1 µs |
//! | low | in 676.67 ns, out 667 ns | in 64,060 ns, out 64,107 ns, and 2 × 333 ns | | 7/6 | 1 µs |
//!
//! Super speed is [USB 2023, §3.1, footnote 5]; high, full and low speed are §5.11.3 of the USB
//! 2.0 specification, with the two delays it leaves open (host, and set-up of a hub for low speed)
//! as Linux assumes them. α of high speed is not rounded to 2.083 ns but taken exactly.
//!
//! **The α of [USB 2023] for super speed counts 8 bits per byte.** The wire is 8b/10b coded and
//! sends
//! 10, so 62,500 bytes fit into a microframe and not 78,125. [`Coding::Ignored`] gives the
//! paper's numbers, [`Coding::EightTen`] (α = 0.25 ns) what a cable can do; promises about
//! hardware need the second.

use crate::time::Picos;

/// The speed of a bus instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speed {
    /// 1.5 Mbit/s, frames of 1 ms.
    Low,
    /// 12 Mbit/s, frames of 1 ms.
    Full,
    /// 480 Mbit/s, microframes of 125 µs.
    High,
    /// 5 Gbit/s, microframes of 125 µs.
    Super,
}

/// Whether the line code of super speed is counted. Other speeds do not have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// 8 bits per byte: no line code.
    Ignored,
    /// 10 bits per byte, as on the wire.
    EightTen,
}

/// The transfer type of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// Set-up and configuration; asynchronous.
    Control,
    Bulk,
    Interrupt,
    Isochronous,
}

/// Where the data goes, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    In,
    Out,
}

impl Speed {
    /// Returns the length of a microframe, or of a frame where there are none: the slot of the
    /// schedule.
    #[must_use]
    pub const fn slot(self) -> Picos {
        match self {
            Speed::Low | Speed::Full => Picos::from_nanos(1_000_000),
            Speed::High | Speed::Super => Picos::from_nanos(125_000),
        }
    }

    /// Returns the most of a slot that periodic traffic may take, in percent (§2.2; USB 2.0 §5.6.4,
    /// 5.7.4).
    #[must_use]
    pub const fn periodic_percent(self) -> u32 {
        match self {
            Speed::High => 80,
            Speed::Low | Speed::Full | Speed::Super => 90,
        }
    }

    /// Returns the largest packet of a transfer type; 0 if this speed does not have the type.
    #[must_use]
    pub const fn largest_packet(self, transfer: Transfer) -> u32 {
        match (self, transfer) {
            (Speed::Low, Transfer::Control | Transfer::Interrupt) => 8,
            (Speed::Low, _) => 0,
            (Speed::Full, Transfer::Isochronous) => 1023,
            (Speed::Full, _) | (Speed::High, Transfer::Control) => 64,
            (Speed::High, Transfer::Bulk) | (Speed::Super, Transfer::Control) => 512,
            (Speed::High | Speed::Super, _) => 1024,
        }
    }

    /// Returns the period in slots that an endpoint descriptor asks for with `bInterval`, as xHCI
    /// runs it: powers of two, frames of full and low speed interrupts rounded down. `None`: not
    /// allowed.
    #[must_use]
    pub const fn period(self, transfer: Transfer, interval: u8) -> Option<u32> {
        let exponent = match (self, transfer) {
            (_, Transfer::Control | Transfer::Bulk) => return None,
            (Speed::Low | Speed::Full, Transfer::Interrupt) if interval > 0 => interval.ilog2(),
            (_, _) if interval >= 1 && interval <= 16 => interval as u32 - 1,
            (_, _) => return None,
        };
        Some(1 << exponent)
    }
}

/// Equation 3: how long a packet of `bytes` bytes of payload occupies the bus.
#[must_use]
pub const fn packet_time(
    speed: Speed,
    coding: Coding,
    transfer: Transfer,
    direction: Direction,
    bytes: u32,
) -> Picos {
    let bytes = bytes as u64;
    let isochronous = matches!(transfer, Transfer::Isochronous);
    let input = matches!(direction, Direction::In);
    let stuffed = (19 + 56 * bytes) / 6;
    Picos(match speed {
        Speed::Super => {
            let bit = if matches!(coding, Coding::Ignored) { 200 } else { 250 };
            let overhead = if isochronous { 48 * 8 } else { 84 * 8 };
            5_000 + bit * (overhead + (19 + 48 * bytes) / 6)
        }
        Speed::High => {
            let overhead = if isochronous { 38 * 8 } else { 55 * 8 };
            5_000 + (6_250 * (overhead + stuffed)).div_ceil(3)
        }
        Speed::Full => {
            let overhead = match (isochronous, input) {
                (false, _) => 9_107_000,
                (true, true) => 7_268_000,
                (true, false) => 6_265_000,
            };
            1_000_000 + overhead + 83_540 * stuffed
        }
        Speed::Low => {
            let (overhead, bit) = if input { (64_060_000, 676_670) } else { (64_107_000, 667_000) };
            1_000_000 + 2 * 333_000 + overhead + bit * stuffed
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn super_speed(transfer: Transfer, coding: Coding, bytes: u32) -> u64 {
        packet_time(Speed::Super, coding, transfer, Direction::In, bytes).0
    }

    #[test]
    fn packets_of_table_2() {
        assert_eq!(super_speed(Transfer::Bulk, Coding::Ignored, 1024), 1_778_400);
        assert_eq!(super_speed(Transfer::Isochronous, Coding::Ignored, 1024), 1_720_800);
    }

    #[test]
    fn a_coded_microframe_has_room_for_62500_bytes() {
        let without = super_speed(Transfer::Bulk, Coding::EightTen, 0);
        let with = super_speed(Transfer::Bulk, Coding::EightTen, 62_500);
        assert_eq!(with - without, Speed::Super.slot().0);
    }

    #[test]
    fn usb_2_packets_are_those_of_the_specification() {
        // 55·8·2.0833 + 5: the 921.7 ns of the bridging paper's equation 3.
        let high = |transfer, bytes| {
            packet_time(Speed::High, Coding::Ignored, transfer, Direction::In, bytes).0
        };
        assert_eq!(high(Transfer::Bulk, 0) - 3 * 6_250 / 3, 921_667);
        assert_eq!(high(Transfer::Bulk, 512), 5_000 + (6_250u64 * (440 + 4_781)).div_ceil(3));
        assert_eq!(high(Transfer::Isochronous, 1024), 5_000 + 6_250 * (304 + 9_560) / 3);
        let full = packet_time(Speed::Full, Coding::Ignored, Transfer::Bulk, Direction::Out, 64);
        assert_eq!(full.0, 9_107_000 + 1_000_000 + 83_540 * 600);
        let low = |direction| {
            packet_time(Speed::Low, Coding::Ignored, Transfer::Interrupt, direction, 8).0
        };
        assert_eq!(low(Direction::In), 64_060_000 + 666_000 + 1_000_000 + 676_670 * 77);
        assert_eq!(low(Direction::Out), 64_107_000 + 666_000 + 1_000_000 + 667_000 * 77);
    }

    #[test]
    fn intervals_become_powers_of_two() {
        assert_eq!(Speed::Super.period(Transfer::Isochronous, 1), Some(1));
        assert_eq!(Speed::High.period(Transfer::Interrupt, 16), Some(32_768));
        assert_eq!(Speed::Full.period(Transfer::Interrupt, 255), Some(128));
        assert_eq!(Speed::Low.period(Transfer::Interrupt, 10), Some(8));
        assert_eq!(Speed::Full.period(Transfer::Isochronous, 0), None);
        assert_eq!(Speed::High.period(Transfer::Isochronous, 17), None);
        assert_eq!(Speed::High.period(Transfer::Bulk, 1), None);
    }
}
