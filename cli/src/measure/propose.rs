//! From what was counted to what a description should say.

use super::account::{Accounts, STARTED, Seen};
use super::apart::Apart;
use crate::names::thread;
use crate::outcome::ThreadRow;
use crate::session::{FinishedRun, Session};
use diapason_abi::Key;
use diapason_system::works::{apart_of_servers, parts_of_servers};
use diapason_system::{PipeDirection, PipeSpec, Revision, ServerSpec, System};
use std::collections::BTreeMap;

/// The counts of one run of a system, and what follows from them.
#[derive(Clone)]
pub struct UsageCounts {
    pub works: Vec<WorkCount>,
    pub threads: Vec<ThreadCount>,
    pub vcpus: Vec<VcpuCount>,
    /// Pipes that say less for a message than the work of their reader takes: name, and time.
    pub pipes: Vec<(String, u64)>,
}

/// One work, by all threads that do it.
#[derive(Clone)]
pub struct WorkCount {
    /// The work's name, if it is known, or its key.
    pub name: Result<String, u64>,
    pub seen: Seen,
    pub described_ns: Option<u64>,
    /// The shortest time in the description.
    pub best_ns: Option<u64>,
    pub proposed_ns: Option<u64>,
}

/// A thread, from one wait to the next.
#[derive(Clone)]
pub struct ThreadCount {
    pub process: String,
    pub thread: String,
    pub vcpu: Option<String>,
    pub seen: Seen,
}

/// One VCPU that has a budget.
#[derive(Clone)]
pub struct VcpuCount {
    pub name: String,
    pub period_ns: u64,
    /// The most that its threads used in any time as long as its period.
    pub most_ns: u64,
    /// How often a thread had work and no budget.
    pub waits: u64,
    /// The most that one job used, if its threads have jobs.
    pub job_ns: Option<u64>,
    pub budget_ns: u64,
    pub described_job_ns: Option<u64>,
    /// Nothing is proposed if its threads used all of its budget: they could have used more.
    pub proposed_ns: Option<u64>,
    pub proposed_job_ns: Option<u64>,
}

impl VcpuCount {
    /// Returns whether its threads used all of its budget in some period. The kernel is in the
    /// count, and not in the budget.
    #[must_use]
    pub const fn is_used_up(&self) -> bool {
        self.waits > 0 && self.most_ns >= self.budget_ns
    }
}

/// The changes of a description that are wanted.
pub struct Chosen {
    pub changes: Vec<Revision>,
    /// Changes with which the plan would promise less: they stay undone.
    pub refused: Vec<Revision>,
    /// The plan holds with the changes.
    pub holds: bool,
}

impl UsageCounts {
    /// Returns what a run says. `names` are those of works, by their keys.
    pub fn of(
        session: &Session,
        run: &FinishedRun,
        accounts: &Accounts,
        names: &BTreeMap<u64, String>,
        margin: u32,
    ) -> UsageCounts {
        let system = &session.system;
        let with_margin = |ns| rounded(u128::from(ns) * (100 + u128::from(margin)) / 100);
        let works = works(system, accounts, names, &with_margin);
        let threads = Threads { session, rows: &run.outcome.threads, accounts };
        let pipes = pipes(&threads, &with_margin);
        let vcpus = (0u16..).zip(&system.vcpus).filter_map(|(number, vcpu)| {
            let ServerSpec::Main { budget_ns, period_ns, job_ns, .. } = vcpu.server else {
                return None;
            };
            let row = run.outcome.vcpus.iter().find(|row| row.vcpu == u64::from(number));
            let waits = row.map_or(0, |row| row.waits);
            let job = threads.job(number);
            let most_ns = accounts.most(period_ns, STARTED, |it| threads.vcpu(it) == Some(number));
            let mut count = VcpuCount {
                name: vcpu.name.clone(),
                period_ns,
                most_ns,
                waits,
                job_ns: job,
                budget_ns,
                described_job_ns: job_ns,
                proposed_ns: None,
                proposed_job_ns: job.map(with_margin),
            };
            // A wake-up ends in the period in which it began, if the budget is enough for it.
            let turn = threads.longest(number).filter(|turn| *turn <= budget_ns).unwrap_or(0);
            let is_known = count.most_ns > 0 && !count.is_used_up();
            count.proposed_ns = is_known.then(|| with_margin(count.most_ns.max(turn)));
            Some(count)
        });
        UsageCounts { vcpus: vcpus.collect(), threads: threads.counts(), works, pipes }
    }

    /// Takes in what was counted on another host with the same description: the larger counts.
    pub fn join(&mut self, other: &UsageCounts) {
        for theirs in &other.works {
            match self.works.iter_mut().find(|work| work.name == theirs.name) {
                Some(work) => work.proposed_ns = work.proposed_ns.max(theirs.proposed_ns),
                None => self.works.push(theirs.clone()),
            }
        }
        for theirs in &other.vcpus {
            let Some(vcpu) = self.vcpus.iter_mut().find(|it| it.name == theirs.name) else {
                continue;
            };
            // If one of them used its budget up, nothing is known about what both need.
            let both = vcpu.proposed_ns.is_some() && theirs.proposed_ns.is_some();
            vcpu.proposed_ns = vcpu.proposed_ns.max(theirs.proposed_ns).filter(|_| both);
            vcpu.proposed_job_ns = vcpu.proposed_job_ns.max(theirs.proposed_job_ns);
        }
        for (name, ns) in &other.pipes {
            match self.pipes.iter_mut().find(|(pipe, _)| pipe == name) {
                Some((_, most)) => *most = (*most).max(*ns),
                None => self.pipes.push((name.clone(), *ns)),
            }
        }
    }
}

/// Returns a time as people would write it: two digits, and at least a microsecond.
fn rounded(ns: u128) -> u64 {
    let mut unit = 1_000;
    while ns > 99 * unit {
        unit *= 10;
    }
    u64::try_from(ns.div_ceil(unit).max(1) * unit).unwrap_or(u64::MAX)
}

fn works(
    system: &System,
    accounts: &Accounts,
    names: &BTreeMap<u64, String>,
    with_margin: &impl Fn(u64) -> u64,
) -> Vec<WorkCount> {
    let mut seen: BTreeMap<u64, Seen> = BTreeMap::new();
    for ((key, _), by_one) in &accounts.works {
        seen.entry(*key).or_default().add(by_one);
    }
    let count = |(key, seen): (u64, Seen)| {
        let name = names.get(&key).cloned().ok_or(key);
        let described = |name: &String| system.works.iter().find(|work| work.name == *name);
        let work = name.as_ref().ok().and_then(described);
        let (described_ns, best_ns) = (work.map(|it| it.worst_ns), work.map(|it| it.best_ns));
        let proposed_ns = name.is_ok().then(|| with_margin(seen.longest_ns));
        WorkCount { name, seen, described_ns, best_ns, proposed_ns }
    };
    let mut works: Vec<WorkCount> = seen.into_iter().map(count).collect();
    for work in &system.works {
        if !works.iter().any(|seen| seen.name.as_ref() == Ok(&work.name)) {
            works.push(WorkCount {
                name: Ok(work.name.clone()),
                seen: Seen::default(),
                described_ns: Some(work.worst_ns),
                best_ns: Some(work.best_ns),
                proposed_ns: None,
            });
        }
    }
    let told = apart_from_wakeups(&mut works, accounts, with_margin);
    let is_part =
        |work: &WorkCount| parts_of_servers().find(|part| work.name.as_deref() == Ok(part));
    works.retain(|work| is_part(work).is_none_or(|part| told.contains(&part)));
    works.sort_by(|a, b| a.name.cmp(&b.name));
    works
}

/// Proposes what a wake-up takes without its messages, and each message, where the description
/// has both works and both were seen. Returns the works of messages of which that is known.
fn apart_from_wakeups(
    works: &mut [WorkCount],
    accounts: &Accounts,
    with_margin: &impl Fn(u64) -> u64,
) -> Vec<&'static str> {
    let mut told = Vec::new();
    for (part, whole) in apart_of_servers() {
        let place = |works: &[WorkCount], name: &str| {
            let described = |it: &WorkCount| it.name.as_deref() == Ok(name);
            works.iter().position(described).filter(|at| works[*at].described_ns.is_some())
        };
        let Some(places) = place(works, part).zip(place(works, whole)) else { continue };
        let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
        let key = Key::new(whole).0;
        let threads = accounts.by_messages.iter().filter(|((work, _), _)| *work == key);
        for (messages, ns) in threads.flat_map(|(_, by_messages)| by_messages) {
            let most = longest.entry(*messages).or_default();
            *most = (*ns).max(*most);
        }
        let Some(Apart { wakeup_ns, message_ns }) = Apart::of(&longest) else { continue };
        let messages = &mut works[places.0];
        messages.seen.longest_ns = message_ns;
        messages.seen.total_ns = message_ns.saturating_mul(messages.seen.runs);
        messages.proposed_ns = Some(with_margin(message_ns));
        works[places.1].proposed_ns = Some(with_margin(wakeup_ns));
        told.push(part);
    }
    told
}

/// Returns the pipes that need a longer `work`, with it: the longest work of the thread that reads,
/// or all that it does when it is woken if it names no work.
fn pipes(threads: &Threads<'_>, with_margin: &impl Fn(u64) -> u64) -> Vec<(String, u64)> {
    let Accounts { works, turns, .. } = threads.accounts;
    let longer = |pipe: &PipeSpec| {
        let reader = threads.first_of(pipe.process()?);
        let named = works.iter().filter(|((_, thread), _)| *thread == reader);
        let named = named.map(|(_, seen)| seen.longest_ns).max();
        let longest = named.or_else(|| Some(turns.get(&reader)?.longest_ns))?;
        Some((pipe.name.clone(), with_margin(longest)))
            .filter(|(_, work)| pipe.work_ns.is_none_or(|said| *work > said))
    };
    let read = |pipe: &&PipeSpec| pipe.way == PipeDirection::FromDevice;
    threads.session.system.pipes.iter().filter(read).filter_map(longer).collect()
}

/// The threads of a run, by the numbers that the kernel gives them: processes have theirs one after
/// the other.
struct Threads<'a> {
    session: &'a Session,
    rows: &'a [ThreadRow],
    accounts: &'a Accounts,
}

impl Threads<'_> {
    /// Returns the first thread of a process.
    fn first_of(&self, process: u16) -> u16 {
        let before = &self.session.system.processes[..usize::from(process)];
        before.iter().map(|process| process.threads).sum()
    }

    /// Returns the process and the slot of a thread.
    fn place(&self, number: u16) -> Option<(u64, u64)> {
        let count = u16::try_from(self.session.system.processes.len()).ok()?;
        let process = (0..count).rev().find(|process| self.first_of(*process) <= number)?;
        Some((process.into(), u64::from(number - self.first_of(process))))
    }

    /// Returns the VCPU of a thread: that of its process, unless it was created on another.
    fn vcpu(&self, number: u16) -> Option<u16> {
        let (process, _) = self.place(number)?;
        let own = self.session.system.processes[usize::try_from(process).ok()?].vcpu;
        self.accounts.places.get(&number).copied().or(own)
    }

    /// Returns the most that one job on a VCPU used.
    fn job(&self, vcpu: u16) -> Option<u64> {
        let costs = self.rows.iter().filter(|row| row.jobs > 0).filter_map(|row| row.cost);
        let own = costs.filter(|cost| cost.vcpu == u64::from(vcpu)).map(|cost| cost.most_ns);
        own.max().filter(|most| *most > 0)
    }

    /// Returns the most that a thread on a VCPU used from one wait to the next.
    fn longest(&self, vcpu: u16) -> Option<u64> {
        let own = self.accounts.turns.iter().filter(|(it, _)| self.vcpu(**it) == Some(vcpu));
        own.map(|(_, seen)| seen.longest_ns).max()
    }

    fn counts(&self) -> Vec<ThreadCount> {
        let names = &self.session.names;
        let count = |(number, seen): (&u16, &Seen)| {
            let (process, slot) = self.place(*number)?;
            let is = |row: &&ThreadRow| (row.process, row.slot) == (process, slot);
            let name = self.rows.iter().find(is).map_or(0, |row| row.name);
            Some(ThreadCount {
                process: names.process(process),
                thread: thread(name, slot),
                vcpu: self.vcpu(*number).map(|vcpu| names.vcpu(vcpu.into(), None)),
                seen: *seen,
            })
        };
        self.accounts.turns.iter().filter_map(count).collect()
    }
}

/// Returns the changes that a description should have. `judge` counts what the plan finds wrong
/// with changes; it has no answer if they make no sense. The times of works are what was counted,
/// and always changed. A budget becomes the smallest of those from what is proposed to what is
/// described with which the plan finds no more wrong.
pub fn choose(measured: &UsageCounts, judge: impl Fn(&[Revision]) -> Option<usize>) -> Chosen {
    let (mut changes, mut refused) = (times(measured), Vec::new());
    let mut wrong = judge(&changes);
    for (name, from, to) in budgets(measured) {
        let mut with = |ns: u64| {
            changes.push(revision("vcpu", name, "budget", ns));
            let found = judge(&changes);
            changes.pop();
            found.filter(|now| wrong.is_none_or(|before| *now <= before))
        };
        let least = least(from, to, |ns| with(ns).is_some());
        match least.map(|ns| (ns, with(ns))) {
            Some((ns, now)) if ns != to => {
                changes.push(revision("vcpu", name, "budget", ns));
                wrong = now;
            }
            _ => refused.push(revision("vcpu", name, "budget", from)),
        }
    }
    for job in jobs(measured) {
        changes.push(job);
        match (judge(&changes), wrong) {
            (Some(now), before) if before.is_none_or(|before| now <= before) => wrong = Some(now),
            _ => refused.extend(changes.pop()),
        }
    }
    Chosen { changes, refused, holds: wrong == Some(0) }
}

fn revision(list: &'static str, name: &str, key: &'static str, ns: u64) -> Revision {
    let value = match ns {
        ns if ns.is_multiple_of(1_000_000) => format!("\"{}ms\"", ns / 1_000_000),
        ns => format!("\"{}us\"", ns.div_ceil(1_000)),
    };
    Revision { list, name: name.to_owned(), key, value }
}

fn times(measured: &UsageCounts) -> Vec<Revision> {
    let works = measured.works.iter().flat_map(|work| {
        let changed = work.proposed_ns.filter(|proposed| work.described_ns != Some(*proposed));
        let named = work.name.as_deref().ok().zip(changed);
        let worst = named.map(|(name, proposed)| revision("work", name, "worst", proposed));
        // The shortest time of a work is no longer than its longest.
        let best = named.filter(|(_, proposed)| work.best_ns.is_some_and(|best| best > *proposed));
        [worst, best.map(|(name, proposed)| revision("work", name, "best", proposed))]
    });
    let works = works.flatten();
    let pipes = measured.pipes.iter().map(|(name, ns)| revision("pipe", name, "work", *ns));
    works.chain(pipes).collect()
}

/// Returns the VCPUs whose budget may change: the name, what is proposed, and what is described.
fn budgets(measured: &UsageCounts) -> impl Iterator<Item = (&str, u64, u64)> {
    let budget = |vcpu: &'_ VcpuCount| Some((vcpu.proposed_ns?, vcpu.budget_ns));
    let all = measured.vcpus.iter().filter_map(move |vcpu| Some((vcpu, budget(vcpu)?)));
    all.map(|(vcpu, (from, to))| (&*vcpu.name, from, to)).filter(|(_, from, to)| from != to)
}

fn jobs(measured: &UsageCounts) -> impl Iterator<Item = Revision> {
    let other = |vcpu: &&VcpuCount| vcpu.described_job_ns != vcpu.proposed_job_ns;
    let jobs = measured.vcpus.iter().filter(other);
    jobs.filter_map(|vcpu| Some(revision("vcpu", &vcpu.name, "job", vcpu.proposed_job_ns?)))
}

/// Returns the smallest time that is good, of those from one to another in steps as people write
/// them. Every time is taken to be good that is longer than a good one.
fn least(from: u64, to: u64, is_good: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut is_good = is_good;
    if from > to || is_good(from) {
        return is_good(from).then_some(from);
    }
    if !is_good(to) {
        return None;
    }
    let (mut bad, mut good) = (from, to);
    while good - bad > 1 {
        let middle = rounded(u128::from(bad + (good - bad) / 2));
        if middle >= good || middle <= bad {
            break;
        }
        if is_good(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(name: &str, budget_ns: u64, proposed_ns: Option<u64>) -> VcpuCount {
        VcpuCount {
            name: name.into(),
            period_ns: 10_000_000,
            most_ns: 1,
            waits: 0,
            job_ns: None,
            budget_ns,
            described_job_ns: None,
            proposed_ns,
            proposed_job_ns: None,
        }
    }

    fn measured(vcpus: Vec<VcpuCount>) -> UsageCounts {
        let name = Ok("a".to_owned());
        let (described_ns, best_ns, proposed_ns) = (Some(40_000), Some(12_000), Some(9_000));
        let works =
            vec![WorkCount { name, seen: Seen::default(), described_ns, best_ns, proposed_ns }];
        UsageCounts { works, threads: Vec::new(), vcpus, pipes: vec![("p".into(), 1_000_000)] }
    }

    fn value(change: &Revision) -> (&str, &str) {
        (&change.name, &change.value)
    }

    #[test]
    fn times_are_written_with_two_digits() {
        let of = [1, 1_000, 1_001, 99_000, 99_001, 410_000, 411_000, 12_345_678].map(rounded);
        let expected = [1_000, 1_000, 2_000, 99_000, 100_000, 410_000, 420_000, 13_000_000];
        assert_eq!(of, expected);
    }

    #[test]
    fn a_budget_is_the_smallest_that_holds() {
        let all = [vcpu("v", 100_000, Some(13_000)), vcpu("w", 50_000, Some(70_000))];
        // `v` needs 41 us, whatever was seen, and no more than 60 us may be given to `w`.
        let us = |changes: &[Revision], name: &str| {
            let change = changes.iter().rev().find(|change| change.name == name)?;
            change.value.trim_matches('"').strip_suffix("us")?.parse::<u64>().ok()
        };
        let judge = |changes: &[Revision]| {
            let too_small = us(changes, "v").is_some_and(|us| us < 41);
            let too_large = us(changes, "w").is_some_and(|us| us > 60);
            Some(usize::from(too_small) + usize::from(too_large))
        };
        let chosen = choose(&measured(all.into()), judge);
        let expected = [("a", "\"9us\""), ("a", "\"9us\""), ("p", "\"1ms\""), ("v", "\"41us\"")];
        assert_eq!(chosen.changes.iter().map(value).collect::<Vec<_>>(), expected);
        assert_eq!(chosen.refused.iter().map(value).collect::<Vec<_>>(), [("w", "\"70us\"")]);
        assert!(chosen.holds);
    }

    #[test]
    fn hosts_with_one_description_get_what_the_busiest_needs() {
        let with = |used: [Option<u64>; 2], work: u64| {
            let [first, second] = used;
            let mut of = measured(vec![vcpu("v", 9_000, first), vcpu("w", 9_000, second)]);
            (of.works[0].proposed_ns, of.pipes[0].1) = (Some(work), work);
            of
        };
        let mut both = with([Some(3_000), None], 7_000);
        let mut other = with([Some(5_000), Some(2_000)], 8_000);
        other.works[0].name = Ok("b".into());
        both.join(&other);
        let proposed: Vec<Option<u64>> = both.vcpus.iter().map(|it| it.proposed_ns).collect();
        assert_eq!(proposed, [Some(5_000), None], "what was used up is not known");
        let works: Vec<Option<u64>> = both.works.iter().map(|it| it.proposed_ns).collect();
        assert_eq!((works, both.pipes[0].1), (vec![Some(7_000), Some(8_000)], 8_000));
        both.join(&with([Some(1), Some(1)], 9_000));
        assert_eq!(both.works[0].proposed_ns, Some(9_000));
    }

    #[test]
    fn times_of_works_change_even_if_the_plan_fails_then() {
        let chosen = choose(&measured(vec![vcpu("v", 9_000, Some(4_000))]), |_| Some(1));
        assert!(!chosen.holds);
        assert_eq!(chosen.changes.len(), 4);
        let chosen = choose(&measured(vec![vcpu("v", 9_000, None)]), |_| None);
        assert!(!chosen.holds && chosen.changes.len() == 3);
    }
}
