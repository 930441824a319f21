//! A peer that behaves as `ptp4l` of linuxptp 3.1.1 was seen to: its frames are those that were
//! captured, with other numbers in them, and it is as strict as `ptp4l` with ours.

use crate::support::oscillator::Oscillator;
use crate::support::{MS, S, base};
use diapason_abi::Nanos;
use diapason_gptp::{FRAME_MAX, GptpOutgoing, Grandmaster, HEAD, SyncBase, SyncTerms, TimeNode};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OWN: [u8; 10] = [2, 0, 0, 0xff, 0xfe, 0, 0, 1, 0, 1];
const PEER: [u8; 10] = [0x52, 0x54, 0, 0xff, 0xfe, 0, 0, 1, 0, 1];
/// The peer counts UTC, and is slow.
const UTC: u64 = 0x6955_b916 * S;
const SLOW: i64 = -80_000;
const FAST: i64 = 90_000;
const LINK_NS: u64 = 5_000;
const STEP_NS: u64 = 5_000;
/// Syncs after which the peer sets its clock, by years, if it follows.
const STEPS: usize = 14;

/// Frames after their head: header, source, sequence, control and interval, and the rest.
const ANNOUNCE: &[u8] =
    b"\x1b\x02\x00\x4c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x52\x54\0\xff\xfe\0\0\x01\
    \0\x01\0\x08\x05\0\0\0\0\0\0\0\0\0\0\0\0\x25\0\xf8\xf8\xfe\xff\xff\xf8\
    \x52\x54\0\xff\xfe\0\0\x01\0\0\xa0\0\x08\0\x08\x52\x54\0\xff\xfe\0\0\x01";
const SYNC: &[u8] =
    b"\x10\x02\0\x2c\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x52\x54\0\xff\xfe\0\0\x01\0\x01\
    \0\x3e\0\xfd\0\0\0\0\0\0\0\0\0\0";
const FOLLOW_UP: &[u8] =
    b"\x18\x02\0\x4c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x52\x54\0\xff\xfe\0\0\x01\0\x01\
    \0\x3e\x02\xfd\0\0\x69\x55\xb9\x16\x15\x6a\x30\x23\0\x03\0\x1c\0\x80\xc2\0\0\x01\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const REQUEST: &[u8] =
    b"\x12\x02\0\x36\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x52\x54\0\xff\xfe\0\0\x01\0\x01\
    \0\x0a\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const RESPONSE: &[u8] =
    b"\x13\x02\0\x36\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x52\x54\0\xff\xfe\0\0\x01\0\x01\
    \0\x0a\x05\x7f\0\0\x69\x55\xb9\x16\x1b\x96\x47\xf9\x52\x54\0\xff\xfe\0\0\x02\0\x01";

fn stamped(time: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..6].copy_from_slice(&(time / S).to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&((time % S) as u32).to_be_bytes());
    bytes
}

fn time_of(bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from(u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()));
    assert_eq!(bytes[34..36], [0, 0]);
    word(36) * S + word(40)
}

fn with(template: &[u8], sequence: u16, rest: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = template.to_vec();
    bytes[30..32].copy_from_slice(&sequence.to_be_bytes());
    rest.iter().for_each(|(at, with)| bytes[*at..at + with.len()].copy_from_slice(with));
    bytes
}

/// The peer: what it sends, and what it has seen of us.
struct Peer {
    clock: Oscillator,
    sequence: u16,
    request: u64,
    announce: u64,
    sync: u64,
    /// The times of a request, and how many exchanges were whole.
    asked: u64,
    answer: Option<(u64, u64)>,
    exchanges: u32,
    delay: i64,
    /// When our last Announces came.
    announced: Vec<u64>,
    arrived: Option<(u16, u64)>,
    /// How wrong a Sync of ours was.
    errors: Vec<i64>,
    /// By how much it has set its clock back.
    back: u64,
    sends: Vec<(u64, Vec<u8>)>,
}

impl Peer {
    fn new() -> Peer {
        let clock = Oscillator::new(UTC, SLOW, 100_000, 0);
        Peer {
            clock,
            sequence: 0,
            request: S,
            announce: 3_500 * MS,
            sync: 3_500 * MS,
            asked: 0,
            answer: None,
            exchanges: 0,
            delay: 0,
            announced: Vec::new(),
            arrived: None,
            errors: Vec::new(),
            back: 0,
            sends: Vec::new(),
        }
    }

    fn local(&mut self, now: u64) -> u64 {
        self.clock.read(now).0 - self.back
    }

    fn is_capable(&self) -> bool {
        self.exchanges >= 3
    }

    /// It follows once an Announce and two more came within four intervals.
    fn follows(&self, now: u64, worse: bool) -> bool {
        let count = self.announced.iter().filter(|at| now - **at < 4 * S).count();
        worse && count >= 3
    }

    fn act(&mut self, now: u64, worse: bool) {
        let local = self.local(now);
        if now >= self.request {
            self.request += S + 70_000;
            self.sequence += 1;
            (self.asked, self.answer) = (local, None);
            self.sends.push((now, with(REQUEST, self.sequence, &[])));
        }
        let leads = self.is_capable() && !self.follows(now, worse);
        if leads && now >= self.announce {
            self.announce = now + S + 70_000;
            self.sends.push((now, with(ANNOUNCE, self.sequence, &[])));
        }
        if leads && now >= self.sync {
            self.sync = now + 125_060_000;
            self.sequence += 1;
            self.sends.push((now, with(SYNC, self.sequence, &[])));
            let time = stamped(local);
            self.sends.push((now + 20_000, with(FOLLOW_UP, self.sequence, &[(34, &time)])));
        }
    }

    fn hears(&mut self, now: u64, bytes: &[u8], own: u64) {
        let local = self.local(now);
        let sequence = u16::from_be_bytes([bytes[30], bytes[31]]);
        assert_eq!((bytes[0] >> 4, bytes[1], bytes[4], &bytes[20..30]), (1, 2, 0, &OWN[..]));
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        assert_eq!(length, bytes.len());
        match bytes[0] & 15 {
            2 => {
                let rest = [(34, &stamped(local)[..]), (44, &OWN[..])];
                self.sends.push((now + 15_000, with(RESPONSE, sequence, &rest)));
                let left = stamped(self.local(now + 15_000));
                let rest = [(0, &[0x1a][..]), (6, &[0]), (34, &left), (44, &OWN)];
                self.sends.push((now + 40_000, with(RESPONSE, sequence, &rest)));
            }
            3 if sequence == self.sequence => {
                assert_eq!((bytes[6], &bytes[44..54]), (2, &PEER[..]));
                self.answer = Some((time_of(bytes), local));
            }
            0xa if sequence == self.sequence => {
                assert_eq!(&bytes[44..54], &PEER);
                let (received, came) = self.answer.take().expect("the first part came before");
                let turnaround = (time_of(bytes) - received) as i64;
                self.delay = ((came - self.asked) as i64 - turnaround) / 2;
                self.exchanges += 1;
            }
            0xb => {
                // The field with the path is there, and names us.
                assert_eq!(bytes[64..], [&[0, 8, 0, 8], &OWN[..8]].concat());
                self.announced.push(now);
            }
            0 => {
                assert_eq!((bytes[6], bytes[33]), (2, 0xfd));
                self.arrived = Some((sequence, own));
            }
            8 => {
                // Without this field `ptp4l` drops the Sync.
                assert_eq!(bytes[44..54], [0, 3, 0, 0x1c, 0, 0x80, 0xc2, 0, 0, 1]);
                let (sync, own) = self.arrived.take().expect("its Sync came before");
                assert_eq!(sync, sequence);
                self.errors.push(time_of(bytes) as i64 + self.delay - own as i64);
                if self.errors.len() == STEPS {
                    self.back = local - time_of(bytes);
                }
            }
            _ => {}
        }
    }
}

/// Runs the node beside the peer for a while.
fn run(priority: u8, span: u64) -> (TimeNode<1>, Peer, SyncTerms, [Nanos; 2], u64) {
    let base = SyncBase { stamp: Nanos(40), late: Nanos(2 * MS), ..base(1) };
    let terms = SyncTerms::new(base).unwrap();
    let mut clock = Oscillator::new(3 * S, FAST, 100_000, 0);
    let own = Grandmaster::free(priority, OWN[..8].try_into().unwrap());
    let mut node = TimeNode::new(terms, own, [MAC], clock.read(0));
    let (mut peer, mut flying) = (Peer::new(), Vec::<(u64, bool, Vec<u8>)>::new());
    let (mut wrong, mut now) = (0, 0);
    while now < span {
        now += STEP_NS;
        let local = clock.read(now);
        peer.act(now, priority < 248);
        let (leaves, rest) =
            std::mem::take(&mut peer.sends).into_iter().partition(|it| it.0 <= now);
        peer.sends = rest;
        let leaves: Vec<(u64, Vec<u8>)> = leaves;
        flying.extend(leaves.into_iter().map(|(_, bytes)| (now + LINK_NS, true, bytes)));
        let (arrived, rest): (Vec<_>, Vec<_>) = flying.into_iter().partition(|it| it.0 <= now);
        flying = rest;
        for (_, ours, mut bytes) in arrived {
            if ours {
                // The adapter pads short frames.
                bytes.resize(bytes.len().max(46), 0);
                let _ = node.heard(0, local, local, &bytes);
            } else {
                peer.hears(now, &bytes, local.0);
            }
        }
        while let Some(GptpOutgoing { frame, event, .. }) = node.look(local) {
            assert!(frame.bytes().len() <= FRAME_MAX);
            event.into_iter().for_each(|event| node.sent(event, local));
            flying.push((now + LINK_NS, false, frame.bytes()[HEAD..].to_vec()));
        }
        if priority > 248
            && let Some(time) = node.time(local)
        {
            wrong = wrong.max(time.0.abs_diff(peer.clock.read(now).0));
        }
    }
    let times = [clock.read(now), peer.clock.read(now)];
    (node, peer, terms, times, wrong)
}

#[test]
fn a_node_follows_a_peer_that_behaves_as_ptp4l() {
    let (node, peer, terms, [own, utc], wrong) = run(250, 40 * S);
    let time = node.time(own).expect("the node knows the time");
    println!("{} ns off at the end, {wrong} ns at most", time.0.abs_diff(utc.0));
    assert!(wrong <= terms.error().0, "{wrong}");
    assert_eq!(node.grandmaster(), Some(PEER[..8].try_into().unwrap()));
    assert!(peer.exchanges > 30 && peer.errors.is_empty());
    assert!(node.last_step().unwrap().to > Nanos(UTC));
}

#[test]
fn a_peer_that_behaves_as_ptp4l_follows_a_node() {
    let (node, peer, terms, [own, _], _) = run(100, 60 * S);
    assert_eq!(node.time(own), Some(own));
    assert!(peer.exchanges > 50 && peer.announced.len() > 50);
    assert!(peer.errors.len() > 300, "{}", peer.errors.len());
    let worst = peer.errors.iter().map(|it| it.unsigned_abs()).max().unwrap();
    println!("{} Syncs, {worst} ns off at most", peer.errors.len());
    assert!(worst <= terms.error().0, "{worst}");
    // The neighbour's step does not make the node fall silent.
    let near = |two: &[u64]| (995 * MS..1_005 * MS).contains(&(two[1] - two[0]));
    assert!(
        peer.back > UTC / 2 && peer.announced.windows(2).skip(1).all(near),
        "Announces come each second"
    );
}
