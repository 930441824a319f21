//! A storm of random system calls: the kernel survives, and the neighbour is never late.

use super::{Observed, QemuTest};
use diapason::console::Line;
use diapason::qemu::MachineEnding;
use diapason::words;
use diapason_abi::record::Record;
use diapason_costs::targets::PATH_INSTRUCTIONS_MAX;

/// The description; its warden's first argument is the number of calls.
pub const STORM: &str = "examples/storm.toml";
/// Calls the description asks for.
const CALLS: u64 = 100_000;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { watch: true, ..QemuTest::new("a storm of calls does no harm", STORM, harmless) },
    QemuTest::simulated("a storm of calls does no harm", STORM, survived),
    QemuTest {
        record: true,
        horizon_ns: 150_000_000,
        ..QemuTest::new("a storm of calls is replayed equal", STORM, replayed)
    },
];

fn harmless(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    println!("{}", weathered(boot, CALLS)?);
    let longest = boot.run.outcome.longest_path.ok_or("no longest path was reported")?;
    if longest.instructions > PATH_INSTRUCTIONS_MAX {
        return Err(format!("a kernel path is longer than {PATH_INSTRUCTIONS_MAX} instructions"));
    }
    Ok(())
}

fn survived(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    weathered(boot, CALLS).map(|text| println!("{text}"))
}

/// Checks the state after a storm of so many calls; returns it in words.
pub fn weathered(boot: &Observed, calls: u64) -> Result<String, String> {
    if boot.run.ending != MachineEnding::Finished {
        return Err("the machine did not reach its horizon".into());
    }
    undisturbed(boot)?;
    let log = boot.log("warden");
    let line = log.iter().find(|line| line.starts_with("STORM "));
    let line = line.ok_or("the storm did not end in time")?;
    let made = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("calls="));
    let made: u64 = made.and_then(|number| number.parse().ok()).ok_or("no number of calls")?;
    if made < calls {
        return Err(format!("{made} calls were made, {calls} were asked for"));
    }
    let path = boot.run.outcome.longest_path.map_or(String::new(), |path| {
        let cause = words::path_cause(path.cause);
        format!("; longest kernel path: {} instructions, {cause}", path.instructions)
    });
    Ok(format!("{line}{path}"))
}

/// The neighbour lived one life, on time, and so did the warden.
pub fn undisturbed(boot: &Observed) -> Result<(), String> {
    boot.never_late(&["neighbour"])?;
    let neighbour = boot.process("neighbour")?;
    if (neighbour.starts, neighbour.faults) != (1, 0) {
        return Err(format!("the neighbour was disturbed: {neighbour:?}"));
    }
    let jobs = boot.thread("neighbour", "thread0")?.jobs;
    let end = boot.run.outcome.end.ok_or("no end")?.time_ns;
    let starts = boot.lines.iter().find_map(|line| match line {
        Line::Record(Record::Started, words) => words.first(),
        _ => None,
    });
    let span = end - starts.ok_or("nothing started")?;
    // One each millisecond, but for the first and the last.
    if jobs + 3 < span / 1_000_000 {
        return Err(format!("the neighbour did only {jobs} jobs in {span} ns"));
    }
    Ok(())
}

/// The core on the host decides as the kernel did, on every call anybody thought of.
fn replayed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    undisturbed(boot)?;
    boot.replays_equal()
}
