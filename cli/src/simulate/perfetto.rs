//! A trace that opens in Perfetto: who runs, what the kernel does, what budget each VCPU has, jobs
//! with their deadlines, when interrupts are handled, what is on the USB buses, how pipes do, and
//! the way of each message from its device to its reader.

use super::explain::{Cast, cause as cause_of};
use super::messages::Life;
use super::usage::{Usage, who};
use crate::console::Line;
use crate::failure::Failure;
use crate::names::Names;
use crate::words;
use diapason_abi::Nanos;
use diapason_bus::Picos;
use diapason_capture::perfetto::{Arrow, PerfettoTrace, TraceEvent, TraceNote};
use diapason_contract::can::CHANNELS;
use diapason_core::{Cause, Kernel, ThreadId};
use diapason_pipe::measured::{Measurement, PipeReport, Reported};
use diapason_sim::{BusPacket, Moment, PacketOutcome};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Track groups of a host.
const CORE: u32 = 1;
const THREADS: u32 = 2;
const VCPUS: u32 = 3;
const INTERRUPTS: u32 = 4;
const PIPES: u32 = 5;
const JOBS: u32 = 6;
const DEVICES: u32 = 7;
/// The first of those of USB buses.
const BUSES: u32 = 100;
/// Track groups of one controller.
const BUSES_MAX: usize = 100;
/// Tracks of the core.
const RUNS: usize = 0;
const KERNEL: usize = 1;
/// Counters of a pipe: the longest time, the most at once, lost messages.
const OF_PIPE: [(&str, &str); 3] = [("longest", "ns"), ("most at once", ""), ("lost", "")];

/// Distance between the track groups of two hosts.
const HOST: u32 = 10_000;
/// Bits of the number of a track in its group.
const TRACK_BITS: u32 = 24;

/// A trace as it is being written, of one host or of several.
pub(crate) struct Sheet {
    file: Rc<RefCell<Writing>>,
    path: PathBuf,
}

struct Writing {
    out: File,
    trace: PerfettoTrace,
    failed: Option<std::io::Error>,
    /// The number of the last arrow; each message of any host has its own.
    arrows: u64,
}

impl Writing {
    fn put(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }
}

impl Sheet {
    /// Returns a trace in the file at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> Result<Sheet, Failure> {
        let out = File::create(path)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
        let file = Writing { out, trace: PerfettoTrace::default(), failed: None, arrows: 0 };
        Ok(Sheet { file: Rc::new(RefCell::new(file)), path: path.to_path_buf() })
    }

    /// Draws the events on host number `host`. Its groups bear its name, if it has one.
    pub fn host(&self, host: usize, name: &str, names: Names) -> Perfetto {
        let mut trace = Perfetto {
            file: Rc::clone(&self.file),
            before: HOST * host as u32,
            host: name.into(),
            names,
            open: None,
            budgets: Vec::new(),
            jobs: Vec::new(),
            known: BTreeSet::new(),
            handled: None,
        };
        trace.head();
        trace
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(self) -> Result<(), Failure> {
        let file = &mut *self.file.borrow_mut();
        let rest = file.trace.take();
        file.put(&rest);
        let done = file.failed.take().map_or(Ok(()), Err);
        done.map_err(|error| Failure::io(format!("write {}", self.path.display()), &error))
    }
}

/// The jobs of one thread.
#[derive(Clone, Copy, Default)]
struct Jobs {
    /// The job under way, if there is one: number and release.
    open: Option<(u64, Nanos)>,
    deadline: Nanos,
}

/// Returns the number of a group of all hosts.
fn uuid(group: u32) -> u64 {
    u64::from(group) << TRACK_BITS
}

/// Returns the number of a track in a group of all hosts.
fn of(group: u32, track: usize) -> u64 {
    uuid(group) + 1 + track as u64
}

/// Writes what happens on one host as it happens.
pub(crate) struct Perfetto {
    file: Rc<RefCell<Writing>>,
    /// The first track group of this host, and its name.
    before: u32,
    host: String,
    names: Names,
    /// The running thread and its start; merged as long as it is the same thread.
    open: Option<(ThreadId, Nanos, Nanos)>,
    budgets: Vec<Option<Nanos>>,
    jobs: Vec<Jobs>,
    /// Tracks and groups that have been named.
    known: BTreeSet<(u32, Option<usize>)>,
    /// The interrupt handled last: its entry is two moments.
    handled: Option<(u16, Nanos, Nanos)>,
}

impl Perfetto {
    /// Returns the number of a group among those of all hosts.
    fn uuid(&self, group: u32) -> u64 {
        uuid(self.before + group)
    }

    /// Returns the number of a track among those of all groups and hosts.
    fn of(&self, group: u32, track: usize) -> u64 {
        of(self.before + group, track)
    }

    fn write(&self, write: impl FnOnce(&mut PerfettoTrace)) {
        let file = &mut *self.file.borrow_mut();
        write(&mut file.trace);
        let full = file.trace.take_full();
        if !full.is_empty() {
            file.put(&full);
        }
    }

    fn head(&mut self) {
        let groups = [
            (CORE, "core 0"),
            (THREADS, "threads"),
            (VCPUS, "budgets"),
            (JOBS, "jobs, from release to end"),
            (INTERRUPTS, "interrupts"),
            (DEVICES, "messages, when devices have them"),
            (PIPES, "pipes, as their readers report"),
        ];
        groups.into_iter().for_each(|(group, name)| self.group(group, name));
        self.track(CORE, RUNS, "runs");
        self.track(CORE, KERNEL, "kernel");
    }

    fn group(&mut self, group: u32, name: &str) {
        if self.known.insert((group, None)) {
            let (uuid, name) = (self.uuid(group), format!("{} {name}", self.host));
            self.write(|trace| trace.group(uuid, self.before + group, name.trim()));
        }
    }

    fn track(&mut self, group: u32, track: usize, name: &str) {
        if self.known.insert((group, Some(track))) {
            let (uuid, group) = (self.of(group, track), self.uuid(group));
            self.write(|trace| trace.track(uuid, group, name));
        }
    }

    fn counter(&mut self, group: u32, track: usize, name: &str, unit: &str) -> u64 {
        let uuid = self.of(group, track);
        if self.known.insert((group, Some(track))) {
            let group = self.uuid(group);
            self.write(|trace| trace.counter(uuid, group, name, unit));
        }
        uuid
    }

    fn slice(&self, group: u32, track: usize, name: &str, from: Nanos, to: Nanos) {
        // An event of no duration would be in the way of the next one.
        if from < to {
            let event = TraceEvent::new(self.of(group, track), name);
            self.write(|trace| trace.slice(&event, from, to));
        }
    }

    fn close_open(&mut self, cast: &Cast) {
        if let Some((thread, from, to)) = self.open.take() {
            let (name, track) = (cast.name(thread, &self.names), usize::from(thread.index()));
            self.slice(CORE, RUNS, &name, from, to);
            self.track(THREADS, track, &name);
            self.slice(THREADS, track, "runs", from, to);
        }
    }

    /// The processor did something.
    pub fn moment(&mut self, from: Nanos, to: Nanos, what: Moment, cast: &Cast) {
        match (what, &mut self.open) {
            (Moment::Runs(thread), Some((open, _, end))) if thread == *open && *end == from => {
                *end = to;
            }
            (Moment::Runs(thread), _) => {
                self.close_open(cast);
                self.open = Some((thread, from, to));
            }
            (Moment::Kernel(cause), _) => {
                self.close_open(cast);
                let name = cause_of(cause, &self.names);
                self.slice(CORE, KERNEL, &name, from, to);
                if let Cause::Irq(device) = cause {
                    self.interrupt(device, from, to);
                }
            }
        }
    }

    fn interrupt(&mut self, device: u16, from: Nanos, to: Nanos) {
        match &mut self.handled {
            Some((same, _, end)) if *same == device && *end == from => *end = to,
            _ => {
                self.close_interrupt();
                self.handled = Some((device, from, to));
            }
        }
    }

    fn close_interrupt(&mut self) {
        let Some((device, from, to)) = self.handled.take() else { return };
        let (name, track) = (self.names.device(device.into()), usize::from(device));
        self.track(INTERRUPTS, track, &name);
        self.slice(INTERRUPTS, track, "handled", from, to);
    }

    /// A packet passed a bus of a controller.
    pub fn packet(&mut self, controller: usize, usage: &Usage, packet: &BusPacket) {
        let group = BUSES + (controller * BUSES_MAX + packet.bus.min(BUSES_MAX - 1)) as u32;
        let track = usize::from(packet.slot) << 8 | usize::from(packet.endpoint);
        self.group(group, &usage.bus(packet.bus));
        let place = (packet.bus, packet.slot, packet.endpoint);
        self.track(group, track, &who(place, packet.kind));
        let name = match packet.outcome {
            PacketOutcome::Moved => "packet",
            PacketOutcome::Nak => "not now",
            PacketOutcome::Stall => "stall",
            PacketOutcome::Error => "error",
            PacketOutcome::Babble => "babble",
        };
        // Readers know nanoseconds: a fraction of one makes packets that follow each other overlap.
        let floor = |time: Picos| Nanos(time.0 / 1_000);
        let (from, to) = (floor(packet.start), floor(packet.end));
        if from < to {
            let notes = [TraceNote::Number("bytes", packet.bytes.into())];
            let event =
                TraceEvent { notes: &notes, ..TraceEvent::new(self.of(group, track), name) };
            self.write(|trace| trace.slice(&event, from, to));
        }
    }

    /// Budgets after a decision, and the jobs that it ended, which read the clock at `read`.
    pub fn decided(&mut self, read: Nanos, now: Nanos, kernel: &Kernel<'_>, cast: &Cast) {
        self.ended_jobs(read, kernel, cast);
        for (index, id) in kernel.vcpus.ids().enumerate() {
            let budget = kernel.budget_of(id, now);
            if self.budgets.len() <= index {
                self.budgets.resize(index + 1, None);
            }
            if budget == self.budgets[index] {
                continue;
            }
            self.budgets[index] = budget;
            let name = self.names.vcpu(index as u64, None);
            let counter = self.counter(VCPUS, index, &name, "ns");
            self.write(|trace| trace.value(counter, now, budget.unwrap_or_default().0));
        }
    }

    /// Draws every job that has ended, with its deadline.
    fn ended_jobs(&mut self, read: Nanos, kernel: &Kernel<'_>, cast: &Cast) {
        self.jobs.resize(kernel.threads.ids().count(), Jobs::default());
        for (track, id) in kernel.threads.ids().enumerate() {
            let (now, Jobs { open, deadline }) = (&kernel.threads[id].jobs, self.jobs[track]);
            if let Some((job, release)) = open.filter(|(job, _)| now.done >= *job) {
                self.job(track, &cast.name(id, &self.names), job, [release, read, deadline]);
            }
            let periodic = now.period > Nanos::ZERO;
            let open = periodic.then_some((now.done + 1, now.release));
            self.jobs[track] = Jobs { open, deadline: now.deadline };
        }
    }

    fn job(&mut self, track: usize, thread: &str, job: u64, [from, to, deadline]: [Nanos; 3]) {
        self.track(JOBS, track, thread);
        let is_late = to > from + deadline;
        let notes = [TraceNote::Number("job", job), TraceNote::Number("deadline ns", deadline.0)];
        let name = if is_late { "job, too late" } else { "job" };
        if from < to {
            let event = TraceEvent { notes: &notes, ..TraceEvent::new(self.of(JOBS, track), name) };
            self.write(|trace| trace.slice(&event, from, to));
        }
    }

    /// A message has arrived: an arrow leads from its device to its reader, or from the server that
    /// gave it to its device to the end of its way there.
    pub fn message(&mut self, pipe: &str, life: &Life) {
        self.track(DEVICES, life.pipe, pipe);
        let device = self.of(DEVICES, life.pipe);
        let Some((thread, at)) = life.handled() else { return };
        let before = life.far.map_or(self.before, |part| HOST * part as u32);
        let thread = of(before + THREADS, usize::from(thread.index()));
        let (took, bound) = (life.latency().0, life.bound.unwrap_or_default().0);
        let words = life.message.words();
        let notes = [
            TraceNote::Text("message", &words),
            TraceNote::Number("number", life.number),
            TraceNote::Number("took ns", took),
            TraceNote::Number("at most ns", bound),
        ];
        let arrow = {
            let file = &mut *self.file.borrow_mut();
            file.arrows += 1;
            file.arrows
        };
        let [begin, end] = match life.to_device {
            true => [(thread, at), (device, life.to)],
            false => [(device, life.from), (thread, at)],
        };
        for ((track, at), arrow) in [(begin, Arrow::From(arrow)), (end, Arrow::To(arrow))] {
            let event = TraceEvent { track, name: pipe, notes: &notes, arrow };
            self.write(|trace| trace.instant(&event, at));
        }
    }

    /// A reader reported how its pipe does.
    fn pipe(&mut self, now: Nanos, process: u64, report: &PipeReport) {
        let name = format!("{}, can{}", self.names.process(process), report.channel);
        let values = [report.whole.0, report.peak.into(), report.lost.into()];
        for (part, ((what, unit), value)) in OF_PIPE.into_iter().zip(values).enumerate() {
            let pipe = process as usize * CHANNELS + usize::from(report.channel);
            let track = pipe * OF_PIPE.len() + part;
            let counter = self.counter(PIPES, track, &format!("{name}: {what}"), unit);
            self.write(|trace| trace.value(counter, now, value));
        }
    }

    /// Notes a line of output.
    pub fn said(&mut self, now: Nanos, line: &Line) {
        if let Some((process, said)) = line.measured() {
            if let Some(Reported { said: Measurement::Pipe(report), .. }) = said {
                self.pipe(now, process, &report);
            }
            return;
        }
        let (text, track) = (words::sentence(line, &self.names), self.of(CORE, KERNEL));
        self.write(|trace| trace.line(track, text.trim(), now));
    }

    /// The host has ended.
    pub fn close(mut self, cast: &Cast) {
        self.close_open(cast);
        self.close_interrupt();
    }
}
