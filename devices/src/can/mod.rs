//! A CAN bus that devices are wired to, with all other units on it.
//!
//! The bus itself, with arbitration, stuffing and errors, is [`diapason_can::Bus`]. Here it gets
//! its other nodes, each with traffic of its own, and mailboxes for the devices that share it.

mod alarm;
mod mishap;
mod mistuned;
mod outside;
mod passing;
mod receiver;
mod timed;
mod traffic;

pub use alarm::{WakeTime, WakeTimes};
pub use mishap::BusMishap;
pub(crate) use mistuned::Mistuned;
pub use outside::{Outside, Overheard};
pub use passing::{FrameContent, Passing};
pub use receiver::RECEIPT_ID;
pub use timed::{
    MessageBooks, TimedMessage, TimedName, TimedTerms, TimedUnit, UnitTrouble, UnitUpset,
};
pub use traffic::{BUSY, BUSY_FD, BusLoad, PeriodicMessage, ReplayError, numbered, replay};

use diapason_abi::Nanos;
use diapason_can::bus::{
    Activity, BusEvent, EventKind, Health, NodeId, NodeSetup, SendRefusal, Ticket, Withdrawn,
};
use diapason_can::{AnyFrame, BitRate, Bus, CanFrame};
use mishap::Plan;
use outside::Gate;
use receiver::Receiver;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use timed::TimedUnits;
use traffic::Traffic;

/// Events kept for a device that does not fetch them; older ones are lost then.
const MAILBOX: usize = 1_024;

/// A frame that is through on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The end of its last bit.
    pub time: Nanos,
    /// The node that sent it.
    pub node: NodeId,
    pub frame: AnyFrame,
}

/// A frame that a device on the bus got or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When: of one that it got a bit before its end, of its own at its end.
    pub time: Nanos,
    pub frame: AnyFrame,
    /// True if the device sent it.
    pub own: bool,
}

/// Everything wired together at one bus.
struct Segment {
    bus: Bus,
    sources: Vec<(NodeId, Traffic)>,
    receivers: Vec<Receiver>,
    gate: Option<Gate>,
    timed: Option<TimedUnits>,
    /// The plug of each node.
    plugs: Vec<Option<usize>>,
    mailboxes: Vec<Mailbox>,
    record: VecDeque<Sent>,
    record_limit: usize,
    /// The frames that devices received and sent, if they are kept.
    heard: Option<Vec<Heard>>,
    overdue: u64,
    plan: Plan,
    /// When something may happen next.
    next: Nanos,
}

/// The events of one plug.
struct Mailbox {
    events: VecDeque<BusEvent>,
    on: bool,
    alarm: WakeTime,
}

impl Mailbox {
    /// As of a bus on which something may happen at `bus`.
    fn note(&self, bus: Nanos) {
        let waiting = self.events.front().map_or(Nanos::FOREVER, |event| event.time);
        self.alarm.set(if self.on { waiting.min(bus) } else { Nanos::FOREVER });
    }
}

/// A handle to a bus; clones are the same bus.
#[derive(Clone)]
pub struct CanBus(Rc<RefCell<Segment>>);

impl CanBus {
    /// Returns a bus with nothing on it.
    #[must_use]
    pub fn new(rate: BitRate) -> CanBus {
        CanBus::around(Bus::new(rate))
    }

    /// Returns a bus with nothing on it that has frames of CAN FD, with their data at `data`. All
    /// units that are added know them.
    #[must_use]
    pub fn with_data_rate(rate: BitRate, data: BitRate) -> CanBus {
        CanBus::around(Bus::with_data_rate(rate, data))
    }

    fn around(bus: Bus) -> CanBus {
        CanBus(Rc::new(RefCell::new(Segment {
            bus,
            sources: Vec::new(),
            receivers: Vec::new(),
            gate: None,
            timed: None,
            plugs: Vec::new(),
            mailboxes: Vec::new(),
            record: VecDeque::new(),
            record_limit: 0,
            heard: None,
            overdue: 0,
            next: Nanos::FOREVER,
            plan: Plan::default(),
        })))
    }

    /// Every change of the bus or of its nodes goes through here.
    fn change<T>(&self, act: impl FnOnce(&mut Segment) -> T) -> T {
        let segment = &mut *self.0.borrow_mut();
        let result = act(segment);
        segment.next = segment.bus.next_event().unwrap_or(Nanos::FOREVER);
        segment.next = segment.next.min(segment.next_source());
        segment.mailboxes.iter().for_each(|mailbox| mailbox.note(segment.next));
        result
    }

    /// Returns the bus of this number with a load, and a second unit that acknowledges, so that
    /// times do not depend on when the host opens its channel.
    #[must_use]
    pub fn loaded(number: usize, rate: BitRate, load: BusLoad) -> CanBus {
        CanBus::new(rate).with_load(number, load)
    }

    /// Returns the same bus with a load, as the bus of this number has it, and a second unit that
    /// acknowledges.
    #[must_use]
    pub fn with_load(self, number: usize, load: BusLoad) -> CanBus {
        let fd = self.0.borrow().bus.data_rate().is_some();
        self.add_unit(load.messages(number, fd));
        self.add_unit(Vec::new());
        self
    }

    /// Returns the bus of this number of [`BUSY`]; `None` from 5 on.
    #[must_use]
    pub fn busy(number: usize) -> Option<CanBus> {
        let (hertz, load) = *BUSY.get(number)?;
        Some(CanBus::loaded(number, BitRate::new(hertz).ok()?, load))
    }

    /// Returns the bus of [`BUSY_FD`], as that of number 0.
    #[must_use]
    pub fn busy_fd() -> Option<CanBus> {
        let (hertz, data, load) = BUSY_FD;
        let (rate, data) = (BitRate::new(hertz).ok()?, BitRate::of_data(data).ok()?);
        Some(CanBus::with_data_rate(rate, data).with_load(0, load))
    }

    /// Returns a bus with one unit, which acknowledges and sends nothing.
    #[must_use]
    pub fn quiet(rate: BitRate) -> CanBus {
        CanBus::new(rate).acknowledged()
    }

    /// Returns the same bus with a unit that acknowledges and sends nothing.
    #[must_use]
    pub fn acknowledged(self) -> CanBus {
        self.add_unit(Vec::new());
        self
    }

    /// Returns the bus of this number with a receiver whose program takes between these two times
    /// for a frame, and nothing else. See [`CanBus::add_receiver`].
    #[must_use]
    pub fn receiving(number: usize, rate: BitRate, turn: (Nanos, Nanos)) -> CanBus {
        CanBus::new(rate).with_receiver(number, turn)
    }

    /// Returns the same bus with such a receiver, as the bus of this number has it.
    #[must_use]
    pub fn with_receiver(self, number: usize, turn: (Nanos, Nanos)) -> CanBus {
        self.add_receiver(turn, number as u64);
        self
    }

    /// Returns the same bus, as that of this number, with a unit that sends numbered frames, each
    /// between these two times after the one before, and a unit that acknowledges until the
    /// interface does.
    #[must_use]
    pub fn with_sender(self, number: usize, gap: (Nanos, Nanos)) -> Option<CanBus> {
        let id = diapason_can::frame::standard(0x200 + number as u32).ok()?;
        let unsteady = traffic::Unsteady::new(id, gap, number as u64);
        self.add_node(vec![Traffic::Unsteady(unsteady)]);
        Some(self.acknowledged())
    }

    /// Returns the same bus with the frames of a log, and a unit that acknowledges them.
    #[must_use]
    pub fn with_replay(self, frames: VecDeque<(Nanos, CanFrame)>) -> CanBus {
        self.add_replay(frames);
        self.acknowledged()
    }

    /// One more node, whose program reads a numbered frame in each turn of its loop, which takes a
    /// time between these two; the seed says which. While its controller is full it asks for
    /// overload frames, and what it read it says in receipts.
    pub fn add_receiver(&self, turn: (Nanos, Nanos), seed: u64) -> NodeId {
        let segment = &mut *self.0.borrow_mut();
        let node = segment.node(receiver::setup(), None);
        segment.receivers.push(Receiver::new(node, turn, seed));
        node
    }

    /// Lets somebody outside take part through a node of its own, with a meeting each `period`.
    /// It takes the place of who was connected before.
    pub fn connect(&self, period: Nanos, outside: Box<dyn Outside>) {
        self.change(|segment| {
            let node = segment.node(Gate::setup(), None);
            segment.gate = Some(Gate::new(&mut segment.bus, node, period, outside));
        });
    }

    /// Lets time pass, also for a bus whose devices are all switched off.
    pub fn advance(&self, now: Nanos) {
        self.change(|segment| segment.advance(now));
    }

    /// Returns one more control unit that sends these messages. One without messages only
    /// acknowledges.
    pub fn add_unit(&self, messages: Vec<PeriodicMessage>) -> NodeId {
        let traffic = messages.into_iter().map(|message| Traffic::Periodic { message, sent: 0 });
        self.add_node(traffic.collect())
    }

    /// Returns one more node, which sends these frames at these times.
    pub fn add_replay<F: Into<AnyFrame>>(&self, frames: VecDeque<(Nanos, F)>) -> NodeId {
        let frames = frames.into_iter().map(|(at, frame)| (at, frame.into()));
        self.add_node(vec![Traffic::Replay(frames.collect())])
    }

    fn add_node(&self, traffic: Vec<Traffic>) -> NodeId {
        self.change(|segment| {
            let node = segment.node(unit(), None);
            segment.sources.extend(traffic.into_iter().map(|traffic| (node, traffic)));
            node
        })
    }

    /// Keeps up to `limit` frames of any sender that are through, and no later ones.
    pub fn record(&self, limit: usize) {
        self.0.borrow_mut().record_limit = limit;
    }

    /// The frames recorded so far; the record is empty then.
    #[must_use]
    pub fn take_record(&self) -> Vec<Sent> {
        self.0.borrow_mut().record.drain(..).collect()
    }

    /// Keeps from now on what devices get and send.
    pub fn listen(&self) {
        self.0.borrow_mut().heard.get_or_insert_default();
    }

    /// Returns the frames that devices received and sent since the last call, if they are kept.
    #[must_use]
    pub fn take_heard(&self) -> Vec<Heard> {
        self.0.borrow_mut().heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Messages of other nodes that found their queue full.
    #[must_use]
    pub fn overdue(&self) -> u64 {
        self.0.borrow().overdue
    }

    /// The bus itself, to break things: [`Bus::arm`], [`Bus::jam`], [`Bus::babble`].
    pub fn with_bus<T>(&self, act: impl FnOnce(&mut Bus) -> T) -> T {
        self.change(|segment| act(&mut segment.bus))
    }

    /// This will go wrong, at the bus's own time.
    pub fn suffer(&self, at: Nanos, mishap: BusMishap) {
        self.change(|segment| {
            let babbler = match mishap {
                BusMishap::Babble(_) => Some(segment.node(unit(), None)),
                BusMishap::Errors(_) | BusMishap::BusOff => None,
            };
            segment.plan.add(at, mishap, babbler);
        });
    }

    /// Returns a place for a device, which starts switched off; `queue` requests fit.
    #[must_use]
    pub fn plug(&self, queue: usize) -> CanPlug {
        self.plug_among(queue, &WakeTimes::default())
    }

    /// Returns a place for a device with several places: their alarms stand together.
    #[must_use]
    pub fn plug_among(&self, queue: usize, alarms: &WakeTimes) -> CanPlug {
        self.plug_as(queue, true, alarms)
    }

    /// Returns a place for a device that sends its most urgent request first, whichever came first.
    #[must_use]
    pub fn plug_urgent(&self, queue: usize) -> CanPlug {
        self.plug_as(queue, false, &WakeTimes::default())
    }

    fn plug_as(&self, queue: usize, in_order: bool, alarms: &WakeTimes) -> CanPlug {
        self.change(|segment| {
            let index = segment.mailboxes.len();
            let alarm = alarms.join();
            let (events, rings) = (VecDeque::new(), alarm.clone());
            segment.mailboxes.push(Mailbox { events, on: false, alarm: rings });
            let setup = NodeSetup { queue, in_order, ..NodeSetup::default() };
            let talker = segment.node(setup.clone(), Some(index));
            let listener = segment.node(NodeSetup { listen_only: true, ..setup }, Some(index));
            let now = segment.bus.now();
            for node in [talker, listener] {
                segment.bus.switch(now, node, false);
            }
            CanPlug { bus: self.clone(), index, alarm, talker, listener, listens: false }
        })
    }
}

/// Returns the setup of a unit. It knows CAN FD, where the bus has that.
fn unit() -> NodeSetup {
    NodeSetup { fd: true, ..NodeSetup::default() }
}

impl Segment {
    fn node(&mut self, setup: NodeSetup, plug: Option<usize>) -> NodeId {
        let node = self.bus.add_node(setup);
        self.plugs.push(plug);
        node
    }

    fn next_source(&self) -> Nanos {
        let sources = self.sources.iter().map(|(_, source)| source.next());
        let sources = sources.chain(self.receivers.iter().map(Receiver::next));
        let sources = sources.chain(self.gate.iter().map(Gate::next));
        let sources = sources.chain(self.timed.iter().map(|timed| timed.next(self.bus.now())));
        sources.fold(self.plan.next(), Nanos::min)
    }

    fn advance(&mut self, now: Nanos) {
        loop {
            let time = self.next_source();
            // Timed units may have to act soon after a frame.
            let event = self.timed.as_ref().and_then(|_| self.bus.next_event());
            if let Some(event) = event.filter(|event| *event < time && *event <= now) {
                self.bus.advance(event);
            } else if time <= now {
                self.act(time);
            } else if now > self.bus.now() {
                self.bus.advance(now);
            } else {
                return self.deliver();
            }
            self.deliver();
        }
    }

    /// Carries out the actions of the other nodes at `time`.
    fn act(&mut self, time: Nanos) {
        self.happen(time);
        for (node, source) in self.sources.iter_mut().filter(|(_, s)| s.next() == time) {
            let Some(frame) = source.take() else { continue };
            self.overdue += u64::from(self.bus.send(time, *node, frame).is_err());
        }
        for receiver in self.receivers.iter_mut().filter(|receiver| receiver.next() == time) {
            receiver.act(&mut self.bus);
        }
        if self.gate.as_ref().is_some_and(|gate| gate.next() == time) {
            self.bus.advance(time);
            self.deliver();
            self.gate.iter_mut().for_each(|gate| gate.meet(time, &mut self.bus));
        }
        if self.timed.as_ref().is_some_and(|timed| timed.next(time) <= time) {
            self.bus.advance(time);
            self.deliver();
            self.timed.iter_mut().for_each(|timed| timed.act(time, &mut self.bus));
        }
    }

    fn deliver(&mut self) {
        while let Some(event) = self.bus.poll() {
            self.timed.iter_mut().for_each(|timed| timed.hear(&event));
            if let EventKind::Sent { frame, ticket } = event.kind {
                let sent = Sent { time: event.time, node: event.node, frame };
                if self.record.len() < self.record_limit {
                    self.record.push_back(sent);
                }
                self.gate.iter_mut().for_each(|gate| gate.hear(sent, ticket));
            }
            if matches!(event.kind, EventKind::Received { .. }) {
                let mut receivers = self.receivers.iter_mut();
                receivers
                    .find(|r| r.node == event.node)
                    .into_iter()
                    .for_each(|r| r.wake(event.time));
            }
            let plug = self.plugs.get(event.node.0).copied().flatten();
            let Some(mailbox) = plug.and_then(|plug| self.mailboxes.get_mut(plug)) else {
                continue;
            };
            if let Some(heard) = &mut self.heard
                && let EventKind::Received { frame } | EventKind::Sent { frame, .. } = event.kind
            {
                let own = matches!(event.kind, EventKind::Sent { .. });
                heard.push(Heard { time: event.time, frame, own });
            }
            if mailbox.events.len() == MAILBOX {
                mailbox.events.pop_front();
            }
            mailbox.events.push_back(event);
        }
    }
}

/// One controller on a bus. It is two nodes, of which at most one is switched on: whether a node
/// only listens is part of its setup.
pub struct CanPlug {
    bus: CanBus,
    index: usize,
    alarm: WakeTime,
    talker: NodeId,
    listener: NodeId,
    listens: bool,
}

impl CanPlug {
    /// Returns the bit rate of the bus.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        self.bus.0.borrow().bus.rate()
    }

    /// Returns the rate of the data of CAN FD, if the bus has such frames.
    #[must_use]
    pub fn data_rate(&self) -> Option<BitRate> {
        self.bus.0.borrow().bus.data_rate()
    }

    fn node(&self) -> NodeId {
        if self.listens { self.listener } else { self.talker }
    }

    /// Lets time pass on the bus.
    pub fn advance(&self, now: Nanos) {
        self.bus.advance(now);
    }

    /// Returns when something may happen to it by itself: never while it is switched off.
    #[must_use]
    pub fn next_change(&self) -> Nanos {
        self.alarm.time()
    }

    /// Returns the next event of this controller until `now`, in order.
    #[must_use]
    pub fn poll(&self, now: Nanos) -> Option<BusEvent> {
        let segment = &mut *self.bus.0.borrow_mut();
        let mailbox = segment.mailboxes.get_mut(self.index)?;
        let event = mailbox.events.pop_front_if(|event| event.time <= now);
        mailbox.note(segment.next);
        event
    }

    /// Lets time pass until `time` if something may have happened by then, and returns the next
    /// event of this controller.
    #[must_use]
    pub fn poll_due(&self, time: Nanos) -> Option<BusEvent> {
        if self.next_change() > time {
            return None;
        }
        self.advance(time);
        self.poll(time)
    }

    /// Takes part from now on: counters start again, old requests and events are forgotten.
    pub fn switch_on(&mut self, now: Nanos, listens: bool) {
        self.switch_on_as(now, listens, false);
    }

    /// Takes part from now on like [`CanPlug::switch_on`], with CAN FD or without.
    pub fn switch_on_as(&mut self, now: Nanos, listens: bool, fd: bool) {
        self.switch_off(now);
        self.listens = listens;
        let node = self.node();
        self.bus.change(|segment| {
            segment.bus.set_fd(node, fd);
            segment.bus.switch(now, node, true);
            if let Some(mailbox) = segment.mailboxes.get_mut(self.index) {
                mailbox.on = true;
            }
        });
    }

    /// Leaves the bus at `now`.
    pub fn switch_off(&mut self, now: Nanos) {
        let node = self.node();
        self.bus.change(|segment| {
            segment.advance(now);
            segment.bus.switch(now, node, false);
            segment.deliver();
            if let Some(mailbox) = segment.mailboxes.get_mut(self.index) {
                mailbox.on = false;
                mailbox.events.clear();
            }
        });
    }

    /// Queues a frame, for one attempt only if `once`.
    ///
    /// # Errors
    /// The queue is full, or the controller does not talk.
    pub fn send(
        &self,
        now: Nanos,
        frame: impl Into<AnyFrame>,
        once: bool,
    ) -> Result<Ticket, SendRefusal> {
        let frame = frame.into();
        self.bus.change(|segment| {
            segment.advance(now);
            let bus = &mut segment.bus;
            match once {
                true => bus.send_once(now, self.node(), frame),
                false => bus.send(now, self.node(), frame),
            }
        })
    }

    /// Takes a request back, as [`Bus::withdraw`] does.
    pub fn withdraw(&self, now: Nanos, ticket: Ticket) -> Withdrawn {
        self.bus.change(|segment| {
            segment.advance(now);
            segment.bus.withdraw(now, self.node(), ticket)
        })
    }

    /// Returns what the controller does at `now`.
    #[must_use]
    pub fn activity(&self, now: Nanos) -> Activity {
        self.bus.change(|segment| {
            segment.advance(now);
            segment.bus.activity(now, self.node())
        })
    }

    /// Forgets what waits, but not what is being sent.
    pub fn flush(&self, now: Nanos) {
        self.bus.change(|segment| {
            segment.advance(now);
            segment.bus.flush(now, self.node());
        });
    }

    /// Returns its health, transmit and receive error counter.
    #[must_use]
    pub fn health(&self) -> (Health, u16, u16) {
        self.bus.0.borrow().bus.health(self.node())
    }
}
