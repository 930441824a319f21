//! `[[usb]]` and `[[work]]`: what stands around a host, and how long what its programs do takes.
//!
//! Neither reaches the boot archive. A USB device is plugged into the simulated controller or,
//! behind QEMU, into its controller; a work takes its time in the simulator, where nothing else
//! would.

use crate::declared::{Declared, DeclaredPlace, DeclaredUsb, DeclaredWork};
use crate::diagnostics::{Problem, Report};
use crate::read;
use crate::source::At;
use crate::system::UsbModel;
use crate::table::{Raw, Table};

/// The class of a controller that USB devices can be plugged into.
pub(crate) const XHCI: u32 = 0x0c_0330;
/// Most ports of a controller.
const PORTS: u64 = 15;
/// Longest work.
const WORK_MAX: u64 = 1_000_000_000_000;

pub(crate) fn usb(raw: Raw<'_>, report: &mut Report) -> DeclaredUsb {
    let mut table = Table::new("[[usb]]", "USB device", raw, report);
    let name = read::name(&mut table);
    let on = table.text("on", "on = \"xhci\"");
    if on.is_none() {
        table.missing("on", "add `on = \"xhci\"`, the `[[device]]` it is plugged into");
    }
    let port = table.number("port", 1..=PORTS, ", of the controller; 1 is the first");
    let models: Vec<(&str, UsbModel)> = UsbModel::ALL.iter().map(|m| (m.name(), *m)).collect();
    let model = table.choice("model", &models, "");
    if model.is_none() {
        table.missing("model", "add `model = \"usb-can\"`, or another device there is a model of");
    }
    table.report_unknown();
    let port = port.unwrap_or_else(|| At::new(1, name.span.clone()));
    DeclaredUsb { name, on, port, model: model.map(|model| model.value) }
}

pub(crate) fn work(raw: Raw<'_>, report: &mut Report) -> DeclaredWork {
    let mut table = Table::new("[[work]]", "work", raw, report);
    let name = table.text("name", "name = \"engine.control\"");
    if name.is_none() {
        table.missing("name", "add `name = \"…\"`, what the program calls it");
    }
    let worst = table.duration("worst", 0..=WORK_MAX);
    if worst.is_none() {
        table.missing("worst", "add `worst = \"300us\"`, the longest it takes");
    }
    let best = table.duration("best", 0..=WORK_MAX);
    table.report_unknown();
    let place = table.place();
    let worst = worst.unwrap_or_else(|| At::new(0, place));
    let best = best.unwrap_or_else(|| worst.clone());
    DeclaredWork { name, best, worst }
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    for (index, usb) in declared.usb.iter().enumerate() {
        controller(declared, usb, report);
        let same = |other: &&DeclaredUsb| {
            let (a, b) = (other.on.as_ref(), usb.on.as_ref());
            a.map(|on| &on.value) == b.map(|on| &on.value) && other.port.value == usb.port.value
        };
        if let Some(first) = declared.usb[..index].iter().find(same) {
            let title = format!("port {} has two devices", usb.port.value);
            let problem = Problem::new(&usb.port.span, title, "give each a `port` of its own");
            report.push(problem.with(&first.name.span, "the first"));
        }
    }
    for (index, work) in declared.works.iter().enumerate() {
        if work.best.value > work.worst.value {
            let title = "the best case is worse than the worst";
            report.push(Problem::new(&work.best.span, title, "write a `best` of at most `worst`"));
        }
        let Some(name) = &work.name else { continue };
        let named = |other: &&DeclaredWork| {
            other.name.as_ref().is_some_and(|other| other.value == name.value)
        };
        if let Some(Some(first)) = declared.works[..index].iter().find(named).map(|w| &w.name) {
            let title = format!("the work `{}` is declared twice", name.value);
            let problem = Problem::new(&name.span, title, "remove one of the two");
            report.push(problem.with(&first.span, "first here"));
        }
    }
}

fn controller(declared: &Declared, usb: &DeclaredUsb, report: &mut Report) {
    let Some(on) = &usb.on else { return };
    let device = declared.devices.iter().find(|device| device.name.value == on.value);
    let Some(device) = device else {
        let help = "name a `[[device]]` with `pci = \"0c0330\"`";
        let title = format!("no device is called `{}`", on.value);
        report.push(Problem::new(&on.span, title, help));
        return;
    };
    let wrong = match &device.what.place {
        DeclaredPlace::Pci(pci) => pci.value.class != XHCI,
        DeclaredPlace::Address(_) => true,
        DeclaredPlace::Unusable => false,
    };
    if wrong {
        let title = format!("`{}` is no USB controller", on.value);
        let help = "USB devices are plugged into a `[[device]]` with `pci = \"0c0330\"`";
        report.push(Problem::new(&on.span, title, help).with(&device.name.span, "this one"));
    }
}
