//! The reports of the ends of state messages. An end reports only what contradicts the plan.

use super::{Outcome, RaisedAlarm, entry};
use crate::names::Names;
use diapason_abi::Nanos;
use diapason_pipe::measured::StateReport;
use diapason_system::{StateSpec, System};

/// The last report of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateRow {
    /// The place of its process in the description.
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
    /// The shortest time between two writes that the slots are for.
    period: Nanos,
    /// The place of the writer, if it is on this core.
    writer: Option<u64>,
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
            period: Nanos(state.period_ns),
            writer: (0..)
                .zip(&system.processes)
                .find_map(|(place, process)| (process.name == state.writer).then_some(place)),
            readers: state.readers.iter().filter_map(|it| it.process).map(u64::from).collect(),
        };
        system.states.iter().map(promise).collect()
    }

    /// Returns the ends that never ran, as sentences. An end that runs reports only what
    /// contradicts the plan.
    pub(super) fn unmeasured(&self, outcome: &Outcome, names: &Names) -> Vec<String> {
        let started = |life: &Outcome, process: u64| {
            life.processes.iter().any(|row| row.process == process && row.starts > 0)
        };
        let ran = |process: u64| outcome.lives().any(|life| started(life, process));
        let ends = self.writer.iter().chain(&self.readers).filter(|it| !ran(**it));
        let sentence = |end: &u64| {
            format!("state message {} at {}: it never ran", self.name, names.process(*end))
        };
        ends.map(sentence).collect()
    }

    /// Returns an alarm for each reader that the writer has overtaken, and one if the writer writes
    /// too often.
    pub(super) fn alarms(&self, outcome: &Outcome, names: &Names) -> Vec<RaisedAlarm> {
        let here = || outcome.states.iter().filter(|row| row.last.number == self.number);
        let reads = |row: &&StateRow| self.readers.contains(&row.process);
        let writes = |row: &&StateRow| self.writer == Some(row.process) && row.last.early > 0;
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
        let too_often = |row: &StateRow| {
            let (writer, early) = (names.process(row.process), row.last.early);
            let text = format!(
                "{early} writes of state message {} by {writer} came sooner than one in {}",
                self.name, self.period
            );
            RaisedAlarm::above("state-contract", &self.name, [early, 0], text)
        };
        let overtaken = here().filter(reads).filter_map(alarm);
        overtaken.chain(here().filter(writes).filter_map(too_often)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn promise(readers: Vec<u64>) -> StatePromise {
        let (name, period) = ("speed".into(), Nanos::from_millis(5));
        StatePromise { name, number: 2, slots: 4, period, writer: Some(0), readers }
    }

    #[test]
    fn a_writer_that_writes_too_often_is_an_alarm() {
        let (promise, mut outcome) = (promise(vec![1]), sample::outcome());
        let report = StateReport { number: 2, early: 8, ..StateReport::default() };
        for (process, report) in [(0, StateReport { number: 1, ..report }), (1, report)] {
            note(&mut outcome.states, process, &report);
            let alarms = promise.alarms(&outcome, &sample::names());
            assert_eq!(alarms, [], "another message, and no writer");
        }
        note(&mut outcome.states, 0, &report);
        let alarms = promise.alarms(&outcome, &sample::names());
        let [alarm] = &alarms[..] else { panic!("one writer") };
        assert_eq!((alarm.name, alarm.observed, alarm.assumed), ("state-contract", 8, 0));
        assert!(alarm.text.ends_with("came sooner than one in 5.000 ms"), "{alarm}");
    }

    #[test]
    fn an_end_that_never_ran_is_not_measured() {
        let (promise, mut outcome) = (promise(vec![1]), sample::outcome());
        let names = sample::names();
        assert_eq!(promise.unmeasured(&outcome, &names), [""; 0]);
        outcome.processes[1].starts = 0;
        let reader = names.process(1);
        let expected = [format!("state message speed at {reader}: it never ran")];
        assert_eq!(promise.unmeasured(&outcome, &names), expected);
        outcome.processes.clear();
        assert_eq!(promise.unmeasured(&outcome, &names).len(), 2);
        // In an earlier life of the host both ran.
        let earlier = sample::outcome();
        outcome.earlier.push(earlier);
        assert_eq!(promise.unmeasured(&outcome, &names), [""; 0]);
    }

    #[test]
    fn a_reader_that_was_overtaken_is_an_alarm() {
        let readers = vec![1];
        let promise = promise(readers);
        let mut outcome = sample::outcome();
        let alarms = |outcome: &Outcome| promise.alarms(outcome, &sample::names());
        let report = StateReport { number: 2, overtaken: 1, writes: 3, early: 0 };
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
