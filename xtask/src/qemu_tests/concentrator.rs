//! The CAN concentrator: every frame of five channels, on both machines.

use super::{Observed, QemuTest};
use diapason_abi::pipe::PipeReport;

const CONCENTRATOR: &str = "examples/can-concentrator.toml";
const NAME: &str = "the concentrator reads every frame of five channels";
/// Channels of the interface.
const CHANNELS: usize = 5;
/// Frames a second of all channels together, once they are open: the article's 7,000, less some for
/// the seconds that are cut.
const FRAMES_A_SECOND: u64 = 6_700;
const SECONDS: u64 = 6;
/// The first second: the devices are found and opened.
const OPENING: u64 = 1;

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, CONCENTRATOR, whole) },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        ..QemuTest::simulated(NAME, CONCENTRATOR, whole)
    },
];

/// No promise broken, no frame missing, and as many as were sent.
fn whole(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let mut frames = 0;
    for channel in 0..CHANNELS {
        let log = boot.log(&format!("reader-{channel}"));
        let last = log.last().ok_or(format!("reader {channel} said nothing"))?;
        match log.iter().rev().find_map(|line| PipeReport::parse(line)) {
            Some(report) if report.lost == 0 => frames += report.messages,
            _ => return Err(format!("reader {channel}: {last}")),
        }
    }
    println!("{frames} frames");
    if frames < (SECONDS - OPENING - 1) * FRAMES_A_SECOND {
        return Err(format!("only {frames} frames in {SECONDS} s"));
    }
    Ok(())
}
