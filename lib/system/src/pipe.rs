//! `[[pipe]]`: messages between a device and the thread that reads or writes them.
//!
//! A pipe is declared once. Its buffer (a segment) and the semaphore its reader waits for follow
//! from it, and so do the rights of both ends: [`expand`] declares them as if they had been written
//! out, so that every other rule holds for them too. The reader of a pipe may be on another core
//! than the server: it looks for messages by itself, and nobody wakes it. A pipe to a device has,
//! besides, the buffer of what goes out, that of reports, and a mailbox; and the server is told
//! that its channel has a client.

use crate::carried::{PipeDirection, PipeEnd, PipeSpec};
use crate::declared::{Declared, DeclaredPipe, DeclaredSegment, DeclaredUsb, Named};
use crate::diagnostics::{Problem, Report};
use crate::keys::{self, required};
use crate::mailbox::DeclaredMailbox;
use crate::names::Names;
use crate::plugged::UsbModel;
use crate::shorthand;
use crate::source::At;
use crate::sources;
use crate::suggest::nearest;
use crate::system::SemaphoreKind;
use crate::table::{Raw, Table};
use crate::usb;
use diapason_abi::pipe::{BYTES, OUT_BYTES, REPORT_BYTES, REQUESTS};
use diapason_contract::can::{self, FD_BYTES, FD_OUT_BYTES};
use diapason_contract::carried::PER_MAX;
use diapason_contract::source::{MessageForm, PipeSource, SharedPlaces};

/// Most messages a second, and at once.
pub(crate) const RATE_MAX: u64 = 10_000_000;
pub(crate) const BURST_MAX: u64 = 100_000;
/// Most bytes of a message.
const BYTES_MAX: u64 = 1 << 20;
/// Longest time in a pipe's contract: 1000 s.
const TIME_MAX: u64 = 1_000_000_000_000;

pub(crate) fn pipe(raw: Raw<'_>, report: &mut Report) -> DeclaredPipe {
    let mut table = Table::new("[[pipe]]", "pipe", raw, report);
    let name = keys::name(&mut table);
    let way = if table.has("to") { PipeDirection::ToDevice } else { PipeDirection::FromDevice };
    let Words { device, process, ends, .. } = words(way);
    let usb = required(&mut table, device, ends[0]);
    let process = required(&mut table, process, ends[1]);
    let channel = table.number("channel", 0..=255, ", of the device; 0 is the first");
    let rate = table.number("rate", 1..=RATE_MAX, ", messages a second");
    let period = table.duration("period", 1..=PER_MAX.0);
    // A key whose value is out of range is reported as that, and is not missing.
    let mut unsaid = vec!["period", "bytes", "endpoint"];
    unsaid.retain(|key| !table.has(key));
    if unsaid.contains(&"period") {
        table.needs("rate", "add `rate = 3000`: the most messages a second, in the long run");
    } else if let Some(rate) = &rate {
        let help = "remove one of the two: both say how often messages come";
        table.report.push(Problem::new(&rate.span, "a pipe with `rate` and `period`", help));
    }
    let bytes = table.number("bytes", 1..=BYTES_MAX, " of a message, at most");
    let stamp = table.number("stamp", 0..=BYTES_MAX, ", the place of its time in a message");
    let endpoint = table.number("endpoint", 1..=15, ", of the device");
    let value = |number: Option<At<u64>>, else_: u64| number.map_or(else_, |number| number.value);
    let pipe = DeclaredPipe {
        channel: channel.unwrap_or_else(|| At::new(0, name.span.clone())),
        rate: period.as_ref().map_or(value(rate, 1), |it| PER_MAX.0.div_ceil(it.value)),
        period,
        bytes,
        stamp,
        endpoint,
        burst: value(table.number("burst", 1..=BURST_MAX, ", messages at once"), 1),
        jitter_ns: value(table.duration("jitter", 0..=TIME_MAX), 0),
        work_ns: table.duration("work", 1..=TIME_MAX).map(|work| work.value),
        latency: table.duration("latency", 1..=TIME_MAX),
        name,
        way,
        usb,
        process,
        beyond: None,
        unsaid,
    };
    table.report_unknown();
    pipe
}

/// The words for a direction.
struct Words {
    /// The keys of both ends.
    device: &'static str,
    process: &'static str,
    /// The words for the ends.
    ends: [&'static str; 2],
    does: &'static str,
}

const fn words(way: PipeDirection) -> Words {
    match way {
        PipeDirection::FromDevice => Words {
            device: "from",
            process: "reader",
            ends: [
                "the `[[usb]]` device its messages come from (or `to`, the one they go to)",
                "the `[[process]]` that reads them",
            ],
            does: "reads",
        },
        PipeDirection::ToDevice => Words {
            device: "to",
            process: "writer",
            ends: ["the `[[usb]]` device its messages go to", "the `[[process]]` that writes them"],
            does: "writes",
        },
    }
}

/// Declares what the pipes need: buffers, semaphores, mailboxes, and that both ends use them.
pub(crate) fn expand(declared: &mut Declared) {
    let (mut expanded, mut asks) = (Vec::new(), Vec::new());
    for index in 0..declared.pipes.len() {
        let pipe = &declared.pipes[index];
        let (way, channel) = (pipe.way, pipe.channel.clone());
        let server = declared.server_of(pipe.usb.as_ref());
        let end = pipe.process.as_ref().and_then(|name| declared.process(&name.value));
        let number = number(declared, pipe);
        // A second pipe of a channel is reported by `check`, and brings nothing.
        if number.is_some() && expanded.contains(&number) {
            continue;
        }
        expanded.push(number);
        let known = number.and_then(can::names);
        let plug = pipe.usb.as_ref().and_then(|usb| declared.plug(&usb.value));
        let fd = plug.zip(number).is_some_and(|((_, plug), number)| usb::has_fd(plug, number));
        let (bytes, out_bytes) = if fd { (FD_BYTES, FD_OUT_BYTES) } else { (BYTES, OUT_BYTES) };
        let source = number.and_then(PipeSource::numbered);
        let Some((ring, bytes, ready)) = (match (known, source) {
            (Some(known), _) => Some((known.pipes(fd).0, bytes, known.ready)),
            (None, Some(source)) => Some((source.pipe.0, source.pipe.1, source.ready)),
            // There is no such channel, which is reported by `check`.
            (None, None) => None,
        }) else {
            continue;
        };
        let is_far = declared.crosses(&declared.pipes[index]);
        let mut names: Vec<At<String>> = Vec::new();
        let mut named = |name: &str| {
            let name = At::new(name.to_owned(), channel.span.clone());
            names.push(name.clone());
            name
        };
        let segment =
            |name, size| Named { name, what: DeclaredSegment { size, dma: false, common: false } };
        declared.segments.push(segment(named(ring), bytes));
        for (name, size, dma) in source.map(|it| shared(it.form)).unwrap_or_default() {
            let what = DeclaredSegment { size, dma, common: false };
            declared.segments.push(Named { name: named(name), what });
        }
        let asked = source.and_then(|source| source.home.asked);
        for semaphore in [Some(ready), asked].into_iter().flatten() {
            let name = named(semaphore);
            // The pipes from and to a network device ask by one semaphore.
            if asks.contains(&Some(semaphore)) {
                continue;
            }
            declared.semaphores.push(Named { name, what: SemaphoreKind::Counting(0) });
        }
        if let Some(known) = known.filter(|_| way == PipeDirection::ToDevice) {
            declared.segments.push(segment(named(known.pipes(fd).1), out_bytes));
            declared.segments.push(segment(named(known.reports), REPORT_BYTES));
            declared.mailboxes.push(Named {
                name: named(known.requests),
                what: DeclaredMailbox::plain(REQUESTS),
            });
        }
        let is_shared = |name: &str| asks.iter().flatten().any(|asked| *asked == name);
        for process in [server, end].into_iter().flatten() {
            // A reader on another core takes no semaphore. The server gives it all the same.
            let untold = is_far && Some(process) == end;
            let own = names.iter().filter(|name| !untold || name.value != ready);
            let uses = &mut declared.processes[process].uses;
            let known = |name: &str| is_shared(name) && uses.iter().any(|it| it.value == name);
            let own: Vec<_> = own.filter(|name| !known(&name.value)).cloned().collect();
            uses.extend(own);
        }
        asks.push(asked);
    }
}

/// Returns the segments that the ends of a pipe with such messages share besides its buffer: the
/// name and the bytes of each, and whether it is for devices, too.
fn shared(form: MessageForm) -> Vec<(&'static str, u64, bool)> {
    let places = form.places().map(|SharedPlaces { data, returned }| {
        [(returned.0, returned.1, false), (data.0, data.1, true)]
    });
    let written = match form {
        MessageForm::Written((writes, bytes)) => Some((writes, bytes, false)),
        _ => None,
    };
    places.into_iter().flatten().chain(written).collect()
}

/// Returns the number of the channel of a pipe among those of the host: of a device that is no CAN
/// interface, the number of its source or sink.
pub(crate) fn number(declared: &Declared, pipe: &DeclaredPipe) -> Option<usize> {
    let (_, usb) = declared.plug(&pipe.usb.as_ref()?.value)?;
    let channel = pipe.channel.value;
    if usb.model.is_some_and(|model| model.source(pipe.way).is_some()) {
        return usb.source(pipe.way).map(|(number, _)| number).filter(|_| channel == 0);
    }
    let channel = usize::try_from(channel).ok().filter(|it| *it < usb::channels(usb))?;
    Some(usb.first_channel + channel)
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, pipe) in declared.pipes.iter().enumerate() {
        source(declared, pipe.usb.as_ref(), &pipe.channel, report);
        sources::check(declared, pipe, report);
        if let (Some(process), None) = (&pipe.process, &pipe.beyond)
            && names.is_process(process, report)
        {
            has_vcpu(declared, pipe.way, process, report);
        }
        let same = |other: &&DeclaredPipe| {
            let (a, b) = (other.usb.as_ref(), pipe.usb.as_ref());
            a.map(|usb| &usb.value) == b.map(|usb| &usb.value)
                && other.channel.value == pipe.channel.value
                && number(declared, other) == number(declared, pipe)
        };
        if let Some(first) = declared.pipes[..index].iter().find(same) {
            let exclusive = sources::of(declared, pipe).is_some();
            let (title, help) = match &pipe.usb {
                Some(usb) if exclusive => {
                    let title =
                        format!("`{}` has two pipes, and its endpoint carries one", usb.value);
                    (title, "keep one, and let its reader pass messages on: see `[[chain]]`")
                }
                _ => {
                    let title = format!("channel {} has two pipes", pipe.channel.value);
                    (title, "give each a `channel` of its own")
                }
            };
            let problem = Problem::new(&pipe.channel.span, title, help);
            report.push(problem.with(&first.channel.span, "the first"));
        }
    }
}

/// Checks that somebody serves a device of this name, with this channel.
pub(crate) fn source(
    declared: &Declared,
    from: Option<&At<String>>,
    channel: &At<u64>,
    report: &mut Report,
) {
    let Some(from) = from else { return };
    let Some((_, usb)) = declared.plug(&from.value) else {
        let title = format!("no USB device is called `{}`", from.value);
        let known = declared.usb.iter().map(|usb| usb.name.value.as_str());
        let help = match nearest(&from.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `[[usb]]` with `name = \"{}\"`", from.value),
        };
        return report.push(Problem::new(&from.span, title, help));
    };
    let Some(model) = usb.model else { return };
    let channels = match model.is_can() {
        false => model.carries().into(),
        true => usb::channels(usb) as u64,
    };
    if channels == 0 {
        let title = format!("`{}` has no channel that a pipe could carry", from.value);
        let models = UsbModel::ALL.iter().filter(|it| it.carries()).map(|it| it.name());
        let models = models.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let help = format!("models with pipes are {models}; other devices are read otherwise");
        let problem = Problem::new(&from.span, title, help);
        return report.push(problem.with(&usb.name.span, format!("its model is {}", model.name())));
    }
    if channel.value >= channels {
        let title = format!("`{}` has no channel {}", from.value, channel.value);
        let help = match channels {
            1 => "it has one: write `channel = 0`".to_owned(),
            _ => format!("it has {channels}: write `channel = 0` to `channel = {}`", channels - 1),
        };
        let problem = Problem::new(&channel.span, title, help);
        return report.push(usb::with_channels(usb, problem));
    }
    served(declared, from, usb, report);
}

/// Reports an interface whose controller no process drives.
fn served(declared: &Declared, from: &At<String>, usb: &DeclaredUsb, report: &mut Report) {
    // An interface that is plugged into nothing is reported elsewhere.
    let Some(on) = declared.controller_of(usb) else { return };
    if declared.server_of(Some(from)).is_none() {
        let title = format!("nobody serves `{}`", from.value);
        let help = match shorthand::would_bring(declared, &on.value) {
            true => "add `[usbd]`: it brings the server and the controller".to_owned(),
            false => format!("add `{}` to the `uses` of the process that drives it", on.value),
        };
        report.push(Problem::new(&from.span, title, help));
    }
}

/// Without a VCPU nothing is promised to its process, and so nothing by the pipe.
fn has_vcpu(declared: &Declared, way: PipeDirection, name: &At<String>, report: &mut Report) {
    let index = declared.process(&name.value);
    if index.is_some_and(|index| declared.processes[index].vcpu.is_none()) {
        let does = words(way).does;
        let title = format!("`{}` {does} a pipe and has no VCPU", name.value);
        let help = "add `vcpu = \"…\"` to the process: without one no time is promised to it";
        report.push(Problem::new(&name.span, title, help));
    }
}

/// Returns the pipes, as far as they are whole.
pub(crate) fn pipes(declared: &Declared) -> Vec<PipeSpec> {
    let number = |index: usize| u16::try_from(index).ok();
    let whole = |pipe: &DeclaredPipe| {
        Some(PipeSpec {
            name: pipe.name.value.clone(),
            usb: declared.plug(&pipe.usb.as_ref()?.value)?.0,
            channel: u8::try_from(pipe.channel.value).ok()?,
            number: self::number(declared, pipe)?.try_into().ok()?,
            server: number(declared.server_of(pipe.usb.as_ref())?)?,
            way: pipe.way,
            end: match pipe.beyond {
                Some(end) => end,
                None => PipeEnd::Here(number(declared.process(&pipe.process.as_ref()?.value)?)?),
            },
            rate: pipe.rate,
            period_ns: pipe.period.as_ref().map(|period| period.value),
            shape: sources::shape(declared, pipe),
            endpoint: pipe.endpoint.as_ref().map_or(0, |it| it.value as u8),
            burst: pipe.burst,
            jitter_ns: pipe.jitter_ns,
            work_ns: pipe.work_ns,
            latency_ns: pipe.latency.as_ref().map(|latency| latency.value),
            sent_on: None,
            ends_flow: false,
        })
    };
    declared.pipes.iter().filter_map(whole).collect()
}
