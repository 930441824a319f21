//! A client measures its pipe, message by message, until it is time for a report.

use super::{
    Measurement, NO_DISTANCE, PARTS, PipeDelays, PipeReport, REPORT, Reported, SIZES, Words,
    size_of_delay,
};
use crate::clock::Delay;
use diapason_abi::Nanos;

/// One message, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadMessage {
    /// The message's time by the clock of the device.
    pub time: Nanos,
    /// The time at which the server had it, or knew that it was through.
    pub taken: Nanos,
    /// The time at which its reader had it.
    pub read: Nanos,
    /// The message's delay from the device to the server.
    pub moved: Delay,
    /// The message was outside of its contract.
    pub outside: bool,
    /// The device had lost some before it.
    pub lost_before: bool,
}

/// The measurements of one pipe.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    report: PipeReport,
    /// The times the device said that it had lost something, and what an application found missing.
    overruns: u32,
    missing: u32,
    spread: [u32; SIZES],
    /// Parts of the spread that have changed, one bit each.
    changed: u8,
    /// The time of the next report; zero before the first look.
    due: Nanos,
}

const _: () = assert!(PARTS <= u8::BITS as usize);

impl Gauge {
    /// Returns the gauge of this channel before its first message.
    #[must_use]
    pub fn new(to_device: bool, channel: u8) -> Gauge {
        let distance = NO_DISTANCE;
        Gauge {
            report: PipeReport { to_device, channel, distance, ..PipeReport::default() },
            overruns: 0,
            missing: 0,
            spread: [0; SIZES],
            changed: 0,
            due: Nanos::ZERO,
        }
    }

    /// Counts a message from the device that was read.
    pub fn read(&mut self, passed: &ReadMessage) {
        let reading = passed.read - passed.taken;
        let moving = passed.moved.beyond;
        self.report.messages += 1;
        self.report.outside = self.report.outside.saturating_add(passed.outside.into());
        self.overruns = self.overruns.saturating_add(passed.lost_before.into());
        let whole = moving + reading;
        self.note(moving, reading, passed.moved.inexact);
        self.report.whole = self.report.whole.max(whole);
        self.count(whole, 1);
        self.compare(passed.taken, passed.time);
    }

    /// Counts messages to the device that were reported as through, with their longest times: until
    /// the server took one, until it was through, and back, and of all this for one message.
    pub fn through(&mut self, messages: u32, times: [Nanos; 3], whole: Nanos, inexact: Nanos) {
        let [taking, moving, back] = times;
        self.report.messages += u64::from(messages);
        self.report.taking = self.report.taking.max(taking);
        self.note(moving, back, inexact);
        self.report.whole = self.report.whole.max(whole);
        self.count(whole, messages);
    }

    /// Counts messages to the device that were outside of their contract.
    pub fn exceeded(&mut self, messages: u32) {
        self.report.outside = self.report.outside.saturating_add(messages);
    }

    /// Compares the clocks of a message: when the server knew of it, and when it was by the
    /// device's.
    pub fn compare(&mut self, taken: Nanos, time: Nanos) {
        let (lowest, distance) = (self.report.distance, taken.0.wrapping_sub(time.0));
        let is_lower = distance.wrapping_sub(lowest).cast_signed() < 0;
        if lowest == NO_DISTANCE || is_lower {
            self.report.distance = distance;
        }
    }

    /// Counts messages that are missing by their contents. The report has the larger of this and
    /// the device's own count.
    pub fn missed(&mut self, messages: u64) {
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        self.missing = self.missing.saturating_add(messages);
    }

    /// Notes the messages that are under way, or wait.
    pub fn fill(&mut self, messages: u64) {
        let messages = u32::try_from(messages).unwrap_or(u32::MAX);
        self.report.peak = self.report.peak.max(messages);
    }

    /// Returns the time of the next report.
    pub fn due(&mut self, now: Nanos) -> Nanos {
        if self.due == Nanos::ZERO {
            self.due = now + REPORT;
        }
        self.due
    }

    /// Reports if that is due. `lost` messages found no room.
    pub fn look(&mut self, now: Nanos, lost: u64, say: &mut dyn FnMut(&Words)) {
        if now >= self.due(now) {
            let late = now - self.due;
            self.due = if late < REPORT { self.due + REPORT } else { now + REPORT };
            self.say(now, lost, say);
        }
    }

    /// Reports, whether that is due or not.
    pub fn say(&mut self, now: Nanos, lost: u64, say: &mut dyn FnMut(&Words)) {
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        let lost = lost.saturating_add(self.missing.max(self.overruns));
        let report = PipeReport { lost, ..self.report };
        say(&Reported { at: now, said: Measurement::Pipe(report) }.words());
        let PipeReport { to_device, channel, .. } = report;
        for part in 0..PARTS as u8 {
            if self.changed & 1 << part != 0 {
                let delays = PipeDelays::part_of(to_device, channel, part, &self.spread);
                say(&Reported { at: now, said: Measurement::Delays(delays) }.words());
            }
        }
        self.changed = 0;
        let PipeReport { messages, outside, peak, .. } = report;
        let distance = NO_DISTANCE;
        let next = PipeReport { to_device, channel, distance, ..PipeReport::default() };
        self.report = PipeReport { messages, outside, peak, ..next };
    }

    fn note(&mut self, moving: Nanos, reading: Nanos, inexact: Nanos) {
        let inexact = u32::try_from(inexact.0).unwrap_or(u32::MAX);
        let report = &mut self.report;
        report.moving = report.moving.max(moving);
        report.reading = report.reading.max(reading);
        report.inexact = report.inexact.max(inexact);
    }

    fn count(&mut self, delay: Nanos, messages: u32) {
        let size = size_of_delay(delay);
        if let Some(count) = self.spread.get_mut(size) {
            *count = count.saturating_add(messages);
            self.changed |= 1 << PipeDelays::part_with(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(at: u64, moved: u64, read: u64) -> ReadMessage {
        let beyond = Nanos(moved);
        let moved = Delay { beyond, inexact: Nanos(3) };
        let (taken, time) = (Nanos(at + beyond.0), Nanos(at));
        ReadMessage { time, taken, read: taken + Nanos(read), moved, ..ReadMessage::default() }
    }

    fn reports(words: &[Words]) -> Vec<PipeReport> {
        let of = |words: &Words| match Reported::of(words).unwrap().said {
            Measurement::Pipe(report) => Some(report),
            _ => None,
        };
        words.iter().filter_map(of).collect()
    }

    #[test]
    fn a_reader_that_never_rests_reports_too() {
        let (mut gauge, mut said) = (Gauge::new(false, 3), Vec::new());
        for at in (1..=5_000).map(|at| at * 1_000_000) {
            gauge.read(&passed(at, 10, 5));
            gauge.look(Nanos(at + 15), 0, &mut |words| said.push(*words));
        }
        let reports = reports(&said);
        assert_eq!(
            reports.iter().map(|it| it.messages).collect::<Vec<_>>(),
            [1001, 2001, 3001, 4001]
        );
        assert!(reports.iter().all(|it| it.whole == Nanos(15) && it.distance == 10));
        assert!(reports.iter().all(|it| it.inexact == 3 && it.channel == 3));
    }

    /// A device's clock is behind or ahead by no more than the distance of the message that took
    /// least: all others were delayed, too.
    #[test]
    fn clocks_are_compared_by_the_message_that_took_least() {
        let (mut gauge, mut said) = (Gauge::new(false, 3), Vec::new());
        for moved in [40, 10, 70] {
            gauge.read(&passed(1_000, moved, 5));
        }
        gauge.say(Nanos(2_000), 0, &mut |words| said.push(*words));
        assert_eq!(reports(&said)[0].distance, 10);
    }

    #[test]
    fn silence_is_reported_as_such() {
        let (mut gauge, mut said) = (Gauge::new(false, 3), Vec::new());
        let mut now = Nanos(7);
        for _ in 0..4 {
            gauge.look(now, 0, &mut |words| said.push(*words));
            now = gauge.due(now);
        }
        let reports = reports(&said);
        assert_eq!(reports.len(), 3);
        assert!(reports.iter().all(|it| it.messages == 0 && it.distance == NO_DISTANCE));
    }

    #[test]
    fn delays_add_up_to_the_messages() {
        let (mut gauge, mut said) = (Gauge::new(false, 3), Vec::new());
        for delay in 0..3_000u64 {
            gauge.read(&passed(1, delay * 1_000, delay * 100));
            if delay % 700 == 0 {
                gauge.say(Nanos(delay), 0, &mut |words| said.push(*words));
            }
        }
        gauge.say(Nanos(9), 4, &mut |words| said.push(*words));
        let mut all = [0; SIZES];
        for words in &said {
            if let Measurement::Delays(delays) = Reported::of(words).unwrap().said {
                let sizes = all.iter_mut().skip(delays.first());
                sizes.zip(delays.counts).for_each(|(size, count)| *size = count);
            }
        }
        assert_eq!(all.iter().sum::<u32>(), 3_000);
        assert_eq!(reports(&said).last().unwrap().lost, 4);
    }

    #[test]
    fn the_larger_of_two_ways_to_count_what_is_missing() {
        let (mut gauge, mut said) = (Gauge::new(false, 0), Vec::new());
        gauge.read(&ReadMessage { lost_before: true, ..passed(1, 1, 1) });
        gauge.say(Nanos(1), 2, &mut |words| said.push(*words));
        gauge.missed(5);
        gauge.say(Nanos(2), 2, &mut |words| said.push(*words));
        assert_eq!(reports(&said).iter().map(|it| it.lost).collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn a_pipe_to_a_device_has_four_times() {
        let (mut gauge, mut said) = (Gauge::new(true, 1), Vec::new());
        gauge.fill(9);
        gauge.through(3, [Nanos(1), Nanos(20), Nanos(4)], Nanos(24), Nanos(2));
        gauge.through(1, [Nanos(2), Nanos(10), Nanos(5)], Nanos(15), Nanos(1));
        gauge.say(Nanos(1), 0, &mut |words| said.push(*words));
        let report = reports(&said)[0];
        assert_eq!((report.messages, report.peak, report.inexact), (4, 9, 2));
        let times = [report.taking, report.moving, report.reading, report.whole].map(|time| time.0);
        assert_eq!((times, report.to_device), ([2, 20, 5, 24], true));
    }
}
