//! Links to other computers.

use super::super::{Outcome, RaisedAlarm, entry};
use super::NetworkRow;
use crate::duration::human;
use crate::names::Names;
use crate::table::Columns;
use diapason_contract::link::TARGET;
use diapason_contract::settings::{LINKS, PROGRAM};
use diapason_pipe::measured::{LinkReport, NetworkStep};
use diapason_system::{FarEnd, System};

/// The last report on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkRow {
    /// The place of its server in the description.
    pub process: u64,
    pub last: LinkReport,
    /// The time of the last report.
    pub at_ns: u64,
    /// How often the other side went away after messages had passed.
    pub gone: u64,
    /// When it went away first, and when it was back.
    pub first_gone: Option<(u64, Option<u64>)>,
}

/// Takes in what the server in place `process` said.
pub(in super::super) fn note(
    rows: &mut Vec<LinkRow>,
    process: u64,
    at_ns: u64,
    report: &LinkReport,
) {
    let is = |row: &LinkRow| (row.process, row.last.number) == (process, report.number);
    let new = || LinkRow { process, last: *report, at_ns, gone: 0, first_gone: None };
    let row = entry(rows, is, new);
    match (row.last.here, report.here) {
        (true, false) if row.last.came + row.last.sent > 0 => {
            row.gone += 1;
            row.first_gone.get_or_insert((at_ns, None));
        }
        (false, true) => {
            if let Some((_, back @ None)) = &mut row.first_gone {
                *back = Some(at_ns);
            }
        }
        _ => {}
    }
    (row.last, row.at_ns) = (*report, at_ns);
}

impl LinkRow {
    pub(in super::super) fn columns(names: &Names) -> Columns<'_, LinkRow> {
        Columns::<LinkRow>::default()
            .json("process", |row| names.process(row.process))
            .json("link", |row| row.last.number)
            .json("here", |row| row.last.here)
            .json("found", |row| row.last.found)
            .json("came", |row| row.last.came)
            .json("sent", |row| row.last.sent)
            .json("gone", |row| row.gone)
            .json("gone_ns", |row| row.first_gone.map(|(at, _)| at))
            .json("back_ns", |row| row.first_gone.and_then(|(_, back)| back))
    }
}

/// A link that a description has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkPromise {
    /// The place of its server in the description.
    pub process: u64,
    pub number: u8,
    /// The name of the host at the other end, and the root port where it begins, if they are known.
    pub peer: Option<(String, Option<u8>)>,
}

impl LinkPromise {
    /// Returns the links of a description: those of USB servers, and that of a debug target.
    #[must_use]
    pub fn of(system: &System) -> Vec<LinkPromise> {
        let of_process = |(process, it): (u64, &diapason_system::ProcessSpec)| {
            let (first, count) = match it.program.as_str() {
                PROGRAM => (0, it.setting(LINKS).len()),
                TARGET => (it.arguments[2] as u8, 1),
                _ => (0, 0),
            };
            (first..).take(count).map(move |number| {
                let is = |end: &&FarEnd| (u64::from(end.process), end.link) == (process, number);
                let end = system.neighbours.links.iter().find(is);
                let peer = end.map(|end| (end.host.clone(), end.port));
                LinkPromise { process, number, peer }
            })
        };
        (0..).zip(&system.processes).flat_map(of_process).collect()
    }

    fn name(&self, names: &Names) -> String {
        let link = format!("link {} of {}", self.number, names.process(self.process));
        match &self.peer {
            None => link,
            Some((host, None)) => format!("{link}, to {host}"),
            Some((host, Some(port))) => format!("{link}, to {host} at root port {port}"),
        }
    }

    fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o LinkRow> {
        let place = (self.process, self.number);
        outcome.links.iter().find(|row| (row.process, row.last.number) == place)
    }

    /// Returns whether a message went over it, either way.
    pub(super) fn is_measured(&self, outcome: &Outcome) -> bool {
        self.row(outcome).is_some_and(|row| row.last.came > 0 || row.last.sent > 0)
    }

    /// Returns why the link never formed, if it did not.
    fn unformed(&self, outcome: &Outcome) -> Option<String> {
        match self.row(outcome) {
            Some(row) if row.last.found > 0 => {
                let silent = !self.is_measured(outcome) && !row.last.here;
                silent.then(|| "the other side took nothing".into())
            }
            _ => Some(self.stranger(outcome).unwrap_or("no other computer was found".into())),
        }
    }

    /// Returns what is where the link begins, if that is another host than the right one.
    fn stranger(&self, outcome: &Outcome) -> Option<String> {
        let (_, Some(port)) = self.peer.as_ref()? else { return None };
        let mut steps = outcome.network.iter().filter(|row| row.process == self.process);
        let is = |row: &&NetworkRow| (row.step, row.port) == (NetworkStep::Stranger, Some(*port));
        let row = steps.find(is)?;
        let name = row.peer.as_deref().unwrap_or("another computer");
        Some(format!("{name} is there, by a wrong cable"))
    }

    /// Returns what to say of a link over which no message went.
    pub(super) fn unmeasured(&self, outcome: &Outcome, names: &Names) -> String {
        match self.unformed(outcome) {
            Some(why) => format!("{} never formed: {why}", self.name(names)),
            None => format!("no message went over {}", self.name(names)),
        }
    }

    /// Returns an alarm if the link never formed in a run that was long enough for it, or is away
    /// at the end.
    pub(super) fn alarm(
        &self,
        outcome: &Outcome,
        names: &Names,
        patience_ns: u64,
    ) -> Option<RaisedAlarm> {
        let time = outcome.end?.time_ns;
        let of = self.name(names);
        if let Some(why) = self.unformed(outcome) {
            let text = format!("{of} never formed in {}: {why}", human(time));
            return (time >= patience_ns).then(|| RaisedAlarm::missing("link-absent", &of, text));
        }
        let row = self.row(outcome)?;
        let text = match row.first_gone {
            _ if !row.last.here => format!("{of} was away from {} on", human(row.at_ns)),
            Some((at, Some(back))) => {
                let times = if row.gone > 1 {
                    format!(", {} times in all", row.gone)
                } else {
                    String::new()
                };
                format!("{of} was away from {} to {}{times}", human(at), human(back))
            }
            _ => return None,
        };
        Some(RaisedAlarm::missing("link-gone", &of, text))
    }
}
