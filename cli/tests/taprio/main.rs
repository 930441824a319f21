//! The time-aware shaper of an unmodified Linux sends through a switch of the simulator: each frame
//! leaves in the window that `lib/tsn` reads out of the same gate list, and each arrives.
//!
//! Not in the normal run: it downloads a kernel and `iproute2` once, and boots them.
//! `cargo test -p diapason --test taprio -- --ignored --nocapture`

use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_redir::linux::{Drivers, Guest, GuestProgram, GuestTools};
use diapason_redir::{AdapterFrame, RunPlan, Wires};
use diapason_sim::{EthernetJack, EthernetNetwork, EthernetPlug, SwitchSpec};
use diapason_tsn::{CLASSES, GateEntry, GateList, LinkRate, Shaping};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: GuestProgram = GuestProgram {
    name: "taprio",
    source: include_str!("sender.c"),
    drivers: Drivers::Shaper,
    tools: Some(GuestTools {
        package: "iproute2",
        programs: &["bin/ip", "sbin/tc"],
        settings: None,
    }),
};
const RECEIVER: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Frames of each priority.
const COUNT: usize = 1_000;
const SLICE: Nanos = Nanos::from_millis(1);
const LENGTH: Nanos = Nanos::from_secs(14);
const PATIENCE: Duration = Duration::from_secs(300);
/// The gates of `sender.c`: the first priority for 62 us, the second for 63 us.
const GATES: [GateEntry; 2] =
    [GateEntry { mask: 1, interval_ns: 62_000 }, GateEntry { mask: 2, interval_ns: 63_000 }];
const BASE_NS: u64 = 1_000_000;
/// Linux looks at a gate, and hands the frame to the adapter then: it may have closed meanwhile, by
/// less than this.
const LATE_NS: u64 = 3_000;
/// Addresses, tag and type come before what a frame says.
const HEAD: usize = 18;

/// A frame of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    /// When it left by the clock of the world, and by that of Linux.
    left: Nanos,
    tai_ns: u64,
    priority: usize,
    /// The priority in its tag.
    tagged: u8,
}

/// A switch with Linux at one port and a receiver at the other.
struct Switched {
    linux: EthernetPlug,
    receiver: EthernetPlug,
    network: EthernetNetwork,
    sent: Vec<Sent>,
    /// How long each frame took.
    delays: Vec<Nanos>,
}

impl Switched {
    fn new() -> Switched {
        let ports = vec![(GateList::open(1_000), LinkRate::GIGABIT, [Shaping::Strict; CLASSES]); 2];
        let spec = SwitchSpec {
            latency: Nanos(2_000),
            world: OwnClock::default(),
            room: 64,
            ports,
            ways: [(RECEIVER, 1)].into(),
        };
        let network = EthernetNetwork::new(vec![spec]).unwrap();
        for card in 0..2 {
            let ends = [EthernetJack::Card(card), EthernetJack::Port { switch: 0, port: card }];
            network.join(ends, 1_000, Nanos(500));
        }
        let plug = |card| EthernetPlug::new(network.wire(card).unwrap());
        let (linux, receiver) = (plug(0), plug(1));
        Switched { linux, receiver, network, sent: Vec::new(), delays: Vec::new() }
    }
}

/// Reads what a frame of `sender.c` says; none if it is another.
fn read(frame: &AdapterFrame) -> Option<Sent> {
    let said = frame.bytes.strip_prefix(&RECEIVER)?;
    let number = |at: usize| Some(u64::from_le_bytes(*said.get(at..)?.first_chunk()?));
    let body = HEAD - RECEIVER.len();
    let priority = (number(body)? >> 32) as usize;
    let (sent, counter) = (number(body + 8)?, number(body + 16)?);
    // The counter of Linux is the time of the world in ns.
    let tai_ns = sent + frame.at.0 - counter;
    Some(Sent { left: frame.at, tai_ns, priority, tagged: said[8] >> 5 })
}

impl Wires for Switched {
    fn sent(&mut self, _: usize, frame: &AdapterFrame) {
        if let Some(sent) = read(frame) {
            self.sent.push(sent);
            self.linux.send(frame.at, &frame.bytes);
        }
    }

    fn came(&mut self, _: usize, now: Nanos) -> Vec<AdapterFrame> {
        while let Some((at, _)) = self.receiver.receive(now) {
            self.delays.push(at - self.sent[self.delays.len()].left);
        }
        Vec::new()
    }
}

fn run(guest: &Guest, name: &str, gates: bool) -> Switched {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("taprio-{name}"));
    let plan = RunPlan { slice: SLICE, end: LENGTH, patience: PATIENCE, ..RunPlan::default() };
    let words = format!("ipv6.disable=1 count={COUNT} gates={}", u8::from(gates));
    let mut switched = Switched::new();
    let (said, _) = guest.run_on(&words, &folder, plan, &mut switched).unwrap();
    assert!(said.contains("guest: all is sent"), "{said}");
    switched
}

/// Returns by how much frames of a priority left outside of their windows.
fn outside(sent: &[Sent], priority: usize) -> Vec<u64> {
    let gates = GateList::new(BASE_NS, None, &GATES).unwrap();
    let own = sent.iter().filter(|it| it.priority == priority);
    let by = own.map(|it| gates.outside(priority, it.tai_ns, 0));
    by.filter(|by| *by > 0).collect()
}

#[test]
#[ignore = "boots Linux three times: a minute, and two downloads"]
fn frames_of_taprio_leave_in_their_windows_and_pass_a_switch() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux");
    let Some(guest) = Guest::prepare_or_say(&cache, PROGRAM) else { return };
    let (free, shaped) = (run(&guest, "free", false), run(&guest, "shaped", true));
    for priority in [0, 1] {
        let [free, late] = [&free, &shaped].map(|it| outside(&it.sent, priority));
        let (count, by) = (free.len(), late.iter().max().copied().unwrap_or(0));
        println!("priority {priority}: {count} of {COUNT} outside, with gates {}", late.len());
        println!("{by} ns at most");
        // Without gates, frames leave at any time.
        assert!((COUNT / 3..COUNT * 2 / 3).contains(&count));
        assert!(late.len() < COUNT / 50 && by < LATE_NS, "{late:?}");
    }
    let count = |priority| shaped.sent.iter().filter(|it| it.priority == priority).count();
    assert_eq!([count(0), count(1)], [COUNT; 2]);
    assert!(shaped.sent.iter().all(|it| it.tagged == [0, 3][it.priority]));
    // Nothing waits in the switch: the windows keep frames apart.
    let (least, most) = (shaped.delays.iter().min(), shaped.delays.iter().max());
    println!("{} frames passed the switch in {least:?} to {most:?}", shaped.delays.len());
    assert_eq!((shaped.delays.len(), least), (2 * COUNT, most));
    let books = &shaped.network.books()[0];
    assert_eq!((books.came, books.ports[1].queues[0].passed), (2 * COUNT as u64, COUNT as u64));
    assert_eq!(run(&guest, "again", true).sent, shaped.sent);
}
