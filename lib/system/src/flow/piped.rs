//! `pipe` and `into` of a flow. Its first program may read a `[[pipe]]` from a device and send each
//! message on, and its last program may write each message into a `[[pipe]]` to a device. The flow
//! begins or ends at the device then.

use super::{DeclaredFlow, Flow, FlowStop, FlowWay, near};
use crate::carried::{PipeDirection, PipeSpec, SentOn};
use crate::diagnostics::{Problem, Report};
use crate::hosts::HostSpec;
use crate::pipe::RATE_MAX;
use crate::table::Table;
use diapason_abi::Nanos;
use diapason_contract::carried::{Contract, PER_MAX};
use diapason_contract::source::MessageForm;

/// Keys that say what the pipe says.
const SAID_BY_PIPE: [&str; 6] = ["period", "rate", "burst", "jitter", "offset", "work"];

/// Reads how often messages come: so many in some time. The pipe of a flow says it, if it has one.
pub(super) fn paced(table: &mut Table<'_, '_>, has_pipe: bool) -> (u32, Nanos) {
    let rate = table.number("rate", 1..=RATE_MAX, ", messages a second");
    let period = table.duration("period", 1..=PER_MAX.0);
    match (&rate, &period) {
        _ if has_pipe => said_twice(table),
        (None, None) => {
            table.needs("period", "add `period = \"2ms\"`: the time from one message to the next");
        }
        (Some(rate), Some(_)) => {
            let help = "remove one of the two: both say how often messages come";
            table.report.push(Problem::new(&rate.span, "a flow with `rate` and `period`", help));
        }
        _ => {}
    }
    let per = period.map_or(PER_MAX, |period| Nanos(period.value));
    (rate.map_or(1, |rate| rate.value) as u32, per)
}

/// Reports the keys of a flow that its pipe says already.
fn said_twice(table: &mut Table<'_, '_>) {
    for key in SAID_BY_PIPE {
        let Some(place) = table.place_of(key) else { continue };
        let title = format!("a flow with `pipe` and `{key}`");
        let help = "remove it: the pipe says how its messages come, and what its reader does";
        table.report.push(Problem::new(&place, title, help));
    }
}

/// Lets a flow with `pipe` begin at the device. Reports what cannot be.
pub(super) fn begun(
    declared: &DeclaredFlow,
    flow: &mut Flow,
    hosts: &[HostSpec],
    report: &mut Report,
) {
    let Some(pipe) = &declared.pipe else { return };
    let host = &hosts[flow.from.host];
    let system = &host.system;
    let mut refuse = |title: String, help: String| {
        report.push(Problem::new(&pipe.span, title, help));
    };
    let reader = system.process_name(flow.from.process).unwrap_or_default();
    let Some(number) = system.pipes.iter().position(|it| it.name == pipe.value) else {
        let known = system.pipes.iter().map(|it| it.name.as_str());
        let help = format!("add a `[[pipe]]` to `{}`; {}", host.file, near(&pipe.value, known));
        return refuse(format!("`{}` has no pipe called `{}`", host.name, pipe.value), help);
    };
    let spec = &system.pipes[number];
    if spec.way == PipeDirection::ToDevice || !spec.ends_at(flow.from.process) {
        let help = format!("name a pipe from a device whose `reader` is `{reader}`");
        return refuse(format!("`{reader}` does not read the pipe `{}`", pipe.value), help);
    }
    if !is_of_messages(spec) {
        let help = "let another program send what the reader makes of it, as a flow of its own";
        let title = format!("a message of `{}` is no message of a flow", pipe.value);
        return refuse(title, help.to_owned());
    }
    if matches!(flow.hops.first().map(|hop| hop.way), Some(FlowWay::Mailbox(_))) {
        let help = "let the reader send by a link or a socket".to_owned();
        return refuse("a flow with `pipe` that begins at a mailbox".to_owned(), help);
    }
    let drift = system.usb[spec.usb].drift;
    flow.contract = by_the_host(spec.contract(), drift.into());
    flow.from.work_ns = spec.work_ns;
    flow.pipe = Some(number);
}

/// Lets a flow with `into` end at the device. Reports what cannot be.
pub(super) fn ended(
    declared: &DeclaredFlow,
    flow: &mut Flow,
    hosts: &[HostSpec],
    report: &mut Report,
) {
    let Some(into) = &declared.into else { return };
    let end = flow.end();
    let host = &hosts[end.host];
    let system = &host.system;
    let mut refuse = |title: String, help: String| {
        report.push(Problem::new(&into.span, title, help));
    };
    let writer = system.process_name(end.process).unwrap_or_default();
    let Some(number) = system.pipes.iter().position(|it| it.name == into.value) else {
        let known = system.pipes.iter().map(|it| it.name.as_str());
        let help = format!("add a `[[pipe]]` to `{}`; {}", host.file, near(&into.value, known));
        return refuse(format!("`{}` has no pipe called `{}`", host.name, into.value), help);
    };
    let spec = &system.pipes[number];
    if spec.way == PipeDirection::FromDevice || !spec.ends_at(end.process) {
        let help = format!("name a pipe to a device whose `writer` is `{writer}`");
        return refuse(format!("`{writer}` does not write the pipe `{}`", into.value), help);
    }
    if !is_of_messages(spec) {
        let help = "let another program write what the last one makes of it, as a pipe of its own";
        let title = format!("a message of a flow is no message of `{}`", into.value);
        return refuse(title, help.to_owned());
    }
    if matches!(flow.hops.last().map(|hop| hop.way), Some(FlowWay::Mailbox(_))) {
        let help = "let the writer take its messages by a link or a socket".to_owned();
        return refuse("a flow with `into` that ends at a mailbox".to_owned(), help);
    }
    if !flow.detours.is_empty() {
        let help =
            "remove `otherwise`: messages that went around come at once, and late".to_owned();
        return refuse("a flow with `into` that has other ways".to_owned(), help);
    }
    if let Some(chain) = system.chains.iter().find(|chain| chain.to == u16::try_from(number).ok()) {
        let title = format!("the chain `{}` ends with the pipe `{}`, too", chain.name, into.value);
        return refuse(title, "give each a pipe of its own".to_owned());
    }
    flow.into = Some(number);
}

/// Reports a program that reads the pipe of a flow and that another flow passes: the bill of the
/// pipe has no messages of others.
pub(super) fn alone(declared: &[DeclaredFlow], flows: &[Option<Flow>], report: &mut Report) {
    for (number, flow) in flows.iter().enumerate() {
        let Some(flow) = flow.as_ref().filter(|flow| flow.pipe.is_some()) else { continue };
        let is_reader =
            |stop: &FlowStop| (stop.host, stop.process) == (flow.from.host, flow.from.process);
        let passes = |other: &Flow| {
            let around = other.detours.iter().flat_map(|it| &it.hops).map(|hop| &hop.to);
            other.stops().chain(around).any(is_reader)
        };
        let others = flows.iter().enumerate().filter(|(other, _)| *other != number);
        let mut passing = others.filter(|(_, it)| it.as_ref().is_some_and(passes));
        let returns = flow.hops.iter().any(|hop| is_reader(&hop.to));
        let title = "the program that reads the pipe of a flow has messages of another flow";
        let help = "let another program send or take one of them";
        let problem = || Problem::new(&declared[number].name.span, title, help);
        if let Some((other, _)) = passing.next() {
            report.push(problem().with(&declared[other].name.span, "the other"));
        } else if returns {
            report.push(problem());
        }
    }
}

/// Returns whether each message of a pipe is one that a program can send on: no frame of a network,
/// no picture and no run of blocks.
fn is_of_messages(pipe: &PipeSpec) -> bool {
    let is_picture = pipe.source().is_some_and(|it| matches!(it.form, MessageForm::Picture(_)));
    !pipe.has_blocks() && !pipe.has_frames() && !is_picture
}

/// Returns a contract of a device by the clock of its host, if the clock of the device may be fast
/// by so many millionths.
fn by_the_host(contract: Contract, drift_ppm: u64) -> Contract {
    let fast = contract.per.0.saturating_mul(drift_ppm).div_ceil(1_000_000);
    Contract { per: Nanos(contract.per.0.saturating_sub(fast).max(1)), ..contract }
}

/// Tells each pipe that begins a flow how its reader sends the messages on, and each pipe that ends
/// one that its writer writes them as they come.
pub(crate) fn send_on(hosts: &mut [HostSpec], flows: &[Flow]) {
    for flow in flows {
        if let Some(pipe) = flow.into {
            hosts[flow.end().host].system.pipes[pipe].ends_flow = true;
        }
        let Some(pipe) = flow.pipe else { continue };
        let how = if flow.is_on_ethernet() { SentOn::Socket } else { SentOn::Link };
        hosts[flow.from.host].system.pipes[pipe].sent_on = Some(how);
    }
}
