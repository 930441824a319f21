//! Layout of the questions and answers of `mail-asker` and `mail-answerer`, and what the end of a
//! flow of them measures.

use crate::RoundTrips;
use diapason_abi::MESSAGE_BYTES;
use diapason_pipe::clock::DeviceClock;
use diapason_rt::Nanos;

/// Pairs of mailboxes: of questions, and of answers. An argument of a program is the number of its
/// pair. Two programs that ask may have one mailbox for questions.
const PAIRS: [[&str; 2]; 3] =
    [["questions", "answers"], ["orders", "receipts"], ["questions", "receipts"]];
/// The number of the pair whose program is the second one that asks by its mailbox.
pub const SECOND: u64 = 2;
/// Most programs that ask by one mailbox.
pub const CLIENTS: usize = 2;

/// Returns the mailboxes of the pair with this number: of questions, and of answers.
#[must_use]
pub fn pair(number: u64) -> [&'static str; 2] {
    PAIRS[number as usize % PAIRS.len()]
}

/// Returns the number of a program that asks, among those with its mailbox for questions.
#[must_use]
pub const fn client(pair: u64) -> u64 {
    (pair == SECOND) as u64
}

/// Most hosts that send to each other.
pub const PEERS: usize = 8;

/// Returns the mailbox to which the messages to the host with this number go.
#[must_use]
pub fn peer(host: u64) -> &'static str {
    const NAMES: [&str; PEERS] = ["to-0", "to-1", "to-2", "to-3", "to-4", "to-5", "to-6", "to-7"];
    NAMES[host as usize % PEERS]
}

/// Two clocks of hosts run apart by so many millionths at most.
const APART: u32 = 200;

/// A question or an answer.
#[derive(Clone, Copy)]
pub struct Letter {
    /// Its number, from 1.
    pub number: u64,
    /// When it was sent, by the clock of its sender.
    pub stamp: u64,
    /// When the question was sent, by the clock of the program that asks.
    pub asked: u64,
    /// The number of the program that asks.
    pub client: u64,
}

impl Letter {
    /// Returns the message of a mailbox.
    #[must_use]
    pub fn bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let words = [self.number, self.stamp, self.asked, self.client];
        let places = bytes.as_chunks_mut().0.iter_mut();
        places.zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes
    }

    /// Reads the message of a mailbox.
    #[must_use]
    pub fn of(bytes: &[u8; MESSAGE_BYTES]) -> Letter {
        let word = |at: usize| bytes.as_chunks().0.get(at).map_or(0, |it| u64::from_le_bytes(*it));
        Letter { number: word(0), stamp: word(1), asked: word(2), client: word(3) }
    }
}

/// The messages that came to the end of a flow. Their sender may have another clock: a message is
/// late by what it took more than the fastest.
pub struct Arrivals {
    clock: DeviceClock,
    last: u64,
    trips: RoundTrips,
}

impl Arrivals {
    /// Returns the end of a flow to which nothing has come. The flow is that of the sender with
    /// this number.
    #[must_use]
    pub fn new(source: u8) -> Arrivals {
        let trips = RoundTrips { source, ..RoundTrips::default() };
        Arrivals { clock: DeviceClock::new(APART), last: 0, trips }
    }

    /// Counts a message that came now, and those that are missing before it.
    pub fn took(&mut self, letter: &Letter, now: Nanos) {
        if letter.number <= self.last {
            // Its sender has begun again.
            self.clock.restart();
            self.last = 0;
        }
        self.trips.lost += letter.number.saturating_sub(self.last + 1);
        self.last = letter.number;
        self.trips.took(self.clock.measure(now, Nanos(letter.stamp)).beyond.0);
    }

    /// Returns how many came, and how many are missing.
    #[must_use]
    pub const fn counts(&self) -> (u64, u64) {
        (self.trips.came, self.trips.lost)
    }

    /// Tells how the flow did since the last time, as its end.
    pub fn report(&mut self, now: Nanos) {
        self.trips.report(now);
    }
}
