//! The same scripts of USB traffic against QEMU's controller and against the simulator's: what the
//! driver says of each transfer, and what is in memory then, must be the same.

use super::SCRIPTS_SYSTEM;
use crate::qemu_tests::observed::Observed;
use diapason::Workspace;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::session::Session;
use diapason_system::RunOptions;
use std::collections::BTreeMap;

/// The program, and the line at its end.
const PROGRAM: &str = "usb-scripts";
const ENDED: &str = "SCRIPTS";
/// A word of its lines about memory that nobody may write.
const CHANGED: &str = "CHANGED";
/// Scripts of one boot.
const SHARE: u64 = 25;
/// Boot, and the time that a script takes at most.
const BOOT_NS: u64 = 1_000_000_000;
const SCRIPT_NS: u64 = 800_000_000;
/// The ends of transfers. Each occurs in the scripts of every test run.
const OUTCOMES: [&str; 7] =
    ["Done", "Short", "Stalled", "Babble", "Transaction", "Cancelled", "Gone"];

/// How often transfers ended how, in lines that are equal on both machines.
#[derive(Default)]
pub(crate) struct Equal {
    scripts: u64,
    lines: usize,
    outcomes: BTreeMap<&'static str, usize>,
}

impl Equal {
    fn note(&mut self, line: &str) {
        self.lines += 1;
        let ended = OUTCOMES.iter().find(|outcome| line.contains(&format!(": {outcome}")));
        if let Some(outcome) = ended {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
    }
}

impl std::fmt::Display for Equal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Equal { scripts, lines, outcomes } = self;
        write!(f, "{scripts} scripts, {lines} lines equal on both machines;")?;
        outcomes.iter().try_for_each(|(outcome, count)| write!(f, " {outcome}: {count}"))
    }
}

/// Compares `count` scripts of a seed.
pub(crate) fn compare(
    workspace: &Workspace,
    built: &Built,
    count: u64,
    seed: u64,
) -> Result<Equal, String> {
    let mut equal = Equal::default();
    for first in (0..count).step_by(SHARE as usize) {
        share(workspace, built, [seed, first, SHARE.min(count - first)], &mut equal)?;
    }
    match OUTCOMES.iter().find(|outcome| !equal.outcomes.contains_key(*outcome)) {
        Some(outcome) => Err(format!("no transfer ended as {outcome}: {equal}")),
        None => Ok(equal),
    }
}

fn share(
    workspace: &Workspace,
    built: &Built,
    [seed, first, count]: [u64; 3],
    equal: &mut Equal,
) -> Result<(), String> {
    let path = workspace.root().join(SCRIPTS_SYSTEM);
    let mut system = describe(&path).map_err(|failure| failure.to_string())?;
    let [process] = &mut system.processes[..] else { return Err("one process is needed".into()) };
    process.arguments = [seed, first, count, system.usb.len() as u64];
    let horizon_ns = BOOT_NS + count * SCRIPT_NS;
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let session = Session::assemble(system, built.clone(), options);
    let session = session.map_err(|failure| failure.to_string())?;
    let boots = [Observed::boot(workspace, &session)?, Observed::simulate(&session)?];
    let [metal, sim] = boots.each_ref().map(|boot| boot.log(PROGRAM));
    for (place, (one, other)) in metal.iter().zip(&sim).enumerate() {
        if one != other {
            let before = metal[place.saturating_sub(8)..place].join("\n");
            return Err(format!("{before}\nin QEMU:          {one}\nin the simulator: {other}"));
        }
        if one.contains(CHANGED) {
            return Err(format!("a controller wrote where it must not: {one}"));
        }
        equal.note(one);
    }
    let end = format!("{ENDED} {count}");
    for (machine, log) in [("QEMU", &metal), ("the simulator", &sim)] {
        if log.last().is_none_or(|last| *last != end) {
            return Err(format!("the scripts did not end in {machine}: {:?}", log.last()));
        }
    }
    equal.scripts += count;
    boots.iter().try_for_each(Observed::never_faulted)
}
