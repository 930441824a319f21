//! Pipes from devices that are no CAN interfaces: what their endpoints can do bounds what a
//! `[[pipe]]` may say.

use crate::carried::PipeDirection;
use crate::declared::{Declared, DeclaredPipe, DeclaredUsb};
use crate::diagnostics::{Problem, Report};
use crate::source::At;
use crate::units::show_duration;
use diapason_contract::source::{EndpointAttributes, MessageShape, PipeSource};

/// Bytes of a time in a message.
const STAMP: usize = 8;

/// Returns the source that a pipe comes from, if its device is one, and the device.
fn plugged<'d>(
    declared: &'d Declared,
    usb: Option<&At<String>>,
) -> Option<(&'d DeclaredUsb, &'static PipeSource)> {
    let (_, usb) = declared.plug(&usb?.value)?;
    let (_, source) = usb.model?.source()?;
    Some((usb, source))
}

/// Returns the source of this device, if it is one.
pub(crate) fn of(declared: &Declared, usb: Option<&At<String>>) -> Option<&'static PipeSource> {
    plugged(declared, usb).map(|(_, source)| source)
}

/// Returns the shape of a pipe's messages.
pub(crate) fn shape(declared: &Declared, pipe: &DeclaredPipe) -> MessageShape {
    let Some(source) = of(declared, pipe.usb.as_ref()) else { return MessageShape::default() };
    let number = |at: &At<u64>| usize::try_from(at.value).unwrap_or(usize::MAX);
    let bytes = pipe.bytes.as_ref().map_or(source.attributes.packet.1, number);
    MessageShape { bytes, stamp: pipe.stamp.as_ref().map(number) }
}

/// Checks a pipe against the endpoint of its device.
pub(crate) fn check(declared: &Declared, pipe: &DeclaredPipe, report: &mut Report) {
    let Some((usb, source)) = plugged(declared, pipe.usb.as_ref()) else {
        // A device that is not there is reported elsewhere.
        let known = pipe.usb.as_ref().is_some_and(|usb| declared.plug(&usb.value).is_some());
        for at in [&pipe.bytes, &pipe.stamp].into_iter().flatten().filter(|_| known) {
            let help = "remove the key: messages of a CAN interface are frames, which bear times";
            report.push(Problem::new(&at.span, "a pipe whose messages have their shape", help));
        }
        return;
    };
    let name = &usb.name.value;
    if let (PipeDirection::ToDevice, Some(to)) = (pipe.way, &pipe.usb) {
        let title = format!("nothing can be written to `{name}`");
        let problem = Problem::new(&to.span, title, "write `from` and `reader`, or another device");
        report.push(problem.with(&usb.name.span, "the server only reads it"));
        return;
    }
    let attributes = &source.attributes;
    shaped(pipe, name, attributes, report);
    let fastest = attributes.min_latency.0;
    let rate_at = pipe.period.as_ref().filter(|period| period.value < fastest);
    if let Some(period) = rate_at {
        let title = format!("`{name}` has a message every {} at most", show_duration(fastest));
        let help = format!("write at least `period = \"{}\"`", show_duration(fastest));
        report.push(Problem::new(&period.span, title, help));
    } else if pipe.period.is_none() && pipe.rate.saturating_mul(fastest) > 1_000_000_000 {
        let most = 1_000_000_000 / fastest;
        let title = format!("`{name}` has {most} messages a second at most");
        report.push(Problem::new(&pipe.name.span, title, format!("write at most `rate = {most}`")));
    }
    if pipe.burst > attributes.buffer {
        let title = format!("`{name}` keeps {} messages at once", attributes.buffer);
        let help = format!("write at most `burst = {}`", attributes.buffer);
        report.push(Problem::new(&pipe.name.span, title, help));
    }
    alone(declared, usb, source, report);
}

/// Checks the shape of a pipe's messages.
fn shaped(pipe: &DeclaredPipe, name: &str, attributes: &EndpointAttributes, report: &mut Report) {
    let most = attributes.packet.1;
    let bytes = pipe.bytes.as_ref().map_or(most as u64, |bytes| bytes.value);
    if let Some(at) = pipe.bytes.as_ref().filter(|at| at.value > most as u64) {
        let title = format!("a packet of `{name}` has {most} bytes at most");
        let help = format!("write at most `bytes = {most}`: a longer message is several packets");
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

/// The server serves one device of the kind at a time: with two of them, it could be the other one
/// whose messages the pipe carries.
fn alone(declared: &Declared, usb: &DeclaredUsb, source: &PipeSource, report: &mut Report) {
    let controller = declared.controller_of(usb).map(|it| &it.value);
    let same = |other: &&DeclaredUsb| {
        let kind = other.model.and_then(|model| model.service());
        let on = declared.controller_of(other).map(|it| &it.value);
        other.name.value != usb.name.value && kind == Some(source.kind) && on == controller
    };
    if let Some(other) = declared.usb.iter().find(same) {
        let title = format!(
            "`{}` has a pipe, and the server could serve `{}` instead",
            usb.name.value, other.name.value
        );
        let help = "it serves one of them at a time: plug the other into another controller";
        report.push(Problem::new(&other.name.span, title, help).with(&usb.name.span, "its pipe"));
    }
}
