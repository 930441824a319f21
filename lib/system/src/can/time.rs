//! `time` of a `[[can]]`: the message by which the nodes of a bus under MTS keep a common time, and
//! what the bound of their clocks follows from.

use super::{CLOCKS_MAX, nearest};
use crate::can_network::{CanClass, CanMessage, CanScheduler, CanTime};
use crate::declared::{Declared, DeclaredCan, DeclaredCanTime, DeclaredMessage};
use crate::diagnostics::{Problem, Report};
use crate::source::{At, Span};
use crate::table::Table;

/// Bytes that a frame of the time has.
const BYTES: u64 = 8;
/// Furthest drift, and most frames that may be lost in a row.
const DRIFT_MAX: u64 = 10_000;
const LOSSES_MAX: u64 = 1_000;
const STEP: u64 = 1_000;
const DRIFT: u32 = 100;
const SECOND: u64 = 1_000_000_000;

pub(super) fn read(table: &mut Table<'_, '_>) -> DeclaredCanTime {
    let time = DeclaredCanTime {
        message: table.text("time", "time = \"time\""),
        read: table.duration("time_read", 0..=CLOCKS_MAX),
        step: table.duration("time_step", 1..=CLOCKS_MAX),
        drift: table.number("time_drift", 0..=DRIFT_MAX, " parts per million"),
        losses: table.number("time_losses", 0..=LOSSES_MAX, " frames in a row"),
    };
    if time.message.is_some() {
        let help = "add `time_read = \"10us\"`: the longest from the end of a frame until a node \
                    has read its clock";
        table.needs("time_read", help);
    }
    time
}

impl DeclaredCanTime {
    /// Returns each key that is there, with its place.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'static str, &Span)> {
        let numbers = [
            ("time_read", &self.read),
            ("time_step", &self.step),
            ("time_drift", &self.drift),
            ("time_losses", &self.losses),
        ];
        let numbers = numbers.into_iter().filter_map(|(key, at)| Some((key, &at.as_ref()?.span)));
        self.message.iter().map(|at| ("time", &at.span)).chain(numbers)
    }
}

/// Reports what does not fit together in a bus under MTS.
pub(super) fn check(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    if !can.is(CanScheduler::Mts) {
        return;
    }
    let Some(name) = &can.time.message else {
        if let Some((key, place)) = can.time.keys().next() {
            let title = format!("`{key}` says nothing here");
            let help = "add `time = \"…\"`, the message that carries the time, or remove it";
            report.push(Problem::new(place, title, help));
        }
        return;
    };
    match declared.messages.iter().find(|message| message.name.value == name.value) {
        None => unknown(declared, can, name, report),
        Some(message) if !message.is_on(can) => {
            let title = format!("`{}` is not on `{}`", name.value, can.name.value);
            let help = "name a message of this bus: its nodes hear no other";
            let problem = Problem::new(&name.span, title, help);
            report.push(problem.with(&message.name.span, "the message"));
        }
        Some(message) => carries(name, message, report),
    }
    readable(can, report);
}

fn unknown(declared: &Declared, can: &DeclaredCan, name: &At<String>, report: &mut Report) {
    let title = format!("no message is called `{}`", name.value);
    let known = declared.messages.iter().filter(|message| message.is_on(can));
    let help = match nearest(&name.value, known.map(|message| message.name.value.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it: `[[message]]` with `name = \"{}\"`", name.value),
    };
    report.push(Problem::new(&name.span, title, help));
}

/// Reports why a message cannot carry the time.
fn carries(name: &At<String>, message: &DeclaredMessage, report: &mut Report) {
    if !message.is(CanClass::Low) {
        let place = message.class.as_ref().map_or(&message.name.span, |class| &class.span);
        let title = format!("`{}` carries the time, and is not of class `\"low\"`", name.value);
        let help = "write `class = \"low\"`: a message of high speed needs the time itself";
        report.push(Problem::new(place, title, help).with(&name.span, "named here"));
    }
    if let Some(bytes) = message.bytes.as_ref().filter(|bytes| bytes.value < BYTES) {
        let title = format!("`{}` carries the time, and has {} bytes", name.value, bytes.value);
        let help = format!("write `bytes = {BYTES}`: a number and the time of the frame before");
        report.push(Problem::new(&bytes.span, title, help).with(&name.span, "named here"));
    }
}

/// Reports clocks that are read sooner than the frame ends everywhere. A receiver accepts a frame
/// one bit before its sender does.
fn readable(can: &DeclaredCan, report: &mut Report) {
    let (Some(read), Some(rate)) = (&can.time.read, &can.rate) else { return };
    let bit = SECOND.div_ceil(rate.value.max(1));
    if read.value < bit {
        let title = format!("a frame ends {bit} ns later for its sender than for receivers");
        let help = format!("write `time_read = \"{bit}ns\"` at least: that bit is part of it");
        report.push(Problem::new(&read.span, title, help));
    }
}

/// Returns the message that carries the time of a bus, by its place among `messages`.
pub(super) fn of(can: &DeclaredCan, messages: &[CanMessage]) -> Option<CanTime> {
    let DeclaredCanTime { message, read, step, drift, losses } = &can.time;
    let name = message.as_ref()?;
    let small = |at: &Option<At<u64>>, none| {
        at.as_ref().map_or(Some(none), |at| u32::try_from(at.value).ok())
    };
    Some(CanTime {
        message: messages.iter().position(|message| message.name == name.value)?,
        read_ns: read.as_ref()?.value,
        step_ns: step.as_ref().map_or(STEP, |step| step.value),
        drift_ppm: small(drift, DRIFT)?,
        losses: small(losses, 0)?,
    })
}
