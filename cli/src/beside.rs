//! `diapason reproduce`: a command whose program is not linked into this one.
//!
//! The reproductions of papers are a package of their own, which depends on this library and not
//! the other way round. So the program is started, as cargo and git start theirs: in a checkout it
//! is built first, elsewhere `diapason-reproduce` must stand beside this program. Arguments,
//! output and exit code are handed through.

use crate::failure::Failure;
use crate::metal;
use crate::workspace::Workspace;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The program that reproduces papers.
const PROGRAM: &str = "diapason-reproduce";

/// Runs the program with these arguments; returns its exit code.
///
/// # Errors
/// If there is no such program, it does not compile, or it was ended by a signal.
pub fn reproduce(arguments: &[OsString]) -> Result<u8, Failure> {
    let program = program()?;
    let status = Command::new(&program)
        .args(arguments)
        .status()
        .map_err(|error| Failure::io(format!("start {}", program.display()), &error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.ok_or_else(|| Failure::Ours(format!("{PROGRAM} ended early: {status}")))
}

/// Returns the program: of this checkout, newly built, or beside this one.
fn program() -> Result<PathBuf, Failure> {
    if let Some(workspace) = Workspace::find().ok().filter(|found| !found.is_installed()) {
        return metal::host_program(&workspace, PROGRAM);
    }
    let own = env::current_exe().map_err(|error| Failure::io("find this program", &error))?;
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let beside = own.with_file_name(name);
    if beside.is_file() {
        return Ok(beside);
    }
    let remedy = "start the command inside a checkout, or install the program there";
    Err(Failure::World(format!("{} is not there\nhelp: {remedy}", beside.display())))
}
