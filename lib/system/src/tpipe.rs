//! `[[tpipe]]`: a place for a pipe that a process may open, change and close while the system runs,
//! and the most that this pipe may be.
//!
//! Its messages come from a device, go to it, or go through the process and on to another channel.
//! A place is declared once. Its buffer (a segment), the semaphore its thread waits for, mailboxes
//! for questions and answers, the thread's VCPU and the rights of both ends follow from it:
//! [`expand`] declares them as if they had been written out. The limits of what may be asked for
//! are told to the server, which gives no more, and to the plan, which counts all of it.

use crate::carried::{PipeDirection, Tpipe};
use crate::declared::{
    Declared, DeclaredPipe, DeclaredSegment, DeclaredTpipe, DeclaredVcpu, Named,
};
use crate::diagnostics::{Problem, Report};
use crate::keys::{self, required};
use crate::mailbox::DeclaredMailbox;
use crate::names::Names;
use crate::pipe::{self, BURST_MAX, RATE_MAX};
use crate::plugged::UsbModel;
use crate::source::At;
use crate::system::{SemaphoreKind, ServerSpec};
use crate::table::{Raw, Table};
use diapason_abi::Nanos;
use diapason_abi::archive::{PERIOD_MIN, REPLENISHMENTS_MAX};
use diapason_abi::pipe::{
    BYTES, CLOSED, Envelope, OUT_BYTES, PLACES, QUESTIONS, REPORT_BYTES, REQUESTS,
};
use diapason_contract::carried::PER_MAX;
use diapason_contract::{threads, tuned};

pub(crate) fn tpipe(raw: Raw<'_>, report: &mut Report) -> DeclaredTpipe {
    let mut table = Table::new("[[tpipe]]", "tuned pipe", raw, report);
    let name = keys::name(&mut table);
    let writes = table.has("to");
    let [device, opens] = if writes { ["to", "writer"] } else { ["from", "reader"] };
    let usb = required(&mut table, device, "the `[[usb]]` device of its messages");
    let process = required(&mut table, opens, "the `[[process]]` that may open it");
    let mut channels = table.numbers("channels", 0..=255, ", of the device; 0 is the first");
    table.needs("channels", "add `channels = [0]`: those it may listen, or write, to");
    let to = if writes {
        core::mem::take(&mut channels)
    } else {
        table.numbers("onward", 0..=255, ", of the device; 0 is the first")
    };
    let rate = table.number("rate", 1..=RATE_MAX, ", messages a second");
    let burst = table.number("burst", 1..=BURST_MAX, ", messages at once");
    let budget = table.duration("budget", CLOSED.0.0..=CLOSED.1.0);
    let period = table.duration("period", PERIOD_MIN.0..=CLOSED.1.0);
    for (key, help) in NEEDED {
        table.needs(key, help);
    }
    let or = |value: Option<At<u64>>, else_| value.unwrap_or(At::new(else_, name.span.clone()));
    let tpipe = DeclaredTpipe {
        rate: or(rate, 1),
        burst: or(burst, 1),
        budget: or(budget, CLOSED.0.0),
        period: or(period, CLOSED.1.0),
        name,
        usb,
        process,
        channels,
        to,
    };
    table.report_unknown();
    tpipe
}

/// Keys with numbers that have to be there.
const NEEDED: [(&str, &str); 3] = [
    ("rate", "add `rate = 3000`: the most messages a second that it may ask for"),
    ("budget", "add `budget = \"400us\"`: the most that its thread may have in every period"),
    ("period", "add `period = \"4ms\"`: the shortest that its thread may have"),
];

/// Declares what the places need, and that both ends use it.
pub(crate) fn expand(declared: &mut Declared) {
    for place in 0..declared.tpipes.len() {
        let tpipe = &declared.tpipes[place];
        let server = declared.server_of(tpipe.usb.as_ref());
        let end = tpipe.process.as_ref().and_then(|name| declared.process(&name.value));
        let span = tpipe.name.span.clone();
        let mut names: Vec<At<String>> = Vec::new();
        // Without names there are too many places, which is reported by `check`.
        let Some(known) = tuned::names(place) else { return };
        let mut named = |name: &str| {
            names.push(At::new(name.to_owned(), span.clone()));
            names[names.len() - 1].clone()
        };
        let ring = DeclaredSegment { size: BYTES, dma: false, common: false };
        declared.segments.push(Named { name: named(known.ring), what: ring });
        let ready = SemaphoreKind::Counting(0);
        declared.semaphores.push(Named { name: named(known.ready), what: ready });
        declared
            .mailboxes
            .push(Named { name: named(known.questions), what: DeclaredMailbox::plain(QUESTIONS) });
        declared
            .mailboxes
            .push(Named { name: named(known.answers), what: DeclaredMailbox::plain(QUESTIONS) });
        let closed = ServerSpec::Main {
            budget_ns: CLOSED.0.0,
            period_ns: CLOSED.1.0,
            replenishments: REPLENISHMENTS_MAX,
            background: false,
            job_ns: None,
            interval_ns: None,
            wakes: 1,
        };
        let thread =
            DeclaredVcpu::Main { server: closed, budget: span.clone(), period: span.clone() };
        declared.vcpus.push(Named { name: named(known.vcpu), what: thread });
        if !declared.tpipes[place].to.is_empty() {
            let segment = |size| DeclaredSegment { size, dma: false, common: false };
            let (out, report) = (segment(OUT_BYTES), segment(REPORT_BYTES));
            declared.segments.push(Named { name: named(known.out), what: out });
            declared.segments.push(Named { name: named(known.reports), what: report });
            declared
                .mailboxes
                .push(Named { name: named(known.control), what: DeclaredMailbox::plain(REQUESTS) });
        }
        for end in [server, end].into_iter().flatten() {
            declared.processes[end].uses.extend(names.iter().cloned());
        }
    }
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    if let Some(extra) = declared.tpipes.get(PLACES) {
        let title = format!("{} tuned pipes, the most is {PLACES}", declared.tpipes.len());
        let help = "let programs close the ones they do not need";
        report.push(Problem::new(&extra.name.span, title, help).label("the first too many"));
    }
    for tpipe in &declared.tpipes {
        let model = |usb: &At<String>| declared.plug(&usb.value).and_then(|(_, plug)| plug.model);
        let is_of_packets = |model: UsbModel| model.carries() && !model.is_can();
        if let Some(usb) = &tpipe.usb
            && model(usb).is_some_and(is_of_packets)
        {
            let title = format!("programs cannot open pipes of `{}`", usb.value);
            let help = "declare a `[[pipe]]` of it, with the shortest period that its program may \
                        want: tuned pipes are of `model = \"usb-can\"`";
            report.push(Problem::new(&usb.span, title, help));
            continue;
        }
        is_tunable(declared, tpipe, report);
        for channel in &tpipe.channels {
            pipe::source(declared, tpipe.usb.as_ref(), channel, report);
            beside(declared, tpipe, channel, report);
        }
        for channel in &tpipe.to {
            pipe::source(declared, tpipe.usb.as_ref(), channel, report);
            alone(declared, tpipe, channel, report);
        }
        answered(declared, tpipe, report);
        if let Some(process) = &tpipe.process
            && names.is_process(process, report)
        {
            threads(declared, process, report);
        }
        if tpipe.budget.value > tpipe.period.value {
            let title = format!("the budget of `{}` exceeds its period", tpipe.name.value);
            let problem = Problem::new(&tpipe.budget.span, title, "make it at most the period");
            report.push(problem.with(&tpipe.period.span, "the period"));
        }
    }
}

/// Refuses places of an interface whose driver has other costs than those that the server decides
/// by.
fn is_tunable(declared: &Declared, tpipe: &DeclaredTpipe, report: &mut Report) {
    let Some(usb) = &tpipe.usb else { return };
    let model = declared.plug(&usb.value).and_then(|(_, plug)| plug.model);
    if model == Some(UsbModel::GsUsb) {
        let title = format!("programs cannot open pipes of `{}`, a `\"gs-usb\"`", usb.value);
        let help = "declare a `[[pipe]]` of it: tuned pipes are of `model = \"usb-can\"`";
        report.push(Problem::new(&usb.span, title, help));
    }
}

/// Returns the messages that a pipe lets come in every second, rounded down.
fn whole_rate(pipe: &DeclaredPipe) -> u64 {
    let per_second = |period: &At<u64>| PER_MAX.0 / period.value.max(1);
    pipe.period.as_ref().map_or(pipe.rate, per_second)
}

/// A channel that has a pipe has its contract: nobody may ask for more of it.
fn beside(declared: &Declared, tpipe: &DeclaredTpipe, channel: &At<u64>, report: &mut Report) {
    let usb = |from: &Option<At<String>>| from.as_ref().map(|from| from.value.clone());
    let is = |pipe: &&DeclaredPipe| {
        pipe.channel.value == channel.value && usb(&pipe.usb) == usb(&tpipe.usb)
    };
    let Some(pipe) = declared.pipes.iter().find(is) else { return };
    let (name, number) = (&pipe.name.value, channel.value);
    let problem = if pipe.way == PipeDirection::ToDevice {
        let title = format!("channel {number} has a pipe to the device, `{name}`");
        Problem::new(&channel.span, title, "leave it out of `channels`: its client opens it")
    } else if tpipe.rate.value > whole_rate(pipe) {
        let (more, rate) = (tpipe.rate.value, whole_rate(pipe));
        let title =
            format!("{more} messages a second of channel {number}, but `{name}` says {rate}");
        let help = format!("write `rate = {rate}` here, or `rate = {more}` there");
        Problem::new(&tpipe.rate.span, title, help)
    } else if tpipe.burst.value > pipe.burst {
        let (more, burst) = (tpipe.burst.value, pipe.burst);
        let title =
            format!("{more} messages at once of channel {number}, but `{name}` says {burst}");
        let help = format!("write `burst = {burst}` here, or `burst = {more}` there");
        Problem::new(&tpipe.burst.span, title, help)
    } else {
        return;
    };
    report.push(problem.with(&pipe.name.span, "its pipe"));
}

/// A channel that may be written has nothing else: a listener would get what comes back.
fn alone(declared: &Declared, tpipe: &DeclaredTpipe, channel: &At<u64>, report: &mut Report) {
    let usb = |from: &Option<At<String>>| from.as_ref().map(|from| from.value.clone());
    let of_device = |other: &Option<At<String>>| usb(other) == usb(&tpipe.usb);
    let pipes = declared.pipes.iter().filter(|pipe| of_device(&pipe.usb));
    let pipes = pipes.map(|pipe| &pipe.channel);
    let places = declared.tpipes.iter().filter(|other| of_device(&other.usb));
    let places = places.flat_map(|other| other.channels.iter().chain(&other.to));
    let is = |other: &&At<u64>| other.value == channel.value && other.span != channel.span;
    if let Some(other) = pipes.chain(places).find(is) {
        let title = format!("channel {} may be written, and has another pipe", channel.value);
        let help = "give each a channel of its own";
        report.push(Problem::new(&channel.span, title, help).with(&other.span, "the other"));
    }
}

/// Somebody has to answer, and to look at what is written.
fn answered(declared: &Declared, tpipe: &DeclaredTpipe, report: &mut Report) {
    let Some((server, from)) = declared.server_of(tpipe.usb.as_ref()).zip(tpipe.usb.as_ref())
    else {
        return;
    };
    let server = &declared.processes[server];
    let needed = [
        (threads::TUNE.vcpu, "decide about pipes", true),
        (threads::SEND.vcpu, "send", !tpipe.to.is_empty()),
    ];
    for (vcpu, does, _) in needed.into_iter().filter(|(.., is_needed)| *is_needed) {
        if !server.uses.iter().any(|used| used.value == vcpu) {
            let title = format!("`{}` has no VCPU to {does} on", server.name.value);
            let help = format!("declare a `[[vcpu]]` named `{vcpu}` and add it to its `uses`");
            report.push(Problem::new(&from.span, title, help));
        }
    }
}

/// Each pipe has a thread beside the first.
fn threads(declared: &Declared, name: &At<String>, report: &mut Report) {
    let Some(process) = declared.process(&name.value).map(|index| &declared.processes[index])
    else {
        return;
    };
    let own = |tpipe: &&DeclaredTpipe| {
        tpipe.process.as_ref().is_some_and(|process| process.value == name.value)
    };
    let needed = 1 + declared.tpipes.iter().filter(own).count();
    if usize::from(process.whole.threads) < needed {
        let title = format!(
            "`{}` has {} threads, too few for its tuned pipes",
            name.value, process.whole.threads
        );
        let help = format!("write `threads = {needed}`: each pipe has one, beside the first");
        report.push(Problem::new(&name.span, title, help));
    }
}

/// Returns the places, as far as they are whole.
pub(crate) fn tpipes(declared: &Declared, names: &Names<'_>) -> Vec<Tpipe> {
    let number = |index: usize| u16::try_from(index).ok();
    let whole = |(place, tpipe): (usize, &DeclaredTpipe)| {
        let bits = |channels: &[At<u64>]| {
            let bits = channels.iter().filter_map(|at| 1_u8.checked_shl(at.value.try_into().ok()?));
            bits.fold(0, |all, bit| all | bit)
        };
        Some(Tpipe {
            name: tpipe.name.value.clone(),
            usb: declared.plug(&tpipe.usb.as_ref()?.value)?.0,
            server: number(declared.server_of(tpipe.usb.as_ref())?)?,
            process: number(declared.process(&tpipe.process.as_ref()?.value)?)?,
            vcpu: names.vcpu(tuned::names(place)?.vcpu).and_then(number)?,
            envelope: Envelope {
                channels: bits(&tpipe.channels),
                to: bits(&tpipe.to),
                rate: tpipe.rate.value,
                burst: tpipe.burst.value,
                budget: Nanos(tpipe.budget.value),
                period: Nanos(tpipe.period.value),
            },
        })
    };
    declared.tpipes.iter().enumerate().filter_map(whole).collect()
}
