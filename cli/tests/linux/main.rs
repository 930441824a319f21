//! A host of Diapason and an unmodified Linux at the two ends of a bridge cable, in QEMU, in step.
//!
//! Not in the normal run: it downloads a kernel once, and boots it.
//! `cargo test -p diapason --test linux -- --ignored --nocapture`

use diapason::console::{Line, Splitter};
use diapason::describe::describe;
use diapason::qemu::{Boot, MachineEnding, RunFolder};
use diapason::session::Session;
use diapason::{Workspace, metal};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::bridge::slow_bridge;
use diapason_redir::linux::{Drivers, Guest, GuestProgram};
use diapason_redir::{DeviceServer, Emulator, RunPlan, RunReport};
use diapason_system::RunOptions;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const PROGRAM: GuestProgram = GuestProgram {
    name: "cable",
    source: include_str!("cable.c"),
    drivers: Drivers::Cable,
    tools: None,
};
/// A host whose program sends messages and answers others.
const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/links/peer.toml");
/// Bytes of a message. Linux makes a transfer of whole packets longer by a byte.
const BYTES: u64 = 1_000;
/// Messages that Linux sends.
const COUNT: u64 = 200;
/// The length of a run. Linux has booted by its first half.
const HORIZON: Nanos = Nanos::from_secs(16);
const PATIENCE: Duration = Duration::from_secs(300);
/// Memory of the cable in each direction, and its delay.
const CABLE: (usize, Nanos) = (16 << 10, Nanos(1_000));

/// The words of both computers, and a number for all that passed the cable.
#[derive(PartialEq, Eq, Debug)]
struct Run {
    report: RunReport,
    ending: MachineEnding,
    host: Vec<String>,
    linux: String,
}

#[test]
#[ignore = "boots Linux twice: some minutes, and a download"]
fn messages_go_both_ways_between_a_host_and_linux() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux");
    let Some(guest) = Guest::prepare_or_say(&cache, PROGRAM) else { return };
    let session = session();
    let first = run(&session, &guest);
    println!("{first:#?}");
    assert_eq!(first.ending, MachineEnding::Finished);
    let reports: Vec<Vec<u64>> = first.host.iter().filter_map(|line| numbers(line)).collect();
    let [.., before, last] = &reports[..] else { panic!("too few reports") };
    let [sent, came, answered, lost, damaged, _] = last[..] else { panic!("{last:?}") };
    // Messages of the host are lost until Linux has opened its end, and none after that.
    assert_eq!([lost, damaged], before[3..5], "{last:?}");
    assert!(sent - came - lost <= 1 && damaged == 0 && came >= 100 && answered == COUNT);
    let said = format!("sent {COUNT} came {COUNT} wrong 0 answered ");
    let linux = first.linux.lines().find(|line| line.contains(&said));
    assert!(linux.is_some_and(|line| line.ends_with(" damaged 0")), "{}", first.linux);
    assert_eq!(run(&session, &guest), first);
}

fn session() -> Session {
    let workspace = Workspace::find().unwrap();
    let mut system = describe(Path::new(HOST)).unwrap();
    let program = system.processes.iter_mut().find(|process| process.program == "link-ping");
    program.unwrap().arguments[0] = BYTES;
    let options = RunOptions { horizon_ns: HORIZON.0, record_bytes: 0, watch: false };
    Session::assemble(system, metal::build(&workspace).unwrap(), options).unwrap()
}

/// Returns the numbers of a report of the host's program.
fn numbers(line: &str) -> Option<Vec<u64>> {
    line.strip_prefix("LINK ")?.split(' ').map(|word| word.parse().ok()).collect()
}

fn run(session: &Session, guest: &Guest) -> Run {
    let target = Workspace::find().unwrap().target();
    let folders = [(); 2].map(|()| RunFolder::create(&target).unwrap());
    let [folder, console] =
        ["sockets", "linux.txt"].map(|name| folders[1].path().canonicalize().unwrap().join(name));
    std::fs::create_dir(&folder).unwrap();
    let (here, there) = slow_bridge(CABLE.0, CABLE.1);
    let ends = [here, there].map(|end| vec![Box::new(end) as Box<dyn UsbDevice>]);
    let slice = diapason::together::SLICE;
    let end = HORIZON + Nanos::from_secs(1);
    let plan = RunPlan { slice, end, patience: PATIENCE, ..RunPlan::default() };
    let server = DeviceServer::start_together(&folder, ends.into(), plan).unwrap();
    let boot = Boot { among_others: true, ..session.boot() };
    let mut host = boot.command(&folders[0], "file:host.txt").unwrap();
    host.args(boot.shared_controller(&folders[0]).unwrap());
    host.args(server.arguments_at(0, &[String::from("2")], 0)).stdin(Stdio::null());
    let mut linux = guest.command(&format!("ipv6.disable=1 bytes={BYTES} count={COUNT}"), &console);
    linux.args(["-device", "qemu-xhci,id=redirected,p2=4,p3=4"]);
    linux.args(server.arguments_at(1, &[String::from("1")], 0));
    let mut emulators = [host, linux].map(|mut command| Emulator::start(&mut command).unwrap());
    let (report, _) = server.run(|_, _| {}).unwrap();
    let status = emulators[0].wait(PATIENCE).unwrap().unwrap();
    let said = std::fs::read(folders[0].path().join("host.txt")).unwrap();
    let (mut splitter, mut lines) = (Splitter::default(), Vec::new());
    let note = |line| {
        if let Line::Log { text, .. } = line {
            lines.push(text);
        }
    };
    splitter.push(&said, note);
    let linux = String::from_utf8_lossy(&std::fs::read(console).unwrap()).into_owned();
    Run { report, ending: MachineEnding::of_status(status.code()), host: lines, linux }
}
