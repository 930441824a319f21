//! A trace that opens in Perfetto (and in any reader of Chrome's JSON): who runs, what the kernel
//! does, what budget each VCPU has.

use super::explain::{Cast, cause as cause_of};
use crate::console::Line;
use crate::names::Names;
use crate::{Failure, words};
use diapason_abi::Nanos;
use diapason_core::{Kernel, ThreadId};
use diapason_sim::Moment;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Track groups of the trace.
const CORE: u32 = 1;
const THREADS: u32 = 2;
const VCPUS: u32 = 3;
/// Tracks of the core.
const RUNS: usize = 0;
const KERNEL: usize = 1;

/// Writes a trace as it happens.
pub struct Perfetto {
    out: BufWriter<File>,
    path: PathBuf,
    names: Names,
    /// Who runs since when; merged as long as it is the same thread.
    open: Option<(ThreadId, Nanos, Nanos)>,
    budgets: Vec<Option<Nanos>>,
    failed: Option<std::io::Error>,
}

impl Perfetto {
    /// A trace in the file at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, names: Names) -> Result<Perfetto, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
        let mut trace = Perfetto {
            out: BufWriter::new(file),
            path: path.to_path_buf(),
            names,
            open: None,
            budgets: Vec::new(),
            failed: None,
        };
        trace.put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        trace.head();
        Ok(trace)
    }

    fn put(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }

    fn event(&mut self, event: Value) {
        self.put(&format!("{event},\n"));
    }

    fn head(&mut self) {
        for (group, name) in [(CORE, "core 0"), (THREADS, "threads"), (VCPUS, "budgets (us)")] {
            let arguments = json!({"name": name});
            self.event(json!({"ph": "M", "name": "process_name", "pid": group, "args": arguments}));
        }
        self.track(CORE, RUNS, "runs");
        self.track(CORE, KERNEL, "kernel");
    }

    fn track(&mut self, group: u32, track: usize, name: &str) {
        let arguments = json!({"name": name});
        let (kind, what) = ("M", "thread_name");
        self.event(
            json!({"ph": kind, "name": what, "pid": group, "tid": track, "args": arguments}),
        );
    }

    fn slice(&mut self, group: u32, track: usize, name: &str, from: Nanos, to: Nanos) {
        let (from, span) = (micros(from), micros(to - from));
        self.event(
            json!({"ph": "X", "name": name, "pid": group, "tid": track, "ts": from, "dur": span}),
        );
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
                self.slice(CORE, KERNEL, &cause_of(cause, &self.names), from, to);
            }
        }
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

    /// Something was said.
    pub fn said(&mut self, now: Nanos, line: &Line) {
        let (text, at) = (words::sentence(line, &self.names), micros(now));
        let (kind, name) = ("i", text.trim());
        self.event(
            json!({"ph": kind, "s": "p", "name": name, "pid": CORE, "tid": KERNEL, "ts": at}),
        );
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(mut self, cast: &Cast) -> Result<(), Failure> {
        self.close_open(cast);
        for index in 0..cast.0.len() {
            let name = cast.name(ThreadId::new(index as u16), &self.names);
            self.track(THREADS, index, &name);
        }
        // The list's last element; every other line ends with a comma.
        self.put("{\"ph\":\"M\",\"name\":\"end\",\"pid\":1}\n]}\n");
        let done = self.failed.take().map_or_else(|| self.out.flush(), Err);
        done.map_err(|error| Failure::io(format!("write {}", self.path.display()), &error))
    }
}

/// Microseconds, exact to the nanosecond for a hundred days.
fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1_000.0
}
