//! The common times of hosts in a simulation: how far apart they were at most and when both hosts
//! knew the time, beside the bounds, and whether a host lost the time.

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
    /// How long after both servers run their hosts know the time at the latest.
    learnt: Nanos,
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
            let (wire, sync) = (wire.name.clone(), &terms.sync);
            let (bound, learnt) = (sync.error(), sync.learnt());
            Some(PromisedTime { wire, ends, names, bound, learnt })
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
        // A server says its first report after it began. So no host is blamed too early.
        let firsts = [0, 1].map(|end| rows[end].first().map(|row| clocks[end](row.at)));
        let begun = firsts.into_iter().collect::<Option<Vec<_>>>();
        let begun = begun.into_iter().flatten().max().unwrap_or(Nanos::FOREVER);
        let learnt = [0, 1].map(|end| learnt(&rows[end], begun, clocks[end]));
        SeenTime { promised: self.clone(), furthest: Nanos(furthest), compared, lost, learnt }
    }
}

/// The reports of a host around its first one with the time, each so long after both servers ran.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Learnt {
    /// The last report before, which had no time.
    without: Option<Nanos>,
    /// The first report that had the time.
    with: Option<Nanos>,
}

/// Returns when a host knew the time, from its reports. Both servers ran at `begun`, and `world`
/// returns when the host's clock said a time.
fn learnt(rows: &[TimeRow], begun: Nanos, world: impl Fn(Nanos) -> Nanos) -> Learnt {
    let since = |row: &TimeRow| world(row.at) - begun;
    let first = rows.iter().position(|row| row.report.common.is_some());
    let before = rows.get(..first.unwrap_or(rows.len())).unwrap_or_default();
    Learnt { without: before.last().map(since), with: first.map(|first| since(&rows[first])) }
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
    learnt: [Learnt; 2],
}

impl SeenTime {
    /// Returns a sentence for each promise that was not kept.
    pub(crate) fn findings(&self) -> Vec<String> {
        let PromisedTime { wire, names, bound, learnt: promised, .. } = &self.promised;
        let furthest = self.furthest;
        let beyond = (furthest > *bound).then(|| {
            format!(
                "the common times of the wire {wire} were {furthest} apart, and {bound} is promised"
            )
        });
        let lost = names.iter().zip(self.lost).filter(|(_, lost)| *lost > 0).map(|(name, lost)| {
            format!("{name} lost the common time of the wire {wire}, in {lost} of its reports")
        });
        let late = names.iter().zip(self.learnt).filter_map(|(name, learnt)| {
            let after = learnt.without.filter(|after| after > promised)?;
            Some(format!(
                "{name} did not know the common time of the wire {wire} yet {after} after both \
                 servers ran, and {promised} is promised"
            ))
        });
        beyond.into_iter().chain(lost).chain(late).collect()
    }

    /// Returns when both hosts had reported the time.
    fn known(&self) -> Option<Nanos> {
        let [one, other] = self.learnt.map(|it| it.with);
        Some(one?.max(other?))
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
        let columns = ["apart", "bound", "compared", "lost", "known after", "at most"].map(right);
        let mut table = TextTable::new(&[&[("common time", Align::Left)][..], &columns].concat());
        for it in all {
            let PromisedTime { wire, bound, learnt, .. } = &it.promised;
            let lost: u64 = it.lost.iter().sum();
            let seen = if it.compared == 0 { "-".to_owned() } else { it.furthest.to_string() };
            let counts = [it.compared, lost].map(|count| count.to_string());
            let known = it.known().map_or("-".to_owned(), |known| known.to_string());
            let times = vec![wire.clone(), seen, bound.to_string()];
            table.row([times, counts.to_vec(), vec![known, learnt.to_string()]].concat());
        }
        if all.is_empty() { String::new() } else { table.render() }
    }

    /// Returns it as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "wire": self.promised.wire,
            "bound_ns": self.promised.bound.0,
            "furthest_ns": self.furthest.0,
            "learnt_bound_ns": self.promised.learnt.0,
            "learnt_ns": self.known().map(|known| known.0),
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
            learnt: Nanos(20),
        };
        let seen = |compared| {
            let promised = promised.clone();
            let learnt = [Learnt::default(); 2];
            SeenTime { promised, furthest: Nanos(0), compared, lost: [0, 0], learnt }.unmeasured()
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
    fn the_first_report_with_the_time_ends_the_learning() {
        let at = |at, common| TimeRow { at: Nanos(at), ..row(common) };
        let rows = [at(1, None), at(2, None), at(3, Some(1)), at(4, None)];
        let world = |at: Nanos| Nanos(10 * at.0);
        let [without, with] = [10, 20].map(Nanos).map(Some);
        assert_eq!(learnt(&rows, Nanos(10), world), Learnt { without, with });
        assert_eq!(learnt(&rows[..2], Nanos(10), world), Learnt { without, with: None });
        assert_eq!(learnt(&[], Nanos::FOREVER, world), Learnt::default());
    }

    #[test]
    fn a_time_beyond_its_bound_or_lost_is_a_finding() {
        let promised = PromisedTime {
            wire: "wire".to_owned(),
            ends: [(0, 0), (1, 0)],
            names: ["station", "drive"].map(str::to_owned),
            bound: Nanos(10),
            learnt: Nanos(20),
        };
        let learning = |furthest: u64, lost: [u64; 2], without: u64| {
            let (promised, furthest) = (promised.clone(), Nanos(furthest));
            let learnt =
                [0, without].map(Nanos).map(Some).map(|it| Learnt { without: it, with: None });
            SeenTime { promised, furthest, compared: 3, lost, learnt }.findings()
        };
        let seen = |furthest, lost| learning(furthest, lost, 0);
        assert_eq!(seen(10, [0, 0]), Vec::<String>::new());
        assert_eq!(learning(10, [0, 0], 20), Vec::<String>::new());
        let late = "drive did not know the common time of the wire wire yet 21 ns after both \
                    servers ran, and 20 ns is promised";
        assert_eq!(learning(10, [0, 0], 21), [late]);
        let beyond = "the common times of the wire wire were 11 ns apart, and 10 ns is promised";
        assert_eq!(seen(11, [0, 0]), [beyond]);
        let lost = "drive lost the common time of the wire wire, in 2 of its reports";
        assert_eq!(seen(10, [0, 2]), [lost]);
    }
}
