//! Nodes on links, with clocks that drift, stamps that are wrong, and frames that are lost.

mod compare;
pub mod oscillator;

use diapason_abi::Nanos;
use diapason_gptp::{
    GptpBody, GptpMessage, GptpOutgoing, Grandmaster, HEAD, SentEvent, SyncBase, SyncTerms,
    TimeNode, identity_of,
};
use diapason_random::Random;
use oscillator::Oscillator;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub const PORTS: usize = 3;
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;
/// A node looks at its clock at most so much late, and handles a frame within it.
const BUSY_NS: u64 = 40_000;

/// A network as most tests have it: software stamps, and 100 ppm.
pub fn base(hops: u32) -> SyncBase {
    SyncBase {
        log_interval: -3,
        late: Nanos(MS),
        losses: 3,
        hops,
        drift_ppm: 100,
        wander_ppb: 50,
        stamp: Nanos(1_000),
        turnaround: Nanos(MS),
        gap: Nanos::ZERO,
        link: Nanos(10_000),
        uneven: Nanos::ZERO,
        slew_ppm: 500,
    }
}

pub fn terms(hops: u32) -> SyncTerms {
    SyncTerms::new(base(hops)).unwrap()
}

/// How wrong stamps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    Random,
    /// All errors of the delay and of a Sync add up.
    Worst,
    /// So do those of the delay. Those of Syncs turn round whenever a rate has been measured.
    Swings,
}

/// The frames that links lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    None,
    /// One of so many frames, however many in a row.
    OneIn(u64),
    /// One of so many exchanges, Syncs and Announces, and never more in a row than the terms say.
    Within(u64),
}

pub struct Link {
    pub ends: [(usize, usize); 2],
    pub delay: u64,
    /// The first end sends to the second one by so much more slowly, and is reached by so much
    /// faster.
    pub uneven: u64,
    pub up: bool,
    /// How many exchanges, Syncs and Announces of each end were lost in a row, and the part that
    /// the present one loses.
    lost: [[u32; 3]; 2],
    loses: [[u8; 3]; 2],
}

pub struct Host {
    pub node: TimeNode<PORTS>,
    pub clock: Oscillator,
    pub on: bool,
    own: Grandmaster,
    /// Frames of a node that was switched off since do not leave.
    life: u32,
    /// Only the newest appointment to look at the clock counts.
    looks: u64,
    /// Frames are handled in the order in which they came.
    handled: u64,
    last: Option<(Nanos, Nanos)>,
}

enum Happens {
    Look(usize, u64),
    Leaves(usize, u32, Box<GptpOutgoing>),
    Stamped(usize, u32, SentEvent, Nanos),
    Arrives(usize, usize, Nanos, Vec<u8>),
}

pub struct World {
    pub now: u64,
    pub hosts: Vec<Host>,
    pub links: Vec<Link>,
    pub random: Random,
    pub stamps: Stamps,
    pub losses: Losses,
    pub terms: SyncTerms,
    /// The greatest difference between a grandmaster and a node that both know the time.
    pub furthest: u64,
    /// How often two nodes, one of which leads, were compared.
    pub compared: u64,
    /// Clocks are compared with each other.
    pub compares: bool,
    /// Since when two hosts can hear of each other.
    joined: Vec<Vec<Option<u64>>>,
    /// Frames as they passed.
    pub passed: Vec<Vec<u8>>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: Vec<Option<Happens>>,
}

impl World {
    pub fn new(terms: SyncTerms, seed: u64) -> World {
        World {
            now: 0,
            hosts: Vec::new(),
            links: Vec::new(),
            random: Random::stream(0x61f7, seed),
            stamps: Stamps::Random,
            losses: Losses::None,
            terms,
            furthest: 0,
            compared: 0,
            compares: true,
            joined: Vec::new(),
            passed: Vec::new(),
            queue: BinaryHeap::new(),
            events: Vec::new(),
        }
    }

    /// Adds a host that is off.
    pub fn host(&mut self, priority: u8, drift_ppb: i64, offset: u64) -> usize {
        let number = self.hosts.len();
        let own = Grandmaster::free(priority, identity_of(mac(number, 9)));
        let wander = i64::from(self.terms.base().wander_ppb);
        let drift = i64::from(self.terms.base().drift_ppm) * 1_000;
        let clock = Oscillator::new(offset, drift_ppb, drift, wander);
        let node = node(self.terms, own, number, Nanos::ZERO);
        self.hosts.push(Host {
            node,
            clock,
            on: false,
            own,
            life: 0,
            looks: 0,
            handled: 0,
            last: None,
        });
        number
    }

    pub fn link(&mut self, one: (usize, usize), other: (usize, usize), delay: u64) -> usize {
        let (lost, loses) = ([[0; 3]; 2], [[0; 3]; 2]);
        self.links.push(Link { ends: [one, other], delay, uneven: 0, up: true, lost, loses });
        self.links.len() - 1
    }

    pub fn switch_on(&mut self, host: usize) {
        let (at, terms) = (self.now, self.terms);
        let host_ref = &mut self.hosts[host];
        let now = host_ref.clock.read(at);
        host_ref.node = node(terms, host_ref.own, host, now);
        (host_ref.on, host_ref.last) = (true, None);
        host_ref.life += 1;
        self.connect();
        self.act(host);
    }

    pub fn switch_off(&mut self, host: usize) {
        (self.hosts[host].on, self.hosts[host].last) = (false, None);
        self.hosts[host].life += 1;
        self.connect();
    }

    /// Cuts a link, or mends it.
    pub fn switch_link(&mut self, link: usize) {
        self.links[link].up = !self.links[link].up;
        self.connect();
    }

    pub fn local(&mut self, host: usize) -> Nanos {
        let now = self.now;
        self.hosts[host].clock.read(now)
    }

    /// Returns the time that a host knows.
    pub fn time(&mut self, host: usize) -> Option<Nanos> {
        let local = self.local(host);
        self.hosts[host].node.time(local).filter(|_| self.hosts[host].on)
    }

    /// A frame comes to a port, from wherever.
    pub fn inject(&mut self, host: usize, port: usize, bytes: Vec<u8>) {
        let stamp = self.local(host);
        self.after(0, Happens::Arrives(host, port, stamp, bytes));
    }

    /// Runs, and compares all clocks at each event and each second millisecond.
    pub fn run(&mut self, span: u64) {
        let end = self.now + span;
        while self.now < end {
            let next = self.queue.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            self.now = next.min(self.now + 2 * MS).min(end).max(self.now);
            self.compare();
            if next <= self.now {
                let Some(Reverse((_, event))) = self.queue.pop() else { return };
                let event = self.events[event as usize].take().unwrap();
                self.happen(event);
                self.compare();
            }
        }
        if self.queue.is_empty() {
            self.events.clear();
        }
    }

    fn after(&mut self, delay: u64, happens: Happens) {
        self.queue.push(Reverse((self.now + delay, self.events.len() as u64)));
        self.events.push(Some(happens));
    }

    fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Look(host, number) if self.hosts[host].looks == number => self.act(host),
            Happens::Look(..) => {}
            Happens::Leaves(host, life, outgoing) => self.leaves(host, life, &outgoing),
            Happens::Stamped(host, life, event, stamp) => {
                if self.hosts[host].life == life {
                    self.hosts[host].node.sent(event, stamp);
                    self.act(host);
                }
            }
            Happens::Arrives(host, port, stamp, bytes) => {
                if self.hosts[host].on {
                    let now = self.local(host);
                    let _ = self.hosts[host].node.heard(port, stamp, now, &bytes[HEAD..]);
                    self.act(host);
                }
            }
        }
    }

    fn busy(&mut self) -> u64 {
        2 * self.terms.base().stamp.0 + self.random.below(BUSY_NS)
    }

    /// A host looks at its clock, and sends one frame.
    fn act(&mut self, host: usize) {
        if !self.hosts[host].on {
            return;
        }
        let now = self.local(host);
        let delay = match self.hosts[host].node.look(now) {
            Some(outgoing) => {
                let (life, busy) = (self.hosts[host].life, self.busy());
                self.after(busy, Happens::Leaves(host, life, Box::new(outgoing)));
                busy
            }
            None => {
                let next = self.hosts[host].node.next_look();
                (next - now).0 + self.random.below(BUSY_NS) + 20_000
            }
        };
        self.hosts[host].looks += 1;
        let number = self.hosts[host].looks;
        self.after(delay, Happens::Look(host, number));
    }

    fn leaves(&mut self, host: usize, life: u32, outgoing: &GptpOutgoing) {
        if self.hosts[host].life != life {
            return;
        }
        if let Some(event) = outgoing.event {
            let error = self.error(egress(&event), matches!(event, SentEvent::Sync { .. }));
            let stamp = wrong(self.local(host), error);
            let busy = self.busy();
            self.after(busy, Happens::Stamped(host, life, event, stamp));
        }
        let bytes = outgoing.frame.bytes().to_vec();
        let end = |link: &Link| link.ends.iter().position(|end| *end == (host, outgoing.port));
        let found = self.links.iter().enumerate().find_map(|(at, link)| Some((at, end(link)?)));
        let Some((link, end)) = found.filter(|(link, _)| self.links[*link].up) else { return };
        if self.passed.len() < 10_000 {
            self.passed.push(bytes.clone());
        }
        if self.is_lost(link, end, &bytes) {
            return;
        }
        let (other, port) = self.links[link].ends[1 - end];
        let Link { delay, uneven, .. } = self.links[link];
        let arrives = self.now + if end == 0 { delay + uneven } else { delay - uneven };
        let error = self.error(ingress(&bytes), !ingress(&bytes));
        let stamp = wrong(self.hosts[other].clock.ahead(arrives), error);
        let handled = (arrives + self.busy()).max(self.hosts[other].handled + 1);
        self.hosts[other].handled = handled;
        let delay = handled - self.now;
        self.after(delay, Happens::Arrives(other, port, stamp, bytes));
    }

    fn is_lost(&mut self, link: usize, end: usize, bytes: &[u8]) -> bool {
        match self.losses {
            Losses::None => false,
            Losses::OneIn(n) => self.random.one_in(n),
            Losses::Within(n) => {
                let (kind, part) = part(bytes);
                // An answer belongs to the request of the other end.
                let end = if kind == 0 && part > 0 { 1 - end } else { end };
                let link = &mut self.links[link];
                let (lost, loses) = (&mut link.lost[end][kind], &mut link.loses[end][kind]);
                if part == 0 {
                    let loss = *lost < self.terms.base().losses && self.random.one_in(n);
                    *lost = if loss { *lost + 1 } else { 0 };
                    let parts = [3, 2, 1][kind];
                    *loses = if loss { self.random.below(parts) as u8 } else { u8::MAX };
                }
                *loses == part
            }
        }
    }

    /// Returns the error of a stamp, which the worst case has positive for `true`.
    fn error(&mut self, positive: bool, of_sync: bool) -> i64 {
        let most = self.terms.base().stamp.0;
        let span = 16 * self.terms.interval().0;
        let turned = self.stamps == Stamps::Swings && of_sync && self.now / span % 2 == 1;
        let positive = positive != turned;
        match self.stamps {
            Stamps::Random => self.random.between(0, 2 * most) as i64 - most as i64,
            _ if positive => most as i64,
            _ => -(most as i64),
        }
    }
}

pub fn mac(host: usize, port: usize) -> [u8; 6] {
    [2, 0, 0, 0, host as u8, port as u8]
}

fn node(terms: SyncTerms, own: Grandmaster, host: usize, now: Nanos) -> TimeNode<PORTS> {
    TimeNode::new(terms, own, std::array::from_fn(|port| mac(host, port)), now)
}

fn wrong(time: Nanos, error: i64) -> Nanos {
    Nanos(time.0.saturating_add_signed(error))
}

/// Returns the sign of the worst error with which a frame is stamped as it leaves.
fn egress(event: &SentEvent) -> bool {
    matches!(event, SentEvent::Sync { .. })
}

/// Returns the sign of the worst error with which a frame is stamped as it comes.
fn ingress(bytes: &[u8]) -> bool {
    !matches!(GptpMessage::read(&bytes[HEAD..]).map(|it| it.body), Ok(GptpBody::Sync))
}

/// Returns whether a frame belongs to an exchange, a Sync or an Announce, and which part it is.
fn part(bytes: &[u8]) -> (usize, u8) {
    match GptpMessage::read(&bytes[HEAD..]).unwrap().body {
        GptpBody::PdelayReq => (0, 0),
        GptpBody::PdelayResp { .. } => (0, 1),
        GptpBody::PdelayRespFollowUp { .. } => (0, 2),
        GptpBody::Sync => (1, 0),
        GptpBody::FollowUp { .. } => (1, 1),
        GptpBody::Announce(_) => (2, 0),
    }
}
