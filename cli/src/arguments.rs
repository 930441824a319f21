//! The words of the command: what can be asked for, and who answers.

use crate::commands::{self, RunRequest};
use crate::compile::{self, BuildRequest, CheckRequest};
use crate::create::{self, NewRequest};
use crate::difference::{self, DiffRequest};
use crate::explain::{self, ExplainRequest};
use crate::failure::Failure;
use crate::init::{self, InitRequest};
use crate::measure::{self, MeasureRequest};
use crate::messages::{self, MessagesRequest};
use crate::network::{self, NetworkRequest};
use crate::output::Manner;
use crate::plan::{self, PlanRequest};
use crate::profile::{self, ProfileRequest};
use crate::report::{self, ReportRequest};
use crate::results::{self, ResultsRequest};
use crate::signals::{self, SignalsRequest};
use crate::simulate::{self, SimRequest};
use crate::stick::{self, ImageRequest};
use crate::{beside, hints};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// A real-time operating system described once: this boots it and reports what it did.
#[derive(Parser)]
#[command(name = "diapason", version, after_help = EXIT_CODES)]
pub struct CommandLine {
    #[command(flatten)]
    pub manner: Manner,
    #[command(subcommand)]
    pub command: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 everything holds; 1 a deadline or another promise was \
    broken; 2 bad input; 3 Diapason's own fault; 4 the machine lacks something; 5 nothing \
    was broken, but nothing is proved; 129, 130, 143 a signal ended it.";

/// The commands, each with its request.
#[derive(Subcommand)]
pub enum Verb {
    /// Make a folder with a system and its program, to begin with.
    New(NewRequest),
    /// Propose a description of what a CAN log and a DBC file show; its plan holds.
    Init(InitRequest),
    /// Find the mistakes in a description and its programs without building what boots.
    Check(CheckRequest),
    /// Compile the programs of a described system, and say how large they are.
    Build(BuildRequest),
    /// Prove a described system without running it: VCPUs, queues, response times, margin.
    Plan(PlanRequest),
    /// Print what a description became: a description again, with the place of each value.
    Explain(ExplainRequest),
    /// Boot a described system on the real kernel in QEMU.
    Run(RunRequest),
    /// Make a file that boots a described system on a PC, from a stick or a disc.
    Image(ImageRequest),
    /// Print the console that a system kept on the stick that it booted from.
    Results(ResultsRequest),
    /// Make a profile of a computer, for `plan --machine`, of what it measured.
    Profile(ProfileRequest),
    /// Simulate a described system: the same kernel core and programs, at virtual time.
    Sim(SimRequest),
    /// Count what the works of programs take, in QEMU, and propose their times and budgets.
    Measure(MeasureRequest),
    /// Write one page about a described system: what is promised, and what a simulated run showed.
    Report(ReportRequest),
    /// Compare two results of a system: bounds, costs, delays and verdicts.
    Diff(DiffRequest),
    /// Reproduce tables and figures of the papers: theirs beside ours. `reproduce --help` has more.
    #[command(disable_help_flag = true)]
    Reproduce {
        /// Handed on to the program that reproduces, `diapason-reproduce`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<OsString>,
    },
    /// Write a list of hosts for a shape: who is joined to whom, with as few bridges as possible.
    Network(NetworkRequest),
    /// Turn the raw console of a system (standard input) into sentences.
    Decode,
    /// Show the signals in a CAN log (of candump, ASC or BLF) that a DBC file describes.
    Signals(SignalsRequest),
    /// Make a description of the bus that a DBC file has, or write identifiers back into it.
    Messages(MessagesRequest),
    /// List what the attribute `#[hints]` inserts into tasks: which mutex follows which wait.
    Hints {
        /// Source files, or folders of them.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
}

/// Returns the command as pages of a manual and completions describe it.
#[must_use]
pub fn described() -> clap::Command {
    CommandLine::command()
}

/// Carries out a command and returns its exit code.
///
/// # Errors
/// If it stopped before it had a verdict.
pub fn execute(command: Verb) -> Result<u8, Failure> {
    match command {
        Verb::New(request) => create::new(&request),
        Verb::Init(request) => init::init(&request),
        Verb::Check(request) => compile::check(&request),
        Verb::Build(request) => compile::compile(&request),
        Verb::Plan(request) => plan::plan(&request),
        Verb::Explain(request) => explain::explain(&request),
        Verb::Run(request) => commands::run(&request),
        Verb::Image(request) => stick::image(&request),
        Verb::Results(request) => results::results(&request),
        Verb::Profile(request) => profile::profile(&request),
        Verb::Sim(request) => simulate::simulate(&request),
        Verb::Measure(request) => measure::measure(&request),
        Verb::Report(request) => report::report(&request),
        Verb::Diff(request) => difference::diff(&request),
        Verb::Hints { paths } => hints::hints(&paths),
        Verb::Reproduce { arguments } => beside::reproduce(&arguments),
        Verb::Network(request) => network::network(&request),
        Verb::Signals(request) => signals::signals(&request),
        Verb::Messages(request) => messages::messages(&request),
        Verb::Decode => commands::decode(std::io::stdin().lock(), std::io::stdout().lock()),
    }
}
