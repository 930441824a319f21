//! A common time of two hosts over modelled adapters of type 82574L: two clocks of hosts, two
//! crystals of adapters, stamps in registers, two threads of each driver that are late. The times
//! of both are never further apart than the terms say.

#[path = "support/card.rs"]
mod support;

use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use diapason_ether::adapter::RING;
use diapason_ether::stamps;
use diapason_ether::station::{HeardFrame, TimeReceiver, TimeStation};
use diapason_ether::timed::{TimeAssumed, TimeSite, sync_base};
use diapason_gptp::{GROUP, GptpOutgoing, Grandmaster, SyncBase, SyncTerms, TimeNode, identity_of};
use diapason_random::Random;
use diapason_sim::{Card, EthernetJack, EthernetNetwork, FunctionModel};
use std::cell::RefCell;
use std::collections::VecDeque;
use support::{Halves, Host, address, started};

type Sender<'a> = diapason_ether::adapter::FrameSender<&'a Host, &'a Host>;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const DRIFT_PPM: u32 = 100;
/// A crystal of an adapter drifts as far as the clock of a host.
const APART_PPM: u32 = 2 * DRIFT_PPM + 1;
/// A look at the clock takes at most this, and each thread of a driver is at most so late.
const LOOK_NS: u64 = 400;
const LATE_NS: u64 = 300_000;
/// A frame is on the wire for at most this, and all looks of a turn take at most this.
const WIRE_NS: u64 = 3_000;
const LOOKS_NS: u64 = 10_000;
/// Messages that may wait between the two threads.
const QUEUE: usize = 8;

/// Returns the terms that a plan derives from the times of these threads.
fn terms() -> SyncTerms {
    let site = TimeSite {
        came: Nanos(WIRE_NS + LATE_NS + LOOKS_NS),
        turn: Nanos(LATE_NS + LOOKS_NS),
        wire: Nanos(WIRE_NS),
        looks: Nanos(LOOK_NS),
    };
    let assumed = TimeAssumed {
        log_interval: -3,
        losses: 3,
        drift_ppm: DRIFT_PPM,
        wander_ppb: 0,
        link: Nanos(5_000),
        uneven: Nanos::ZERO,
        slew_ppm: 500,
    };
    SyncTerms::new(sync_base(&[site; 2], &assumed)).unwrap()
}

/// Returns these terms, with or without the gap between two events.
fn with_gap(is_kept: bool) -> SyncTerms {
    let gap = if is_kept { terms().base().gap } else { Nanos::ZERO };
    SyncTerms::new(SyncBase { gap, ..*terms().base() }).unwrap()
}

/// A host that keeps the common time by its adapter.
struct Station<'a> {
    host: &'a Host,
    halves: Halves<'a>,
    receiver: TimeReceiver,
    queue: VecDeque<HeardFrame>,
    station: TimeStation,
    /// Frames that were sent behind the event that awaits its stamp.
    behind: usize,
    /// When the thread that receives runs, and the one that sends.
    receives: Nanos,
    wake: Nanos,
    /// The clock of the world, as this host sees it.
    world: OwnClock,
    /// The host only lets time pass.
    off: bool,
    random: RefCell<Random>,
}

impl<'a> Station<'a> {
    fn new(host: &'a Host, [priority, number]: [u8; 2], world: OwnClock, gap: bool) -> Station<'a> {
        let mut halves = started(host, number);
        stamps::start(&host, GROUP);
        (0..RING as u16 - 1).for_each(|buffer| halves.0.offer(buffer, address(buffer)));
        halves.0.publish();
        let mac = [2, 0, 0, 0, 0, number];
        let own = Grandmaster::free(priority, identity_of(mac));
        let terms = with_gap(gap);
        let node = TimeNode::new(terms, own, [mac], host.now.get());
        Station {
            host,
            halves,
            receiver: TimeReceiver::default(),
            queue: VecDeque::new(),
            station: TimeStation::new(node, terms.base().stamp, APART_PPM),
            behind: 0,
            receives: Nanos::FOREVER,
            wake: Nanos::ZERO,
            world,
            off: false,
            random: RefCell::new(Random::stream(21, number.into())),
        }
    }

    /// Returns how late a thread is.
    fn late(&self) -> Nanos {
        Nanos(self.random.borrow_mut().below(LATE_NS))
    }

    /// The thread that sends: it hears what the other one took, and says what is due.
    fn act(&mut self) {
        let (host, random) = (self.host, &self.random);
        let now = || {
            let took = random.borrow_mut().below(LOOK_NS + 1);
            host.pass(host.now.get() + Nanos(took));
            host.now.get()
        };
        let gone = self.station.awaits() && self.halves.1.settle() <= self.behind;
        let (heard, sender, behind) = (&mut self.queue, &mut self.halves.1, &mut self.behind);
        let heard = std::iter::from_fn(|| heard.pop_front());
        let next = self.station.turn(&host, now, (heard, gone), |out| {
            *behind = send(host, sender, out, *behind);
        });
        self.wake = next + self.late();
    }

    /// The thread that receives.
    fn hear(&mut self) {
        self.receives = Nanos::FOREVER;
        for _ in 0..self.halves.0.ready() {
            let taken = self.halves.0.take().unwrap();
            let frame = self.host.bytes(taken.buffer, taken.length);
            let heard = self.receiver.take(&self.host, &frame, taken.stamped);
            self.queue.extend(heard);
            self.halves.0.offer(taken.buffer, address(taken.buffer));
        }
        assert!(self.queue.len() <= QUEUE, "no room between the threads");
        self.halves.0.publish();
        self.receiver.round(&self.host);
        if !self.queue.is_empty() {
            self.wake = self.wake.min(self.host.now.get() + self.late());
        }
    }

    /// Returns the time of this host at which something happens here.
    fn due(&self) -> Nanos {
        let wake = if self.off { Nanos::FOREVER } else { self.wake.min(self.receives) };
        wake.min(self.host.card.borrow().next_change())
    }

    /// Returns the time of the world at which something happens here.
    fn next(&self) -> Nanos {
        self.world.own(self.due())
    }

    fn pass(&mut self, world: Nanos) {
        // Several times of a fast host are one of the world.
        let due = Some(self.due()).filter(|due| self.world.own(*due) <= world);
        let now = self.world.host(world).max(self.host.now.get());
        let now = due.map_or(now, |due| now.max(due));
        self.host.pass(now);
        if self.off {
            return;
        }
        if self.halves.0.ready() > 0 {
            self.receives = self.receives.min(now + self.late());
        }
        if self.receives <= now {
            self.hear();
        }
        if self.wake <= now {
            self.act();
        }
    }
}

/// Sends a frame. Returns how many frames are behind the last event then.
fn send(host: &Host, sender: &mut Sender<'_>, out: &GptpOutgoing, behind: usize) -> usize {
    let place = sender.vacant().unwrap();
    let (buffer, bytes) = ((RING + place) as u16, out.frame.bytes());
    host.put(buffer, bytes);
    let (at, length) = (address(buffer), bytes.len() as u16);
    assert!(match out.event {
        Some(_) => sender.send_stamped(at, length),
        None => sender.send(at, length),
    });
    if out.event.is_some() { 0 } else { behind + 1 }
}

/// The times of two hosts, compared.
#[derive(Default)]
struct Seen {
    furthest: u64,
    compared: u64,
    /// Instants at which the follower did not know the time, after it had known it.
    unknown: u64,
    unstamped: u64,
    follower: Vec<(u64, bool)>,
}

/// Faults of a run, by the clock of the world.
#[derive(Default)]
struct Faults {
    /// The wire is pulled between each two times.
    pulled: Vec<[Nanos; 2]>,
    /// The first host is off between two times, and begins anew.
    off: Option<[Nanos; 2]>,
}

/// Runs two hosts. Each has the drift of its clock and of its
/// adapter's crystal.
fn run(drifts: [[i32; 2]; 2], faults: Faults, (gap, span): (bool, u64)) -> Seen {
    let network = EthernetNetwork::new(Vec::new()).unwrap();
    network.join([EthernetJack::Card(0), EthernetJack::Card(1)], 1_000, Nanos(500));
    network.pull(faults.pulled);
    let worlds = drifts.map(|[clock, _]| OwnClock::world(clock));
    let hosts = [0, 1].map(|card: usize| {
        let wire = network.wire(card).unwrap().seen_by(worlds[card].clone());
        // The crystal is so fast by the clock of the host.
        let [clock, crystal] = drifts[card];
        let crystal = OwnClock::new(vec![(Nanos::ZERO, crystal - clock)]);
        Host::of(Card::new(&wire).with_crystal(crystal))
    });
    let station = |place: usize| {
        let is = [100 * (place as u8 + 1), place as u8 + 1];
        Station::new(&hosts[place], is, worlds[place].clone(), gap)
    };
    let mut stations = [0, 1].map(station);
    let mut was_off = false;
    let mut seen = Seen::default();
    let mut now = Nanos::ZERO;
    let mut known = false;
    while now.0 < span {
        now = stations.iter().map(Station::next).fold(now + Nanos(MS), Nanos::min).max(now);
        stations[0].off = faults.off.is_some_and(|[from, until]| from <= now && now < until);
        if was_off && !stations[0].off {
            stations[0] = station(0);
        }
        was_off = stations[0].off;
        stations.iter_mut().for_each(|it| it.pass(now));
        let latest = stations.iter().map(|it| it.world.own(it.host.now.get()));
        let at = latest.fold(now, Nanos::max);
        let time = |it: &Station<'_>| it.station.node().time(it.world.host(at)).filter(|_| !it.off);
        let times = stations.each_ref().map(time);
        known |= times[1].is_some();
        seen.unknown += u64::from(known && times[1].is_none());
        if seen.follower.last().is_none_or(|(_, last)| *last != times[1].is_some()) {
            seen.follower.push((at.0, times[1].is_some()));
        }
        if let [Some(one), Some(other)] = times {
            seen.furthest = seen.furthest.max(one.0.abs_diff(other.0));
            seen.compared += 1;
        }
    }
    seen.unstamped = stations.iter().map(|it| it.station.unstamped()).sum();
    seen
}

#[test]
fn two_hosts_are_never_further_apart_than_the_terms_say() {
    let error = terms().error().0;
    let mut furthest = 0;
    for drifts in [
        [[100, 100], [-100, -100]],
        [[-100, 100], [100, -100]],
        [[100, -100], [-100, 100]],
        [[0, 0], [0, 0]],
    ] {
        let seen = run(drifts, Faults::default(), (true, 300 * S));
        println!("{drifts:?}: {} of {error} ns, {} compared", seen.furthest, seen.compared);
        assert!(seen.furthest <= error, "{drifts:?}: {} of {error} ns", seen.furthest);
        assert!(seen.compared > 10_000, "{}", seen.compared);
        assert_eq!(seen.unknown, 0, "it forgot the time: {:?}", seen.follower);
        assert_eq!(seen.unstamped, 0, "events without a stamp");
        furthest = furthest.max(seen.furthest);
    }
    assert!(furthest > error / 20, "{furthest} of {error} ns");
}

/// The first adapter's crystal is not as the terms say. Both clocks are compared before the node
/// can know the time.
#[test]
fn a_crystal_that_is_wrong_brings_no_time() {
    for wrong in [-1_000, 1_000] {
        let seen = run([[0, wrong], [0, 0]], Faults::default(), (true, 30 * S));
        assert_eq!((seen.follower.len(), seen.compared), (1, 0), "{:?}", seen.follower);
        assert!(seen.unstamped > 30, "{} without a stamp", seen.unstamped);
    }
}

/// The adapter has room for one stamp. A Sync and a request that come together time after time
/// would lose one of them each time.
#[test]
fn events_without_a_gap_lock_each_other_out() {
    let seen = run([[100, 100], [-100, -100]], Faults::default(), (false, 300 * S));
    assert!(seen.unstamped > 10 && seen.unknown > 0, "{} lost", seen.unstamped);
    assert!(seen.furthest <= terms().error().0);
}

#[test]
fn a_wire_that_is_pulled_ends_the_time_and_brings_no_wrong_one() {
    let pulled = vec![[Nanos(30 * S), Nanos(40 * S)]];
    let faults = Faults { pulled, off: None };
    let seen = run([[100, 100], [-100, -100]], faults, (true, 80 * S));
    let error = terms().error().0;
    assert!(seen.furthest <= error, "{} of {error} ns", seen.furthest);
    // The time is known, then it is not, then it is known again.
    let states: Vec<bool> = seen.follower.iter().map(|(_, known)| *known).collect();
    println!("{:?}, {} of {error} ns", seen.follower, seen.furthest);
    assert_eq!(states.first(), Some(&false));
    assert_eq!(states.last(), Some(&true));
    let lost = seen.follower.iter().find(|(at, known)| !*known && *at > 30 * S).unwrap();
    assert!(lost.0 < 30 * S + terms().valid().0 * 2, "it went on without hearing anything");
}

/// The second host is alone while the first is off, so it knows no time. It leads when the wire
/// works again, until it has heard of the first, whose own time is another one by then.
#[test]
fn a_master_that_begins_anew_brings_no_second_time() {
    let off = Some([Nanos(50 * S), Nanos(150 * S)]);
    let faults = Faults { off, ..Faults::default() };
    let seen = run([[100, 100], [-100, -100]], faults, (true, 250 * S));
    let error = terms().error().0;
    println!("{:?}, {} of {error} ns", seen.follower, seen.furthest);
    assert!(seen.furthest <= error, "{} of {error} ns", seen.furthest);
    let known = |at: u64| seen.follower.iter().rev().find(|(from, _)| *from <= at * S);
    assert_eq!([49, 100, 249].map(|at| known(at).unwrap().1), [true, false, true]);
    assert!(seen.compared > 50_000, "{}", seen.compared);
}
