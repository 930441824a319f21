//! Rules about frames of CAN FD: how long they are, and what must not be on a bus with them.

use crate::can_network::CanScheduler;
use crate::declared::{Declared, DeclaredCan, DeclaredMessage};
use crate::diagnostics::{Problem, Report};

/// Bytes of a frame of CAN FD.
pub(super) const BYTES_MAX: u64 = 64;
/// Bytes of a classic frame.
const CLASSIC_MAX: u64 = 8;

/// Reports a message that is too long for a classic frame and is one.
pub(super) fn length(message: &DeclaredMessage, report: &mut Report) {
    let Some(bytes) = message.bytes.as_ref().filter(|bytes| bytes.value > CLASSIC_MAX) else {
        return;
    };
    if !message.fd {
        let title = format!("no classic frame has {} bytes", bytes.value);
        let help = "write at most 8, or add `fd = true` if it is a frame of CAN FD";
        report.push(Problem::new(&bytes.span, title, help));
    }
}

/// Reports the contradictions of a bus with its frames of CAN FD.
pub(super) fn check(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let mut messages = declared.messages.iter();
    let first = messages.find(|message| message.is_on(can) && message.fd);
    if let (Some(data), Some(rate)) = (&can.data_rate, &can.rate)
        && data.value < rate.value
    {
        let title = format!("the data would be slower than the {} bit/s of the rest", rate.value);
        let help = "write a `data_rate` that is at least `rate`, or leave it out";
        report.push(Problem::new(&data.span, title, help));
    }
    let Some(first) = first else {
        if let Some(data) = &can.data_rate {
            let title = "`data_rate` says nothing here";
            let help = "add `fd = true` to the messages that are frames of CAN FD, or remove it";
            report.push(Problem::new(&data.span, title, help));
        }
        return;
    };
    if let Some(usb) = can.usb.as_ref().or(can.controller.as_ref()) {
        let title = format!("`{}` knows no CAN FD, and would destroy its frames", usb.value);
        let help =
            "remove the connection of this host and plan the bus alone, or remove `fd = true`";
        let problem = Problem::new(&usb.span, title, help);
        report.push(problem.with(&first.name.span, "a frame of CAN FD"));
    }
    if can.is(CanScheduler::Mts) {
        let title = format!("`{}` is a frame of CAN FD under MTS", first.name.value);
        let help = "use another `scheduler`: how identifiers are renewed is proved of classic \
                    frames only";
        report.push(Problem::new(&first.name.span, title, help));
    }
}
