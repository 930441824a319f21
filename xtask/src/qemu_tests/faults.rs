//! The permitted effect of faults and damaged programs: they end their own process, and nothing
//! else.

use super::{Observed, QemuTest};
use diapason::qemu::MachineEnding;
use diapason_abi::FaultCause;
use diapason_abi::archive::{Archive, Refusal};

const RESTART: &str = "tests/systems/restart.toml";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        record: true,
        ..QemuTest::new("a faulting process is restarted as described", RESTART, replayed)
    },
    QemuTest::simulated("a faulting process is restarted as described", RESTART, restarted),
    QemuTest {
        alter: Some(|archive| damage_last_program(archive)),
        ..QemuTest::new("a damaged program is refused and the rest boots", RESTART, refused)
    },
    QemuTest {
        alter: Some(|archive| damage_last_program(archive)),
        ..QemuTest::simulated("a damaged program is refused and the rest boots", RESTART, refused)
    },
];

/// The core on the host agrees with what must be.
fn replayed(boots: &[Observed]) -> Result<(), String> {
    restarted(boots)?;
    boots[0].replays_equal()
}

/// Three starts, three faults with the same cause.
fn restarted(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let causes = boot.causes("diagnosis");
    if causes != [Some(FaultCause::Read); 3] {
        return Err(format!("three bad reads were expected, not {causes:?}"));
    }
    let (victim, supervisor) = (boot.process("diagnosis")?, boot.process("supervisor")?);
    if (victim.starts, victim.faults, victim.restarts()) != (3, 3, 2) {
        return Err(format!("two restarts were described: {victim:?}"));
    }
    if (supervisor.starts, supervisor.faults) != (1, 0) {
        return Err(format!("the supervisor was disturbed: {supervisor:?}"));
    }
    Ok(())
}

/// One bit of the last process's program is wrong.
fn damage_last_program(archive: &mut [u8]) {
    let last = Archive::parse(archive).ok().and_then(|archive| archive.processes().last());
    if let Some(process) = last {
        archive[(process.image_offset + process.image_length / 2) as usize] ^= 1;
    }
}

fn refused(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let expected = [(1, Refusal::ImageChecksum as u64)];
    if boot.run.outcome.refused != expected {
        return Err(format!("refused: {:?}, not {expected:?}", boot.run.outcome.refused));
    }
    if !matches!(boot.run.ending, MachineEnding::Finished | MachineEnding::Halted) {
        return Err("the machine did not reach its end".into());
    }
    match boot.process("supervisor")? {
        row if row.starts == 1 && row.faults == 0 => Ok(()),
        row => Err(format!("the supervisor did not boot: {row:?}")),
    }
}
