//! Adapters that are USB network devices: `netd` reads the pipe from one and writes the pipe to it,
//! with a process for each direction.

use super::{TAG, UsbAdapter};
use crate::declared::{Declared, DeclaredAdapter, DeclaredPipe, DeclaredSocket, DeclaredUsb};
use crate::diagnostics::{Problem, Report};
use crate::plugged::SocketAddress;
use crate::source::At;
use diapason_contract::ethernet::{FRAME_MAX, PAYLOAD_MAX, PROGRAM};
use diapason_contract::threads::ServiceKind;

impl Declared {
    /// Returns the pipe from the USB device of an adapter, or to it.
    fn adapter_pipe(&self, device: &At<String>, to_device: bool) -> Option<(usize, &DeclaredPipe)> {
        let is = |pipe: &DeclaredPipe| {
            let of_it = pipe.usb.as_ref().is_some_and(|usb| usb.value == device.value);
            of_it && pipe.is_to_device() == to_device
        };
        self.pipes.iter().enumerate().find(|(_, pipe)| is(pipe))
    }

    /// Returns the number of the process that reads from the USB device of an adapter, or writes to
    /// it.
    pub(super) fn adapter_end(&self, device: &At<String>, to_device: bool) -> Option<usize> {
        let (_, pipe) = self.adapter_pipe(device, to_device)?;
        self.process(&pipe.process.as_ref()?.value)
    }
}

/// Returns the pipes of an adapter that is a USB device, and its processes.
pub(super) fn whole(declared: &Declared, device: &At<String>) -> Option<UsbAdapter> {
    let (plug, _) = declared.plug(&device.value)?;
    let (comes, _) = declared.adapter_pipe(device, false)?;
    let goes = declared.adapter_pipe(device, true);
    let sender = declared.adapter_end(device, true).and_then(|end| u16::try_from(end).ok());
    Some(UsbAdapter { plug, comes, goes: goes.map(|(pipe, _)| pipe).zip(sender) })
}

/// Returns the sockets of a USB device that is an adapter, to which the computer behind the device
/// sends.
pub(crate) fn datagrams(declared: &Declared, plug: &At<String>) -> Vec<SocketAddress> {
    let Some(adapter) = declared.adapter(plug) else { return Vec::new() };
    let all = declared.sockets.iter();
    let own = all.filter(|socket| socket.is_at(&plug.value) && !socket.is_rest());
    let address = |socket: &DeclaredSocket| SocketAddress {
        mac: adapter.mac,
        address: adapter.address,
        port: socket.port.value as u16,
        answers: socket.peer.map(|peer| peer.port),
    };
    own.map(address).collect()
}

/// Reports an adapter that is a USB device if `netd` cannot serve it, or does not.
pub(super) fn check(
    declared: &Declared,
    (adapter, device): (&DeclaredAdapter, &At<String>),
    usb: &DeclaredUsb,
    report: &mut Report,
) {
    let name = &device.value;
    let Some(model) = usb.model else { return };
    if model.service() != Some(ServiceKind::Networks) {
        let title = format!("`{name}` is no network device");
        let help = "write `model = \"network\"` in its `[[usb]]`, or take another device";
        let problem = Problem::new(&device.span, title, help);
        return report.push(problem.with(&usb.name.span, format!("its model is {}", model.name())));
    }
    if let Some((span, key)) = &adapter.of_card {
        let title = format!("`{key}` of an adapter that is a USB device");
        let help = format!("remove `{key}`: the pipe from `{name}` says how many frames come");
        report.push(Problem::new(span, title, help));
    }
    let sends = |socket: &&DeclaredSocket| socket.is_at(name) && socket.sends();
    let sender = declared.sockets.iter().find(sends);
    for to_device in [false, true] {
        let [way, end] = if to_device { ["to", "writer"] } else { ["from", "reader"] };
        let Some((_, pipe)) = declared.adapter_pipe(device, to_device) else {
            let title = match (to_device, sender) {
                (false, _) => format!("no pipe brings the frames of `{name}`"),
                (true, Some(socket)) => {
                    format!("`{}` sends, and no pipe goes to `{name}`", socket.name.value)
                }
                (true, None) => continue,
            };
            let help = format!(
                "add a `[[pipe]]` with `{way} = \"{name}\"`, and as `{end}` a process with \
                 `program = \"{PROGRAM}\"`"
            );
            report.push(Problem::new(&device.span, title, help));
            continue;
        };
        let Some(process) = declared.adapter_end(device, to_device) else { continue };
        let process = &declared.processes[process];
        if process.whole.program != PROGRAM {
            let title =
                format!("`{}` is the {end} of `{name}` and no `{PROGRAM}`", process.name.value);
            let help = format!("write `program = \"{PROGRAM}\"`, or remove the `[[adapter]]`");
            let problem = Problem::new(&device.span, title, help);
            report.push(problem.with(&pipe.name.span, "its pipe"));
        }
        if to_device {
            let own = declared.sockets.iter().filter(sends);
            own.for_each(|socket| fits(socket, pipe, report));
        }
    }
    if let (Some(reader), Some(writer)) =
        (declared.adapter_end(device, false), declared.adapter_end(device, true))
        && reader == writer
    {
        let title =
            format!("`{}` reads and writes `{name}`", declared.processes[reader].name.value);
        let help = "give each direction a process of its own: neither waits for the other";
        report.push(Problem::new(&device.span, title, help));
    }
}

/// Reports a socket whose datagrams become longer frames than the pipe to its adapter carries.
fn fits(socket: &DeclaredSocket, pipe: &DeclaredPipe, report: &mut Report) {
    let heads = FRAME_MAX as u64 - PAYLOAD_MAX;
    let heads = heads + if socket.priority.is_some() { TAG } else { 0 };
    let Some(most) = pipe.bytes.as_ref().filter(|most| socket.bytes + heads > most.value) else {
        return;
    };
    let (name, carries) = (&socket.name.value, &pipe.name.value);
    let title = format!(
        "frames of `{name}` have up to {} bytes, and `{carries}` carries {}",
        socket.bytes + heads,
        most.value
    );
    let help = match most.value.checked_sub(heads).filter(|rest| *rest > 0) {
        Some(rest) => format!("write at most `bytes = {rest}` in the `[[socket]]`"),
        None => format!("write `bytes = {}` in the `[[pipe]]`", socket.bytes + heads),
    };
    let problem = Problem::new(&socket.name.span, title, help);
    report.push(problem.with(&most.span, "the pipe"));
}
