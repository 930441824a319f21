//! The device server with an emulator that is real, and with one that is not what it should be.

mod support;

use diapason_abi::Nanos;
use diapason_redir::plugin::{self, Unavailable};
use diapason_redir::protocol::{AddressedPacket, CAPABILITIES, RedirPacket, encode};
use diapason_redir::{
    AdapterFrame, DeviceServer, Emulator, RunEnding, RunError, RunPlan, RunReport, Stop, Trouble,
    Wires, firmware,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::Bench;

const MS: Nanos = Nanos::from_millis(1);

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    /// A comma in its name: QEMU's options must quote it.
    fn new(name: &str) -> Folder {
        let name = format!("diapason-redir-{},{name}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns whether a server can run on this machine. If not, says so past the test harness.
fn possible(folder: &Folder) -> bool {
    match plugin::build(&folder.0, &plugin::CLOCK) {
        Ok(_) => true,
        Err(why @ (Unavailable::Folder(_) | Unavailable::Refused(_))) => panic!("{why}"),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED, NOTHING WAS TESTED: {why}");
            false
        }
    }
}

fn plan(end: Nanos) -> RunPlan {
    let patience = Duration::from_millis(300);
    RunPlan { slice: MS, end, status: 5, patience, ..RunPlan::default() }
}

fn serve(
    folder: &Folder,
    plan: RunPlan,
    fake: impl FnOnce(&Path) + Send,
) -> Result<RunReport, RunError> {
    let server = DeviceServer::start(&folder.0, vec![Box::new(Bench::new())], plan)?;
    std::thread::scope(|scope| {
        scope.spawn(|| fake(&folder.0));
        server.run(|_, _| {}).map(|(report, _)| report)
    })
}

fn connect(folder: &Path) -> (UnixStream, UnixStream) {
    connect_as(folder, 0)
}

fn connect_as(folder: &Path, guest: usize) -> (UnixStream, UnixStream) {
    let connect = |name: String| UnixStream::connect(folder.join(name)).unwrap();
    (connect(format!("clock{guest}.sock")), connect(format!("device{guest}-0.sock")))
}

/// Says hello as QEMU does, and stops once at `time`; the answer to that.
fn hello(clock: &mut UnixStream, device: &mut UnixStream, time: u64) -> u8 {
    let mut bytes = Vec::new();
    encode(&AddressedPacket { id: 0, packet: RedirPacket::Hello(CAPABILITIES) }, &mut bytes);
    device.write_all(&bytes).unwrap();
    loop {
        let answer = stop(clock, time);
        if answer != b'a' {
            return answer;
        }
    }
}

fn stop(clock: &mut UnixStream, time: u64) -> u8 {
    let (answer, frames) = stop_with(clock, time, &[]);
    assert_eq!(frames, []);
    answer
}

/// Stops once at `time`, when these frames have been sent. Returns the answer, and the frames that
/// arrive until the next time.
fn stop_with(clock: &mut UnixStream, time: u64, sent: &[AdapterFrame]) -> (u8, Vec<AdapterFrame>) {
    clock.write_all(&stopped(time)).unwrap();
    clock.write_all(&(sent.len() as u32).to_le_bytes()).unwrap();
    for frame in sent {
        let halves = [frame.adapter, frame.bytes.len()].map(|it| (it as u32).to_le_bytes());
        clock.write_all(&frame.at.0.to_le_bytes()).unwrap();
        clock.write_all(&halves.concat()).unwrap();
        clock.write_all(&frame.bytes).unwrap();
    }
    let [answer] = take(clock);
    let count = if answer == b'g' { u32::from_le_bytes(take(clock)) } else { 0 };
    let frame = |_| {
        let at = Nanos(u64::from_le_bytes(take(clock)));
        let [adapter, length] = [take(clock), take(clock)].map(u32::from_le_bytes);
        let mut bytes = vec![0; length as usize];
        clock.read_exact(&mut bytes).unwrap();
        AdapterFrame { adapter: adapter as usize, at, bytes }
    };
    (answer, (0..count).map(frame).collect())
}

/// Returns what a guest says first that stands still: when, how long it was idle, and how many
/// frames it refused.
fn stopped(time: u64) -> Vec<u8> {
    [time, 0, 0].map(u64::to_le_bytes).concat()
}

fn take<const N: usize>(clock: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    clock.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_emulator_that_ends_falls_silent_or_goes_astray_is_told_apart() {
    let folder = Folder::new("fakes");
    if !possible(&folder) {
        return;
    }
    let ended = |folder: &Path| {
        let (mut clock, mut device) = connect(folder);
        assert_eq!(hello(&mut clock, &mut device, 0), b'g');
        assert_eq!(stop(&mut clock, MS.0), b'g');
    };
    let run = |name: &str, fake: fn(&Path)| serve(&Folder::new(name), plan(Nanos(MS.0 * 3)), fake);
    let report = serve(&Folder::new("ends"), plan(Nanos::FOREVER), ended).unwrap();
    assert_eq!((report.ending, report.time, report.stops), (RunEnding::Guest, MS, 2));
    let planned = run("planned", |folder| {
        let (mut clock, mut device) = connect(folder);
        hello(&mut clock, &mut device, 0);
        let answers: Vec<u8> = (1..=3).map(|n| stop(&mut clock, n * MS.0)).collect();
        assert_eq!(answers, *b"gge");
        let mut status = Vec::new();
        clock.read_to_end(&mut status).unwrap();
        assert_eq!(status, [5]);
    });
    assert_eq!(planned.unwrap().ending, RunEnding::Planned);
    let astray = run("astray", |folder| {
        let (mut clock, mut device) = connect(folder);
        hello(&mut clock, &mut device, 0);
        clock.write_all(&[stopped(MS.0 + 7), vec![0; 4]].concat()).unwrap();
        let _ = clock.read(&mut [0]);
    });
    assert!(matches!(astray, Err(RunError::Astray(MS, Nanos(1_000_007)))), "{astray:?}");
    let rude = run("rude", |folder| {
        let (mut clock, mut device) = connect(folder);
        device.write_all(&[9; 100]).unwrap();
        clock.write_all(&[0; 28]).unwrap();
        let _ = clock.read(&mut [0]);
    });
    assert!(matches!(rude, Err(RunError::Device(0, Nanos::ZERO, Trouble::Malformed(_)))));
    let absent = run("absent", |_| {});
    assert!(matches!(absent, Err(RunError::Silent(Nanos::ZERO))), "{absent:?}");
}

/// Nobody goes on before all stand still, and the end of one does not stop the others.
#[test]
fn guests_wait_for_each_other() {
    let folder = Folder::new("together");
    if !possible(&folder) {
        return;
    }
    let bench = || vec![Box::new(Bench::new())];
    let plan = plan(Nanos(MS.0 * 4));
    let server = DeviceServer::start_together(&folder.0, vec![bench(), bench()], plan).unwrap();
    let slow_is_there = AtomicBool::new(false);
    let mut stops = Vec::new();
    let (report, devices) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut clock, mut device) = connect_as(&folder.0, 0);
            hello(&mut clock, &mut device, 0);
            for n in 1..=4 {
                let answer = stop(&mut clock, n * MS.0);
                assert!(slow_is_there.load(Ordering::SeqCst));
                assert_eq!(answer, if n == 4 { b'e' } else { b'g' });
            }
        });
        scope.spawn(|| {
            let (mut clock, mut device) = connect_as(&folder.0, 1);
            hello(&mut clock, &mut device, 0);
            std::thread::sleep(Duration::from_millis(100));
            slow_is_there.store(true, Ordering::SeqCst);
            assert_eq!(stop(&mut clock, MS.0), b'g');
        });
        server.run(|stop, _| stops.push((stop.guest, stop.now.0 / MS.0))).unwrap()
    });
    assert_eq!(stops, [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (0, 4)]);
    assert_eq!((report.ending, report.time, devices.len()), (RunEnding::Planned, plan.end, 2));
}

/// A wire from the first guest to the second on which a frame takes 2 us.
struct Line(Vec<AdapterFrame>);

impl Wires for Line {
    fn sent(&mut self, guest: usize, frame: &AdapterFrame) {
        assert!(guest == 0 && self.0.last().is_none_or(|before| before.at.0 <= frame.at.0 + 2_000));
        self.0.push(AdapterFrame { at: frame.at + Nanos(2_000), ..frame.clone() });
    }

    fn came(&mut self, guest: usize, now: Nanos) -> Vec<AdapterFrame> {
        let has_come = |frame: &mut AdapterFrame| guest == 1 && frame.at <= now;
        self.0.extract_if(.., has_come).collect()
    }
}

/// A frame that comes within a slice arrives at the same place of the next.
#[test]
fn frames_arrive_a_slice_later_at_their_own_times() {
    let folder = Folder::new("wired");
    if !possible(&folder) {
        return;
    }
    let bench = || vec![Box::new(Bench::new())];
    let plan = plan(Nanos(MS.0 * 3));
    let server = DeviceServer::start_together(&folder.0, vec![bench(), bench()], plan).unwrap();
    let frame = |at| AdapterFrame { adapter: 3, at: Nanos(at), bytes: vec![at as u8; 60] };
    let sent = [300_001, 999_000].map(frame);
    let came = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut clock, mut device) = connect_as(&folder.0, 0);
            hello(&mut clock, &mut device, 0);
            assert_eq!(stop_with(&mut clock, MS.0, &sent), (b'g', Vec::new()));
            assert_eq!([2, 3].map(|n| stop(&mut clock, n * MS.0)), *b"ge");
        });
        let hears = scope.spawn(|| {
            let (mut clock, mut device) = connect_as(&folder.0, 1);
            hello(&mut clock, &mut device, 0);
            let stops = (1..=3).map(|n| stop_with(&mut clock, n * MS.0, &[]).1);
            stops.collect::<Vec<Vec<AdapterFrame>>>()
        });
        server.run_on(&mut Line(Vec::new()), |_, _| {}).unwrap();
        hears.join().unwrap()
    });
    let [one, other] = sent;
    let arrives = |frame: AdapterFrame| AdapterFrame { at: frame.at + MS + Nanos(2_000), ..frame };
    // The second comes 1 us behind the end of its slice.
    assert_eq!(came, [vec![arrives(one)], vec![arrives(other)], Vec::new()]);
}

/// Returns what the device says at the stops at 0, 1, 2 and 3 ms, of a run in which devices are
/// plugged in at `plugged`.
fn said_at_each_stop(name: &str, plugged: Nanos) -> Vec<usize> {
    let folder = Folder::new(name);
    let (heard, all) = std::sync::mpsc::channel();
    let plan = RunPlan { plugged, ..plan(Nanos(MS.0 * 3)) };
    serve(&folder, plan, |folder| {
        let (mut clock, mut device) = connect(folder);
        device.set_nonblocking(true).unwrap();
        for time in (0..=3).map(|n| n * MS.0) {
            if time == 0 {
                hello(&mut clock, &mut device, time);
            } else {
                while stop(&mut clock, time) == b'a' {}
            }
            let mut bytes = Vec::new();
            let _ = device.read_to_end(&mut bytes);
            heard.send(bytes.len()).unwrap();
        }
    })
    .unwrap();
    all.iter().take(4).collect()
}

#[test]
fn devices_are_plugged_in_when_the_plan_says_so() {
    if !possible(&Folder::new("possible")) {
        return;
    }
    let early = said_at_each_stop("early", Nanos::ZERO);
    let late = said_at_each_stop("late", Nanos(MS.0 * 2));
    assert_eq!(early[1..], [0, 0, 0]);
    assert_eq!((late[1], late[3]), (0, 0));
    assert!(late[0] > 0 && late[2] > 0, "a hello, and then the device: {late:?}");
    assert_eq!(late[0] + late[2], early[0]);
}

#[test]
fn a_plan_that_cannot_be_is_refused() {
    let folder = Folder::new("plan");
    let many = || (0..15).map(|_| Box::new(Bench::new())).collect();
    let still = RunPlan { slice: Nanos::ZERO, ..RunPlan::default() };
    assert!(matches!(
        DeviceServer::start(&folder.0, many(), RunPlan::default()),
        Err(RunError::Plan)
    ));
    let one = vec![Box::new(Bench::new())];
    assert!(matches!(DeviceServer::start(&folder.0, one, still), Err(RunError::Plan)));
}

/// The PC's firmware finds the device, configures its keyboard and polls it; twice the same.
#[test]
fn firmware_finds_a_device_at_the_same_times_in_every_run() {
    let folder = Folder::new("possible");
    if !possible(&folder) {
        return;
    }
    let first = boot_firmware("first", MS);
    let [journal] = first.journals[..] else { panic!("{first:?}") };
    // Reset, descriptors, configuration, polling; and a report every five milliseconds.
    assert!(journal.from_guest >= 8 && journal.to_guest > 20, "{first:?}");
    assert_eq!(boot_firmware("second", MS), first);
}

fn boot_firmware(name: &str, slice: Nanos) -> RunReport {
    let folder = Folder::new(name);
    let end = Nanos::from_millis(150);
    let plan = RunPlan { slice, end, patience: Duration::from_secs(60), ..plan(end) };
    let server = DeviceServer::start(&folder.0, vec![Box::new(Bench::new())], plan).unwrap();
    let mut command = Command::new(plugin::QEMU);
    command.args(["-M", "q35", "-m", "64M", "-nodefaults", "-display", "none", "-seed", "1"]);
    command.args(["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
    command.args(firmware::without_patience(&folder.0).unwrap());
    command.args(server.arguments()).stdin(Stdio::null());
    let mut emulator = Emulator::start(&mut command).unwrap();
    let mut idle = Nanos::ZERO;
    let look = |stop: Stop, _: &mut [_]| {
        assert!(idle <= stop.idle && stop.idle <= stop.now, "{stop:?}");
        idle = stop.idle;
    };
    let (report, devices) = server.run(look).unwrap();
    // The firmware halts while it waits for a key.
    assert!(idle > Nanos::ZERO && idle < end, "{idle:?}");
    let ended = emulator.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(ended.and_then(|status| status.code()), Some(5));
    assert!(devices[0].device().resets > 1);
    assert_eq!((report.ending, report.time), (RunEnding::Planned, end));
    report
}

/// Without an instruction counter there is nothing to hold: the plugin says so, and QEMU exits.
#[test]
fn a_clock_that_cannot_be_held_is_refused() {
    let folder = Folder::new("refused");
    if !possible(&folder) {
        return;
    }
    // The first QEMU is gone before it says a word, the second one when it is first idle.
    let cases = [(&[][..], 2), (&["-icount", "shift=0,sleep=on"], 60)];
    for (counter, patience) in cases {
        let folder = Folder::new("refused,too");
        let plan =
            RunPlan { end: Nanos::FOREVER, patience: Duration::from_secs(patience), ..plan(MS) };
        let server = DeviceServer::start(&folder.0, vec![Box::new(Bench::new())], plan).unwrap();
        let mut command = Command::new(plugin::QEMU);
        command.args(["-M", "q35", "-m", "64M", "-nodefaults", "-display", "none"]).args(counter);
        command.args(firmware::without_patience(&folder.0).unwrap());
        command.args(server.arguments()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut emulator = command.spawn().unwrap();
        let outcome = server.run(|_, _| {});
        let mut said = String::new();
        emulator.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("-icount shift=N,sleep=off"), "{said} {}", outcome.is_ok());
        assert!(outcome.is_err() || counter.len() == 2);
        assert_eq!(emulator.wait().unwrap().code(), Some(1));
    }
}
