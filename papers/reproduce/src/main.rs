//! `diapason-reproduce`: what `diapason reproduce` builds and runs.

#![forbid(unsafe_code)]

use clap::Parser;
use diapason_papers::{Effort, ReproduceRequest, reproduce};
use std::path::PathBuf;
use std::process::ExitCode;

/// Returns the help for the names.
fn which() -> String {
    let names: Vec<&str> = diapason_papers::names().collect();
    format!("The reproductions to make: {} [default: everything]", names.join(", "))
}

/// Reproduce tables and figures of the papers: theirs beside ours.
#[derive(Parser)]
#[command(name = "diapason reproduce", bin_name = "diapason reproduce", after_help = EXIT_CODES)]
struct Arguments {
    #[arg(value_name = "NAME", help = which())]
    names: Vec<String>,
    /// Fewer workloads: seconds instead of minutes.
    #[arg(long)]
    quick: bool,
    /// Sixty simulated minutes instead of ten in each scenario of usb-latency and
    /// usb-throughput: hours.
    #[arg(long, conflicts_with = "quick")]
    long: bool,
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
    /// Write the pictures (SVG) into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const EXIT_CODES: &str = "Exit codes: 0 every row holds; 1 a row does not; 2 bad input; \
    3 Diapason's own fault; 4 the machine lacks something.";

fn main() -> ExitCode {
    let Arguments { names, quick, long, json, out } = Arguments::parse();
    let effort = match (quick, long) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Long,
        _ => Effort::Full,
    };
    match reproduce(&ReproduceRequest { names, effort, json, out }) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
