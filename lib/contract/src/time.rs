//! A common time that the Ethernet server keeps by gPTP: the setting that asks for it, and the work
//! of the server.

/// The setting of `netd` with the common time, as the words of [`GptpTerms`]. Without it the server
/// keeps none.
pub const TIME_SETTING: &str = "time";
/// The work of the thread that sends, for each turn of the common time.
pub const SEND_TIME: &str = "netd.send.time";
/// The least time between the beginnings of two turns, in ns. The thread that sends does no more
/// for the time than one turn in this time, even if a neighbour floods the wire.
pub const TURN_NS: u64 = 500_000;

/// The interval of Syncs, as a power of two in seconds.
pub const SYNC_LOG: i8 = -3;
/// The most frames of the common time that come from a neighbour: in a second in the long run, and
/// at once.
///
/// A neighbour that leads sends in a second eight Syncs and as many Follow_Ups, a request, both
/// parts of an answer and an Announce: 20. One more Announce follows after each change of the
/// leader, and before a change it was silent for longer than a second. Clocks that are off by
/// 1,000 ppm add less than one. Each of the six kinds is late by less than its own interval: the
/// terms say so of a Sync. So at most two of a kind come at once, and an Announce of a change.
pub const TIME_RATE: u64 = 24;
pub const TIME_BURST: u64 = 16;

/// Words of the terms, as `lib/gptp` makes them.
pub const TIME_BASE: usize = 12;

/// The common time that a server keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GptpTerms {
    /// The first priority of the node: the smallest leads, and a node with 255 never does.
    pub priority: u8,
    /// The rates of the adapter's clock and the host's differ by at most this.
    pub apart_ppm: u32,
    /// The words of the terms.
    pub base: [u64; TIME_BASE],
}

impl GptpTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub fn words(&self) -> [u64; 1 + TIME_BASE] {
        let mut words = [0; _];
        words[0] = (self.priority as u64) << 32 | self.apart_ppm as u64;
        words[1..].copy_from_slice(&self.base);
        words
    }

    /// Reads the numbers of the setting; `None` if there are none.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<GptpTerms> {
        let (first, base) = words.split_first()?;
        let base = *<&[u64; TIME_BASE]>::try_from(base).ok()?;
        Some(GptpTerms { priority: (first >> 32) as u8, apart_ppm: *first as u32, base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_survive_their_words() {
        let base = core::array::from_fn(|number| u64::MAX - number as u64);
        let terms = GptpTerms { priority: 255, apart_ppm: u32::MAX, base };
        assert_eq!(GptpTerms::of(&terms.words()), Some(terms));
        assert_eq!(GptpTerms::of(&[]), None);
        assert_eq!(GptpTerms::of(&terms.words()[1..]), None);
    }
}
