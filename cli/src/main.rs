//! The `diapason` command. The work is done in the library. This file has its words.

use clap::{Parser, Subcommand};
use diapason::Failure;
use diapason::beside;
use diapason::capture::Request;
use diapason::commands::{self, RunRequest};
use diapason::duration;
use diapason::hints;
use diapason::plan::{self, PlanRequest, Unproved};
use diapason::report::{self, ReportRequest};
use diapason::signals::{self, SignalsRequest};
use diapason::simulate::{self, Seeds, SimRequest};
use diapason::tools::Missing;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A real-time operating system described once: this boots it and reports what it did.
#[derive(Parser)]
#[command(name = "diapason", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 everything holds; 1 a deadline or another promise was \
    broken; 2 bad input; 3 Diapason's own fault; 4 the machine lacks something; 5 nothing \
    was broken, but nothing is proved.";

#[derive(Subcommand)]
enum Command {
    /// Prove a described system without running it: VCPUs, queues, response times, margin.
    Plan {
        system: PathBuf,
        /// Instructions a second, such as 25MHz or 2.4GHz [default: the description's `clock`].
        #[arg(long, value_name = "RATE", value_parser = plan::clock)]
        clock: Option<u64>,
        /// Print the plan as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Boot a described system on the real kernel in QEMU.
    Run {
        system: PathBuf,
        #[command(flatten)]
        length: Length,
        /// Print the outcome as JSON; what the system says goes to standard error.
        #[arg(long)]
        json: bool,
        /// Keep the flight record: every entry into the kernel core.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        /// Time every kernel path and report the longest.
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        captures: CaptureArguments,
    },
    /// Simulate a described system: the same kernel core and programs, at virtual time.
    Sim {
        system: PathBuf,
        #[command(flatten)]
        length: Length,
        #[command(flatten)]
        chance: Chance,
        /// Break things, as the seed says: interrupts, packets, plugs, processes, the power.
        #[arg(long)]
        faults: bool,
        /// Break this, such as "2s unplug interface 100ms"; may be given several times.
        #[arg(long, value_name = "FAULT")]
        fault: Vec<String>,
        /// Run so many seeds on all cores, up to the first that breaks a promise.
        #[arg(long, value_name = "N", conflicts_with_all = [
            "trace", "explain", "stages", "json", "histogram", "svg", "pcap", "candump",
        ])]
        search: Option<u64>,
        /// In so many processes [default: one for each core].
        #[arg(long, value_name = "N", requires = "search")]
        jobs: Option<u64>,
        /// Print the hash of each seed's trace, too.
        #[arg(long, requires = "search")]
        traces: bool,
        /// Run these seeds: what each process of a search does.
        #[arg(long, hide = true, value_parser = Seeds::parse)]
        seeds: Option<Seeds>,
        /// Instructions a second, such as 1.1GHz [default: the description's `clock`].
        #[arg(long, value_name = "RATE", value_parser = plan::clock)]
        clock: Option<u64>,
        /// Print the outcome as JSON; what the system says goes to standard error.
        #[arg(long)]
        json: bool,
        /// Write a trace that opens in Perfetto.
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
        /// Keep processes from each other's memory as the metal does, and check every invariant of
        /// the kernel: slow.
        #[arg(long)]
        strict: bool,
        /// Show where the time of a job or a message went: `worst`, PROCESS.SLOT:JOB, PIPE:worst,
        /// or PIPE:NUMBER.
        #[arg(long, value_name = "WHICH")]
        explain: Option<String>,
        /// Show how long messages were at most on each part of their way, beside the plan.
        #[arg(long)]
        stages: bool,
        /// Show how long jobs took from release to end: a histogram for each thread.
        #[arg(long)]
        histogram: bool,
        /// Write the histograms and their distribution functions (SVG) into this folder.
        #[arg(long, value_name = "DIR")]
        svg: Option<PathBuf>,
        #[command(flatten)]
        captures: CaptureArguments,
    },
    /// Write one page about a described system: what is promised, and what a simulated run showed.
    Report {
        system: PathBuf,
        #[command(flatten)]
        length: Length,
        #[command(flatten)]
        chance: Chance,
        #[arg(short, long, value_name = "FILE", default_value = "report.html")]
        out: PathBuf,
    },
    /// Reproduce tables and figures of the papers: theirs beside ours. `reproduce --help` has more.
    #[command(disable_help_flag = true)]
    Reproduce {
        /// Handed on to the program that reproduces, `diapason-reproduce`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Turn the raw console of a system (standard input) into sentences.
    Decode,
    /// Show the signals in a CAN log (as candump writes it) that a DBC file describes.
    Signals {
        /// The log, such as `--candump` writes.
        log: PathBuf,
        #[arg(long, value_name = "FILE")]
        dbc: PathBuf,
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// List what the attribute `#[hints]` inserts into tasks: which mutex follows which wait.
    Hints {
        /// Source files, or folders of them.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
}

/// How long something runs.
#[derive(clap::Args)]
struct Length {
    /// How long the system runs, in its own time.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    horizon: u64,
    /// Boot it even if its plan does not hold; every report then says that it is unproved.
    #[arg(long)]
    unproved: bool,
}

impl Length {
    fn unproved(&self) -> Option<Unproved> {
        self.unproved.then_some(Unproved)
    }
}

/// Whether a simulation draws lots.
#[derive(clap::Args)]
struct Chance {
    /// Draw what may vary (times between best and worst); without it everything takes longest.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Captures that `run` and `sim` make.
#[derive(clap::Args)]
struct CaptureArguments {
    /// Capture USB transfers and CAN frames for Wireshark, into this folder.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Write CAN frames as candump does, a file for each bus, into this folder.
    #[arg(long, value_name = "DIR")]
    candump: Option<PathBuf>,
}

impl CaptureArguments {
    fn request(self) -> Request {
        Request { pcap: self.pcap, candump: self.candump }
    }
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Carries out a command and returns its exit code.
fn execute(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Plan { system, clock, json } => {
            plan::plan(&PlanRequest { system, clock_hz: clock, json })
        }
        Command::Run { system, length, json, record, watch, captures } => {
            commands::run(&RunRequest {
                system,
                horizon_ns: length.horizon,
                json,
                record,
                watch,
                captures: captures.request(),
                missing: Missing::Say,
                unproved: length.unproved(),
            })
        }
        Command::Report { system, length, chance: Chance { seed }, out } => {
            let (horizon_ns, unproved) = (length.horizon, length.unproved());
            report::report(&ReportRequest { system, horizon_ns, seed, out, unproved })
        }
        Command::Hints { paths } => hints::hints(&paths),
        Command::Reproduce { arguments } => beside::reproduce(&arguments),
        Command::Signals { log, dbc, json } => signals::signals(&SignalsRequest { log, dbc, json }),
        Command::Decode => commands::decode(std::io::stdin().lock(), std::io::stdout().lock()),
        Command::Sim { .. } => sim(command),
    }
}

/// `sim`, which has the most to be told.
fn sim(command: Command) -> Result<u8, Failure> {
    let Command::Sim {
        system,
        length,
        chance,
        faults,
        fault,
        search,
        jobs,
        traces,
        seeds,
        clock,
        json,
        trace,
        strict,
        explain,
        stages,
        histogram,
        svg,
        captures,
    } = command
    else {
        return execute(command);
    };
    simulate::simulate(&SimRequest {
        system,
        horizon_ns: length.horizon,
        clock_hz: clock,
        seed: chance.seed,
        faults,
        fault,
        search,
        jobs,
        traces,
        seeds,
        json,
        trace,
        strict,
        explain,
        stages,
        captures: captures.request(),
        histogram,
        svg,
        unproved: length.unproved(),
    })
}
