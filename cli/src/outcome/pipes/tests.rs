//! Tests of alarms about pipes, on reports that were written by hand.

use super::super::{RunEnd, sample};
use super::*;
use crate::console::Line;

fn promise(way: PipeDirection) -> PipePromise {
    PipePromise {
        name: "engine".into(),
        way,
        reader: 3,
        channel: 0,
        bound_ns: 10,
        taken_ns: u64::MAX,
        through_ns: None,
        least_ns: 2,
        slots: 4,
        drift: 100,
        rate: 400,
        place: 0,
        is_far: false,
        patience_ns: Nanos::from_secs(2).0,
        is_stamped: true,
    }
}

fn ended(seconds: u64) -> Option<RunEnd> {
    let time_ns = Nanos::from_secs(seconds).0;
    Some(RunEnd { time_ns, ..RunEnd::default() })
}

/// Returns the run of so many seconds in which a reader said this.
fn said(seconds: u64, reports: impl Iterator<Item = PipeReport>) -> Outcome {
    let mut outcome = Outcome { end: ended(seconds), ..Outcome::default() };
    for (second, report) in (1..).zip(reports) {
        note(&mut outcome.pipes, 3, Nanos::from_secs(second), &report);
    }
    outcome
}

fn usual(messages: u64) -> PipeReport {
    PipeReport { messages, distance: NO_DISTANCE, ..PipeReport::default() }
}

fn rung(promise: &PipePromise, outcome: &Outcome, slack: u64) -> Vec<(&'static str, u64, u64)> {
    let alarms = promise.alarms(outcome, &Names::default(), slack);
    alarms.iter().map(|alarm| (alarm.name, alarm.observed, alarm.assumed)).collect()
}

#[test]
fn reports_add_up_to_a_row() {
    let mut rows = Vec::new();
    for (messages, whole) in [(0, 0), (40, 7), (140, 9), (239, 8)] {
        let report =
            PipeReport { peak: messages as u32 % 5, whole: Nanos(whole), ..usual(messages) };
        note(&mut rows, 2, Nanos(messages), &report);
    }
    note(&mut rows, 1, Nanos(1), &usual(1));
    let other_way = PipeReport { to_device: true, ..usual(1) };
    note(&mut rows, 2, Nanos(1), &other_way);
    assert_eq!(rows.len(), 3);
    let row = &rows[0];
    assert_eq!((row.reader, row.channel, row.messages, row.lost), (2, 0, 239, 0));
    assert_eq!((row.peak, row.whole_max_ns, row.between), (4, 9, Some((99, 100))));
}

#[test]
fn each_assumption_of_a_pipe_has_its_alarm() {
    let rings = |name: &'static str, most: u64, set: fn(&mut PipeReport, u64)| {
        let found = [most, most + 1].map(|seen| {
            let mut report = usual(9);
            set(&mut report, seen);
            rung(&promise(PipeDirection::FromDevice), &said(2, [report].into_iter()), 5)
        });
        assert_eq!(found, [vec![], vec![(name, most + 1, most)]]);
    };
    rings("pipe-contract", 0, |report, count| report.outside = count as u32);
    // The bound but for the fastest, and what is borne.
    rings("pipe-late", 13, |report, longest| report.whole = Nanos(longest));
    rings("pipe-buffer", 4, |report, peak| report.peak = peak as u32);
    rings("pipe-loss", 0, |report, lost| report.lost = lost as u32);
}

#[test]
fn a_pipe_to_a_device_has_its_own_words() {
    let promise = PipePromise {
        bound_ns: 8,
        least_ns: 0,
        taken_ns: 5,
        through_ns: Some(7),
        ..promise(PipeDirection::ToDevice)
    };
    let report = |taking, whole| PipeReport {
        to_device: true,
        taking: Nanos(taking),
        whole: Nanos(whole),
        ..usual(4)
    };
    let names = |taking, whole| {
        let outcome = said(2, [report(taking, whole)].into_iter());
        let alarms = promise.alarms(&outcome, &Names::default(), 0);
        alarms.into_iter().map(|alarm| (alarm.name, alarm.text)).collect::<Vec<_>>()
    };
    assert_eq!(names(5, 8), []);
    let [(name, text)] = &names(5, 9)[..] else { panic!("one alarm") };
    assert_eq!(*name, "pipe-late");
    assert!(text.contains("was known to be through after 9 ns"), "{text}");
    assert_eq!(names(6, 8)[0].0, "pipe-taken");
}

#[test]
fn a_pipe_from_a_device_says_which_half_was_late() {
    let promise =
        PipePromise { bound_ns: 9, taken_ns: 6, least_ns: 1, ..promise(PipeDirection::FromDevice) };
    for (moving, whole, alarms) in
        [(5, 8, vec![]), (6, 8, vec!["pipe-taken"]), (5, 9, vec!["pipe-late"])]
    {
        let report = PipeReport { moving: Nanos(moving), whole: Nanos(whole), ..usual(1) };
        let found = rung(&promise, &said(2, [report].into_iter()), 0);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), alarms);
    }
}

#[test]
fn a_pipe_that_nobody_measures_does_not_hold() {
    let promise = promise(PipeDirection::FromDevice);
    let seconds = |count: u64| Nanos::from_secs(count).0;
    let never = rung(&promise, &said(5, [].into_iter()), 0);
    assert_eq!(never, [("pipe-unmeasured", seconds(5), seconds(2))]);
    let then_no_more = rung(&promise, &said(9, [usual(1), usual(2)].into_iter()), 0);
    assert_eq!(then_no_more, [("pipe-unmeasured", seconds(7), seconds(2))]);
    let all_the_time = said(4, [usual(1), usual(2), usual(3)].into_iter());
    assert_eq!(rung(&promise, &all_the_time, 0), []);
}

#[test]
fn a_pipe_without_messages_says_so() {
    let promise = promise(PipeDirection::FromDevice);
    let empty = |seconds: u64| said(seconds, (1..seconds).map(|_| usual(0)));
    assert_eq!(rung(&promise, &empty(4), 0), [("pipe-empty", 0, 1)]);
    let text = promise.alarms(&empty(4), &Names::default(), 0)[0].text.clone();
    assert!(text.starts_with("no message of engine in 4.000 s: "), "{text}");
    // Its device may be found later.
    let patient = PipePromise { patience_ns: Nanos::from_secs(5).0, ..promise };
    assert_eq!(rung(&patient, &empty(4), 0), []);
    assert_eq!(rung(&patient, &empty(5), 0), [("pipe-empty", 0, 1)]);
}

#[test]
fn what_the_simulator_saw_counts_whoever_reported_or_did_not() {
    let promise = promise(PipeDirection::FromDevice);
    let with = |messages, longest_ns, waiting_ns, reports: &[PipeReport]| {
        let mut outcome = said(2, reports.iter().copied());
        outcome.truth = vec![Some(Truth { messages, longest_ns, waiting_ns, lost: 0 })];
        rung(&promise, &outcome, 0)
    };
    assert_eq!(with(7, 10, 0, &[]), []);
    assert_eq!(with(7, 11, 0, &[]), [("pipe-late", 11, 10)]);
    assert_eq!(with(7, 10, 12, &[usual(7)]), [("pipe-late", 12, 10)]);
    // Nobody saw a message arrive: that is no measurement.
    assert_eq!(with(0, 0, 0, &[])[0].0, "pipe-unmeasured");
}

/// No report has the losses after the last one, and a loss that was reported rings once.
#[test]
fn a_loss_that_the_simulator_saw_rings_if_nobody_reported_it() {
    let promise = promise(PipeDirection::FromDevice);
    let with = |lost, reports: &[PipeReport]| {
        let mut outcome = said(2, reports.iter().copied());
        outcome.truth = vec![Some(Truth { messages: 7, lost, ..Truth::default() })];
        rung(&promise, &outcome, 0)
    };
    assert_eq!(with(0, &[usual(7)]), []);
    assert_eq!(with(3, &[usual(7)]), [("pipe-loss", 3, 0)]);
    assert_eq!(with(3, &[]), [("pipe-loss", 3, 0)]);
    assert_eq!(with(3, &[PipeReport { lost: 2, ..usual(7) }]), [("pipe-loss", 2, 0)]);
}

#[test]
fn a_clock_beyond_its_drift_is_named_and_not_taken_for_lateness() {
    let second = 1_000_000_000u64;
    let promise = PipePromise {
        bound_ns: 4_000_000,
        taken_ns: 3_500_000,
        least_ns: 100_000,
        ..promise(PipeDirection::FromDevice)
    };
    let slow = |ppm: u64, reading: u64| {
        let report = |number: u64| PipeReport {
            moving: Nanos(number * ppm * 1_000),
            whole: Nanos(number * ppm * 1_000),
            reading: Nanos(reading),
            distance: (number * ppm * 1_000).wrapping_sub(5 * second),
            ..usual(number)
        };
        rung(&promise, &said(9, (1..9).map(report)), 0)
    };
    assert_eq!(slow(5_000, 10), [("clock-drift", 5_000, 100)]);
    // A message that is late by one clock is late all the same.
    let both = slow(5_000, 4_000_000);
    assert_eq!(both, [("clock-drift", 5_000, 100), ("pipe-late", 4_000_000, 3_900_000)]);
    assert_eq!(slow(100, 10), []);
}

#[test]
fn a_pipe_is_not_measured_from_when_its_program_ended() {
    let outcome = said(9, [usual(1), usual(2)].into_iter());
    let mut assumptions = sample::assumptions();
    assumptions.pipes = vec![promise(PipeDirection::ToDevice)];
    let unmeasured = |outcome: &Outcome| assumptions.unmeasured(outcome, &Names::default());
    let is_of_pipe = |it: &String| it.starts_with("pipe engine from");
    assert!(!unmeasured(&outcome).iter().any(is_of_pipe));
    let mut ended = outcome;
    ended.note(&Line::parse(b"~f 3 1 0 10 3"));
    ended.ended.push((Nanos::from_secs(2).0, 3));
    let found = unmeasured(&ended);
    assert!(found.contains(&"pipe engine from 2.000 s on: #3 ended".to_owned()), "{found:?}");
}
