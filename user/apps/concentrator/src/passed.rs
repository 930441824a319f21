//! The message that the threads of a chain pass on: its content, when it came, and when it passed
//! each of them.

use diapason_abi::MESSAGE_BYTES;
use diapason_pipe::measured::HOPS;
use diapason_rt::Nanos;

/// A message on its way.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Passed {
    /// Its number among all that came, from 1 on.
    pub number: u64,
    /// When it arrived at the device, later by the fastest way to the server: the device's clock
    /// began at a time nobody here knows.
    pub arrived: Nanos,
    /// The number of the command it became, from 1 on; 0 before that.
    pub command: u64,
    /// When it passed each thread.
    pub at: [Nanos; HOPS],
}

/// Words of a message.
pub const WORDS: usize = MESSAGE_BYTES / 8;

impl Passed {
    /// Encodes the message as words.
    #[must_use]
    pub fn words(&self) -> [u64; WORDS] {
        let [a, b, c, d] = self.at;
        [self.number, self.arrived.0, self.command, 0, a.0, b.0, c.0, d.0]
    }

    /// Decodes the message from words.
    #[must_use]
    pub fn of([number, arrived, command, _, a, b, c, d]: [u64; WORDS]) -> Passed {
        Passed { number, arrived: Nanos(arrived), command, at: [a, b, c, d].map(Nanos) }
    }

    /// Encodes the message as bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let (places, _) = bytes.as_chunks_mut::<8>();
        places.iter_mut().zip(self.words()).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes
    }

    /// Decodes the message from bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Passed {
        let (words, _) = bytes.as_chunks::<8>();
        let mut all = [0; WORDS];
        all.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        Passed::of(all)
    }
}
