//! The USB server with devices of many classes, on both machines; with devices that come and go,
//! and with hostile ones, in the simulator.

use super::{Observed, QemuTest};
use crate::usb::{WAVES, Wave, around, beside};

const DEVICES: &str = "examples/usb-devices.toml";
const NETWORK: &str = "examples/network.toml";
const EMULATED: &str = "tests/systems/usb-qemu.toml";
/// A disk that is not what is plugged in.
const REFUSED: &str = "tests/systems/refused.toml";
/// A camera behind hubs of SuperSpeed.
const SUPERSPEED: &str = "tests/systems/usb-superspeed.toml";
const SECONDS: u64 = 4;
/// The packets of a second, less some for the first, in which devices are found.
const PACKETS: u64 = 400;
const FRAMES: u64 = 50;
const KEYS: u64 = 8;
const ECHOES: u64 = 300;
const MEBIBYTES: &str = "16";

const NAME: &str = "a sensor, a keyboard behind a hub, a disk and a camera are served whole";
const FOUND: &str = "devices that are found cost a camera no frame";
const ECHOED: &str = "a network device carries echoes of every length";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(NAME, DEVICES, whole) },
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::simulated(NAME, DEVICES, whole) },
    QemuTest {
        // A hub with a keyboard, a sensor and a disk are found anew while the camera sends.
        horizon_ns: SECONDS * 1_000_000_000,
        faults: &[
            "1200ms unplug hub 100ms",
            "1500ms unplug sensor 100ms",
            "1800ms unplug keyboard 100ms",
            "2100ms unplug disk 100ms",
        ],
        ..QemuTest::simulated(FOUND, DEVICES, undisturbed)
    },
    QemuTest {
        // The disk works in the time of the host. The guest works meanwhile, which takes longer in
        // the time of the host than in its own.
        horizon_ns: 20_000_000_000,
        ..QemuTest::new(
            "QEMU's own disk and keyboard: 64 MiB written and read again, keys typed",
            EMULATED,
            emulated,
        )
    },
    QemuTest { horizon_ns: SECONDS * 1_000_000_000, ..QemuTest::new(ECHOED, NETWORK, answered) },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        ..QemuTest::simulated(ECHOED, NETWORK, answered)
    },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        faults: &["1500ms unplug adapter 500ms"],
        ..QemuTest::simulated(
            "a network device that is pulled out costs one echo at most",
            NETWORK,
            replugged,
        )
    },
    QemuTest {
        horizon_ns: 5_000_000_000,
        ..QemuTest::new(
            "QEMU's own network: an address, and 3000 echoes of every length",
            "tests/systems/network-qemu.toml",
            emulated_network,
        )
    },
    QemuTest {
        horizon_ns: 25_000_000_000,
        ..QemuTest::new(
            "QEMU's own network device, pulled out and plugged in all the time",
            "tests/systems/network-loose.toml",
            loose,
        )
    },
    QemuTest {
        horizon_ns: SECONDS * 1_000_000_000,
        ..QemuTest::simulated("a camera behind two SuperSpeed hubs", SUPERSPEED, behind_hubs)
    },
    QemuTest::new("a device that is not the described one is told by its name", REFUSED, told),
    QemuTest::simulated(
        "a device that is not the described one is told by its name",
        REFUSED,
        told,
    ),
    QemuTest {
        horizon_ns: 2_500_000_000,
        ..QemuTest::new("a link that never forms is told", "examples/links/peer.toml", told)
    },
    QemuTest {
        horizon_ns: 2_500_000_000,
        ..QemuTest::new("a debug target without a link is told", "examples/links/target.toml", told)
    },
    QemuTest {
        horizon_ns: 8_500_000_000,
        among: Some(|| around(Wave::Sound, 6, 0)),
        ..QemuTest::simulated(
            "devices that come and go leave nothing behind",
            WAVES,
            comes_and_goes,
        )
    },
    QemuTest {
        // The length is such that the heap has been at its fullest in the first half.
        horizon_ns: 105_000_000_000,
        among: Some(|| around(Wave::Hostile, 80, 1)),
        ..QemuTest::simulated("hostile devices disturb no other", WAVES, hostile)
    },
];

/// The run names the device that is not the described one, or the link that never formed.
fn told(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    const EXPECTED: [&str; 3] = [
        "alarm device-unserved: device stick was not served: the device 1209:0003 at port 3 is \
         not the described one",
        "alarm link-absent: link 0 of usbd never formed in 2.500 s: no other computer was found",
        "alarm link-absent: link 0 of dbcd never formed in 2.500 s: no other computer was found",
    ];
    match boot.holds() {
        Err(found) if EXPECTED.contains(&found.as_str()) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Returns the number in this place of the last line that begins so.
fn last(boot: &Observed, process: &str, begins: &str, place: usize) -> Result<u64, String> {
    let log = boot.log(process);
    let line = log.iter().rev().find(|line| line.starts_with(begins));
    let line = line.ok_or(format!("{process} said nothing like `{begins}`"))?;
    let word = line.split_whitespace().nth(place).and_then(|word| word.parse().ok());
    word.ok_or(format!("{process}: {line}"))
}

fn at_least(what: &str, found: u64, least: u64) -> Result<(), String> {
    if found >= least { Ok(()) } else { Err(format!("{found} {what}, not {least}")) }
}

/// Checks that the last line of a process is its verdict, and a good one.
fn verdict(boot: &Observed, process: &str, begins: &str) -> Result<(), String> {
    let log = boot.log(process);
    let good = log.iter().any(|line| line.starts_with(begins));
    if good { Ok(()) } else { Err(format!("{process}: {:?}", log.last())) }
}

fn whole(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let full = SECONDS - 2;
    for (process, begins, least) in [
        ("sensor-reader", "SENSOR", PACKETS),
        ("camera-check", "CAMERA", FRAMES),
        ("key-reader", "KEYS", KEYS),
    ] {
        at_least(begins, last(boot, process, begins, 1)?, full * least)?;
        at_least(&format!("of {begins} fine"), 1, 1 + last(boot, process, begins, 2)?)?;
    }
    verdict(boot, "disk-check", &format!("DISK WHOLE {MEBIBYTES} MiB"))
}

/// No alarm of the camera rings, and its client has every frame.
fn undisturbed(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    at_least("CAMERA", last(boot, "camera-check", "CAMERA", 1)?, (SECONDS - 2) * FRAMES)?;
    for place in [2, 3] {
        at_least("of CAMERA fine", 1, 1 + last(boot, "camera-check", "CAMERA", place)?)?;
    }
    let keyboards = boot.log("usbd").iter().filter(|line| line.contains("a keyboard")).count();
    at_least("keyboards found", keyboards as u64, 3)
}

fn behind_hubs(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    at_least("CAMERA", last(boot, "camera-check", "CAMERA", 1)?, (SECONDS - 2) * FRAMES)?;
    at_least("of CAMERA fine", 1, 1 + last(boot, "camera-check", "CAMERA", 2)?)?;
    let hubs = boot.log("usbd").iter().filter(|line| line.starts_with("hub: 4 ports")).count();
    at_least("hubs", hubs as u64, 2)
}

fn emulated(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    // Somebody types in the time of the host, so the number of keys differs.
    at_least("keys", last(boot, "key-reader", "KEYS", 1)?, 1)?;
    verdict(boot, "disk-check", "DISK WHOLE 64 MiB")
}

fn comes_and_goes(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    let said = beside(boot, Wave::Sound)?;
    println!("{said}");
    Ok(())
}

fn hostile(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    println!("{}", beside(boot, Wave::Hostile)?);
    Ok(())
}

/// Returns the counts of `net-echo`: echoes, answers, of them lost and wrong, and devices.
fn echoes(boot: &Observed, begins: &str, first: usize) -> Result<[u64; 4], String> {
    let number = |place| last(boot, "net-echo", begins, first + place);
    Ok([number(0)?, number(1)?, number(2)?, number(3)?])
}

/// The model answers as long as it runs.
fn answered(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let [answered, lost, wrong, devices] = echoes(boot, "NETWORK", 2)?;
    at_least("echoes", answered, (SECONDS - 1) * ECHOES)?;
    exactly(&[lost, wrong, devices], &[0, 0, 1])
}

fn emulated_network(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let [answered, lost, wrong, devices] = echoes(boot, "NETWORK WHOLE", 2)?;
    exactly(&[answered, lost, wrong, devices], &[3000, 0, 0, 1])?;
    boot.logged("net-echo", "the network gives 10.0.2.15/24")
}

/// Each time the device goes, one echo may go with it.
fn loose(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let [answered, lost, wrong, devices] = echoes(boot, "NETWORK", 2)?;
    println!("{answered} echoes, {lost} lost, {devices} devices");
    at_least("devices", devices, 2)?;
    at_least("echoes", answered, 100)?;
    exactly(&[wrong, lost.saturating_sub(devices)], &[0, 0])
}

/// Faults of the simulator: out at 1.5 s, in again at 2 s.
fn replugged(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.holds()?;
    let [answered, lost, wrong, devices] = echoes(boot, "NETWORK", 2)?;
    at_least("echoes", answered, (SECONDS - 2) * ECHOES)?;
    exactly(&[wrong, devices, lost.saturating_sub(1)], &[0, 2, 0])
}

fn exactly(found: &[u64], wanted: &[u64]) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{found:?}, not {wanted:?}")) }
}
