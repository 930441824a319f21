//! The wires between adapters, and the switches that pass frames on.
//!
//! A frame takes its time on a wire: preamble, frame, checksum and gap, at the wire's speed, and
//! the delay of the wire. It arrives with its last bit. A switch has it whole before it looks for
//! a way, and its ports send as [`StoreForward`] decides.
//!
//! Hosts that run beside each other share one network. Each host that advances does what is due in
//! all switches. A frame that a host sends reaches a switch no earlier than the delay of its wire
//! later, and by then every host that could send something has come so far.
//!
//! Wires go by the clock of the world. An adapter has the clock of its host, a switch its own.

use crate::gated::{GatedBooks, class};
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::{FRAME_MIN, is_of_neighbours};
use diapason_tsn::{
    CLASSES, CreditSpan, GAP, GateList, GateRefusal, LinkRate, PREAMBLE, PortDeparture, QueueBooks,
    Shaping, StoreForward,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const CHECKSUM: usize = 4;

/// A frame on its way to an adapter.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The time at which the last bit arrives.
    pub at: Nanos,
    pub frame: Vec<u8>,
    /// Its checksum is wrong.
    pub damaged: bool,
}

type Arrivals = VecDeque<Arrival>;

/// Where a wire can end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EthernetJack {
    /// At the adapter to which its user gave this number.
    Card(usize),
    /// At a port of a switch.
    Port { switch: usize, port: usize },
}

/// A switch: its ports, and which adapter is behind which port.
#[derive(Clone, Debug)]
pub struct SwitchSpec {
    /// The time from the last bit of a frame until it is in its queue.
    pub latency: Nanos,
    /// The clock of the world, as the switch sees it.
    pub world: OwnClock,
    /// Frames that may wait in each queue.
    pub room: usize,
    /// The gates and the rate of each port, and how it shapes each class.
    pub ports: Vec<(GateList, LinkRate, [Shaping; CLASSES])>,
    /// The port behind which each address is.
    pub ways: BTreeMap<[u8; 6], usize>,
}

/// The frames that passed a switch.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SwitchBooks {
    /// Frames that came, at any port.
    pub came: u64,
    /// Frames to an address that the switch does not know, or to its neighbours only.
    pub unknown: u64,
    /// Frames that would have to leave by the port at which they came.
    pub returned: u64,
    /// Frames to all. Each becomes a frame for every other port with a wire.
    pub groups: u64,
    pub ports: Vec<PortBooks>,
}

/// The frames that passed a port of a switch on their way out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PortBooks {
    /// The queue of each class.
    pub queues: [QueueBooks; CLASSES],
    /// Frames that no window of their class is long enough for, by class.
    pub too_long: [u64; CLASSES],
    /// Between which limits the credit of each class was.
    pub credits: [CreditSpan; CLASSES],
}

/// The books of all switches of a network, in their order.
pub type EthernetBooks = Vec<SwitchBooks>;

/// A wire of a network.
#[derive(Clone, Copy, Debug)]
struct Link {
    ends: [EthernetJack; 2],
    byte_ps: u64,
    delay: Nanos,
    number: usize,
}

struct Switched {
    spec: SwitchSpec,
    forward: StoreForward<Vec<u8>>,
    /// The time until which it has done everything, by its own clock.
    now: u64,
    books: SwitchBooks,
}

/// The next step of a switch: when by the clock of the world, which switch, and when by its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NextStep {
    at: Nanos,
    switch: usize,
    own: u64,
}

/// The frames on all wires, and the switches.
#[derive(Default)]
struct Network {
    /// The frames on their way to each adapter.
    ways: Vec<Arrivals>,
    /// The number of each adapter, by its place; `None` if it is on a wire that all share.
    cards: Vec<Option<usize>>,
    links: Vec<Link>,
    /// For each wire, when it is pulled and plugged in again, and the frames that were lost in it.
    pulled: Vec<(Vec<[Nanos; 2]>, u64)>,
    switches: Vec<Switched>,
    /// Adapters whose server keeps gates.
    gated: Vec<GatedBooks>,
}

/// A network of wires and switches that several hosts share.
#[derive(Clone)]
pub struct EthernetNetwork(Rc<RefCell<Network>>);

/// A wire, as the adapters at it know it: one that joins all adapters of a host, or one of a
/// network.
#[derive(Clone)]
pub struct EthernetWire {
    network: Rc<RefCell<Network>>,
    /// Picoseconds of a byte.
    byte_ps: u64,
    /// The number of the adapter at a wire of a network.
    card: Option<usize>,
    /// The clock of the world, as the adapter sees it.
    world: OwnClock,
}

impl std::fmt::Debug for EthernetWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EthernetWire").field("byte_ps", &self.byte_ps).finish_non_exhaustive()
    }
}

/// Returns the picoseconds of a byte at a speed in Mbit/s, which is not zero.
const fn byte_ps(mbit: u64) -> u64 {
    8_000_000 / mbit
}

/// Returns the time that so many bytes take, rounded up.
const fn time(byte_ps: u64, bytes: usize) -> Nanos {
    Nanos((bytes as u64 * byte_ps).div_ceil(1_000))
}

/// Returns the bytes of a frame from its preamble to its checksum.
fn on_wire(bytes: usize) -> usize {
    PREAMBLE as usize + bytes.max(FRAME_MIN) + CHECKSUM
}

/// Puts a frame whose last bit arrives at `end` on the way. It arrives when the frames before it
/// are through.
fn queue(way: &mut Arrivals, byte_ps: u64, end: Nanos, (frame, damaged): (&[u8], bool)) {
    let before = way.back().map_or(Nanos::ZERO, |last| last.at + time(byte_ps, GAP as usize));
    let at = end.max(before + time(byte_ps, on_wire(frame.len())));
    way.push_back(Arrival { at, frame: frame.to_vec(), damaged });
}

impl EthernetWire {
    /// Returns a wire of this speed, in Mbit/s, that joins all adapters that are plugged in: each
    /// hears what every other sends.
    ///
    /// # Panics
    /// If the speed is zero.
    #[must_use]
    pub fn new(mbit: u64) -> EthernetWire {
        let (network, world) = (Rc::default(), OwnClock::default());
        EthernetWire { network, byte_ps: byte_ps(mbit), card: None, world }
    }

    /// Returns the speed as the bits of the status register.
    pub(crate) const fn speed(&self) -> u32 {
        match self.byte_ps {
            ..=8_000 => 2 << 6,
            8_001..=80_000 => 1 << 6,
            _ => 0,
        }
    }

    /// Returns the time of the gap between two frames.
    pub(crate) const fn gap(&self) -> Nanos {
        time(self.byte_ps, GAP as usize)
    }

    /// Returns the time from the beginning of a frame to the end of its preamble, at which clocks
    /// stamp it.
    pub(crate) const fn preamble(&self) -> Nanos {
        time(self.byte_ps, PREAMBLE as usize)
    }

    /// Returns the time from the beginning of a frame to its last bit.
    pub(crate) fn frame(&self, bytes: usize) -> Nanos {
        time(self.byte_ps, on_wire(bytes))
    }

    /// Returns the same wire at an adapter that sees the clock of the world so.
    #[must_use]
    pub fn seen_by(self, world: OwnClock) -> EthernetWire {
        EthernetWire { world, ..self }
    }

    /// Plugs an adapter in, and returns its place.
    pub(crate) fn plug_in(&self) -> usize {
        let mut network = self.network.borrow_mut();
        network.ways.push(Arrivals::new());
        network.cards.push(self.card);
        network.ways.len() - 1
    }

    /// Puts a frame whose last bit is sent at `end` on its way.
    pub(crate) fn carry(&self, from: usize, end: Nanos, frame: &[u8]) {
        let mut network = self.network.borrow_mut();
        match self.card {
            Some(card) => {
                let own = [end - self.frame(frame.len()), end];
                let times = own.map(|at| self.world.own(at));
                if let Some(books) = network.gated.iter_mut().find(|it| it.card == card) {
                    books.sends(own, times, frame);
                }
                network.leaves(EthernetJack::Card(card), times, frame);
            }
            None => {
                let ways = network.ways.iter_mut().enumerate();
                for (_, way) in ways.filter(|(place, _)| *place != from) {
                    queue(way, self.byte_ps, end, (frame, false));
                }
            }
        }
    }

    /// Puts a frame of a stranger, which begins at `begin`, on the way to one adapter.
    pub(crate) fn enter(&self, to: usize, begin: Nanos, frame: &[u8], damaged: bool) {
        if let Some(way) = self.network.borrow_mut().ways.get_mut(to) {
            let end = self.world.own(begin + self.frame(frame.len()));
            queue(way, self.byte_ps, end, (frame, damaged));
        }
    }

    /// Returns when something happens next that may concern an adapter.
    pub(crate) fn next(&self, place: usize) -> Nanos {
        let network = self.network.borrow();
        let comes = network.ways[place].front().map_or(Nanos::FOREVER, |it| it.at);
        self.world.host(network.next().map_or(comes, |next| comes.min(next.at)))
    }

    /// Takes the next frame that arrives at an adapter until `now`.
    pub(crate) fn take(&self, place: usize, now: Nanos) -> Option<Arrival> {
        let mut network = self.network.borrow_mut();
        let world = self.world.own(now);
        network.advance(world);
        let arrival = network.ways[place].pop_front_if(|it| it.at <= world)?;
        Some(Arrival { at: self.world.host(arrival.at), ..arrival })
    }
}

impl EthernetNetwork {
    /// Returns a network with these switches and no wires.
    ///
    /// # Errors
    /// If the credit of a port reserves more than its wire carries, or does not go with its gates.
    pub fn new(switches: Vec<SwitchSpec>) -> Result<EthernetNetwork, GateRefusal> {
        let switched = |spec: SwitchSpec| {
            let forward =
                StoreForward::new(spec.latency.0, spec.ports.clone())?.with_room(spec.room);
            let ports = vec![PortBooks::default(); spec.ports.len()];
            let books = SwitchBooks { ports, ..SwitchBooks::default() };
            Ok(Switched { spec, forward, now: 0, books })
        };
        let switches = switches.into_iter().map(switched).collect::<Result<_, _>>()?;
        Ok(EthernetNetwork(Rc::new(RefCell::new(Network { switches, ..Network::default() }))))
    }

    /// Joins two ends by a wire of this speed, in Mbit/s.
    ///
    /// # Panics
    /// If the speed is zero.
    pub fn join(&self, ends: [EthernetJack; 2], mbit: u64, delay: Nanos) {
        let mut network = self.0.borrow_mut();
        let link = Link { ends, byte_ps: byte_ps(mbit), delay, number: network.links.len() };
        network.links.push(link);
        network.pulled.push((Vec::new(), 0));
    }

    /// Watches whether an adapter keeps its gates.
    pub fn gate(&self, books: GatedBooks) {
        self.0.borrow_mut().gated.push(books);
    }

    /// Returns what adapters with gates sent so far.
    #[must_use]
    pub fn gated(&self) -> Vec<GatedBooks> {
        self.0.borrow().gated.clone()
    }

    /// Pulls the wire that was joined last from the first to the second of each two times.
    pub fn pull(&self, times: Vec<[Nanos; 2]>) {
        if let Some((pulled, _)) = self.0.borrow_mut().pulled.last_mut() {
            *pulled = times;
        }
    }

    /// Returns how many frames were lost in each wire, because it was pulled.
    #[must_use]
    pub fn lost(&self) -> Vec<u64> {
        self.0.borrow().pulled.iter().map(|(_, lost)| *lost).collect()
    }

    /// Returns the wire at the adapter with this number, if it has one.
    #[must_use]
    pub fn wire(&self, card: usize) -> Option<EthernetWire> {
        let network = self.0.borrow();
        let (link, _) = network.far(EthernetJack::Card(card))?;
        let (network, world) = (self.0.clone(), OwnClock::default());
        Some(EthernetWire { network, byte_ps: link.byte_ps, card: Some(card), world })
    }

    /// Returns what passed the switches so far.
    #[must_use]
    pub fn books(&self) -> EthernetBooks {
        let network = self.0.borrow();
        let books = |it: &Switched| {
            let mut books = it.books.clone();
            let seen = it.forward.queues().iter().zip(it.forward.credits());
            for (port, (queues, credits)) in books.ports.iter_mut().zip(seen) {
                (port.queues, port.credits) = (*queues, credits);
            }
            books
        };
        network.switches.iter().map(books).collect()
    }
}

impl Network {
    /// Returns the wire at a jack, and its other end.
    fn far(&self, jack: EthernetJack) -> Option<(Link, EthernetJack)> {
        self.links.iter().find_map(|link| match link.ends {
            [one, other] if one == jack => Some((*link, other)),
            [other, one] if one == jack => Some((*link, other)),
            _ => None,
        })
    }

    /// Puts a frame whose bits leave a jack from `begin` to `end` on the way to the other end of
    /// the wire. Its bits come as they were sent, whatever the clock of its sender.
    fn leaves(&mut self, from: EthernetJack, [begin, end]: [Nanos; 2], frame: &[u8]) {
        let Some((link, to)) = self.far(from) else { return };
        let at = end + link.delay;
        let (pulled, lost) = &mut self.pulled[link.number];
        if pulled.iter().any(|[from, until]| begin < *until && *from < at) {
            *lost += 1;
            return;
        }
        match to {
            EthernetJack::Card(card) => {
                let place = self.cards.iter().position(|own| *own == Some(card));
                if let Some(way) = place.and_then(|place| self.ways.get_mut(place)) {
                    let before = way.back().map_or(Nanos::ZERO, |last| last.at);
                    let at = at.max(before + (end - begin));
                    way.push_back(Arrival { at, frame: frame.to_vec(), damaged: false });
                }
            }
            EthernetJack::Port { switch, port } => self.comes(switch, port, at, frame),
        }
    }

    /// A frame comes to a port of a switch, whose last bit is there at `at`.
    fn comes(&mut self, switch: usize, port: usize, at: Nanos, frame: &[u8]) {
        let Some(to) = frame.first_chunk::<6>() else { return };
        let has_wire = |port| self.far(EthernetJack::Port { switch, port }).is_some();
        let ports: Vec<usize> = (0..self.switches[switch].spec.ports.len())
            .filter(|other| *other != port && has_wire(*other))
            .collect();
        let Switched { spec, books, .. } = &mut self.switches[switch];
        books.came += 1;
        let outputs = match spec.ways.get(to) {
            way if way.is_none() && to[0] & 1 == 0 || is_of_neighbours(to) => {
                books.unknown += 1;
                return;
            }
            Some(out) if *out == port => {
                books.returned += 1;
                return;
            }
            Some(out) => vec![*out],
            None => {
                books.groups += 1;
                ports
            }
        };
        outputs.into_iter().for_each(|out| self.switches[switch].passes(out, at, frame));
    }

    /// Returns what happens next in a switch.
    fn next(&self) -> Option<NextStep> {
        let each = self.switches.iter().enumerate().filter_map(|(switch, it)| {
            let own = it.forward.next()?;
            Some(NextStep { at: it.spec.world.own(Nanos(own)), switch, own })
        });
        each.min()
    }

    /// Does what is due in switches until `now`.
    fn advance(&mut self, now: Nanos) {
        while let Some(NextStep { switch, own, .. }) = self.next().filter(|it| it.at <= now) {
            let switched = &mut self.switches[switch];
            switched.now = switched.now.max(own);
            // Frames that do not fit were refused when they came.
            for departure in switched.forward.advance(own).unwrap_or_default() {
                self.departs(switch, &departure);
            }
        }
    }

    /// A frame begins to leave a port of a switch.
    fn departs(&mut self, switch: usize, departure: &PortDeparture<Vec<u8>>) {
        let PortDeparture { port, item, start_ns, end_ns, .. } = departure;
        let jack = EthernetJack::Port { switch, port: *port };
        let gap = self.far(jack).map_or(Nanos::ZERO, |(link, _)| time(link.byte_ps, GAP as usize));
        let times = [Nanos(*start_ns), Nanos(*end_ns) - gap];
        let world = times.map(|at| self.switches[switch].spec.world.own(at));
        self.leaves(jack, world, item);
    }
}

impl Switched {
    /// Puts a frame that came at `at` on the way to a port.
    fn passes(&mut self, port: usize, at: Nanos, frame: &[u8]) {
        // Several times of the switch may be one of the world: it never goes back.
        let own_ns = self.spec.world.host(at).0.max(self.now);
        let class = class(frame);
        let rate = self.spec.ports[port].1;
        let wire_ns = rate.time_ns((on_wire(frame.len()) + GAP as usize) as u64);
        if self.forward.receive(own_ns, port, class, wire_ns, frame.to_vec()).is_err() {
            self.books.ports[port].too_long[class] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_ether::{VLAN, VlanTag};
    use diapason_random::Random;

    const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];

    /// Returns three adapters at a switch, whose queues have this room, and their places.
    fn switched(room: usize, gates: &GateList) -> (EthernetNetwork, Vec<(EthernetWire, usize)>) {
        let ways = MACS.iter().copied().zip(0..).collect();
        let ports = vec![(gates.clone(), LinkRate::GIGABIT, [Shaping::Strict; CLASSES]); 4];
        let world = OwnClock::default();
        let spec = SwitchSpec { latency: Nanos(2_000), world, room, ports, ways };
        let network = EthernetNetwork::new(vec![spec]).unwrap();
        for card in 0..3 {
            let ends = [EthernetJack::Card(card), EthernetJack::Port { switch: 0, port: card }];
            network.join(ends, 1_000, Nanos(500));
        }
        let plug = |card| {
            let wire = network.wire(card).unwrap();
            let place = wire.plug_in();
            (wire, place)
        };
        let cards = (0..3).map(plug).collect();
        (network, cards)
    }

    fn frame(to: [u8; 6], priority: Option<u8>, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes.max(FRAME_MIN)];
        frame[..6].copy_from_slice(&to);
        if let Some(priority) = priority {
            let tag = VlanTag { priority, drop_eligible: false, network: 0 };
            frame[12..14].copy_from_slice(&VLAN.to_be_bytes());
            frame[14..16].copy_from_slice(&tag.bits().to_be_bytes());
        }
        frame
    }

    #[test]
    fn a_frame_takes_the_time_of_both_wires_and_of_the_switch() {
        let (network, cards) = switched(4, &GateList::open(1_000));
        let (wire, place) = &cards[0];
        assert!(network.wire(3).is_none());
        // 72 bytes from the preamble to the checksum.
        wire.carry(*place, Nanos(576), &frame(MACS[1], None, 60));
        let (to, there) = &cards[1];
        assert_eq!(to.next(*there), Nanos(576 + 500 + 2_000));
        assert!(to.take(*there, Nanos(3_076 + 576 + 499)).is_none());
        assert_eq!(to.next(*there), Nanos(3_076 + 576 + 500));
        let arrival = to.take(*there, Nanos(3_076 + 576 + 500)).unwrap();
        assert_eq!((arrival.at, arrival.frame.len()), (Nanos(4_152), 60));
        assert_eq!(network.books()[0].ports[1].queues[0].passed, 1);
    }

    #[test]
    fn a_wire_that_is_pulled_loses_the_frames_on_it_and_counts_them() {
        let (network, cards) = switched(4, &GateList::open(1_000));
        // The wire that was joined last is that of the third adapter.
        network.pull(vec![[Nanos(20_000), Nanos(30_000)]]);
        let (wire, place) = &cards[2];
        // A frame of 576 ns and its delay of 500 ns: each is about to begin, or just over.
        for end in [19_500, 19_501, 30_575, 30_576 + 100] {
            wire.carry(*place, Nanos(end), &frame(MACS[0], None, 60));
        }
        let mut came = 0;
        while cards[0].0.take(cards[0].1, Nanos::from_secs(1)).is_some() {
            came += 1;
        }
        assert_eq!((came, network.lost()), (2, vec![0, 0, 2]));
    }

    #[test]
    fn frames_to_nobody_back_and_to_all_are_counted() {
        let (network, cards) = switched(4, &GateList::open(1_000));
        let (wire, place) = &cards[0];
        wire.carry(*place, Nanos(1_000), &frame([4; 6], None, 60));
        wire.carry(*place, Nanos(3_000), &frame(MACS[0], None, 60));
        wire.carry(*place, Nanos(5_000), &frame([0xff; 6], None, 60));
        // A message of gPTP goes to the next neighbour, which is the switch.
        wire.carry(*place, Nanos(7_000), &frame([0x01, 0x80, 0xc2, 0, 0, 0x0e], None, 60));
        let came = |card: usize| cards[card].0.take(cards[card].1, Nanos(100_000)).is_some();
        assert_eq!([came(0), came(1), came(2)], [false, true, true]);
        let books = &network.books()[0];
        assert_eq!((books.came, books.unknown, books.returned, books.groups), (4, 2, 1, 1));
        assert!(cards[1].0.take(cards[1].1, Nanos(100_000)).is_none());
        assert_eq!(books.ports[3].queues[0].offered, 0, "nothing leaves without a wire");
    }

    #[test]
    fn what_no_window_takes_is_dropped_by_name() {
        let entry = |mask, interval_ns| diapason_tsn::GateEntry { mask, interval_ns };
        let gates = GateList::new(0, None, &[entry(0x40, 2_000), entry(0xbf, 50_000)]).unwrap();
        let (network, cards) = switched(4, &gates);
        let (wire, place) = &cards[0];
        wire.carry(*place, Nanos(1_000), &frame(MACS[1], Some(6), 1_000));
        wire.carry(*place, Nanos(20_000), &frame(MACS[1], Some(6), 100));
        let came = cards[1].0.take(cards[1].1, Nanos(1_000_000)).unwrap();
        // In the window that opens at 52 us.
        assert_eq!((came.frame.len(), came.at), (100, Nanos(52_000 + 112 * 8 + 500)));
        let port = &network.books()[0].ports[1];
        assert_eq!((port.too_long[6], port.queues[6].offered, port.queues[6].passed), (1, 1, 1));
    }

    #[test]
    fn offered_is_delivered_and_dropped_whatever_comes() {
        let mut random = Random::new(21);
        let mut dropped = 0;
        for _ in 0..300 {
            let (network, cards) = switched(1 + random.below(4) as usize, &GateList::open(1_000));
            let mut free = [Nanos::ZERO; 3];
            let mut sent = [0; 3];
            for _ in 0..100 {
                let from = random.below(3) as usize;
                let to = (from + 1 + random.below(2) as usize) % 3;
                let bytes = 60 + random.below(1_455) as usize;
                let frame = frame(MACS[to], Some(random.below(8) as u8), bytes);
                let (wire, place) = &cards[from];
                let end = free[from] + wire.frame(frame.len()) + Nanos(random.below(2_000));
                free[from] = end + wire.gap();
                wire.carry(*place, end, &frame);
                sent[to] += 1;
            }
            let mut came = [0; 3];
            for (card, (wire, place)) in cards.iter().enumerate() {
                let mut last = Nanos::ZERO;
                while let Some(arrival) = wire.take(*place, Nanos::from_secs(1)) {
                    assert!(arrival.at >= last + wire.frame(arrival.frame.len()));
                    (last, came[card]) = (arrival.at, came[card] + 1);
                }
            }
            let books = network.books();
            for (port, (came, sent)) in books[0].ports.iter().zip(came.into_iter().zip(sent)) {
                let full: u64 = port.queues.iter().map(|queue| queue.full).sum();
                assert_eq!(came + full, sent);
                let whole = |it: &QueueBooks| it.offered == it.passed + it.full;
                assert!(port.queues.iter().all(whole));
                dropped += full;
            }
        }
        assert!(dropped > 100);
    }
}
