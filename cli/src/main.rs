//! The `diapason` command. What it does is in the library; here are its words.

use clap::{Parser, Subcommand};
use diapason::commands::{self, RunRequest};
use diapason::duration;
use diapason::tools::Missing;
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
    broken; 2 bad input; 3 Diapason's own fault; 4 the machine lacks something.";

#[derive(Subcommand)]
enum Command {
    /// Boot a described system on the real kernel in QEMU.
    Run {
        /// The system's description.
        system: PathBuf,
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
    /// Turn the raw console of a system (standard input) into sentences.
    Decode,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run { system, horizon, json, record, watch } => commands::run(&RunRequest {
            system,
            horizon_ns: horizon,
            json,
            record,
            watch,
            missing: Missing::Say,
        }),
        Command::Decode => commands::decode(std::io::stdin().lock(), std::io::stdout().lock()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
