//! Cameras: whether all of their frames came.

use super::super::coverage::{Coverage, Watched, found};
use super::super::{Outcome, RaisedAlarm, entry};
use super::ModeRows;
use super::devices::{drives, is_camera};
use crate::duration::human;
use crate::names::Names;
use crate::table::Columns;
use diapason_abi::Nanos;
use diapason_contract::settings::{CRITICAL, PROGRAM, STREAMS};
use diapason_pipe::measured::CameraReport;
use diapason_system::{ProcessSpec, System};

/// The last report on a camera.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CameraRow {
    /// The place of its server in the description.
    pub process: u64,
    pub last: CameraReport,
    /// The times of reports on the camera, once a second while its frames are asked for.
    pub(in super::super) coverage: Coverage,
}

impl CameraRow {
    /// Returns a camera without a report so far.
    pub(crate) fn new(process: u64, last: CameraReport, at: Nanos) -> CameraRow {
        CameraRow { process, last, coverage: Coverage::since(at) }
    }

    /// Returns whether it is the camera in this seat of this server.
    pub(super) fn is(&self, process: u64, seat: CameraSeat) -> bool {
        (self.process, CameraSeat::of(&self.last)) == (process, seat)
    }
}

/// A seat of a camera at its server, with its number among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CameraSeat {
    /// That of a camera that a client watches.
    Watched(u8),
    /// That of a camera that nobody watches.
    Stream(u8),
}

impl CameraSeat {
    const fn of(report: &CameraReport) -> CameraSeat {
        match report.stream {
            true => CameraSeat::Stream(report.number),
            false => CameraSeat::Watched(report.number),
        }
    }

    const fn stream(self) -> Option<u8> {
        match self {
            CameraSeat::Stream(number) => Some(number),
            CameraSeat::Watched(_) => None,
        }
    }

    const fn watched(self) -> Option<u8> {
        match self {
            CameraSeat::Watched(number) => Some(number),
            CameraSeat::Stream(_) => None,
        }
    }
}

/// Takes in what the server in place `process` said.
pub(in super::super) fn note(
    rows: &mut Vec<CameraRow>,
    process: u64,
    at: Nanos,
    report: &CameraReport,
    modes: &ModeRows,
) {
    let seat = CameraSeat::of(report);
    let row = entry(
        rows,
        |row| row.is(process, seat),
        || {
            let mut row = CameraRow::new(process, *report, at);
            if let Some(since) = seat.stream().and_then(|stream| modes.rests(process, stream)) {
                row.coverage.rest(since, true);
            }
            row
        },
    );
    row.last = *report;
    row.coverage.note(at);
}

impl CameraRow {
    pub(in super::super) fn columns(names: &Names) -> Columns<'_, CameraRow> {
        Columns::<CameraRow>::default()
            .json("process", |row| names.process(row.process))
            .json("camera", |row| CameraSeat::of(&row.last).watched())
            .json("stream", |row| CameraSeat::of(&row.last).stream())
            .json("whole", |row| row.last.whole)
            .json("broken", |row| row.last.broken)
            .json("missed_intervals", |row| row.last.missed)
            .json("breaks", |row| row.last.breaks)
            .json("period_ns", |row| row.last.period.0)
            .json("late_max_ns", |row| row.last.late.0)
    }
}

/// A camera that a description has, and that a server serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CameraPromise {
    /// The place of its server in the description.
    pub process: u64,
    pub seat: CameraSeat,
}

/// Returns a number of times in words.
pub(super) fn often(times: u64) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

/// Returns whether a camera is promised its bandwidth: one that a client watches, or a critical
/// stream. Any other stream may be refused while the system runs.
fn is_promised(server: &ProcessSpec, seat: CameraSeat) -> bool {
    seat.stream().is_none_or(|number| server.setting(CRITICAL).contains(&number.into()))
}

/// Returns the seats of cameras at a server: those of cameras that clients watch, and streams.
fn seats(system: &System, server: &ProcessSpec) -> impl Iterator<Item = CameraSeat> + use<> {
    let watched = (0u8..).take(system.watched_cameras(server)).map(CameraSeat::Watched);
    watched.chain((0u8..).take(server.setting(STREAMS).len()).map(CameraSeat::Stream))
}

impl CameraPromise {
    /// Returns the cameras of a description that its servers serve.
    #[must_use]
    pub fn of(system: &System) -> Vec<CameraPromise> {
        let of_process = |(process, it): (u64, &ProcessSpec)| {
            let plugged = system.usb.iter().filter(|plug| drives(system, it, plug));
            let cameras = plugged.filter(|plug| is_camera(plug)).count();
            let promise = move |seat| CameraPromise { process, seat };
            let promised = seats(system, it).take(cameras).filter(|seat| is_promised(it, *seat));
            promised.map(promise).collect::<Vec<_>>()
        };
        let servers = (0..).zip(&system.processes).filter(|(_, it)| it.program == PROGRAM);
        servers.flat_map(of_process).collect()
    }

    /// Returns the cameras that a server serves in seats of their own, by the numbers of their
    /// plugs, and whether each is promised its bandwidth.
    pub(super) fn bound(system: &System, server: &ProcessSpec) -> Vec<(usize, bool)> {
        let cameras = system.bound_cameras(server).into_iter();
        let seats = seats(system, server).map(|seat| is_promised(server, seat));
        cameras.zip(seats.chain(std::iter::repeat(false))).collect()
    }

    pub(super) fn name(&self, names: &Names) -> String {
        let server = names.process(self.process);
        match self.seat {
            CameraSeat::Stream(number) => format!("stream {number} of {server}"),
            CameraSeat::Watched(number) => format!("camera {number} of {server}"),
        }
    }

    fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o CameraRow> {
        outcome.cameras.iter().find(|row| row.is(self.process, self.seat))
    }

    /// Returns whether frames were counted.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome).is_some_and(|row| row.last.whole > 0)
    }

    /// Returns what a run contradicts: that frames come, that all of them are whole, and that each
    /// comes in its turn.
    pub(super) fn alarms(
        &self,
        outcome: &Outcome,
        names: &Names,
        patience_ns: u64,
    ) -> Vec<RaisedAlarm> {
        let Some(end) = outcome.end else { return Vec::new() };
        let of = self.name(names);
        // A mode may let a stream rest.
        let stream = self.seat.stream();
        let wanted =
            stream.and_then(|stream| outcome.modes.wanted(self.process, stream, end.time_ns));
        let time = wanted.unwrap_or(end.time_ns);
        let is_empty = time >= patience_ns && !self.is_measured(outcome);
        let empty = format!("no frame of {of} came in {}", human(time));
        let empty = is_empty.then(|| RaisedAlarm::missing("camera-empty", &of, empty));
        let last = self.row(outcome).map(|row| row.last).unwrap_or_default();
        let CameraReport { whole, broken, missed, breaks, period, late, .. } = last;
        let mut loss = format!(
            "{broken} of {} frames of {of} were not whole, and the data of {missed} intervals did \
             not come",
            whole.saturating_add(broken)
        );
        if breaks > 0 {
            let often = often(breaks);
            loss += &format!("; {of} broke off {often}, as its camera went away or failed");
        }
        let most = broken.max(missed).max(breaks);
        let loss = RaisedAlarm::above("camera-loss", &of, [most, 0], loss);
        // A frame that never came moves the turns of all others by one.
        let turn = if period == Nanos::ZERO { u64::MAX } else { period.0 - period.0 / 10 };
        let rate = format!(
            "a frame of {of} came {} after its turn: it says that one comes every {}",
            human(late.0),
            human(period.0)
        );
        let rate = RaisedAlarm::above("camera-rate", &of, [late.0, turn], rate);
        let silent = self.row(outcome).and_then(|row| {
            let (alarm, process, coverage) = ("camera-silent", self.process, Some(row.coverage));
            let found_ns = found(patience_ns);
            Watched { alarm, of: &of, process, coverage, found_ns }.alarm(outcome, names)
        });
        empty.into_iter().chain(loss).chain(rate).chain(silent).collect()
    }
}
