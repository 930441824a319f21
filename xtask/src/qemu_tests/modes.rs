//! Modes of operation: a program asks for them, and the streams of cameras end and begin. The
//! stream that two modes have alike loses nothing.

use super::{Observed, QemuTest};
use diapason_pipe::measured::{CameraReport, Measurement, ModeReport, ModeStep};

const SYSTEM: &str = "tests/systems/modes.toml";
const EXAMPLE: &str = "examples/modes.toml";
const NAME: &str = "modes of cameras change, and the stream of two modes loses nothing";
const PULLED: &str = "modes of cameras change while a camera is pulled";
const CAR: &str = "modes of four cameras of a car change";
const DAMAGED: &str = "intervals that get lost while modes of cameras change are told";
const BROKEN: &str = "a controller that breaks while modes of cameras change is told";
/// The program has asked for all changes after 1 s.
const HORIZON: u64 = 1_400_000_000;
const CHANGES: u64 = 4;
/// The stream of the camera behind.
const STAYS: u8 = 1;
/// Its pictures in the time from when all cameras are found to the end, at least.
const PICTURES: u64 = 45;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: HORIZON, ..QemuTest::new(NAME, SYSTEM, booted) },
    QemuTest { horizon_ns: HORIZON, works: true, ..QemuTest::simulated(NAME, SYSTEM, kept) },
    QemuTest {
        horizon_ns: HORIZON,
        faults: &["510ms unplug front 300ms"],
        ..QemuTest::simulated(PULLED, SYSTEM, pulled)
    },
    QemuTest {
        horizon_ns: HORIZON,
        faults: &["280ms damage rear 2ms"],
        ..QemuTest::simulated(DAMAGED, SYSTEM, damaged)
    },
    QemuTest {
        horizon_ns: HORIZON,
        faults: &["280ms controller-error xhci"],
        ..QemuTest::simulated(BROKEN, SYSTEM, broken)
    },
    QemuTest { horizon_ns: 2_300_000_000, works: true, ..QemuTest::simulated(CAR, EXAMPLE, car) },
    QemuTest { horizon_ns: 2_300_000_000, ..QemuTest::new(CAR, EXAMPLE, booted_car) },
];

/// Returns the steps of changes in their order.
fn steps(boot: &Observed) -> Vec<ModeReport> {
    let is_mode = |said| match said {
        Measurement::Mode(report) => Some(report),
        _ => None,
    };
    boot.measured("usbd").into_iter().filter_map(is_mode).collect()
}

/// Returns the last report on a stream, if it lost nothing.
fn lossless(boot: &Observed, stream: u8) -> Result<CameraReport, String> {
    let is_its = |said| match said {
        Measurement::Camera(report) if report.number == stream => Some(report),
        _ => None,
    };
    let last = boot.measured("usbd").into_iter().filter_map(is_its).next_back();
    let last = last.ok_or_else(|| format!("nothing was said of stream {stream}"))?;
    println!("{last:?}");
    match last.broken + last.missed + last.breaks {
        0 => Ok(last),
        _ => Err(format!("stream {stream}: {last:?}")),
    }
}

/// Checks that each change led to the mode that the program asked for, and that the stream of both
/// modes lost nothing.
fn changed(boot: &Observed) -> Result<(), String> {
    let steps = steps(boot);
    let ran = steps.iter().filter(|it| it.step == ModeStep::Runs);
    let ran: Vec<u8> = ran.map(|it| it.mode).collect();
    // The first one runs when the cameras are found.
    let expected: Vec<u8> = (0..=CHANGES).map(|change| (change % 2) as u8).collect();
    if ran != expected {
        return Err(format!("modes {ran:?} ran, not {expected:?}: {steps:#?}"));
    }
    match lossless(boot, STAYS)? {
        last if last.whole < PICTURES => Err(format!("too few pictures: {last:?}")),
        _ => Ok(()),
    }
}

fn only(boots: &[Observed]) -> Result<&Observed, String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    Ok(boot)
}

fn kept(boots: &[Observed]) -> Result<(), String> {
    let boot = only(boots)?;
    boot.holds()?;
    changed(boot)?;
    whole(boot)
}

/// Checks the verdict of the program on its changes.
fn whole(boot: &Observed) -> Result<(), String> {
    let log = boot.log("changer");
    let verdict = format!("MODES WHOLE {CHANGES} changes, longest ");
    println!("{}", log.last().unwrap_or(&""));
    match log.last().is_some_and(|line| line.starts_with(&verdict)) {
        true => Ok(()),
        false => Err(format!("the program said {log:#?}")),
    }
}

/// Checks a boot in QEMU, whose controller interrupts more often than it is told.
fn booted(boots: &[Observed]) -> Result<(), String> {
    let boot = only(boots)?;
    nearly_holds(boot)?;
    changed(boot)?;
    whole(boot)
}

fn booted_car(boots: &[Observed]) -> Result<(), String> {
    let boot = only(boots)?;
    nearly_holds(boot)?;
    changed(boot)
}

fn nearly_holds(boot: &Observed) -> Result<(), String> {
    let findings = boot.verdict.findings();
    let others: Vec<_> = findings.iter().filter(|it| !it.contains("interrupt-distance")).collect();
    if others.is_empty() { Ok(()) } else { Err(format!("{others:#?}")) }
}

/// The camera in front is away from the middle of the first change to the fourth. The other streams
/// lose nothing, and the mode that runs in the end has all of its streams.
fn pulled(boots: &[Observed]) -> Result<(), String> {
    let boot = only(boots)?;
    whole(boot)?;
    lossless(boot, STAYS)?;
    lossless(boot, STAYS + 1)?;
    let steps = steps(boot);
    match steps.last() {
        Some(ModeReport { mode: 0, step: ModeStep::Runs, .. }) => Ok(()),
        _ => Err(format!("the steps were {steps:?}")),
    }
}

/// The first change is under way when the camera behind loses some intervals.
fn damaged(boots: &[Observed]) -> Result<(), String> {
    told(only(boots)?, "intervals did not come")
}

fn broken(boots: &[Observed]) -> Result<(), String> {
    told(only(boots)?, "stream 1 of usbd broke off")
}

/// Checks that a run does not hold, and says why in these words.
fn told(boot: &Observed, words: &str) -> Result<(), String> {
    let findings = boot.verdict.findings().join("\n");
    println!("{findings}");
    match findings.contains("camera-loss") && findings.contains(words) {
        true => Ok(()),
        false => Err(format!("`{words}` is not among {findings}")),
    }
}

fn car(boots: &[Observed]) -> Result<(), String> {
    let boot = only(boots)?;
    boot.holds()?;
    changed(boot)
}
