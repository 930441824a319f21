//! Checks that the declarations fit together: counts, grants and starts. Supervision and devices
//! have files of their own.

use crate::declared::{Declared, DeclaredDevice, DeclaredProcess, Named};
use crate::diagnostics::{Problem, Report};
use crate::limits::DECLARED_VCPUS_MAX;
use crate::names::{self, FAULTS, Kind, Names, duplicates};
use crate::source::{At, Span};
use crate::{
    bus, can, chain, cores, ethernet, fault, hardware, mailbox, mode, pipe, queues, section, state,
    supervision, tpipe, usb, vcpus,
};
use diapason_abi::archive::{BELLS_MAX, INTERRUPTS_MAX, OBJECTS_MAX, TABLE_MAX};
use diapason_abi::{Key, PROCESSES_MAX};

/// Reports everything that is wrong between the declarations.
pub(crate) fn declarations(declared: &Declared, report: &mut Report) {
    let names = Names::collect(declared, report);
    cores::check(declared, &names, report);
    can::check(declared, &names, report);
    state::check(declared, &names, report);
    between(declared, &names, report);
}

/// Reports what is wrong with one core of several, which are right as a whole.
pub(crate) fn declarations_of_core(declared: &Declared, report: &mut Report) {
    between(declared, &Names::collect(declared, report), report);
}

fn between(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    names::check_keys(declared, Key::new, report);
    counts(declared, report);
    for process in &declared.processes {
        uses(process, names, report);
        starts(process, names, report);
    }
    supervision::check(declared, names, report);
    liveness(declared, names, report);
    hardware::check(declared, names, report);
    usb::check(declared, report);
    bus::check(declared, report);
    mode::check(declared, report);
    pipe::check(declared, names, report);
    tpipe::check(declared, names, report);
    ethernet::check(declared, names, report);
    chain::check(declared, names, report);
    mailbox::check(declared, names, report);
    section::check(declared, names, report);
    fault::check(declared, report);
    vcpus::check(declared, names, report);
    queues::check(declared, names, report);
}

fn counts(declared: &Declared, report: &mut Report) {
    let d = declared;
    // A description may be of buses only, which are planned and not run.
    if d.processes.is_empty() && d.cans.is_empty() {
        let help = "add `[[process]]` with `name = \"main\"` and `priority = 1`";
        report.push(Problem::new(&d.top, "the system has no process", help));
    }
    let processes = d.processes.iter().map(|process| &process.name.span);
    too_many("processes", processes, PROCESSES_MAX, report);
    fn spans<T>(list: &[Named<T>]) -> impl Iterator<Item = &Span> {
        list.iter().map(|named| &named.name.span)
    }
    too_many("segments", spans(&d.segments), TABLE_MAX.into(), report);
    too_many("doorbells", spans(&d.doorbells), BELLS_MAX.into(), report);
    too_many("VCPUs", spans(&d.vcpus), DECLARED_VCPUS_MAX, report);
    let times = |device: &Named<DeclaredDevice>, times: u16| {
        std::iter::repeat_n(device.name.span.clone(), times.into())
    };
    let entries = d.devices.iter().flat_map(|device| times(device, 1 + device.what.messages()));
    let bells = d.doorbells.iter().map(|bell| bell.name.span.clone());
    let entries: Vec<Span> = entries.chain(bells).collect();
    too_many("devices, messages (`irqs`) and doorbells", entries.iter(), TABLE_MAX.into(), report);
    let interrupts = d.devices.iter().flat_map(|device| times(device, device.what.interrupts()));
    let interrupts: Vec<Span> = interrupts.collect();
    too_many("interrupts", interrupts.iter(), INTERRUPTS_MAX, report);
    let objects = spans(&d.semaphores).chain(spans(&d.conditions)).chain(spans(&d.mailboxes));
    // Each process may come to need a mailbox for the fault reports it receives.
    let most = usize::from(OBJECTS_MAX) - PROCESSES_MAX;
    too_many("semaphores, conditions and mailboxes", objects, most, report);
}

fn too_many<'s>(
    what: &str,
    spans: impl Iterator<Item = &'s Span>,
    most: usize,
    report: &mut Report,
) {
    let spans: Vec<&Span> = spans.collect();
    if let Some(first_extra) = spans.get(most) {
        let title = format!("{} {what}, the most is {most}", spans.len());
        let help = format!("remove {} of them, or merge some", spans.len() - most);
        report.push(Problem::new(first_extra, title, help).label("the first too many"));
    }
}

fn uses(process: &DeclaredProcess, names: &Names<'_>, report: &mut Report) {
    duplicates("uses", &process.uses, report);
    for At { value: name, span } in &process.uses {
        match names.get(name).map(|meaning| meaning.kind) {
            Some(Kind::Process) => {
                let title = format!("`{name}` is a process and cannot be used");
                let help = "name it in `starts` to start it; send it messages through a mailbox";
                report.push(Problem::new(span, title, help));
            }
            Some(_) => {}
            None => report.push(unknown_use(name, span, names)),
        }
    }
}

fn unknown_use(name: &str, span: &Span, names: &Names<'_>) -> Problem {
    let title = format!("nothing named `{name}` is declared");
    if let Some(supervisor) = name.strip_suffix(FAULTS) {
        let help = format!("remove it: `{supervisor}` alone receives its fault reports, unasked");
        return Problem::new(span, format!("`{name}` cannot be granted"), help);
    }
    if let Some((device, _)) = name.rsplit_once('.')
        && names.get(device).is_some_and(|meaning| meaning.kind == Kind::Device)
    {
        let help = format!("write `{device}`: it grants the device and all its interrupts");
        return Problem::new(span, format!("`{name}` cannot be granted alone"), help);
    }
    let help = match names.nearest(name, |kind| kind != Kind::Process) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it, for example as `[[mailbox]]` with `name = \"{name}\"`"),
    };
    Problem::new(span, title, help)
}

fn starts(process: &DeclaredProcess, names: &Names<'_>, report: &mut Report) {
    duplicates("starts", &process.starts, report);
    for name in &process.starts {
        if name.value == process.name.value {
            let title = format!("`{}` cannot start itself", name.value);
            let help = "remove it; a supervisor can restart a process";
            report.push(Problem::new(&name.span, title, help));
        } else {
            names.is_process(name, report);
        }
    }
}

/// Reports processes that nothing can ever start.
fn liveness(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    let processes = &declared.processes;
    if !processes.is_empty() && processes.iter().all(|process| !process.whole.start_at_boot) {
        let help = "remove `start = \"manual\"` from the process that starts the others";
        let problem = Problem::new(&processes[0].start_at_boot, "nothing starts at boot", help);
        return report.push(problem);
    }
    for (index, process) in processes.iter().enumerate() {
        let started_by = |other: &DeclaredProcess| {
            other.starts.iter().any(|name| name.value == process.name.value)
        };
        let supervised = supervision::of(process, index, names).is_some();
        if !process.whole.start_at_boot && !supervised && !processes.iter().any(started_by) {
            let name = &process.name.value;
            let title = format!("nobody may start `{name}`");
            let help = format!("add `starts = [\"{name}\"]` to the process that starts it");
            report.push(Problem::new(&process.start_at_boot, title, help));
        }
    }
}
