//! From tables to declarations: every key of the description, its default and its range.

use crate::declared::{Declared, DeclaredProcess, DeclaredSegment, Named, Supervision};
use crate::diagnostics::{Problem, Report};
use crate::keys::{clock, name, required_size};
use crate::limits::{
    BACKOFF_NS_MAX, COUNT_MAX, MEMORY_MAX, PAGE_BYTES, PROGRAM_CHARACTERS_MAX, RESTARTS_MAX,
};
use crate::mailbox::mailbox;
use crate::names;
use crate::source::At;
use crate::system::{ProcessSpec, Restart, SemaphoreKind};
use crate::table::{Raw, Table};
use crate::{
    bus, can, chain, cores, device, ethernet, fault, mode, parts, pipe, section, settings,
    shorthand, state, tpipe, usb, vcpu,
};
use diapason_abi::archive::{OBJECTS_MAX, STACK_BYTES_MAX, VCPUS_MAX};
use diapason_abi::{PRIORITIES, layout, results};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// RAM if the description does not say.
const MEMORY_DEFAULT: u64 = 64 << 20;
/// A thread's stack if the description does not say.
const STACK_DEFAULT: u64 = 16 << 10;
/// Pause before the first restart if the description does not say: 10 ms.
const BACKOFF_DEFAULT: u64 = 10_000_000;
/// Instructions a second if the description does not say: one a nanosecond, as QEMU counts them.
const CLOCK_DEFAULT: u64 = 1_000_000_000;
/// The kinds of a semaphore, and whether each counts.
const KINDS: [(&str, bool); 2] = [("mutex", false), ("counting", true)];

/// The keys of all lists of tables but those of CAN buses, in the order in which they are read.
const LISTS: [&str; 21] = [
    "process",
    "semaphore",
    "condition",
    "mailbox",
    "segment",
    "device",
    "vcpu",
    "usb",
    "bus",
    "endpoint",
    "work",
    "pipe",
    "tpipe",
    "state",
    "chain",
    "section",
    "mode",
    "fault",
    "doorbell",
    "adapter",
    "socket",
];

pub(crate) fn declarations(table: &Spanned<DeTable<'_>>, report: &mut Report) -> Declared {
    let raw = Raw { entries: table.get_ref(), place: 0..0 };
    let mut top = Table::new("the description", "description", raw, report);
    let system = system_table(&mut top);
    let scheduling = single(&mut top, "scheduling");
    let server = single(&mut top, shorthand::KEY);
    parts::named(&mut top);
    let can_lists = ["can", "message"].map(|key| top.list(key));
    let lists = LISTS.map(|key| top.list(key));
    top.report_unknown();
    let [
        processes,
        semaphores,
        conditions,
        mailboxes,
        segments,
        devices,
        vcpus,
        plugs,
        buses,
        endpoints,
        works,
        pipes,
        tpipes,
        states,
        chains,
        sections,
        modes,
        faults,
        doorbells,
        adapters,
        sockets,
    ] = lists;
    let mut declared = system_keys(system, report);
    declared.server = server.map(|raw| shorthand::read(raw, report));
    declared.processes = processes.into_iter().map(|raw| process(raw, report)).collect();
    declared.semaphores = semaphores.into_iter().map(|raw| semaphore(raw, report)).collect();
    declared.conditions = conditions.into_iter().map(|raw| condition(raw, report)).collect();
    declared.mailboxes = mailboxes.into_iter().map(|raw| mailbox(raw, report)).collect();
    declared.segments = segments.into_iter().map(|raw| segment(raw, report)).collect();
    declared.devices = devices.into_iter().map(|raw| device::device(raw, report)).collect();
    declared.vcpus = vcpus.into_iter().map(|raw| vcpu::vcpu(raw, report)).collect();
    declared.usb = plugs.into_iter().map(|raw| usb::usb(raw, report)).collect();
    declared.buses = buses.into_iter().map(|raw| bus::bus(raw, report)).collect();
    declared.endpoints = endpoints.into_iter().map(|raw| bus::endpoint(raw, report)).collect();
    declared.works = works.into_iter().map(|raw| usb::work(raw, report)).collect();
    declared.pipes = pipes.into_iter().map(|raw| pipe::pipe(raw, report)).collect();
    declared.tpipes = tpipes.into_iter().map(|raw| tpipe::tpipe(raw, report)).collect();
    declared.states = states.into_iter().map(|raw| state::state(raw, report)).collect();
    declared.chains = chains.into_iter().map(|raw| chain::chain(raw, report)).collect();
    declared.sections = sections.into_iter().map(|raw| section::section(raw, report)).collect();
    declared.modes = modes.into_iter().map(|raw| mode::mode(raw, report)).collect();
    declared.faults = faults.into_iter().filter_map(|raw| fault::fault(raw, report)).collect();
    declared.doorbells = doorbells.into_iter().map(|raw| cores::doorbell(raw, report)).collect();
    declared.adapters = adapters.into_iter().map(|raw| ethernet::adapter(raw, report)).collect();
    declared.sockets = sockets.into_iter().map(|raw| ethernet::socket(raw, report)).collect();
    can::read(can_lists, &mut declared, report);
    declared.scheduling = vcpu::scheduling(scheduling, report);
    declared
}

/// `[system]`, if it is there and a table.
fn system_table<'t>(top: &mut Table<'t, '_>) -> Option<Raw<'t>> {
    const HELP: &str = "begin with `[system]` and, in the next line, `name = \"engine\"`";
    if !top.has("system") {
        let title = "the description has no `[system]`";
        top.report.push(Problem::new(&(0..0), title, HELP).absence());
    }
    single(top, "system")
}

/// Returns a table of which there is at most one.
fn single<'t>(top: &mut Table<'t, '_>, key: &'static str) -> Option<Raw<'t>> {
    let entry = top.get(key)?;
    if let DeValue::Table(entries) = entry.get_ref() {
        return Some(Raw { entries, place: entry.span() });
    }
    let title = format!("`{key}` is not a single table");
    let help = format!("write `[{key}]`, once and with single brackets");
    top.report.push(Problem::new(&entry.span(), title, help));
    // The first of several is read: without it, much more would be wrong.
    let first = entry.get_ref().as_array()?.iter().next()?;
    let entries = first.get_ref().as_table()?;
    Some(Raw { entries, place: first.span() })
}

fn system_keys(raw: Option<Raw<'_>>, report: &mut Report) -> Declared {
    let mut declared = Declared {
        name: String::new(),
        memory: At::new(MEMORY_DEFAULT, 0..0),
        clock_hz: CLOCK_DEFAULT,
        cores: At::new(1, 0..0),
        core: 0,
        server: None,
        processes: Vec::new(),
        semaphores: Vec::new(),
        conditions: Vec::new(),
        mailboxes: Vec::new(),
        segments: Vec::new(),
        devices: Vec::new(),
        doorbells: Vec::new(),
        vcpus: Vec::new(),
        usb: Vec::new(),
        buses: Vec::new(),
        endpoints: Vec::new(),
        works: Vec::new(),
        pipes: Vec::new(),
        far: Vec::new(),
        tpipes: Vec::new(),
        states: Vec::new(),
        chains: Vec::new(),
        sections: Vec::new(),
        modes: Vec::new(),
        faults: Vec::new(),
        cans: Vec::new(),
        messages: Vec::new(),
        adapters: Vec::new(),
        sockets: Vec::new(),
        scheduling: vcpu::scheduling(None, report),
        top: 0..0,
    };
    let Some(raw) = raw else { return declared };
    let mut table = Table::new("[system]", "system", raw, report);
    declared.name = name(&mut table).value;
    declared.top = table.place();
    declared.memory = table
        .size("memory", PAGE_BYTES..=MEMORY_MAX)
        .unwrap_or_else(|| At::new(MEMORY_DEFAULT, table.place()));
    declared.clock_hz = clock(&mut table).unwrap_or(CLOCK_DEFAULT);
    declared.cores = cores::count(&mut table);
    table.report_unknown();
    declared
}

fn process(raw: Raw<'_>, report: &mut Report) -> DeclaredProcess {
    let mut table = Table::new("[[process]]", "process", raw, report);
    let table = &mut table;
    let name = name(table);
    let objects =
        |table: &mut Table<'_, '_>, key| count(table, key, 0, u64::from(OBJECTS_MAX)).unwrap_or(0);
    let program = program(table, &name);
    let restart = restart(table);
    let start_at_boot = table
        .choice("start", &[("boot", true), ("manual", false)], "")
        .unwrap_or_else(|| At::new(true, name.span.clone()));
    let whole = ProcessSpec {
        name: name.value.clone(),
        settings: settings::read(table, &program.value),
        program: program.value,
        priority: priority(table),
        heap: table
            .size("heap", 0..=layout::HEAP_PAGES_MAX * PAGE_BYTES)
            .map_or(0, |heap| heap.value),
        stack: table
            .size("stack", PAGE_BYTES..=STACK_BYTES_MAX)
            .map_or(STACK_DEFAULT, |stack| stack.value),
        threads: count(table, "threads", 1, layout::THREADS_PER_PROCESS_MAX).unwrap_or(1),
        semaphores: objects(table, "semaphores"),
        conditions: objects(table, "conditions"),
        events: objects(table, "events"),
        uses: Vec::new(),
        starts: Vec::new(),
        supervisor: None,
        restart: restart.value,
        backoff_ns: backoff(table),
        start_at_boot: start_at_boot.value,
        counters: table.flag("counters").unwrap_or(false),
        arguments: arguments(table),
        vcpu: None,
        vcpus: count(table, "vcpus", 0, u64::from(VCPUS_MAX)).unwrap_or(0),
    };
    let process = DeclaredProcess {
        core: cores::place(table, &name),
        name,
        program: program.span,
        restart: restart.span,
        start_at_boot: start_at_boot.span,
        uses: table.texts("uses", "uses = [\"readings\"]"),
        starts: table.texts("starts", "starts = [\"diag\"]"),
        supervisor: supervisor(table),
        vcpu: table.text("vcpu", "vcpu = \"control\""),
        whole,
    };
    table.report_unknown();
    process
}

pub(crate) fn count(
    table: &mut Table<'_, '_>,
    key: &'static str,
    least: u64,
    most: u64,
) -> Option<u16> {
    let number = table.number(key, least..=most, "")?;
    u16::try_from(number.value).ok()
}

fn priority(table: &mut Table<'_, '_>) -> u8 {
    if !table.has("priority") {
        table.needs("priority", "add `priority = 40`: 0 is least urgent, 63 most");
        return 0;
    }
    let most = PRIORITIES as u64 - 1;
    let number = table.number("priority", 0..=most, "; larger is more urgent");
    number.and_then(|number| u8::try_from(number.value).ok()).unwrap_or(0)
}

fn program(table: &mut Table<'_, '_>, name: &At<String>) -> At<String> {
    let Some(program) = table.text("program", "program = \"engine-sensors\"") else {
        return name.clone();
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let text = &program.value;
    let is_name = (1..=PROGRAM_CHARACTERS_MAX).contains(&text.len())
        && text.chars().all(fine)
        && !text.starts_with(['.', '-']);
    if !is_name {
        let title = format!("`{text}` cannot be the name of a program");
        let help = format!(
            "write its name, not its path: 1 to {PROGRAM_CHARACTERS_MAX} letters, digits, `_`, \
             `-` and `.`, the first a letter, digit or `_`"
        );
        table.report.push(Problem::new(&program.span, title, help));
    }
    program
}

/// Returns the pause before the first restart.
pub(crate) fn backoff(table: &mut Table<'_, '_>) -> u64 {
    let time = table.duration("backoff", 1..=BACKOFF_NS_MAX);
    time.map_or(BACKOFF_DEFAULT, |time| time.value)
}

pub(crate) fn supervisor(table: &mut Table<'_, '_>) -> Supervision {
    match table.text("supervisor", "supervisor = \"supervisor\"") {
        None => Supervision::Default,
        Some(At { value, span }) if value == names::NOBODY => Supervision::Nobody(span),
        Some(name) => Supervision::By(name),
    }
}

pub(crate) fn restart(table: &mut Table<'_, '_>) -> At<Restart> {
    let never = At::new(Restart::Never, table.place());
    let value = table.get("restart").map(Spanned::get_ref);
    if matches!(value, Some(DeValue::Integer(_))) {
        let hint = ", or `\"never\"` or `\"always\"`";
        let number = table.number("restart", 1..=RESTARTS_MAX, hint);
        return number.map_or(never, |number| At::new(restarts(number.value), number.span));
    }
    let words = [("never", Restart::Never), ("always", Restart::Always)];
    table.choice("restart", &words, ", or a number of restarts without quotes").unwrap_or(never)
}

fn restarts(number: u64) -> Restart {
    u32::try_from(number).map_or(Restart::Always, Restart::AtMost)
}

fn arguments(table: &mut Table<'_, '_>) -> [u64; 4] {
    let mut arguments = [0; 4];
    for (to, from) in arguments.iter_mut().zip(table.words("arguments", 4)) {
        *to = from;
    }
    arguments
}

fn semaphore(raw: Raw<'_>, report: &mut Report) -> Named<SemaphoreKind> {
    let mut table = Table::new("[[semaphore]]", "semaphore", raw, report);
    let name = name(&mut table);
    let is_counting = match table.get("kind") {
        None => false,
        // An unknown kind has been reported; do not add to it.
        Some(_) => table.choice("kind", &KINDS, "").is_none_or(|kind| kind.value),
    };
    let initial = table.number("initial", 0..=COUNT_MAX, "");
    let what = match (is_counting, initial) {
        (true, initial) => SemaphoreKind::Counting(initial.map_or(0, |initial| initial.value)),
        (false, None) => SemaphoreKind::Mutex,
        (false, Some(initial)) => {
            let title = "a mutex has no initial count";
            let help = "add `kind = \"counting\"`, or remove `initial`: a mutex starts free";
            table.report.push(Problem::new(&initial.span, title, help));
            SemaphoreKind::Mutex
        }
    };
    table.report_unknown();
    Named { name, what }
}

fn condition(raw: Raw<'_>, report: &mut Report) -> Named<()> {
    let mut table = Table::new("[[condition]]", "condition", raw, report);
    let name = name(&mut table);
    table.report_unknown();
    Named { name, what: () }
}

fn segment(raw: Raw<'_>, report: &mut Report) -> Named<DeclaredSegment> {
    let mut table = Table::new("[[segment]]", "segment", raw, report);
    let name = name(&mut table);
    let size = required_size(&mut table, "add `size = \"4K\"`: the bytes to share");
    let dma = table.flag("dma").unwrap_or(false);
    if name.value == results::SEGMENT && !dma {
        let title = format!("the kernel needs `{}` in one piece", name.value);
        table.report.push(Problem::new(&name.span, title, "add `dma = true` to the segment"));
    }
    table.report_unknown();
    Named { name, what: DeclaredSegment { size, dma, common: false } }
}
