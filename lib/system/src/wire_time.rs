//! `time` of an `[[ethernet]]`: the hosts at both ends of a wire keep a common time by gPTP, and
//! what the bound of their clocks follows from.

use crate::diagnostics::{Problem, Report};
use crate::hosts::HostSpec;
use crate::source::{At, Span};
use crate::table::Table;
use crate::wires::WireEnd;

/// Longest read, furthest drift and wander, and most frames that may be lost in a row.
const READ_MAX: u64 = 1_000_000;
const DRIFT_MAX: u64 = 1_000;
const WANDER_MAX: u64 = 1_000_000;
const LOSSES_MAX: u64 = 100;
const DRIFT: u64 = 100;
const WANDER: u64 = 20;

/// How fast a clock approaches the computed time. The error of a rate that stamps of microseconds
/// give is a tenth of it.
pub const SLEW_PPM: u32 = 500;

/// The common time of the two hosts at a wire. All numbers but `leads` are assumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireTime {
    /// The adapter whose host leads.
    pub leads: WireEnd,
    /// The longest time between two looks at a host's clock, with one at the adapter's between.
    pub read_ns: u64,
    /// Each clock, of a host or of an adapter, is fast or slow by at most this.
    pub drift_ppm: u32,
    /// The rate of a clock changes in a second by at most this.
    pub wander_ppb: u32,
    /// The most frames of one kind that are lost in a row.
    pub losses: u32,
}

pub(crate) struct DeclaredTime {
    leads: Option<At<String>>,
    read: Option<At<u64>>,
    drift: Option<At<u64>>,
    wander: Option<At<u64>>,
    losses: Option<At<u64>>,
}

pub(crate) fn read(table: &mut Table<'_, '_>) -> DeclaredTime {
    let time = DeclaredTime {
        leads: table.text("time", "time = \"left:nic0\""),
        read: table.duration("time_read", 0..=READ_MAX),
        drift: table.number("time_drift", 0..=DRIFT_MAX, " parts per million"),
        wander: table.number("time_wander", 0..=WANDER_MAX, " parts per billion in a second"),
        losses: table.number("time_losses", 0..=LOSSES_MAX, " frames in a row"),
    };
    if time.leads.is_some() {
        let help = "add `time_read = \"4us\"`: the longest from one look at the host's clock to \
                    the next, with one at the adapter's between";
        table.needs("time_read", help);
    } else if let Some((key, place)) = time.keys().next() {
        let title = format!("`{key}` says nothing here");
        let help = "add `time = \"left:nic0\"`, the adapter whose host leads, or remove it";
        table.report.push(Problem::new(&place, title, help));
    }
    time
}

impl WireTime {
    /// Returns by how many millionths a clock of a host and the common time that it shows differ
    /// in their rates at most: what two clocks drift apart, and [`SLEW_PPM`]. Both ways of
    /// comparing are in it, since (1 + p)/(1 - p) exceeds 1 + 2p by less than three millionths.
    #[must_use]
    pub const fn rate_ppm(&self) -> u64 {
        2 * self.drift_ppm as u64 + SLEW_PPM as u64 + 10
    }
}

impl DeclaredTime {
    /// Returns each number that is there, with its place.
    fn keys(&self) -> impl Iterator<Item = (&'static str, Span)> {
        let numbers = [
            ("time_read", &self.read),
            ("time_drift", &self.drift),
            ("time_wander", &self.wander),
            ("time_losses", &self.losses),
        ];
        numbers.into_iter().filter_map(|(key, at)| Some((key, at.as_ref()?.span.clone())))
    }
}

/// Returns the common time of a wire with these ends, if it has one. Reports what cannot
/// be.
pub(crate) fn resolve(
    declared: &DeclaredTime,
    ends: &[(&str, WireEnd)],
    hosts: &[HostSpec],
    report: &mut Report,
) -> Option<WireTime> {
    let leads = declared.leads.as_ref()?;
    let mut refuse = |title: String, help: &str| {
        report.push(Problem::new(&leads.span, title, help));
        None
    };
    if let Some((port, _)) = ends.iter().find(|(_, end)| matches!(end, WireEnd::Port { .. })) {
        let help = "join two adapters by the wire, or remove `time`";
        return refuse(format!("the switch at `{port}` passes no common time on"), help);
    }
    let Some((_, own)) = ends.iter().find(|(text, _)| *text == leads.value) else {
        let title = format!("`{}` is no adapter at this wire", leads.value);
        return refuse(title, "write the adapter of its `ends` whose host leads");
    };
    let small = |at: &Option<At<u64>>, otherwise: u64| {
        u32::try_from(at.as_ref().map_or(otherwise, |at| at.value)).unwrap_or(u32::MAX)
    };
    let drift_ppm = small(&declared.drift, DRIFT);
    let at_ends = ends.iter().filter_map(|(_, end)| match *end {
        WireEnd::Adapter { host, .. } => Some(&hosts[host]),
        WireEnd::Port { .. } => None,
    });
    for HostSpec { name, drift_ppm: own, .. } in at_ends {
        let own = own.unsigned_abs();
        if own > drift_ppm {
            let place = declared.drift.as_ref().map_or(&leads.span, |drift| &drift.span);
            let title = format!("the clock of `{name}` drifts by {own} ppm, and more than stated");
            let help = format!("write `time_drift = {own}`, or a smaller `drift` of the host");
            report.push(Problem::new(place, title, help));
        }
    }
    Some(WireTime {
        leads: *own,
        read_ns: declared.read.as_ref()?.value,
        drift_ppm,
        wander_ppb: small(&declared.wander, WANDER),
        losses: small(&declared.losses, 0),
    })
}
