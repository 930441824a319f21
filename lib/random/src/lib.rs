//! Random numbers from a seed (SplitMix64): whatever was drawn can be drawn again, on any machine.

#![no_std]
#![forbid(unsafe_code)]

/// A sequence of numbers that depends on its seed only.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the sequence of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the sequence of the `index`-th case of a campaign: neighbours share nothing.
    #[must_use]
    pub const fn stream(seed: u64, index: u64) -> Random {
        let mut mixer = Random(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        Random(mixer.bits())
    }

    /// Returns the next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns one of `0..n`; 0 if `n` is 0. Slightly uneven for enormous `n`, which nobody here
    /// minds.
    pub const fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.bits() % n }
    }

    /// Returns one of `low..=high`; `low` if they are in the wrong order.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Returns one of `low..=high` of 32 bits; `low` if they are in the wrong order.
    pub const fn within(&mut self, low: u32, high: u32) -> u32 {
        self.between(low as u64, high as u64) as u32
    }

    /// True once in `n` times.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns a place in something of this length; 0 if it is empty.
    pub const fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns one of several.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator for seed 1234567.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], known);
    }

    #[test]
    fn ranges_are_reached_at_both_ends_and_never_left() {
        let mut random = Random::stream(1, 2);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[random.between(3, 7) as usize - 3] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!((random.below(0), random.between(9, 3), random.within(4, 4)), (0, 9, 4));
    }
}
