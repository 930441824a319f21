//! Pipes from devices that are no CAN interfaces: nothing of a sensor is lost beside a disk at full
//! speed, no packet is late, and a device that goes away is named.

use super::{Observed, QemuTest};

const SYSTEM: &str = "examples/endpoints.toml";
const NAME: &str = "a pipe from a sensor keeps its bound beside a CAN channel and a disk";
const DRIFTS: &str = "a sensor whose clock runs away is found out";
const SECONDS: u64 = 6;
/// The packets of the sensor in a second.
const RATE: u64 = 400;

const SENSORS: &str = "examples/sensors.toml";
const ALL_SENSED: &str = "pipes from three sensors keep their bounds, and each has its own reader";
const ONE_PULLED: &str = "one of three sensors that was pulled out is named, and no other one";
const SENSOR_SECONDS: u64 = 4;

const INSTRUMENT: &str = "examples/instrument.toml";
const READ: &str = "a pipe from an endpoint that no driver knows keeps its bound";
const INSTRUMENT_SECONDS: u64 = 4;
/// The packets of the instrument in a second.
const INSTRUMENT_RATE: u64 = 500;

const ACTUATOR: &str = "examples/actuator.toml";
const WRITTEN: &str = "a pipe to an endpoint that no driver knows keeps its bound";
const ACTUATOR_SECONDS: u64 = 4;
/// The packets to the actuator in a second.
const ACTUATOR_RATE: u64 = 50;
const UNPLUGGED: &str = "packets to a device that was pulled out are named as lost";

const SERVO: &str = "examples/servo.toml";
const BOTH: &str = "pipes from and to one device that no driver knows keep their bounds";
const PULLED: &str = "a drive that was pulled out is named by both of its pipes";

const CAMERA: &str = "examples/camera.toml";
const SEEN: &str = "a pipe from a camera keeps its bound beside a disk";
const CAMERA_SECONDS: u64 = 4;
/// The pictures of the camera in a second.
const PICTURES: u64 = 50;

const CAMERAS: &str = "examples/cameras.toml";
const BOTH_SEEN: &str =
    "pipes from two cameras keep their bounds, and none waits for another reader";

const DISK: &str = "examples/disk.toml";
const BLOCKS: &str = "a pipe from a disk keeps its bound beside a CAN channel";
const DISK_SECONDS: u64 = 4;
/// The runs of blocks in a second.
const RUNS: u64 = 312;

const DISKS: &str = "examples/disks.toml";
const BOTH_DISKS: &str = "pipes from one disk and to another one keep their bounds";
const LOG_PULLED: &str = "a disk that was pulled out is named, and the other one is read";
/// The runs of blocks in a second that are read, and those that are written.
const SCENES: u64 = 78;
const RECORDS: u64 = 50;

const RECORDER: &str = "examples/recorder.toml";
const STORED: &str = "a pipe to a disk keeps its bound beside a CAN channel";
/// The runs of blocks that are written in a second.
const STORES: u64 = 100;
const DISK_PULLED: &str = "blocks for a disk that was pulled out are named as lost";

const FRAMES: &str = "examples/frames.toml";
const HEARD: &str = "a pipe of 10,000 frames a second from a network device keeps its bound";
const FRAME_SECONDS: u64 = 4;
/// The frames that come in a second.
const FRAME_RATE: u64 = 10_000;
const NETWORK_PULLED: &str = "frames of a network device that was pulled out are named as lost";

const TALKER: &str = "tests/systems/frames-out.toml";
const TOLD: &str = "a pipe to a network device keeps its bound beside a CAN channel";
/// The frames that are written in a second.
const TOLD_RATE: u64 = 200;
const TOLD_PULLED: &str = "every frame for a device that was pulled out is named as lost";

const WAYS: &str = "tests/systems/frames-both.toml";
const BOTH_WAYS: &str = "pipes from and to one network device keep their bounds";
/// The frames that come in a second, and those that go.
const WAYS_RATE: u64 = 2_000;
const WAYS_BACK: u64 = 1_000;
const WRITES_ON: &str = "a writer of frames that was started again writes on";
const WAYS_PULLED: &str = "a network device that was pulled out is named by both of its pipes";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, SYSTEM, kept) },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(NAME, SYSTEM, kept)
    },
    QemuTest {
        horizon_ns: SENSOR_SECONDS * 1_000_000_000,
        ..QemuTest::new(ALL_SENSED, SENSORS, all_sensed)
    },
    QemuTest {
        horizon_ns: SENSOR_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(ALL_SENSED, SENSORS, all_sensed)
    },
    QemuTest {
        horizon_ns: SENSOR_SECONDS * 1_000_000_000,
        faults: &["2s unplug right 500ms"],
        ..QemuTest::simulated(ONE_PULLED, SENSORS, one_pulled)
    },
    QemuTest {
        horizon_ns: INSTRUMENT_SECONDS * 1_000_000_000,
        ..QemuTest::new(READ, INSTRUMENT, read)
    },
    QemuTest {
        horizon_ns: INSTRUMENT_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(READ, INSTRUMENT, read)
    },
    QemuTest {
        horizon_ns: ACTUATOR_SECONDS * 1_000_000_000,
        ..QemuTest::new(WRITTEN, ACTUATOR, written)
    },
    QemuTest {
        horizon_ns: ACTUATOR_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(WRITTEN, ACTUATOR, written)
    },
    QemuTest {
        horizon_ns: ACTUATOR_SECONDS * 1_000_000_000,
        faults: &["2s unplug actuator 500ms"],
        ..QemuTest::simulated(UNPLUGGED, ACTUATOR, unplugged)
    },
    QemuTest { horizon_ns: ACTUATOR_SECONDS * 1_000_000_000, ..QemuTest::new(BOTH, SERVO, both) },
    QemuTest {
        horizon_ns: ACTUATOR_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BOTH, SERVO, both)
    },
    QemuTest {
        horizon_ns: ACTUATOR_SECONDS * 1_000_000_000,
        faults: &["2s unplug servo 500ms"],
        ..QemuTest::simulated(PULLED, SERVO, pulled)
    },
    QemuTest { horizon_ns: CAMERA_SECONDS * 1_000_000_000, ..QemuTest::new(SEEN, CAMERA, seen) },
    QemuTest {
        horizon_ns: CAMERA_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(SEEN, CAMERA, seen)
    },
    QemuTest {
        horizon_ns: CAMERA_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BOTH_SEEN, CAMERAS, both_seen)
    },
    QemuTest { horizon_ns: DISK_SECONDS * 1_000_000_000, ..QemuTest::new(BLOCKS, DISK, blocks) },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BLOCKS, DISK, blocks)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        ..QemuTest::new(BOTH_DISKS, DISKS, both_disks)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BOTH_DISKS, DISKS, both_disks)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        faults: &["2s unplug log 500ms"],
        ..QemuTest::simulated(LOG_PULLED, DISKS, log_pulled)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        ..QemuTest::new(STORED, RECORDER, stored)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(STORED, RECORDER, stored)
    },
    QemuTest {
        horizon_ns: DISK_SECONDS * 1_000_000_000,
        faults: &["2s unplug disk 500ms"],
        ..QemuTest::simulated(DISK_PULLED, RECORDER, disk_pulled)
    },
    QemuTest { horizon_ns: FRAME_SECONDS * 1_000_000_000, ..QemuTest::new(HEARD, FRAMES, heard) },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(HEARD, FRAMES, heard)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        faults: &["2s unplug adapter 500ms"],
        ..QemuTest::simulated(NETWORK_PULLED, FRAMES, network_pulled)
    },
    QemuTest { horizon_ns: FRAME_SECONDS * 1_000_000_000, ..QemuTest::new(TOLD, TALKER, told) },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(TOLD, TALKER, told)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        faults: &["2s unplug adapter 500ms"],
        ..QemuTest::simulated(TOLD_PULLED, TALKER, told_pulled)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        ..QemuTest::new(BOTH_WAYS, WAYS, both_ways)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BOTH_WAYS, WAYS, both_ways)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        faults: &["2s unplug adapter 500ms"],
        ..QemuTest::simulated(WAYS_PULLED, WAYS, ways_pulled)
    },
    QemuTest {
        horizon_ns: FRAME_SECONDS * 1_000_000_000,
        faults: &["1500ms crash talker"],
        ..QemuTest::simulated(WRITES_ON, WAYS, writes_on)
    },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        faults: &["1s fast-clock sensor 5000"],
        ..QemuTest::simulated(DRIFTS, SYSTEM, drifts)
    },
];

fn kept(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "sampler", (SECONDS - 2) * RATE)
}

fn read(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "reader", (INSTRUMENT_SECONDS - 2) * INSTRUMENT_RATE)
}

fn written(boots: &[Observed]) -> Result<(), String> {
    passes(boots, ("control", true), (ACTUATOR_SECONDS - 2) * ACTUATOR_RATE)
}

/// The device goes away after two seconds. Each packet after that is a loss, and the run does not
/// hold.
fn unplugged(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of commands were lost")
}

fn both(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "watch", (ACTUATOR_SECONDS - 2) * INSTRUMENT_RATE)?;
    passes(boots, ("control", true), (ACTUATOR_SECONDS - 2) * ACTUATOR_RATE)
}

/// The drive is away for half a second, and both programs hear of it.
fn pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of set-points were lost")?;
    boot.breaks("messages of positions were lost")
}

fn seen(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "reader", (CAMERA_SECONDS - 2) * PICTURES)
}

/// Each camera has 30 pictures a second.
fn both_seen(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "avoid-ahead", (CAMERA_SECONDS - 2) * 30)?;
    comes(boots, "avoid-behind", (CAMERA_SECONDS - 2) * 30)
}

/// Two sensors have a packet every 2.5 ms, and one every 10 ms.
fn all_sensed(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "wheel-left", (SENSOR_SECONDS - 2) * RATE)?;
    comes(boots, "wheel-right", (SENSOR_SECONDS - 2) * RATE)?;
    comes(boots, "stability", (SENSOR_SECONDS - 2) * RATE / 4)
}

/// The right one is away for half a second. The readers of the other two miss nothing.
fn one_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of right-wheel were lost")?;
    misses_nothing(boot, "wheel-left", (SENSOR_SECONDS - 2) * RATE)?;
    misses_nothing(boot, "stability", (SENSOR_SECONDS - 2) * RATE / 4)
}

/// Checks that a reader got so many messages at least, and missed none, whatever else broke.
fn misses_nothing(boot: &Observed, reader: &str, messages: u64) -> Result<(), String> {
    let reports = boot.reports_of(reader, false);
    let report = reports.last().ok_or_else(|| format!("`{reader}` said nothing of its pipe"))?;
    let is_whole = report.lost == 0 && report.messages >= messages;
    if is_whole { Ok(()) } else { Err(format!("`{reader}`: {report:?}")) }
}

fn blocks(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "reader", (DISK_SECONDS - 2) * RUNS)
}

fn both_disks(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "player", (DISK_SECONDS - 2) * SCENES)?;
    passes(boots, ("recorder", true), (DISK_SECONDS - 2) * RECORDS)
}

fn log_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of record were lost")?;
    misses_nothing(boot, "player", (DISK_SECONDS - 2) * SCENES)
}

fn stored(boots: &[Observed]) -> Result<(), String> {
    passes(boots, ("recorder", true), (DISK_SECONDS - 2) * STORES)
}

fn disk_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of record were lost")
}

fn heard(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "listener", (FRAME_SECONDS - 2) * FRAME_RATE)
}

fn network_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of frames were lost")
}

fn told(boots: &[Observed]) -> Result<(), String> {
    passes(boots, ("talker", true), (FRAME_SECONDS - 2) * TOLD_RATE)
}

/// The device is away for half a second, in which frames are written.
fn told_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of frames were lost")?;
    let lost = boot.reports_of("talker", true).last().map_or(0, |report| u64::from(report.lost));
    if lost >= TOLD_RATE / 2 { Ok(()) } else { Err(format!("{lost} frames were named")) }
}

fn both_ways(boots: &[Observed]) -> Result<(), String> {
    comes(boots, "listener", (FRAME_SECONDS - 2) * WAYS_RATE)?;
    passes(boots, ("talker", true), (FRAME_SECONDS - 2) * WAYS_BACK)
}

/// The device is away for half a second, and both programs hear of it.
fn ways_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.breaks("messages of comes were lost")?;
    boot.breaks("messages of goes were lost")
}

/// The writer crashes after a second and a half. The one after it hears of the device that was
/// there before, and the other pipe hears of nothing.
fn writes_on(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let starts = boot.process("talker")?.starts;
    if starts != 2 {
        return Err(format!("the writer was started {starts} times"));
    }
    comes(boots, "listener", (FRAME_SECONDS - 2) * WAYS_RATE)?;
    passes(boots, ("talker", true), WAYS_BACK)
}

/// Checks that a reader got so many messages of its pipe at least, and missed none.
fn comes(boots: &[Observed], reader: &str, messages: u64) -> Result<(), String> {
    passes(boots, (reader, false), messages)
}

/// Checks that a reader got, or a writer delivered, so many messages of its pipe at least, and
/// missed none.
fn passes(
    boots: &[Observed],
    (program, to_device): (&str, bool),
    messages: u64,
) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let reports = boot.reports_of(program, to_device);
    let report = reports.last().ok_or_else(|| format!("`{program}` said nothing of its pipe"))?;
    println!("{report:?}");
    if report.lost > 0 || report.outside > 0 || report.messages < messages {
        return Err(format!("`{program}`: {report:?}"));
    }
    Ok(())
}

/// The packets come at the right rate by the clock of the sensor, and that is not the host's.
fn drifts(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    if boot.holds().is_ok() {
        return Err("a clock that runs 5,000 millionths too fast holds".into());
    }
    let findings = boot.verdict.findings().join("; ");
    println!("{findings}");
    match findings.contains("the clock of the device that samples is measured by") {
        true => Ok(()),
        false => Err(findings),
    }
}
