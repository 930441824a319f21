//! `[[can]]` and `[[message]]`: a CAN bus as its messages have it, whoever sends them.
//!
//! A message says what some node sends, so that `diapason plan` can tell whether all are in time,
//! and which identifiers make them so. Nodes of other people are declared like the processes of
//! this host. Of all this only the settings of a controller's driver and of its senders reach the
//! boot archive.

mod controller;
mod fd;
mod heard;
mod mts;
mod time;

use crate::can_network::{
    CLASSES, CLOCKS_MAX, CanClass, CanMessage, CanNetwork, CanScheduler, CanSender, SCHEDULERS,
};
use crate::carried::PipeDirection;
use crate::declared::{Declared, DeclaredCan, DeclaredMessage, DeclaredPipe, DeclaredUsb};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::names::Names;
use crate::plugged::UsbModel;
use crate::source::At;
use crate::suggest::nearest;
use crate::table::{Raw, Table};
use crate::usb;
use diapason_abi::Nanos;
use diapason_can::response::Errors;

pub(crate) use controller::{expand, settings};

/// Longest time of a message or an epoch: 1000 s.
const TIME_MAX: u64 = 1_000_000_000_000;
/// Bit rates of classic CAN, and of the data of CAN FD.
const RATES: std::ops::RangeInclusive<u64> = 10_000..=1_000_000;
const DATA_RATES: std::ops::RangeInclusive<u64> = 10_000..=8_000_000;
/// Most frames that are destroyed at once.
const ERRORS_MAX: u64 = 1_000;
const STANDARD_MAX: u64 = 0x7ff;
const EXTENDED_MAX: u64 = 0x1fff_ffff;

/// Reads the buses and the messages.
pub(crate) fn read(lists: [Vec<Raw<'_>>; 2], declared: &mut Declared, report: &mut Report) {
    let [cans, messages] = lists;
    declared.cans = cans.into_iter().map(|raw| can(raw, report)).collect();
    declared.messages = messages.into_iter().map(|raw| message(raw, report)).collect();
}

fn can(raw: Raw<'_>, report: &mut Report) -> DeclaredCan {
    let mut table = Table::new("[[can]]", "CAN bus", raw, report);
    let table = &mut table;
    let name = keys::name(table);
    let rate = table.number("rate", RATES, ", bits a second");
    table.needs("rate", "add `rate = 500000`: the bits a second of all its nodes");
    let scheduler = table.choice("scheduler", &SCHEDULERS, "");
    table.needs(
        "scheduler",
        "add `scheduler = \"as-written\"`, `\"deadline-monotonic\"` or `\"mts\"`",
    );
    let can = DeclaredCan {
        name,
        rate,
        data_rate: table.number("data_rate", DATA_RATES, ", bits a second"),
        scheduler,
        epoch: table.duration("epoch", 1_000..=TIME_MAX),
        clocks: table.duration("clocks", 0..=CLOCKS_MAX),
        renewal: table.duration("renewal", 1_000..=TIME_MAX),
        time: time::read(table),
        usb: table.text("usb", "usb = \"interface\""),
        channel: table.number("channel", 0..=255, ", of the interface; 0 is the first"),
        controller: table.text("controller", "controller = \"toucan0\""),
        own_buffers: table.number(
            "own_buffers",
            0..=controller::OWN_MAX,
            ", messages with a buffer of their own",
        ),
        error_interval: table.duration("error_interval", 1_000..=TIME_MAX),
        error_burst: table.number("error_burst", 1..=ERRORS_MAX, " frames at once"),
        in_order: table.texts("in_order", "in_order = [\"gateway\"]"),
    };
    if can.is(CanScheduler::Mts) && can.time.message.is_none() && !table.has("time") {
        let help = "add `clocks = \"20us\"`: how far the clock of a node may be off; or `time`: \
                    the message that carries the time";
        table.needs("clocks", help);
    }
    table.report_unknown();
    can
}

fn message(raw: Raw<'_>, report: &mut Report) -> DeclaredMessage {
    let mut table = Table::new("[[message]]", "message", raw, report);
    let table = &mut table;
    let name = keys::name(table);
    let bus = keys::required(table, "bus", "the `[[can]]` that carries it");
    let process = table.text("process", "process = \"control\"");
    let node = table.text("node", "node = \"engine-unit\"");
    if process.is_none() && node.is_none() && !table.has("process") {
        let help = "add `node = \"…\"`, the unit that sends it, or `process = \"…\"` of this host";
        table.needs("node", help);
    }
    let reader = table.text("reader", "reader = \"display\"");
    let work = table.duration("work", 1..=TIME_MAX);
    let class = table.choice("class", &CLASSES, "");
    let fd = table.flag("fd").unwrap_or(false);
    let bytes = table.number("bytes", 0..=fd::BYTES_MAX, " of data");
    table.needs("bytes", "add `bytes = 8`: the most bytes of its data");
    let period = table.duration("period", 1_000..=TIME_MAX);
    let is_due = class.as_ref().is_none_or(|class| class.value != CanClass::NonRealTime);
    if is_due {
        let help = "add `period = \"10ms\"`: the shortest time between two; or `class = \"none\"`";
        table.needs("period", help);
    }
    let extended = table.flag("extended").unwrap_or(false);
    let most = if extended { EXTENDED_MAX } else { STANDARD_MAX };
    let hint = if extended { "" } else { ", or add `extended = true`" };
    let message = DeclaredMessage {
        name,
        bus,
        process,
        node,
        reader,
        work,
        class,
        bytes,
        fd,
        period,
        deadline: table.duration("deadline", 1_000..=TIME_MAX),
        jitter: table.duration("jitter", 0..=TIME_MAX),
        id: table.number("id", 0..=most, hint),
        extended,
    };
    table.report_unknown();
    message
}

/// Reports what does not fit together. It looks at the whole host, whatever its cores.
pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for (index, can) in declared.cans.iter().enumerate() {
        twice(&declared.cans[..index], can, |can| &can.name, "bus", report);
        interface(declared, can, report);
        controller::check(declared, can, report);
        heard::check_bus(declared, can, report);
        schedule(declared, can, report);
        errors(can, report);
        mts::check(declared, can, report);
        time::check(declared, can, report);
        fd::check(declared, can, report);
        for name in &can.in_order {
            let sends = |message: &&DeclaredMessage| {
                message.is_on(can) && message.node.as_ref().is_some_and(|it| it.value == name.value)
            };
            if !declared.messages.iter().any(|message| sends(&message)) {
                let title =
                    format!("no message on `{}` is of node `{}`", can.name.value, name.value);
                let help = "name a `node` of its messages, or remove it";
                report.push(Problem::new(&name.span, title, help));
            }
        }
    }
    for (index, message) in declared.messages.iter().enumerate() {
        let before = &declared.messages[..index];
        twice(before, message, |message| &message.name, "message", report);
        sender(declared, names, message, report);
        heard::check(declared, names, message, report);
        times(message, report);
        fd::length(message, report);
        if let Some(can) = bus_of(declared, message, report) {
            identifier(can, message, before, report);
        }
    }
}

fn twice<T>(
    before: &[T],
    one: &T,
    name: impl Fn(&T) -> &At<String>,
    noun: &str,
    report: &mut Report,
) {
    let own = name(one);
    let Some(first) = before.iter().map(&name).find(|other| other.value == own.value) else {
        return;
    };
    let title = format!("the {noun} `{}` is declared twice", own.value);
    let problem = Problem::new(&own.span, title, "give each a name of its own");
    report.push(problem.with(&first.span, "first here"));
}

/// The interface that connects this host, and its bit rate.
fn interface(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let Some(name) = &can.usb else {
        if let Some(channel) = &can.channel {
            let help = "add `usb = \"…\"`, the interface, or remove `channel`";
            report.push(Problem::new(&channel.span, "a channel of no interface", help));
        }
        return;
    };
    let Some((_, plug)) = declared.plug(&name.value) else {
        let title = format!("no USB device is called `{}`", name.value);
        let known = declared.usb.iter().map(|usb| usb.name.value.as_str());
        let help = match nearest(&name.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `[[usb]]` with `name = \"{}\"`", name.value),
        };
        return report.push(Problem::new(&name.span, title, help));
    };
    if !plug.model.is_some_and(UsbModel::is_can) {
        let title = format!("`{}` is no CAN interface", name.value);
        let help = "name a `[[usb]]` with `model = \"usb-can\"`";
        return report.push(Problem::new(&name.span, title, help));
    }
    let (channel, channels) = (can.channel(), usb::channels(plug));
    let place = can.channel.as_ref().map_or(&name.span, |channel| &channel.span);
    if channel >= channels as u64 {
        let title = format!("`{}` has no channel {channel}", name.value);
        let help = format!("write a number below {channels}; 0 is the first");
        return report.push(Problem::new(place, title, help));
    }
    of_rate(can, plug, channel, report);
    of_fd(can, plug, channel, report);
    let is_same = |other: &&DeclaredCan| {
        let same = other.usb.as_ref().is_some_and(|usb| usb.value == name.value);
        same && other.channel() == channel && other.name.value != can.name.value
    };
    let mut before = declared.cans.iter().take_while(|other| other.name.span != can.name.span);
    if let Some(first) = before.find(is_same) {
        let title = format!("channel {channel} of `{}` is on two buses", name.value);
        let problem = Problem::new(place, title, "connect each channel to one bus");
        report.push(problem.with(&first.name.span, "the first"));
    }
}

/// Reports a bus of messages that is that of a channel with CAN FD: frames of 64 bytes would delay
/// its messages, and none of them counts that.
fn of_fd(can: &DeclaredCan, plug: &DeclaredUsb, channel: u64, report: &mut Report) {
    let own = usize::try_from(channel).ok().and_then(|channel| plug.data_rates.get(channel));
    let (Some(data), Some(usb)) = (own.filter(|rate| rate.value > 0), &can.usb) else { return };
    let title =
        format!("`{}` is planned with classic frames, and its channel has CAN FD", can.name.value);
    let help = "remove `usb` and plan the bus alone, or write 0 for the channel in `data_rates`";
    report.push(Problem::new(&usb.span, title, help).with(&data.span, "CAN FD"));
}

fn of_rate(can: &DeclaredCan, plug: &DeclaredUsb, channel: u64, report: &mut Report) {
    let Some(rate) = &can.rate else { return };
    let rates = usb::bit_rates(plug);
    let own = usize::try_from(channel).ok().and_then(|channel| rates.get(channel));
    let Some(own) = own.filter(|own| u64::from(**own) != rate.value) else { return };
    let usb = &plug.name.value;
    let title = format!(
        "`{}` has {} bit/s, and channel {channel} of `{usb}` has {own}",
        can.name.value, rate.value
    );
    let help = format!("write the same rate here and in `bit_rates` of `{usb}`");
    report.push(Problem::new(&rate.span, title, help));
}

/// Reports errors that come at once and of which nobody says how often.
fn errors(can: &DeclaredCan, report: &mut Report) {
    if let (Some(burst), None) = (&can.error_burst, &can.error_interval) {
        let title = "`error_burst` says nothing here";
        let help = "add `error_interval = \"50ms\"`: the time for each further frame";
        report.push(Problem::new(&burst.span, title, help));
    }
}

/// The keys of a bus that only MTS has.
fn schedule(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    if can.is(CanScheduler::Mts) {
        if let Some(first) = can.in_order.first() {
            let title = "a node that sends in order cannot do so under MTS";
            let help = "its identifiers are in the wrong order when an epoch ends: use \
                        `\"deadline-monotonic\"`, or let the node send the most urgent first";
            report.push(Problem::new(&first.span, title, help));
        }
        return;
    }
    let writes = |message: &&DeclaredMessage| message.is_on(can) && message.process.is_some();
    if let (Some(first), Some(own)) = (can.in_order.first(), declared.messages.iter().find(writes))
    {
        let title = "nodes that send in order, and a process of this host, are on one bus";
        let help = "remove `in_order`: how one delays the other is not analysed";
        let problem = Problem::new(&first.span, title, help);
        report.push(problem.with(&own.name.span, "a message of this host"));
    }
    let keys = [("epoch", &can.epoch), ("clocks", &can.clocks), ("renewal", &can.renewal)];
    let keys = keys.into_iter().filter_map(|(key, at)| Some((key, &at.as_ref()?.span)));
    for (key, place) in keys.chain(can.time.keys()) {
        let title = format!("`{key}` says nothing here");
        let help = "remove it: only `scheduler = \"mts\"` has epochs";
        report.push(Problem::new(place, title, help));
    }
}

fn sender(declared: &Declared, names: &Names<'_>, message: &DeclaredMessage, report: &mut Report) {
    if let (Some(_), Some(node)) = (&message.process, &message.node) {
        let title = format!("`{}` has two senders", message.name.value);
        let help = "keep `process`, of this host, or `node`, another unit";
        report.push(Problem::new(&node.span, title, help));
    }
    let Some(process) = &message.process else { return };
    if !names.is_process(process, report) {
        return;
    }
    let Some(can) = declared.can(message) else { return };
    if can.is(CanScheduler::Mts) && can.controller.is_none() {
        let title = format!("`{}` of this host cannot send under MTS", process.value);
        let help = "an interface on USB renews no identifiers: connect this host by a \
                    `controller`, use another `scheduler`, or write `node = \"…\"` for a unit that \
                    can";
        report.push(Problem::new(&process.span, title, help));
    } else if can.controller.is_some() {
        controller::sends(message, report);
        mts::sends(declared, can, message, report);
    } else if can.usb.is_none() {
        let title = format!("`{}` is not connected to `{}`", process.value, can.name.value);
        let help = format!(
            "add `usb = \"…\"` and `channel = 0`, or `controller = \"toucan0\"`, to the bus `{}`",
            can.name.value
        );
        report.push(Problem::new(&process.span, title, help));
    } else if !declared.pipes.iter().any(|pipe| carries(pipe, can, &process.value)) {
        let title = format!("`{}` has no pipe to `{}`", process.value, can.name.value);
        let help = format!(
            "add a `[[pipe]]` with `to = \"{}\"`, `channel = {}` and `writer = \"{}\"`",
            can.usb.as_ref().map_or("", |usb| usb.value.as_str()),
            can.channel(),
            process.value
        );
        report.push(Problem::new(&process.span, title, help));
    }
}

/// Returns whether `pipe` carries messages of a process to the bus.
fn carries(pipe: &DeclaredPipe, can: &DeclaredCan, process: &str) -> bool {
    let same =
        |one: &Option<At<String>>, other: &str| one.as_ref().is_some_and(|one| one.value == other);
    let usb = can.usb.as_ref().map_or("", |usb| usb.value.as_str());
    pipe.way == PipeDirection::ToDevice
        && same(&pipe.usb, usb)
        && pipe.channel.value == can.channel()
        && same(&pipe.process, process)
}

fn times(message: &DeclaredMessage, report: &mut Report) {
    let is_due = !message.is(CanClass::NonRealTime);
    if let (false, Some(deadline)) = (is_due, &message.deadline) {
        let title = format!("`{}` is due at no time, and has a deadline", message.name.value);
        let help = "remove `deadline`, or write `class = \"high\"` or `\"low\"`";
        report.push(Problem::new(&deadline.span, title, help));
    }
}

fn bus_of<'d>(
    declared: &'d Declared,
    message: &DeclaredMessage,
    report: &mut Report,
) -> Option<&'d DeclaredCan> {
    let name = message.bus.as_ref()?;
    let found = declared.can(message);
    if found.is_none() {
        let title = format!("no CAN bus is called `{}`", name.value);
        let known = declared.cans.iter().map(|can| can.name.value.as_str());
        let help = match nearest(&name.value, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `[[can]]` with `name = \"{}\"`", name.value),
        };
        report.push(Problem::new(&name.span, title, help));
    }
    found
}

fn identifier(
    can: &DeclaredCan,
    message: &DeclaredMessage,
    before: &[DeclaredMessage],
    report: &mut Report,
) {
    let scheduler = can.scheduler.as_ref().map(|scheduler| scheduler.value);
    let own = message.id.as_ref().map(|id| (id.value, message.extended));
    match (scheduler, &message.id) {
        (Some(CanScheduler::AsWritten), None) => {
            let title = format!("`{}` has no identifier", message.name.value);
            let help = "add `id = 0x100`, or let `scheduler` of its bus assign them";
            report.push(Problem::new(&message.name.span, title, help));
        }
        (Some(CanScheduler::AsWritten), Some(id)) => {
            let same = |other: &&DeclaredMessage| {
                other.is_on(can) && other.id.as_ref().map(|id| (id.value, other.extended)) == own
            };
            if let Some(first) = before.iter().find(same) {
                let title = format!("two messages on `{}` have this identifier", can.name.value);
                let problem = Problem::new(&id.span, title, "give each one of its own");
                report.push(problem.with(&first.name.span, "the first"));
            }
        }
        (Some(other), Some(id)) => {
            let title = format!("`{}` assigns the identifiers of its messages", can.name.value);
            let help = format!(
                "remove `id`, or write `scheduler = \"as-written\"` instead of `\"{}\"`",
                other.name()
            );
            report.push(Problem::new(&id.span, title, help));
        }
        _ => {}
    }
}

/// Returns the buses and their messages, as far as they are whole.
pub(crate) fn networks(declared: &Declared) -> Vec<CanNetwork> {
    let network = |can: &DeclaredCan| {
        let plug = can.usb.as_ref().and_then(|usb| declared.plug(&usb.value));
        let channel = u8::try_from(can.channel()).ok()?;
        let rate = u32::try_from(can.rate.as_ref()?.value).ok()?;
        let messages = messages(declared, can);
        let data_rate = can.data_rate.as_ref().and_then(|it| u32::try_from(it.value).ok());
        Some(CanNetwork {
            name: can.name.value.clone(),
            rate,
            data_rate: data_rate.unwrap_or(rate),
            scheduler: can.scheduler.as_ref()?.value,
            epoch_ns: can.epoch.as_ref().map(|epoch| epoch.value),
            clocks_ns: can.clocks.as_ref().map(|clocks| clocks.value),
            renewal_ns: can.renewal.as_ref().map(|renewal| renewal.value),
            time: time::of(can, &messages),
            interface: plug.map(|(number, _)| (number, channel)),
            controller: controller::of(declared, can),
            errors: can.error_interval.as_ref().map_or(Errors::NONE, |interval| Errors {
                burst: can.error_burst.as_ref().map_or(1, |burst| burst.value),
                interval: Nanos(interval.value),
            }),
            in_order: can.in_order.iter().map(|name| name.value.clone()).collect(),
            messages,
        })
    };
    declared.cans.iter().filter_map(network).collect()
}

fn messages(declared: &Declared, can: &DeclaredCan) -> Vec<CanMessage> {
    let message = |(number, message): (u16, &DeclaredMessage)| {
        let is_due = !message.is(CanClass::NonRealTime);
        let period_ns = message.period.as_ref().map(|period| period.value);
        let deadline = message.deadline.as_ref().map(|deadline| deadline.value);
        let process = message.process.as_ref().map(|it| CanSender::Process(it.value.clone()));
        let node = message.node.as_ref().map(|it| CanSender::Node(it.value.clone()));
        Some(CanMessage {
            name: message.name.value.clone(),
            number,
            sender: process.or(node)?,
            reader: message.reader.as_ref().map(|reader| reader.value.clone()),
            work_ns: message.work.as_ref().map_or(0, |work| work.value),
            period_ns,
            deadline_ns: if is_due { deadline.or(period_ns) } else { None },
            jitter_ns: message.jitter.as_ref().map_or(0, |jitter| jitter.value),
            bytes: u8::try_from(message.bytes.as_ref()?.value).ok()?,
            fd: message.fd,
            class: message.class.as_ref().map(|class| class.value),
            id: message
                .id
                .as_ref()
                .and_then(|id| Some((u32::try_from(id.value).ok()?, message.extended))),
        })
    };
    let own = (0..).zip(&declared.messages).filter(|(_, message)| message.is_on(can));
    own.filter_map(message).collect()
}
