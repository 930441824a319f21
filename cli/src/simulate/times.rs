//! The common times of hosts in a simulation: how far apart they were at most beside the bound, and
//! whether a host lost the time.

use crate::outcome::{TimeRow, apart};
use crate::session::FinishedRun;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_plan::NetworkPlan;
use diapason_system::{Hosts, WireEnd};
use serde_json::{Value, json};

/// A common time that is promised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromisedTime {
    wire: String,
    /// The numbers of the host that leads and of the one that follows, each with that of its
    /// adapter there.
    ends: [(usize, u8); 2],
    /// The name of each.
    names: [String; 2],
    /// How far both times are apart at most.
    bound: Nanos,
}

impl PromisedTime {
    /// Returns the common times of a list that have a bound.
    #[must_use]
    pub fn of(list: &Hosts, network: &NetworkPlan) -> Vec<PromisedTime> {
        let bounded =
            network.times.iter().filter_map(|it| Some((it.wire, it.terms.as_ref().ok()?)));
        let promised = bounded.filter_map(|(wire, terms)| {
            let wire = &list.ethernet[wire];
            let leads = wire.time?.leads;
            let follows = *wire.ends.iter().find(|end| **end != leads)?;
            let end = |end: WireEnd| match end {
                WireEnd::Adapter { host, adapter } => {
                    Some((host, list.hosts[host].system.adapters[adapter].number))
                }
                WireEnd::Port { .. } => None,
            };
            let ends = [end(leads)?, end(follows)?];
            let names = ends.map(|(host, _)| list.hosts[host].name.clone());
            Some(PromisedTime { wire: wire.name.clone(), ends, names, bound: terms.sync.error() })
        });
        promised.collect()
    }

    /// Returns what was seen of it in a run. `world` returns the world's clock as a host sees it.
    pub(super) fn seen(&self, runs: &[FinishedRun], world: impl Fn(usize) -> OwnClock) -> SeenTime {
        let rows = self.ends.map(|(host, adapter)| {
            let rows = runs[host].outcome.times.iter();
            rows.filter(|row| row.report.adapter == adapter).copied().collect::<Vec<TimeRow>>()
        });
        let [one, other] = self.ends.map(|(host, _)| world(host));
        let clocks: [&dyn Fn(Nanos) -> Nanos; 2] = [&|at| one.own(at), &|at| other.own(at)];
        let (furthest, compared) = apart([&rows[0], &rows[1]], clocks);
        let lost = [0, 1].map(|end| lost(&rows[end]));
        SeenTime { promised: self.clone(), furthest: Nanos(furthest), compared, lost }
    }
}

/// Returns in how many reports a host did not know the time after it had known it.
fn lost(rows: &[TimeRow]) -> u64 {
    let known = rows.iter().skip_while(|row| row.report.common.is_none());
    known.filter(|row| row.report.common.is_none()).count() as u64
}

/// A common time in a run.
#[derive(Clone, Debug)]
pub(crate) struct SeenTime {
    promised: PromisedTime,
    furthest: Nanos,
    compared: u64,
    lost: [u64; 2],
}

impl SeenTime {
    /// Returns a sentence for each promise that was not kept.
    pub(crate) fn findings(&self) -> Vec<String> {
        let PromisedTime { wire, names, bound, .. } = &self.promised;
        let furthest = self.furthest;
        let beyond = (furthest > *bound).then(|| {
            format!(
                "the common times of the wire {wire} were {furthest} apart, and {bound} is promised"
            )
        });
        let lost = names.iter().zip(self.lost).filter(|(_, lost)| *lost > 0).map(|(name, lost)| {
            format!("{name} lost the common time of the wire {wire}, in {lost} of its reports")
        });
        beyond.into_iter().chain(lost).collect()
    }

    /// Returns the host that follows, and that its time was never compared, if it was not.
    pub(crate) fn unmeasured(&self) -> Option<(usize, String)> {
        let PromisedTime { wire, ends, .. } = &self.promised;
        let sentence = format!(
            "the common time of the wire {wire}: its hosts never both knew it long enough to be \
             compared"
        );
        (self.compared == 0).then_some((ends[1].0, sentence))
    }

    /// Returns the table of several; nothing without one.
    pub(crate) fn render(all: &[SeenTime]) -> String {
        let right = |name| (name, Align::Right);
        let columns = [("common time", Align::Left), right("apart"), right("bound")];
        let mut table =
            TextTable::new(&[&columns[..], &[right("compared"), right("lost")]].concat());
        for it in all {
            let PromisedTime { wire, bound, .. } = &it.promised;
            let lost: u64 = it.lost.iter().sum();
            let seen = if it.compared == 0 { "-".to_owned() } else { it.furthest.to_string() };
            let counts = [it.compared, lost].map(|count| count.to_string());
            table.row([vec![wire.clone(), seen, bound.to_string()], counts.to_vec()].concat());
        }
        if all.is_empty() { String::new() } else { table.render() }
    }

    /// Returns it as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "wire": self.promised.wire,
            "bound_ns": self.promised.bound.0,
            "furthest_ns": self.furthest.0,
            "compared": self.compared,
            "lost": self.lost.iter().sum::<u64>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_pipe::measured::TimeReport;

    fn row(common: Option<u64>) -> TimeRow {
        let common = common.map(Nanos);
        let report = TimeReport { adapter: 0, common, grandmaster: 1, unstamped: 0, lost: 0 };
        TimeRow { process: 1, at: Nanos(1), report }
    }

    #[test]
    fn a_time_that_was_never_compared_is_not_measured() {
        let promised = PromisedTime {
            wire: "wire".to_owned(),
            ends: [(1, 0), (2, 0)],
            names: ["station", "drive"].map(str::to_owned),
            bound: Nanos(10),
        };
        let seen = |compared| {
            let promised = promised.clone();
            SeenTime { promised, furthest: Nanos(0), compared, lost: [0, 0] }.unmeasured()
        };
        assert_eq!(seen(1), None);
        let (host, sentence) = seen(0).unwrap();
        assert!(host == 2 && sentence.starts_with("the common time of the wire wire"));
    }

    #[test]
    fn a_time_that_is_not_known_yet_is_not_lost() {
        assert_eq!(lost(&[row(None), row(None)]), 0);
        assert_eq!(lost(&[row(None), row(Some(1)), row(Some(2))]), 0);
        assert_eq!(lost(&[row(None), row(Some(1)), row(None), row(Some(2)), row(None)]), 2);
    }

    #[test]
    fn a_time_beyond_its_bound_or_lost_is_a_finding() {
        let promised = PromisedTime {
            wire: "wire".to_owned(),
            ends: [(0, 0), (1, 0)],
            names: ["station", "drive"].map(str::to_owned),
            bound: Nanos(10),
        };
        let seen = |furthest: u64, lost: [u64; 2]| {
            let promised = promised.clone();
            SeenTime { promised, furthest: Nanos(furthest), compared: 3, lost }.findings()
        };
        assert_eq!(seen(10, [0, 0]), Vec::<String>::new());
        let beyond = "the common times of the wire wire were 11 ns apart, and 10 ns is promised";
        assert_eq!(seen(11, [0, 0]), [beyond]);
        let lost = "drive lost the common time of the wire wire, in 2 of its reports";
        assert_eq!(seen(10, [0, 2]), [lost]);
    }
}
