//! The commands of a developer: `cargo xtask run`, `test`, `bench`, `gdb`, `tidy`.
//!
//! The functions that a user of Diapason needs too are in the library of the `diapason` command and
//! only called from here. Rule of this room: no test is skipped in silence, and nothing is
//! installed without a word.

#![forbid(unsafe_code)]

mod areas;
mod attack;
mod beside;
mod campaign;
mod captures;
mod checks;
mod chroot;
mod compare;
mod costs;
mod endure;
mod fuzz;
mod gdb;
#[cfg(test)]
mod headers;
mod kernels;
mod mutants;
mod own;
mod package;
mod qemu_tests;
mod reproductions;
mod simulator;
mod since;
mod speed;
mod steps;
mod storm;
mod systems;
mod tally;
mod tidy;
mod touched;
mod usb;

use clap::{Parser, Subcommand};
use diapason::capture::CaptureRequest;
use diapason::commands::{self, Length, RunRequest};
use diapason::failure::{BROKEN, HOLDS};
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace, bench, duration};
use std::path::PathBuf;
use std::process::ExitCode;

/// The main job: what `run` boots unless it is told otherwise.
const CONCENTRATOR: &str = "examples/can-concentrator.toml";
/// The first application, and what the debugger looks at.
const ENGINE: &str = "examples/engine.toml";

/// Build, run, test, measure and debug Diapason. Works from any folder of the checkout.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Boot a described system in QEMU (installed if missing) and report.
    Run {
        /// The system's description [default: examples/can-concentrator.toml].
        system: Option<PathBuf>,
        /// How long the system runs, in its own time.
        #[arg(long = "for", value_name = "TIME", default_value = "10s",
              value_parser = duration::parse)]
        horizon: u64,
        /// Print the outcome as JSON; what the system says goes to standard error.
        #[arg(long)]
        json: bool,
        /// Keep the flight record: every entry into the kernel core.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        /// Time every kernel path and report the longest.
        #[arg(long)]
        watch: bool,
    },
    /// Everything that must hold before a commit; ends with `N passed, N failed`.
    Test {
        /// Only the tests of the linked kernel and in QEMU whose name contains this.
        #[arg(long, value_name = "PART")]
        qemu: Option<String>,
        /// Only the steps that read the source: format, clippy and the house rules.
        #[arg(long, conflicts_with = "qemu")]
        source: bool,
        /// Only the steps of what boots whose name begins so.
        #[arg(long, value_name = "NAME", hide = true, conflicts_with = "qemu")]
        step: Option<String>,
        /// The list of what is built already.
        #[arg(long, value_name = "FILE", hide = true, requires = "step")]
        built: Option<PathBuf>,
    },
    /// Count the instructions of kernel operations and compare with the targets.
    Bench {
        /// Print the numbers as JSON.
        #[arg(long)]
        json: bool,
        /// Lower the limits of what operations touch to what they touch now.
        #[arg(long)]
        bless: bool,
    },
    /// The long storms of random system calls, in QEMU and on the core on the host.
    Storm {
        /// Calls from hostile processes in QEMU.
        #[arg(long, value_name = "N", default_value_t = 2_000_000)]
        calls: u64,
        /// Calls on the core on the host.
        #[arg(long, value_name = "N", default_value_t = 50_000_000)]
        host_calls: u64,
    },
    /// The long campaigns against the analysis, the server rules and the bus scheduler.
    Attack {
        /// Only those whose description or package contains this; `systems`: random whole systems;
        /// `cases`: what once broke a promise.
        #[arg(default_value = "")]
        part: String,
        #[command(flatten)]
        systems: systems::Asked,
    },
    /// The long campaigns against the USB server in the simulator: devices that come and go, and
    /// devices that lie and stumble.
    Usb {
        /// How often the devices of four ports come and go.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        cycles: u64,
        /// How many hostile devices are plugged in.
        #[arg(long, value_name = "N", default_value_t = 150_000)]
        hostile: u64,
        /// How often two chains of up to five hubs come and go, with devices at their ends.
        #[arg(long, value_name = "N", default_value_t = 100)]
        trees: u64,
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// A long campaign in shares, on all cores or on a cluster; one that was interrupted goes on.
    Campaign {
        #[command(flatten)]
        asked: campaign::Asked,
    },
    /// Random task sets in QEMU and in the simulator, held against each other job by job, or
    /// scripts of USB traffic line by line.
    Compare {
        #[command(flatten)]
        asked: compare::Asked,
    },
    /// One small system in QEMU until something has happened so often.
    Endure {
        trial: endure::Trial,
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        count: u64,
    },
    /// Show what differs from another commit: verdicts, bounds, costs, sizes, counts and traces.
    Since {
        #[command(flatten)]
        asked: since::Asked,
    },
    /// Show where the bytes of the linked kernel are.
    Areas,
    /// Count the kernels of a few kinds of systems, and run every example on its own kernel.
    Kernels,
    /// Count the longest kernel paths in QEMU, for the simulator's table of costs.
    Costs,
    /// How fast the simulator is, and what it does in a simulated second.
    Speed {
        /// How long each system runs, in its own time.
        #[arg(long = "for", value_name = "TIME", default_value = "31s",
              value_parser = duration::parse)]
        horizon: u64,
        /// How often; the fastest counts.
        #[arg(long, value_name = "N", default_value_t = 3)]
        runs: u64,
    },
    /// Plant bugs, one at a time, in a copy; a test, a search or a boot must find each.
    Mutants {
        #[command(flatten)]
        asked: mutants::Asked,
    },
    /// Write docs/checks.md: what is tried to break Diapason, how often, and what is missing.
    Checks,
    /// Attack a parser of bytes from outside with inputs that its branches guide.
    Fuzz {
        #[command(flatten)]
        asked: fuzz::Asked,
    },
    /// Stop a booted system under GDB, kernel and programs with their symbols.
    Gdb {
        /// The system's description [default: examples/engine.toml].
        system: Option<PathBuf>,
        /// Only check that GDB stops at the kernel's and at a program's entry.
        #[arg(long)]
        batch_check: bool,
    },
    /// Make a Debian package.
    Package {
        /// The folder to write it into [default: target/package of the checkout].
        folder: Option<PathBuf>,
        /// Use the package as a new user does, in a Debian made with debootstrap: needs root.
        #[arg(long)]
        chroot: bool,
        /// The mirror of Debian for `--chroot` [default: the one that debootstrap knows].
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// Check the house rules.
    Tidy {
        /// Lower the ratchets to what the tree needs now.
        #[arg(long)]
        bless: bool,
    },
}

fn main() -> ExitCode {
    let result = Workspace::find().and_then(|workspace| execute(&workspace, Arguments::parse()));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn execute(workspace: &Workspace, arguments: Arguments) -> Result<u8, Failure> {
    let or = |system: Option<PathBuf>, default| system.unwrap_or(workspace.root().join(default));
    match arguments.command {
        Command::Run { system, horizon, json, record, watch } => commands::run(&RunRequest {
            iommu: false,
            system: or(system, CONCENTRATOR),
            length: Length { horizon_ns: horizon, unproved: false },
            json,
            format: None,
            record,
            watch,
            captures: CaptureRequest::default(),
            missing: Missing::Install,
        }),
        Command::Test { step: Some(name), built, .. } => {
            steps::one(workspace, &name, built.as_deref())
        }
        Command::Test { qemu: Some(part), .. } => steps::qemu_only(workspace, &part),
        Command::Test { source: true, .. } => Ok(steps::source_only(workspace)),
        Command::Test { .. } => steps::everything(workspace),
        Command::Storm { calls, host_calls } => storm::command(workspace, calls, host_calls),
        Command::Attack { part, systems } if part == "systems" => {
            systems::command(workspace, &systems)
        }
        Command::Attack { part, .. } if part == "cases" => systems::cases::command(workspace),
        Command::Attack { part, .. } => Ok(attack::command(workspace, &part)),
        Command::Campaign { asked } => campaign::command(workspace, &asked),
        Command::Compare { asked } => compare::command(workspace, &asked),
        Command::Usb { cycles, hostile, trees, seed } => {
            usb::command(workspace, [cycles, hostile, trees], seed)
        }
        Command::Endure { trial, count } => endure::command(workspace, trial, count),
        Command::Since { asked } => since::command(workspace, &asked),
        Command::Areas => areas::command(workspace),
        Command::Costs => costs::command(workspace),
        Command::Kernels => kernels::command(workspace),
        Command::Speed { horizon, runs } => speed::command(workspace, horizon, runs),
        Command::Mutants { asked } => mutants::command(workspace, &asked),
        Command::Checks => checks::command(workspace),
        Command::Fuzz { asked } => fuzz::command(workspace, &asked),
        Command::Bench { json, bless } => measure(workspace, json, bless),
        Command::Gdb { system, batch_check } => {
            gdb::start(workspace, &or(system, ENGINE), batch_check)
        }
        Command::Package { folder, chroot, mirror } => {
            let folder = folder.unwrap_or_else(|| workspace.target().join("package"));
            let package = package::command(workspace, &folder)?;
            if chroot { chroot::check(&package, &folder, mirror.as_deref()) } else { Ok(HOLDS) }
        }
        Command::Tidy { bless } => tidy::command(workspace, bless),
    }
}

fn measure(workspace: &Workspace, json: bool, bless: bool) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let mut report = bench::measure(workspace)?;
    if bless {
        report.limits = report.measurements.lowered(&report.limits);
        report.limits.write(workspace)?;
    }
    let findings = report.findings();
    if json {
        println!("{:#}", report.to_json());
    } else {
        println!("{}", report.render());
        findings.iter().for_each(|finding| println!("broken: {finding}"));
    }
    Ok(if findings.is_empty() { HOLDS } else { BROKEN })
}
