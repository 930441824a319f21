//! Modes of operation: which streams were to run when, and whether each mode ran.

use super::super::{Outcome, RaisedAlarm, entry};
use super::cameras::often;
use super::cameras::{CameraRow, CameraSeat};
use crate::names::Names;
use crate::table::{Columns, time};
use diapason_contract::settings::{PROGRAM, STREAMS};
use diapason_pipe::measured::{ModeReport, ModeStep};
use diapason_system::{ProcessSpec, System};

/// Streams of a server.
const STREAM_BITS: u8 = u8::BITS as u8;

/// The order of a stream: whether it is to run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct OrderRow {
    /// The place of its server in the description.
    process: u64,
    stream: u8,
    /// The stream is to run, or to rest, since then.
    since: (bool, u64),
    /// The time for which it was to run before.
    wanted_ns: u64,
}

/// The reports of a server on a mode.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ModeRow {
    process: u64,
    mode: u8,
    /// Times that all of its streams ran, and that one did not though its camera was there.
    ran: u64,
    without: u64,
    /// A change to it is under way.
    changes: bool,
    longest_ns: u64,
}

/// The reports of servers on their modes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ModeRows {
    orders: Vec<OrderRow>,
    modes: Vec<ModeRow>,
}

impl ModeRows {
    /// Takes in what the server in place `process` said. Nobody reports on streams that rest.
    pub(in super::super) fn note(
        &mut self,
        process: u64,
        at: u64,
        report: &ModeReport,
        cameras: &mut [CameraRow],
    ) {
        for stream in 0..STREAM_BITS {
            let runs = report.wanted >> stream & 1 != 0;
            let is = |row: &OrderRow| (row.process, row.stream) == (process, stream);
            let new = || OrderRow { process, stream, since: (false, at), wanted_ns: 0 };
            let order = entry(&mut self.orders, is, new);
            if let (true, since) = order.since {
                order.wanted_ns += at.saturating_sub(since);
            }
            if order.since.0 != runs || runs {
                order.since = (runs, at);
            }
            let is_its = |row: &&mut CameraRow| row.is(process, CameraSeat::Stream(stream));
            if let Some(row) = cameras.iter_mut().find(is_its) {
                row.coverage.rest(at, !runs);
            }
        }
        let mode = report.mode;
        let is = |row: &ModeRow| (row.process, row.mode) == (process, mode);
        let new = || ModeRow { process, mode, ran: 0, without: 0, changes: false, longest_ns: 0 };
        let row = entry(&mut self.modes, is, new);
        match report.step {
            ModeStep::Stops => row.changes = true,
            ModeStep::Starts => {}
            ModeStep::Runs => {
                row.ran += 1;
                if std::mem::take(&mut row.changes) {
                    let time = report.begun.0.saturating_sub(report.taken.0);
                    row.longest_ns = row.longest_ns.max(time);
                }
            }
            ModeStep::Without => {
                row.without += 1;
                row.changes = false;
            }
        }
    }

    fn order(&self, process: u64, stream: u8) -> Option<&OrderRow> {
        self.orders.iter().find(|row| (row.process, row.stream) == (process, stream))
    }

    /// Returns since when a stream rests, if it is to.
    pub(super) fn rests(&self, process: u64, stream: u8) -> Option<u64> {
        let (runs, since) = self.order(process, stream)?.since;
        (!runs).then_some(since)
    }

    /// Returns for how long a stream was to run until `end`; `None` if nobody said so.
    pub(super) fn wanted(&self, process: u64, stream: u8, end: u64) -> Option<u64> {
        let order = self.order(process, stream)?;
        let (runs, since) = order.since;
        Some(order.wanted_ns + if runs { end.saturating_sub(since) } else { 0 })
    }
}

/// A mode that a server is to be able to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModePromise {
    /// The place of its server in the description.
    pub process: u64,
    pub mode: u8,
    pub name: String,
}

impl ModePromise {
    /// Returns the modes of a description, for each server that changes them.
    #[must_use]
    pub fn of(system: &System) -> Vec<ModePromise> {
        let changes = |(_, it): &(u64, &ProcessSpec)| {
            it.program == PROGRAM && !it.setting(STREAMS).is_empty()
        };
        let servers = (0..).zip(&system.processes).filter(changes);
        let of_server = |(process, _)| {
            let modes = (0u8..).zip(&system.modes);
            modes.map(move |(mode, spec)| ModePromise { process, mode, name: spec.name.clone() })
        };
        servers.flat_map(of_server).collect()
    }

    fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o ModeRow> {
        let is = |row: &&ModeRow| (row.process, row.mode) == (self.process, self.mode);
        outcome.modes.modes.iter().find(is)
    }

    /// Returns whether all of its streams ran at once.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome).is_some_and(|row| row.ran > 0)
    }

    pub(super) fn unmeasured(&self) -> String {
        format!("mode {} never ran with all of its streams", self.name)
    }

    /// Returns the alarm of changes after which a stream was missing.
    pub(super) fn alarm(&self, outcome: &Outcome) -> Option<RaisedAlarm> {
        let without = self.row(outcome)?.without;
        let text = format!(
            "mode {} began {} without a stream whose camera is there: it failed, or \
             sent nothing in time",
            self.name,
            often(without)
        );
        RaisedAlarm::above("mode-without", &self.name, [without, 0], text)
    }

    /// Returns the columns of modes, as a run saw them.
    pub(crate) fn columns<'o>(outcome: &'o Outcome, names: &'o Names) -> Columns<'o, ModePromise> {
        let of = |it: &ModePromise, value: fn(&ModeRow) -> u64| it.row(outcome).map_or(0, value);
        Columns::<ModePromise>::default()
            .left(("mode", "mode"), |it| it.name.clone())
            .left(("process", "process"), |it| names.process(it.process))
            .right(("ran", "ran"), move |it| of(it, |row| row.ran))
            .right(("without a stream", "without"), move |it| of(it, |row| row.without))
            .right(("longest change", "longest_change_ns"), move |it| {
                time(of(it, |row| row.longest_ns))
            })
    }
}
