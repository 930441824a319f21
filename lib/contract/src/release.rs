//! Datagrams that are released in step with the gates of their adapter: the setting of the program
//! that sends them and of the server.

/// The setting of `netd` and of programs with sockets whose flows have an `offset`: the words of
/// [`ReleaseTerms`].
pub const RELEASE_SETTING: &str = "release";

/// The times at which the datagrams of a socket are released, by the time of the gates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReleaseTerms {
    /// The number of the socket on its host.
    pub socket: u8,
    /// Whether the gates go by a common time, and not by the host's clock.
    pub is_common: bool,
    /// The first release after time zero. Others follow in whole periods.
    pub first_ns: u64,
    pub period_ns: u64,
    /// A datagram is in its queue no earlier than so long before its release.
    pub early_ns: u64,
    /// It is in its queue no later than so long after its release.
    pub late_ns: u64,
}

/// The bit of the first word that says that gates go by a common time.
const COMMON: u64 = 1 << 8;
/// Words of a socket in the setting.
const WORDS: usize = 5;

impl ReleaseTerms {
    /// Returns the numbers of the setting.
    #[must_use]
    pub const fn words(&self) -> [u64; WORDS] {
        let of = self.socket as u64 | if self.is_common { COMMON } else { 0 };
        [of, self.first_ns, self.period_ns, self.early_ns, self.late_ns]
    }

    /// Reads all sockets in the numbers of a setting.
    pub fn all(words: &[u64]) -> impl Iterator<Item = ReleaseTerms> + '_ {
        let of = |[of, first_ns, period_ns, early_ns, late_ns]: &[u64; WORDS]| ReleaseTerms {
            socket: *of as u8,
            is_common: of & COMMON != 0,
            first_ns: *first_ns,
            period_ns: *period_ns,
            early_ns: *early_ns,
            late_ns: *late_ns,
        };
        words.as_chunks().0.iter().map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_survive_their_words() {
        let one = ReleaseTerms {
            socket: 15,
            is_common: true,
            first_ns: 1,
            period_ns: 6_000_000,
            early_ns: 2,
            late_ns: u64::MAX,
        };
        let other = ReleaseTerms { socket: 0, is_common: false, ..one };
        let words = [one.words(), other.words()].concat();
        assert!(ReleaseTerms::all(&words).eq([one, other]));
        assert_eq!(ReleaseTerms::all(&words[..4]).count(), 0);
    }
}
