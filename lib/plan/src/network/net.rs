//! All flows over cables together: the longest time of each stage, as a fixed point.

use super::crossing;
use super::flows::{CROSSING, FlowBill, FlowStage};
use super::route::{By, Crossing, Port, Route};
use super::site::Worker;
use crate::missing::Missing;
use crate::pipes::Plant;
use diapason_abi::Nanos;
use diapason_contract::settings::PROGRAM;
use diapason_system::{CLOCKS_APART, FlowStop, Hosts};
use diapason_usb::class::link::DEPTH;
use diapason_usb::debug_target::ROOM;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Steps to the fixed point before it is given up, and the longest bound that is looked for.
const ROUNDS_MAX: usize = 1_000;
const TOTAL_MAX: Nanos = Nanos::from_secs(100);

/// A thread that flows pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Seat {
    /// A process of a host.
    Program(usize, u16),
    /// The thread of a server for a link of its host.
    Link(usize, usize),
}

impl Seat {
    fn of(stop: &FlowStop) -> Seat {
        Seat::Program(stop.host, stop.process)
    }

    fn at(port: &Port) -> Seat {
        Seat::Link(port.host, port.link)
    }
}

/// Threads by their seats.
pub(super) type Workers<'a> = BTreeMap<Seat, Worker<'a>>;

/// Returns the threads that a flow passes.
pub(super) fn workers<'a>(
    plants: &'a [Plant<'a>],
    route: &Route<'_>,
) -> Result<Workers<'a>, Missing> {
    let mut all = Workers::new();
    for stop in route.flow.stops() {
        all.insert(Seat::of(stop), Worker::program(&plants[stop.host], *stop)?);
    }
    for (stop, port) in route.crossings.iter().flat_map(|it| [it.from, it.to]) {
        let worker = Worker::link(&plants[port.host], &port, stop.process)?;
        all.insert(Seat::at(&port), worker);
    }
    Ok(all)
}

/// All flows, and how long each of their stages takes at most, as far as that is known.
pub(super) struct Net<'a> {
    hosts: &'a Hosts,
    routes: Vec<Route<'a>>,
    workers: Workers<'a>,
    /// By flow and stage: the first program, then the stages of each crossing.
    delays: Vec<Vec<Nanos>>,
    /// Times of packets on a cable: the cable, the host they come from, and how many.
    crossed: RefCell<BTreeMap<(usize, usize, u64), Nanos>>,
}

/// A crossing of a flow: the flow, the number of the crossing, and the crossing.
type Place<'n> = (usize, usize, &'n Crossing);

const fn stage(crossing: usize, stage: FlowStage) -> usize {
    1 + CROSSING.len() * crossing + stage as usize
}

impl<'a> Net<'a> {
    /// Returns the net of `hosts` without flows.
    pub fn new(hosts: &'a Hosts) -> Net<'a> {
        Net {
            hosts,
            routes: Vec::new(),
            workers: Workers::new(),
            delays: Vec::new(),
            crossed: RefCell::default(),
        }
    }

    /// Adds a flow, with the threads that it passes.
    pub fn add(&mut self, route: Route<'a>, workers: Workers<'a>) {
        self.delays.push(vec![Nanos::ZERO; 1 + CROSSING.len() * route.crossings.len()]);
        self.routes.push(route);
        self.workers.extend(workers);
    }

    /// Lets delays grow until they follow from each other.
    ///
    /// # Errors
    /// Why they never do.
    pub fn settle(&mut self) -> Result<(), Missing> {
        for _ in 0..ROUNDS_MAX {
            let next = (0..self.routes.len()).map(|flow| self.round(flow));
            let next = next.collect::<Result<Vec<Vec<Nanos>>, Missing>>()?;
            if next == self.delays {
                return Ok(());
            }
            self.delays = next;
            let totals = (0..self.routes.len()).map(|flow| self.before(flow, usize::MAX));
            if totals.max() > Some(TOTAL_MAX) {
                break;
            }
        }
        Err((
            "messages on the ways of flows delay each other more and more".to_owned(),
            "send fewer messages, or give their programs and servers more of the processor".into(),
        ))
    }

    /// Returns the delay of each stage of a flow, if those before are as they are known.
    fn round(&self, flow: usize) -> Result<Vec<Nanos>, Missing> {
        let route = &self.routes[flow];
        let mut delays = vec![self.job(&route.flow.from)];
        for crossing in &route.crossings {
            let (sends, _) = self.serves(crossing.from)?;
            let (_, receives) = self.serves(crossing.to)?;
            let told = self.workers[&Seat::at(&crossing.to.1)].told;
            let job = self.job(&crossing.to.0);
            delays.extend([sends, self.carried(crossing)?, told, receives, job]);
        }
        Ok(delays)
    }

    /// Returns the longest time until a message of a flow reaches a stage.
    fn before(&self, flow: usize, stage: usize) -> Nanos {
        self.delays[flow].iter().take(stage).fold(Nanos::ZERO, |sum, delay| sum + *delay)
    }

    /// Returns the most messages of a flow that reach a stage in a closed window.
    fn arrivals(&self, flow: usize, stage: usize, window: Nanos) -> u64 {
        self.routes[flow].bucket().most(window + self.before(flow, stage))
    }

    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let each = self.routes.iter().enumerate();
        each.flat_map(|(flow, route)| {
            route.crossings.iter().enumerate().map(move |(number, it)| (flow, number, it))
        })
    }

    /// Returns the messages that reach a stage of those crossings in a window.
    fn sum<'n>(
        &self,
        places: impl Iterator<Item = Place<'n>>,
        at: FlowStage,
        window: Nanos,
    ) -> u64 {
        let each = places.map(|(flow, number, _)| self.arrivals(flow, stage(number, at), window));
        each.fold(0, u64::saturating_add)
    }

    fn into(&self, port: Port) -> impl Iterator<Item = Place<'_>> {
        self.places().filter(move |(_, _, it)| it.to.1 == port)
    }

    fn out_of(&self, port: Port) -> impl Iterator<Item = Place<'_>> {
        self.places().filter(move |(_, _, it)| it.from.1 == port)
    }

    /// Returns the crossings that lead to a program.
    fn to(&self, stop: &FlowStop) -> impl Iterator<Item = Place<'_>> {
        let seat = Seat::of(stop);
        self.places().filter(move |(_, _, it)| Seat::of(&it.to.0) == seat)
    }

    /// Returns the flows that begin at a program.
    fn begun(&self, stop: &FlowStop) -> impl Iterator<Item = &Route<'a>> {
        let seat = Seat::of(stop);
        self.routes.iter().filter(move |route| Seat::of(&route.flow.from) == seat)
    }

    /// Returns how often a program is woken in a window at most: by messages, and by its own time.
    fn woken(&self, stop: &FlowStop, window: Nanos) -> u64 {
        let own = self.begun(stop).map(|route| route.bucket().most(window));
        own.fold(self.sum(self.to(stop), FlowStage::Program, window), u64::saturating_add)
    }

    /// Returns the longest time of a program for a message. Either it is done with all there can
    /// be, which is what it lent memory for and what it sends at once itself; or it has nothing to
    /// do any more.
    fn job(&self, stop: &FlowStop) -> Nanos {
        let worker = &self.workers[&Seat::of(stop)];
        // There is no worker of a program whose flow does not say its work.
        let step = |said: Option<u64>| worker.each + Nanos(said.unwrap_or_default());
        let times = |count: u64, step: Nanos| count.saturating_mul(step.0);
        let mut lent: BTreeMap<usize, (u64, Nanos)> = BTreeMap::new();
        for (_, _, it) in self.to(stop) {
            let (slots, longest) = lent.entry(it.cable).or_default();
            *slots = it.slots.max(*slots);
            *longest = step(it.to.0.work_ns).max(*longest);
        }
        let own = self
            .begun(stop)
            .map(|route| times(route.flow.contract.burst, step(route.flow.from.work_ns)));
        let lent = lent.values().map(|(slots, longest)| times(*slots, *longest));
        let open = Nanos(own.chain(lent).fold(0, u64::saturating_add));
        let work = |window: Nanos| {
            let came = self.to(stop).map(|(flow, number, it)| {
                let at = stage(number, FlowStage::Program);
                times(self.arrivals(flow, at, window), step(it.to.0.work_ns))
            });
            let own = self
                .begun(stop)
                .map(|route| times(route.bucket().most(window), step(route.flow.from.work_ns)));
            Nanos(came.chain(own).fold(0, u64::saturating_add))
        };
        let busy = worker.busy(|window| self.woken(stop, window), work, worker.each);
        worker.any(open).min(busy.unwrap_or(Nanos::FOREVER))
    }

    /// Returns how long the thread of a link takes at most: until it has handed a message to the
    /// controller, and until it has told of one that came.
    fn serves(&self, (stop, port): (FlowStop, Port)) -> Result<(Nanos, Nanos), Missing> {
        let worker = &self.workers[&Seat::at(&port)];
        let each = worker.each;
        let late = self.job(&stop);
        let wakes = |window: Nanos| {
            // A program rings once in a job, and a job is at most so late.
            let rings = self.woken(&stop, window + late);
            match port.by {
                By::Usb(_) => {
                    let ended = self.sum(self.into(port), FlowStage::Told, window);
                    rings
                        + ended.saturating_add(self.sum(self.out_of(port), FlowStage::Told, window))
                }
                By::Target(look) => rings.saturating_add(1 + window.0 / look.0.max(1)),
            }
        };
        let work = |window: Nanos| Nanos(wakes(window).saturating_mul(each.0));
        let busy = worker.busy(wakes, work, each);
        // Whenever it begins next it takes all that was asked for: it is busy at most with the
        // turn under way, and with that one.
        let turns = worker.any(each + each).min(busy.unwrap_or(Nanos::FOREVER));
        match (port.by, busy) {
            // A look takes what came, too.
            (By::Target(_), _) => Ok((turns, turns)),
            (By::Usb(_), Some(busy)) => Ok((turns, busy)),
            (By::Usb(home), None) => Err((
                format!(
                    "`{}` of `{PROGRAM}` in `{}` cannot keep up with the messages of the flows",
                    home.vcpu, self.hosts.hosts[port.host].name
                ),
                format!("give `{}` a larger `utilization`, or send fewer messages", home.vcpu),
            )),
        }
    }

    /// Returns the crossings over the same cable in the same direction.
    fn beside(&self, crossing: &Crossing) -> impl Iterator<Item = Place<'_>> {
        let (cable, host) = (crossing.cable, crossing.from.0.host);
        self.places().filter(move |(_, _, it)| (it.cable, it.from.0.host) == (cable, host))
    }

    /// Returns the most packets that begin to cross a cable in a window.
    fn packets(&self, crossing: &Crossing, window: Nanos) -> u64 {
        let each = self.beside(crossing).map(|(flow, number, _)| {
            let messages = self.arrivals(flow, stage(number, FlowStage::Cable), window);
            messages.saturating_mul(crossing::packets(self.routes[flow].flow.bytes))
        });
        each.fold(0, u64::saturating_add)
    }

    /// Returns the longest time of a message on the cable and the buses at its ends, if all that
    /// comes until then is before it.
    fn carried(&self, crossing: &Crossing) -> Result<Nanos, Missing> {
        let before = self
            .beside(crossing)
            .map(|(flow, number, _)| self.delays[flow][stage(number, FlowStage::Cable)]);
        let packets = self.packets(crossing, before.max().unwrap_or_default());
        let key = (crossing.cable, crossing.from.0.host, packets);
        if let Some(known) = self.crossed.borrow().get(&key) {
            return Ok(*known);
        }
        let found = crossing::longest(self.hosts, key.0, key.1, key.2)?;
        self.crossed.borrow_mut().insert(key, found);
        Ok(found)
    }

    fn delay(&self, (flow, number, _): Place<'_>, at: FlowStage) -> Nanos {
        self.delays[flow][stage(number, at)]
    }

    /// Returns from when a transfer of a port has ended until its server has taken note.
    fn noted(&self, side: (FlowStop, Port)) -> Nanos {
        let told = self.workers[&Seat::at(&side.1)].told;
        told + self.serves(side).map_or(Nanos::FOREVER, |(_, receives)| receives)
    }

    /// Returns the messages for which memory must be lent to the link of a port, so that none that
    /// comes finds none.
    fn lent(&self, side: (FlowStop, Port)) -> u64 {
        let (stop, port) = side;
        let came = |window| self.sum(self.into(port), FlowStage::Told, window);
        let sends = self.serves(side).map_or(Nanos::FOREVER, |(sends, _)| sends);
        let back = self.noted(side) + self.job(&stop) + sends;
        let passed_on = self.into(port).filter_map(|(flow, number, _)| {
            let next = self.routes[flow].crossings.get(number + 1)?;
            let place = (flow, number + 1, next);
            let away = self.delay(place, FlowStage::Sends) + self.delay(place, FlowStage::Cable);
            Some(self.noted(side) + self.job(&stop) + away + self.noted(next.from))
        });
        let held = passed_on.max().map_or(0, came);
        came(back).saturating_add(held)
    }

    /// Returns the messages that a server must have pending at its controller, so that none waits
    /// to be handed over.
    fn pending(&self, place: Place<'_>) -> u64 {
        let (_, _, it) = place;
        let away = self.delay(place, FlowStage::Sends) + self.delay(place, FlowStage::Cable);
        let window = away + self.noted(it.from);
        self.sum(self.out_of(it.from.1), FlowStage::Sends, window)
    }

    /// Returns the bill of a flow.
    pub fn bill(&self, flow: usize) -> FlowBill {
        let route = &self.routes[flow];
        let mut bill = FlowBill { items: Vec::new(), total: Nanos::ZERO };
        let process = |host: usize, number: u16| {
            let name = self.hosts.hosts[host].system.process_name(number);
            (Some(host), name.unwrap_or_default().to_owned())
        };
        let from = route.flow.from;
        let first = process(from.host, from.process);
        bill.put(FlowStage::Program, first, self.delays[flow][0], None);
        for (number, it) in route.crossings.iter().enumerate() {
            let place = (flow, number, it);
            for at in CROSSING {
                let (named, waiting) = match at {
                    FlowStage::Sends => {
                        let waiting = (self.pending(place), pending_max(&it.from.1));
                        (process(it.from.1.host, it.from.1.server), Some(waiting))
                    }
                    FlowStage::Cable => {
                        let name = self.hosts.cables[it.cable].name.clone();
                        let packets = self.packets(it, self.delay(place, at));
                        ((None, name), Some((packets, crossing::PACKETS)))
                    }
                    FlowStage::Told => (process(it.to.1.host, it.to.1.server), None),
                    FlowStage::Receives => {
                        let room = it.slots.min(pending_max(&it.to.1));
                        (process(it.to.1.host, it.to.1.server), Some((self.lent(it.to), room)))
                    }
                    _ => (process(it.to.0.host, it.to.0.process), None),
                };
                bill.put(at, named, self.delay(place, at), waiting);
            }
        }
        let apart = Nanos(bill.total.0 / CLOCKS_APART + 1);
        bill.put(FlowStage::Clocks, (None, "all hosts".to_owned()), apart, None);
        bill
    }
}

/// Returns the most transfers that a server keeps at its controller in each direction.
fn pending_max(port: &Port) -> u64 {
    match port.by {
        By::Usb(_) => DEPTH as u64,
        By::Target(_) => ROOM.into(),
    }
}
