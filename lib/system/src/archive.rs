//! From a system and its programs to the boot archive.

use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::memory::{self, Budget};
use crate::settings;
use crate::source::Span;
use crate::system::{
    MailboxSpec, Place, ProcessSpec, Restart, SemaphoreKind, SemaphoreSpec, ServerSpec, System,
    VcpuSpec,
};
use diapason_abi::archive::{
    Archive, CRC_FROM, DeviceRecord, Header, NONE, ObjectKind, ObjectRecord, ProcessRecord,
    Refusal, SegmentRecord, VcpuKind, VcpuRecord, crc32, flags,
};
use diapason_abi::elf::Program;
use diapason_abi::{Key, Nanos, PAGE, call};
use diapason_contract::settings::PROGRAM;
use std::collections::BTreeMap;

/// The options of a run besides its description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// When the run ends, in ns since boot; `u64::MAX`: never.
    pub horizon_ns: u64,
    /// Bytes set aside for the flight recorder, beyond the system's `memory`; 0: no recorder.
    pub record_bytes: u32,
    /// Time every kernel path and report the longest.
    pub watch: bool,
}

/// The right to compile an archive. The planner grants it, for a system whose plan holds or that
/// a user wants to boot unproved; `cargo xtask tidy` finds every other caller.
#[derive(Debug)]
pub struct Permit(());

impl Permit {
    /// Returns a permit. Only `lib/plan` and tests of this crate call this.
    #[must_use]
    pub const fn granted() -> Permit {
        Permit(())
    }
}

/// Images start at multiples of this.
const IMAGE_ALIGN: usize = 16;

/// A program and where it lies in the archive.
struct Image {
    offset: u32,
    length: u32,
    crc: u32,
    /// Bytes one running copy needs.
    loaded: u64,
}

/// The images of all programs, in the order of their first use; each program is stored once, and
/// once more for each process that gives it settings.
#[derive(Default)]
struct Images {
    by_name: BTreeMap<String, Image>,
    bytes: Vec<u8>,
}

/// Returns the name of a process's image here: a process with settings has an image of its own. No
/// name of a program has a space.
fn image_name(process: &ProcessSpec) -> String {
    if process.settings.is_empty() {
        return process.program.clone();
    }
    format!("{} {}", process.program, process.name)
}

/// Compile `system` into a boot archive. `image_of` is asked once for each program's ELF file;
/// its error says why there is none.
///
/// # Errors
/// Programs that are missing or cannot be loaded, and memory that does not suffice.
pub fn build(
    _: Permit,
    system: &System,
    options: &RunOptions,
    image_of: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, Diagnostics> {
    if let Some(problem) = system.overcrowded() {
        return Err(problem);
    }
    if system.processes.is_empty() {
        let title = "the system has no process that could run";
        let help = "ask `diapason plan` and `diapason sim` about its buses, or add `[[process]]`";
        return Err(system.problem(Place::Scheduling, [title, "", "", help]));
    }
    if !system.changes_modes() {
        let title = "no USB server changes the modes, so this system does not run";
        let help = "add `[usbd]`, or remove all `[[mode]]`";
        return Err(system.problem(Place::Mode(0), [title, "", "", help]));
    }
    // A tool may have changed the pipes since the description was read.
    let system = &settings::followed(system);
    let mut report = Report::new();
    let mut header = header(system, options);
    let images = images(system, header.tables_end(), image_of, &mut report);
    if report.is_empty() {
        check_memory(system, &images, header.tables_end(), &mut report);
    }
    if !report.is_empty() {
        return Err(Diagnostics::new(system.origin.source.clone(), report));
    }
    let length = header.tables_end().next_multiple_of(IMAGE_ALIGN) + images.bytes.len();
    header.length = u32::try_from(length).unwrap_or(u32::MAX);
    let bytes = write(system, &header, &images);
    verify(system, &bytes)?;
    Ok(bytes)
}

impl System {
    /// Returns whether a USB server changes the modes, if there are any.
    #[must_use]
    pub fn changes_modes(&self) -> bool {
        self.modes.is_empty() || self.processes.iter().any(|it| it.program == PROGRAM)
    }

    /// Returns the places of all programs that processes name and that there are not. `known` is
    /// asked once for each; its error says what there is.
    #[must_use]
    pub fn missing_programs(
        &self,
        known: &mut dyn FnMut(&str) -> Result<(), String>,
    ) -> Option<Diagnostics> {
        let mut report = Report::new();
        let mut tried: Vec<&str> = Vec::new();
        for (process, span) in self.processes.iter().zip(&self.origin.programs) {
            if tried.contains(&&*process.program) {
                continue;
            }
            tried.push(&process.program);
            if let Err(reason) = known(&process.program) {
                report.push(missing(process, &reason, span));
            }
        }
        (!report.is_empty()).then(|| Diagnostics::new(self.origin.source.clone(), report))
    }
}

fn count(list: usize) -> u16 {
    u16::try_from(list).unwrap_or(u16::MAX)
}

fn header(system: &System, options: &RunOptions) -> Header {
    let objects = system.semaphores.len() + system.conditions.len() + system.mailboxes.len();
    let record = if options.record_bytes > 0 { flags::RECORD } else { 0 };
    let watch = if options.watch { flags::WATCH } else { 0 };
    let times = system.kernel_times();
    let ns = |time: Nanos| u32::try_from(time.0).unwrap_or(u32::MAX);
    let exact = if system.scheduling.exact { flags::EXACT } else { 0 };
    Header {
        length: 0,
        processes: count(system.processes.len()),
        objects: count(objects),
        segments: count(system.segments.len()),
        devices: count(system.devices.len()),
        horizon: options.horizon_ns,
        flags: record | watch | exact,
        recorder_bytes: options.record_bytes,
        vcpus: count(system.vcpus.len()),
        dp_queues: system.scheduling.dp_queues,
        switch_grace: ns(times.switch(system.deadline_queues())),
        interrupt_grace: ns(times.interrupt_grace()),
        longest_path: ns(times.longest_path()),
    }
}

/// Fetches and checks every program once. Offsets count from the start of the archive.
fn images(
    system: &System,
    tables_end: usize,
    image_of: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    report: &mut Report,
) -> Images {
    let start = tables_end.next_multiple_of(IMAGE_ALIGN);
    let mut images = Images::default();
    let mut tried: Vec<String> = Vec::new();
    for (index, process) in system.processes.iter().enumerate() {
        let name = image_name(process);
        if tried.contains(&name) {
            continue;
        }
        let span = system.origin.programs.get(index).cloned().unwrap_or(0..0);
        match image_of(&process.program) {
            Err(reason) => report.push(missing(process, &reason, &span)),
            Ok(mut file) => match check_program(&file) {
                Err(refusal) => report.push(unusable(process, refusal, &span)),
                Ok(loaded) => match settings::write(&mut file, process) {
                    Err((title, help)) => report.push(Problem::new(&span, title, help)),
                    Ok(()) => images.add(&name, start, &file, loaded),
                },
            },
        }
        tried.push(name);
    }
    images
}

impl Images {
    fn add(&mut self, name: &str, start: usize, file: &[u8], loaded: u64) {
        self.bytes.resize(self.bytes.len().next_multiple_of(IMAGE_ALIGN), 0);
        // Beyond 4 GiB nothing fits `memory`, so clamped values are never written.
        let clamp = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let (offset, length) = (clamp(start + self.bytes.len()), clamp(file.len()));
        let image = Image { offset, length, crc: crc32(file), loaded };
        self.by_name.insert(name.to_owned(), image);
        self.bytes.extend_from_slice(file);
    }
}

/// Carries out the kernel's steps, up to the last relocation, and returns the memory needed.
fn check_program(file: &[u8]) -> Result<u64, Refusal> {
    let program = Program::parse(file)?;
    program.relocations(|_, _| {})?;
    Ok(memory::loaded(&program))
}

fn missing(process: &ProcessSpec, reason: &str, span: &Span) -> Problem {
    let title = format!("there is no program `{}`", process.program);
    let help = if process.program == process.name {
        "add `program = \"…\"` if it is not named like the process, or build it first"
    } else {
        "correct the name, or build the program first"
    };
    let problem = Problem::new(span, title, help);
    if reason.is_empty() { problem } else { problem.note(reason) }
}

fn unusable(process: &ProcessSpec, refusal: Refusal, span: &Span) -> Problem {
    let title = format!("`{}` cannot be loaded: {}", process.program, refusal.text());
    let help = match refusal {
        Refusal::NotElf => "build it as a static position-independent x86-64 executable",
        Refusal::ElfRange => "make it smaller (64M with its data), or build it again if it is cut",
        Refusal::ElfEntry => "link it with its entry point (`-e`) in an executable segment",
        Refusal::WriteExecute => "link it so that no segment is both writable and executable",
        Refusal::Overlap => "link it so that each segment starts on a page of its own",
        Refusal::Relocation => "link it statically, so that only relative relocations are left",
        _ => "build it again with the tools of this system",
    };
    Problem::new(span, title, help)
}

/// Refuses what does not fit. The flight recorder is not counted: it belongs to the run, which
/// gives the machine that much more RAM.
fn check_memory(system: &System, images: &Images, tables_end: usize, report: &mut Report) {
    let loaded = |process: &ProcessSpec| {
        images.by_name.get(&image_name(process)).map_or(0, |image| image.loaded)
    };
    let mut budget = Budget::of(system);
    budget.add("programs", system.processes.iter().map(loaded).sum());
    budget.add("archive", (tables_end + IMAGE_ALIGN + images.bytes.len()) as u64);
    if let Some(problem) = budget.problem(system) {
        report.push(problem);
    }
}

fn write(system: &System, header: &Header, images: &Images) -> Vec<u8> {
    let mut bytes = header.to_bytes(0).to_vec();
    for (index, process) in system.processes.iter().enumerate() {
        bytes.extend(process_record(system, index, process, images).to_bytes());
    }
    for object in objects(system) {
        bytes.extend(object.to_bytes());
    }
    for segment in &system.segments {
        bytes.extend(segment_record(segment).to_bytes());
    }
    for device in &system.devices {
        bytes.extend(device_record(device).to_bytes());
    }
    for record in vcpu_records(system) {
        bytes.extend(record.to_bytes());
    }
    let crc = crc32(bytes.get(CRC_FROM..).unwrap_or(&[]));
    bytes.splice(CRC_FROM - 4..CRC_FROM, crc.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(IMAGE_ALIGN), 0);
    bytes.extend_from_slice(&images.bytes);
    bytes
}

fn key(name: &str) -> u64 {
    Key::new(name).0
}

/// Returns the records of all processes, without the places of their programs.
pub(crate) fn process_records(system: &System) -> Vec<ProcessRecord> {
    let (none, processes) = (Images::default(), system.processes.iter().enumerate());
    processes.map(|(index, process)| process_record(system, index, process, &none)).collect()
}

fn process_record(
    system: &System,
    index: usize,
    process: &ProcessSpec,
    images: &Images,
) -> ProcessRecord {
    let image = images.by_name.get(&image_name(process));
    let p = process;
    ProcessRecord {
        key: key(&p.name),
        image_offset: image.map_or(0, |image| image.offset),
        image_length: image.map_or(0, |image| image.length),
        image_crc: image.map_or(0, |image| image.crc),
        priority: p.priority,
        start_at_boot: p.start_at_boot,
        counters: p.counters,
        supervisor: p.supervisor.unwrap_or(NONE),
        threads: p.threads,
        semaphores: p.semaphores,
        conditions: p.conditions,
        events: p.events,
        stack_pages: u16::try_from(pages(p.stack)).unwrap_or(u16::MAX),
        heap_pages: pages(p.heap),
        restarts_max: match p.restart {
            Restart::Never => 0,
            Restart::AtMost(times) => times,
            Restart::Always => u32::MAX,
        },
        backoff: p.backoff_ns,
        starters: starters(system, index),
        arguments: p.arguments,
        vcpu: p.vcpu.unwrap_or(NONE),
        vcpus: p.vcpus,
    }
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE as u64).unwrap_or(u32::MAX)
}

/// Returns the processes that may start process number `index`: those that say so, and its
/// supervisor.
fn starters(system: &System, index: usize) -> u64 {
    let may = |other: &ProcessSpec| other.starts.iter().any(|start| usize::from(*start) == index);
    let supervisor = system.processes[index].supervisor.map(usize::from);
    (0..u64::BITS)
        .zip(system.processes.iter())
        .filter(|(bit, other)| may(other) || supervisor == Some(*bit as usize))
        .fold(0, |mask, (bit, _)| mask | 1 << bit)
}

pub(crate) fn objects(system: &System) -> impl Iterator<Item = ObjectRecord> {
    let semaphores = (0..).zip(&system.semaphores).map(|(number, semaphore)| ObjectRecord {
        key: key(&semaphore.name),
        allowed: lockers(system, number, semaphore),
        initial: match semaphore.kind {
            SemaphoreKind::Mutex => call::MUTEX,
            SemaphoreKind::Counting(initial) => initial,
        },
        kind: ObjectKind::Semaphore,
        capacity: 0,
        faults_of: NONE,
        mutex: NONE,
    });
    let conditions = system.conditions.iter().map(|condition| ObjectRecord {
        key: key(&condition.name),
        allowed: condition.allowed,
        initial: 0,
        kind: ObjectKind::Condition,
        capacity: 0,
        faults_of: NONE,
        mutex: NONE,
    });
    semaphores.chain(conditions).chain(system.mailboxes.iter().map(mailbox_record))
}

/// Returns the processes that may lock a semaphore. Callers of a server wait for its mutex without
/// having it: a caller that locked it would serve the mailbox.
fn lockers(system: &System, number: u16, semaphore: &SemaphoreSpec) -> u64 {
    let mut served = system.mailboxes.iter().filter_map(|mailbox| mailbox.served);
    let server = served.find(|served| served.mutex == number);
    server.map_or(semaphore.allowed, |served| 1 << served.process)
}

fn mailbox_record(mailbox: &MailboxSpec) -> ObjectRecord {
    ObjectRecord {
        key: key(&mailbox.name),
        allowed: mailbox.allowed,
        initial: 0,
        kind: ObjectKind::Mailbox,
        capacity: mailbox.messages,
        faults_of: mailbox.faults_of.unwrap_or(NONE),
        mutex: mailbox.served.map_or(NONE, |served| served.mutex),
    }
}

fn segment_record(segment: &crate::SegmentSpec) -> SegmentRecord {
    let (key, allowed) = (key(&segment.name), segment.allowed);
    let (dma, common) = (segment.dma, segment.common);
    SegmentRecord { key, allowed, pages: pages(segment.size), dma, common }
}

fn device_record(device: &crate::DeviceSpec) -> DeviceRecord {
    DeviceRecord {
        key: key(&device.name),
        allowed: device.allowed,
        location: device.location,
        pages: pages(device.size),
        irq: device.interrupt.map_or(NONE, |interrupt| interrupt.irq),
        level: device.interrupt.is_some_and(|interrupt| interrupt.level),
        interval: device.interrupt.and_then(|interrupt| interrupt.interval_ns).unwrap_or(0),
    }
}

pub(crate) fn vcpu_records(system: &System) -> impl Iterator<Item = VcpuRecord> {
    let makes = system.processes.iter().any(|process| process.vcpus > 0);
    (0u16..).zip(&system.vcpus).map(move |(number, vcpu)| {
        let record = vcpu_record(vcpu);
        // The system was admitted with the most that programs may ask of its tuned pipes.
        let tuned = system.tpipes.iter().find(|tpipe| tpipe.vcpu == number);
        let (most, least) = match tuned {
            Some(tpipe) => (tpipe.envelope.budget.0, tpipe.envelope.period.0),
            // Where programs make VCPUs, bounds hold with all that the kernel admits.
            None if makes => (0, 0),
            None => (record.budget, record.period),
        };
        VcpuRecord { most, least, ..record }
    })
}

fn vcpu_record(vcpu: &VcpuSpec) -> VcpuRecord {
    let empty = VcpuRecord {
        key: key(&vcpu.name),
        allowed: vcpu.allowed,
        serves: 0,
        budget: 0,
        period: 0,
        cap: 0,
        interval: 0,
        most: 0,
        least: 0,
        utilization_ppm: 0,
        kind: VcpuKind::Main,
        background: false,
        replenishments: 0,
        queue: vcpu.queue,
    };
    match &vcpu.server {
        ServerSpec::Main { budget_ns, period_ns, replenishments, background, .. } => VcpuRecord {
            budget: *budget_ns,
            period: *period_ns,
            replenishments: *replenishments,
            background: *background,
            ..empty
        },
        ServerSpec::Io { utilization_ppm, cap_ns, interval_ns, wakes, serves } => VcpuRecord {
            kind: VcpuKind::Io,
            utilization_ppm: *utilization_ppm,
            cap: cap_ns.unwrap_or(u64::MAX),
            interval: *interval_ns,
            replenishments: *wakes,
            serves: serves.iter().fold(0, |mask, served| mask | 1 << served),
            ..empty
        },
    }
}

/// Reads the archive back as the kernel will. A refusal can only mean that the system was changed
/// after it was parsed, or a bug here.
fn verify(system: &System, bytes: &[u8]) -> Result<(), Diagnostics> {
    let read = Archive::parse(bytes).and_then(|archive| {
        archive.processes().try_for_each(|process| archive.image(&process).map(|_| ()))
    });
    read.map_err(|refusal| {
        let title = format!("the finished archive is refused: {}", refusal.text());
        let help = "report this as a bug, with the description";
        let mut report = Report::new();
        report.push(Problem::new(&(0..0), title, help));
        Diagnostics::new(system.origin.source.clone(), report)
    })
}
