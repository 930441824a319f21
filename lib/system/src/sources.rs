//! Pipes from devices that are no CAN interfaces: what their endpoints can do bounds what a
//! `[[pipe]]` may say.

use crate::carried::PipeDirection;
use crate::declared::{Declared, DeclaredPipe, DeclaredUsb};
use crate::diagnostics::{Problem, Report};
use crate::source::At;
use crate::units::show_duration;
use diapason_contract::disk::{self, BLOCK};
use diapason_contract::source::{MessageForm, MessageShape, PipeSource};
use diapason_contract::threads::ServiceKind;

/// Bytes of a time in a message.
const STAMP: usize = 8;

/// Returns the source that a pipe comes from, or the sink that it goes to, if its device is one,
/// and the device.
fn plugged<'d>(
    declared: &'d Declared,
    pipe: &DeclaredPipe,
) -> Option<(&'d DeclaredUsb, &'static PipeSource)> {
    let (_, usb) = declared.plug(&pipe.usb.as_ref()?.value)?;
    let (_, source) = usb.source(pipe.way).or_else(|| usb.model?.source(pipe.way))?;
    Some((usb, source))
}

/// Returns the source that a pipe comes from, or the sink that it goes to, if its device is one.
pub(crate) fn of(declared: &Declared, pipe: &DeclaredPipe) -> Option<&'static PipeSource> {
    plugged(declared, pipe).map(|(_, source)| source)
}

/// Returns the shape of a pipe's messages.
pub(crate) fn shape(declared: &Declared, pipe: &DeclaredPipe) -> MessageShape {
    let Some(source) = of(declared, pipe) else { return MessageShape::default() };
    let number = |at: &At<u64>| usize::try_from(at.value).unwrap_or(usize::MAX);
    let bytes = pipe.bytes.as_ref().map_or(source.attributes.packet.1, number);
    // Each piece of a picture begins with a head that has the picture's time, and each ask for
    // blocks has the time at which it was due. A packet that is written has the time of that.
    let stamp = match source.form {
        MessageForm::Packet | MessageForm::Frame(_) => pipe.stamp.as_ref().map(number),
        MessageForm::Picture(_)
        | MessageForm::Blocks(_)
        | MessageForm::SentFrame(_)
        | MessageForm::Written(_) => Some(0),
    };
    MessageShape { bytes, stamp }
}

/// Checks a pipe against the endpoint of its device.
pub(crate) fn check(declared: &Declared, pipe: &DeclaredPipe, report: &mut Report) {
    let Some((usb, source)) = plugged(declared, pipe) else {
        // A device that is not there is reported elsewhere.
        let known = pipe.usb.as_ref().is_some_and(|usb| declared.plug(&usb.value).is_some());
        for at in [&pipe.bytes, &pipe.stamp].into_iter().flatten().filter(|_| known) {
            let help = "remove the key: messages of a CAN interface are frames, which bear times";
            report.push(Problem::new(&at.span, "a pipe whose messages have their shape", help));
        }
        return chosen(pipe).filter(|_| known).map_or((), |problem| report.push(problem));
    };
    let name = &usb.name.value;
    let goes = source.form.is_written();
    let is_wrong = !source.form.goes_both_ways() && goes != pipe.is_to_device();
    if let Some(end) = pipe.usb.as_ref().filter(|_| is_wrong) {
        let (title, help, note) = match goes {
            true => (
                format!("nothing comes from `{name}`"),
                "write `to` and `writer`, or another device",
                "the server only writes to it",
            ),
            false => (
                format!("nothing can be written to `{name}`"),
                "write `from` and `reader`, or another device",
                "the server only reads it",
            ),
        };
        let problem = Problem::new(&end.span, title, help);
        report.push(problem.with(&usb.name.span, note));
        return;
    }
    let attributes = &source.attributes;
    match source.kind {
        ServiceKind::Endpoints => described(pipe, name, ["reads", "sends packets to"], report),
        ServiceKind::Sinks => described(pipe, name, ["writes to", "takes packets from"], report),
        _ => chosen(pipe).map_or((), |problem| report.push(problem)),
    }
    match source.form {
        MessageForm::Packet | MessageForm::Frame(_) => {}
        MessageForm::Picture(_) => in_pieces(pipe, name, report),
        MessageForm::Blocks(_) => in_blocks(pipe, usb, report),
        MessageForm::Written(_) | MessageForm::SentFrame(_) => written(pipe, usb, report),
    }
    shaped(pipe, name, source, report);
    let fastest = attributes.min_latency.0;
    let rate_at = pipe.period.as_ref().filter(|period| period.value < fastest);
    if let Some(period) = rate_at {
        let title = format!("`{name}` has a message every {} at most", show_duration(fastest));
        let help = format!("write at least `period = \"{}\"`", show_duration(fastest));
        report.push(Problem::new(&period.span, title, help));
    } else if pipe.lacks("period") && pipe.rate.saturating_mul(fastest) > 1_000_000_000 {
        let most = 1_000_000_000 / fastest;
        let title = format!("`{name}` has {most} messages a second at most");
        report.push(Problem::new(&pipe.name.span, title, format!("write at most `rate = {most}`")));
    }
    if pipe.burst > attributes.buffer {
        let title = format!("`{name}` keeps {} messages at once", attributes.buffer);
        let help = format!("write at most `burst = {}`", attributes.buffer);
        report.push(Problem::new(&pipe.name.span, title, help));
    }
    alone(declared, usb, pipe, report);
}

/// Returns the problem of a pipe that names an endpoint although the server knows it.
fn chosen(pipe: &DeclaredPipe) -> Option<Problem> {
    let help = "remove the key: the service of this device knows its endpoints";
    let endpoint = pipe.endpoint.as_ref()?;
    Some(Problem::new(&endpoint.span, "a pipe whose endpoint is known", help))
}

/// Checks that a pipe of any endpoint says which one, and how long its packets are: the server
/// knows nothing of the device.
fn described(pipe: &DeclaredPipe, device: &str, does: [&str; 2], report: &mut Report) {
    let name = &pipe.name;
    let [does, which] = does;
    if pipe.lacks("endpoint") {
        let title = format!("`{}` does not say which endpoint of `{device}` it {does}", name.value);
        let help = format!("add `endpoint = 1`, the number of one that {which} the host");
        report.push(Problem::new(&name.span, title, help));
    }
    if pipe.lacks("bytes") {
        let title = format!("`{}` does not say how long the packets of `{device}` are", name.value);
        let help = "add `bytes = 8`, the most bytes of a packet of its endpoint";
        report.push(Problem::new(&name.span, title, help));
    }
}

/// Checks a pipe whose messages come in pieces: how often they come, and nothing that is known.
fn in_pieces(pipe: &DeclaredPipe, device: &str, report: &mut Report) {
    if pipe.lacks("period") {
        let title =
            format!("`{}` does not say how often `{device}` has a picture", pipe.name.value);
        let help = "write `period = \"40ms\"` instead of `rate`: the camera is asked for that";
        report.push(Problem::new(&pipe.name.span, title, help));
    }
    if let Some(at) = &pipe.stamp {
        let help = "remove the key: a camera says in its heads when it made a picture";
        report.push(Problem::new(&at.span, "a pipe whose messages bear their times", help));
    }
    if pipe.jitter_ns > 0 {
        let title = format!("`{device}` has its pictures at even distances");
        let help = "remove `jitter`: the camera agrees to the period of the pipe";
        report.push(Problem::new(&pipe.name.span, title, help));
    }
}

/// Checks that a pipe of blocks says how often its reader or writer asks for how many, and nothing
/// that follows from that.
fn in_blocks(pipe: &DeclaredPipe, usb: &DeclaredUsb, report: &mut Report) {
    let (name, device, goes) = (&pipe.name, &usb.name.value, pipe.is_to_device());
    if pipe.lacks("period") {
        let (does, end) = if goes { ("writes to", "writer") } else { ("reads from", "reader") };
        let title = format!("`{}` does not say how often it {does} `{device}`", name.value);
        let help =
            format!("write `period = \"4ms\"` instead of `rate`: its {end} asks once in that time");
        report.push(Problem::new(&name.span, title, help));
    }
    // A message that is too long is reported as that.
    let most = disk::SOURCES[0].attributes.packet.1 as u64;
    let is_part = |at: &&At<u64>| at.value <= most && !at.value.is_multiple_of(BLOCK as u64);
    if let Some(at) = pipe.bytes.as_ref().filter(is_part) {
        let title = format!("{} bytes of `{device}` are no whole blocks of {BLOCK}", at.value);
        let fits = at.value.next_multiple_of(BLOCK as u64);
        report.push(Problem::new(&at.span, title, format!("write `bytes = {fits}`")));
    }
    if let Some(at) = &pipe.stamp {
        let help = match goes {
            true => "remove the key: the time of a message is that at which it was written",
            false => "remove the key: the time of a message is that at which its reader was to ask",
        };
        report.push(Problem::new(&at.span, "a pipe whose messages bear their times", help));
    }
    if pipe.jitter_ns > 0 || pipe.burst > 1 {
        let title = format!("the messages of `{}` are asked for one by one", name.value);
        report.push(Problem::new(&name.span, title, "remove `burst` and `jitter`"));
    }
    if usb.takes.is_none() {
        let title = format!("nobody knows how long `{device}` takes for a command");
        let help = "add `takes = \"500us\"` to it, the longest time besides that on the bus";
        let problem = Problem::new(&usb.name.span, title, help);
        report.push(problem.with(&name.span, "its pipe"));
    }
}

/// Checks that a pipe to an endpoint says how often its writer has a packet for it, and that the
/// device has a time for one.
fn written(pipe: &DeclaredPipe, usb: &DeclaredUsb, report: &mut Report) {
    let (name, device) = (&pipe.name, &usb.name.value);
    if pipe.lacks("period") {
        let title = format!("`{}` does not say how often it writes to `{device}`", name.value);
        let help = "write `period = \"5ms\"` instead of `rate`: the shortest time between packets";
        report.push(Problem::new(&name.span, title, help));
    }
    if let Some(at) = &pipe.stamp {
        let help = "remove the key: the time of a message is that at which it was written";
        report.push(Problem::new(&at.span, "a pipe whose messages bear their times", help));
    }
    if pipe.jitter_ns > 0 || pipe.burst > 1 {
        let title = format!("the packets of `{}` go one by one", name.value);
        report.push(Problem::new(&name.span, title, "remove `burst` and `jitter`"));
    }
    if usb.takes.is_none() {
        let title = format!("nobody knows how long `{device}` takes for a packet");
        let help = "add `takes = \"100us\"` to it, the longest time for which it says \"not now\"";
        let problem = Problem::new(&usb.name.span, title, help);
        report.push(problem.with(&name.span, "its pipe"));
    }
}

/// Returns the pipes of a device.
fn pipes_of<'d>(
    declared: &'d Declared,
    usb: &'d DeclaredUsb,
) -> impl Iterator<Item = &'d DeclaredPipe> {
    let is_of =
        |pipe: &&DeclaredPipe| pipe.usb.as_ref().is_some_and(|it| it.value == usb.name.value);
    declared.pipes.iter().filter(is_of)
}

/// Returns the service that a device is for: that of its pipes, if it has some.
fn kind(declared: &Declared, usb: &DeclaredUsb) -> Option<ServiceKind> {
    let kinds = pipes_of(declared, usb).filter_map(|pipe| Some(of(declared, pipe)?.kind));
    kinds.reduce(ServiceKind::with).or(usb.model?.service())
}

/// Checks the shape of a pipe's messages.
fn shaped(pipe: &DeclaredPipe, name: &str, source: &PipeSource, report: &mut Report) {
    let most = source.attributes.packet.1;
    let what = match source.form {
        MessageForm::Packet | MessageForm::Written(_) => "packet",
        MessageForm::Picture(_) => "picture",
        MessageForm::Blocks(_) => "message",
        MessageForm::Frame(_) | MessageForm::SentFrame(_) => "frame",
    };
    let bytes = pipe.bytes.as_ref().map_or(most as u64, |bytes| bytes.value);
    if let Some(at) = pipe.bytes.as_ref().filter(|at| at.value > most as u64) {
        let title = format!("a {what} of `{name}` has {most} bytes at most");
        let help = format!("write at most `bytes = {most}`: a longer message is several {what}s");
        report.push(Problem::new(&at.span, title, help));
    } else if let Some(at) = pipe.stamp.as_ref().filter(|at| at.value + STAMP as u64 > bytes) {
        let title = format!("the time of a message would be beyond its {bytes} bytes");
        let help = match bytes.checked_sub(STAMP as u64) {
            Some(last) => format!("write at most `stamp = {last}`: a time has {STAMP} bytes"),
            None => format!("remove the key, or write more `bytes`: a time has {STAMP} bytes"),
        };
        report.push(Problem::new(&at.span, title, help));
    }
}

/// Checks that there is a seat for a device with a pipe, and a pipe from each other device of its
/// kind.
fn seated(
    (declared, kind): (&Declared, ServiceKind),
    usb: &DeclaredUsb,
    others: &[&DeclaredUsb],
    report: &mut Report,
) {
    let (name, seats) = (&usb.name, kind.homes().len());
    let what = match kind {
        ServiceKind::Cameras => "camera",
        ServiceKind::Disks => "disk",
        _ => "sensor",
    };
    if usb.seat >= seats {
        let title = format!("`{}` is one {what} too many: {seats} may have pipes", name.value);
        let help = format!("remove its pipe and the {what}: a server has no more seats");
        return report.push(Problem::new(&name.span, title, help));
    }
    let is_silent = |other: &&&DeclaredUsb| pipes_of(declared, other).next().is_none();
    if let Some(other) = others.iter().find(is_silent) {
        let other = &other.name;
        let title = format!("`{}` has no pipe, and so nobody serves it", other.value);
        let help = "declare a `[[pipe]]` from it, or plug it into another controller";
        let note = format!("each {what} beside one with a pipe has one, too");
        report.push(Problem::new(&other.span, title, help).with(&name.span, note));
    }
}

/// Checks that the messages of a pipe are those of its own device. Each camera, each sensor and
/// each disk with a pipe has a seat. Of any other kind the server serves one device at a time: with
/// two of them, the pipe could carry the messages of the other one. All pipes of one source are the
/// same objects.
fn alone(declared: &Declared, usb: &DeclaredUsb, pipe: &DeclaredPipe, report: &mut Report) {
    let on = |usb| declared.controller_of(usb).map(|it| &it.value);
    let others = || {
        let all = declared.usb.iter().filter(|other| other.name.value != usb.name.value);
        all.filter(|other| on(other) == on(usb))
    };
    let own = &usb.name.value;
    let mut alike = others().filter(|other| kind(declared, other) == kind(declared, usb));
    if let Some(kind) = kind(declared, usb).filter(|kind| kind.has_seats()) {
        seated((declared, kind), usb, &alike.collect::<Vec<_>>(), report);
    } else if let Some(other) = alike.next() {
        let title = format!(
            "`{own}` has a pipe, and the server could serve `{}` instead",
            other.name.value
        );
        let help = "it serves one of them at a time: plug the other into another controller";
        report.push(Problem::new(&other.name.span, title, help).with(&usb.name.span, "its pipe"));
        return;
    }
    let same = |other: &&DeclaredPipe| of(declared, other) == of(declared, pipe);
    if let Some(other) = others().find_map(|other| pipes_of(declared, other).find(same)) {
        let way = match pipe.way {
            PipeDirection::FromDevice => "from",
            PipeDirection::ToDevice => "to",
        };
        let (own, other_name) = (&pipe.name.value, &other.name.value);
        let title = format!("`{own}` and `{other_name}` are both {way} the endpoint of a device");
        let help = "a server has one such pipe: plug one device into another controller";
        report.push(Problem::new(&pipe.name.span, title, help).with(&other.name.span, "the other"));
    }
}
