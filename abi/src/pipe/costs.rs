//! The costs of a message until it is in a buffer. The server of tuned pipes receives the numbers
//! that the plan uses, so that both compute the same bill.

use crate::Nanos;

/// The setting with these costs.
pub const COSTS: &str = "costs";

/// Longest times, and what the bottom half runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverCosts {
    /// Longest time of a transfer.
    pub transfer: Nanos,
    pub transfer_least: Nanos,
    /// Least distance of two interrupts.
    pub gap: Nanos,
    /// Longest time from an interrupt until its bottom half is told.
    pub top_half: Nanos,
    /// The bottom half's cost of each wake-up, with the wait for a lock.
    pub bottom_half: Nanos,
    /// The share of its I/O VCPU, in millionths.
    pub share: u32,
    /// T of the most urgent Main VCPU that this serves.
    pub period: Nanos,
    /// A reader's cost of each wake-up.
    pub wake: Nanos,
}

const WORDS: usize = 8;

impl DriverCosts {
    /// Returns the costs as the words of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let DriverCosts { transfer, transfer_least, gap, top_half, .. } = *self;
        let DriverCosts { bottom_half, share, period, wake, .. } = *self;
        let way = [transfer, transfer_least, gap, top_half, bottom_half].map(|time| time.0);
        let [a, b, c, d, e] = way;
        [a, b, c, d, e, share.into(), period.0, wake.0]
    }

    /// Out of a setting; `None` if that is none.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<DriverCosts> {
        let words: &[u64; WORDS] = words.try_into().ok()?;
        let [transfer, transfer_least, gap, top_half, bottom_half, share, period, wake] = *words;
        Some(DriverCosts {
            transfer: Nanos(transfer),
            transfer_least: Nanos(transfer_least),
            gap: Nanos(gap),
            top_half: Nanos(top_half),
            bottom_half: Nanos(bottom_half),
            share: u32::try_from(share).ok()?,
            period: Nanos(period),
            wake: Nanos(wake),
        })
    }
}

/// At most so many messages come at once from a channel that is written: its node has two buffers,
/// one message may be on the bus, and one may be a receipt.
pub const AT_ONCE: u64 = 4;
/// A turn of the node's loop that is under way, a receipt, and a request to wait that comes too
/// late each cost a turn at most before the first message.
pub const BEFORE: u64 = 3;

/// The setting with the costs of what goes to the device.
pub const OUTPUT_COSTS: &str = "output-costs";

/// The costs of a message on its way to the device, and the other traffic on that way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputCosts {
    /// Longest time of a transfer.
    pub transfer: Nanos,
    /// The share of the sending thread's I/O VCPU, in millionths.
    pub share: u32,
    /// T of the most urgent Main VCPU that this serves.
    pub period: Nanos,
    /// Shortest and longest time that a node takes for each message.
    pub turn: (Nanos, Nanos),
    /// Messages of one channel that the device holds.
    pub holds: u64,
    /// Channels that may be written, one bit each, and those that pipes of the description write.
    pub channels: u8,
    pub described: u8,
}

const OUTPUT_WORDS: usize = 8;

impl OutputCosts {
    /// Returns the costs as the words of a setting.
    #[must_use]
    pub fn words(&self) -> [u64; OUTPUT_WORDS] {
        let OutputCosts { transfer, share, period, turn, holds, channels, described } = *self;
        let (least, most) = turn;
        let bits = [channels, described].map(u64::from);
        [transfer.0, share.into(), period.0, least.0, most.0, holds, bits[0], bits[1]]
    }

    /// Out of a setting; `None` if that is none.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<OutputCosts> {
        let words: &[u64; OUTPUT_WORDS] = words.try_into().ok()?;
        let [transfer, share, period, least, most, holds, channels, described] = *words;
        Some(OutputCosts {
            transfer: Nanos(transfer),
            share: u32::try_from(share).ok()?,
            period: Nanos(period),
            turn: (Nanos(least), Nanos(most)),
            holds,
            channels: u8::try_from(channels).ok()?,
            described: u8::try_from(described).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_the_way_out_is_heard() {
        let words = [1, 2, 3, 4, 5, 6, 7, 8];
        let costs = OutputCosts::of(&words).unwrap();
        assert_eq!((costs.words(), costs.turn), (words, (Nanos(4), Nanos(5))));
        assert_eq!(OutputCosts::of(&words[1..]), None);
        assert_eq!(OutputCosts::of(&[1, 2, 3, 4, 5, 6, 256, 8]), None);
    }

    #[test]
    fn what_is_told_is_heard() {
        let words = [1, 2, 3, 4, 5, 250_000, 7, 8];
        let costs = DriverCosts::of(&words).unwrap();
        assert_eq!((costs.words(), costs.gap, costs.share), (words, Nanos(3), 250_000));
        assert_eq!(DriverCosts::of(&words[1..]), None);
        assert_eq!(DriverCosts::of(&[1, 2, 3, 4, 5, 1 << 32, 7, 8]), None);
    }
}
