//! What the way of a message costs until it is in a buffer: the server of tuned pipes is told what
//! the plan computes with, so that both have the same bill.

use crate::Nanos;

/// The setting with these costs.
pub const COSTS: &str = "costs";

/// Longest times, and what the bottom half runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverCosts {
    /// Longest time of a transfer.
    pub transfer: Nanos,
    /// Shortest.
    pub transfer_least: Nanos,
    /// Least distance of two interrupts.
    pub gap: Nanos,
    /// Longest time from an interrupt until its bottom half is told.
    pub top_half: Nanos,
    /// Of the bottom half each time it is woken, with whatever it waits for a lock.
    pub bottom_half: Nanos,
    /// The share of its I/O VCPU, in millionths.
    pub share: u32,
    /// T of the most urgent Main VCPU that this serves.
    pub period: Nanos,
    /// Of a reader each time it is woken.
    pub wake: Nanos,
}

/// Words of it.
const WORDS: usize = 8;

impl DriverCosts {
    /// As a setting.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let words = [1, 2, 3, 4, 5, 250_000, 7, 8];
        let costs = DriverCosts::of(&words).unwrap();
        assert_eq!((costs.words(), costs.gap, costs.share), (words, Nanos(3), 250_000));
        assert_eq!(DriverCosts::of(&words[1..]), None);
        assert_eq!(DriverCosts::of(&[1, 2, 3, 4, 5, 1 << 32, 7, 8]), None);
    }
}
