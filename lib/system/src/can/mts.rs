//! The messages of this host on a bus under MTS, which a controller with message buffers sends.
//!
//! Its driver renews identifiers by its clock. It keeps the common time by the frames of another
//! node, which takes one buffer, or sends those frames itself.

use crate::can_network::CanScheduler;
use crate::declared::{Declared, DeclaredCan, DeclaredMessage};
use crate::diagnostics::{Problem, Report};
use diapason_contract::toucan::{READ, SENDING_ON_TIME, SHARED, STAMP_BITS};

/// Most messages with a buffer of their own.
pub(super) const OWN_MAX: u64 = (SENDING_ON_TIME - SHARED) as u64;
const SECOND: u64 = 1_000_000_000;

/// Reports what keeps the driver of a controller from taking part in a bus under MTS.
pub(super) fn check(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let Some(device) = can.controller.as_ref().filter(|_| can.is(CanScheduler::Mts)) else {
        return;
    };
    if !declared.messages.iter().any(|it| it.is_on(can) && it.process.is_some()) {
        return;
    }
    let keys = [
        ("time", "time = \"…\"", can.time.message.is_some()),
        ("renewal", "renewal = \"400us\"", can.renewal.is_some()),
        ("epoch", "epoch = \"10ms\"", can.epoch.is_some()),
        ("clocks", "clocks = \"40us\"", can.clocks.is_some()),
    ];
    for (key, example, _) in keys.into_iter().filter(|(_, _, is_there)| !is_there) {
        let title = format!("`{}` has no `{key}`, and its driver has to know it", can.name.value);
        let help = format!("add `{example}`: the plan says what fits");
        report.push(Problem::new(&device.span, title, help));
    }
    if let Some(own) = can.own_buffers.as_ref().filter(|own| own.value > OWN_MAX) {
        let title = format!("{} buffers of their own under MTS, the most is {OWN_MAX}", own.value);
        let help = format!("write `own_buffers = {OWN_MAX}`: one buffer hears the time");
        report.push(Problem::new(&own.span, title, help));
    }
    let (Some(read), Some(rate)) = (&can.time.read, &can.rate) else { return };
    let least = STAMP_BITS * SECOND.div_ceil(rate.value.max(1)) + READ.0;
    if read.value < least {
        let title = format!("the driver of `{}` cannot read its clock so soon", device.value);
        let micros = least.div_ceil(1_000);
        let help = format!("write `time_read = \"{micros}us\"` at least");
        report.push(Problem::new(&read.span, title, help));
    }
}

/// Reports a message of a program that carries the time.
pub(super) fn sends(
    declared: &Declared,
    can: &DeclaredCan,
    message: &DeclaredMessage,
    report: &mut Report,
) {
    let time = can.time.message.as_ref().filter(|_| can.is(CanScheduler::Mts));
    if let Some(time) = time.filter(|time| time.value == message.name.value)
        && !declared.leads(can, message)
    {
        let title = format!("`{}` carries the time, and a program sends it", time.value);
        let help = "let the driver of the controller send it (`process`), or another `node`: a \
                    program cannot tell when a frame is through";
        report.push(Problem::new(&time.span, title, help).with(&message.name.span, "the message"));
    }
}
