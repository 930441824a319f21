//! The result of a run, collected from the kernel's records.

mod alarm;
mod alarms;
mod can;
mod chains;
mod closeness;
mod confined;
mod coverage;
mod heard;
mod jobs;
mod json;
pub mod junit;
mod kernel;
mod opened;
mod pipes;
mod render;
mod sockets;
mod states;
mod times;
mod unmeasured;
mod usb;
mod vcpus;
mod verdict;

pub use alarm::RaisedAlarm;
pub use alarms::Assumptions;
pub use can::{CanMessagePromise, CanRow};
pub(crate) use chains::Station;
pub use chains::{ChainPromise, ChainRow};
pub use closeness::Closeness;
pub use confined::StrayRow;
pub use heard::{HeardPromise, HeardRow};
pub use jobs::JobPromise;
pub(crate) use json::FORMAT;
pub use kernel::KernelRow;
pub use opened::OpenedRow;
pub use pipes::{PipePromise, PipeRow};
pub use sockets::{AdapterPromise, FrameRow, SocketBound, SocketPromise};
pub use states::{StatePromise, StateRow};
pub use times::{TimeRow, apart};
pub use usb::{CameraRow, LinkRow, ModePromise, ModeRows, NetworkRow, PlugRow, UsbPromises};
pub use vcpus::{DeviceRow, VcpuRow, VcpuTerms};
pub use verdict::{Finding, RunVerdict, judge};

use crate::console::Line;
use crate::words;
use diapason_abi::record::Record;
use diapason_pipe::measured::{Measurement, Reported};
use diapason_sim::Stray;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// One thread slot of a process, over the whole run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadRow {
    /// The thread's process's place in the description.
    pub process: u64,
    /// The thread's slot in the process.
    pub slot: u64,
    pub name: u64,
    /// CPU time it used.
    pub cpu_ns: u64,
    /// Jobs it finished, if it is periodic.
    pub jobs: u64,
    /// Jobs that ended after their deadline.
    pub misses: u64,
    /// Longest time from a release to the end of its job.
    pub response_max_ns: u64,
    /// Releases passed over because the job before had not ended.
    pub skipped: u64,
    /// The VCPU on which the thread's jobs ran, and what they used.
    pub cost: Option<JobCost>,
}

/// The largest cost of a thread's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobCost {
    /// The place of its VCPU.
    pub vcpu: u64,
    /// Most budget of VCPUs that one job used.
    pub most_ns: u64,
}

/// A job that was under way when the run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenJob {
    /// The place of its process in the description, the slot of its thread, and its name.
    pub process: u64,
    pub slot: u64,
    pub name: u64,
    /// The place of its VCPU.
    pub vcpu: u64,
    /// The time since its release.
    pub age_ns: u64,
}

/// One process, over the whole run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessRow {
    /// The process's place in the description.
    pub process: u64,
    /// Times it was started.
    pub starts: u64,
    /// Times a fault ended it.
    pub faults: u64,
    /// Heap pages it had at the end.
    pub heap_pages: u64,
    /// The process's state: a number of the kernel's `ProcessState`.
    pub state: u64,
}

impl ProcessRow {
    /// Starts after the first.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.starts.saturating_sub(1)
    }
}

/// A process ended by a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultEvent {
    pub time_ns: u64,
    pub process: u64,
    pub thread: u64,
    /// A number of `FaultCause`.
    pub cause: u64,
    /// The address or argument concerned.
    pub address: u64,
    pub instruction: u64,
}

/// The kernel's own totals. The report of a run has its times elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct RunEnd {
    /// When the run ended.
    #[serde(skip)]
    pub time_ns: u64,
    /// Time in which no thread ran.
    #[serde(skip)]
    pub idle_ns: u64,
    /// Time that VCPUs paid which ended, and whose places others took.
    #[serde(skip)]
    pub retired_ns: u64,
    /// Time that VCPUs paid because others were spared it.
    #[serde(skip)]
    pub levied_ns: u64,
    /// Entries into the kernel.
    pub entries: u64,
    pub cr3: u64,
    /// Writes of model-specific registers.
    pub msr: u64,
    /// Memory-mapped device accesses by the kernel.
    pub mmio: u64,
}

/// The longest kernel path of a watched run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LongestPath {
    pub instructions: u64,
    /// A call's number, or 256 + vector. Programs read it in words.
    #[serde(rename = "where", serialize_with = "in_words")]
    pub cause: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn in_words<S: Serializer>(cause: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words::path_cause(*cause))
}

/// Everything a run's records said.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// In the order the kernel lists them.
    pub threads: Vec<ThreadRow>,
    /// In the order the kernel lists them.
    pub processes: Vec<ProcessRow>,
    /// In the order the kernel lists them.
    pub vcpus: Vec<VcpuRow>,
    pub devices: Vec<DeviceRow>,
    /// The reports of readers, in the order in which they came first.
    pub pipes: Vec<PipeRow>,
    /// The reports of the last threads of chains.
    pub chains: Vec<ChainRow>,
    /// The reports of programs about pipes that they opened.
    pub opened: Vec<OpenedRow>,
    /// The reports of USB servers on links, devices and cameras.
    pub links: Vec<LinkRow>,
    /// Their steps on the way into a network of hosts, in order.
    pub network: Vec<NetworkRow>,
    pub plugs: Vec<PlugRow>,
    pub cameras: Vec<CameraRow>,
    pub modes: ModeRows,
    /// The reports of Ethernet servers and of programs with sockets.
    pub frames: Vec<FrameRow>,
    /// The reports of drivers of CAN controllers on messages.
    pub cans: Vec<CanRow>,
    /// The reports of drivers and readers on messages of other nodes.
    pub heard: Vec<HeardRow>,
    /// The reports of Ethernet servers on the common time.
    pub times: Vec<TimeRow>,
    /// The reports of readers of state messages that were overtaken.
    pub states: Vec<StateRow>,
    /// As the simulator saw messages, by pipe of the description; empty if nobody looked.
    pub truth: Vec<Option<Truth>>,
    /// Jobs that had not ended, as the simulator saw them.
    pub open_jobs: Vec<OpenJob>,
    /// The keys of the works that threads did; `None` if no simulator looked.
    pub worked: Option<BTreeSet<u64>>,
    /// Processes that ended, by themselves or by a fault: when, and which.
    pub ended: Vec<(u64, u64)>,
    pub faults: Vec<FaultEvent>,
    /// The totals, if the run reached its end.
    pub end: Option<RunEnd>,
    /// Only of a watched run.
    pub longest_path: Option<LongestPath>,
    /// Only of a watched run: what the kernel took, by cause.
    pub kernel: Vec<KernelRow>,
    /// Only of a watched run: of each call, by number, the longest path after which its caller went
    /// on, and the longest after which somebody else did.
    pub calls: Vec<[u64; 3]>,
    /// Entries of the flight recorder, if it ran.
    pub recorded: Option<u64>,
    /// Devices that the machine lacks, one bit each, their messages apart.
    pub lacking: u64,
    /// How far the machine confines the PCI devices of the description: a number of `Confinement`.
    pub confined: Option<u64>,
    /// Accesses of devices that an IOMMU stopped.
    pub stopped: Vec<StrayRow>,
    /// Programs refused at boot: process, reason.
    pub refused: Vec<(u64, u64)>,
    /// Things the kernel says it lost, in words.
    pub losses: Vec<String>,
    /// Each process that wrote more than its share of the console has room for, with its number of
    /// missing lines.
    pub lines_lost: Vec<(u64, u64)>,
    /// The last words of a dying kernel.
    pub panic: Option<String>,
    /// Faults that were asked for, as they happened: when, and which.
    pub injected: Vec<(u64, String)>,
    /// Memory that a device must not use, and did: when, and what.
    pub strays: Vec<(u64, Stray)>,
    /// The earlier lives, if the host lost its power: one outcome for each.
    pub earlier: Vec<Outcome>,
}

impl Outcome {
    /// Takes in one console line; lines that carry no result are ignored.
    pub fn note(&mut self, line: &Line) {
        match line {
            Line::Record(record, words) if words.len() == record.fields().len() => {
                self.note_record(*record, words);
            }
            Line::Record(..) | Line::Log { .. } | Line::Raw(_) => {}
        }
    }

    /// The words are as many as the record has fields.
    fn note_record(&mut self, record: Record, w: &[u64]) {
        match record {
            Record::Thread => self.threads.push(thread_row(w)),
            Record::Process => self.processes.push(process_row(w)),
            Record::Job => {
                let of = |row: &&mut ThreadRow| (row.process, row.slot) == (w[0], w[1]);
                if let Some(row) = self.threads.iter_mut().find(of) {
                    row.cost = Some(JobCost { vcpu: w[2], most_ns: w[3] });
                }
            }
            Record::KernelTime => self.kernel.extend(KernelRow::new(w)),
            Record::CallPath => self.calls.push([w[0], w[1], w[2]]),
            Record::Vcpu => self.vcpus.push(VcpuRow::new(w)),
            Record::VcpuTerms => {
                if let Some(row) = self.vcpus.iter_mut().find(|row| row.vcpu == w[0]) {
                    row.terms = Some(VcpuTerms::new(w));
                }
            }
            Record::Irq => self.devices.push(DeviceRow::new(w)),
            Record::Measured => self.note_measured(w[0], Reported::of(&w[1..])),
            Record::Ended => self.ended.push((w[0], w[1])),
            Record::Fault => {
                self.ended.push((w[0], w[1]));
                self.faults.push(fault_event(w));
            }
            Record::End => {
                self.end = Some(RunEnd {
                    time_ns: w[0],
                    idle_ns: w[1],
                    retired_ns: w[6],
                    levied_ns: w[7],
                    entries: w[2],
                    cr3: w[3],
                    msr: w[4],
                    mmio: w[5],
                });
            }
            Record::LongestPath => {
                self.longest_path = Some(LongestPath { instructions: w[0], cause: w[1] });
            }
            Record::Refused => self.refused.push((w[0], w[1])),
            Record::Absent if w[0] < 64 => self.lacking |= 1 << w[0],
            Record::Confined => self.confined = Some(w[0]),
            Record::Stray => self.stopped.push(StrayRow::new(w)),
            Record::ArchiveRefused => self.panic = Some(words::refusal(w[0])),
            Record::Panic => self.panic = Some(words::panic_text(w[0], w[1])),
            Record::KernelFault => {
                self.panic = Some(format!("exception {} at {:#x} in the kernel", w[0], w[3]));
            }
            Record::CoreStopped => self.panic = Some(words::stopped_core(w[0])),
            Record::Recorded => self.note_recorded(w[0], w[1]),
            Record::ConsoleLost if w[0] > 0 => {
                self.losses.push(format!("{} records of its own", w[0]));
            }
            Record::LinesLost => self.lines_lost.push((w[0], w[1])),
            Record::ReportLost => self.losses.push(format!("a fault report of process {}", w[0])),
            _ => {}
        }
    }

    /// A process reported what it measured; words that are no report are ignored.
    fn note_measured(&mut self, process: u64, report: Option<Reported>) {
        let Some(Reported { at, said }) = report else { return };
        match said {
            Measurement::Pipe(report) => pipes::note(&mut self.pipes, process, at, &report),
            Measurement::Delays(delays) => pipes::note_delays(&mut self.pipes, process, &delays),
            Measurement::Chain(report) => chains::note(&mut self.chains, process, at, &report),
            Measurement::Tuned(report) => opened::note_read(&mut self.opened, process, at, &report),
            Measurement::Written(report) => {
                opened::note_written(&mut self.opened, process, at, &report)
            }
            Measurement::Device(report) => usb::note_device(&mut self.plugs, process, &report),
            Measurement::Link(report) => usb::note_link(&mut self.links, process, at.0, &report),
            Measurement::Network(report) => {
                self.network.push(NetworkRow::new(process, at.0, report));
            }
            Measurement::Camera(report) => {
                usb::note_camera(&mut self.cameras, process, at, &report, &self.modes);
            }
            Measurement::Mode(report) => {
                self.modes.note(process, at.0, &report, &mut self.cameras);
            }
            Measurement::Frames(report) => sockets::note(&mut self.frames, process, at, &report),
            Measurement::Discards(report) => {
                sockets::note_discards(&mut self.frames, process, &report);
            }
            Measurement::State(report) => states::note(&mut self.states, process, &report),
            Measurement::Can(report) => can::note(&mut self.cans, process, at, &report),
            Measurement::Heard(report) => heard::note(&mut self.heard, process, at, &report),
            Measurement::Time(report) => self.times.push(TimeRow { process, at, report }),
            // `bench` and `profile` read those.
            Measurement::Cost(_) | Measurement::Machine(_) => {}
        }
    }

    /// Returns when a process was there for the last time: the end of the run, unless it ended
    /// before.
    #[must_use]
    pub fn last_of(&self, process: u64) -> Option<u64> {
        let end = self.end?.time_ns;
        let row = self.processes.iter().find(|row| row.process == process);
        let is_over = row.is_some_and(|row| row.state != RUNNING);
        let ended = self.ended.iter().rev().find(|(_, ended)| *ended == process && is_over);
        Some(ended.map_or(end, |(time, _)| *time))
    }

    /// The host boots once more: what was noted up to now is a life of its own.
    pub fn boot_again(&mut self) {
        let mut life = std::mem::take(self);
        self.earlier = std::mem::take(&mut life.earlier);
        self.earlier.push(life);
    }

    /// Returns every life of the host, in order.
    pub fn lives(&self) -> impl Iterator<Item = &Outcome> {
        self.earlier.iter().chain([self])
    }

    /// Does something to every life of the host.
    pub fn each_life(&mut self, mut act: impl FnMut(&mut Outcome)) {
        self.earlier.iter_mut().for_each(&mut act);
        act(self);
    }

    fn note_recorded(&mut self, entries: u64, lost: u64) {
        self.recorded = Some(entries);
        if lost > 0 {
            self.losses.push(format!("{lost} entries of the flight recorder"));
        }
    }

    /// Deadlines missed, by all threads together.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.misses))
    }
}

fn thread_row(w: &[u64]) -> ThreadRow {
    ThreadRow {
        process: w[0],
        slot: w[1],
        name: w[2],
        cpu_ns: w[3],
        jobs: w[4],
        misses: w[5],
        response_max_ns: w[6],
        skipped: w[7],
        cost: None,
    }
}

fn process_row(w: &[u64]) -> ProcessRow {
    ProcessRow { process: w[0], starts: w[1], faults: w[2], heap_pages: w[3], state: w[4] }
}

fn fault_event(w: &[u64]) -> FaultEvent {
    FaultEvent {
        time_ns: w[0],
        process: w[1],
        thread: w[2],
        cause: w[3],
        address: w[4],
        instruction: w[5],
    }
}

/// The lives of a pipe's messages, from an observer that knows when each really began and ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Truth {
    /// Messages that were followed to their end.
    pub messages: u64,
    /// The longest that one took, from its device or its writer.
    pub longest_ns: u64,
    /// The longest that one was in the pipe without being read, as of the end.
    pub waiting_ns: u64,
    /// Messages that were lost, also those after the last report of the reader or writer.
    pub lost: u64,
}

/// Returns the row that `is` the one, which is `new` if there is none yet.
fn entry<R>(rows: &mut Vec<R>, is: impl Fn(&R) -> bool, new: impl FnOnce() -> R) -> &mut R {
    let index = rows.iter().position(is).unwrap_or_else(|| {
        rows.push(new());
        rows.len() - 1
    });
    &mut rows[index]
}

/// A process that is there: a number of the kernel's `ProcessState`.
const RUNNING: u64 = 2;

/// Returns a process's state in a word.
#[must_use]
pub const fn state_word(state: u64) -> &'static str {
    match state {
        0 => "refused",
        1 => "ended",
        2 => "running",
        3 => "faulted",
        4 => "ending",
        _ => "unknown",
    }
}

#[cfg(test)]
pub(crate) mod sample {
    //! A small run, as the kernel would print it.

    use super::*;
    use crate::names::Names;
    use crate::plan::Plan;
    use diapason_system::System;

    /// Returns the description of the run.
    pub fn system() -> System {
        let text = include_str!("sample.toml");
        diapason_system::parse("sample.toml", text).expect("the sample makes sense")
    }

    /// Returns the names of its parts.
    pub fn names() -> Names {
        Names::of(&system())
    }

    /// Returns what its plan assumes.
    pub fn assumptions() -> Assumptions {
        let system = system();
        Assumptions::of(&Plan::of(&system))
    }

    pub const CONSOLE: &str = "\
~9 64 0 1
~9 c8 1 1
~a 5f5e100 1 0 2 dead0000 200001234
~9 5f5e200 1 2
~e 0 0 6e69616d 3b9aca00 0 0 0 0
~e 0 1 6c727463 5f5e100 2710 1 1e8480 2
~1b 0 1 0 dbba0
~e 1 0 0 3e8 0 0 0 0
~16 0 5f5e100 0 2 64 f4240 0 1
~17 0 ffffffffffffffff f4240 989680 0 989680 0 0
~16 1 3e8 0 0 0 7d0 0 3
~17 1 ffffffffffffffff 3d090 989680 61a8 989680 1e8480 0
~16 2 186a0 3e8 5 0 0 0 2
~17 2 1 7a120 1312d00 0 1312d00 0 1
~18 0 14 f4628
~f 0 1 0 10 2
~f 1 2 1 0 3
~10 2540be400 2127b3518 f4240 1f4 3e8 7d0 0 0
";

    /// Returns the outcome of the run.
    pub fn outcome() -> Outcome {
        let mut outcome = Outcome::default();
        CONSOLE.lines().for_each(|line| outcome.note(&Line::parse(line.as_bytes())));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_rows() {
        let outcome = sample::outcome();
        assert_eq!(outcome.threads.len(), 3);
        assert_eq!(outcome.processes[1].restarts(), 1);
        assert_eq!(outcome.misses(), 1);
        assert_eq!(outcome.faults[0].address, 0xdead_0000);
        assert_eq!(outcome.end.unwrap().time_ns, 10_000_000_000);
        assert_eq!(outcome.vcpus.len(), 3);
        let terms = |row: usize| outcome.vcpus[row].terms.clone().unwrap();
        assert_eq!((terms(0).maker, terms(0).share_ppm), (None, None));
        assert_eq!((terms(1).share_ppm, terms(1).lockout_max_ns), (Some(25_000), 2_000_000));
        assert_eq!((terms(2).maker, terms(2).changes), (Some(1), 1));
        let cost = Some(JobCost { vcpu: 0, most_ns: 900_000 });
        assert_eq!((outcome.threads[1].cost, outcome.threads[0].cost), (cost, None));
        assert_eq!(outcome.devices[0].distance_min_ns, Some(1_001_000));
    }

    #[test]
    fn terms_of_a_vcpu_whose_own_line_is_damaged_are_dropped() {
        let mut outcome = Outcome::default();
        outcome.note(&Line::parse(b"~17 5 1 1 1 1 1 1 1"));
        outcome.note(&Line::parse(b"~16 5 1 0 0 0 0 0 0"));
        assert_eq!((outcome.vcpus.len(), outcome.vcpus[0].kind()), (1, "unknown".into()));
    }

    #[test]
    fn losses_and_panics_are_kept() {
        let mut outcome = Outcome::default();
        for line in ["~12 0", "~14 64 0", "~c ab 7"] {
            outcome.note(&Line::parse(line.as_bytes()));
        }
        assert!(outcome.losses.is_empty() && outcome.recorded == Some(100));
        assert!(outcome.panic.as_ref().unwrap().contains("line 7"));
        for line in ["~12 9", "~14 64 2", "~15 1", "~23 2 1f"] {
            outcome.note(&Line::parse(line.as_bytes()));
        }
        assert_eq!(outcome.losses.len(), 3);
        assert_eq!(outcome.lines_lost, [(2, 31)]);
    }
}
