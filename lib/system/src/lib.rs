//! System descriptions: read one, prove that it can work, compile it into a boot archive.
//!
//! A Diapason system is described once, in TOML (`docs/description.md` is the reference). This
//! crate is the only reader of that text. [`parse`] finds everything wrong with a description at
//! once and says what to change, with numbers; what it returns is consistent. [`build`] adds the
//! programs and writes the archive that the kernel boots and the simulator loads.
//!
//! The way through the crate: `syntax` (TOML) → `parts` (files that it includes) → `shorthand`
//! (`[usbd]`) → `read` (tables to declarations, through the typed `table`, VCPUs by `vcpu`, devices
//! by `device`) → `names`, `check`, `supervision`, `hardware`, `vcpus`, `queues`, `memory` (do they
//! fit together?) → `assemble` ([`System`]) → `archive` (bytes, with the `settings` of programs in
//! their images). `hosts` reads files that list several systems, `cores` makes several of one, and
//! `explained` writes out what a text became. Every stage reports into one list of
//! [`Diagnostics`].
//!
//! Rule of this room: total functions over text and values. No file, clock or environment is read
//! here; programs, and the descriptions that a list names, arrive through closures.

#![forbid(unsafe_code)]

mod archive;
mod assemble;
mod bus;
mod can;
mod can_names;
mod can_network;
mod carried;
mod chain;
mod check;
mod cores;
mod credit;
mod declared;
mod device;
mod diagnostics;
mod ethernet;
mod explained;
mod fault;
mod flow;
mod gates;
mod hardware;
mod hosts;
mod keys;
mod known;
mod limits;
pub mod link;
mod machine;
mod mailbox;
mod memory;
mod mode;
mod moded;
mod names;
mod network;
mod parts;
mod pipe;
mod placement;
mod plugged;
mod pulled;
mod queues;
mod read;
mod revise;
mod section;
mod server;
mod settings;
mod shorthand;
mod sizes;
mod source;
mod sources;
mod state;
mod strangers;
mod suggest;
mod supervision;
mod syntax;
mod system;
mod table;
mod tpipe;
mod units;
mod usb;
mod value;
mod vcpu;
mod vcpus;
mod wire_time;
mod wires;
pub mod works;

pub use archive::{Permit, RunOptions, build};
pub use can_names::ASSIGNED_MAX;
pub use can_network::{
    CLOCKS_MAX, CanClass, CanController, CanMessage, CanNetwork, CanScheduler, CanSender, CanTime,
};
pub use carried::{
    ChainLink, ChainSpec, FarPipe, Handover, PipeDirection, PipeEnd, PipeSpec, SentOn, Tpipe,
};
pub use credit::ClassCredit;
pub use diagnostics::{Diagnostics, ProblemSummary};
pub use ethernet::{AdapterDevice, EthernetAdapter, UdpPort, UsbAdapter};
pub use explained::explained;
pub use fault::kinds::{FaultKind, FaultTarget, InjectedFault, LIES};
pub use flow::{CLOCKS_APART, Detour, Flow, FlowHop, FlowRelease, FlowStop, FlowWay};
pub use gates::AdapterGates;
pub use hosts::{Cable, Description, End, HostSpec, Hosts, Socket, parse_any};
pub use known::known_keys;
pub use machine::{Gap, MachineProfile, MemoryStress};
pub use mode::{ModeCamera, ModeSpec};
pub use names::fault as name_fault;
pub use network::HostsPlace;
pub use plugged::{CanTraffic, PluggedCanBus, SocketAddress, UsbBus, UsbModel, UsbPlug};
pub use pulled::{Pullable, Pulled};
pub use revise::{Revision, revised};
pub use state::{StateField, StateNumber, StateReading, StateSpec};
pub use system::{
    ConditionSpec, ControllerVariant, CriticalSection, DeviceSpec, FarEnd, Interrupt, MailboxSpec,
    Neighbours, Place, ProcessSpec, Restart, Scheduling, SegmentSpec, SemaphoreKind, SemaphoreSpec,
    ServedBy, ServerSpec, Setting, System, VcpuSpec, WorkSpec,
};
pub use value::{KnownKey, ValueKind};
pub use wire_time::{SLEW_PPM, WireTime};
pub use wires::{EthernetLink, Switch, WireEnd};

use declared::Declared;
use diagnostics::Report;
use parts::Parts;
use shorthand::Brought;
use source::Source;
use toml::Spanned;
use toml::de::DeTable;

/// Reads and checks the description `text` of a host with one core; `file_name` is only shown in
/// messages.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text; or that there are several cores.
pub fn parse(file_name: &str, text: &str) -> Result<System, Diagnostics> {
    one_core(parse_cores(file_name, text)?)
}

/// Returns the system of the only core.
fn one_core(mut cores: Vec<System>) -> Result<System, Diagnostics> {
    let count = cores.len();
    let system = cores.swap_remove(0);
    if count > 1 {
        let title = format!("`{}` has {count} cores, and here there can be one", system.name);
        let help = "write `cores = 1`; several cores are for `plan` and `sim`";
        return Err(system.problem(Place::Scheduling, [&title, "", "", help]));
    }
    Ok(system)
}

/// Reads and checks the description `text` of a host; what each of its cores has, in their order.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text.
pub fn parse_cores(file_name: &str, text: &str) -> Result<Vec<System>, Diagnostics> {
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    whole((Source::new(file_name, text), table, report), &mut alone, cores_of)?
}

/// Reads and checks the description `text` of a host as if all of its processes were on one core.
/// `find` finds its parts, as for [`parse_any`].
///
/// # Errors
/// Everything that is wrong with it, in the order of the text.
pub fn parse_united(
    file_name: &str,
    text: &str,
    mut find: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<System, Diagnostics> {
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    let read = (Source::new(file_name, text), table, report);
    one_core(whole(read, &mut find, |source, whole, report| {
        placed(source, whole, report, cores::unite)
    })??)
}

/// Reads the description `text` of a host as if its processes were on these of so many `cores`.
/// `find` finds its parts, as for [`parse_any`].
///
/// # Errors
/// Everything that is wrong with it, also processes that have to share a core and do not.
pub fn parse_placed(
    file_name: &str,
    text: &str,
    mut find: impl FnMut(&str) -> Result<(String, String), String>,
    (cores, core_of): (u16, &dyn Fn(&str) -> u16),
) -> Result<Vec<System>, Diagnostics> {
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    let read = (Source::new(file_name, text), table, report);
    whole(read, &mut find, |source, whole, report| {
        placed(source, whole, report, |declared| placement::place(declared, cores, core_of))
    })?
}

/// Returns the names of the processes that have to share a core, group by group. `find` finds parts
/// of the description `text`, as for [`parse_any`].
///
/// # Errors
/// Everything that is wrong with it, with all processes on one core.
pub fn companions(
    file_name: &str,
    text: &str,
    mut find: impl FnMut(&str) -> Result<(String, String), String>,
) -> Result<Vec<Vec<String>>, Diagnostics> {
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    let read = (Source::new(file_name, text), table, report);
    whole(read, &mut find, |source, Whole { table, .. }, mut report| {
        let mut declared = read::declarations(table, &mut report);
        cores::unite(&mut declared);
        expand(&mut declared, &mut report);
        cores::resolve(&mut declared);
        check::declarations(&declared, &mut report);
        match report.is_empty() {
            true => Ok(placement::groups(&declared)),
            false => Err(Diagnostics::new(source, report)),
        }
    })?
}

/// Finds no part of a description that is not a file.
fn alone(_: &str) -> Result<(String, String), String> {
    Err("this description is no file, so it has no parts".to_owned())
}

/// Finds a file by its name: the name that messages use, and the text; or why there is none.
type Find<'f> = dyn FnMut(&str) -> Result<(String, String), String> + 'f;

/// Adds its parts and what `[usbd]` stands for to a description, and hands it to `then`. `read` is
/// its text, the table of that, and what is wrong with it as TOML.
///
/// # Errors
/// The parts that cannot be read.
fn whole<R>(
    read: (Source, Spanned<DeTable<'_>>, Report),
    find: &mut Find<'_>,
    then: impl FnOnce(Source, Whole<'_>, Report) -> R,
) -> Result<R, Diagnostics> {
    let (source, mut table, mut report) = read;
    let parts = Parts::read(source, table.get_ref(), find, &mut report)?;
    parts.join(table.get_mut(), &mut report);
    let brought = shorthand::brought(&table);
    shorthand::insert(table.get_mut(), &brought);
    Ok(then(parts.source.clone(), Whole { table: &table, brought: &brought }, report))
}

/// A description as it is read.
#[derive(Clone, Copy)]
struct Whole<'w> {
    table: &'w Spanned<DeTable<'w>>,
    /// The keys that `[usbd]` stands for, also those that the description has itself.
    brought: &'w [Brought],
}

/// Adds the objects that follow from pipes, sockets, chains and state messages.
fn expand(declared: &mut Declared, report: &mut Report) {
    usb::number(declared);
    mailbox::expand(declared);
    let by_hand = declared.processes.iter().map(|process| process.uses.len()).collect::<Vec<_>>();
    pipe::expand(declared);
    tpipe::expand(declared);
    ethernet::expand(declared);
    can::expand(declared);
    strangers::check(declared, &by_hand, report);
    chain::expand(declared);
    state::expand(declared);
}

/// Checks what each core of a host has. `report` says what is wrong with the text as TOML.
fn cores_of(source: Source, whole: Whole<'_>, report: Report) -> Result<Vec<System>, Diagnostics> {
    placed(source, whole, report, |_| {})
}

/// Checks what each core of a host has, once `place` has said which core each process is on.
fn placed(
    source: Source,
    Whole { table, .. }: Whole<'_>,
    mut report: Report,
    place: impl FnOnce(&mut Declared),
) -> Result<Vec<System>, Diagnostics> {
    let whole = report.is_empty();
    let mut declared = read::declarations(table, &mut report);
    place(&mut declared);
    expand(&mut declared, &mut report);
    cores::resolve(&mut declared);
    if whole {
        check::declarations(&declared, &mut report);
    } else {
        report.keep_what_syntax_cannot_have_caused(&source.text);
    }
    let mut systems = Vec::new();
    for part in if report.is_empty() { cores::parts(declared) } else { Vec::new() } {
        if part.cores.value > 1 {
            check::declarations_of_core(&part, &mut report);
        }
        let system = assemble::system(&part, &source);
        memory::check_without_programs(&system, &mut report);
        systems.push(system);
    }
    if report.is_empty() { Ok(systems) } else { Err(Diagnostics::new(source, report)) }
}

/// Reads a fault of a list of hosts as a command line says it: `2s unplug bridge 300ms`.
///
/// # Errors
/// Returns the mistake and its place.
pub fn parse_pulled(hosts: &Hosts, text: &str) -> Result<(Pullable, Pulled), Diagnostics> {
    let mut report = Report::new();
    match pulled::parse(hosts, text, &mut report) {
        Some(fault) if report.is_empty() => Ok(fault),
        _ => Err(Diagnostics::new(Source::new("--fault", text), report)),
    }
}

/// Reads a fault as a command line says it, of things in `system`: `2s unplug interface 100ms`.
///
/// # Errors
/// Returns the mistake and its place.
pub fn parse_fault(system: &System, text: &str) -> Result<InjectedFault, Diagnostics> {
    let mut report = Report::new();
    match fault::parse(system, text, &mut report) {
        Some(fault) if report.is_empty() => Ok(fault),
        _ => Err(Diagnostics::new(Source::new("--fault", text), report)),
    }
}
