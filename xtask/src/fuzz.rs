//! `cargo xtask fuzz TARGET`: builds the fuzzer with counters of branches, and starts it on a
//! target.
//!
//! Stable Rust's LLVM has the pass that puts the counters in, and `-Cpasses` asks for it. A target
//! triple keeps the flags away from build scripts and procedural macros.

use crate::tally;
use diapason::{Failure, Workspace};
use diapason_fuzz::targets::{FuzzTarget, TARGETS};
use std::path::PathBuf;
use std::process::Command;

/// The flags that put counters into everything, and say which values are compared.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "fuzz";

/// The target that is attacked, and how.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Asked {
    /// One of xtask/fuzz/src/targets.rs, such as `dbc`.
    target: String,
    /// How many inputs are made.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    runs: u64,
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write few inputs that together reach what all of them reach into tests/corpora.
    #[arg(long)]
    keep: bool,
    /// Run only this input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "seed", "keep"])]
    input: Option<PathBuf>,
}

/// Attacks a target. The exit code is that of the fuzzer.
///
/// # Errors
/// If there is no such target, or the fuzzer does not build.
pub fn command(workspace: &Workspace, asked: &Asked) -> Result<u8, Failure> {
    if FuzzTarget::find(&asked.target).is_none() {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        let (name, known) = (&asked.target, known.join(", "));
        return Err(Failure::Input(format!("error: no target `{name}`: there are {known}")));
    }
    let mut fuzzer = Command::new(build(workspace)?);
    fuzzer.arg(&asked.target).arg(workspace.root());
    match &asked.input {
        Some(file) => fuzzer.arg("input").arg(file),
        None => {
            let kind = if asked.keep { "keep" } else { "attack" };
            fuzzer.args([kind, &asked.runs.to_string(), &asked.seed.to_string()])
        }
    };
    let status = fuzzer.status().map_err(|error| Failure::io("start the fuzzer", &error))?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) => Ok(code),
        None => Err(Failure::Ours(format!("the fuzzer died: {status}"))),
    }
}

/// Builds the fuzzer, and returns where it is.
fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let arguments = ["build", "--quiet", "-p", "diapason-fuzz", "--profile", PROFILE];
    let mut cargo = tally::command(workspace, &arguments);
    cargo.args(["--target", TRIPLE]).env("RUSTFLAGS", FLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = cargo.status().map_err(|error| Failure::io("start cargo", &error))?;
    if !status.success() {
        return Err(Failure::Ours("the fuzzer does not build".into()));
    }
    Ok(workspace.target().join(TRIPLE).join(PROFILE).join("diapason-fuzz"))
}
