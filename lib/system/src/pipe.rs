//! `[[pipe]]`: messages from a device to the thread that wants them.
//!
//! A pipe is declared once. Its buffer (a segment) and the semaphore its reader waits for follow
//! from it, and so do the rights of both ends: [`expand`] declares them as if they had been written
//! out, so that every other rule holds for them too.

use crate::declared::{
    Declared, DeclaredPipe, DeclaredProcess, DeclaredSegment, DeclaredUsb, Named,
};
use crate::diagnostics::{Problem, Report};
use crate::names::Names;
use crate::read;
use crate::source::At;
use crate::suggest::nearest;
use crate::system::{Pipe, SemaphoreKind};
use crate::table::{Raw, Table};
use diapason_abi::pipe::{BYTES, Contracts};

/// Most messages a second, and at once.
const RATE_MAX: u64 = 10_000_000;
const BURST_MAX: u64 = 100_000;
/// Longest time in a pipe's contract: 1000 s.
const TIME_MAX: u64 = 1_000_000_000_000;

pub(crate) fn pipe(raw: Raw<'_>, report: &mut Report) -> DeclaredPipe {
    let mut table = Table::new("[[pipe]]", "pipe", raw, report);
    let name = read::name(&mut table);
    let from = required(&mut table, "from", "the `[[usb]]` device its messages come from");
    let reader = required(&mut table, "reader", "the `[[process]]` that reads them");
    let channel = table.number("channel", 0..=255, ", of the device; 0 is the first");
    let rate = table.number("rate", 1..=RATE_MAX, ", messages a second");
    if rate.is_none() {
        table.missing("rate", "add `rate = 3000`: the most messages a second, in the long run");
    }
    let value = |number: Option<At<u64>>, else_: u64| number.map_or(else_, |number| number.value);
    let pipe = DeclaredPipe {
        channel: channel.unwrap_or_else(|| At::new(0, name.span.clone())),
        rate: value(rate, 1),
        burst: value(table.number("burst", 1..=BURST_MAX, ", messages at once"), 1),
        jitter_ns: value(table.duration("jitter", 0..=TIME_MAX), 0),
        work_ns: value(table.duration("work", 0..=TIME_MAX), 0),
        latency: table.duration("latency", 1..=TIME_MAX),
        name,
        from,
        reader,
    };
    table.report_unknown();
    pipe
}

fn required(table: &mut Table<'_, '_>, key: &'static str, what: &str) -> Option<At<String>> {
    let text = table.text(key, &format!("{key} = \"…\""));
    if table.get(key).is_none() {
        table.missing(key, &format!("add `{key} = \"…\"`: {what}"));
    }
    text
}

/// The name of the buffer of a channel, and that of its semaphore.
fn buffer(channel: u64) -> (String, String) {
    let buffer = format!("can{channel}");
    let ready = format!("{buffer}.ready");
    (buffer, ready)
}

/// Declare what the pipes need: buffers, semaphores, and that both ends use them; and tell the
/// server what comes.
pub(crate) fn expand(declared: &mut Declared) {
    tell(declared);
    for index in 0..declared.pipes.len() {
        let pipe = &declared.pipes[index];
        let span = pipe.channel.span.clone();
        let (buffer, ready) = buffer(pipe.channel.value);
        let names = [buffer, ready].map(|name| At::new(name, span.clone()));
        let server = server(declared, pipe);
        let reader = pipe.reader.as_ref().and_then(|reader| process(declared, &reader.value));
        for end in [server, reader].into_iter().flatten() {
            declared.processes[end].uses.extend(names.iter().cloned());
        }
        let [buffer, ready] = names;
        let segment = DeclaredSegment { size: BYTES, dma: false };
        declared.segments.push(Named { name: buffer, what: segment });
        declared.semaphores.push(Named { name: ready, what: SemaphoreKind::Counting(0) });
    }
}

/// Tell each server what the pipes of its channels carry at most, in its arguments: it measures
/// what comes.
fn tell(declared: &mut Declared) {
    for process in 0..declared.processes.len() {
        let mut contracts = Contracts::default();
        for pipe in &declared.pipes {
            if server(declared, pipe) == Some(process) {
                add(&mut contracts, pipe);
            }
        }
        let arguments = &mut declared.processes[process].arguments;
        *arguments = contracts.told_in(*arguments);
    }
}

fn add(contracts: &mut Contracts, pipe: &DeclaredPipe) {
    let channel = usize::try_from(pipe.channel.value).ok();
    let Some(rate) = channel.and_then(|channel| contracts.rates.get_mut(channel)) else { return };
    *rate = pipe.rate;
    // What may come late may come at once.
    let late = u128::from(pipe.jitter_ns) * u128::from(pipe.rate);
    let late = u64::try_from(late.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
    contracts.burst = contracts.burst.max(pipe.burst.saturating_add(late));
}

fn process(declared: &Declared, name: &str) -> Option<usize> {
    declared.processes.iter().position(|process| process.name.value == name)
}

fn device<'d>(declared: &'d Declared, pipe: &DeclaredPipe) -> Option<(usize, &'d DeclaredUsb)> {
    let from = pipe.from.as_ref()?;
    declared.usb.iter().enumerate().find(|(_, usb)| usb.name.value == from.value)
}

/// The process that drives the controller its device is plugged into.
fn server(declared: &Declared, pipe: &DeclaredPipe) -> Option<usize> {
    let on = &device(declared, pipe)?.1.on.as_ref()?.value;
    let drives = |process: &DeclaredProcess| process.uses.iter().any(|used| used.value == *on);
    declared.processes.iter().position(drives)
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, pipe) in declared.pipes.iter().enumerate() {
        source(declared, pipe, report);
        if let Some(reader) = &pipe.reader
            && crate::check::is_process(reader, names, report)
        {
            has_vcpu(declared, reader, report);
        }
        let same = |other: &&DeclaredPipe| {
            let (a, b) = (other.from.as_ref(), pipe.from.as_ref());
            a.map(|from| &from.value) == b.map(|from| &from.value)
                && other.channel.value == pipe.channel.value
        };
        if let Some(first) = declared.pipes[..index].iter().find(same) {
            let title = format!("channel {} has two pipes", pipe.channel.value);
            let problem =
                Problem::new(&pipe.channel.span, title, "give each a `channel` of its own");
            report.push(problem.with(&first.channel.span, "the first"));
        }
    }
}

fn source(declared: &Declared, pipe: &DeclaredPipe, report: &mut Report) {
    let Some(from) = &pipe.from else { return };
    let Some((_, usb)) = device(declared, pipe) else {
        let title = format!("no USB device is called `{}`", from.value);
        let known = declared.usb.iter().map(|usb| usb.name.value.as_str());
        let help = match nearest(&from.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `[[usb]]` with `name = \"{}\"`", from.value),
        };
        return report.push(Problem::new(&from.span, title, help));
    };
    let Some(model) = usb.model else { return };
    let channels = model.channels();
    if channels == 0 {
        let title = format!("`{}` has nothing that a pipe could carry", from.value);
        let help = "pipes come from `model = \"usb-can\"`; other devices are read otherwise";
        let problem = Problem::new(&from.span, title, help);
        return report.push(problem.with(&usb.name.span, format!("its model is {}", model.name())));
    }
    if pipe.channel.value >= channels {
        let title = format!("`{}` has no channel {}", from.value, pipe.channel.value);
        let help =
            format!("it has {channels}: write `channel = 0` to `channel = {}`", channels - 1);
        return report.push(Problem::new(&pipe.channel.span, title, help));
    }
    if server(declared, pipe).is_none() {
        let on = usb.on.as_ref().map_or("", |on| on.value.as_str());
        let title = format!("nobody serves `{}`", from.value);
        let help = format!("add `{on}` to the `uses` of the process that drives it");
        report.push(Problem::new(&from.span, title, help));
    }
}

/// Without a VCPU nothing is promised to the reader, and so nothing by the pipe.
fn has_vcpu(declared: &Declared, reader: &At<String>, report: &mut Report) {
    let index = process(declared, &reader.value);
    if index.is_some_and(|index| declared.processes[index].vcpu.is_none()) {
        let title = format!("`{}` reads a pipe and has no VCPU", reader.value);
        let help = "add `vcpu = \"…\"` to the process: without one no time is promised to it";
        report.push(Problem::new(&reader.span, title, help));
    }
}

/// The pipes, as far as they are whole.
pub(crate) fn pipes(declared: &Declared) -> Vec<Pipe> {
    let number = |index: usize| u16::try_from(index).ok();
    let whole = |pipe: &DeclaredPipe| {
        Some(Pipe {
            name: pipe.name.value.clone(),
            usb: device(declared, pipe)?.0,
            channel: u8::try_from(pipe.channel.value).ok()?,
            server: number(server(declared, pipe)?)?,
            reader: number(process(declared, &pipe.reader.as_ref()?.value)?)?,
            rate: pipe.rate,
            burst: pipe.burst,
            jitter_ns: pipe.jitter_ns,
            work_ns: pipe.work_ns,
            latency_ns: pipe.latency.as_ref().map(|latency| latency.value),
        })
    };
    declared.pipes.iter().filter_map(whole).collect()
}
