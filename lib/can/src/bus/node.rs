//! One CAN controller, bit by bit: medium access, error flags, fault confinement (ISO 11898-1).
//!
//! Each bit has two halves: [`Node::open`] may begin a frame and [`Node::drive`] says the level it
//! sends; [`Node::sample`] sees the level of the bus and moves on.

use super::event::{BusEvent, EventKind, Health, NodeCounts, NodeId, WireFault};
use super::queue::{Queue, Request};
use crate::decode::{FrameDecoder, FrameField, WireError};
use crate::fd::{AnyFrame, FdSupport};
use crate::filter::{Filter, accepts};
use crate::frame::CanFrame;
use crate::wire::{DOMINANT, RECESSIVE, WireFrame, encode};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// Recessive bits that say the bus is idle.
const IDLE_BITS: u8 = 11;
/// How many such runs end bus-off.
const RECOVERY_RUNS: u16 = 128;
const SILENT: Phase = Phase::Recovering { runs: 0, bits: 0 };
const FLAG_BITS: u8 = 6;
const DELIMITER_BITS: u8 = 8;
const PASSIVE_ABOVE: u16 = 127;
const WARNING_FROM: u16 = 96;
const BUS_OFF_ABOVE: u16 = 255;

/// How a node is set up.
#[derive(Clone, Debug, Default)]
pub struct NodeSetup {
    /// Requests the queue holds; 0 means 64.
    pub queue: usize,
    /// Sends in order of requests instead of priority.
    pub in_order: bool,
    /// Sees everything and sends nothing, not even acknowledgements.
    pub listen_only: bool,
    /// The node knows CAN FD. Otherwise it destroys such frames, on a bus that has them.
    pub fd: bool,
    /// Classic frames kept for [`super::Port`]; 0 means that events are enough.
    pub inbox: usize,
    /// Overload frames it asks for in a row while its inbox is full, to have no more frames
    /// meanwhile. The standard allows two.
    pub overloads: u8,
    /// Filters for frames that are passed on; with no filter all are.
    pub filters: Vec<Filter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    ActiveError,
    /// Recessive until six equal bits were seen.
    PassiveError,
    /// Six dominant bits that count as nobody's error.
    Overload,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Off,
    /// Bus-off, counting idle runs.
    Recovering {
        runs: u16,
        bits: u8,
    },
    /// Waits for an idle bus before it takes part.
    Integrating {
        bits: u8,
    },
    Idle,
    /// In a frame, its own or another's.
    Frame,
    Flag {
        signal: Signal,
        bits: u8,
        last: bool,
    },
    /// After the flag: until the bus is recessive again.
    Echo {
        signal: Signal,
        bits: u8,
    },
    /// Recessive bits after that.
    Delimiter {
        bits: u8,
    },
    Intermission {
        bits: u8,
    },
    /// An error-passive transmitter waits eight more bits.
    Suspend {
        bits: u8,
    },
}

/// The frame a node is sending.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub request: Request,
    pub wire: WireFrame,
    pub at: u32,
}

pub(super) struct Node {
    pub id: NodeId,
    pub setup: NodeSetup,
    pub phase: Phase,
    pub queue: Queue,
    pub babble: Option<CanFrame>,
    /// The way in which the node takes frames of CAN FD.
    pub support: FdSupport,
    pub sending: Option<Sending>,
    pub decoder: FrameDecoder,
    pub inbox: VecDeque<AnyFrame>,
    pub overrun: bool,
    /// Overload frames it asked for since the last frame.
    overloads: u8,
    pub counts: NodeCounts,
    pub transmit_errors: u16,
    pub receive_errors: u16,
    health: Health,
    /// Transmitted the frame that just ended or failed: rules for suspending and for counters.
    transmitter: bool,
    /// An unacknowledged passive transmitter has not yet been charged.
    uncharged: bool,
}

impl Node {
    /// Returns a node without requests.
    pub fn new(id: NodeId, setup: NodeSetup, phase: Phase, support: FdSupport) -> Node {
        let capacity = if setup.queue == 0 { 64 } else { setup.queue };
        let queue = Queue::new(capacity, setup.in_order);
        Node {
            id,
            setup,
            phase,
            queue,
            babble: None,
            support,
            sending: None,
            decoder: FrameDecoder::new(),
            inbox: VecDeque::new(),
            overrun: false,
            overloads: 0,
            counts: NodeCounts::default(),
            transmit_errors: 0,
            receive_errors: 0,
            health: Health::ErrorActive,
            transmitter: false,
            uncharged: false,
        }
    }

    /// Returns how well the node is.
    pub fn health(&self) -> Health {
        self.health
    }

    /// Returns whether the node wants to send.
    pub fn has_work(&self) -> bool {
        !self.setup.listen_only
            && self.phase != Phase::Off
            && (self.babble.is_some() || !self.queue.is_empty())
    }

    /// Returns whether the bit that it sends next goes at the rate of the data.
    pub fn is_fast(&self) -> bool {
        let fast = |sending: &Sending| sending.wire.is_fast(sending.at);
        self.phase == Phase::Frame && self.sending.as_ref().is_some_and(fast)
    }

    /// Returns whether it is destroying a frame, which is done at the rate of arbitration.
    pub fn destroys(&self) -> bool {
        matches!(self.phase, Phase::Flag { signal: Signal::ActiveError | Signal::Overload, .. })
    }

    /// Returns whether it would acknowledge a good frame of others.
    pub fn acknowledges(&self) -> bool {
        !self.setup.listen_only && matches!(self.phase, Phase::Idle | Phase::Frame)
    }

    /// Switched on or off by its host: counters start again.
    pub fn switch(&mut self, on: bool) {
        self.phase = if on { Phase::Integrating { bits: 0 } } else { Phase::Off };
        (self.sending, self.babble, self.transmitter, self.uncharged) = (None, None, false, false);
        (self.transmit_errors, self.receive_errors) = (0, 0);
        self.health = Health::ErrorActive;
    }

    /// The bit begins at an idle bus: true if the node begins a frame.
    pub fn open(&mut self) -> bool {
        self.phase == Phase::Idle && self.begin()
    }

    fn begin(&mut self) -> bool {
        if !self.has_work() {
            return false;
        }
        let babble = self.babble.map(Request::babble);
        let Some(mut request) = babble.or_else(|| self.queue.choose()) else {
            return false;
        };
        let wire = match request.frame {
            AnyFrame::Classic(frame) => encode(&frame),
            AnyFrame::Fd(frame) => {
                let frame = frame.with_passive(frame.is_passive() || self.is_passive());
                request.frame = frame.into();
                frame.encode()
            }
        };
        self.sending = Some(Sending { request, wire, at: 0 });
        self.enter_frame();
        true
    }

    fn enter_frame(&mut self) {
        self.decoder = FrameDecoder::supporting(self.support);
        self.phase = Phase::Frame;
    }

    /// The level it sends in this bit.
    pub fn drive(&self) -> bool {
        match (self.phase, &self.sending) {
            (Phase::Frame, Some(sending)) => sending.wire.bits.get(sending.at),
            (Phase::Frame, None) => {
                let says_good =
                    self.decoder.place() == FrameField::AckSlot && self.decoder.crc_holds();
                !says_good || self.setup.listen_only
            }
            (Phase::Flag { signal, .. }, _) => signal == Signal::PassiveError,
            _ => RECESSIVE,
        }
    }

    /// Returns the level that the node sees of `level` under `fault`, in bit `position` of the
    /// frame.
    pub fn view(&self, level: bool, fault: Option<WireFault>, position: Option<u32>) -> bool {
        match fault {
            Some(WireFault::Flip { bit, seen_by }) if position == Some(bit) => {
                let seen =
                    if self.id.0 < 64 { seen_by >> self.id.0 & 1 != 0 } else { !seen_by == 0 };
                level != seen
            }
            Some(WireFault::DropAck) => {
                let waits = |sending: &Sending| sending.at == sending.wire.ack_slot();
                level || (self.phase == Phase::Frame && self.sending.as_ref().is_some_and(waits))
            }
            _ => level,
        }
    }

    /// The bit ends at `time`, and the bus was at `level`.
    pub fn sample(&mut self, level: bool, time: Nanos, events: &mut VecDeque<BusEvent>) {
        let mut out = Out { time, node: self.id, events };
        match self.phase {
            Phase::Off => {}
            Phase::Recovering { runs, bits } => self.recover(level, runs, bits),
            Phase::Integrating { bits } => {
                let bits = if level == RECESSIVE { bits + 1 } else { 0 };
                self.phase =
                    if bits == IDLE_BITS { Phase::Idle } else { Phase::Integrating { bits } };
            }
            Phase::Idle | Phase::Suspend { .. } if level == DOMINANT => self.follow(),
            Phase::Idle => {}
            Phase::Suspend { bits: 7 } => self.phase = Phase::Idle,
            Phase::Suspend { bits } => self.phase = Phase::Suspend { bits: bits + 1 },
            Phase::Frame if self.sending.is_some() => self.transmit(level, &mut out),
            Phase::Frame => self.receive(level, &mut out),
            Phase::Flag { signal, bits, last } => self.flag(level, signal, bits, last, &mut out),
            Phase::Echo { signal, bits } => self.echo(level, signal, bits),
            Phase::Delimiter { bits } => self.delimit(level, bits, &mut out),
            Phase::Intermission { bits } => self.pause(level, bits),
        }
        self.note_health(&mut out);
    }

    /// Somebody else's start of frame.
    fn follow(&mut self) {
        self.enter_frame();
        // A dominant first bit is never wrong.
        let _ = self.decoder.push(DOMINANT);
    }

    fn transmit(&mut self, level: bool, out: &mut Out) {
        let Some(sending) = self.sending.as_mut() else { return };
        let (at, sent) = (sending.at, sending.wire.bits.get(sending.at));
        let in_arbitration = at < sending.wire.arbitration;
        let in_ack = at == sending.wire.ack_slot();
        let is_stuff = sending.wire.is_stuff(at);
        sending.at += 1;
        let ended = sending.at == sending.wire.bits.len();
        match (sent, level) {
            (RECESSIVE, DOMINANT) if in_arbitration && !is_stuff => {
                self.counts.lost += 1;
                self.give_up(None, out);
                return self.receive(level, out);
            }
            (RECESSIVE, DOMINANT) if in_arbitration => {
                return self.fail(WireError::Stuff, false, out);
            }
            (RECESSIVE, RECESSIVE) if in_ack => return self.fail_unacknowledged(out),
            (sent, level) if sent != level && !in_ack => {
                return self.fail(WireError::Bit, true, out);
            }
            _ => {}
        }
        // The bits that a transmitter sent and saw form a frame; only its place matters.
        let _ = self.decoder.push(level);
        if ended {
            self.succeed(out);
        }
    }

    fn succeed(&mut self, out: &mut Out) {
        let Some(Sending { request, .. }) = self.sending.take() else { return };
        self.transmit_errors = self.transmit_errors.saturating_sub(1);
        self.counts.sent += 1;
        if let Some(ticket) = request.ticket {
            self.queue.remove(ticket);
        }
        out.say(EventKind::Sent { ticket: request.ticket, frame: request.frame });
        self.transmitter = true;
        self.phase = Phase::Intermission { bits: 0 };
    }

    /// Stops sending: the request waits for the next chance, unless it has only one.
    fn give_up(&mut self, error: Option<WireError>, out: &mut Out) {
        let Some(Sending { request, .. }) = self.sending.take() else { return };
        if let (true, Some(ticket)) = (request.once, request.ticket) {
            self.queue.remove(ticket);
            out.say(EventKind::Dropped { ticket, error });
        }
    }

    fn receive(&mut self, level: bool, out: &mut Out) {
        let place = self.decoder.place();
        if place == FrameField::EndOfFrame(6) {
            (self.transmitter, self.overloads) = (false, 0);
            match level {
                RECESSIVE => self.rest(),
                DOMINANT => self.signal(Signal::Overload),
            }
            return;
        }
        if let Err(error) = self.decoder.push(level) {
            return self.fail(error, true, out);
        }
        if place == FrameField::EndOfFrame(5) {
            self.accept(out);
        }
    }

    fn accept(&mut self, out: &mut Out) {
        self.receive_errors = match self.receive_errors {
            n if n > PASSIVE_ABOVE => PASSIVE_ABOVE,
            n => n.saturating_sub(1),
        };
        self.counts.received += 1;
        let Some(frame) = self.decoder.any_frame() else { return };
        if !accepts(&self.setup.filters, frame.id()) {
            return;
        }
        out.say(EventKind::Received { frame });
        if self.inbox.len() < self.setup.inbox {
            self.inbox.push_back(frame);
        } else if self.setup.inbox > 0 {
            self.overrun = true;
            self.counts.overruns += 1;
        }
    }

    fn fail_unacknowledged(&mut self, out: &mut Out) {
        let passive = self.is_passive();
        self.fail(WireError::Acknowledge, !passive, out);
        self.uncharged = passive;
    }

    /// An error in a frame. The flag is that of the health before this error counts.
    fn fail(&mut self, error: WireError, counts: bool, out: &mut Out) {
        let passive = self.is_passive() || self.setup.listen_only;
        self.transmitter = self.sending.is_some();
        self.counts.errors += 1;
        out.say(EventKind::Error { error, transmitting: self.transmitter });
        if self.transmitter {
            self.give_up(Some(error), out);
            self.charge(if counts { 8 } else { 0 });
        } else {
            self.charge(1);
        }
        self.signal(if passive { Signal::PassiveError } else { Signal::ActiveError });
    }

    fn signal(&mut self, signal: Signal) {
        self.uncharged = false;
        self.phase = match signal {
            _ if self.transmit_errors > BUS_OFF_ABOVE => SILENT,
            Signal::Overload if self.setup.listen_only => Phase::Echo { signal, bits: 0 },
            signal => Phase::Flag { signal, bits: 0, last: RECESSIVE },
        };
    }

    /// Bus-off at once, as after many errors of its own; its host is told.
    pub fn go_bus_off(&mut self, time: Nanos, events: &mut VecDeque<BusEvent>) {
        if self.phase == Phase::Off || self.setup.listen_only {
            return;
        }
        self.sending = None;
        self.transmit_errors = BUS_OFF_ABOVE + 1;
        self.phase = SILENT;
        self.note_health(&mut Out { time, node: self.id, events });
    }

    fn charge(&mut self, amount: u16) {
        if self.transmitter {
            self.transmit_errors += amount;
        } else if !self.setup.listen_only {
            self.receive_errors = (self.receive_errors + amount).min(BUS_OFF_ABOVE);
        }
    }

    fn is_passive(&self) -> bool {
        self.transmit_errors > PASSIVE_ABOVE || self.receive_errors > PASSIVE_ABOVE
    }

    fn flag(&mut self, level: bool, signal: Signal, bits: u8, last: bool, out: &mut Out) {
        if signal == Signal::PassiveError {
            if self.uncharged && level == DOMINANT {
                self.uncharged = false;
                self.charge(8);
            }
            let bits = if bits > 0 && level == last { bits + 1 } else { 1 };
            self.phase = Phase::Flag { signal, bits, last: level };
        } else if level == RECESSIVE {
            // Its own dominant bit did not reach the bus.
            self.counts.errors += 1;
            out.say(EventKind::Error { error: WireError::Bit, transmitting: self.transmitter });
            self.charge(8);
            return self.signal(signal);
        } else {
            self.phase = Phase::Flag { signal, bits: bits + 1, last: level };
        }
        if let Phase::Flag { bits: FLAG_BITS, .. } = self.phase {
            self.phase = Phase::Echo { signal, bits: 0 };
        }
        self.end_if_bus_off();
    }

    fn echo(&mut self, level: bool, signal: Signal, bits: u8) {
        if level == RECESSIVE {
            self.phase = Phase::Delimiter { bits: 1 };
            return;
        }
        let first = bits == 0;
        if first && !self.transmitter && signal != Signal::Overload {
            self.charge(8);
        }
        // Seven dominant bits are others' flags; the eighth, and every eighth after it, is not.
        let bits = bits + 1;
        if bits == 8 || bits == 16 {
            self.charge(8);
        }
        self.phase = Phase::Echo { signal, bits: if bits == 16 { 8 } else { bits } };
        self.end_if_bus_off();
    }

    fn end_if_bus_off(&mut self) {
        if self.transmit_errors > BUS_OFF_ABOVE {
            self.phase = SILENT;
        }
    }

    fn delimit(&mut self, level: bool, bits: u8, out: &mut Out) {
        let last = bits + 1 == DELIMITER_BITS;
        match level {
            RECESSIVE if last => self.rest(),
            RECESSIVE => self.phase = Phase::Delimiter { bits: bits + 1 },
            DOMINANT if last => self.signal(Signal::Overload),
            DOMINANT => {
                let passive = self.is_passive() || self.setup.listen_only;
                self.counts.errors += 1;
                let error = WireError::Form;
                out.say(EventKind::Error { error, transmitting: self.transmitter });
                self.charge(if self.transmitter { 8 } else { 1 });
                self.signal(if passive { Signal::PassiveError } else { Signal::ActiveError });
            }
        }
    }

    /// The pause after a frame begins, unless there is no room for another.
    fn rest(&mut self) {
        let full = self.setup.inbox > 0 && self.inbox.len() >= self.setup.inbox;
        if full && self.overloads < self.setup.overloads && !self.setup.listen_only {
            self.overloads += 1;
            return self.signal(Signal::Overload);
        }
        self.phase = Phase::Intermission { bits: 0 };
    }

    fn pause(&mut self, level: bool, bits: u8) {
        match (level, bits) {
            (DOMINANT, 0 | 1) => self.signal(Signal::Overload),
            // The third bit is taken for a start of frame: a node that waits joins without one.
            (DOMINANT, _) => {
                let joins = !(self.is_passive() && self.transmitter) && self.begin();
                match self.sending.as_mut() {
                    Some(sending) if joins => {
                        sending.at = 1;
                        let _ = self.decoder.push(DOMINANT);
                    }
                    _ => self.follow(),
                }
            }
            (RECESSIVE, 0 | 1) => self.phase = Phase::Intermission { bits: bits + 1 },
            (RECESSIVE, _) => self.end_pause(),
        }
    }

    /// The intermission is over, and nobody disturbed it.
    pub fn end_pause(&mut self) {
        let suspends = self.is_passive() && self.transmitter;
        self.phase = if suspends { Phase::Suspend { bits: 0 } } else { Phase::Idle };
    }

    fn recover(&mut self, level: bool, runs: u16, bits: u8) {
        let bits = if level == RECESSIVE { bits + 1 } else { 0 };
        let runs = runs + u16::from(bits == IDLE_BITS);
        self.phase = Phase::Recovering { runs, bits: bits % IDLE_BITS };
        if runs == RECOVERY_RUNS {
            (self.transmit_errors, self.receive_errors) = (0, 0);
            self.transmitter = false;
            self.phase = Phase::Idle;
        }
    }

    fn note_health(&mut self, out: &mut Out) {
        let worst = self.transmit_errors.max(self.receive_errors);
        let health = match worst {
            _ if self.transmit_errors > BUS_OFF_ABOVE => Health::BusOff,
            0..WARNING_FROM => Health::ErrorActive,
            WARNING_FROM..=PASSIVE_ABOVE => Health::Warning,
            _ => Health::ErrorPassive,
        };
        if health != self.health {
            self.health = health;
            let (transmit_errors, receive_errors) = (self.transmit_errors, self.receive_errors);
            out.say(EventKind::Health { health, transmit_errors, receive_errors });
        }
    }
}

/// Where a node says what happened.
struct Out<'a> {
    time: Nanos,
    node: NodeId,
    events: &'a mut VecDeque<BusEvent>,
}

impl Out<'_> {
    fn say(&mut self, kind: EventKind) {
        self.events.push_back(BusEvent { time: self.time, node: self.node, kind });
    }
}
