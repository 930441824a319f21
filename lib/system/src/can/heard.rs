//! `reader` of a `[[message]]`: a process of this host that reads a message of another node, which
//! a controller with message buffers hears.
//!
//! Each such message has a buffer of its own, so that one that comes often takes no other's place.
//! The segments and the semaphores between the driver and the readers follow, and so do the rights
//! of both ends.

use super::{controller, mts};
use crate::can_network::{CanClass, CanController, CanNetwork, CanScheduler};
use crate::declared::{Declared, DeclaredCan, DeclaredMessage, DeclaredSegment, Named};
use crate::diagnostics::{Problem, Report};
use crate::names::Names;
use crate::source::At;
use crate::system::{SemaphoreKind, Setting, System};
use diapason_abi::Key;
use diapason_contract::toucan::{
    CONTROLLER_NAMES, HEARD_SETTING, HeardTerms, IN_BYTES, MessageId, READERS,
};

impl Declared {
    /// Returns the messages on a bus that processes of this host read.
    pub(super) fn heard<'d>(
        &'d self,
        can: &'d DeclaredCan,
    ) -> impl Iterator<Item = &'d DeclaredMessage> {
        self.messages.iter().filter(|message| message.is_on(can) && message.reader.is_some())
    }

    /// Returns the names of processes that read from a bus, in the order of their first messages.
    fn readers(&self, can: &DeclaredCan) -> Vec<At<String>> {
        let mut readers: Vec<At<String>> = Vec::new();
        for process in self.heard(can).filter_map(|message| message.reader.as_ref()) {
            if readers.iter().all(|other| other.value != process.value) {
                readers.push(process.clone());
            }
        }
        readers
    }
}

/// Declares what the readers of the bus in place `index` need, whose controller has this number,
/// and that both ends use it.
pub(super) fn expand(declared: &mut Declared, index: usize, (number, driver): (usize, usize)) {
    let readers = declared.readers(&declared.cans[index]);
    let known = &CONTROLLER_NAMES[number];
    let names = known.heard.into_iter().zip(known.tell);
    for ((heard, tell), reader) in names.zip(readers) {
        let Some(process) = declared.process(&reader.value).filter(|it| *it != driver) else {
            continue;
        };
        let named = |name: &str| At::new(name.to_owned(), reader.span.clone());
        let what = DeclaredSegment { size: IN_BYTES, dma: false, common: false };
        declared.segments.push(Named { name: named(heard), what });
        let what = SemaphoreKind::Counting(0);
        declared.semaphores.push(Named { name: named(tell), what });
        for end in [driver, process] {
            declared.processes[end].uses.extend([named(heard), named(tell)]);
        }
    }
}

/// Returns how many messages of this bus may have a buffer of their own, of this host and of
/// others.
fn buffers(can: &DeclaredCan) -> u64 {
    if can.is(CanScheduler::Mts) { mts::OWN_MAX } else { controller::OWN_MAX }
}

/// Reports more readers, or more messages with a buffer, than a controller has.
pub(super) fn check_bus(declared: &Declared, can: &DeclaredCan, report: &mut Report) {
    let (heard, readers) = (declared.heard(can).count() as u64, declared.readers(can));
    let (name, most) = (&can.name.value, buffers(can));
    if let Some(extra) = readers.get(READERS) {
        let title =
            format!("{} processes read from `{name}`, the most is {READERS}", readers.len());
        let help = "let one process read the messages of several";
        report.push(Problem::new(&extra.span, title, help));
    }
    let own = can.own_buffers.as_ref().filter(|own| heard > 0 && own.value + heard > most);
    let Some(place) = own.map(|own| &own.span).or_else(|| {
        let beyond = usize::try_from(most).unwrap_or(usize::MAX);
        declared.heard(can).nth(beyond)?.reader.as_ref().map(|reader| &reader.span)
    }) else {
        return;
    };
    let title = format!(
        "a controller has {most} buffers for the messages on `{name}` that are read, and for those \
         of this host with one of their own"
    );
    let help = match most.checked_sub(heard) {
        Some(left) => format!("write `own_buffers = {left}`, or read fewer messages"),
        None => format!("read at most {most} of its messages here"),
    };
    report.push(Problem::new(place, title, help));
}

/// Reports what keeps a message from its reader.
pub(super) fn check(
    declared: &Declared,
    names: &Names<'_>,
    message: &DeclaredMessage,
    report: &mut Report,
) {
    let name = &message.name.value;
    let Some(reader) = &message.reader else {
        if let Some(work) = &message.work {
            let help = "add `reader = \"…\"`, the process that takes so long, or remove it";
            report.push(Problem::new(&work.span, "`work` says nothing here", help));
        }
        return;
    };
    let mut bad = |title: String, help: String| {
        report.push(Problem::new(&reader.span, title, help));
    };
    if message.work.is_none() {
        let title = format!("nothing says how long `{}` takes for `{name}`", reader.value);
        bad(title, "add `work = \"10us\"`: the longest it takes for one".into());
    }
    if let Some(process) = &message.process {
        let title = format!("`{name}` is sent by this host, which does not hear it");
        let help = format!(
            "let `{}` tell `{}` by a mailbox or a `[[state]]`",
            process.value, reader.value
        );
        return bad(title, help);
    }
    if message.is(CanClass::NonRealTime) {
        let title =
            format!("`{name}` is due at no time, so nothing bounds how soon it comes again");
        bad(title, "give it another `class` and a `deadline`, or remove `reader`".into());
    }
    let Some(can) = declared.can(message) else { return };
    if can.time.message.as_ref().is_some_and(|time| time.value == *name) {
        let title = format!("`{name}` carries the time, and its buffer is the driver's");
        bad(title, "remove `reader`".into());
    }
    let Some(device) = &can.controller else {
        let title = format!("this host reads `{name}` by no controller with message buffers");
        let help = match &can.usb {
            Some(usb) => {
                format!("add a `[[pipe]]` with `from = \"{}\"`, and no `reader`", usb.value)
            }
            None => format!("add `controller = \"toucan0\"` to the bus `{}`", can.name.value),
        };
        return bad(title, help);
    };
    let driver = declared.cand(device).map(|driver| &declared.processes[driver].name.value);
    if driver == Some(&reader.value) {
        let title = format!("`{}` drives the controller and reads no message", reader.value);
        return bad(title, "let another process read it".into());
    }
    names.is_process(reader, report);
}

impl CanNetwork {
    /// Returns the places of the messages that processes of this host read, in the order in which
    /// the controller numbers them.
    #[must_use]
    pub fn heard(&self) -> Vec<usize> {
        let read = |place: &usize| self.messages[*place].reader.is_some();
        (0..self.messages.len()).filter(read).collect()
    }

    /// Returns the processes of this host that read, in the order of their first messages.
    #[must_use]
    pub fn readers(&self) -> Vec<&str> {
        let mut readers: Vec<&str> = Vec::new();
        for reader in self.messages.iter().filter_map(|message| message.reader.as_deref()) {
            if !readers.contains(&reader) {
                readers.push(reader);
            }
        }
        readers
    }
}

/// Returns what the driver of a controller and a reader are told of the messages that it hears.
pub(super) fn setting(system: &System, process: u16) -> Option<Setting> {
    let name = &system.processes[usize::from(process)].name;
    let mut words = Vec::new();
    for network in &system.cans {
        let Some(controller) = network.controller else { continue };
        let drives = controller.driver == process;
        for (reader, terms) in terms(network, controller) {
            if drives || reader == name {
                words.extend(terms.words());
            }
        }
    }
    (!words.is_empty()).then(|| Setting::new(HEARD_SETTING, &words))
}

/// Returns the messages that a controller hears, each with its reader.
fn terms(
    network: &CanNetwork,
    controller: CanController,
) -> impl Iterator<Item = (&str, HeardTerms)> {
    let (readers, names) = (network.readers(), network.names());
    network.heard().into_iter().zip(0u8..).filter_map(move |(index, place)| {
        let message = &network.messages[index];
        let reader = message.reader.as_deref()?;
        let number = readers.iter().position(|name| *name == reader)?;
        let id: MessageId = names[index]?;
        let terms = HeardTerms {
            name: Key::new(&message.name),
            controller: controller.number,
            place,
            number: message.number,
            reader: u8::try_from(number).ok()?,
            bytes: message.bytes,
            id,
            period_ns: message.period_ns?,
            jitter_ns: message.deadline_ns?,
        };
        Some((reader, terms))
    })
}
