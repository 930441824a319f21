//! The reports of readers of state messages. A reader reports only what contradicts the plan.

use super::{Outcome, RaisedAlarm, entry};
use crate::names::Names;
use diapason_pipe::measured::StateReport;
use diapason_system::{StateSpec, System};

/// The last report of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateRow {
    /// The place of the reader in the description.
    pub process: u64,
    pub last: StateReport,
}

/// Takes in what the process in place `process` reports.
pub(super) fn note(rows: &mut Vec<StateRow>, process: u64, report: &StateReport) {
    let last = *report;
    let is = |row: &StateRow| (row.process, row.last.number) == (process, report.number);
    entry(rows, is, || StateRow { process, last }).last = last;
}

/// The promise about a state message: no read meets as many writes as it has slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatePromise {
    name: String,
    number: u8,
    slots: u64,
    readers: Vec<u64>,
}

impl StatePromise {
    /// Returns the promises about the state messages of a system.
    #[must_use]
    pub fn of(system: &System) -> Vec<StatePromise> {
        let promise = |state: &StateSpec| StatePromise {
            name: state.name.clone(),
            number: state.number,
            slots: state.slots,
            readers: state.readers.iter().filter_map(|it| it.process).map(u64::from).collect(),
        };
        system.states.iter().map(promise).collect()
    }

    /// Returns an alarm for each reader that the writer has overtaken.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let own =
            |row: &&StateRow| row.last.number == self.number && self.readers.contains(&row.process);
        let alarm = |row: &StateRow| {
            let StateReport { overtaken, writes, .. } = row.last;
            let (reader, most) = (names.process(row.process), self.slots.saturating_sub(1));
            let text = format!(
                "{writes} writes touched a read of state message {} by {reader}; {most} may \
                 ({overtaken} reads were withheld)",
                self.name
            );
            RaisedAlarm::above("state-overtaken", &self.name, [writes, most], text)
        };
        outcome.states.iter().filter(own).filter_map(alarm).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_reader_that_was_overtaken_is_an_alarm() {
        let readers = vec![1];
        let promise = StatePromise { name: "speed".into(), number: 2, slots: 4, readers };
        let mut outcome = sample::outcome();
        let alarms = |outcome: &Outcome| promise.alarms(outcome, &sample::names());
        let report = StateReport { number: 2, overtaken: 1, writes: 3 };
        for (process, report) in [
            (1, StateReport { number: 1, writes: 9, ..report }),
            (0, StateReport { writes: 9, ..report }),
            (1, report),
        ] {
            note(&mut outcome.states, process, &report);
            assert_eq!(alarms(&outcome), [], "another message, no reader, as many as may");
        }
        note(&mut outcome.states, 1, &StateReport { overtaken: 2, writes: 4, ..report });
        let [alarm] = &alarms(&outcome)[..] else { panic!("one reader") };
        assert_eq!((alarm.name, alarm.observed, alarm.assumed), ("state-overtaken", 4, 3));
        assert!(alarm.text.contains("(2 reads were withheld)"), "{alarm}");
    }
}
