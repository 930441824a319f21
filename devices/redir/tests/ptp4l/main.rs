//! A node of `lib/gptp` and an unmodified `ptp4l` in an unmodified Linux at the two ends of an
//! Ethernet wire, in step: each leads, and the other follows.
//!
//! Not in the normal run: it downloads a kernel and `linuxptp` once, and boots them.
//! `cargo test --release -p diapason-redir --test ptp4l -- --ignored --nocapture`

use diapason_abi::Nanos;
use diapason_gptp::{GptpOutgoing, Grandmaster, HEAD, SyncBase, SyncTerms, TimeNode, identity_of};
use diapason_redir::linux::{Drivers, Guest, GuestProgram, GuestTools};
use diapason_redir::{AdapterFrame, RunPlan, Wires};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: GuestProgram = GuestProgram {
    name: "ptp4l",
    source: include_str!("init.c"),
    drivers: Drivers::Ethernet,
    tools: Some(GuestTools {
        package: "linuxptp",
        programs: &["usr/sbin/ptp4l"],
        settings: Some(("ptp4l.cfg", include_str!("ptp4l.cfg"))),
    }),
};
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TYPE: [u8; 2] = [0x88, 0xf7];
const SLICE: Nanos = Nanos::from_micros(125);
/// The time of a frame on the wire. It takes a slice longer, in both directions alike.
const WIRE: Nanos = Nanos(1_000);
/// How often the node looks at its clock.
const LOOK: Nanos = Nanos(5_000);
/// The node's clock is so much fast, and begins with this.
const FAST_PPM: u64 = 50;
const BEGIN: Nanos = Nanos::from_secs(1_000);
/// The length of a run, and of its end, in which all is settled.
const LENGTH: Nanos = Nanos::from_secs(40);
const SETTLED: Nanos = Nanos::from_secs(30);
/// Linux stamps frames by software: that is by how much times may differ, in ns.
const OFF_MAX: u64 = 20_000;
const PATIENCE: Duration = Duration::from_secs(300);
const SEC: u64 = 1_000_000_000;

/// The node, at the end of the wire.
struct Peer {
    node: TimeNode<1>,
    /// Until when it has looked at its clock.
    now: Nanos,
    /// Frames on their way to it, and those that it has sent.
    comes: VecDeque<(Nanos, Vec<u8>)>,
    leaves: Vec<AdapterFrame>,
    /// The last Sync of Linux: its number, and when it left.
    sync: Option<([u8; 2], Nanos)>,
    /// By how much the clock of Linux is ahead of the world, as its last stamp says.
    ahead: Option<u64>,
    /// By how much the node's time and that of Linux differed, once all is settled.
    differences: Vec<u64>,
}

/// Returns the node's clock at a time of the world.
fn clock(world: Nanos) -> Nanos {
    BEGIN + world + Nanos(world.0 * FAST_PPM / 1_000_000)
}

impl Peer {
    fn new(priority: u8) -> Peer {
        let base = SyncBase {
            log_interval: -3,
            late: Nanos::from_millis(5),
            losses: 3,
            hops: 1,
            drift_ppm: 100,
            wander_ppb: 50,
            stamp: Nanos(OFF_MAX),
            turnaround: Nanos::from_millis(5),
            gap: Nanos::ZERO,
            link: Nanos::from_millis(1),
            uneven: Nanos::ZERO,
            slew_ppm: 2_000,
        };
        let terms = SyncTerms::new(base).unwrap();
        let own = Grandmaster::free(priority, identity_of(MAC));
        Peer {
            node: TimeNode::new(terms, own, [MAC], clock(Nanos::ZERO)),
            now: Nanos::ZERO,
            comes: VecDeque::new(),
            leaves: Vec::new(),
            sync: None,
            ahead: None,
            differences: Vec::new(),
        }
    }

    /// Notes when a Sync of Linux left, and what its Follow_Up says of that.
    fn look_at(&mut self, at: Nanos, message: &[u8]) {
        let word = |from: usize| u32::from_be_bytes(message[from..from + 4].try_into().unwrap());
        let number = [message[30], message[31]];
        match (message[0] & 15, self.sync) {
            (0, _) => self.sync = Some((number, at)),
            (8, Some((sync, left))) if sync == number => {
                let stamp = u64::from(word(36)) * SEC + u64::from(word(40));
                self.ahead = Some(stamp - left.0);
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        self.now += LOOK;
        let own = clock(self.now);
        while let Some((at, message)) = self.comes.pop_front_if(|(at, _)| *at <= self.now) {
            // A message that it refuses is counted in its books.
            let _ = self.node.heard(0, clock(at), own, &message);
        }
        while let Some(GptpOutgoing { frame, event, .. }) = self.node.look(own) {
            event.into_iter().for_each(|event| self.node.sent(event, own));
            let bytes = frame.bytes().to_vec();
            self.leaves.push(AdapterFrame { adapter: 0, at: self.now + WIRE, bytes });
        }
        if self.now >= SETTLED
            && let (Some(time), Some(ahead)) = (self.node.time(own), self.ahead)
        {
            self.differences.push((time.0 - self.now.0).abs_diff(ahead));
        }
    }
}

impl Wires for Peer {
    fn sent(&mut self, _: usize, frame: &AdapterFrame) {
        if frame.bytes.get(12..14) == Some(&TYPE) {
            let message = frame.bytes[HEAD..].to_vec();
            self.look_at(frame.at, &message);
            self.comes.push_back((frame.at + WIRE + SLICE, message));
        }
    }

    fn came(&mut self, _: usize, now: Nanos) -> Vec<AdapterFrame> {
        while self.now + LOOK <= now {
            self.look();
        }
        let (come, still) = self.leaves.drain(..).partition(|frame| frame.at <= now);
        self.leaves = still;
        come
    }
}

/// Boots Linux at the other end of a wire from the node. Returns the node, and what Linux said.
fn run(guest: &Guest, name: &str, priorities: [u8; 2]) -> (Peer, String, u64) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ptp4l-{name}"));
    let plan = RunPlan { slice: SLICE, end: LENGTH, patience: PATIENCE, ..RunPlan::default() };
    let [own, other] = priorities;
    let (mut peer, words) = (Peer::new(own), format!("ipv6.disable=1 priority1={other}"));
    let (said, refused) = guest.run_on(&words, &folder, plan, &mut peer).unwrap();
    (peer, said, refused)
}

fn guest() -> Option<Guest> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux");
    Guest::prepare_or_say(&cache, PROGRAM)
}

/// Returns the offsets and delays that `ptp4l` said while it followed.
fn followed(said: &str) -> Vec<[i64; 2]> {
    let lines = said.lines().filter(|line| line.contains("master offset") && line.contains(" s2 "));
    let number = |line: &str, behind: &str| {
        let rest = line.split_once(behind)?.1.trim_start();
        rest.split_whitespace().next()?.parse::<i64>().ok()
    };
    let both = |line| Some([number(line, "master offset")?, number(line, "path delay")?]);
    lines.filter_map(both).collect()
}

#[test]
#[ignore = "boots Linux twice: some minutes, and two downloads"]
fn ptp4l_follows_a_node_and_a_second_run_is_equal() {
    let Some(guest) = guest() else { return };
    let (peer, said, refused) = run(&guest, "follows", [100, 200]);
    let all = followed(&said);
    println!("{said}\n{} frames refused, {} offsets", refused, all.len());
    assert!(all.len() > 120, "ptp4l does not follow");
    let last = &all[all.len() - 80..];
    let worst = last.iter().map(|[offset, _]| offset.unsigned_abs()).max().unwrap();
    let delays = last.iter().map(|[_, delay]| *delay);
    println!("at most {worst} ns off; delays {:?} to {:?}", delays.clone().min(), delays.max());
    assert!(worst < OFF_MAX, "{worst} ns off");
    assert_eq!(peer.node.grandmaster(), Some(identity_of(MAC)));
    assert_eq!(run(&guest, "again", [100, 200]).1, said);
}

#[test]
#[ignore = "boots Linux: a minute, and two downloads"]
fn a_node_follows_ptp4l() {
    let Some(guest) = guest() else { return };
    let (peer, said, _) = run(&guest, "leads", [250, 100]);
    println!("{said}\n{:?}", peer.node.books());
    assert!(peer.node.grandmaster().is_some_and(|it| it != identity_of(MAC)), "it leads itself");
    let worst = peer.differences.iter().max().expect("the node never knew the time");
    println!("{} looks, at most {worst} ns off", peer.differences.len());
    // Nobody looks in the last slice.
    let looks = (LENGTH - SLICE - SETTLED).0 / LOOK.0;
    assert!(peer.differences.len() as u64 >= looks, "it lost the time");
    assert!(*worst < OFF_MAX, "{worst} ns off");
}
