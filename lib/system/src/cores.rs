//! Several cores: which of them has what, and the description of each.
//!
//! A core is a system of its own: it has its processes, its objects, its devices and its share of
//! the memory, and is checked, planned and booted like a host with one core. Segments and doorbells
//! reach another core, and so do pipes whose readers look for messages themselves. Anything else
//! that is used on several cores is refused here.

use crate::carried::{FarPipe, PipeEnd};
use crate::declared::{
    Declared, DeclaredBell, DeclaredChain, DeclaredPipe, DeclaredProcess, DeclaredVcpu, Dynamic,
    Named, Supervision,
};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::limits::{INTERVALS, PAGE_BYTES};
use crate::names::Names;
use crate::pipe;
use crate::source::{At, Span};
use crate::table::{Raw, Table};
use diapason_abi::results;
use std::collections::BTreeSet;

/// Most cores of a host.
const CORES_MAX: u16 = diapason_abi::archive::CORES_MAX as u16;

/// Returns how many cores there are.
pub(crate) fn count(table: &mut Table<'_, '_>) -> At<u16> {
    small(table.number("cores", 1..=CORES_MAX.into(), ""), 1, table.place())
}

/// Returns the core of a process.
pub(crate) fn place(table: &mut Table<'_, '_>, name: &At<String>) -> At<u16> {
    let core = table.number("core", 0..=u64::from(CORES_MAX) - 1, "; 0 is the first");
    small(core, 0, name.span.clone())
}

fn small(number: Option<At<u64>>, default: u16, place: Span) -> At<u16> {
    let small = |number: At<u64>| Some(At::new(u16::try_from(number.value).ok()?, number.span));
    number.and_then(small).unwrap_or_else(|| At::new(default, place))
}

pub(crate) fn doorbell(raw: Raw<'_>, report: &mut Report) -> Named<DeclaredBell> {
    let mut table = Table::new("[[doorbell]]", "doorbell", raw, report);
    let name = keys::name(&mut table);
    let answered_by = table.text("wakes", "wakes = \"logger\"");
    table.needs("wakes", "add `wakes = \"logger\"`: the process that waits for it");
    let interval = table.duration("interval", INTERVALS).map(|interval| interval.value);
    table.report_unknown();
    Named { name, what: DeclaredBell { answered_by, interval, core: 0, number: 0 } }
}

/// Puts all processes on one core.
pub(crate) fn unite(declared: &mut Declared) {
    declared.cores.value = 1;
    declared.processes.iter_mut().for_each(|process| process.core.value = 0);
}

/// Resolve what follows from where processes are: doorbells, and segments that several cores use.
pub(crate) fn resolve(declared: &mut Declared) {
    for index in 0..declared.doorbells.len() {
        let answering = declared.doorbells[index].what.answered_by.as_ref();
        let process = answering.and_then(|name| process(declared, &name.value));
        let core = process.map_or(0, |process| process.core.value);
        let bell = &mut declared.doorbells[index].what;
        (bell.core, bell.number) = (core, u16::try_from(index).unwrap_or(u16::MAX));
    }
    for index in 0..declared.segments.len() {
        let name = &declared.segments[index].name.value;
        // The kernel is one of those that use its console.
        let common = name == results::SEGMENT || users(declared, name).len() > 1;
        declared.segments[index].what.common = common;
    }
}

fn process<'d>(declared: &'d Declared, name: &str) -> Option<&'d DeclaredProcess> {
    declared.processes.iter().find(|process| process.name.value == name)
}

/// Returns the cores whose processes use what is called so.
fn users(declared: &Declared, name: &str) -> BTreeSet<u16> {
    let uses = |process: &&DeclaredProcess| {
        let runs_on = process.vcpu.as_ref().is_some_and(|vcpu| vcpu.value == name);
        runs_on || process.uses.iter().any(|used| used.value == name)
    };
    declared.processes.iter().filter(uses).map(|process| process.core.value).collect()
}

/// Returns the one core that has what is called so; the first, if nobody uses it.
fn home(declared: &Declared, name: &str) -> u16 {
    users(declared, name).first().copied().unwrap_or(0)
}

/// Reports what cannot be where it is.
pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    for bell in &declared.doorbells {
        if let Some(name) = &bell.what.answered_by {
            names.is_process(name, report);
        }
        unbounded(declared, bell, report);
    }
    let cores = declared.cores.value;
    for process in declared.processes.iter().filter(|process| process.core.value >= cores) {
        let (name, core) = (&process.name.value, process.core.value);
        let title = format!("`{name}` is on core {core}, and there is no such core");
        let help = match cores {
            1 => format!("add `cores = {}` to `[system]`, or remove `core`", core + 1),
            _ => format!("write a core from 0 to {}, or more `cores`", cores - 1),
        };
        report.push(Problem::new(&process.core.span, title, help));
    }
    if cores > 1 && report.is_empty() {
        idle_cores(declared, report);
        declared.pipes.iter().for_each(|pipe| reached(declared, pipe, report));
        // The objects of such a pipe would be refused one by one.
        if report.is_empty() {
            shared(declared, report);
        }
        declared.processes.iter().for_each(|process| relations(declared, process, report));
        declared.vcpus.iter().for_each(|vcpu| served(declared, vcpu, report));
        declared.chains.iter().for_each(|chain| chained(declared, chain, report));
        whole_host(declared, report);
    }
}

/// Reports a doorbell that would take any amount of time from the VCPUs of its core.
fn unbounded(declared: &Declared, bell: &Named<DeclaredBell>, report: &mut Report) {
    if declared.vcpus.is_empty() || bell.what.interval.is_some() {
        return;
    }
    let title = format!("nothing bounds how often `{}` rings", bell.name.value);
    let help = "add `interval = \"1ms\"`, the shortest time between two of its rings";
    let note = "the system has VCPUs, and every ring takes time from those where it is heard";
    report.push(Problem::new(&bell.name.span, title, help).note(note));
}

fn idle_cores(declared: &Declared, report: &mut Report) {
    let busy = |core: &u16| declared.processes.iter().any(|process| process.core.value == *core);
    if let Some(core) = (0..declared.cores.value).find(|core| !busy(core)) {
        let help = format!("add `core = {core}` to a process, or have fewer `cores`");
        let title = format!("core {core} has no process");
        report.push(Problem::new(&declared.cores.span, title, help));
    }
}

/// Reports a pipe whose end has to be on the core of its server, and is not.
fn reached(declared: &Declared, pipe: &DeclaredPipe, report: &mut Report) {
    let (Some(end), Some(PipeEnd::Beyond { core, .. }), None) =
        (&pipe.process, beyond(declared, pipe), declared.crossing(pipe))
    else {
        return;
    };
    let (own, server) = (&pipe.name.value, server_core(declared, pipe));
    let title = format!("`{own}` ends on core {core}, and its server is on core {server}");
    let help = format!(
        "write `core = {server}` for `{}`: of pipes, those from sensors, cameras and endpoints of \
         other devices reach another core",
        end.value
    );
    report.push(Problem::new(&end.span, title, help));
}

/// Reports what is used on several cores and cannot be.
fn shared(declared: &Declared, report: &mut Report) {
    let d = declared;
    let mut look = |noun: &str, name: &At<String>| {
        let cores: Vec<String> = users(d, &name.value).iter().map(u16::to_string).collect();
        if cores.len() > 1 {
            let (span, name, cores) = (&name.span, &name.value, cores.join(" and "));
            let title = format!("the {noun} `{name}` is used on cores {cores}");
            let help = "put the processes that use it on one core; segments (without `dma`) and \
                        doorbells reach others";
            report.push(Problem::new(span, title, help));
        }
    };
    d.semaphores.iter().for_each(|object| look("semaphore", &object.name));
    d.conditions.iter().for_each(|object| look("condition", &object.name));
    d.mailboxes.iter().for_each(|object| look("mailbox", &object.name));
    d.devices.iter().for_each(|object| look("device", &object.name));
    d.vcpus.iter().for_each(|object| look("VCPU", &object.name));
    let of_pipe = |name: &str| {
        let far = d.pipes.iter().filter(|pipe| d.crosses(pipe));
        let mut places = far.filter_map(|pipe| d.crossing(pipe)?.form.places());
        places.any(|places| places.data.0 == name)
    };
    let for_devices = d.segments.iter().filter(|segment| segment.what.dma);
    let for_devices = for_devices.filter(|segment| !of_pipe(&segment.name.value));
    for_devices.for_each(|segment| look("segment for devices", &segment.name));
}

/// Reports processes that a process cannot start, or that cannot supervise it.
fn relations(declared: &Declared, of: &DeclaredProcess, report: &mut Report) {
    let supervisor = match &of.supervisor {
        Supervision::By(name) => Some(name),
        Supervision::Default | Supervision::Nobody(_) => None,
    };
    let does = of.starts.iter().map(|name| (name, "starts"));
    for (name, what) in does.chain(supervisor.map(|name| (name, "is supervised by"))) {
        let other = process(declared, &name.value).map_or(of.core.value, |other| other.core.value);
        if other != of.core.value {
            let (who, core) = (&of.name.value, of.core.value);
            let title =
                format!("`{who}` on core {core} {what} `{}`, which is on core {other}", name.value);
            let help = "put both on one core: each starts and supervises its own processes";
            report.push(Problem::new(&name.span, title, help));
        }
    }
}

/// Reports VCPUs of other cores that an I/O VCPU would serve.
fn served(declared: &Declared, vcpu: &Named<DeclaredVcpu>, report: &mut Report) {
    let DeclaredVcpu::Io { serves, .. } = &vcpu.what else { return };
    let own = home(declared, &vcpu.name.value);
    for name in serves.iter().filter(|name| home(declared, &name.value) != own) {
        let core = home(declared, &name.value);
        let (who, server) = (&name.value, &vcpu.name.value);
        let title = format!("`{who}` is on core {core}, and `{server}` is not");
        let help = "have an I/O VCPU for each core";
        report.push(Problem::new(&name.span, title, help));
    }
}

/// Returns the cores of the threads of a chain, each once, in the chain's order.
fn cores_of_chain(declared: &Declared, chain: &DeclaredChain) -> Vec<u16> {
    let end = |name: &Option<At<String>>| {
        let name = name.as_ref()?;
        let pipe = declared.pipes.iter().find(|pipe| pipe.name.value == name.value)?;
        pipe.process.as_ref()
    };
    let links = chain.links.iter().filter_map(|link| link.process.as_ref());
    let threads = end(&chain.from).into_iter().chain(links).chain(end(&chain.to));
    let mut cores: Vec<u16> = Vec::new();
    for core in threads.filter_map(|name| process(declared, &name.value)).map(|it| it.core.value) {
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    cores
}

/// Reports a chain whose threads are on several cores: each core is planned for itself.
fn chained(declared: &Declared, chain: &DeclaredChain, report: &mut Report) {
    let cores = cores_of_chain(declared, chain);
    let pipe = |name: &At<String>| declared.pipe(&name.value).map(|(_, pipe)| pipe);
    let mut ends = chain.from.iter().chain(&chain.to).filter_map(pipe);
    if let Some(pipe) = ends.find(|pipe| declared.crosses(pipe)) {
        let (name, pipe) = (&chain.name, &pipe.name.value);
        let title = format!(
            "the chain `{}` has the pipe `{pipe}`, which leads to another core",
            name.value
        );
        let help = "put its reader on the core of its server: each core is planned for itself";
        report.push(Problem::new(&name.span, title, help));
    } else if cores.len() > 1 {
        let cores: Vec<String> = cores.iter().map(u16::to_string).collect();
        let (name, cores) = (&chain.name, cores.join(" and "));
        let title = format!("the threads of chain `{}` are on cores {cores}", name.value);
        let help = "put them on one core: each core is planned for itself";
        report.push(Problem::new(&name.span, title, help));
    }
}

fn whole_host(declared: &Declared, report: &mut Report) {
    if declared.faults.iter().any(|fault| fault.target.is_none()) {
        let title = "a host with several cores cannot lose its power in the simulator";
        let help = "remove the `[[fault]]`, or write `cores = 1`";
        report.push(Problem::new(&declared.cores.span, title, help));
    }
}

/// Returns the description of each core. Call it only for what [`check`] found nothing wrong with.
pub(crate) fn parts(declared: Declared) -> Vec<Declared> {
    match declared.cores.value {
        0 | 1 => vec![declared],
        cores => (0..cores).map(|core| part(&declared, core)).collect(),
    }
}

fn part(whole: &Declared, core: u16) -> Declared {
    let at_home = |name: &At<String>| home(whole, &name.value) == core;
    let on_controller = |on: &Option<At<String>>| on.as_ref().is_none_or(at_home);
    let seen = |name: &At<String>| users(whole, &name.value).contains(&core) || at_home(name);
    let mut part = whole.clone();
    part.core = core;
    let share = whole.memory.value / u64::from(whole.cores.value);
    part.memory.value = share - share % PAGE_BYTES;
    part.processes.retain(|process| process.core.value == core);
    part.semaphores.retain(|object| at_home(&object.name));
    part.conditions.retain(|object| at_home(&object.name));
    part.mailboxes.retain(|object| at_home(&object.name));
    // Each kernel has a part of the segment for consoles.
    let is_kernels = |name: &At<String>| name.value == results::SEGMENT;
    part.segments.retain(|segment| seen(&segment.name) || is_kernels(&segment.name));
    part.devices.retain(|device| at_home(&device.name));
    part.doorbells
        .retain(|bell| bell.what.core == core || users(whole, &bell.name.value).contains(&core));
    part.vcpus.retain(|vcpu| at_home(&vcpu.name));
    part.usb.retain(|plug| whole.controller_of(plug).is_none_or(at_home));
    part.buses.retain(|bus| on_controller(&bus.on));
    part.endpoints.retain(|endpoint| on_controller(&endpoint.on));
    part.pipes =
        whole.pipes.iter().filter(|pipe| server_core(whole, pipe) == core).cloned().collect();
    part.pipes.iter_mut().for_each(|pipe| pipe.beyond = beyond(whole, pipe));
    part.far = far(whole, core);
    part.tpipes.retain(|pipe| pipe.process.as_ref().is_some_and(|name| on(whole, name) == core));
    part.states.retain(|state| state.is_on(whole, core));
    part.chains.retain(|chain| cores_of_chain(whole, chain).first() == Some(&core));
    part.sections.retain(|part| part.process.as_ref().is_some_and(|name| on(whole, name) == core));
    part.faults.retain(|fault| fault.target.as_ref().is_some_and(|name| on(whole, name) == core));
    part.cans.retain(|can| can.usb.as_ref().map_or(0, |usb| on(whole, usb)) == core);
    if let Dynamic::Queues(queues) = &mut part.scheduling.dynamic {
        queues.iter_mut().for_each(|queue| queue.value.retain(at_home));
    }
    part.scheduling.fixed.iter_mut().for_each(|queue| queue.retain(at_home));
    part
}

/// Returns the core of the server of a pipe.
fn server_core(declared: &Declared, pipe: &DeclaredPipe) -> u16 {
    let server = declared.server_of(pipe.usb.as_ref());
    server.map_or(0, |server| declared.processes[server].core.value)
}

/// Returns the end of a pipe, if that is on another core than its server.
fn beyond(declared: &Declared, pipe: &DeclaredPipe) -> Option<PipeEnd> {
    let (core, process) = place_of(declared, &pipe.process.as_ref()?.value)?;
    (core != server_core(declared, pipe)).then_some(PipeEnd::Beyond { core, process })
}

/// Returns the core of a process, and its number there.
fn place_of(declared: &Declared, name: &str) -> Option<(u16, u16)> {
    let core = process(declared, name)?.core.value;
    let mut there = declared.processes.iter().filter(|process| process.core.value == core);
    let number = there.position(|process| process.name.value == name)?;
    Some((core, number.try_into().ok()?))
}

/// Returns the pipes of other cores whose readers are on this one.
fn far(declared: &Declared, core: u16) -> Vec<FarPipe> {
    let far = declared.pipes.iter().filter_map(|pipe| {
        let PipeEnd::Beyond { core: own, process } = beyond(declared, pipe)? else { return None };
        let number = pipe::number(declared, pipe)?.try_into().ok()?;
        (own == core).then(|| FarPipe { name: pipe.name.value.clone(), process, number })
    });
    far.collect()
}

/// Returns the core of what a fault or a pipe names: a process, a USB device or its controller.
fn on(declared: &Declared, name: &At<String>) -> u16 {
    if let Some(process) = process(declared, &name.value) {
        return process.core.value;
    }
    let plug = declared.usb.iter().find(|plug| plug.name.value == name.value);
    let controller = plug.and_then(|plug| declared.controller_of(plug));
    home(declared, &controller.unwrap_or(name).value)
}
