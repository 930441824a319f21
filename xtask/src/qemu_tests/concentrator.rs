//! The CAN concentrator: every frame of five channels, both ways, on both machines.

use super::{Observed, QemuTest};

const CONCENTRATOR: &str = "examples/can-concentrator.toml";
const NAME: &str = "the concentrator reads every frame of five channels";
/// Channels of the interface.
const CHANNELS: usize = 5;
/// Frames a second of all channels together, once they are open: the 7,000 of the description, less
/// some for the seconds that are cut.
const FRAMES_A_SECOND: u64 = 6_700;
const SECONDS: u64 = 6;
const SECOND: u64 = 1_000_000_000;
const LENGTH: u64 = SECONDS * SECOND;
/// The first second: the devices are found and opened.
const OPENING: u64 = 1;

const TWO: &str = "tests/systems/two-interfaces.toml";
const TWO_NAME: &str = "two interfaces carry eight channels, and none waits for the other";
/// Frames a second of the seven channels that are read, and of the one that is written.
const TWO_FRAMES: (u64, u64) = (8_700, 3_000);
const TWO_SECONDS: u64 = 3;

const GS_USB: &str = "tests/systems/gs-usb.toml";
const GS_USB_NAME: &str = "an interface that speaks gs_usb is read and written";
/// Frames a second of its channel that is read, and of the one that is written.
const GS_USB_FRAMES: (u64, u64) = (1_490, 1_900);

const FD: &str = "tests/systems/gs-usb-fd.toml";
const FD_NAME: &str = "channels with CAN FD are read and written beside a classic one";
/// Frames a second of the channels that are read, together, and of the one that is written.
const FD_FRAMES: (u64, u64) = (2_190, 1_370);

const OUTPUT: &str = "examples/can-output.toml";
const OUTPUT_NAME: &str = "two channels are written at the pace of their receivers";
/// Frames a second that the receivers of the description take.
const PACE: std::ops::RangeInclusive<u64> = 3_053..=3_073;

const API: &str = "tests/systems/can-loopback.toml";
const API_NAME: &str =
    "the calls of the CAN library do what they say, and all that is written comes";
const API_SECONDS: u64 = 5;

const REPLAY: &str = "tests/systems/can-replay.toml";
const REPLAY_NAME: &str = "every frame of a log that is replayed is read";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: LENGTH, ..QemuTest::new(NAME, CONCENTRATOR, whole) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::simulated(NAME, CONCENTRATOR, whole) },
    QemuTest { horizon_ns: TWO_SECONDS * SECOND, ..QemuTest::new(TWO_NAME, TWO, both) },
    QemuTest { horizon_ns: TWO_SECONDS * SECOND, ..QemuTest::simulated(TWO_NAME, TWO, both) },
    QemuTest { horizon_ns: 3 * SECOND, ..QemuTest::simulated(GS_USB_NAME, GS_USB, served) },
    QemuTest { horizon_ns: 3 * SECOND, ..QemuTest::new(FD_NAME, FD, flexible) },
    QemuTest { horizon_ns: 3 * SECOND, ..QemuTest::simulated(FD_NAME, FD, flexible) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::new(OUTPUT_NAME, OUTPUT, paced) },
    QemuTest { horizon_ns: LENGTH, ..QemuTest::simulated(OUTPUT_NAME, OUTPUT, paced) },
    QemuTest { horizon_ns: API_SECONDS * SECOND, ..QemuTest::new(API_NAME, API, looped) },
    QemuTest { horizon_ns: API_SECONDS * SECOND, ..QemuTest::simulated(API_NAME, API, looped) },
    QemuTest { horizon_ns: 3 * SECOND, ..QemuTest::new(REPLAY_NAME, REPLAY, replayed) },
    QemuTest { horizon_ns: 3 * SECOND, ..QemuTest::simulated(REPLAY_NAME, REPLAY, replayed) },
];

/// No promise broken, no frame missing, and as many as were sent.
fn whole(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let mut frames = 0;
    for channel in 0..CHANNELS {
        match boot.pipe_reports(&format!("reader-{channel}")).last() {
            Some(report) if report.lost == 0 => frames += report.messages,
            other => return Err(format!("reader {channel}: {other:?}")),
        }
    }
    println!("{frames} frames");
    if frames < (SECONDS - OPENING - 1) * FRAMES_A_SECOND {
        return Err(format!("only {frames} frames in {SECONDS} s"));
    }
    Ok(())
}

/// Every channel of both interfaces carries what is on its bus, and no promise is broken.
fn both(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let mut frames = 0;
    for number in 0..7 {
        match boot.pipe_reports(&format!("reader-{number}")).last() {
            Some(report) if report.lost == 0 && report.channel == number => {
                frames += report.messages;
            }
            other => return Err(format!("can{number}: {other:?}")),
        }
    }
    let log = boot.log("writer-7");
    let last =
        log.iter().rfind(|line| line.starts_with("OUT ")).ok_or("the writer said nothing")?;
    let said = numbers(last);
    let [_, 7, rate, through, _, 0, read, 0] = said[..] else {
        return Err(format!("can7: {last}"));
    };
    println!("{frames} frames read; {last}");
    let seconds = TWO_SECONDS - OPENING - 1;
    if frames < seconds * TWO_FRAMES.0 || rate < TWO_FRAMES.1 || read > through + BUFFERED {
        return Err(format!("too few in {TWO_SECONDS} s, or more read than written"));
    }
    Ok(())
}

/// Both channels of the interface carry what the description says, and no promise is broken.
fn served(boots: &[Observed]) -> Result<(), String> {
    carries(boots, 1, GS_USB_FRAMES)
}

/// All three channels carry what the description says, with CAN FD or without.
fn flexible(boots: &[Observed]) -> Result<(), String> {
    carries(boots, 2, FD_FRAMES)
}

/// The channels before the last are read, and the last is written: at least so many frames a
/// second.
fn carries(boots: &[Observed], last: u64, (least, pace): (u64, u64)) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let mut frames = 0;
    for number in 0..last {
        match boot.pipe_reports(&format!("reader-{number}")).last() {
            Some(report) if report.lost == 0 => frames += report.messages,
            other => return Err(format!("can{number}: {other:?}")),
        }
    }
    let log = boot.log(&format!("writer-{last}"));
    let line = log.iter().rfind(|line| line.starts_with("OUT ")).ok_or("no word of the writer")?;
    let said = numbers(line);
    let [_, number, rate, _, _, 0, read, 0] = said[..] else {
        return Err(format!("can{last}: {line}"));
    };
    println!("{frames} frames read; {line}");
    if number != last || frames < least || rate < pace || read == 0 {
        return Err("too few in 3 s".into());
    }
    Ok(())
}

/// Returns the numbers of a line; words count as 0.
fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect()
}

/// Each second each writer sends as many frames as its receiver reads, all of them are read in
/// order, and the channels that are read lose nothing.
fn paced(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    for channel in 0..3 {
        let reports = boot.pipe_reports(&format!("reader-{channel}"));
        if !reports.last().is_some_and(|report| report.lost == 0 && report.messages > 0) {
            return Err(format!("reader {channel}: {:?}", reports.last()));
        }
    }
    for channel in 3..CHANNELS {
        let log = boot.log(&format!("writer-{channel}"));
        let said = log.iter().filter(|line| line.starts_with("OUT "));
        let seconds: Vec<&str> = said.skip(OPENING as usize).copied().collect();
        println!("{}", seconds.join("; "));
        if (seconds.len() as u64) < SECONDS - OPENING - 2 {
            return Err(format!("writer {channel} said only {} lines", log.len()));
        }
        for line in &seconds {
            // OUT, channel, rate, through, under way, given up, received, wrong.
            let said = numbers(line);
            let fine = matches!(said[..], [_, _, rate, through, _, 0, read, 0]
                if PACE.contains(&rate) && read > 0 && read <= through + BUFFERED);
            if !fine {
                return Err(format!("writer {channel}: {line}"));
            }
        }
    }
    Ok(())
}

/// Frames that may be read and not yet reported as through.
const BUFFERED: u64 = 64;

/// The program that tries every call found nothing wrong, and all that was written was received.
fn looped(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    boot.logged("trial", "every call does what it says")?;
    let log = boot.log("writer-3");
    let last = log.last().ok_or("the writer said nothing")?;
    println!("{last}");
    if last.starts_with("OUT 3 WHOLE") { Ok(()) } else { Err(format!("the writer: {last}")) }
}

/// Checks that every frame of the log was read once and in order.
fn replayed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let log = boot.log("reader-0");
    let last = log.last().ok_or("the reader said nothing")?;
    let whole = last.starts_with("CAN 0 WHOLE 300 frames");
    if whole { Ok(()) } else { Err(format!("the reader: {last}")) }
}
