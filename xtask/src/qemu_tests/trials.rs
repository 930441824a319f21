//! The suite that runs inside the system, and how the machine ends when it cannot go on.

use super::{Observed, QemuTest};
use diapason::qemu::MachineEnding;
use diapason_abi::archive::{Archive, CRC_FROM, HEADER_BYTES, Refusal, crc32, flags};

const TRIALS: &str = "tests/systems/trials.toml";
const ORPHANS: &str = "tests/systems/orphans.toml";
/// Trials there are at least: none may get lost.
const TRIALS_MIN: usize = 85;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        record: true,
        ..QemuTest::new("all trials pass, and replay equal on the host", TRIALS, all_pass)
    },
    QemuTest {
        alter: Some(|archive| archive[HEADER_BYTES + 9] ^= 1),
        ..QemuTest::new("an archive with damaged tables is refused", TRIALS, |boots| {
            no_archive(boots, Refusal::TablesChecksum)
        })
    },
    QemuTest {
        alter: Some(|archive| archive[0] ^= 1),
        ..QemuTest::new("a file that is no archive is refused", TRIALS, |boots| {
            no_archive(boots, Refusal::Magic)
        })
    },
    QemuTest {
        alter: Some(|archive| archive.truncate(archive.len() / 2)),
        ..QemuTest::new("a truncated archive is refused", TRIALS, |boots| {
            no_archive(boots, Refusal::Truncated)
        })
    },
    QemuTest {
        alter: Some(|archive| ask_to_watch(archive)),
        ..QemuTest::new("a kernel that observes nothing refuses to", TRIALS, |boots| {
            no_archive(boots, Refusal::Observed)
        })
    },
    QemuTest::new("the machine ends with its supervisor", ORPHANS, supervisor_died),
    QemuTest {
        horizon_ns: 2_000_000_000,
        ..QemuTest::simulated("all trials pass", TRIALS, all_pass_natively)
    },
    QemuTest::simulated("the machine ends with its supervisor", ORPHANS, supervisor_died),
];

/// Trials whose point the simulator does not have: programs are not interrupted between traps,
/// selectors and what is in the x87 unit stay as the last program left them, and only QEMU's
/// controller interrupts when its ring is said to have been read beyond its end.
const OF_THE_METAL: [&str; 5] = [
    "vector registers survive preemption in a process",
    "no selector and no x87 address reaches one who waited",
    "no selector and no x87 address reaches one who was interrupted",
    "a blocking call shows nobody else's x87 registers",
    "each message wakes its own thread",
];
/// How a line that could command a terminal is shown.
const SHOWN: &str = "shown ....[m";

fn all_pass_natively(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let log = boot.log("trials");
    let excused = |line: &&str| OF_THE_METAL.iter().any(|name| line.contains(name));
    let failed = log.iter().filter(|line| line.contains("FAILED") && !excused(line));
    let failed: Vec<&str> = failed.copied().collect();
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    boot.logged("trials", SHOWN)?;
    match log.iter().filter(|line| line.starts_with("trial ")).count() {
        TRIALS_MIN.. => Ok(()),
        made => Err(format!("{made} trials were made, and there are {TRIALS_MIN}")),
    }
}

fn all_pass(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let log = boot.log("trials");
    let failed: Vec<&str> = log.iter().copied().filter(|line| line.contains("FAILED")).collect();
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    let passed = log.iter().filter(|line| line.starts_with("trial ")).count();
    if passed < TRIALS_MIN {
        return Err(format!("{passed} trials were made, and there are {TRIALS_MIN}"));
    }
    boot.logged("trials", SHOWN)?;
    boot.logged("trials", &format!("trials: {passed} passed, 0 failed"))?;
    boot.replays_equal()
}

/// Makes the archive ask for a watched run, as a session would that boots the wrong kernel.
fn ask_to_watch(archive: &mut [u8]) {
    const CHECKSUM_AT: usize = 12;
    const FLAGS_AT: usize = 28;
    let Ok(Archive { header, .. }) = Archive::parse(archive) else { return };
    archive[FLAGS_AT] |= flags::WATCH as u8;
    let checksum = crc32(&archive[CRC_FROM..header.tables_end()]);
    archive[CHECKSUM_AT..CRC_FROM].copy_from_slice(&checksum.to_le_bytes());
}

fn no_archive(boots: &[Observed], reason: Refusal) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if boot.run.ending != MachineEnding::NoArchive {
        return Err("the kernel did not end for want of an archive".into());
    }
    match &boot.run.outcome.panic {
        Some(said) if said.contains(reason.text()) => Ok(()),
        said => Err(format!("it said {said:?}, not `{}`", reason.text())),
    }
}

fn supervisor_died(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if boot.run.ending != MachineEnding::SupervisorDied {
        return Err("the machine went on without a supervisor".into());
    }
    match boot.process("boss")? {
        row if row.faults == 1 => Ok(()),
        row => Err(format!("its fault is not in the table: {row:?}")),
    }
}
