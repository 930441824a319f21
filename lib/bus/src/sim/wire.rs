//! The bus, packet after packet.
//!
//! In each slot: the periodic endpoints whose turn it is, one after another; then the round robin
//! goes on where it was. Endpoints without a guarantee always have something to send. Requests of
//! the others come when it hurts, with at least their period between them.

use crate::endpoint::{Async, BusInstance, Guarantee, PeriodicEndpoint, Starts, Unit};
use crate::plan::Placed;
use alloc::vec;
use alloc::vec::Vec;
use diapason_random::Random;

/// A transfer under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    since: u64,
    packets: u32,
    failures: u32,
}

/// The observations of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// For each asynchronous endpoint the longest time of a transfer, in ps.
    pub longest: Vec<u64>,
    pub transfers: u64,
    /// Slots in which periodic traffic took more than it may.
    pub overfull: u64,
    /// Packets that were on the bus at the end of a slot.
    pub crossed: u64,
    pub periodic: u64,
    /// Requests that were still under way at the end, and had not been for their whole period.
    pub open: u64,
    /// Requests that were still under way after their period.
    pub late: u64,
}

/// A bus under attack.
pub struct AttackedBus<'a> {
    bus: &'a BusInstance,
    periodic: Vec<(&'a PeriodicEndpoint, Placed)>,
    asyncs: &'a [Async],
    whole: bool,
    /// Failed packets wait for the next visit, not sent again at once.
    deferred: bool,
    /// Endpoints that send whenever they may, although they have a guarantee.
    greedy: Vec<bool>,
    requests: Vec<Option<Request>>,
    /// When the next request comes, at the latest.
    arrivals: Vec<u64>,
    /// The period since the last request is over.
    earliest: Vec<u64>,
    turn: usize,
    in_burst: u32,
    seen: Observed,
}

impl<'a> AttackedBus<'a> {
    /// Returns a bus with the endpoints that have a place, and `asyncs`.
    #[must_use]
    pub fn new(
        bus: &'a BusInstance,
        periodic: &'a [PeriodicEndpoint],
        placed: &[Placed],
        asyncs: &'a [Async],
        random: &mut Random,
    ) -> AttackedBus<'a> {
        let slot = bus.speed.slot().0;
        let of = |id| periodic.iter().find(|endpoint| endpoint.id == id);
        let mut anywhere = |place: &Placed| match bus.starts {
            Starts::Chosen => *place,
            Starts::Unknown => Placed { start: random.within(0, place.period - 1), ..*place },
        };
        let places: Vec<(&PeriodicEndpoint, Placed)> =
            placed.iter().filter_map(|place| Some((of(place.id)?, anywhere(place)))).collect();
        let victim = random.within(0, asyncs.len().max(1) as u32 - 1) as usize;
        let everybody = random.one_in(3);
        let greedy =
            |(index, a): (usize, &Async)| a.guarantee.is_none() || (index != victim && !everybody);
        AttackedBus {
            bus,
            periodic: places,
            asyncs,
            whole: match bus.unit {
                Unit::Packet => false,
                Unit::Burst => true,
                Unit::Unknown => random.one_in(2),
            },
            deferred: random.one_in(2),
            greedy: asyncs.iter().enumerate().map(greedy).collect(),
            requests: vec![None; asyncs.len()],
            arrivals: asyncs.iter().map(|_| random.bits() % (4 * slot)).collect(),
            earliest: vec![0; asyncs.len()],
            turn: random.within(0, asyncs.len().max(1) as u32 - 1) as usize,
            in_burst: 0,
            seen: Observed { longest: vec![0; asyncs.len()], ..Observed::default() },
        }
    }

    /// Sends for `slots` slots.
    #[must_use]
    pub fn run(mut self, slots: u32, random: &mut Random) -> Observed {
        let slot = self.bus.speed.slot().0;
        for f in 0..slots {
            let begin = u64::from(f) * slot;
            let at = self.periodic_part(f, begin);
            self.asynchronous_part(at, begin + slot, random);
        }
        let now = u64::from(slots) * slot;
        for (request, endpoint) in self.requests.iter().zip(self.asyncs) {
            let Some(request) = request else { continue };
            let period = endpoint.guarantee.map_or(u64::MAX, |g| u64::from(g.period) * slot);
            let late = now - request.since > period;
            *(if late { &mut self.seen.late } else { &mut self.seen.open }) += 1;
        }
        self.seen
    }

    fn periodic_part(&mut self, f: u32, begin: u64) -> u64 {
        let mut at = begin;
        for (endpoint, place) in &self.periodic {
            if f % place.period == place.start {
                at += endpoint.packet_time(self.bus).0 * u64::from(endpoint.packets());
                self.seen.periodic += 1;
            }
        }
        self.seen.overfull += u64::from(at - begin > self.bus.periodic_limit().0);
        self.seen.crossed += u64::from(at - begin > self.bus.speed.slot().0);
        at
    }

    /// Returns whether the endpoint has something to send at this time.
    fn has_work(&mut self, index: usize, at: u64) -> bool {
        if self.requests[index].is_none() && self.arrivals[index] <= at {
            self.ask(index, self.arrivals[index]);
        }
        self.greedy[index] || self.requests[index].is_some()
    }

    fn ask(&mut self, index: usize, since: u64) {
        let Some(Guarantee { bytes, period }) = self.asyncs[index].guarantee else { return };
        if !self.greedy[index] {
            let packets = bytes.div_ceil(self.asyncs[index].packet);
            self.requests[index] = Some(Request { since, packets, failures: 0 });
            self.earliest[index] = since + u64::from(period) * self.bus.speed.slot().0;
            self.arrivals[index] = u64::MAX;
        }
    }

    fn asynchronous_part(&mut self, start: u64, end: u64, random: &mut Random) {
        let mut at = start;
        let mut passed = 0;
        while at < end {
            if passed == self.asyncs.len() {
                passed = 0;
                if !(0..self.asyncs.len()).any(|index| self.has_work(index, at)) {
                    at = self.arrivals.iter().copied().min().unwrap_or(end);
                }
                continue;
            }
            let index = self.turn;
            if !self.has_work(index, at) {
                self.next_turn(at, random);
                passed += 1;
                continue;
            }
            passed = 0;
            let packet = self.asyncs[index].packet_time(self.bus).0;
            let count = if self.whole { self.rest_of_burst(index) } else { 1 };
            if at + packet * u64::from(count) > end {
                return;
            }
            for _ in 0..count {
                at += packet;
                self.sent(index, at, random);
            }
            self.seen.crossed += u64::from(at > end);
        }
    }

    fn slot(&self) -> u64 {
        self.bus.speed.slot().0
    }

    fn rest_of_burst(&self, index: usize) -> u32 {
        let burst = self.asyncs[index].burst + 1 - self.in_burst;
        self.requests[index].map_or(burst, |request| burst.min(request.packets))
    }

    /// A packet of `index` has ended: count it, or let it fail.
    fn sent(&mut self, index: usize, at: u64, random: &mut Random) {
        // Every endpoint that asked by now has seen this packet fail.
        for other in 0..self.asyncs.len() {
            self.has_work(other, at);
        }
        let allowed = self.requests.iter().flatten().all(|r| r.failures < self.bus.retries);
        let fails = self.bus.retries > 0 && allowed && random.one_in(3);
        if fails {
            self.requests.iter_mut().flatten().for_each(|request| request.failures += 1);
        }
        if !fails || self.deferred || self.whole {
            self.in_burst += 1;
        }
        if let (false, Some(request)) = (fails, &mut self.requests[index]) {
            request.packets -= 1;
            if request.packets == 0 {
                self.seen.transfers += 1;
                let took = at - request.since;
                self.seen.longest[index] = self.seen.longest[index].max(took);
                let limit = self.asyncs[index].guarantee.map_or(u64::MAX, |g| u64::from(g.period));
                self.seen.late += u64::from(took > limit.saturating_mul(self.bus.speed.slot().0));
                self.requests[index] = None;
                let pause = if random.one_in(2) { 0 } else { random.bits() % (self.slot() * 2) };
                self.arrivals[index] = self.earliest[index].max(at) + pause;
                return self.next_turn(at, random);
            }
        }
        if self.in_burst > self.asyncs[index].burst {
            self.next_turn(at, random);
        }
    }

    /// The round robin goes on; an endpoint that has just been passed by likes to ask now.
    fn next_turn(&mut self, at: u64, random: &mut Random) {
        let left = self.turn;
        self.turn = (self.turn + 1) % self.asyncs.len();
        self.in_burst = 0;
        let waits = self.requests[left].is_none() && self.earliest[left] <= at;
        if waits && random.one_in(2) {
            self.ask(left, at);
        }
    }
}
