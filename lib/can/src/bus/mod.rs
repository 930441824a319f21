//! A bus of CAN controllers with explicit time: arbitration, errors, bus-off, all to the bit.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_can::{BitRate, Bus, CanFrame, StandardId, bus::{EventKind, NodeSetup}};
//!
//! let mut bus = Bus::new(BitRate::new(500_000)?);
//! let (a, b) = (bus.add_node(NodeSetup::default()), bus.add_node(NodeSetup::default()));
//! let frame = CanFrame::data(StandardId::MAX, b"hi").unwrap();
//! bus.send(Nanos(100), a, frame).unwrap();
//! while let Some(time) = bus.next_event() {
//!     bus.advance(time);
//! }
//! let received = bus.poll().unwrap();
//! let expected = EventKind::Received { frame: frame.into() };
//! assert_eq!((received.node, received.kind), (b, expected));
//! # Ok::<(), diapason_can::timing::TimingRefusal>(())
//! ```
//!
//! Every node is a state machine that is stepped bit by bit. Where nothing can go wrong, from the
//! start of a frame whose arbitration is decided to the end of its form, and over the intermission
//! that all begin together, the bus leaps: the nodes are put where the bits would have brought
//! them. [`Bus::leaping`] turns that off; tests hold both ways against each other.
//!
//! A bus that [`Bus::with_data_rate`] makes has frames of CAN FD, too. The bits from the one behind
//! BRS to the delimiter of the checksum go at the rate of the data, if the frame says so, and error
//! flags at that of arbitration.
//!
//! Nodes that send at the same instant meet in arbitration, so a frame begins when time *passes*
//! its instant. On an idle bus a frame begins at the request, and the grid of bits with it.

mod event;
mod grid;
mod node;
mod port;
mod queue;

pub use event::{
    Activity, BusEvent, EventKind, Health, NodeCounts, NodeId, SendRefusal, Ticket, WireFault,
    Withdrawn,
};
pub use node::NodeSetup;
pub use port::{Port, PortError};

use crate::decode::FrameDecoder;
use crate::fd::{AnyFrame, FdSupport};
use crate::frame::CanFrame;
use crate::timing::BitRate;
use crate::wire::{Contest, DOMINANT, INTERFRAME_BITS, RECESSIVE, WireFrame, contest};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use embedded_can::Id;
use grid::{Grid, Span};
use node::{Node, Phase};
use queue::Request;

/// One CAN bus and its nodes.
pub struct Bus {
    grid: Grid,
    now: Nanos,
    nodes: Vec<Node>,
    events: VecDeque<BusEvent>,
    tickets: u64,
    /// The next bit has begun: nobody can join any more.
    open: bool,
    /// Nothing happens until somebody asks for something.
    quiet: bool,
    /// Bits from the next one to where the leap under way lands.
    leap: Option<Span>,
    leaping: bool,
    /// Bits since start of frame.
    position: Option<u32>,
    armed: VecDeque<WireFault>,
    fault: Option<WireFault>,
    /// Bits for which something outside pulls the bus dominant.
    jam: u64,
}

impl Bus {
    /// Returns an idle bus without nodes, at time 0.
    #[must_use]
    pub fn new(rate: BitRate) -> Bus {
        Bus {
            grid: Grid::new(rate),
            now: Nanos::ZERO,
            nodes: Vec::new(),
            events: VecDeque::new(),
            tickets: 0,
            open: false,
            quiet: true,
            leap: None,
            leaping: true,
            position: None,
            armed: VecDeque::new(),
            fault: None,
            jam: 0,
        }
    }

    /// Returns an idle bus without nodes, at time 0, that has frames of CAN FD as well.
    #[must_use]
    pub fn with_data_rate(rate: BitRate, data: BitRate) -> Bus {
        let mut bus = Bus::new(rate);
        bus.grid.data = Some(data);
        bus
    }

    /// Adds one more node. On a quiet bus it takes part at once, else after eleven recessive bits.
    pub fn add_node(&mut self, setup: NodeSetup) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.land_or_walk();
        let phase = if self.quiet { Phase::Idle } else { Phase::Integrating { bits: 0 } };
        let support = self.support(setup.fd);
        self.nodes.push(Node::new(id, setup, phase, support));
        id
    }

    /// Returns what a node of this bus makes of frames of CAN FD, if it knows them or not.
    fn support(&self, fd: bool) -> FdSupport {
        match (self.grid.data, fd) {
            (None, _) => FdSupport::Unaware,
            (Some(_), false) => FdSupport::Refuses,
            (Some(_), true) => FdSupport::Reads,
        }
    }

    /// From its next frame on `node` knows CAN FD, or does not. Meant for one that is switched off.
    pub fn set_fd(&mut self, node: NodeId, fd: bool) {
        self.land_or_walk();
        let support = self.support(fd);
        if let Some(node) = self.nodes.get_mut(node.0) {
            node.support = support;
        }
    }

    /// The bus may leap over what cannot go wrong. It may unless told otherwise.
    pub fn leaping(&mut self, leaping: bool) {
        self.leaping = leaping;
        self.land_or_walk();
    }

    /// Returns the bits per second of all nodes.
    #[must_use]
    pub fn rate(&self) -> BitRate {
        self.grid.rate
    }

    /// Returns the bits per second of the data of CAN FD, if the bus has such frames.
    #[must_use]
    pub fn data_rate(&self) -> Option<BitRate> {
        self.grid.data
    }

    /// The time it was last advanced to.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Asks `node` to send `frame`; it goes on until it succeeds.
    ///
    /// # Errors
    /// The queue is full, or the node cannot send, or not such a frame.
    pub fn send(
        &mut self,
        now: Nanos,
        node: NodeId,
        frame: impl Into<AnyFrame>,
    ) -> Result<Ticket, SendRefusal> {
        self.request(now, node, frame.into(), false)
    }

    /// Sends like [`Bus::send`], with one attempt only.
    ///
    /// # Errors
    /// The queue is full, or the node cannot send, or not such a frame.
    pub fn send_once(
        &mut self,
        now: Nanos,
        node: NodeId,
        frame: impl Into<AnyFrame>,
    ) -> Result<Ticket, SendRefusal> {
        self.request(now, node, frame.into(), true)
    }

    fn request(
        &mut self,
        now: Nanos,
        node: NodeId,
        frame: AnyFrame,
        once: bool,
    ) -> Result<Ticket, SendRefusal> {
        self.advance(now);
        let nodes = self.nodes.len();
        let node = self.nodes.get_mut(node.0).ok_or(SendRefusal::NoSuchNode { nodes })?;
        if node.phase == Phase::Off || node.setup.listen_only {
            return Err(SendRefusal::Silent);
        }
        if frame.is_fd() && node.support != FdSupport::Reads {
            return Err(SendRefusal::Classic);
        }
        let ticket = Ticket(self.tickets);
        if !node.queue.push(Request { ticket: Some(ticket), frame, once }) {
            return Err(SendRefusal::QueueFull { capacity: node.queue.capacity() });
        }
        self.tickets += 1;
        self.wake();
        Ok(ticket)
    }

    /// Takes a request back; false if it is being sent or gone.
    pub fn cancel(&mut self, now: Nanos, node: NodeId, ticket: Ticket) -> bool {
        self.advance(now);
        self.land_or_walk();
        let Some(node) = self.nodes.get_mut(node.0) else { return false };
        let busy = node.sending.as_ref().and_then(|sending| sending.request.ticket);
        busy != Some(ticket) && node.queue.remove(ticket).is_some()
    }

    /// Takes a request back. One that is being sent goes on, but is not tried again if it loses.
    pub fn withdraw(&mut self, now: Nanos, node: NodeId, ticket: Ticket) -> Withdrawn {
        if self.cancel(now, node, ticket) {
            return Withdrawn::Back;
        }
        let Some(node) = self.nodes.get_mut(node.0) else { return Withdrawn::Gone };
        let Some(request) = node.queue.find(ticket) else { return Withdrawn::Gone };
        request.once = true;
        if let Some(sending) = &mut node.sending {
            sending.request.once |= sending.request.ticket == Some(ticket);
        }
        Withdrawn::LastTry
    }

    /// Returns what `node` does at `now`. Of two that begin together each sends until it loses.
    pub fn activity(&mut self, now: Nanos, node: NodeId) -> Activity {
        self.advance(now);
        self.land_or_walk();
        match self.nodes.get(node.0) {
            Some(node) if node.sending.is_some() => Activity::Sending,
            Some(Node { phase: Phase::Idle, .. }) => Activity::Idle,
            Some(Node { phase: Phase::Off, .. }) | None => Activity::Apart,
            Some(Node { phase: Phase::Recovering { .. }, .. }) => Activity::Apart,
            Some(Node { phase: Phase::Integrating { .. }, .. }) => Activity::Apart,
            Some(_) => Activity::Listening,
        }
    }

    /// Gives a request another identifier from its next attempt on; false if it is gone.
    pub fn rename(&mut self, now: Nanos, node: NodeId, ticket: Ticket, id: Id) -> bool {
        self.advance(now);
        let Some(node) = self.nodes.get_mut(node.0) else { return false };
        let Some(request) = node.queue.find(ticket) else { return false };
        request.frame = request.frame.with_id(id);
        true
    }

    /// Takes all requests back but the one being sent; how many they were.
    pub fn flush(&mut self, now: Nanos, node: NodeId) -> usize {
        self.advance(now);
        self.land_or_walk();
        let Some(node) = self.nodes.get_mut(node.0) else { return 0 };
        let busy = node.sending.as_ref().and_then(|sending| sending.request.ticket);
        node.queue.clear(busy)
    }

    /// Requests that wait at `node`, the one being sent included.
    #[must_use]
    pub fn waiting(&self, node: NodeId) -> usize {
        self.nodes.get(node.0).map_or(0, |node| node.queue.len())
    }

    /// Switches a node's controller on or off. Off forgets its requests and breaks what it sends;
    /// on starts with counters at 0 and eleven recessive bits.
    pub fn switch(&mut self, now: Nanos, node: NodeId, on: bool) {
        self.advance(now);
        self.land_or_walk();
        if let Some(node) = self.nodes.get_mut(node.0) {
            node.switch(on);
            node.queue.clear(None);
        }
        self.wake();
    }

    /// From now on `node` sends `frame` without pause, before all its requests; none ends it.
    pub fn babble(&mut self, now: Nanos, node: NodeId, frame: Option<CanFrame>) {
        self.advance(now);
        if let Some(node) = self.nodes.get_mut(node.0) {
            node.babble = frame;
        }
        self.wake();
    }

    /// `node` goes bus-off, as after too many errors of its own. Nothing if it is switched off or
    /// only listens.
    pub fn expel(&mut self, now: Nanos, node: NodeId) {
        self.advance(now);
        self.land_or_walk();
        if let Some(node) = self.nodes.get_mut(node.0) {
            node.go_bus_off(self.now, &mut self.events);
        }
        self.wake();
    }

    /// Arm a fault for the next frame that begins; several wait for one frame each.
    pub fn arm(&mut self, now: Nanos, fault: WireFault) {
        self.advance(now);
        self.armed.push_back(fault);
    }

    /// Holds the bus dominant for `bits` bits, from the next one on.
    pub fn jam(&mut self, now: Nanos, bits: u64) {
        self.advance(now);
        self.land_or_walk();
        self.jam = self.jam.max(bits);
        self.wake();
    }

    /// Returns the next thing that happened, in order of time, then of nodes.
    pub fn poll(&mut self) -> Option<BusEvent> {
        self.events.pop_front()
    }

    /// Returns the counts of the node's controller.
    #[must_use]
    pub fn counts(&self, node: NodeId) -> NodeCounts {
        self.nodes.get(node.0).map_or_else(NodeCounts::default, |node| node.counts)
    }

    /// Returns its health, transmit and receive error counter.
    #[must_use]
    pub fn health(&self, node: NodeId) -> (Health, u16, u16) {
        self.nodes.get(node.0).map_or((Health::BusOff, 0, 0), |node| {
            (node.health(), node.transmit_errors, node.receive_errors)
        })
    }

    /// Returns when to call [`Bus::advance`] again; nothing is to be seen before. None: not by
    /// itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let at_rest = |node: &Node| {
            matches!(
                node.phase,
                Phase::Off | Phase::Idle | Phase::Intermission { .. } | Phase::Suspend { .. }
            ) && !node.has_work()
        };
        if self.quiet || (self.jam == 0 && self.nodes.iter().all(at_rest)) {
            return None;
        }
        let ahead = self.leap.map_or_else(|| self.next_bit(), |bits| bits.and_slow(1));
        Some(self.grid.time(ahead))
    }

    /// Everything that ends at `now` or before; time never goes back.
    pub fn advance(&mut self, now: Nanos) {
        while !self.quiet {
            if !self.open {
                if self.grid.time(Span::NONE) >= now {
                    break;
                }
                if self.pause(now) {
                    continue;
                }
                self.open_bit();
            }
            match self.leap {
                Some(bits) if self.grid.time(bits) <= now => self.land(bits),
                None if self.grid.time(self.next_bit()) <= now => self.close_bit(),
                _ => break,
            }
        }
        self.now = self.now.max(now);
    }

    /// Somebody wants something of a bus that was quiet: its bits begin now.
    fn wake(&mut self) {
        if self.quiet {
            self.grid.begin(self.now);
            (self.quiet, self.open) = (false, false);
        }
    }

    /// A leap under way is taken bit by bit instead, up to now.
    fn land_or_walk(&mut self) {
        if self.leap.take().is_some() {
            self.advance(self.now);
        }
    }

    /// Returns the next bit, of the rate at which it goes.
    fn next_bit(&self) -> Span {
        let is_fast = self.grid.data.is_some()
            && self.nodes.iter().any(Node::is_fast)
            && !self.nodes.iter().any(Node::destroys);
        if is_fast { Span { slow: 0, fast: 1 } } else { Span { slow: 1, fast: 0 } }
    }

    fn open_bit(&mut self) {
        self.open = true;
        let mut begun = false;
        for node in &mut self.nodes {
            begun |= node.open();
        }
        if begun {
            (self.position, self.fault) = (Some(0), self.armed.pop_front());
            self.leap = self.plan_leap();
        }
    }

    /// Returns the bits to the last two of end of frame, if nothing can go wrong until there.
    fn plan_leap(&self) -> Option<Span> {
        if !self.leaping || self.fault.is_some() || self.jam > 0 {
            return None;
        }
        let settled = |node: &Node| matches!(node.phase, Phase::Off | Phase::Idle | Phase::Frame);
        if !self.nodes.iter().all(settled) {
            return None;
        }
        let winner = self.winner()?;
        let sends_it =
            |node: &Node| node.sending.as_ref().is_some_and(|sending| sending.wire == *winner);
        let heard = self.nodes.iter().any(|node| node.acknowledges() && !sends_it(node));
        let once = |node: &&Node| node.sending.as_ref().is_some_and(|s| s.request.once);
        let dropped = self.nodes.iter().filter(once).any(|node| !sends_it(node));
        let destroyer = |node: &Node| node.phase != Phase::Off && node.support != FdSupport::Reads;
        let destroyed = winner.is_fd && self.nodes.iter().any(destroyer);
        let fast = u64::from(winner.fast_bits());
        let slow = u64::from(winner.bits.len()) - 2 - fast;
        (heard && !dropped && !destroyed).then_some(Span { slow, fast })
    }

    fn winner(&self) -> Option<&WireFrame> {
        let wires = || self.nodes.iter().filter_map(|node| Some(&node.sending.as_ref()?.wire));
        if wires().nth(1).is_none() {
            return wires().next();
        }
        let copies: Vec<WireFrame> = wires().copied().collect();
        match contest(&copies) {
            Contest::Won { by } => wires().nth(by),
            Contest::Clash { .. } => None,
        }
    }

    /// The leap is over: every node is where `bits` bits would have brought it.
    fn land(&mut self, bits: Span) {
        (self.leap, self.open) = (None, false);
        let Some(winner) = self.winner().copied() else { return };
        let decoder = FrameDecoder::near_the_end_of(&winner);
        for node in &mut self.nodes {
            match node.sending.as_mut() {
                Some(sending) if sending.wire == winner => sending.at = bits.bits() as u32,
                Some(_) => {
                    node.sending = None;
                    node.counts.lost += 1;
                }
                None => {}
            }
        }
        for node in self.nodes.iter_mut().filter(|node| node.phase != Phase::Off) {
            node.phase = Phase::Frame;
            node.decoder = decoder.clone();
        }
        self.position = self.position.map(|position| position + bits.bits() as u32);
        self.grid.pass(bits);
    }

    fn close_bit(&mut self) {
        let bit = self.next_bit();
        let time = self.grid.time(bit);
        let mut level = if self.jam > 0 { DOMINANT } else { RECESSIVE };
        for node in &self.nodes {
            level &= node.drive();
        }
        for node in &mut self.nodes {
            let seen = node.view(level, self.fault, self.position);
            node.sample(seen, time, &mut self.events);
        }
        let in_frame = |node: &Node| {
            use Phase::{Delimiter, Echo, Flag, Frame};
            matches!(node.phase, Frame | Flag { .. } | Echo { .. } | Delimiter { .. })
        };
        if self.nodes.iter().any(in_frame) {
            self.position = self.position.map(|position| position + 1);
        } else {
            (self.position, self.fault) = (None, None);
        }
        self.jam = self.jam.saturating_sub(1);
        self.grid.pass(bit);
        self.open = false;
        self.note_quiet();
    }

    fn note_quiet(&mut self) {
        let resting =
            |node: &Node| matches!(node.phase, Phase::Off | Phase::Idle) && !node.has_work();
        self.quiet = self.jam == 0 && self.nodes.iter().all(resting);
    }

    /// Leap over an intermission that begins with the next bit for everybody, if it ends by `now`:
    /// nobody may begin a frame in it. False if there is none.
    fn pause(&mut self, now: Nanos) -> bool {
        const BEGUN: Phase = Phase::Intermission { bits: 0 };
        let bits = Span::NONE.and_slow(INTERFRAME_BITS.into());
        let all = self.nodes.iter().all(|node| matches!(node.phase, Phase::Off | BEGUN));
        if !self.leaping || self.jam > 0 || !all || self.grid.time(bits) > now {
            return false;
        }
        for node in self.nodes.iter_mut().filter(|node| node.phase == BEGUN) {
            node.end_pause();
        }
        self.grid.pass(bits);
        self.note_quiet();
        true
    }
}
