//! A small generator of numbers: the same seed gives the same workloads on every machine.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers depend on `seed` only.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The generator of the `index`-th workload of a campaign: neighbours share nothing.
    #[must_use]
    pub fn stream(seed: u64, index: u64) -> Random {
        let mut mixer = Random(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        Random(mixer.draw())
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high && high - low < u64::MAX);
        low + self.draw() % (high - low + 1)
    }
}
