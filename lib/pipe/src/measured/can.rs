//! Reports on messages that a CAN controller with message buffers sends and hears.

use super::{Measurement, REPORT, Reported, Values, Words};
use diapason_abi::Nanos;

/// How a message does. Counts are since the start, times the longest since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CanReport {
    /// The message's number among all messages of the description.
    pub number: u16,
    /// Messages that the driver took.
    pub taken: u64,
    /// Those that are through.
    pub sent: u64,
    /// Those that were through after their deadline.
    pub late: u64,
    /// Those that a newer one replaced before they were through.
    pub replaced: u64,
    /// Those that came before their period was over, or are none of their program.
    pub outside: u64,
    /// From when their program had it until it was in the queue of the controller.
    pub jitter: Nanos,
    /// From when their program had it until it was through.
    pub response: Nanos,
    /// The counts of the whole controller.
    pub controller: ControllerCounts,
}

/// The counts of a controller that measure what is assumed of it and of its bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControllerCounts {
    /// Times that its driver was too late to load the next message.
    pub dry: u16,
    /// High-speed messages under MTS that were lost because the driver did not know the time any
    /// more.
    pub untimed: u16,
    /// Times that its driver looked and there had been errors on the bus.
    pub errors: u16,
    /// Times that the controller was off its bus: bus-off, or it had lost its set-up.
    pub off: u16,
}

impl ControllerCounts {
    const fn packed(self) -> u64 {
        let early = self.dry as u64 | (self.untimed as u64) << 16;
        early | (self.errors as u64) << 32 | (self.off as u64) << 48
    }

    const fn unpacked(word: u64) -> ControllerCounts {
        let (dry, untimed) = (word as u16, (word >> 16) as u16);
        let (errors, off) = ((word >> 32) as u16, (word >> 48) as u16);
        ControllerCounts { dry, untimed, errors, off }
    }
}

impl CanReport {
    pub(super) const fn values(&self) -> Values {
        let CanReport { taken, sent, late, replaced, outside, jitter, response, .. } = *self;
        [taken, sent, late, replaced, outside, jitter.0, response.0, self.controller.packed()]
    }

    pub(super) const fn of(number: u16, values: Values) -> CanReport {
        let [taken, sent, late, replaced, outside, jitter, response, controller] = values;
        let (jitter, response) = (Nanos(jitter), Nanos(response));
        let controller = ControllerCounts::unpacked(controller);
        CanReport { number, taken, sent, late, replaced, outside, jitter, response, controller }
    }
}

/// How a message of another node does: the driver that hears it reports, and so does the program
/// that reads it. Counts are since the start, times the longest since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeardReport {
    /// The message's number among all messages of the description.
    pub number: u16,
    /// Messages that the driver heard, or that the program took.
    pub heard: u64,
    /// Those that were lost, at least, because the driver did not read them in time.
    pub missed: u64,
    /// Those that found no room in the memory of the program.
    pub full: u64,
    /// Those that came before their period was over, or had too many bytes.
    pub outside: u64,
    /// From the end of the frame until the driver had put it into the memory of the program, or
    /// until the program took it there.
    pub longest: Nanos,
    /// The counts of the whole controller, if the driver reports.
    pub controller: ControllerCounts,
}

impl HeardReport {
    pub(super) const fn values(&self) -> Values {
        let HeardReport { heard, missed, full, outside, longest, controller, .. } = *self;
        [heard, missed, full, outside, longest.0, controller.packed(), 0, 0]
    }

    pub(super) const fn of(number: u16, values: Values) -> HeardReport {
        let [heard, missed, full, outside, longest, controller, ..] = values;
        let (longest, controller) = (Nanos(longest), ControllerCounts::unpacked(controller));
        HeardReport { number, heard, missed, full, outside, longest, controller }
    }

    /// Reports, and forgets the longest time.
    pub fn say(&mut self, now: Nanos, say: &mut dyn FnMut(&Words)) {
        say(&Reported { at: now, said: Measurement::Heard(*self) }.words());
        self.longest = Nanos::ZERO;
    }

    /// Notes a message that took so long.
    pub fn came(&mut self, took: Nanos) {
        self.heard += 1;
        self.longest = self.longest.max(took);
    }
}

/// The measurements of one message.
#[derive(Clone, Copy, Debug)]
pub struct CanGauge {
    report: CanReport,
    deadline: Nanos,
}

impl CanGauge {
    /// Returns the gauge of a message that has to be through within `deadline`, or at no time if
    /// that is zero.
    #[must_use]
    pub const fn new(number: u16, deadline: Nanos) -> CanGauge {
        let report = CanReport {
            number,
            taken: 0,
            sent: 0,
            late: 0,
            replaced: 0,
            outside: 0,
            jitter: Nanos::ZERO,
            response: Nanos::ZERO,
            controller: ControllerCounts::unpacked(0),
        };
        CanGauge { report, deadline }
    }

    /// Notes a message that was in the queue of the controller so long after its program had it.
    pub fn took(&mut self, jitter: Nanos) {
        self.report.taken += 1;
        self.report.jitter = self.report.jitter.max(jitter);
    }

    /// Notes a message that was through so long after its program had it.
    pub fn sent(&mut self, response: Nanos) {
        self.report.sent += 1;
        self.report.response = self.report.response.max(response);
        let is_late = self.deadline > Nanos::ZERO && response > self.deadline;
        self.report.late += u64::from(is_late);
    }

    /// Notes a message that another replaced.
    pub fn replaced(&mut self) {
        self.report.replaced += 1;
    }

    /// Notes a message that should not have come.
    pub fn outside(&mut self) {
        self.report.outside += 1;
    }

    /// Reports, with the counts of the controller.
    pub fn say(&mut self, now: Nanos, controller: ControllerCounts, say: &mut dyn FnMut(&Words)) {
        self.report.controller = controller;
        say(&Reported { at: now, said: Measurement::Can(self.report) }.words());
        (self.report.jitter, self.report.response) = (Nanos::ZERO, Nanos::ZERO);
    }
}

/// Returns when the report after that of `due` is due.
#[must_use]
pub fn next_report(due: Nanos, now: Nanos) -> Nanos {
    if now - due < REPORT { due + REPORT } else { now + REPORT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_reports_the_longest_and_forgets_it() {
        let mut gauge = CanGauge::new(0x301, Nanos(100));
        gauge.took(Nanos(3));
        gauge.took(Nanos(9));
        gauge.sent(Nanos(100));
        gauge.sent(Nanos(101));
        gauge.replaced();
        let mut said = Vec::new();
        let mut say = |words: &Words| said.push(Reported::of(words).unwrap());
        let controller = ControllerCounts { dry: u16::MAX, untimed: 7, errors: 2, off: u16::MAX };
        gauge.say(Nanos(7), controller, &mut say);
        gauge.say(Nanos(8), controller, &mut say);
        let report = CanReport {
            number: 0x301,
            taken: 2,
            sent: 2,
            late: 1,
            replaced: 1,
            outside: 0,
            jitter: Nanos(9),
            response: Nanos(101),
            controller,
        };
        assert_eq!(said[0], Reported { at: Nanos(7), said: Measurement::Can(report) });
        let quiet = CanReport { jitter: Nanos::ZERO, response: Nanos::ZERO, ..report };
        assert_eq!(said[1].said, Measurement::Can(quiet));
    }
}
