//! `cargo xtask endure`: one small system in QEMU, until something has happened so often. A mistake
//! that is seen once in a million times has its chance here.

use crate::qemu_tests::observed::Observed;
use diapason::console::Line;
use diapason::describe::describe;
use diapason::failure::{BROKEN, HOLDS};
use diapason::session::Session;
use diapason::tools::{Missing, QEMU};
use diapason::{Failure, Workspace, metal};
use diapason_abi::record::Record;
use diapason_costs::targets::PATH_INSTRUCTIONS_MAX;
use diapason_system::RunOptions;

/// The thing that happens over and over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Trial {
    /// A thread is woken ten thousand times a second, and nothing but a kernel path may delay it.
    Wakes,
    /// A process faults and is restarted, and each restart is as fast as the first ones.
    Faults,
}

/// The distance of two wake-ups in `wakes.toml`.
const WAKE_NS: u64 = 100_000;
/// The longest backoff in `faulting.toml`: the supervisor doubles it ten times.
const BACKOFF_NS: u64 = 1_000 << 10;
/// The time for a fault and the restart, its backoff included.
const FAULT_NS: u64 = BACKOFF_NS + 100_000;
/// The start of the programs' jobs.
const START_NS: u64 = 100_000_000;
/// The longest time from a fault to the restart: the backoff, one job of the neighbour, which is
/// the more urgent one, and the restart itself.
const RESTART_NS: u64 = BACKOFF_NS + 600_000;

/// Runs a trial until its thing has happened `count` times.
///
/// # Errors
/// If QEMU or the description is missing, or nothing can be built.
pub fn command(workspace: &Workspace, trial: Trial, count: u64) -> Result<u8, Failure> {
    QEMU.require(Missing::Install)?;
    let (file, each) = match trial {
        Trial::Wakes => ("tests/systems/wakes.toml", WAKE_NS),
        Trial::Faults => ("tests/systems/faulting.toml", FAULT_NS),
    };
    let system = describe(&workspace.root().join(file))?;
    let horizon_ns = START_NS.saturating_add(count.saturating_mul(each));
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: trial == Trial::Wakes };
    let session = Session::assemble(system, metal::build(workspace)?, options)?;
    let result = Observed::boot(workspace, &session).and_then(|boot| match trial {
        Trial::Wakes => wakes(&boot, count),
        Trial::Faults => faults(&boot, count),
    });
    match result {
        Ok(said) => {
            println!("{said}");
            Ok(HOLDS)
        }
        Err(wrong) => {
            println!("broken: {wrong}");
            Ok(BROKEN)
        }
    }
}

/// Checks that no wake-up was later than the path that was under way, its own, and the end of its
/// job.
fn wakes(boot: &Observed, count: u64) -> Result<String, String> {
    boot.holds()?;
    let longest = boot.run.outcome.longest_path.ok_or("no longest path was reported")?.instructions;
    let row = boot.thread("waker", "thread0")?;
    let (jobs, latest) = (row.jobs, row.response_max_ns);
    let most = longest + 2 * PATH_INSTRUCTIONS_MAX;
    let said = format!(
        "{jobs} wake-ups, {} skipped, {} missed; the latest ended {latest} ns after its release, \
         and the longest kernel path has {longest} instructions",
        row.skipped, row.misses
    );
    let sound = jobs >= count && row.skipped + row.misses == 0 && latest <= most;
    if sound { Ok(said) } else { Err(format!("{said}; {count} within {most} ns were asked for")) }
}

/// Checks that no restart took longer than a backoff and twice its time, and that the neighbour
/// missed nothing.
fn faults(boot: &Observed, count: u64) -> Result<String, String> {
    boot.holds()?;
    let (victim, neighbour) = (boot.process("diagnosis")?, boot.thread("neighbour", "thread0")?);
    let longest = longest_restart(&boot.lines);
    let said = format!(
        "{} faults and {} restarts, the longest after {longest} ns; its neighbour did {} jobs and \
         missed {}",
        victim.faults,
        victim.restarts(),
        neighbour.jobs,
        neighbour.misses
    );
    let sound = victim.faults >= count
        && victim.faults - victim.restarts() <= 1
        && neighbour.misses + neighbour.skipped == 0
        && longest <= RESTART_NS;
    if sound {
        Ok(said)
    } else {
        Err(format!("{said}; {count} within {RESTART_NS} ns were asked for"))
    }
}

/// Returns the longest time from a fault to the next start.
fn longest_restart(lines: &[Line]) -> u64 {
    let (mut faulted, mut longest) = (None, 0);
    for line in lines {
        match line {
            Line::Record(Record::Fault, words) => faulted = words.first().copied(),
            Line::Record(Record::Started, words) => {
                if let (Some(from), Some(to)) = (faulted.take(), words.first()) {
                    longest = longest.max(to.saturating_sub(from));
                }
            }
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_restart_is_found() {
        let line = |record, time| Line::Record(record, vec![time, 2, 1]);
        let lines = [
            line(Record::Started, 10),
            line(Record::Fault, 20),
            line(Record::Started, 25),
            line(Record::Fault, 30),
            line(Record::Started, 44),
            line(Record::Fault, 50),
        ];
        assert_eq!(longest_restart(&lines), 14);
        assert_eq!(longest_restart(&lines[..2]), 0);
    }
}
