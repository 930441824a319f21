//! `[[chain]]`: the way of messages from a pipe through several threads, to a pipe to a device or
//! to the last thread.
//!
//! The reader of the pipe is the first thread; `[[chain.link]]` are the others in their order, each
//! with what hands messages over to it. Both ends of a hand-over may use its object without saying
//! so ([`expand`]).

use crate::carried::{ChainLink, ChainSpec, Handover, PipeDirection};
use crate::declared::{Declared, DeclaredChain, DeclaredLink};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::names::{Kind, Names};
use crate::source::At;
use crate::suggest::nearest;
use crate::system::SemaphoreKind;
use crate::table::{Raw, Table};
use diapason_abi::pipe::HOPS;

/// Longest time in a chain: 1000 s.
const TIME_MAX: u64 = 1_000_000_000_000;
/// Most messages between two threads.
const SLOTS_MAX: u64 = 1_000_000;

pub(crate) fn chain(raw: Raw<'_>, report: &mut Report) -> DeclaredChain {
    let mut table = Table::new("[[chain]]", "chain", raw, report);
    let name = keys::name(&mut table);
    let from = table.text("from", "from = \"brakes\"");
    let help = "add `from = \"…\"`: the `[[pipe]]` whose reader is its first thread";
    table.needs("from", help);
    let to = table.text("to", "to = \"relay\"");
    let latency = table.duration("latency", 1..=TIME_MAX);
    let links = table.list("link");
    if links.is_empty() {
        table.needs("link", "add `[[chain.link]]`: the thread that its reader hands over to");
    }
    table.report_unknown();
    let links = links.into_iter().map(|raw| link(raw, report)).collect();
    DeclaredChain { name, from, to, latency, links }
}

fn link(raw: Raw<'_>, report: &mut Report) -> DeclaredLink {
    let mut table = Table::new("[[chain.link]]", "link", raw, report);
    let place = table.place();
    let process = table.text("process", "process = \"control\"");
    table.needs("process", "add `process = \"…\"`: the `[[process]]` that is next");
    let by = table.text("by", "by = \"commands\"");
    let help = "add `by = \"…\"`: the mailbox, counting semaphore or segment that hands \
                messages over to it";
    table.needs("by", help);
    let every = table.duration("every", 1_000..=TIME_MAX);
    let slots = table.number("slots", 1..=SLOTS_MAX, ", messages that find room");
    let work = table.duration("work", 1..=TIME_MAX);
    table.report_unknown();
    DeclaredLink { place, process, by, every, slots, work_ns: work.map(|work| work.value) }
}

/// Both threads of a hand-over may use what it is by.
pub(crate) fn expand(declared: &mut Declared) {
    let mut grants: Vec<(usize, At<String>)> = Vec::new();
    for chain in &declared.chains {
        let mut before = chain.from.as_ref().and_then(|from| reader(declared, &from.value));
        for link in &chain.links {
            let own = link.process.as_ref().map(|name| name.value.as_str());
            let known = link.by.as_ref().filter(|by| object(declared, &by.value).is_some());
            if let Some(by) = known {
                let ends = [before, own].into_iter().flatten();
                let places = ends.filter_map(|end| declared.process(end));
                grants.extend(places.map(|place| (place, by.clone())));
            }
            before = own;
        }
    }
    for (place, by) in grants {
        let uses = &mut declared.processes[place].uses;
        if !uses.iter().any(|used| used.value == by.value) {
            uses.push(by);
        }
    }
}

fn reader<'d>(declared: &'d Declared, from: &str) -> Option<&'d str> {
    let (_, pipe) =
        declared.pipe(from).filter(|(_, pipe)| pipe.way == PipeDirection::FromDevice)?;
    Some(pipe.process.as_ref()?.value.as_str())
}

/// The object that hands messages over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Mailbox(u16),
    Counting,
    Segment,
}

fn object(declared: &Declared, name: &str) -> Option<Object> {
    let mailbox = declared.mailboxes.iter().find(|named| named.name.value == name);
    let semaphore = declared
        .semaphores
        .iter()
        .find(|named| named.name.value == name && matches!(named.what, SemaphoreKind::Counting(_)));
    let segment = declared.segments.iter().find(|named| named.name.value == name);
    let mailbox = mailbox.map(|named| Object::Mailbox(named.what.messages));
    let semaphore = semaphore.map(|_| Object::Counting);
    mailbox.or(semaphore).or(segment.map(|_| Object::Segment))
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, chain) in declared.chains.iter().enumerate() {
        let mut before = declared.chains[..index].iter();
        if let Some(first) = before.find(|other| other.name.value == chain.name.value) {
            let title = format!("the chain `{}` is declared twice", chain.name.value);
            let problem = Problem::new(&chain.name.span, title, "give each a name of its own");
            report.push(problem.with(&first.name.span, "first here"));
        }
        end(declared, chain.from.as_ref(), PipeDirection::FromDevice, report);
        end(declared, chain.to.as_ref(), PipeDirection::ToDevice, report);
        if let Some(extra) = chain.links.get(HOPS - 1) {
            let title = format!("{} threads in a chain, the most is {HOPS}", chain.links.len() + 1);
            let help = "let one thread do the work of two, or end the chain before it";
            report.push(Problem::new(&extra.place, title, help).label("the first too many"));
        }
        chain.links.iter().for_each(|link| of_link(declared, link, names, report));
        last(declared, chain, report);
        strangers(declared, chain, report);
    }
    once(declared, report);
}

/// Reports processes that use what hands messages over, and are no thread of the chain: they could
/// take messages, or add some.
fn strangers(declared: &Declared, chain: &DeclaredChain, report: &mut Report) {
    let mut before = chain.from.as_ref().and_then(|from| reader(declared, &from.value));
    for link in &chain.links {
        let own = link.process.as_ref().map(|name| name.value.as_str());
        let ends = [before, own];
        before = own;
        let known = link.by.as_ref().filter(|by| object(declared, &by.value).is_some());
        let Some(by) = known else { continue };
        for process in &declared.processes {
            let name = &process.name.value;
            let used = process.uses.iter().find(|used| used.value == by.value);
            let Some(used) = used.filter(|_| !ends.contains(&Some(name.as_str()))) else {
                continue;
            };
            let title = format!("`{name}` uses `{}`, which belongs to others", by.value);
            let problem =
                Problem::new(&used.span, title, "leave it out of `uses`, or hand over by another");
            report.push(problem.with(&by.span, "only the two threads of this link use it"));
        }
    }
}

/// A pipe at an end of a chain.
fn end(declared: &Declared, name: Option<&At<String>>, way: PipeDirection, report: &mut Report) {
    let Some(At { value: name, span }) = name else { return };
    let (wanted, key) = match way {
        PipeDirection::FromDevice => ("from", "from"),
        PipeDirection::ToDevice => ("to", "to"),
    };
    match declared.pipe(name) {
        Some((_, pipe)) if pipe.way == way => {}
        Some((_, pipe)) => {
            let title = format!("`{name}` is no pipe {wanted} a device");
            let help = format!("name a `[[pipe]]` that has `{key} = \"…\"`");
            report.push(Problem::new(span, title, help).with(&pipe.name.span, "this one"));
        }
        None => {
            let title = format!("no pipe is called `{name}`");
            let known = declared.pipes.iter().map(|pipe| pipe.name.value.as_str());
            let help = match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("declare it: `[[pipe]]` with `name = \"{name}\"`"),
            };
            report.push(Problem::new(span, title, help));
        }
    }
}

fn of_link(declared: &Declared, link: &DeclaredLink, names: &Names<'_>, report: &mut Report) {
    if let Some(name) = &link.process
        && names.is_process(name, report)
        && declared
            .process(&name.value)
            .is_some_and(|place| declared.processes[place].vcpu.is_none())
    {
        let title = format!("`{}` is in a chain and has no VCPU", name.value);
        let help = "add `vcpu = \"…\"` to the process: without one no time is promised to it";
        report.push(Problem::new(&name.span, title, help));
    }
    let Some(At { value: by, span }) = &link.by else { return };
    match object(declared, by) {
        None => report.push(Problem::new(span, not_handed(by, names), help_by(by, names))),
        Some(Object::Mailbox(0)) => {
            let title = format!("`{by}` has a server, and hands no messages over");
            let help = "name a mailbox without `server`, or count the call as a `[[section]]`";
            report.push(Problem::new(span, title, help));
        }
        Some(Object::Mailbox(_)) => {
            refuse(&link.every, "every", "a mailbox wakes its thread with each message", report);
            refuse(&link.slots, "slots", "the mailbox says how many it holds: `messages`", report);
        }
        Some(Object::Counting) => {
            refuse(&link.every, "every", "a semaphore wakes its thread with each message", report);
            if link.slots.is_none() {
                let title = format!("nothing says how many messages `{by}` may be behind");
                let help = "add `slots = 16`: the places of the ring that it counts";
                report.push(Problem::new(span, title, help).absence());
            }
        }
        Some(Object::Segment) => {
            refuse(&link.slots, "slots", "a newer value takes the place of the last one", report);
            if link.every.is_none() {
                let title = format!("nothing says how often the value in `{by}` is taken");
                let help = "add `every = \"10ms\"`: the period of the thread that takes it";
                report.push(Problem::new(span, title, help).absence());
            }
        }
    }
}

fn refuse(key: &Option<At<u64>>, word: &str, why: &str, report: &mut Report) {
    if let Some(At { span, .. }) = key {
        report.push(Problem::new(
            span,
            format!("`{word}` says nothing here"),
            format!("remove it: {why}"),
        ));
    }
}

fn not_handed(by: &str, names: &Names<'_>) -> String {
    match names.get(by).map(|meaning| meaning.kind) {
        Some(Kind::Semaphore) => format!("`{by}` is a mutex, which hands nothing over"),
        Some(kind) => format!("`{by}` is a {kind}, which hands nothing over"),
        None => format!("nothing named `{by}` is declared"),
    }
}

fn help_by(by: &str, names: &Names<'_>) -> String {
    let hands = |kind| matches!(kind, Kind::Mailbox | Kind::Semaphore | Kind::Segment);
    if names.get(by).is_some() {
        return "name a mailbox, a counting semaphore or a segment".to_owned();
    }
    match names.nearest(by, hands) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it, for example as `[[mailbox]]` with `name = \"{by}\"`"),
    }
}

/// The last thread writes the pipe that the chain ends with.
fn last(declared: &Declared, chain: &DeclaredChain, report: &mut Report) {
    let Some((to, (_, pipe))) =
        chain.to.as_ref().and_then(|to| Some((to, declared.pipe(&to.value)?)))
    else {
        return;
    };
    let last = chain.links.last().and_then(|link| link.process.as_ref());
    if let (Some(last), Some(writer)) = (last, &pipe.process)
        && pipe.way == PipeDirection::ToDevice
        && last.value != writer.value
    {
        let title =
            format!("`{}` is the last of the chain and does not write `{}`", last.value, to.value);
        let help = format!("add a `[[chain.link]]` for `{}`, or remove `to`", writer.value);
        report.push(Problem::new(&last.span, title, help).with(&writer.span, "its writer"));
    }
}

/// A thread has one place in one chain: what it does for another would delay the first.
fn once(declared: &Declared, report: &mut Report) {
    let mut seen: Vec<&At<String>> = Vec::new();
    for chain in &declared.chains {
        let first = chain.from.as_ref().and_then(|from| declared.pipe(&from.value));
        let first = first.filter(|(_, pipe)| pipe.way == PipeDirection::FromDevice);
        let first = first.and_then(|(_, pipe)| pipe.process.as_ref());
        let links = chain.links.iter().filter_map(|link| link.process.as_ref());
        for name in first.into_iter().chain(links) {
            if let Some(other) = seen.iter().find(|other| other.value == name.value) {
                let title = format!("`{}` has two places in chains", name.value);
                let help = "give each place a process of its own";
                report.push(Problem::new(&name.span, title, help).with(&other.span, "the first"));
            }
            seen.push(name);
        }
    }
}

/// Returns the chains, as far as they are whole.
pub(crate) fn chains(declared: &Declared) -> Vec<ChainSpec> {
    let number = |index: usize| u16::try_from(index).ok();
    let link = |link: &DeclaredLink| {
        let handover = match object(declared, &link.by.as_ref()?.value)? {
            Object::Mailbox(messages) => Handover::Mailbox { messages },
            Object::Counting => Handover::Semaphore { slots: link.slots.as_ref()?.value },
            Object::Segment => Handover::State { every_ns: link.every.as_ref()?.value },
        };
        let process = number(declared.process(&link.process.as_ref()?.value)?)?;
        let by = link.by.as_ref()?.value.clone();
        Some(ChainLink { process, by, handover, work_ns: link.work_ns })
    };
    let whole = |chain: &DeclaredChain| {
        let place = |name: &At<String>| number(declared.pipe(&name.value)?.0);
        Some(ChainSpec {
            name: chain.name.value.clone(),
            from: place(chain.from.as_ref()?)?,
            to: chain.to.as_ref().and_then(place),
            latency_ns: chain.latency.as_ref().map(|latency| latency.value),
            links: chain.links.iter().map(link).collect::<Option<_>>()?,
        })
    };
    declared.chains.iter().filter_map(whole).collect()
}
