//! `cargo xtask storm`: the long storms. Two million random system calls from hostile processes in
//! QEMU, then fifty million on the core on the host, its invariants checked.

use crate::qemu_tests::observed::Observed;
use crate::qemu_tests::storm;
use crate::tally::Tally;
use diapason::describe::describe;
use diapason::session::Session;
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace, metal};
use diapason_system::RunOptions;
use std::process::Command;

/// Guest time the machine may need for a call, generously.
const NS_PER_CALL: u64 = 10_000;
/// The variable from which the test of the core reads its number of calls.
pub(crate) const HOST_CALLS: &str = "DIAPASON_STORM_CALLS";
/// The variable from which it reads its seed.
pub(crate) const HOST_SEED: &str = "DIAPASON_STORM_SEED";

/// Runs both storms and returns the exit code.
pub fn command(workspace: &Workspace, calls: u64, host_calls: u64) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let mut tally = Tally::default();
    tally.step(&format!("{calls} calls in QEMU"), || machine(workspace, calls));
    tally.step(&format!("{host_calls} calls on the host"), || host(workspace, host_calls));
    Ok(tally.finish())
}

fn machine(workspace: &Workspace, calls: u64) -> Result<(), String> {
    let text = |failure: Failure| failure.to_string();
    let mut system = describe(&workspace.root().join(storm::STORM)).map_err(text)?;
    let warden = system.processes.iter_mut().find(|process| process.name == "warden");
    warden.ok_or("the storm has no warden")?.arguments[0] = calls;
    let options = RunOptions {
        horizon_ns: calls.saturating_mul(NS_PER_CALL).max(100_000_000),
        record_bytes: 0,
        watch: true,
    };
    let built = metal::build(workspace).map_err(text)?;
    let session = Session::assemble(system, built, options).map_err(text)?;
    println!("{}", storm::weathered(&Observed::boot(workspace, &session)?, calls)?);
    Ok(())
}

fn host(workspace: &Workspace, calls: u64) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(workspace.root())
        .args(["test", "--quiet", "--release", "-p", "diapason-core", "--test", "all"])
        .args(["storm::", "--", "--nocapture"])
        .env(HOST_CALLS, calls.to_string())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("the core did not weather it".into()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}
