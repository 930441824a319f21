//! Floods at an adapter of a whole system: sound frames for a program that cannot keep up, up to
//! ten times as many as it can take, and then malformed frames beside them. A periodic program on
//! the same adapter loses nothing, the other one takes as many as at its best, the server of the
//! adapter stays within its budget, and every frame is counted.

use super::buffers::changed;
use crate::qemu_tests::observed::Observed;
use crate::qemu_tests::udp::{balanced, frames};
use core::net::{Ipv4Addr, SocketAddrV4};
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::FrameRow;
use diapason::session::Session;
use diapason::simulate::usual;
use diapason::surroundings::Functions;
use diapason_abi::Nanos;
use diapason_ether::{Discard, UdpFrame};
use diapason_pipe::measured::FrameEnd;
use diapason_sim::{CARD, Card, EthernetWire, Flood};

const SYSTEM: &str = "tests/systems/udp-flood.toml";
/// A program that takes whatever comes, on a share of its own.
const MONITOR: &str = r#"
[[socket]]
name = "monitor"
adapter = "nic1"
process = "monitor"
port = 5001
bytes = 64
peer = "10.0.0.1:4001"
peer_mac = "02:00:00:00:00:01"

[[process]]
name = "monitor"
program = "udp-ping"
priority = 25
vcpu = "monitor-cpu"
stack = "32K"
arguments = [60000000, 64, 0, 2]

[[vcpu]]
name = "monitor-cpu"
budget = "100us"
period = "4ms"
replenishments = 6

[[work]]
name = "socket.take"
worst = "30us"
"#;
/// When floods begin, and how long they last.
const FROM: Nanos = Nanos::from_millis(300);
const LENGTH: Nanos = Nanos::from_secs(1);
/// Frames for which the share of the monitor would be enough if each took only its 30 us.
const CAPACITY: u64 = 833;
/// The floods, in tenths of the capacity.
const LOADS: [u64; 6] = [5, 10, 15, 20, 50, 100];
/// Malformed frames of each kind in a second.
const MALFORMED: u64 = 1_000;
/// The datagrams that the periodic program sends, and the one that the monitor does.
const BESIDE: u64 = 1_500;
/// The share of the server that receives, in millionths, and what it may be beyond.
const SERVER_PPM: u64 = 300_000;
const BEYOND_PPM: u64 = 10_000;

/// Returns a sound frame for the monitor.
fn sound() -> Vec<u8> {
    let flow = UdpFrame {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        tag: None,
        source: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4001),
        destination: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 5001),
        checksum: true,
    };
    let mut frame = vec![0; 60];
    let written = flow.write(&[7; 18], &mut frame);
    assert_eq!(written, Some(60), "it fills a frame");
    frame
}

/// Returns frames that are wrong in one field each.
fn malformed() -> Vec<Vec<u8>> {
    // Where, and what is there instead: kind of frame; version, length of the header, of the
    // packet; a fragment; protocol; checksum; addresses; ports; length and checksum of UDP.
    let fields: [(usize, u8); 14] = [
        (12, 0x86),
        (14, 0x65),
        (14, 0x44),
        (14, 0x4f),
        (16, 0xff),
        (17, 0x05),
        (20, 0x20),
        (23, 6),
        (24, 0x55),
        (26, 0xe0),
        (30, 0xff),
        (36, 0),
        (38, 0xff),
        (41, 0x77),
    ];
    let mut frames: Vec<Vec<u8>> = fields.iter().map(|_| sound()).collect();
    for (frame, (at, byte)) in frames.iter_mut().zip(fields) {
        assert_ne!(frame[at], byte, "byte {at} is as it was");
        frame[at] = byte;
    }
    frames
}

/// Returns both cards on their wire, with so many sound frames a second, and so many malformed ones
/// of each kind.
fn around(rate: u64, wrong: u64) -> Functions {
    let wire = EthernetWire::new(1_000);
    let (control, mut drive) = (Card::new(&wire), Card::new(&wire));
    let flood = |frame: Vec<u8>, rate: u64| Flood {
        from: FROM,
        until: FROM + LENGTH,
        rate,
        frame,
        words: String::from("a flood"),
    };
    drive.flood(flood(sound(), rate));
    for frame in malformed().into_iter().filter(|_| wrong > 0) {
        drive.flood(flood(frame, wrong));
    }
    vec![(CARD, Box::new(control)), (CARD, Box::new(drive))]
}

/// Returns how many frames the monitor took of a flood of so many a second, with so many malformed
/// ones of each kind.
fn taken(session: &Session, rate: u64, wrong: u64) -> Result<u64, String> {
    let functions = around(rate, wrong);
    let boot = Observed::simulate_among(session, functions, &usual(session, None))?;
    boot.logged("control", "UDP WHOLE")?;
    let adapter = frames(&boot, "net1", FrameEnd::Adapter)?;
    let drive = frames(&boot, "drive", FrameEnd::Program)?;
    let monitor = frames(&boot, "monitor", FrameEnd::Program)?;
    for row in [adapter, drive, monitor] {
        balanced(row)?;
    }
    let all = rate + wrong * malformed().len() as u64 + BESIDE;
    let passed = drive.last.offered + monitor.last.offered;
    if (adapter.last.offered, adapter.last.passed) != (all, passed) {
        return Err(format!("of {all} frames: {adapter:?}, {passed} came"));
    }
    // Each malformed frame is discarded by the adapter's server or by the program.
    let late = adapter.of(Discard::Quota);
    let discarded = |row: &FrameRow| row.discarded.iter().sum::<u64>();
    let unsound = discarded(adapter) - late + discarded(monitor);
    let taken = monitor.last.passed;
    println!("{rate} + {wrong}: {taken} taken, {late} too many, {unsound} malformed");
    if drive.last.passed != BESIDE || taken + late + unsound != all - BESIDE {
        return Err(format!("{adapter:?}, {drive:?}, {monitor:?}"));
    }
    let mut vcpus = boot.run.outcome.vcpus.iter();
    let receives = vcpus.find(|row| boot.names.vcpu(row.vcpu, None) == "nic1.receive");
    let used = receives.map(|row| row.used_ns + row.background_ns).ok_or("no VCPU receives")?;
    let share = used * 1_000_000 / LENGTH.0;
    if share > SERVER_PPM + BEYOND_PPM {
        return Err(format!("the server used {share} ppm"));
    }
    boot.holds()?;
    Ok(taken)
}

/// Floods the system with each load.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let text = std::fs::read_to_string(workspace.root().join(SYSTEM));
    let text = text.map_err(|error| error.to_string())? + MONITOR;
    let session = changed(SYSTEM, built, &text)?;
    if !session.proved {
        return Err("the plan does not hold".into());
    }
    let load = |tenths| taken(&session, CAPACITY * tenths / 10, 0);
    let all = LOADS.into_iter().map(load).collect::<Result<Vec<u64>, String>>()?;
    let peak = all.iter().copied().max().unwrap_or(0);
    let last = all.last().copied().unwrap_or(0);
    // Half of the capacity is taken whole, and ten times of it is not.
    if all[0] != CAPACITY / 2 || peak > 2 * CAPACITY || last * 100 < peak * 95 {
        return Err(format!("frames that were taken: {all:?}"));
    }
    taken(&session, 10 * CAPACITY, MALFORMED).map(|_| ())
}
