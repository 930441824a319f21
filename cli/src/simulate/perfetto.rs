//! A trace that opens in Perfetto (and in any reader of Chrome's JSON): who runs, what the kernel
//! does, what budget each VCPU has, when interrupts are handled, what is on the USB buses, how
//! pipes do.

use super::explain::{Cast, cause as cause_of};
use super::usage::{Usage, who};
use crate::console::Line;
use crate::failure::Failure;
use crate::names::Names;
use crate::words;
use diapason_abi::Nanos;
use diapason_bus::Picos;
use diapason_core::{Cause, Kernel, ThreadId};
use diapason_pipe::measured::{Measurement, PipeReport, Reported};
use diapason_sim::{BusPacket, Moment, PacketOutcome};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Track groups of the trace.
const CORE: u32 = 1;
const THREADS: u32 = 2;
const VCPUS: u32 = 3;
const INTERRUPTS: u32 = 4;
const PIPES: u32 = 5;
/// The first of those of USB buses.
const BUSES: u32 = 100;
/// Track groups of one controller.
const BUSES_MAX: usize = 100;
/// Tracks of the core.
const RUNS: usize = 0;
const KERNEL: usize = 1;

/// Distance between the track groups of two hosts.
const HOST: u64 = 10_000;

/// A trace as it is being written, of one host or of several.
pub(crate) struct Sheet {
    file: Rc<RefCell<Writing>>,
    path: PathBuf,
}

struct Writing {
    out: BufWriter<File>,
    failed: Option<std::io::Error>,
}

impl Writing {
    fn put(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }
}

impl Sheet {
    /// Returns a trace in the file at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> Result<Sheet, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
        let mut file = Writing { out: BufWriter::new(file), failed: None };
        file.put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        Ok(Sheet { file: Rc::new(RefCell::new(file)), path: path.to_path_buf() })
    }

    /// Draws the events on host number `host`. Its groups bear its name, if it has one.
    pub fn host(&self, host: usize, name: &str, names: Names) -> Perfetto {
        let mut trace = Perfetto {
            file: Rc::clone(&self.file),
            before: HOST * host as u64,
            host: name.into(),
            names,
            open: None,
            budgets: Vec::new(),
            endpoints: BTreeSet::new(),
            interrupts: BTreeSet::new(),
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
        // The list's last element; every other line ends with a comma.
        file.put("{\"ph\":\"M\",\"name\":\"end\",\"pid\":1}\n]}\n");
        let done = file.failed.take().map_or_else(|| file.out.flush(), Err);
        done.map_err(|error| Failure::io(format!("write {}", self.path.display()), &error))
    }
}

/// Writes what happens on one host as it happens.
pub(crate) struct Perfetto {
    file: Rc<RefCell<Writing>>,
    /// The first track group of this host, and its name.
    before: u64,
    host: String,
    names: Names,
    /// The running thread and its start; merged as long as it is the same thread.
    open: Option<(ThreadId, Nanos, Nanos)>,
    budgets: Vec<Option<Nanos>>,
    /// Buses and their endpoints that have a track: group, slot and context index.
    endpoints: BTreeSet<(u32, u8, u8)>,
    /// Devices whose interrupts have a track.
    interrupts: BTreeSet<u16>,
    /// The interrupt handled last: its entry is two moments.
    handled: Option<(u16, Nanos, Nanos)>,
}

impl Perfetto {
    fn event(&mut self, mut event: Value) {
        let group = event["pid"].as_u64().unwrap_or_default();
        event["pid"] = (self.before + group).into();
        self.file.borrow_mut().put(&format!("{event},\n"));
    }

    fn head(&mut self) {
        let groups = [(CORE, "core 0"), (THREADS, "threads"), (VCPUS, "budgets (us)")];
        let others = [(INTERRUPTS, "interrupts"), (PIPES, "pipes, as their readers report")];
        for (group, name) in groups.into_iter().chain(others) {
            self.group(group, name);
        }
        self.track(CORE, RUNS, "runs");
        self.track(CORE, KERNEL, "kernel");
    }

    fn group(&mut self, group: u32, name: &str) {
        let arguments = json!({"name": format!("{} {name}", self.host).trim()});
        self.event(json!({"ph": "M", "name": "process_name", "pid": group, "args": arguments}));
    }

    fn track(&mut self, group: u32, track: usize, name: &str) {
        let arguments = json!({"name": name});
        let (kind, what) = ("M", "thread_name");
        self.event(
            json!({"ph": kind, "name": what, "pid": group, "tid": track, "args": arguments}),
        );
    }

    fn slice(&mut self, group: u32, track: usize, name: &str, from: Nanos, to: Nanos) {
        // An event of no duration would be in the way of the next one.
        if from < to {
            let (at, span) = (micros(from), micros(to - from));
            self.event(
                json!({"ph": "X", "name": name, "pid": group, "tid": track, "ts": at, "dur": span}),
            );
        }
    }

    fn close_open(&mut self, cast: &Cast) {
        if let Some((thread, from, to)) = self.open.take() {
            let name = cast.name(thread, &self.names);
            self.slice(CORE, RUNS, &name, from, to);
            self.slice(THREADS, usize::from(thread.index()), &name, from, to);
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
        if self.interrupts.insert(device) {
            self.track(INTERRUPTS, track, &name);
        }
        self.slice(INTERRUPTS, track, &name, from, to);
    }

    /// A packet passed a bus of a controller.
    pub fn packet(&mut self, controller: usize, usage: &Usage, packet: &BusPacket) {
        let group = BUSES + (controller * BUSES_MAX + packet.bus.min(BUSES_MAX - 1)) as u32;
        let track = usize::from(packet.slot) << 8 | usize::from(packet.endpoint);
        if !self.endpoints.iter().any(|known| known.0 == group) {
            self.group(group, &usage.bus(packet.bus));
        }
        if self.endpoints.insert((group, packet.slot, packet.endpoint)) {
            let place = (packet.bus, packet.slot, packet.endpoint);
            self.track(group, track, &who(place, packet.kind));
        }
        let name = match packet.outcome {
            PacketOutcome::Moved => format!("{} bytes", packet.bytes),
            PacketOutcome::Nak => String::from("not now"),
            PacketOutcome::Stall => String::from("stall"),
            PacketOutcome::Error => String::from("error"),
            PacketOutcome::Babble => String::from("babble"),
        };
        // Readers know nanoseconds: a fraction of one makes packets that follow each other overlap.
        let floor = |time: Picos| Nanos(time.0 / 1_000);
        self.slice(group, track, &name, floor(packet.start), floor(packet.end));
    }

    /// Budgets after a decision.
    pub fn budgets(&mut self, now: Nanos, kernel: &Kernel<'_>) {
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
            let (at, left) = (micros(now), json!({"us": micros(budget.unwrap_or_default())}));
            self.event(json!({"ph": "C", "name": name, "pid": VCPUS, "ts": at, "args": left}));
        }
    }

    /// A reader reported how its pipe does.
    fn pipe(&mut self, now: Nanos, process: u64, report: &PipeReport) {
        let name = format!("{}, can{}", self.names.process(process), report.channel);
        let values = json!({
            "longest us": micros(report.whole), "most at once": report.peak, "lost": report.lost,
        });
        let at = micros(now);
        self.event(json!({"ph": "C", "name": name, "pid": PIPES, "ts": at, "args": values}));
    }

    /// Notes a line of output.
    pub fn said(&mut self, now: Nanos, line: &Line) {
        if let Some((process, said)) = line.measured() {
            if let Some(Reported { said: Measurement::Pipe(report), .. }) = said {
                self.pipe(now, process, &report);
            }
            return;
        }
        let (text, at) = (words::sentence(line, &self.names), micros(now));
        let (kind, name) = ("i", text.trim());
        self.event(
            json!({"ph": kind, "s": "p", "name": name, "pid": CORE, "tid": KERNEL, "ts": at}),
        );
    }

    /// The host has ended.
    pub fn close(mut self, cast: &Cast) {
        self.close_open(cast);
        self.close_interrupt();
        for index in 0..cast.0.len() {
            let name = cast.name(ThreadId::new(index as u16), &self.names);
            self.track(THREADS, index, &name);
        }
    }
}

/// Microseconds, exact to the nanosecond for a hundred days.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1_000.0
}
