//! The `diapason` command. The work is done in the library. This file has its words.

use clap::{Parser, Subcommand};
use diapason::Failure;
use diapason::beside;
use diapason::commands::{self, RunRequest};
use diapason::compile::{self, BuildRequest};
use diapason::create::{self, NewRequest};
use diapason::hints;
use diapason::interrupt;
use diapason::messages::{self, MessagesRequest};
use diapason::output::{self, Manner};
use diapason::plan::{self, PlanRequest};
use diapason::report::{self, ReportRequest};
use diapason::signals::{self, SignalsRequest};
use diapason::simulate::{self, SimRequest};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A real-time operating system described once: this boots it and reports what it did.
#[derive(Parser)]
#[command(name = "diapason", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(flatten)]
    manner: Manner,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 everything holds; 1 a deadline or another promise was \
    broken; 2 bad input; 3 Diapason's own fault; 4 the machine lacks something; 5 nothing \
    was broken, but nothing is proved; 129, 130, 143 a signal ended it.";

#[derive(Subcommand)]
enum Command {
    /// Make a folder with a system and its program, to begin with.
    New(NewRequest),
    /// Compile the programs of a described system, and say how large they are.
    Build(BuildRequest),
    /// Prove a described system without running it: VCPUs, queues, response times, margin.
    Plan(PlanRequest),
    /// Boot a described system on the real kernel in QEMU.
    Run(RunRequest),
    /// Simulate a described system: the same kernel core and programs, at virtual time.
    Sim(SimRequest),
    /// Write one page about a described system: what is promised, and what a simulated run showed.
    Report(ReportRequest),
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

fn main() -> ExitCode {
    let Arguments { manner, command } = Arguments::parse();
    manner.adopt();
    let code = execute(command).and_then(|code| output::finish().map(|()| code));
    let code = code.unwrap_or_else(|failure| {
        output::tell(&failure.to_string());
        failure.exit_code()
    });
    ExitCode::from(interrupt::exit_code().unwrap_or(code))
}

/// Carries out a command and returns its exit code.
fn execute(command: Command) -> Result<u8, Failure> {
    match command {
        Command::New(request) => create::new(&request),
        Command::Build(request) => compile::compile(&request),
        Command::Plan(request) => plan::plan(&request),
        Command::Run(request) => commands::run(&request),
        Command::Sim(request) => simulate::simulate(&request),
        Command::Report(request) => report::report(&request),
        Command::Hints { paths } => hints::hints(&paths),
        Command::Reproduce { arguments } => beside::reproduce(&arguments),
        Command::Signals(request) => signals::signals(&request),
        Command::Messages(request) => messages::messages(&request),
        Command::Decode => commands::decode(std::io::stdin().lock(), std::io::stdout().lock()),
    }
}
