//! The messages that the threads of a chain pass on, and the measurements at the chain's end.
//!
//! The kernel does not know which message a thread's output answers, so the message itself carries
//! its number, its arrival and its passages. The chain's last thread reports from them.

use super::{ChainReport, HOPS, Measurement, REPORT, Reported, Words};
use diapason_abi::{MESSAGE_BYTES, Nanos};

/// A message on its way through a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChainMessage {
    /// The message's number among all that came, from 1 on.
    pub number: u64,
    /// The message's arrival at the device, later by the fastest way to the server: the device's
    /// clock began at an unknown time.
    pub arrived: Nanos,
    /// The number of the output that it became, from 1 on; 0 before that.
    pub output: u64,
    /// The content, which no gauge reads: as much as a classic CAN frame has.
    pub content: u64,
    /// The times at which it passed each thread.
    pub at: [Nanos; HOPS],
}

/// Words of a message.
pub const MESSAGE_WORDS: usize = MESSAGE_BYTES / 8;

impl ChainMessage {
    /// Encodes the message as words, for a state message.
    #[must_use]
    pub fn words(&self) -> [u64; MESSAGE_WORDS] {
        let [a, b, c, d] = self.at;
        [self.number, self.arrived.0, self.output, self.content, a.0, b.0, c.0, d.0]
    }

    /// Decodes the message from words.
    #[must_use]
    pub fn of(words: [u64; MESSAGE_WORDS]) -> ChainMessage {
        let [number, arrived, output, content, a, b, c, d] = words;
        let at = [a, b, c, d].map(Nanos);
        ChainMessage { number, arrived: Nanos(arrived), output, content, at }
    }

    /// Encodes the message as bytes, for a mailbox.
    #[must_use]
    pub fn bytes(&self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        let (places, _) = bytes.as_chunks_mut::<8>();
        places.iter_mut().zip(self.words()).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes
    }

    /// Decodes the message from bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> ChainMessage {
        let (words, _) = bytes.as_chunks::<8>();
        let mut all = [0; MESSAGE_WORDS];
        all.iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_le_bytes(*word));
        ChainMessage::of(all)
    }
}

/// The measurements at the end of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainGauge {
    /// The number of the last message, and of its output.
    last: (u64, u64),
    report: ChainReport,
    /// The time of the next report.
    due: Nanos,
}

impl ChainGauge {
    /// Returns the gauge of a chain before its first message.
    #[must_use]
    pub fn new(now: Nanos) -> ChainGauge {
        ChainGauge { last: (0, 0), report: ChainReport::default(), due: now + REPORT }
    }

    /// Returns the number of the next output.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.last.1 + 1
    }

    /// Notes that a message has passed the chain's first `threads` threads.
    pub fn passed(&mut self, message: &ChainMessage, threads: usize) {
        let reached = self.report.reached.iter_mut();
        for (reached, at) in reached.zip(message.at).take(threads) {
            *reached = (*reached).max(at - message.arrived);
        }
    }

    /// Counts a message that is through. Gaps in the numbers of outputs were lost; further gaps in
    /// those of messages were replaced by newer ones.
    pub fn through(&mut self, message: &ChainMessage, now: Nanos) {
        let gap = |number: u64, last: u64| number.saturating_sub(last.saturating_add(1));
        let lost = gap(message.output, self.last.1);
        let missing = u32::try_from(lost).unwrap_or(u32::MAX);
        self.report.lost = self.report.lost.saturating_add(missing);
        if self.report.messages == 0 {
            self.report.before = missing;
        }
        let replaced = gap(message.number, self.last.0).saturating_sub(lost);
        self.report.replaced = self.report.replaced.saturating_add(replaced);
        self.report.messages += 1;
        self.last = (message.number, message.output);
        self.report.whole = self.report.whole.max(now - message.arrived);
    }

    /// Returns the time of the next report.
    #[must_use]
    pub const fn due(&self) -> Nanos {
        self.due
    }

    /// Reports if that is due.
    pub fn look(&mut self, now: Nanos, say: &mut dyn FnMut(&Words)) {
        if now < self.due {
            return;
        }
        self.due = now + REPORT;
        say(&Reported { at: now, said: Measurement::Chain(self.report) }.words());
        (self.report.whole, self.report.reached) = (Nanos::ZERO, [Nanos::ZERO; HOPS]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64, output: u64) -> ChainMessage {
        let at = [15, 20, 0, 0].map(Nanos);
        ChainMessage { number, arrived: Nanos(10), output, content: 7, at }
    }

    fn said(gauge: &mut ChainGauge, now: Nanos) -> Option<ChainReport> {
        let mut report = None;
        gauge.look(now, &mut |words| {
            let Some(Reported { said: Measurement::Chain(chain), .. }) = Reported::of(words) else {
                panic!("not the report of a chain");
            };
            report = Some(chain);
        });
        report
    }

    #[test]
    fn a_message_survives_both_encodings() {
        let first = message(1 << 40, 3);
        assert_eq!(ChainMessage::of(first.words()), first);
        assert_eq!(ChainMessage::from_bytes(&first.bytes()), first);
    }

    #[test]
    fn gaps_of_outputs_are_lost_and_further_ones_replaced() {
        let mut gauge = ChainGauge::new(Nanos::ZERO);
        for (number, output) in [(1, 1), (4, 2), (6, 4)] {
            gauge.through(&message(number, output), Nanos(30));
        }
        let report = said(&mut gauge, REPORT).unwrap();
        // Two were skipped before the second. Before the third one output is missing, and the one
        // message that is missing became it.
        assert_eq!((report.messages, report.lost, report.replaced), (3, 1, 2));
        assert_eq!(gauge.next(), 5);
    }

    #[test]
    fn losses_before_the_first_message_are_told_from_those_after_it() {
        let mut gauge = ChainGauge::new(Nanos::ZERO);
        for output in [901, 902, 905] {
            gauge.through(&message(output, output), Nanos(30));
        }
        let report = said(&mut gauge, REPORT).unwrap();
        assert_eq!((report.messages, report.lost, report.before), (3, 902, 900));
        gauge.through(&message(1 << 40, 1 << 40), Nanos(30));
        let report = said(&mut gauge, REPORT + REPORT).unwrap();
        assert_eq!((report.lost, report.before), (u32::MAX, 900));
    }

    #[test]
    fn the_longest_times_begin_anew_with_each_report() {
        let mut gauge = ChainGauge::new(Nanos::ZERO);
        gauge.passed(&message(1, 1), 2);
        gauge.through(&message(1, 1), Nanos(42));
        assert_eq!(said(&mut gauge, REPORT - Nanos(1)), None);
        let report = said(&mut gauge, REPORT).unwrap();
        assert_eq!((report.whole, report.reached), (Nanos(32), [5, 10, 0, 0].map(Nanos)));
        let report = said(&mut gauge, REPORT + REPORT).unwrap();
        assert_eq!((report.messages, report.whole), (1, Nanos::ZERO));
    }
}
