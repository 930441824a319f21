//! UDP between two adapters, and by a USB network device: `netd`, sockets and programs, in QEMU and
//! on models.

use super::{Observed, QemuTest};
use diapason::outcome::FrameRow;
use diapason_ether::Discard;
use diapason_pipe::measured::FrameEnd;

const SYSTEM: &str = "tests/systems/udp.toml";
const PORTABLE: &str = "tests/systems/udp-portable.toml";
const TWO: &str = "examples/udp-two.toml";
const USB: &str = "examples/udp-usb.toml";
const BY_USB: &str = "datagrams of a USB network device keep their bounds";
/// The seconds of a run with it, and the datagrams that come to each socket in one.
const USB_SECONDS: u64 = 4;
const USB_RATE: u64 = 250;
const USB_PULLED: &str = "sockets of a USB network device that was pulled out go on";

/// The tests of this file.
pub const TESTS: &[QemuTest] = &[
    QemuTest {
        horizon_ns: HORIZON_NS,
        ..QemuTest::new("datagrams come back whole, and strangers' are counted", SYSTEM, whole)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        ..QemuTest::simulated("datagrams come back whole from a model's wire", SYSTEM, whole)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        ..QemuTest::new("datagrams of a client for `embedded-nal` come back", PORTABLE, portable)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        ..QemuTest::simulated(
            "datagrams of a client for `embedded-nal` come back",
            PORTABLE,
            portable,
        )
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        ..QemuTest::new("datagrams of two urgencies keep their bounds", TWO, kept)
    },
    QemuTest {
        horizon_ns: HORIZON_NS,
        works: true,
        ..QemuTest::simulated("datagrams of two urgencies keep their bounds", TWO, kept)
    },
    QemuTest { horizon_ns: USB_SECONDS * 1_000_000_000, ..QemuTest::new(BY_USB, USB, by_usb) },
    QemuTest {
        horizon_ns: USB_SECONDS * 1_000_000_000,
        works: true,
        ..QemuTest::simulated(BY_USB, USB, by_usb)
    },
    QemuTest {
        horizon_ns: USB_SECONDS * 1_000_000_000,
        faults: &["1s unplug nic0 500ms"],
        ..QemuTest::simulated(USB_PULLED, USB, usb_pulled)
    },
    flood("a flood of 1,000 frames a second", &["300ms flood nic1 1000 1s"], |boots| {
        flooded(boots, 1_000)
    }),
    flood("a flood of 10,000 frames a second", &["300ms flood nic1 10000 1s"], |boots| {
        flooded(boots, 10_000)
    }),
    flood("a flood of 100,000 frames a second", &["300ms flood nic1 100000 1s"], |boots| {
        flooded(boots, 100_000)
    }),
];

/// A test with a stranger who sends for a second, beside a program that sends for longer.
const fn flood(
    name: &'static str,
    faults: &'static [&'static str],
    check: fn(&[Observed]) -> Result<(), String>,
) -> QemuTest {
    let test = QemuTest::simulated(name, "tests/systems/udp-flood.toml", check);
    QemuTest { horizon_ns: 3_200_000_000, works: true, faults, ..test }
}

/// Everything is sent within half a second, and reported once a second.
const HORIZON_NS: u64 = 2_500_000_000;
/// The datagrams that the program sends.
const SENT: u64 = 400;

fn whole(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.logged("control", "UDP WHOLE")?;
    boot.logged("drive", &format!("ECHO {SENT} 0 {SENT}"))?;
    // One socket asks for a port that nobody has there, and its frames are counted as such.
    let server = frames(boot, "net1", FrameEnd::Adapter)?;
    balanced(server)?;
    if server.of(Discard::Unregistered) != SENT || server.last.passed != SENT {
        return Err(format!("the server of the second adapter counted {server:?}"));
    }
    boot.holds()
}

/// A client that knows the traits only gets its answers, and a refusal of what nobody declared.
fn portable(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.logged("control", &format!("PORTABLE {SENT} {SENT} 0"))?;
    boot.logged("drive", &format!("ECHO {SENT} 0 {SENT}"))?;
    boot.holds()
}

/// Every program got its datagrams, the rare ones too, and none beyond its bound.
fn kept(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    for (process, least) in
        [("control", 1_900), ("drive", 1_900), ("monitor", 90), ("recorder", 90)]
    {
        let program = frames(boot, process, FrameEnd::Program)?;
        balanced(program)?;
        if program.last.passed < least {
            return Err(format!("{process} got {} datagrams only", program.last.passed));
        }
    }
    boot.holds()
}

/// Both programs of a USB device got what came for them, whole, and one of them sent all back.
fn by_usb(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    answered(boot, (USB_SECONDS - 2) * USB_RATE)?;
    let server = frames(boot, "net-in", FrameEnd::Adapter)?;
    if server.last.offered != server.last.passed {
        return Err(format!("the reader of the pipe counted {server:?}"));
    }
    boot.holds()
}

/// Each pipe names what was lost with the device, and all that came later reached its program.
fn usb_pulled(boots: &[Observed]) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    answered(boot, (USB_SECONDS - 3) * USB_RATE)?;
    boot.breaks("messages of comes were lost")?;
    boot.breaks("messages of goes were lost")
}

/// Each program of the USB device got at least so many datagrams, none of them wrong, and as many
/// answers were sent.
fn answered(boot: &Observed, least: u64) -> Result<(), String> {
    let sent = frames(boot, "net-out", FrameEnd::Adapter)?.last.sent;
    for process in ["drive", "recorder"] {
        let program = frames(boot, process, FrameEnd::Program)?;
        balanced(program)?;
        let passed = program.last.passed;
        if passed < least || sent < least || program.last.offered != passed {
            return Err(format!("{process} got {passed} datagrams, and {sent} were sent"));
        }
    }
    Ok(())
}

/// Returns the report of a process on the one end of this kind that it has.
pub fn frames<'o>(
    boot: &'o Observed,
    process: &str,
    end: FrameEnd,
) -> Result<&'o FrameRow, String> {
    let place = boot.process(process)?.process;
    let is = |row: &&FrameRow| (row.process, row.last.end) == (place, end);
    let found = boot.run.outcome.frames.iter().find(is);
    found.ok_or_else(|| format!("{process} did not report on {end:?}"))
}

/// Returns an error unless every frame that was offered was passed on or counted by reason.
pub fn balanced(row: &FrameRow) -> Result<(), String> {
    let discarded: u64 = row.discarded.iter().sum();
    let is_balanced = row.last.offered == row.last.passed + discarded;
    is_balanced.then_some(()).ok_or_else(|| format!("frames are missing: {row:?}"))
}

/// The datagrams that the program sends beside a flood.
const BESIDE: u64 = 1_500;

/// A flood of `rate` frames took nothing from the program, and each frame of it is counted.
fn flooded(boots: &[Observed], rate: u64) -> Result<(), String> {
    let [boot] = boots else { return Err("one boot is needed".into()) };
    boot.logged("control", "UDP WHOLE")?;
    let adapter = frames(boot, "net1", FrameEnd::Adapter)?;
    let server = frames(boot, "net1", FrameEnd::Server)?;
    let program = frames(boot, "drive", FrameEnd::Program)?;
    for row in [adapter, server, program] {
        balanced(row)?;
    }
    if adapter.of(Discard::Unregistered) != rate || adapter.last.offered != rate + BESIDE {
        return Err(format!("of a flood of {rate} frames: {adapter:?}"));
    }
    if [adapter, server, program].iter().any(|row| row.last.passed != BESIDE) {
        return Err(format!("datagrams are missing: {server:?} {program:?}"));
    }
    boot.holds()
}
