//! All flows over cables together: the longest time of each stage, as a fixed point.

use super::crossing;
use super::flows::{CROSSING, FlowBill, FlowStage};
use super::route::{By, Crossing, Mailed, Port, Route};
use super::site::Worker;
use crate::missing::Missing;
use crate::pipes::Plant;
use diapason_abi::Nanos;
use diapason_contract::routes::{OWN, PROGRAM as ROUTER};
use diapason_contract::settings::PROGRAM;
use diapason_system::{CLOCKS_APART, FlowStop, Hosts};
use diapason_usb::class::link::DEPTH;
use diapason_usb::debug_target::ROOM;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Steps to the fixed point before it is given up, and the longest bound that is looked for.
const ROUNDS_MAX: usize = 1_000;
const TOTAL_MAX: Nanos = Nanos::from_secs(100);
/// The time of a program that may never be done. A bill with it is refused.
const NEVER: Nanos = Nanos::from_secs(1_000);

/// A thread that flows pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Seat {
    /// A process of a host.
    Program(usize, u16),
    /// The thread of a server for a link of its host.
    Link(usize, usize),
}

impl Seat {
    pub(super) fn of(stop: &FlowStop) -> Seat {
        Seat::Program(stop.host, stop.process)
    }

    fn at(port: &Port) -> Seat {
        Seat::Link(port.host, port.link)
    }
}

/// Threads by their seats.
pub(super) type Workers<'a> = BTreeMap<Seat, Worker<'a>>;

/// Returns the threads that a flow passes, among `known`, which are all flows.
pub(super) fn workers<'a>(
    plants: &'a [Plant<'a>],
    route: &Route<'_>,
    known: &[Route<'_>],
) -> Result<Workers<'a>, Missing> {
    let mut all = Workers::new();
    let sides = || known.iter().filter_map(|route| route.mailed).flatten();
    for stop in route.stops() {
        let (plant, seat) = (&plants[stop.host], Seat::of(stop));
        let is_router = plant.system.processes[usize::from(stop.process)].program == ROUTER;
        let flows = sides().filter(|it| [it.from, it.to].iter().any(|it| Seat::of(it) == seat));
        let worker = match flows.count() as u64 {
            0 => Worker::program(plant, *stop),
            flows if is_router => {
                let posts = known.iter().filter_map(|route| route.mailed);
                let posts = posts.filter(|[post, _]| Seat::of(&post.to) == seat).count() as u64;
                Worker::of_router(plant, *stop, (flows, posts))
            }
            flows => Worker::at_mailbox(plant, *stop, flows),
        };
        all.insert(seat, worker?);
    }
    for (stop, port) in route.crossings.iter().flat_map(|it| [it.from, it.to]) {
        let worker = Worker::link(&plants[port.host], &port, stop.process)?;
        all.insert(Seat::at(&port), worker);
    }
    Ok(all)
}

/// All flows, and how long each of their stages takes at most, as far as that is known.
///
/// The other ways of a flow stand behind it as routes of their own.
pub(super) struct Net<'a> {
    pub(super) hosts: &'a Hosts,
    pub(super) routes: Vec<Route<'a>>,
    workers: Workers<'a>,
    /// By the readers of pipes from devices that begin flows: the longest time of a message until
    /// the reader has sent it on.
    piped: BTreeMap<Seat, Nanos>,
    /// By route and stage: the first program; the router that takes its messages from a mailbox,
    /// or nothing; the stages of each crossing; and the program at the mailbox behind the last.
    /// Another way has nothing at its first program.
    pub(super) delays: Vec<Vec<Nanos>>,
    /// By the ports by which messages go out: from when a transfer has ended until its server has
    /// taken note, as far as that is known.
    noted: BTreeMap<Seat, Nanos>,
    /// Times of packets on a cable: the cable, the host they come from, and how many.
    crossed: RefCell<BTreeMap<(usize, usize, u64), Nanos>>,
}

/// A crossing of a route: the route, the number of the crossing, and the crossing.
pub(super) type Place<'n> = (usize, usize, &'n Crossing);

pub(super) const fn stage(crossing: usize, stage: FlowStage) -> usize {
    FIRST + CROSSING.len() * crossing + stage as usize
}

/// The stage of the router that takes messages from the mailbox before the first crossing.
pub(super) const POSTED: usize = 1;
/// The first stage of the first crossing.
const FIRST: usize = 2;

impl<'a> Net<'a> {
    /// Returns the net of `hosts` without flows.
    pub fn new(hosts: &'a Hosts) -> Net<'a> {
        Net {
            hosts,
            routes: Vec::new(),
            workers: Workers::new(),
            piped: BTreeMap::new(),
            delays: Vec::new(),
            noted: BTreeMap::new(),
            crossed: RefCell::default(),
        }
    }

    /// Adds a flow: its way, its other ways, and the threads that they pass; and how long a message
    /// of the pipe that it begins with takes, if there is one.
    pub fn add(&mut self, ways: Vec<(Route<'a>, Workers<'a>)>, piped: Option<Nanos>) {
        let first = ways.first().map(|(route, _)| Seat::of(&route.flow.from));
        self.piped.extend(first.zip(piped));
        for (route, workers) in ways {
            let stages = FIRST + CROSSING.len() * route.crossings.len();
            self.delays.push(vec![Nanos::ZERO; stages + usize::from(route.mailed.is_some())]);
            self.routes.push(route);
            self.workers.extend(workers);
        }
    }

    /// Lets delays grow until they follow from each other.
    ///
    /// # Errors
    /// Why they never do.
    pub fn settle(&mut self) -> Result<(), Missing> {
        for _ in 0..ROUNDS_MAX {
            let next = (0..self.routes.len()).map(|flow| self.round(flow));
            let next = next.collect::<Result<Vec<Vec<Nanos>>, Missing>>()?;
            let sides = self.places().map(|(_, _, it)| it.from);
            let noted = sides.map(|side| (Seat::at(&side.1), self.noted(side))).collect();
            if next == self.delays && noted == self.noted {
                return Ok(());
            }
            (self.delays, self.noted) = (next, noted);
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
        let mailed = || route.mailed.iter().flatten().flat_map(|it| [&it.from, &it.to]);
        let routers = || route.stops().filter(|stop| self.holds(stop));
        if let Some(slow) = mailed().chain(routers()).find(|stop| self.job(stop) >= NEVER) {
            return Err(self.slow(slow));
        }
        let first = route.around.map_or_else(|| self.job(&route.flow.from), |_| Nanos::ZERO);
        let posted = route.mailed.map_or(Nanos::ZERO, |[post, _]| self.job(&post.to));
        let mut delays = vec![first, posted];
        for crossing in &route.crossings {
            let (sends, _) = self.serves(crossing.from)?;
            let (_, receives) = self.serves(crossing.to)?;
            let told = self.workers[&Seat::at(&crossing.to.1)].told;
            let job = self.job(&crossing.to.0);
            delays.extend([sends, self.carried(crossing)?, told, receives, job]);
        }
        delays.extend(route.mailed.map(|[_, delivery]| self.job(&delivery.to)));
        Ok(delays)
    }

    /// Returns the most messages of a route that reach a stage in a closed window.
    pub(super) fn arrivals(&self, flow: usize, stage: usize, window: Nanos) -> u64 {
        let late = self.late(flow, stage);
        self.routes[flow].bucket().most(window + self.before(flow, stage)).saturating_add(late)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
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

    pub(super) fn into(&self, port: Port) -> impl Iterator<Item = Place<'_>> {
        self.places().filter(move |(_, _, it)| it.to.1 == port)
    }

    pub(super) fn out_of(&self, port: Port) -> impl Iterator<Item = Place<'_>> {
        self.places().filter(move |(_, _, it)| it.from.1 == port)
    }

    /// Returns the crossings that lead to a program.
    pub(super) fn to(&self, stop: &FlowStop) -> impl Iterator<Item = Place<'_>> {
        let seat = Seat::of(stop);
        self.places().filter(move |(_, _, it)| Seat::of(&it.to.0) == seat)
    }

    /// Returns the mailboxes out of which a program takes messages: the route, the stage, and the
    /// mailbox.
    pub(super) fn mailed_to(
        &self,
        stop: &FlowStop,
    ) -> impl Iterator<Item = (usize, usize, &Mailed)> {
        let seat = Seat::of(stop);
        let each = self.routes.iter().enumerate();
        let all = each.filter_map(|(flow, route)| {
            let [post, delivery] = route.mailed.as_ref()?;
            let last = stage(route.crossings.len(), FlowStage::Sends);
            Some([(flow, POSTED, post), (flow, last, delivery)])
        });
        all.flatten().filter(move |(_, _, it)| Seat::of(&it.to) == seat)
    }

    /// Returns the most messages that are in a mailbox at once. Those of each flow that leads there
    /// are gone after the time of the program that takes them.
    fn mailed(&self, it: &Mailed) -> u64 {
        let all = self.mailed_to(&it.to).filter(|(_, _, other)| other.number == it.number);
        let each = all.map(|(flow, at, _)| self.arrivals(flow, at, self.delays[flow][at]));
        each.fold(0, u64::saturating_add)
    }

    /// Returns the flows that begin at a program.
    fn begun(&self, stop: &FlowStop) -> impl Iterator<Item = &Route<'a>> {
        let seat = Seat::of(stop);
        let own = self.routes.iter().filter(|route| route.around.is_none());
        own.filter(move |route| Seat::of(&route.flow.from) == seat)
    }

    pub(super) fn worker(&self, stop: &FlowStop) -> &Worker<'a> {
        &self.workers[&Seat::of(stop)]
    }

    /// Returns how often a program is woken in a window at most: by messages, and by its own time.
    fn woken(&self, stop: &FlowStop, window: Nanos) -> u64 {
        if self.holds(stop) {
            return self.router_woken(stop, window);
        }
        let own = self.begun(stop).map(|route| route.bucket().most(window));
        let came = self.sum(self.to(stop), FlowStage::Program, window);
        let mailed = self.mailed_to(stop).map(|(flow, at, _)| self.arrivals(flow, at, window));
        let came = mailed.fold(came, u64::saturating_add);
        own.fold(came.saturating_add(self.returned(stop)), u64::saturating_add)
    }

    /// Returns the longest time of a program for a message. For the reader of a pipe that is the
    /// whole bill of the pipe. Any other is done with all there can be, which is what it lent
    /// memory for and what it sends at once itself; or it has nothing to do any more, if that is
    /// earlier.
    pub(super) fn job(&self, stop: &FlowStop) -> Nanos {
        if self.holds(stop) {
            return self.router_job(stop).unwrap_or(NEVER);
        }
        if let Some(piped) = self.piped.get(&Seat::of(stop)) {
            return *piped;
        }
        let worker = self.worker(stop);
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
            let mailed = self
                .mailed_to(stop)
                .map(|(flow, at, it)| times(self.arrivals(flow, at, window), step(it.to.work_ns)));
            let returned = times(self.returned(stop), worker.each);
            Nanos(came.chain(own).chain(mailed).fold(returned, u64::saturating_add))
        };
        let busy = worker.busy(|window| self.woken(stop, window), work, worker.least());
        worker.done_with(open).min(busy.unwrap_or(NEVER))
    }

    /// Returns why a program has no time for a message.
    fn slow(&self, stop: &FlowStop) -> Missing {
        let host = &self.hosts.hosts[stop.host];
        let name = host.system.process_name(stop.process).unwrap_or_default();
        (
            format!("`{name}` in `{}` cannot keep up with the messages of the flows", host.name),
            "give its VCPU a larger budget, or send fewer messages".to_owned(),
        )
    }

    /// Returns how long the thread of a link takes at most: until it has handed a message to the
    /// controller, and until it has told of one that came.
    fn serves(&self, (stop, port): (FlowStop, Port)) -> Result<(Nanos, Nanos), Missing> {
        let worker = &self.workers[&Seat::at(&port)];
        let (each, message) = (worker.each, worker.message);
        let late = self.job(&stop);
        // A program rings once in a job, and a job is at most so late.
        let rings = |window: Nanos| match self.holds(&stop) {
            true => self.rung(port, window + late),
            false => self.woken(&stop, window + late),
        };
        let wakes = |window: Nanos| match port.by {
            By::Usb(_) => rings(window).saturating_add(self.transferred((stop, port), window)),
            By::Target(look) => rings(window).saturating_add(1 + window.0 / look.0.max(1)),
        };
        let work = |window: Nanos| {
            let woken = wakes(window).saturating_mul(each.0);
            let messages = match message {
                Nanos::ZERO => 0,
                _ => self.moved((stop, port), rings(window), window),
            };
            Nanos(woken.saturating_add(messages.saturating_mul(message.0)))
        };
        let busy = worker.busy(wakes, work, each);
        // Whenever it begins next it takes all that was asked for: it is busy at most with the
        // turn under way, and with that one. The time of a turn is known if its messages are in it.
        let turns = if message == Nanos::ZERO { worker.any(each + each) } else { Nanos::FOREVER };
        let turns = turns.min(busy.unwrap_or(Nanos::FOREVER));
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

    /// Returns the most transfers of a port that end in a window.
    fn transferred(&self, (stop, port): (FlowStop, Port), window: Nanos) -> u64 {
        let came = match self.holds(&stop) {
            true => self.pressed(port, window),
            false => self.sum(self.into(port), FlowStage::Told, window),
        };
        came.saturating_add(self.sum(self.out_of(port), FlowStage::Told, window))
    }

    /// Returns the most transfers of a port that are asked for or end in a window in which its
    /// server is rung for so often.
    ///
    /// A program lends memory again that a message came to in the window, or that was not lent
    /// when the window began.
    fn moved(&self, side: (FlowStop, Port), rings: u64, window: Nanos) -> u64 {
        let (stop, port) = side;
        // A router rings for each.
        let asked = if self.holds(&stop) {
            rings
        } else {
            let slots = self.into(port).map(|(_, _, it)| it.slots).max().unwrap_or_default();
            let came = self.sum(self.into(port), FlowStage::Told, window);
            let sends = self.sum(self.out_of(port), FlowStage::Sends, window);
            slots.saturating_add(came).saturating_add(sends)
        };
        asked.saturating_add(self.transferred(side, window))
    }

    /// Returns the crossings over the same cable in the same direction.
    fn beside(&self, crossing: &Crossing) -> impl Iterator<Item = Place<'_>> {
        let (cable, host) = (crossing.cable, crossing.from.0.host);
        self.places().filter(move |(_, _, it)| (it.cable, it.from.0.host) == (cable, host))
    }

    /// Returns the most packets that begin to cross a cable in a window. The server before it lets
    /// each message be as long as the longest of all flows there.
    fn packets(&self, crossing: &Crossing, window: Nanos) -> u64 {
        let each = self
            .beside(crossing)
            .map(|(flow, number, _)| self.arrivals(flow, stage(number, FlowStage::Cable), window));
        let messages = each.fold(0, u64::saturating_add);
        let longest = self.beside(crossing).map(|(flow, ..)| self.routes[flow].flow.bytes).max();
        messages.saturating_mul(crossing::packets(longest.unwrap_or_default()))
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

    pub(super) fn delay(&self, (flow, number, _): Place<'_>, at: FlowStage) -> Nanos {
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
        let onward = || self.into(port).flat_map(|place| self.onward(place));
        let passed_on =
            onward().map(|place| self.noted(side) + self.job(&stop) + self.known_to_be_sent(place));
        let held = passed_on.max().map_or(0, came);
        // A cable that is lost keeps what it did not take.
        let kept = onward().map(|(route, _, _)| self.stuck(route)).fold(0, u64::saturating_add);
        came(back).saturating_add(held).saturating_add(kept)
    }

    /// Returns the time from when a message was given to a link until the server has taken note
    /// that it was sent.
    pub(super) fn known_to_be_sent(&self, place: Place<'_>) -> Nanos {
        let away = self.delay(place, FlowStage::Sends) + self.delay(place, FlowStage::Cable);
        away + self.noted(place.2.from)
    }

    /// Returns the most messages of a route whose end a program is told in a window, after it gave
    /// them to a link at the beginning of a crossing: also those that it gave before the window.
    pub(super) fn ended(&self, place: Place<'_>, window: Nanos) -> u64 {
        let (route, number, crossing) = place;
        let away = self.delay(place, FlowStage::Sends) + self.delay(place, FlowStage::Cable);
        let noted = self.noted.get(&Seat::at(&crossing.from.1)).copied().unwrap_or_default();
        self.arrivals(route, stage(number, FlowStage::Sends), window + away + noted)
    }

    /// Returns the messages that a server must have pending at its controller, so that none waits
    /// to be handed over.
    fn pending(&self, place: Place<'_>) -> u64 {
        let window = self.known_to_be_sent(place);
        self.sum(self.out_of(place.2.from.1), FlowStage::Sends, window)
    }

    /// Returns the bill of a flow.
    pub fn bill(&self, flow: usize) -> FlowBill {
        let route = &self.routes[flow];
        let mut bill = FlowBill::new();
        bill.begin(self.hosts, route.flow, self.delays[flow][0]);
        if let Some([post, _]) = route.mailed {
            self.mailed_item(flow, POSTED, &post, &mut bill);
        }
        self.items(flow, &mut bill);
        if let Some([_, delivery]) = route.mailed {
            let at = stage(route.crossings.len(), FlowStage::Sends);
            self.mailed_item(flow, at, &delivery, &mut bill);
        }
        bill.put(FlowStage::Clocks, (None, "all hosts".to_owned()), apart(bill.total), None);
        bill.others = self.others(flow).map(|other| self.other(flow, other)).collect();
        let longest = self.before(flow, usize::MAX);
        bill.longest = longest + apart(longest);
        bill.passages = self.passages(flow);
        bill
    }

    /// Puts the item of a program that takes messages out of a mailbox.
    fn mailed_item(&self, flow: usize, at: usize, it: &Mailed, bill: &mut FlowBill) {
        let named = self.process(it.to.host, it.to.process);
        let waiting = Some((self.mailed(it), it.room));
        bill.put(FlowStage::Program, named, self.delays[flow][at], waiting);
    }

    fn process(&self, host: usize, number: u16) -> (Option<usize>, String) {
        let name = self.hosts.hosts[host].system.process_name(number);
        (Some(host), name.unwrap_or_default().to_owned())
    }

    /// Puts the items of all crossings of a route.
    pub(super) fn items(&self, flow: usize, bill: &mut FlowBill) {
        let process = |host: usize, number: u16| self.process(host, number);
        for (number, it) in self.routes[flow].crossings.iter().enumerate() {
            let place = (flow, number, it);
            for at in CROSSING {
                let (named, waiting) = match at {
                    FlowStage::Sends => {
                        let own = (self.own(&it.from.0), OWN as u64);
                        let pending = (self.pending(place), pending_max(&it.from.1));
                        let waiting = if own.0 > own.1 { own } else { pending };
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
    }
}

/// Returns how much longer a time is by another host's clock.
pub(super) fn apart(time: Nanos) -> Nanos {
    Nanos(time.0 / CLOCKS_APART + 1)
}

/// Returns the most transfers that a server keeps at its controller in each direction.
fn pending_max(port: &Port) -> u64 {
    match port.by {
        By::Usb(_) => DEPTH as u64,
        By::Target(_) => ROOM.into(),
    }
}
