//! The common times of hosts in a simulation: how far apart they were at most and when both hosts
//! knew the time, beside the bounds, and whether a host lost the time.

use crate::outcome::{Outcome, TimeRow, apart};
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

    /// Returns the host that leads and the bound, if this is the common time of a wire.
    pub(super) fn at(&self, wire: &str) -> Option<(usize, Nanos)> {
        (self.wire == wire).then_some((self.ends[0].0, self.bound))
    }

    /// Returns what was seen of it in a run. `world` returns the world's clock as a host sees it.
    pub(super) fn seen(&self, runs: &[FinishedRun], world: impl Fn(usize) -> OwnClock) -> SeenTime {
        let lives = self.ends.map(|(host, adapter)| reports(&runs[host].outcome, adapter));
        let rows = lives.each_ref().map(|lives| lives.concat());
        let [one, other] = self.ends.map(|(host, _)| world(host));
        let clocks: [&dyn Fn(Nanos) -> Nanos; 2] = [&|at| one.own(at), &|at| other.own(at)];
        let (furthest, compared) = apart([&rows[0], &rows[1]], clocks);
        let lost = [0, 1].map(|end| lost(&rows[end]));
        let firsts = [0, 1].map(|end| rows[end].first().map(|row| clocks[end](row.report.begun)));
        let begun = firsts.into_iter().collect::<Option<Vec<_>>>();
        let begun = begun.into_iter().flatten().max().unwrap_or(Nanos::FOREVER);
        let learnt = [0, 1].map(|end| learnt(&rows[end], begun, clocks[end]));
        let discarded = lives.each_ref().map(|lives| discarded(lives));
        let furthest = Nanos(furthest);
        SeenTime { promised: self.clone(), furthest, compared, lost, learnt, discarded }
    }
}

/// Returns the reports of the server of a host's adapter, in each life of the host.
fn reports(outcome: &Outcome, adapter: u8) -> Vec<Vec<TimeRow>> {
    let of_life = |life: &Outcome| {
        let rows = life.times.iter().filter(|row| row.report.adapter == adapter);
        rows.copied().collect()
    };
    outcome.lives().map(of_life).collect()
}

/// Returns how many frames of programs gates discarded: until their host first knew the time, and
/// since then. A host that boots again has known it before.
fn discarded(lives: &[Vec<TimeRow>]) -> [u64; 2] {
    let (mut before, mut since, mut is_known) = (0, 0, false);
    for TimeRow { report, .. } in lives.iter().filter_map(|rows| rows.last()) {
        let without = if is_known { &mut since } else { &mut before };
        *without += report.without;
        since += report.unsent;
        is_known |= report.known.is_some();
    }
    [before, since]
}

/// When a host knew the time, counted from when both servers ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Learnt {
    /// It first knew the time so long after that.
    After(Nanos),
    /// Its last report came so long after that, and it had not known the time yet.
    NotIn(Nanos),
}

/// Returns when a host knew the time, from its reports. Both servers ran at `begun`, and `world`
/// returns when the host's clock said a time.
fn learnt(rows: &[TimeRow], begun: Nanos, world: impl Fn(Nanos) -> Nanos) -> Learnt {
    let since = |at: Nanos| world(at) - begun;
    let known = rows.iter().find_map(|row| row.report.known);
    let last = rows.last().map_or(Nanos::ZERO, |row| row.at);
    known.map_or_else(|| Learnt::NotIn(since(last)), |known| Learnt::After(since(known)))
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
    /// Frames that gates of each host did not let pass without the time: until it was first known,
    /// and since then.
    discarded: [[u64; 2]; 2],
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
            let (Learnt::After(after) | Learnt::NotIn(after)) = learnt;
            let verb = if learnt == Learnt::After(after) { "first knew" } else { "did not know" };
            (after > *promised).then(|| {
                format!(
                    "{name} {verb} the common time of the wire {wire} {after} after both servers \
                     ran, and {promised} is promised"
                )
            })
        });
        let discarded = names.iter().zip(self.discarded).filter(|(_, it)| it[1] > 0);
        let discarded = discarded.map(|(name, [_, unsent])| {
            format!(
                "{name} discarded {unsent} frames of programs, because it had lost the common time \
                 of the wire {wire} by which its gates go"
            )
        });
        beyond.into_iter().chain(lost).chain(late).chain(discarded).collect()
    }

    /// Returns when both hosts knew the time.
    fn known(&self) -> Option<Nanos> {
        match self.learnt {
            [Learnt::After(one), Learnt::After(other)] => Some(one.max(other)),
            _ => None,
        }
    }

    /// Returns how many frames gates did not let pass before their host first knew the time.
    fn without(&self) -> u64 {
        self.discarded.iter().map(|[without, _]| without).sum()
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
        let columns =
            ["apart", "bound", "compared", "lost", "known after", "at most", "unsent before"];
        let columns = columns.map(right);
        let mut table = TextTable::new(&[&[("common time", Align::Left)][..], &columns].concat());
        for it in all {
            let PromisedTime { wire, bound, learnt, .. } = &it.promised;
            let lost: u64 = it.lost.iter().sum();
            let seen = if it.compared == 0 { "-".to_owned() } else { it.furthest.to_string() };
            let counts = [it.compared, lost].map(|count| count.to_string());
            let known = it.known().map_or("-".to_owned(), |known| known.to_string());
            let learning = vec![known, learnt.to_string(), it.without().to_string()];
            let times = vec![wire.clone(), seen, bound.to_string()];
            table.row([times, counts.to_vec(), learning].concat());
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
            "unsent_before": self.without(),
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
        let report = TimeReport { common, known: common, ..TimeReport::new(0, Nanos::ZERO) };
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
            let (learnt, lost, discarded) = ([Learnt::NotIn(Nanos(0)); 2], [0; 2], [[0; 2]; 2]);
            let furthest = Nanos(0);
            SeenTime { promised, furthest, compared, lost, learnt, discarded }.unmeasured()
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

    /// A host that boots again has forgotten the time, and its server counts anew.
    #[test]
    fn each_life_of_a_host_is_judged() {
        let life = |common, without, unsent| {
            let TimeRow { report, .. } = row(common);
            let report = TimeReport { without, unsent, ..report };
            [row(None), TimeRow { report, ..row(common) }].to_vec()
        };
        let mut outcome = Outcome::default();
        for times in [life(None, 4, 0), life(Some(2), 30, 2), life(Some(3), 500, 0)] {
            outcome.boot_again();
            outcome.times = times;
        }
        let lives = reports(&outcome, 0);
        assert_eq!(lives.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2, 2, 2]);
        assert_eq!(lost(&lives.concat()), 1);
        assert_eq!(discarded(&lives), [34, 502]);
        assert_eq!(reports(&outcome, 1).concat(), []);
    }

    #[test]
    fn the_server_says_when_it_first_knew_the_time() {
        let at = |at, common| TimeRow { at: Nanos(at), ..row(common) };
        let rows = [at(1, None), at(2, None), at(9, Some(3)), at(10, None)];
        let world = |at: Nanos| Nanos(10 * at.0);
        assert_eq!(learnt(&rows, Nanos(10), world), Learnt::After(Nanos(20)));
        assert_eq!(learnt(&rows[..2], Nanos(10), world), Learnt::NotIn(Nanos(10)));
        assert_eq!(learnt(&[], Nanos::FOREVER, world), Learnt::NotIn(Nanos::ZERO));
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
        let learning = |furthest: u64, lost: [u64; 2], second: Learnt, unsent: u64| {
            let (promised, furthest) = (promised.clone(), Nanos(furthest));
            let learnt = [Learnt::After(Nanos(0)), second];
            let discarded = [[1, unsent], [2, 0]];
            SeenTime { promised, furthest, compared: 3, lost, learnt, discarded }
        };
        let findings = |second, unsent| learning(10, [0, 0], second, unsent).findings();
        let seen =
            |furthest, lost| learning(furthest, lost, Learnt::After(Nanos(20)), 0).findings();
        assert_eq!(seen(10, [0, 0]), Vec::<String>::new());
        assert_eq!(findings(Learnt::NotIn(Nanos(20)), 0), Vec::<String>::new());
        let late = "drive did not know the common time of the wire wire 21 ns after both servers \
                    ran, and 20 ns is promised";
        assert_eq!(findings(Learnt::NotIn(Nanos(21)), 0), [late]);
        assert_eq!(
            findings(Learnt::After(Nanos(21)), 0),
            [late.replace("did not know", "first knew")]
        );
        let unsent = "station discarded 5 frames of programs, because it had lost the common time \
                      of the wire wire by which its gates go";
        assert_eq!(findings(Learnt::After(Nanos(20)), 5), [unsent]);
        assert_eq!(learning(10, [0, 0], Learnt::NotIn(Nanos(0)), 0).without(), 3);
        let beyond = "the common times of the wire wire were 11 ns apart, and 10 ns is promised";
        assert_eq!(seen(11, [0, 0]), [beyond]);
        let lost = "drive lost the common time of the wire wire, in 2 of its reports";
        assert_eq!(seen(10, [0, 2]), [lost]);
    }
}
