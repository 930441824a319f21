//! The messages of this host on a bus under MTS, which a controller with message buffers sends.
//!
//! Its driver renews identifiers by its clock, keeps the common time by the frames of another node,
//! and gives each message a buffer of its own.

use crate::can_network::CanScheduler;
use crate::declared::{Declared, DeclaredCan, DeclaredMessage};
use crate::diagnostics::{Problem, Report};
use diapason_contract::toucan::{SENDING_ON_TIME, SHARED, STAMP_BITS};

/// Most messages of this host on such a bus.
const OWN_MAX: usize = SENDING_ON_TIME - SHARED;
/// The driver reads the timer of the controller and then its clock. It drops a reading that took
/// longer.
const READS: u64 = 5_000;
const SECOND: u64 = 1_000_000_000;

/// Reports what keeps the driver of a controller from taking part in a bus under MTS.
pub(super) fn check(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let Some(device) = can.controller.as_ref().filter(|_| can.is(CanScheduler::Mts)) else {
        return;
    };
    let sent = || declared.messages.iter().filter(|it| it.is_on(can) && it.process.is_some());
    let count = sent().count();
    if count == 0 {
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
    if count > OWN_MAX {
        let title = format!("{count} messages of this host under MTS, the most is {OWN_MAX}");
        let help = "each has a buffer of its own: let another host send some of them";
        report.push(Problem::new(&device.span, title, help));
    }
    if let Some(own) = can.own_buffers.as_ref().filter(|own| own.value < count as u64) {
        let title = format!("{count} messages of this host, and {} buffers", own.value);
        let help = "remove `own_buffers`: under MTS each message has a buffer of its own";
        report.push(Problem::new(&own.span, title, help));
    }
    let (Some(read), Some(rate)) = (&can.time.read, &can.rate) else { return };
    let least = STAMP_BITS * SECOND.div_ceil(rate.value.max(1)) + READS;
    if read.value < least {
        let title = format!("the driver of `{}` cannot read its clock so soon", device.value);
        let micros = least.div_ceil(1_000);
        let help = format!("write `time_read = \"{micros}us\"` at least");
        report.push(Problem::new(&read.span, title, help));
    }
}

/// Reports a message of this host that carries the time.
pub(super) fn sends(can: &DeclaredCan, message: &DeclaredMessage, report: &mut Report) {
    let time = can.time.message.as_ref().filter(|_| can.is(CanScheduler::Mts));
    if let Some(time) = time.filter(|time| time.value == message.name.value) {
        let title =
            format!("`{}` carries the time, and a process of this host sends it", time.value);
        let help = "let another `node` send the time: the driver only follows it";
        report.push(Problem::new(&time.span, title, help).with(&message.name.span, "the message"));
    }
}
