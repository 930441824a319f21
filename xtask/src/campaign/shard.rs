//! A share of a campaign: the i-th of n, so that several processes or machines share the work.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The i-th of n shares, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// Everything is one share.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// Returns all shares of a campaign that is cut into `of`.
    pub fn all(of: u64) -> impl Iterator<Item = Shard> {
        (0..of).map(move |index| Shard { index, of })
    }

    /// Returns which share it is, from 0 on.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// Returns every n-th of `all`, from the i-th on.
    pub fn of<T>(self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let small = |number| usize::try_from(number).unwrap_or(usize::MAX);
        all.skip(small(self.index)).step_by(small(self.of))
    }

    /// Returns the share of a number. The shares add up to it.
    #[must_use]
    pub fn part(self, count: u64) -> u64 {
        count / self.of + u64::from(self.index < count % self.of)
    }

    /// Returns the sum of the shares of a number before this one.
    #[must_use]
    pub fn before(self, count: u64) -> u64 {
        count / self.of * self.index + self.index.min(count % self.of)
    }

    /// Returns its name as part of the name of a file.
    #[must_use]
    pub fn file_stem(self) -> String {
        format!("shard-{}-of-{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let shard = parts.map(|(index, of)| Shard { index, of });
        shard
            .filter(|shard| shard.index < shard.of)
            .ok_or_else(|| format!("`{text}` is no share: write I/N, I below N"))
    }
}

impl Display for Shard {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_reads_as_it_is_written() {
        let shard: Shard = "1/4".parse().unwrap();
        assert_eq!((shard.index(), shard.to_string()), (1, "1/4".into()));
        assert!(["4/4", "1", "a/b", "1/0", ""].into_iter().all(|it| it.parse::<Shard>().is_err()));
    }

    #[test]
    fn shares_are_everything_once() {
        for of in 1..9 {
            for count in 0..40 {
                let parts: u64 = Shard::all(of).map(|shard| shard.part(count)).sum();
                assert_eq!(parts, count, "{of}");
                let mut sum = 0;
                for shard in Shard::all(of) {
                    assert_eq!(shard.before(count), sum, "{shard} of {count}");
                    sum += shard.part(count);
                }
                let mut dealt: Vec<u64> =
                    Shard::all(of).flat_map(|shard| shard.of(0..count)).collect();
                dealt.sort_unstable();
                assert_eq!(dealt, (0..count).collect::<Vec<u64>>(), "{of}");
            }
        }
    }
}
