//! The bills of flows over Ethernet: from the program that sends a datagram to the program that
//! takes it.
//!
//! A datagram passes the program that sends, the thread of `netd` that sends, the wire of its
//! adapter, a port of each switch, and what a socket's bill has from then on. Each item is the
//! longest time of a stage, whatever the others do. A stage needs to know of them the jitter
//! with which frames reach it, and that is at most what the stages before take. So all bills are
//! one fixed point, from below. `docs/flows.md` has the arguments.

use super::credit::PlannedCredit;
use super::ended::ended;
use super::flows::{FlowBill, FlowStage, Flowed, none, piped};
use super::route::steady;
use super::site::Worker;
use super::timed::{self, CommonTime};
use super::wired::{Sender, Stranger, gates, link, longest, occupies, strangers, ways};
use crate::missing::Missing;
use crate::pipes::{NoBill, Plant};
use diapason_abi::Nanos;
use diapason_contract::ethernet::{OUT_FRAMES, RING, gated_room};
use diapason_contract::time::{TIME_BURST, TIME_RATE};
use diapason_pipe::bill::{Bill, What};
use diapason_pipe::size::Bucket;
use diapason_system::{CLOCKS_APART, Flow, FlowStop, Hosts, WireEnd};
use diapason_tsn::{CLASSES, GateList, GateRefusal, LinkRate, PortModel, Shaping, TrafficFlow};

/// Rounds to the fixed point before it is given up, and the longest bound that is looked for.
const ROUNDS_MAX: usize = 1_000;
const TOTAL_MAX: u64 = 100_000_000_000;
/// A period so long that a frame of a stranger only counts as the one in the way.
const ONCE: u64 = 1 << 45;
const BILLION: u128 = 1_000_000_000;

/// A flow, and the ends that its frames leave by.
pub(super) struct Wired<'a> {
    pub flow: &'a Flow,
    pub from: Sender,
    to: Sender,
    pub ways: Vec<WireEnd>,
    bucket: Bucket,
    pub class: usize,
    /// The longest time until the reader of the pipe that it begins with has sent a message on.
    piped: Result<Option<Nanos>, Missing>,
    /// Stages so far: the program, the server, then each of `ways`.
    delays: Vec<u64>,
}

impl Wired<'_> {
    /// Returns the jitter with which messages reach a stage.
    pub fn jitter(&self, stage: usize) -> u64 {
        self.delays.iter().take(stage).fold(0, |sum, delay| sum.saturating_add(*delay))
    }

    /// Returns the longest time of the server that sends them.
    pub fn served(&self) -> u64 {
        self.delays[BEFORE - 1]
    }

    /// Returns the most messages that reach a stage in a closed window.
    pub fn arrivals(&self, stage: usize, window: Nanos) -> u64 {
        self.bucket.most(window + Nanos(self.jitter(stage)))
    }
}

/// Stages before the first wire: the program and the server.
pub(super) const BEFORE: usize = 2;

/// All flows over Ethernet together.
pub(super) struct Ethernet<'a> {
    pub hosts: &'a Hosts,
    pub(super) plants: &'a [Plant<'a>],
    pub(super) flows: Vec<Wired<'a>>,
    pub(super) strangers: Vec<Stranger>,
}

/// The plan of flows, of common times, and of credit.
pub(super) type Planned = (Vec<Flowed>, Vec<CommonTime>, Vec<PlannedCredit>);

/// Returns the plan of each flow over Ethernet, of each common time and of each credit, in their
/// order.
pub(super) fn bills(hosts: &Hosts, plants: &[Plant<'_>]) -> Planned {
    let on_ethernet = hosts.flows.iter().filter(|flow| flow.is_on_ethernet());
    let flows = on_ethernet.clone().filter_map(|flow| {
        let [from, to] = Sender::ends(flow)?;
        let ways = ways(hosts, from.end(hosts), Some(to.end(hosts)));
        let delays = vec![0; BEFORE + ways.len()];
        let (bucket, class, piped) = (steady(flow), from.class(hosts), piped(plants, flow));
        Some(Wired { flow, from, to, ways, bucket, class, piped, delays })
    });
    let mut all = Ethernet { hosts, plants, flows: flows.collect(), strangers: strangers(hosts) };
    let refused: Vec<Option<Missing>> = all.flows.iter().map(|it| all.refusal(it)).collect();
    let settled = if refused.iter().any(Option::is_some) {
        // The others share stages with it, and its traffic there is not known.
        Err(("another flow over Ethernet has none".to_owned(), "see the message about it".into()))
    } else {
        all.settle()
    };
    let of = |(it, refused): (&Wired<'_>, Option<Missing>)| match (refused, &settled) {
        (Some(missing), _) => none(missing),
        (None, Err(missing)) => none(missing.clone()),
        (None, Ok(())) => {
            Flowed { bill: all.bill(it).and_then(|bill| ended((hosts, plants), it.flow, bill)) }
        }
    };
    let flowed = all.flows.iter().zip(refused).map(of).collect();
    (flowed, all.times(settled.as_ref().err()), all.credits(settled.is_ok()))
}

impl<'a> Ethernet<'a> {
    /// Returns why a flow has no bill, whatever the delays are.
    fn refusal(&self, flow: &Wired<'_>) -> Option<Missing> {
        let hosts = self.hosts;
        if let Err(missing) = &flow.piped {
            return Some(missing.clone());
        }
        if flow.ways.is_empty() {
            let what = format!("no wires lead to `{}`", flow.to.name(hosts));
            return Some((what, "join both adapters by `[[ethernet]]`".to_owned()));
        }
        let payload = flow.from.port(hosts).bytes;
        if u64::from(flow.flow.bytes) > payload {
            let (name, bytes) = (flow.from.name(hosts), flow.flow.bytes);
            let what = format!("its datagrams have {bytes} bytes, and `{name}` sends {payload}");
            let help =
                format!("write at most `bytes = {payload}` in the flow, or more in the socket");
            return Some((what, help));
        }
        let stranger = self.strangers.iter().find_map(|it| self.in_the_way(flow, it));
        stranger.or_else(|| self.program(flow).and(self.server(*flow.ways.first()?)).err())
    }

    /// Returns what a socket without a flow does to this one, if nothing bounds it.
    fn in_the_way(&self, flow: &Wired<'_>, stranger: &Stranger) -> Option<Missing> {
        let hosts = self.hosts;
        let (first, last) = (*flow.ways.first()?, *flow.ways.last()?);
        let shares = |end: &WireEnd| stranger.ways.contains(end);
        // An adapter sends in the order of asking, and a receiver takes what comes.
        let at_the_ends = [first, last].iter().any(shares);
        let above = stranger.class >= flow.class && flow.ways.iter().any(shares);
        if !at_the_ends && !above {
            return None;
        }
        let (name, priority) = (stranger.sender.name(hosts), stranger.class);
        let what = format!(
            "`{name}` may send frames of priority {priority} on its way, and nothing bounds them"
        );
        let help = "declare a `[[flow]]` of what it sends, or let it use other wires";
        Some((what, help.to_owned()))
    }

    fn program(&self, it: &Wired<'_>) -> Result<Worker<'_>, Missing> {
        Worker::of_datagrams(&self.plants[it.from.host], it.flow.from)
    }

    /// Lets delays grow until they follow from each other.
    fn settle(&mut self) -> Result<(), Missing> {
        for _ in 0..ROUNDS_MAX {
            let next = self.flows.iter().map(|flow| self.round(flow));
            let next = next.collect::<Result<Vec<Vec<u64>>, Missing>>()?;
            if self.flows.iter().zip(&next).all(|(flow, next)| flow.delays == *next) {
                return Ok(());
            }
            for (flow, next) in self.flows.iter_mut().zip(next) {
                flow.delays = next;
            }
            if self.flows.iter().any(|flow| flow.jitter(usize::MAX) > TOTAL_MAX) {
                break;
            }
        }
        Err((
            "messages on the ways of flows delay each other more and more".to_owned(),
            "send fewer messages, or give their programs and servers more of the processor".into(),
        ))
    }

    fn round(&self, flow: &Wired<'_>) -> Result<Vec<u64>, Missing> {
        let from = flow.from.end(self.hosts);
        let mut delays = vec![self.sends(flow)?.0, self.serves(from)?.0];
        for (number, end) in flow.ways.iter().enumerate() {
            delays.push(self.passes(flow, number, *end)?);
        }
        Ok(delays)
    }

    /// Returns the longest time of a program until a message is with its server. For the reader of
    /// a pipe that is the whole bill of the pipe.
    fn sends(&self, flow: &Wired<'_>) -> Result<Nanos, Missing> {
        if let Some(piped) = flow.piped.clone()? {
            return Ok(piped);
        }
        let worker = self.program(flow)?;
        let is_own = |stop: FlowStop| {
            (stop.host, stop.process) == (flow.flow.from.host, flow.flow.from.process)
        };
        let step = |stop: FlowStop| worker.each + Nanos(stop.work_ns.unwrap_or_default());
        let begun = || self.flows.iter().filter(|it| is_own(it.flow.from));
        let taken = || self.flows.iter().filter(|it| is_own(it.flow.end()));
        let end = |it: &Wired<'_>| it.delays.len();
        let wakes = |window: Nanos| {
            let own = begun().map(|it| it.arrivals(0, window));
            own.chain(taken().map(|it| it.arrivals(end(it), window))).sum()
        };
        let work = |window: Nanos| {
            let own = begun().map(|it| it.arrivals(0, window).saturating_mul(step(it.flow.from).0));
            let came = taken()
                .map(|it| it.arrivals(end(it), window).saturating_mul(step(it.flow.end()).0));
            Nanos(own.chain(came).fold(0, u64::saturating_add))
        };
        worker.busy(wakes, work, worker.each).ok_or_else(|| {
            let name = self.process(flow.from.host, flow.flow.from.process);
            let what = format!("`{name}` cannot keep up with the messages that it sends");
            (what, "give its VCPU a larger `budget`, or send fewer messages".to_owned())
        })
    }

    pub(super) fn process(&self, host: usize, process: u16) -> String {
        let host = &self.hosts.hosts[host];
        format!("{}:{}", host.name, host.system.process_name(process).unwrap_or_default())
    }

    /// Returns the class of a flow at an end. An adapter without gates sends in the order of
    /// asking.
    fn class_at(&self, flow: &Wired<'_>, end: WireEnd) -> usize {
        match end {
            WireEnd::Adapter { .. } if gates(self.hosts, end).is_none() => 0,
            _ => flow.class,
        }
    }

    /// Returns the flows that leave by an end, with the number of the end on the way of each.
    pub(super) fn leaving(&self, end: WireEnd) -> impl Iterator<Item = (usize, &Wired<'a>)> {
        let place = move |it: &Wired<'_>| it.ways.iter().position(|other| *other == end);
        self.flows.iter().filter_map(move |it| Some((place(it)?, it)))
    }

    /// Returns the time that a frame of a flow occupies the wire at an end.
    fn own(&self, flow: &Wired<'_>, end: WireEnd) -> u64 {
        let tagged = flow.from.port(self.hosts).priority.is_some();
        let bytes = flow.flow.bytes.into();
        link(self.hosts, end).map_or(0, |link| occupies(link, bytes, tagged))
    }

    /// Returns the frames of a flow as they come to an end, which is the one of this number on its
    /// way.
    fn comes(&self, it: &Wired<'_>, number: usize, end: WireEnd) -> TrafficFlow {
        let guard_ns = gates(self.hosts, end).map_or(0, |gates| gates.guard_ns);
        let (class, wire_ns, burst) = (self.class_at(it, end), self.own(it, end), 1);
        if let Some((from, to)) = self.phase(it, end) {
            let (period_ns, jitter_ns) = (it.flow.contract.per.0, to - from);
            let phase = Some((from, to));
            let flow = TrafficFlow { class, wire_ns, period_ns, jitter_ns, burst, phase };
            return flow.paced(guard_ns);
        }
        let Bucket { burst: at_once, messages, per, jitter } = it.bucket;
        let period_ns = (per.0 / messages.max(1)).max(1);
        // Gates may go by a time that is slower than the host's, and see more at once.
        let slower = self.stretched(end, period_ns) - period_ns;
        let period_ns = period_ns.saturating_sub(slower).max(1);
        // A burst is as many frames as may be so many periods late.
        let early = (at_once.max(1) - 1).saturating_mul(period_ns);
        let jitter_ns = jitter.0 + it.jitter(BEFORE + number) + early;
        let jitter_ns = self.stretched(end, jitter_ns);
        TrafficFlow { class, wire_ns, period_ns, jitter_ns, burst, phase: None }.paced(guard_ns)
    }

    /// Calls `then` with the model of an end on the way of a flow, and all that comes there; `None`
    /// if it has no wire.
    pub(super) fn with_model<R>(
        &self,
        flow: &Wired<'_>,
        end: WireEnd,
        then: impl FnOnce(&PortModel<'_>) -> R,
    ) -> Option<R> {
        let link = link(self.hosts, end)?;
        let gated = gates(self.hosts, end);
        let leaving = self.leaving(end).map(|(number, it)| self.comes(it, number, end));
        let mut traffic: Vec<TrafficFlow> = leaving.collect();
        let beside = self.strangers.iter().filter(|it| it.ways.contains(&end));
        traffic.extend(beside.map(|it| TrafficFlow {
            class: it.class,
            wire_ns: longest(link),
            period_ns: ONCE,
            jitter_ns: 0,
            burst: 1,
            phase: None,
        }));
        // Frames of the time pass no gates: the guard counts them.
        let beside = gated.is_none() && self.keeps_time(end);
        traffic.extend(beside.then(|| timed::traffic(link, flow)));
        let (gates, shaping) = self.shaped(end);
        let rate = LinkRate::new(link.speed * 1_000_000);
        let guard_ns = gated.map_or(0, |it| it.guard_ns);
        let (gates, shaping, flows) = (&gates, &shaping, &traffic[..]);
        Some(then(&PortModel { gates, rate, shaping, flows, guard_ns }))
    }

    /// Returns the gates and the credit of an end.
    pub(super) fn shaped(&self, end: WireEnd) -> (GateList, [Shaping; CLASSES]) {
        match end {
            WireEnd::Port { switch, port } => {
                let switch = &self.hosts.switches[switch];
                (switch.gates(port), switch.shaping(port))
            }
            WireEnd::Adapter { .. } => match gates(self.hosts, end) {
                Some(gates) => (gates.list.clone(), gates.shaping()),
                None => (GateList::open(1_000_000), [Shaping::Strict; CLASSES]),
            },
        }
    }

    /// Returns the longest time from the queue of an end until the frame has left it.
    fn queued(&self, flow: &Wired<'_>, end: WireEnd) -> Result<u64, Missing> {
        let delays = self.with_model(flow, end, |model| model.delays());
        let delays = delays.transpose().map_err(|refusal| self.overloaded(end, refusal))?;
        let most = delays.and_then(|delays| delays[self.class_at(flow, end)]);
        Ok(self.stretched(end, most.map_or(0, |delay| delay.most_ns)))
    }

    pub(super) fn overloaded(&self, end: WireEnd, refusal: GateRefusal) -> Missing {
        let text = refusal.to_string();
        let (what, remedy) = text.split_once(": ").unwrap_or((&text, "send fewer messages"));
        (format!("at {}: {what}", self.place(end)), remedy.to_owned())
    }

    /// Returns how an end is called.
    pub(super) fn place(&self, end: WireEnd) -> String {
        end.name(self.hosts)
    }

    /// Returns the longest time of a frame at an end and on the wire there. Of the last wire it is
    /// the time until the frame begins: the bill of the socket has the rest.
    fn passes(&self, flow: &Wired<'_>, number: usize, end: WireEnd) -> Result<u64, Missing> {
        let Some(link) = link(self.hosts, end) else { return Ok(0) };
        let inside = match end {
            WireEnd::Port { switch, .. } => self.hosts.switches[switch].latency_ns,
            WireEnd::Adapter { .. } => 0,
        };
        let queued = self.adds(flow, end, self.queued(flow, end)?)?;
        let is_last = number + 1 == flow.ways.len();
        let own = if is_last { self.own(flow, end) } else { 0 };
        Ok(inside + queued.saturating_sub(own) + link.delay_ns)
    }

    /// Returns the frames that may wait at an end, besides the one on the wire, and those there is
    /// room for.
    fn waiting(&self, flow: &Wired<'_>, end: WireEnd) -> (u64, u64) {
        let window = Nanos(self.queued(flow, end).unwrap_or(u64::MAX));
        let class = self.class_at(flow, end);
        let gated = gates(self.hosts, end).is_some();
        let is_here = |it: &Wired<'_>| {
            // Behind the gates of an adapter each socket has room of its own.
            if gated { it.from == flow.from } else { self.class_at(it, end) == class }
        };
        let same = self.leaving(end).filter(|(_, it)| is_here(it));
        let frames = same.map(|(number, it)| it.arrivals(BEFORE + number, window));
        let room = match end {
            WireEnd::Port { switch, .. } => self.hosts.switches[switch].room,
            WireEnd::Adapter { host, adapter } if gated => {
                let sockets = self.hosts.hosts[host].system.sockets.iter();
                let own = sockets.filter(|it| it.adapter == adapter && it.sends());
                gated_room(own.count()) as u64
            }
            WireEnd::Adapter { .. } => RING as u64 - 1,
        };
        // A frame of the common time is in the ring no longer than the last one that waits there.
        let turns = self.turns(end, window + Nanos(flow.jitter(BEFORE)));
        let of_time = if gated { 0 } else { timed::sent(turns) };
        (frames.fold(of_time, u64::saturating_add), room)
    }

    /// Returns the bill of the socket that takes a flow.
    fn taken(&self, flow: &Wired<'_>) -> Result<Bill, NoBill> {
        let plant = &self.plants[flow.to.host];
        let port = flow.to.port(self.hosts);
        self.agreed(flow).map_err(|(what, remedy)| NoBill::Missing(what, remedy))?;
        let period = Nanos(port.period_ns.unwrap_or_default());
        plant.bill_of_socket(port, period)
    }

    /// Checks that what comes to the receiver is in the contracts of its description.
    fn agreed(&self, flow: &Wired<'_>) -> Result<(), Missing> {
        let (hosts, host) = (self.hosts, &self.hosts.hosts[flow.to.host]);
        let port = flow.to.port(hosts);
        let name = flow.to.name(hosts);
        let Some(period) = port.period_ns else {
            let what = format!("nothing says how often datagrams come to `{name}`");
            let help = "add `latency` to the flow, from which that follows, or `period` to the \
                        socket";
            return Err((what, help.to_owned()));
        };
        let own = Sum::default().with(flow);
        let rate = 1_000_000_000_000_000_000_u128.div_ceil(u128::from(period));
        if own.per_second > rate || own.burst > port.burst {
            let least = flow.bucket.per.0 / flow.bucket.messages.max(1);
            let what = format!("more comes to `{name}` than its contract says");
            let file = &host.file;
            let help = format!(
                "write at most `period = \"{least}ns\"` and at least `burst = {}` in `{file}`",
                own.burst
            );
            return Err((what, help));
        }
        let Some((rate, burst)) = host.system.adapters[port.adapter].traffic else {
            let what = format!("nothing says how many frames come to the adapter of `{name}`");
            let help = "add `latency` to all flows to it, from which that follows, or `rate` to \
                        the adapter";
            return Err((what, help.to_owned()));
        };
        self.within(
            flow.to.end(hosts),
            (rate, burst),
            &format!("the adapter of `{name}`"),
            &host.file,
        )
    }

    /// Checks that no more frames come to an adapter than its `rate` and `burst` say. Messages call
    /// it so, and name its file.
    pub(super) fn within(
        &self,
        there: WireEnd,
        (rate, burst): (u64, u64),
        name: &str,
        file: &str,
    ) -> Result<(), Missing> {
        let flows = self.flows.iter().filter(|it| it.to.end(self.hosts) == there);
        let of_time = if self.keeps_time(there) { Sum::OF_TIME } else { Sum::default() };
        let all = flows.fold(of_time, Sum::with);
        if all.per_second > u128::from(rate) * BILLION || all.burst > burst {
            let (least, burst) = (all.per_second.div_ceil(BILLION), all.burst);
            let what = format!("more frames come to {name} than its `rate` says");
            let help = format!("write at least `rate = {least}` and `burst = {burst}` in `{file}`");
            return Err((what, help));
        }
        Ok(())
    }

    fn bill(&self, flow: &Wired<'_>) -> Result<FlowBill, NoBill> {
        let taken = self.taken(flow)?;
        let step = self.step(flow).map_err(|(what, remedy)| NoBill::Missing(what, remedy))?;
        let mut bill = FlowBill { step, ..FlowBill::new() };
        let (here, there) = (Some(flow.from.host), Some(flow.to.host));
        let name = |host: Option<usize>, process: u16| {
            let system = &self.hosts.hosts[host.unwrap_or_default()].system;
            (host, system.process_name(process).unwrap_or_default().to_owned())
        };
        let driver = |it: Sender| {
            let system = &self.hosts.hosts[it.host].system;
            system.adapters[it.port(self.hosts).adapter].driver
        };
        let [program, server, ..] = flow.delays[..] else { return Ok(bill) };
        bill.begin(self.hosts, flow.flow, Nanos(program));
        let pending = flow.arrivals(1, Nanos(server));
        let room = OUT_FRAMES as u64;
        let sends = name(here, driver(flow.from));
        bill.put(FlowStage::Sends, sends, Nanos(server), Some((pending, room)));
        for (end, delay) in flow.ways.iter().zip(&flow.delays[BEFORE..]) {
            let stage = match end {
                WireEnd::Adapter { .. } => FlowStage::Wire,
                WireEnd::Port { .. } => FlowStage::Port,
            };
            let waiting = self.waiting(flow, *end);
            bill.put(stage, (None, self.place(*end)), Nanos(*delay), Some(waiting));
        }
        let told = [What::Bus, What::Moderation, What::TopHalf];
        let told = told.iter().fold(Nanos::ZERO, |sum, what| sum + taken.value(*what));
        let server = name(there, driver(flow.to));
        bill.put(FlowStage::Told, server.clone(), told, None);
        let waiting = (taken.slots, flow.to.port(self.hosts).quota.into());
        let receives = taken.value(What::BottomHalf);
        bill.put(FlowStage::Receives, server, receives, Some(waiting));
        let reader = name(there, flow.flow.end().process);
        bill.put(FlowStage::Program, reader, taken.value(What::User), None);
        let apart = Nanos(bill.total.0 / CLOCKS_APART + 1);
        bill.put(FlowStage::Clocks, (None, "all hosts".to_owned()), apart, None);
        Ok(bill)
    }
}

/// The arrivals of several flows: billionths of a frame a second, and frames at once.
#[derive(Clone, Copy, Default)]
struct Sum {
    per_second: u128,
    burst: u64,
}

impl Sum {
    /// The frames of a common time.
    const OF_TIME: Sum = Sum { per_second: TIME_RATE as u128 * BILLION, burst: TIME_BURST };

    fn with(self, flow: &Wired<'_>) -> Sum {
        let Bucket { burst, messages, per, jitter } = flow.bucket;
        let rate = u128::from(messages) * 1_000_000_000_000_000_000;
        let late = u128::from(jitter.0) + u128::from(flow.jitter(usize::MAX));
        let late = (late * u128::from(messages)).div_ceil(u128::from(per.0.max(1)));
        Sum {
            per_second: self.per_second + rate.div_ceil(u128::from(per.0.max(1))),
            burst: self.burst + burst + u64::try_from(late).unwrap_or(u64::MAX / 4),
        }
    }
}

/// Returns the words for why there is too little room at a stage on the wires, and the remedy.
pub(super) fn crowded(stage: FlowStage, place: &str, needed: u64, room: u64) -> [String; 2] {
    match stage {
        FlowStage::Port => [
            format!("{needed} frames may wait at `{place}`, and a queue has room for {room}"),
            format!("write `room = {needed}` in the `[[switch]]`, or send fewer messages"),
        ],
        _ => [
            format!("{needed} frames may wait at `{place}`, whose ring has {room}"),
            "send fewer messages".to_owned(),
        ],
    }
}
