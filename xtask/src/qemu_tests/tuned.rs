//! Pipes that programs open, change and close while the system runs, on both machines; and what
//! becomes of them when their device or their channel goes, or when more comes than was said.

use super::{Observed, QemuTest};
use diapason_abi::Nanos;
use diapason_abi::pipe::SLOTS;
use diapason_pipe::measured::{Measurement, TunedReport, WrittenReport};

const EXAMPLE: &str = "examples/tuned-pipes.toml";
const NAME: &str = "tuned pipes: programs open, change, are refused and close them";
const TRIAL: &str = "tests/systems/tuned-trial.toml";
const TRIAL_NAME: &str = "tuned pipes: each refusal has its reason, beside a hostile client";
const OUTPUT: &str = "examples/can-output.toml";
const WRITTEN: &str = "examples/tuned-output.toml";
const WRITTEN_NAME: &str = "tuned pipes: programs write to a device, and pass on to it";
const SECOND: u64 = 1_000_000_000;
/// In QEMU a decision takes its time: all is said after so long.
const LENGTH: u64 = 9 * SECOND;
/// QEMU's clock stops twice on the way.
const SLACK: Nanos = Nanos::from_millis(2);
/// Frames of channel 4 in a second.
const RATE: u64 = 3_194;
/// Frames of the two interrupts, a millisecond apart, between which a second may begin or end.
const BATCHES: u64 = 8;
const PROGRAMS: [&str; 2] = ["brakes", "logger"];

/// The example with one fault, in the simulator.
const fn after(
    name: &'static str,
    faults: &'static [&'static str],
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    QemuTest { horizon_ns: 8 * SECOND, faults, ..QemuTest::simulated(name, EXAMPLE, check) }
}

/// The example with one fault; programs take the time that the example says.
const fn working(
    name: &'static str,
    faults: &'static [&'static str],
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    QemuTest { works: true, ..after(name, faults, check) }
}

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: LENGTH, ..QemuTest::new(NAME, EXAMPLE, whole) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::simulated(NAME, EXAMPLE, whole) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::new(TRIAL_NAME, TRIAL, refused) },
    QemuTest { horizon_ns: 5 * SECOND, ..QemuTest::simulated(TRIAL_NAME, TRIAL, refused) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::new(WRITTEN_NAME, WRITTEN, through) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::simulated(WRITTEN_NAME, WRITTEN, through) },
    QemuTest {
        horizon_ns: 6 * SECOND,
        faults: &["2500ms unplug interface 100ms"],
        ..QemuTest::simulated("tuned pipes: unplugged under those who write", WRITTEN, back_again)
    },
    after("tuned pipes: unplug", &["2500ms unplug interface 100ms"], unplugged),
    after("tuned pipes: long unplug", &["1500ms unplug interface 1500ms"], unplugged),
    after("tuned pipes: bus-off", &["2500ms bus-off interface 4"], resumed),
    after("tuned pipes: babble", &["2500ms babble interface 200ms 4"], too_many),
    working("tuned pipes: a described one babbles", &["2500ms babble interface 700us 0"], outside),
    working("tuned pipes: a slow reader", &["2500ms overrun logger 1000 200ms"], slow),
    working("tuned pipes: a slow described reader", &["2500ms overrun reader-0 1000 1s"], slowest),
    QemuTest {
        horizon_ns: 6 * SECOND,
        faults: &["2500ms unplug interface 100ms"],
        ..QemuTest::simulated("tuned pipes: unplugged under a writer", OUTPUT, written_again)
    },
];

fn one(boots: &[Observed]) -> Result<&Observed, String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    Ok(boot)
}

/// Returns a program's reports about its pipe.
fn reports(boot: &Observed, program: &str) -> Vec<TunedReport> {
    let tuned = |measured| match measured {
        Measurement::Tuned(report) => Some(report),
        _ => None,
    };
    boot.measured(program).into_iter().filter_map(tuned).collect()
}

fn last(boot: &Observed, program: &str) -> Result<TunedReport, String> {
    reports(boot, program).pop().ok_or(format!("{program} said nothing"))
}

/// Each step has its line, every message was read within the bound, and the pipe of the description
/// lost none.
fn whole(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    boot.holds()?;
    for program in PROGRAMS {
        for step in [
            "opened: C 384 us, T ",
            "at once: a latency of 900.0 us, but ",
            "but a latency of ",
            "more than the device has: 2621440 bit/s in all, but the device can do 2250000",
            "more than declared: its thread needs 8000.0 us, but the description lets it have",
            "changed: C 384 us, T ",
            "closed: WHOLE, ",
        ] {
            let said = boot.log(program).iter().any(|line| line.starts_with(step));
            said.then_some(()).ok_or(format!("{program} did not say `{step}`"))?;
        }
        let report = last(boot, program)?;
        println!("{report:?}");
        if report.messages < 2 * RATE || report.bound > Nanos::from_millis(25) {
            return Err(format!("{program}: {report:?}"));
        }
    }
    engine(boot)
}

/// The pipe of the description lost nothing.
fn engine(boot: &Observed) -> Result<(), String> {
    let said = boot.pipe_reports("reader-0").pop();
    match said {
        Some(report) if report.lost == 0 && report.messages > 0 => Ok(()),
        other => Err(format!("the pipe of the description: {other:?}")),
    }
}

fn refused(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    boot.logged("trial", "every refusal has its reason")?;
    let asked = boot.log("hostile").len();
    if asked < 3 {
        return Err(format!("the hostile client said {asked} lines"));
    }
    // The trial says less than comes on its channels, so its own pipes are out of contract.
    only_of(boot, &["pipe-contract", "pipe-late"], "tpipe")?;
    engine(boot)
}

/// One outage, which both pipes reported and counted; then messages come as before, none of them
/// late; and nothing else was broken but promises of pipes.
fn resumed(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    for program in PROGRAMS {
        let all = reports(boot, program);
        let after = *all.last().ok_or(format!("{program} reported nothing"))?;
        println!("{after:?}");
        let gone = all.iter().find(|report| report.outages == 1).map(|report| report.messages);
        let came = gone.map_or(0, |gone| after.messages - gone);
        if after.outages != 1 || came + BATCHES < RATE || after.lost != 0 {
            return Err(format!("{program}: {all:?}"));
        }
        let line = boot.log(program).into_iter().find(|line| line.starts_with("closed: NOT WHOLE"));
        let missing =
            line.and_then(|line| line.split(", ").nth(2)?.split(' ').next()?.parse().ok());
        match missing {
            Some(1_u64..) => {}
            _ => return Err(format!("{program} did not count what is missing: {line:?}")),
        }
    }
    only(boot, &["pipe-outage", "pipe-loss"])
}

fn unplugged(boots: &[Observed]) -> Result<(), String> {
    resumed(boots)?;
    let boot = one(boots)?;
    for program in PROGRAMS {
        boot.logged(program, "the channel is Absent")?;
    }
    Ok(())
}

/// More came than was said: an alarm by that name, and no other.
fn too_many(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    for program in PROGRAMS {
        let report = last(boot, program)?;
        if report.outside < 1_000 || report.lost != 0 {
            return Err(format!("{program}: {report:?}"));
        }
    }
    only(boot, &["pipe-contract"])
}

/// More than its contract came for the pipe of the description: its alarms ring, and nobody's
/// bound is broken.
fn outside(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    // More messages at once than its contract has also wait in its buffer.
    only_of(boot, &["pipe-contract", "pipe-buffer"], "engine")?;
    let Err(findings) = boot.holds() else { return Err("nobody rang".into()) };
    let expected = findings.contains("of engine were outside of its contract");
    expected.then_some(()).ok_or(findings)
}

/// A reader that pauses loses its own messages, which are counted and reported. Another reader of
/// the same channel loses none.
fn slow(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    let (brakes, logger) = (last(boot, "brakes")?, last(boot, "logger")?);
    println!("{brakes:?}\n{logger:?}");
    engine(boot)?;
    whole_of(boot, "brakes")?;
    if logger.lost < 100 || logger.peak != SLOTS as u32 || brakes.lost != 0 {
        return Err(format!("{logger:?}"));
    }
    only_of(boot, &["pipe-loss", "pipe-late"], "tpipe1")
}

/// A program read everything, in its order.
fn whole_of(boot: &Observed, program: &str) -> Result<(), String> {
    let whole = boot.log(program).into_iter().any(|line| line.starts_with("closed: WHOLE"));
    whole.then_some(()).ok_or(format!("{program} is not whole"))
}

/// The programs read everything, and the pipe of the description is the slowest.
fn slowest(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    PROGRAMS.iter().try_for_each(|program| whole_of(boot, program))?;
    let said = boot.pipe_reports("reader-0").pop();
    match said {
        Some(report) if report.lost > 100 && report.peak == SLOTS as u32 => println!("{report:?}"),
        other => return Err(format!("the pipe of the description: {other:?}")),
    }
    only_of(boot, &["pipe-loss", "pipe-late", "pipe-buffer"], "engine")
}

/// There were alarms, each of these names and about `what`.
fn only_of(boot: &Observed, names: &[&str], what: &str) -> Result<(), String> {
    only(boot, names)?;
    let Err(findings) = boot.holds() else { return Err("nobody rang".into()) };
    println!("{findings}");
    match findings.lines().find(|line| !line.contains(what)) {
        Some(other) => Err(format!("it broke {other}")),
        None => Ok(()),
    }
}

/// There were alarms, each of these names.
fn only(boot: &Observed, names: &[&str]) -> Result<(), String> {
    let Err(findings) = boot.holds() else { return Err("nobody rang".into()) };
    let known = |line: &&str| names.iter().any(|n| line.starts_with(&format!("alarm {n}")));
    match findings.lines().find(|line| !known(line)) {
        Some(other) => Err(format!("it broke {other}")),
        None => Ok(()),
    }
}

/// The writers count what was given up, and write at their receivers' pace again.
fn written_again(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    for channel in [3, 4] {
        let log = boot.log(&format!("writer-{channel}"));
        let line = log.iter().rfind(|line| line.starts_with("OUT "));
        let line = line.ok_or(format!("writer {channel} said nothing"))?;
        // OUT, channel, rate, through, under way, given up, received, wrong.
        let said: Vec<u64> =
            line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let fine = matches!(said[..], [_, _, 3_000..=3_100, _, _, given_up, _, _] if given_up > 0);
        fine.then_some(()).ok_or(format!("writer {channel}: {line}"))?;
        println!("{line}");
    }
    Ok(())
}

/// Frames a second that both programs of the example write.
const WRITTEN_RATE: u64 = 390;

fn written(boot: &Observed, program: &str) -> Vec<WrittenReport> {
    let written = |measured| match measured {
        Measurement::Written(report) => Some(report),
        _ => None,
    };
    boot.measured(program).into_iter().filter_map(written).collect()
}

/// Each step has its line, nothing changed by what was refused, and every message was through
/// within the bound.
fn through(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    boot.holds()?;
    let steps =
        ["not yet: ", "opened: C 192 us, T ", "at once: a latency of ", "as before", "changed: "];
    let written_only = [
        "more than declared: 3100 messages a second, but the description lets it have 400",
        "no room for a message: a buffer of 15 bytes, but a message has 16",
        "more room than there is: a buffer of 2064 bytes, but there are 2048 for a pipe",
        "more at once than declared: 9 messages at once, but the description lets it have 8",
    ];
    let passed_only =
        ["more than declared: 800 messages a second, but the description lets it have 400"];
    for (program, own) in [("lamps", &written_only[..]), ("gateway", &passed_only[..])] {
        for step in steps.iter().chain(own).chain(&["closed: WHOLE, "]) {
            let said = boot.log(program).iter().any(|line| line.starts_with(step));
            said.then_some(()).ok_or(format!("{program} did not say `{step}`"))?;
        }
        let wrong = boot.log(program).into_iter().find(|line| line.starts_with("WRONG"));
        wrong.map_or(Ok(()), |line| Err(format!("{program}: {line}")))?;
        let all = written(boot, program);
        let last = *all.last().ok_or(format!("{program} said nothing"))?;
        println!("{last:?}");
        let late =
            all.iter().any(|it| it.taken.0 > it.taken.1 + SLACK || it.whole.0 > it.whole.1 + SLACK);
        if last.through < 2 * WRITTEN_RATE || last.lost != 0 || late {
            return Err(format!("{program}: {last:?}"));
        }
    }
    engine(boot)
}

/// One outage, which was counted with what was under way; then messages are through as before.
fn back_again(boots: &[Observed]) -> Result<(), String> {
    let boot = one(boots)?;
    for program in ["lamps", "gateway"] {
        let all = written(boot, program);
        let after = *all.last().ok_or(format!("{program} reported nothing"))?;
        println!("{after:?}");
        let gone = all.iter().find(|report| report.outages == 1).map(|report| report.through);
        let through = gone.map_or(0, |gone| after.through - gone);
        if after.outages != 1 || through + 2 * BATCHES < WRITTEN_RATE {
            return Err(format!("{program}: {all:?}"));
        }
    }
    only(boot, &["pipe-outage", "pipe-loss"])
}
