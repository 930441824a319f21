//! `controller` of a `[[can]]`: a CAN controller with message buffers, which a process of `cand`
//! drives, and through which other processes of this host send their messages and read those of
//! other nodes.
//!
//! The segments and the semaphore between them follow, and so do the rights of both ends.

use super::{heard, mts};
use crate::can_network::{CanController, CanNetwork, CanScheduler, CanSender};
use crate::declared::{
    Declared, DeclaredCan, DeclaredDevice, DeclaredMessage, DeclaredPlace, DeclaredProcess,
    DeclaredSegment, Named,
};
use crate::diagnostics::{Problem, Report};
use crate::server::too_few;
use crate::source::At;
use crate::system::{SemaphoreKind, Setting, System};
use diapason_abi::Key;
use diapason_contract::toucan::{
    CLASS, CONTROLLER_NAMES, CONTROLLER_SETTING, CONTROLLERS, ControllerTerms, DRIVER, MESSAGES,
    MESSAGES_SETTING, MTS_SETTING, MessageTerms, OUT_BYTES, PROGRAM, SENDERS, SENDING, SHARED,
    has_rate,
};

/// Threads, semaphores and events that `cand` makes when it starts.
const THREADS: usize = 2;
const SEMAPHORES: usize = 1;
const EVENTS: usize = 1;

/// Most messages with a buffer of their own.
pub(super) const OWN_MAX: u64 = (SENDING - SHARED) as u64;

/// Returns the number of the controller of this device name.
fn number(device: &At<String>) -> Option<usize> {
    CONTROLLER_NAMES.iter().position(|names| names.device == device.value)
}

impl Declared {
    /// Returns the number of the process that drives a controller.
    pub(super) fn cand(&self, device: &At<String>) -> Option<usize> {
        self.processes.iter().position(|it| it.uses.iter().any(|used| used.value == device.value))
    }

    /// Returns whether this message carries the time of a bus, and the driver of its controller
    /// sends it.
    pub(super) fn leads(&self, can: &DeclaredCan, message: &DeclaredMessage) -> bool {
        let driver = can.controller.as_ref().and_then(|device| self.cand(device));
        let driver = driver.map(|driver| &self.processes[driver].name.value);
        let sends = message.process.as_ref().is_some_and(|it| Some(&it.value) == driver);
        let time = can.time.message.as_ref().filter(|_| can.is(CanScheduler::Mts));
        sends && time.is_some_and(|time| time.value == message.name.value)
    }

    /// Returns the messages of processes of this host on a bus.
    fn sent<'d>(&'d self, can: &'d DeclaredCan) -> impl Iterator<Item = &'d DeclaredMessage> {
        self.messages.iter().filter(|message| message.is_on(can) && message.process.is_some())
    }

    /// Returns the names of processes that send on a bus, in the order of their first messages,
    /// without a driver that sends the time only.
    fn senders(&self, can: &DeclaredCan) -> Vec<At<String>> {
        let mut senders: Vec<At<String>> = Vec::new();
        let others = self.sent(can).filter(|message| !self.leads(can, message));
        for process in others.filter_map(|message| message.process.as_ref()) {
            if senders.iter().all(|other| other.value != process.value) {
                senders.push(process.clone());
            }
        }
        senders
    }
}

/// Declares what controllers need, and that both ends use it.
pub(crate) fn expand(declared: &mut Declared) {
    for index in 0..declared.cans.len() {
        let Some(device) = declared.cans[index].controller.clone() else { continue };
        let (Some(number), Some(driver)) = (number(&device), declared.cand(&device)) else {
            continue;
        };
        let (name, senders) =
            (&declared.processes[driver].name, declared.senders(&declared.cans[index]));
        if senders.iter().any(|sender| sender.value == name.value) {
            // Reported later, with what to do.
            continue;
        }
        heard::expand(declared, index, (number, driver));
        let known = &CONTROLLER_NAMES[number];
        let named = |name: &str| At::new(name.to_owned(), device.span.clone());
        let what = SemaphoreKind::Counting(0);
        declared.semaphores.push(Named { name: named(known.send), what });
        declared.processes[driver].uses.push(named(known.send));
        for (out, sender) in known.out.into_iter().zip(senders) {
            let what = DeclaredSegment { size: OUT_BYTES, dma: false, common: false };
            declared.segments.push(Named { name: named(out), what });
            declared.processes[driver].uses.push(named(out));
            if let Some(process) = declared.process(&sender.value) {
                declared.processes[process].uses.extend([named(out), named(known.send)]);
            }
        }
    }
}

/// Reports what is wrong with the controller of a bus.
pub(super) fn check(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let Some(device) = &can.controller else {
        if let Some(own) = &can.own_buffers {
            let help = "add `controller = \"toucan0\"`, or remove it";
            report.push(Problem::new(&own.span, "`own_buffers` of no controller", help));
        }
        return;
    };
    let mut bad = |title: String, help: String| {
        report.push(Problem::new(&device.span, title, help));
    };
    let (bus, name) = (&can.name.value, &device.value);
    if can.usb.is_some() {
        let title = format!("`{bus}` has two connections to this host");
        return bad(title, "keep `controller`, or `usb` and `channel`".into());
    }
    let same = |other: &&DeclaredCan| {
        other.name.span != can.name.span
            && other.controller.as_ref().is_some_and(|other| other.value == *name)
    };
    if declared.cans.iter().any(|other| same(&other)) {
        let title = format!("`{name}` is on two buses");
        return bad(title, "connect each controller to one bus".into());
    }
    if declared.cores.value > 1 {
        let title = "a controller on a host with several cores".to_owned();
        return bad(title, "write `cores = 1`: messages do not reach other cores yet".into());
    }
    if number(device).is_none() {
        let title = format!("`{name}` cannot be the controller of a bus");
        let last = CONTROLLER_NAMES[CONTROLLERS - 1].device;
        let first = CONTROLLER_NAMES[0].device;
        return bad(title, format!("call the device `{first}` to `{last}`"));
    }
    let Some(found) = declared.devices.iter().find(|it| it.name.value == *name) else {
        let title = format!("no device is called `{name}`");
        let help = "declare it: `[[device]]` with `pci = \"0c0900\"`, `size = \"4K\"`, `irqs = 1`";
        return bad(title, help.into());
    };
    if !is_controller(&found.what) {
        let title = format!("`{name}` is no controller that `{PROGRAM}` drives");
        return bad(title, "write `pci = \"0c0900\"` and `irqs = 1` in its `[[device]]`".into());
    }
    let Some(driver) = declared.cand(device).map(|driver| &declared.processes[driver]) else {
        let title = format!("nobody drives `{name}`");
        let help =
            format!("add a `[[process]]` with `program = \"{PROGRAM}\"` and `uses = [\"{name}\"]`");
        return bad(title, help);
    };
    if driver.whole.program != PROGRAM {
        let title = format!("`{}` uses `{name}` and does not run `{PROGRAM}`", driver.name.value);
        return bad(title, format!("write `program = \"{PROGRAM}\"`, or remove `controller`"));
    }
    if let Some(rate) = can.rate.as_ref().filter(|rate| !has_rate(rate.value)) {
        let title = format!("`{name}` has no bit rate of {}", rate.value);
        return bad(title, "write a rate that divides 16 MHz, such as 500000".into());
    }
    let (sent, senders) = (declared.sent(can).count(), declared.senders(can).len());
    if sent > MESSAGES {
        let title = format!("{sent} messages of this host on `{bus}`, the most is {MESSAGES}");
        return bad(title, "let another host send some of them".into());
    }
    if senders > SENDERS {
        let title = format!("{senders} processes send on `{bus}`, the most is {SENDERS}");
        bad(title, "let one process send the messages of several".into());
    }
    can_drive(declared, can, driver, report);
}

/// Reports what keeps the driver of a controller from driving it.
fn can_drive(
    declared: &Declared,
    can: &DeclaredCan,
    driver: &DeclaredProcess,
    report: &mut Report,
) {
    let name = &driver.name.value;
    let mut bad = |title: String, help: String| {
        report.push(Problem::new(&driver.name.span, title, help));
    };
    if driver.uses.iter().filter(|used| number(used).is_some()).count() > 1 {
        let title = format!("`{name}` drives two controllers");
        bad(title, format!("add a `[[process]]` with `program = \"{PROGRAM}\"` for each"));
    }
    if driver.vcpu.is_none() {
        let title =
            format!("`{name}` has no VCPU, and messages on `{}` wait for it", can.name.value);
        bad(title, "add `vcpu = \"…\"`: without one it only runs if nothing else does".into());
    }
    let makes = [THREADS, EVENTS, SEMAPHORES];
    too_few(&driver.whole, makes).into_iter().for_each(|(title, help)| bad(title, help));
    if declared.senders(can).iter().any(|sender| sender.value == *name) {
        let title =
            format!("`{name}` drives the controller of `{}` and sends no message", can.name.value);
        bad(title, "let another process send its messages; under MTS it may send `time`".into());
    }
}

/// Reports a message of a process that a controller cannot send.
pub(super) fn sends(message: &DeclaredMessage, report: &mut Report) {
    let name = &message.name;
    let Some(period) = &message.period else {
        let title = format!("`{}` has no period, and a process sends it", name.value);
        let help = "add `period = \"10ms\"`: the shortest time between two";
        return report.push(Problem::new(&name.span, title, help));
    };
    if message.jitter.is_none() {
        let title = format!("`{}` has no jitter, and a process sends it", name.value);
        let help = "add `jitter = \"300us\"`: the longest from when the program has it until the \
                    driver has it in its queue, which a run measures";
        return report.push(Problem::new(&name.span, title, help));
    }
    if let Some(deadline) = message.deadline.as_ref().filter(|it| it.value > period.value) {
        let title = format!("the deadline of `{}` is longer than its period", name.value);
        let help = "shorten it: the driver keeps the newest message only";
        report.push(Problem::new(&deadline.span, title, help));
    }
}

fn is_controller(device: &DeclaredDevice) -> bool {
    let DeclaredPlace::Pci(function) = &device.place else { return false };
    function.value.class == CLASS && device.messages() == 1
}

/// Returns the controller of a bus, as far as it is whole.
pub(super) fn of(declared: &Declared, can: &DeclaredCan) -> Option<CanController> {
    let device = can.controller.as_ref()?;
    let sent = declared.sent(can).count() as u64;
    let most = if can.is(CanScheduler::Mts) { mts::OWN_MAX } else { OWN_MAX };
    let own = can.own_buffers.as_ref().map_or(most, |own| own.value);
    let left = most.saturating_sub(declared.heard(can).count() as u64);
    let place = declared.devices.iter().position(|it| it.name.value == device.value)?;
    Some(CanController {
        number: u8::try_from(number(device)?).ok()?,
        device: place,
        interval_ns: declared.devices[place].what.interval(0)?,
        driver: u16::try_from(declared.cand(device)?).ok()?,
        own: own.min(sent).min(left) as u8,
    })
}

/// Returns what a process is told of controllers and messages.
pub(crate) fn settings(system: &System, process: u16) -> Vec<Setting> {
    let name = &system.processes[usize::from(process)].name;
    let (mut settings, mut words) = (Vec::new(), Vec::new());
    for network in &system.cans {
        let Some(controller) = network.controller else { continue };
        let drives = controller.driver == process;
        if drives {
            let CanController { number, own, .. } = controller;
            let errors = (network.errors.burst, network.errors.interval.0);
            let terms = ControllerTerms { number, rate: network.rate, own, errors };
            settings.push(Setting::new(CONTROLLER_SETTING, &terms.words()));
            let mts = network.mts_terms().filter(|_| network.scheduler == CanScheduler::Mts);
            settings.extend(mts.map(|mts| Setting::new(MTS_SETTING, &mts.words())));
        }
        let all = terms(network, controller);
        words.extend(
            all.filter(|(sender, _)| drives || sender == name).flat_map(|(_, it)| it.words()),
        );
    }
    if !words.is_empty() {
        settings.push(Setting::new(MESSAGES_SETTING, &words));
    }
    settings.extend(heard::setting(system, process));
    settings
}

/// Returns the messages of a controller, each with its sender.
fn terms(
    network: &CanNetwork,
    controller: CanController,
) -> impl Iterator<Item = (&str, MessageTerms)> {
    let senders = network.senders();
    network.streams().into_iter().zip(0u8..).filter_map(move |((index, id), stream)| {
        let message = &network.messages[index];
        let CanSender::Process(process) = &message.sender else { return None };
        let sender = senders.iter().position(|name| name == process);
        let terms = MessageTerms {
            name: Key::new(&message.name),
            controller: controller.number,
            stream,
            number: message.number,
            sender: sender.map_or(Some(DRIVER), |sender| u8::try_from(sender).ok())?,
            bytes: message.bytes,
            id,
            period_ns: message.period_ns.unwrap_or(0),
            deadline_ns: message.deadline_ns.unwrap_or(0),
            jitter_ns: message.jitter_ns,
        };
        Some((process.as_str(), terms))
    })
}
