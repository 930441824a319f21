//! The reports of the last threads of chains, over the whole run.

use super::coverage::{Coverage, Watched, found, patience};
use super::{Outcome, RaisedAlarm, entry};
use crate::duration::human;
use crate::names::Names;
use crate::plan::chains::processes;
use crate::plan::{NetworkPlan, Plan};
use crate::table::{Columns, TableCell, time};
use diapason_abi::Nanos;
use diapason_contract::carried::Contract;
use diapason_pipe::measured::{ChainReport, HOPS};
use diapason_pipe::size::Bucket;
use diapason_system::{Hosts, System};

/// The measurements of one chain.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ChainRow {
    /// The place of its last process in the description.
    pub process: u64,
    /// The number of the sender, if several flows end at the process.
    pub source: u8,
    /// Messages at its end.
    pub messages: u64,
    pub lost: u64,
    /// Lost messages with numbers before that of the first message.
    pub lost_before: u64,
    /// Messages that newer ones stand for.
    pub replaced: u64,
    /// The longest from the device to the end, beyond the fastest way to the server.
    pub whole_max_ns: u64,
    /// The longest to behind each thread, counted in the same way.
    pub reached_max_ns: [u64; HOPS],
    coverage: Coverage,
}

/// Takes in what the process in place `process` measured.
pub(super) fn note(rows: &mut Vec<ChainRow>, process: u64, at: Nanos, report: &ChainReport) {
    let row = row(rows, process, report.source);
    row.coverage.note(at);
    if report.messages < row.messages {
        // Its program was started again and counts anew. The first message came long ago.
        row.lost_before = 0;
    } else if row.messages == 0 {
        row.lost_before = report.before.into();
    }
    (row.messages, row.lost) = (report.messages, report.lost.into());
    row.replaced = report.replaced;
    row.whole_max_ns = row.whole_max_ns.max(report.whole.0);
    for (longest, after) in row.reached_max_ns.iter_mut().zip(report.reached) {
        *longest = (*longest).max(after.0);
    }
}

fn row(rows: &mut Vec<ChainRow>, process: u64, source: u8) -> &mut ChainRow {
    let new = || ChainRow { process, source, ..ChainRow::default() };
    entry(rows, |row| (row.process, row.source) == (process, source), new)
}

/// The promise of `plan` about a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainPromise {
    pub name: String,
    /// The place of its last process.
    pub process: u64,
    /// The number of its sender, among those of the flows that end at the process.
    pub source: u8,
    /// The longest a message takes.
    pub bound_ns: u64,
    /// The part that a run cannot see: the fastest way to the server.
    pub least_ns: u64,
    /// Each of its threads, and how long after its arrival a message is behind it at most.
    pub reached: Vec<(String, u64)>,
    /// The number of times that a message goes between the machine and a device.
    pub crossings: u64,
    /// A run of so long without a message is an alarm.
    pub patience_ns: u64,
    /// The most messages of a flow, which nothing else holds to its contract.
    pub contract: Option<Bucket>,
    /// Messages may be lost until the first one comes, within `patience_ns`: the gates on the way
    /// are closed until their host knows the common time.
    pub begins_late: bool,
    /// Messages that were counted in earlier lives of the host, lost ones among them. The program
    /// at the end counts those as lost again.
    counted: u64,
}

impl ChainPromise {
    /// Returns the promise of every chain with a bill.
    #[must_use]
    pub fn of(system: &System, plan: &Plan) -> Vec<ChainPromise> {
        let promise = system.chains.iter().zip(&plan.chains).filter_map(|(chain, chained)| {
            let bill = chained.bill.as_ref().ok()?;
            let threads = bill.items.iter().filter(|item| item.thread.is_some());
            Some(ChainPromise {
                name: chain.name.clone(),
                process: (*processes(chain, system).last()?).into(),
                source: 0,
                bound_ns: bill.total.0,
                least_ns: bill.least.0,
                reached: threads.map(|item| (item.what.clone(), item.after.0)).collect(),
                crossings: 1 + u64::from(chain.to.is_some()),
                patience_ns: patience(system),
                contract: None,
                begins_late: false,
                counted: 0,
            })
        });
        promise.collect()
    }

    /// Returns the promise of every flow of `hosts` with a bill, with the number of the host in
    /// which it ends. Hosts have clocks of their own. A program at the end of a flow from another
    /// host sees only how much longer a message took than the fastest.
    #[must_use]
    pub fn of_flows(hosts: &Hosts, network: &NetworkPlan) -> Vec<(usize, ChainPromise)> {
        let each = hosts.flows.iter().zip(&network.flows).enumerate();
        let promise = each.filter_map(|(number, (flow, flowed))| {
            let (end, bill) = (flow.end(), flowed.bill.as_ref().ok()?);
            let found = hosts.hosts.iter().map(|host| patience(&host.system)).max();
            let gated = network.promised_after(hosts, flow);
            let patience_ns = found.unwrap_or_default() + gated.unwrap_or_default().0;
            let Contract { messages, per, burst, jitter } = flow.steady();
            let promise = ChainPromise {
                name: flow.name.clone(),
                process: end.process.into(),
                source: hosts.source(number),
                bound_ns: bill.between_pipes().longest.0,
                least_ns: 0,
                reached: Vec::new(),
                crossings: 0,
                patience_ns,
                contract: Some(Bucket { burst, messages: messages.into(), per, jitter }),
                begins_late: gated.is_some(),
                counted: 0,
            };
            Some((end.host, promise))
        });
        promise.collect()
    }

    /// Returns the report of its last process, if there is one.
    #[must_use]
    pub fn row<'o>(&self, outcome: &'o Outcome) -> Option<&'o ChainRow> {
        let own = (self.process, self.source);
        outcome.chains.iter().find(|row| (row.process, row.source) == own)
    }

    /// Makes this the promise of the next life of the host. A flow that had begun does not begin
    /// late again: the messages that came while the host was away are lost.
    pub(crate) fn after(&mut self, life: &Outcome) {
        let Some(row) = self.row(life) else { return };
        self.begins_late &= row.messages == 0;
        self.counted = self.counted.max(row.messages + row.lost);
    }

    /// Returns how many lost messages of a life are none: they came before the flow began, or were
    /// counted in an earlier life. A sender that goes on is at a larger number than those. One that
    /// begins anew may be, too, so at least one loss before the first message stays a loss.
    fn counted_before(&self, row: &ChainRow) -> u64 {
        match row.lost_before {
            before if self.begins_late => before,
            before if before > self.counted => self.counted,
            _ => 0,
        }
    }

    /// Returns the promises that a run contradicts. `slack_ns` more than the bound is borne for
    /// each way to or from devices that are not of the machine's own time.
    pub(super) fn alarms(
        &self,
        outcome: &Outcome,
        names: &Names,
        slack_ns: u64,
    ) -> Vec<RaisedAlarm> {
        let name = &self.name;
        let coverage = self.row(outcome).map(|row| row.coverage);
        let (of, process) = (name.as_str(), self.process);
        let found_ns = found(self.patience_ns);
        let measured = Watched { alarm: "chain-unmeasured", of, process, coverage, found_ns };
        let silent = measured.alarm(outcome, names);
        let Some(row) = self.row(outcome) else { return silent.into_iter().collect() };
        let slack = slack_ns.saturating_mul(self.crossings);
        // The measurement leaves out the fastest way there is.
        let most = |bound: u64| bound.saturating_sub(self.least_ns).saturating_add(slack);
        let late = |observed: u64, bound: u64, whom: &str| {
            let assumed = most(bound);
            let (took, promised) = (human(observed), human(assumed));
            let text = format!(
                "a message of chain {name} {whom} after {took}; at most {promised} was promised"
            );
            RaisedAlarm::above("chain-late", name, [observed, assumed], text)
        };
        let threads = self.reached.iter().zip(row.reached_max_ns);
        let threads = threads.filter_map(|((thread, bound), observed)| {
            late(observed, *bound, &format!("had passed {thread} only"))
        });
        let lost = row.lost - self.counted_before(row);
        let text = format!("{lost} messages of chain {name} were lost");
        let lost = RaisedAlarm::above("chain-loss", name, [lost, 0], text);
        let empty = self.empty(row, outcome).into_iter().chain(self.too_many(row, outcome));
        let whole = late(row.whole_max_ns, self.bound_ns, "was through only");
        silent.into_iter().chain(empty).chain(threads).chain(whole).chain(lost).collect()
    }

    /// More came than the contract of a flow allows.
    fn too_many(&self, row: &ChainRow, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (contract, time) = (self.contract?, outcome.end?.time_ns);
        let (came, most) = (row.messages, contract.most(Nanos(time)));
        let name = &self.name;
        let text = format!("{came} messages of {name} in {}; its contract has {most}", human(time));
        RaisedAlarm::above("chain-contract", name, [came, most], text)
    }

    /// Nothing at all came to the end: that none was late says nothing.
    fn empty(&self, row: &ChainRow, outcome: &Outcome) -> Option<RaisedAlarm> {
        let (name, time) = (&self.name, outcome.end?.time_ns);
        let text = format!("no message came to the end of chain {name} in {}", human(time));
        let is_empty = row.messages == 0 && time >= self.patience_ns;
        is_empty.then(|| RaisedAlarm::missing("chain-empty", name, text))
    }
}

/// One line of the table of chains: a message is behind a thread, or at the end.
pub(crate) struct Station<'a> {
    /// The name of the chain, in the first of its lines only.
    chain: &'a str,
    behind: &'a str,
    /// Messages at the end, lost ones, and replaced ones. Threads do not count them.
    counts: Option<[Option<u64>; 3]>,
    longest: Option<u64>,
    bound: u64,
}

impl ChainPromise {
    pub(crate) fn stations<'a>(
        &'a self,
        outcome: &'a Outcome,
    ) -> impl Iterator<Item = Station<'a>> {
        let row = self.row(outcome);
        let name = |place: usize| if place == 0 { self.name.as_str() } else { "" };
        let threads = self.reached.iter().enumerate().map(move |(place, (thread, bound))| {
            let longest = row.and_then(|row| row.reached_max_ns.get(place).copied());
            let (chain, behind) = (name(place), thread.as_str());
            Station { chain, behind, counts: None, longest, bound: *bound }
        });
        let counts = [row.map(|it| it.messages), row.map(|it| it.lost), row.map(|it| it.replaced)];
        let end = Station {
            chain: name(self.reached.len()),
            behind: "its end",
            counts: Some(counts),
            longest: row.map(|row| row.whole_max_ns),
            bound: self.bound_ns,
        };
        threads.chain([end])
    }
}

impl Station<'_> {
    pub(crate) fn columns<'a>() -> Columns<'static, Station<'a>> {
        let count = |at: usize| {
            move |it: &Station<'a>| {
                it.counts.map_or_else(|| TableCell::from(""), |counts| counts[at].into())
            }
        };
        Columns::<Station<'a>>::default()
            .left("chain", |it| it.chain)
            .left(("behind", "process"), |it| it.behind)
            .right("messages", count(0))
            .right("lost", count(1))
            .right("replaced", count(2))
            .json("bound_ns", |it| it.bound)
            .right(("longest", "longest_ns"), |it| it.longest.map(time))
            .right("bound", |it| time(it.bound))
    }
}

/// Returns a table of every chain: measurements beside promises; empty without chains.
pub(super) fn table(all: &[ChainPromise], outcome: &Outcome) -> String {
    Station::columns().table(all.iter().flat_map(|promise| promise.stations(outcome))).render()
}

impl ChainPromise {
    /// Returns the columns of whole chains.
    pub(crate) fn columns(outcome: &Outcome) -> Columns<'_, ChainPromise> {
        let seen =
            |value: fn(&ChainRow) -> u64| move |it: &ChainPromise| it.row(outcome).map(value);
        let threads = |it: &ChainPromise| {
            Station::columns().objects(it.stations(outcome).take(it.reached.len()))
        };
        Columns::<ChainPromise>::default()
            .left(("chain", "chain"), |it| it.name.clone())
            .json("bound_ns", |it| it.bound_ns)
            .json("least_ns", |it| it.least_ns)
            .right(("messages", "messages"), seen(|row| row.messages))
            .right(("lost", "lost"), seen(|row| row.lost))
            .json("lost_before", seen(|row| row.lost_before))
            .right(("replaced", "replaced"), seen(|row| row.replaced))
            .json("longest_ns", seen(|row| row.whole_max_ns))
            .json("threads", threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise() -> ChainPromise {
        let reached = vec![("reader".to_owned(), 6), ("display".to_owned(), 10)];
        let (bound_ns, least_ns, patience_ns) = (10, 1, 3_000);
        let name = "panel".into();
        let (process, source, crossings, contract, begins_late) = (3, 0, 1, None, false);
        ChainPromise {
            name,
            process,
            source,
            bound_ns,
            least_ns,
            reached,
            crossings,
            patience_ns,
            contract,
            begins_late,
            counted: 0,
        }
    }

    fn said(messages: u64, lost: u32, whole: u64, reached: [u64; 2]) -> Outcome {
        let mut outcome = Outcome::default();
        let [first, second] = reached.map(Nanos);
        let reached = [first, second, Nanos::ZERO, Nanos::ZERO];
        let (whole, replaced) = (Nanos(whole), 5);
        let before = 0;
        let report = ChainReport { source: 0, messages, lost, before, replaced, whole, reached };
        note(&mut outcome.chains, 3, Nanos(1), &report);
        outcome
    }

    #[test]
    fn what_holds_rings_nothing() {
        let outcome = said(7, 0, 9, [5, 9]);
        assert_eq!(promise().alarms(&outcome, &Names::default(), 0), []);
        let row = promise().row(&outcome).unwrap().clone();
        assert_eq!((row.messages, row.lost, row.replaced, row.whole_max_ns), (7, 0, 5, 9));
        assert_eq!(row.reached_max_ns, [5, 9, 0, 0]);
        assert!(table(&[promise()], &outcome).contains("display"));
    }

    #[test]
    fn each_sender_to_one_program_is_measured_by_itself() {
        let mut outcome = said(7, 0, 9, [5, 9]);
        let report = ChainReport { source: 1, messages: 3, ..ChainReport::default() };
        note(&mut outcome.chains, 3, Nanos(1), &report);
        let second = ChainPromise { source: 1, ..promise() };
        let came = |it: &ChainPromise| it.row(&outcome).map(|row| row.messages);
        assert_eq!([promise(), second].map(|it| came(&it)), [Some(7), Some(3)]);
    }

    #[test]
    fn a_chain_without_messages_is_not_measured() {
        let mut outcome = said(0, 0, 0, [0, 0]);
        let kinds = |outcome: &Outcome| -> Vec<&str> {
            let alarms = promise().alarms(outcome, &Names::default(), 0).into_iter();
            alarms.map(|alarm| alarm.name).collect()
        };
        let end = |time_ns| {
            super::super::sample::outcome().end.map(|end| super::super::RunEnd { time_ns, ..end })
        };
        outcome.end = end(2_999);
        assert_eq!(kinds(&outcome), [""; 0]);
        outcome.end = end(3_000);
        assert_eq!(kinds(&outcome), ["chain-empty"]);
    }

    /// Gates are closed until their host knows the time. Losses after the first message count.
    #[test]
    fn a_chain_that_begins_late_may_lose_what_comes_before_its_first_message() {
        let mut outcome = Outcome::default();
        let mut lost = |at, messages, before, lost| {
            let report = ChainReport { messages, lost, before, ..ChainReport::default() };
            note(&mut outcome.chains, 3, Nanos(at), &report);
            let promises = [ChainPromise { begins_late: true, ..promise() }, promise()];
            promises
                .map(|it| it.alarms(&outcome, &Names::default(), 0).first().map(|it| it.observed))
        };
        assert_eq!(lost(1, 0, 0, 0), [None, None]);
        assert_eq!(lost(2, 4, 900, 900), [None, Some(900)]);
        assert_eq!(lost(3, 9, 900, 900), [None, Some(900)]);
        assert_eq!(lost(4, 12, 900, 902), [Some(2), Some(902)]);
        // Its program was started again.
        assert_eq!(lost(5, 3, 1, 1), [Some(1), Some(1)]);
        assert_eq!(lost(6, 4, 1, 1), [Some(1), Some(1)]);
    }

    /// Reports come once a second, and a message may be lost between the first one and a report.
    #[test]
    fn a_loss_after_the_first_message_counts_in_the_first_report() {
        let mut outcome = Outcome::default();
        let (messages, lost, before) = (4, 903, 900);
        let report = ChainReport { messages, lost, before, ..ChainReport::default() };
        note(&mut outcome.chains, 3, Nanos(1), &report);
        let promise = ChainPromise { begins_late: true, ..promise() };
        let alarms = promise.alarms(&outcome, &Names::default(), 0);
        let found: Vec<_> = alarms.iter().map(|it| (it.name, it.observed)).collect();
        assert_eq!(found, [("chain-loss", 3)]);
    }

    #[test]
    fn a_host_that_boots_again_is_forgiven_no_loss_once_its_flow_had_begun() {
        let life = |messages, before| {
            let mut outcome = Outcome::default();
            let report = ChainReport { messages, lost: before, before, ..ChainReport::default() };
            note(&mut outcome.chains, 3, Nanos(1), &report);
            outcome
        };
        let mut promise = ChainPromise { begins_late: true, ..promise() };
        let mut lost = |life: &Outcome| {
            let alarms = promise.alarms(life, &Names::default(), 0);
            promise.after(life);
            alarms.first().map(|it| it.observed)
        };
        assert_eq!(
            [life(0, 0), life(7, 900), life(9, 927), life(5, 20)].map(|it| lost(&it)),
            [None, None, Some(20), Some(20)]
        );
        // The sender began anew, too, and lost as many as had been counted.
        assert_eq!(lost(&life(5, 936)), Some(936));
    }

    #[test]
    fn each_thread_is_held_to_its_own_bound() {
        let kinds = |outcome: &Outcome, slack| -> Vec<(&str, u64, u64)> {
            let alarms = promise().alarms(outcome, &Names::default(), slack).into_iter();
            alarms.map(|alarm| (alarm.name, alarm.observed, alarm.assumed)).collect()
        };
        let late = said(7, 2, 10, [6, 9]);
        let all = [("chain-late", 6, 5), ("chain-late", 10, 9), ("chain-loss", 2, 0)];
        assert_eq!(kinds(&late, 0), all);
        assert_eq!(kinds(&late, 1), all[2..]);
        let text = promise().alarms(&late, &Names::default(), 0)[0].text.clone();
        assert!(text.contains("had passed reader only after 6 ns; at most 5 ns"), "{text}");
    }
}
