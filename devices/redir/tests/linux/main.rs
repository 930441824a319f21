//! An unmodified Linux driver at a device model, in QEMU, in step: frames arrive, none is lost, and
//! every run is the same.
//!
//! Not in the normal run: it downloads a kernel once and boots it again and again.
//! `cargo test -p diapason-redir --test linux -- --ignored --nocapture --test-threads 1`

use diapason_abi::Nanos;
use diapason_can::fd::LENGTHS;
use diapason_can::frame::extended;
use diapason_can::{AnyFrame, BitRate, CanFrame, FdFrame};
use diapason_devices::UsbDevice;
use diapason_devices::can::{BUSY, BusLoad, CanBus, Sent};
use diapason_devices::gs_usb::GsUsbModel;
use diapason_devices::kvaser::{Hydra, Identity};
use diapason_redir::linux::{Drivers, Guest, GuestProgram};
use diapason_redir::{DeviceServer, Emulator, RunEnding, RunPlan, RunReport};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Returns the program of a guest with these drivers.
fn program(drivers: Drivers) -> GuestProgram {
    GuestProgram { name: "exchange", source: include_str!("init.c"), drivers, tools: None }
}

/// Wall time without a sign of life after which a run is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// When a run ends. The guest is through by then.
const END: Nanos = Nanos::from_millis(9_000);
/// Frames that each channel sends, and at which it has received enough.
const SEND: u32 = 50;
const RECEIVE: u32 = 300;
/// The identifier it sends with.
const SENT_ID: u32 = 0x7f0;
/// Frames kept of each bus: more than a run has.
const RECORD: usize = 100_000;
/// The rate of the data of CAN FD.
const DATA_RATE: u32 = 2_000_000;
/// An extended identifier in Linux.
const EXTENDED: u32 = 1 << 31;

/// A run: what the server says, what the guest printed, what was on the buses.
struct Run {
    report: RunReport,
    console: String,
    buses: Vec<Vec<Sent>>,
}

#[test]
#[ignore = "boots Linux: about a minute, and a download"]
fn an_unmodified_driver_exchanges_frames() {
    let Some(guest) = guest(Drivers::Kvaser) else { return };
    let run = run(&guest, Nanos::from_millis(1), KVASER);
    check(&run);
}

#[test]
#[ignore = "boots Linux twice"]
fn an_unmodified_gs_usb_driver_exchanges_frames_and_two_runs_are_one() {
    let Some(guest) = guest(Drivers::GsUsb) else { return };
    repeat(&guest, Nanos::from_millis(1), &[0, 2], GS_USB);
}

#[test]
#[ignore = "boots Linux"]
fn an_unmodified_gs_usb_driver_exchanges_frames_of_can_fd() {
    let Some(guest) = guest(Drivers::GsUsb) else { return };
    let run = run_on(&guest, Nanos::from_millis(1), GS_USB, flexible_buses(), DATA_RATE);
    check(&run);
    let lengths = |bus: &Vec<Sent>| bus.iter().filter(|sent| sent.frame.is_fd()).count();
    assert!(run.buses.iter().all(|bus| lengths(bus) > SEND as usize + 1_000));
}

/// Returns five buses with frames of both formats, as many of each length.
fn flexible_buses() -> Vec<CanBus> {
    let (rate, data) = (BitRate::new(500_000), BitRate::of_data(DATA_RATE));
    let (Ok(rate), Ok(data)) = (rate, data) else { return Vec::new() };
    let bus = |number: u32| {
        let bus = CanBus::with_data_rate(rate, data);
        let frames = (0..3_000u32).map(|count| {
            let id = extended((count % 29) << 12 | number).unwrap();
            let bytes = [count as u8; 64];
            let length = LENGTHS[count as usize % 16].0 as usize;
            let frame: AnyFrame = match count % 3 {
                0 => CanFrame::data(id, &bytes[..length.min(8)]).unwrap().into(),
                kind => FdFrame::new(id, &bytes[..length]).unwrap().with_fast(kind == 1).into(),
            };
            (Nanos(u64::from(count) * 2_900_000), frame)
        });
        bus.add_replay(frames.collect());
        bus
    };
    (0..5).map(bus).collect()
}

#[test]
#[ignore = "boots Linux five times"]
fn five_runs_are_one_two_of_them_beside_busy_loops() {
    let Some(guest) = guest(Drivers::Kvaser) else { return };
    repeat(&guest, Nanos::from_millis(1), &[0, 0, 0, 2, 4], KVASER);
}

#[test]
#[ignore = "boots Linux three times"]
fn so_they_are_with_eight_stops_a_millisecond() {
    let Some(guest) = guest(Drivers::Kvaser) else { return };
    repeat(&guest, Nanos::from_micros(125), &[0, 0, 2], KVASER);
}

/// Runs once for each of `loops`, beside so many busy loops; all runs must be the same.
fn repeat(guest: &Guest, slice: Nanos, loops: &[usize], interface: Interface) {
    let mut first: Option<Run> = None;
    for &count in loops {
        let run = beside(count, || run(guest, slice, interface));
        say(&format!("{} ns, {count} busy loops: {:x?}", slice.0, run.report));
        check(&run);
        if let Some(first) = &first {
            assert_eq!(first.console, run.console);
            assert_eq!(first.report, run.report);
        }
        first.get_or_insert(run);
    }
}

/// Returns the guest's kernel, or says loudly that there is none.
fn guest(drivers: Drivers) -> Option<Guest> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux");
    Guest::prepare_or_say(&cache, program(drivers))
}

/// Past the test harness, which keeps what passing tests print to itself.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("diapason-redir-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A driver, and how its interface on some buses is made.
type Interface = (&'static str, fn(&[Option<CanBus>]) -> Box<dyn UsbDevice>);

const KVASER: Interface = ("kvaser_usb", |buses| Box::new(Hydra::new(Identity::default(), buses)));
const GS_USB: Interface = ("gs_usb", |buses| Box::new(GsUsbModel::new(1, buses)));

fn run(guest: &Guest, slice: Nanos, interface: Interface) -> Run {
    run_on(guest, slice, interface, (0..5).filter_map(CanBus::busy).collect(), 0)
}

/// Runs on these buses. A rate of data turns on CAN FD.
fn run_on(
    guest: &Guest,
    slice: Nanos,
    (driver, interface): Interface,
    buses: Vec<CanBus>,
    data_rate: u32,
) -> Run {
    let folder = folder();
    for bus in &buses {
        // Somebody who acknowledges while the guest boots.
        bus.add_unit(Vec::new());
        bus.record(RECORD);
    }
    let plugged: Vec<Option<CanBus>> = buses.iter().cloned().map(Some).collect();
    let device = interface(&plugged);
    let plan = RunPlan { slice, end: END, status: 7, patience: PATIENCE, ..RunPlan::default() };
    let server = DeviceServer::start(&folder, vec![device], plan).unwrap();
    let console = folder.join("console");
    let mut command = qemu(guest, driver, &console, data_rate);
    command.args(server.arguments());
    let mut emulator = Emulator::start(&mut command).unwrap();
    let (report, _) = server.run(|_, _| {}).unwrap();
    assert_eq!(emulator.wait(PATIENCE).unwrap().unwrap().code(), Some(7));
    let console = String::from_utf8_lossy(&std::fs::read(console).unwrap()).into_owned();
    std::fs::remove_dir_all(folder).unwrap();
    Run { report, console, buses: buses.iter().map(CanBus::take_record).collect() }
}

fn qemu(guest: &Guest, driver: &str, console: &Path, data_rate: u32) -> Command {
    let rate = |bus: &(u32, BusLoad)| if data_rate > 0 { 500_000 } else { bus.0 };
    let rates: Vec<String> = BUSY.iter().map(|bus| rate(bus).to_string()).collect();
    let words = format!("rates={} send={SEND} receive={RECEIVE}", rates.join(","));
    let words = format!("{words} data_rate={data_rate}");
    guest.command(&format!("driver={driver} {words}"), console)
}

/// Checks that every frame of every bus arrived, in order, and every frame of the guest left.
fn check(run: &Run) {
    assert_eq!((run.report.ending, run.report.time), (RunEnding::Planned, END));
    assert!(run.console.contains("guest: done"), "{}", run.console);
    for (channel, bus) in run.buses.iter().enumerate() {
        let own = |sent: &&Sent| sent.frame.raw_id() == SENT_ID;
        let numbers: Vec<Vec<u8>> =
            bus.iter().filter(own).map(|sent| sent.frame.bytes()[..4].to_vec()).collect();
        let expected: Vec<Vec<u8>> = (0..SEND).map(|n| n.to_le_bytes().to_vec()).collect();
        assert_eq!(numbers, expected, "channel {channel}");
        let others: Vec<AnyFrame> =
            bus.iter().map(|sent| sent.frame).filter(|frame| frame.raw_id() != SENT_ID).collect();
        let received = |start: usize| line(channel, others.get(start..start + RECEIVE as usize));
        let found = (0..others.len()).any(|start| run.console.contains(&received(start)));
        assert!(found, "channel {channel}: {}", run.console);
    }
}

/// Returns the line that the guest prints if it has received exactly these frames.
fn line(channel: usize, frames: Option<&[AnyFrame]>) -> String {
    let Some(frames @ [first, ..]) = frames else { return "never".into() };
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in frames.iter().flat_map(|frame| linux(*frame)) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let first = linux(*first);
    let id = u32::from_le_bytes(first[..4].try_into().unwrap());
    let data = u64::from_le_bytes(first[8..16].try_into().unwrap());
    format!("can{channel} received {RECEIVE} from {id:x} {data:x} hash {hash:x} sent {SEND}")
}

/// A frame as Linux has it.
fn linux(frame: AnyFrame) -> Vec<u8> {
    let mut bytes = vec![0; if frame.is_fd() { 72 } else { 16 }];
    let id = frame.raw_id() | if frame.is_extended() { EXTENDED } else { 0 };
    bytes[..4].copy_from_slice(&id.to_le_bytes());
    bytes[4] = frame.bytes().len() as u8;
    if let AnyFrame::Fd(frame) = frame {
        // The driver marks such frames.
        let (fast, passive) = (u8::from(frame.is_fast()), u8::from(frame.is_passive()));
        bytes[5] = 4 + fast + 2 * passive;
    }
    bytes[8..8 + frame.bytes().len()].copy_from_slice(frame.bytes());
    bytes
}

/// Does something while so many threads do nothing, as fast as they can.
fn beside<T>(loops: usize, act: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = act();
        stop.store(true, Ordering::Relaxed);
        result
    })
}
