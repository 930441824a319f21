//! A switch that takes a frame whole before it passes it on, with the shaper at each port.

use crate::{CLASSES, CreditSpan, Egress, EgressStep, GateList, GateRefusal, LinkRate, Shaping};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A frame that leaves a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortDeparture<T> {
    pub port: usize,
    pub class: usize,
    pub item: T,
    pub start_ns: u64,
    /// The last bit and the gap are over.
    pub end_ns: u64,
}

/// A frame between its reception and its queue.
struct Inside<T> {
    port: usize,
    class: usize,
    wire_ns: u64,
    item: T,
}

/// A store-and-forward switch. Times that it is given must never go back.
pub struct StoreForward<T> {
    fabric_ns: u64,
    ports: Vec<Egress<T>>,
    /// Frames by the time at which they reach their queue, and the order of their reception.
    inside: BTreeMap<(u64, u64), Inside<T>>,
    received: u64,
    /// Earliest time at which each port may act.
    next_ns: Vec<u64>,
    /// Frames that each queue has room for, besides the frame on the wire.
    room: usize,
    queues: Vec<[QueueBooks; CLASSES]>,
}

/// The frames of one queue of a port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueBooks {
    /// Frames that came for the queue.
    pub offered: u64,
    /// Frames that began to leave.
    pub passed: u64,
    /// Frames for which the queue had no room.
    pub full: u64,
    /// The most frames that waited at once.
    pub peak: u64,
}

impl<T> StoreForward<T> {
    /// Returns a switch whose frames take `fabric_ns` from their last bit to their queue. Each
    /// port has gates, a rate and shaping.
    ///
    /// # Errors
    /// If a port's credits and gates do not go together.
    pub fn new(
        fabric_ns: u64,
        ports: Vec<(GateList, LinkRate, [Shaping; CLASSES])>,
    ) -> Result<StoreForward<T>, GateRefusal> {
        let egress = |(gates, rate, shaping)| Egress::new(gates, rate, shaping);
        let ports = ports.into_iter().map(egress).collect::<Result<Vec<_>, _>>()?;
        let next_ns = ports.iter().map(|_| u64::MAX).collect();
        let queues = ports.iter().map(|_| [QueueBooks::default(); CLASSES]).collect();
        let (inside, room) = (BTreeMap::new(), usize::MAX);
        Ok(StoreForward { fabric_ns, ports, inside, received: 0, next_ns, room, queues })
    }

    /// Gives each queue room for so many frames, besides the frame on the wire. A frame that finds
    /// no room is dropped and counted.
    #[must_use]
    pub fn with_room(self, frames: usize) -> Self {
        StoreForward { room: frames, ..self }
    }

    /// Returns the books of all queues, by port and class. Frames that are offered and neither
    /// passed nor dropped are still inside.
    #[must_use]
    pub fn queues(&self) -> &[[QueueBooks; CLASSES]] {
        &self.queues
    }

    /// Returns between which limits the credit of each class was so far, by port.
    pub fn credits(&self) -> impl Iterator<Item = [CreditSpan; CLASSES]> {
        self.ports.iter().map(Egress::credits)
    }

    /// Takes a frame whose last bit came at `now`, for a port.
    ///
    /// # Errors
    /// If the port does not exist, or its gates never let such a frame pass.
    pub fn receive(
        &mut self,
        now_ns: u64,
        port: usize,
        class: usize,
        wire_ns: u64,
        item: T,
    ) -> Result<(), GateRefusal> {
        let egress = self.ports.get(port).ok_or(GateRefusal::Port { port })?;
        egress.gates().check(class, wire_ns)?;
        let key = (now_ns.saturating_add(self.fabric_ns), self.received);
        self.received += 1;
        self.queues[port][class].offered += 1;
        self.inside.insert(key, Inside { port, class, wire_ns, item });
        Ok(())
    }

    /// Returns when something happens next; `None` if nothing does without another frame.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        let arrives = self.inside.first_key_value().map(|((at, _), _)| *at);
        let acts = self.next_ns.iter().copied().min().filter(|at| *at < u64::MAX);
        arrives.into_iter().chain(acts).min()
    }

    /// Does what is due up to `now`, and returns the frames that begin to leave.
    ///
    /// # Errors
    /// None for frames that [`StoreForward::receive`] took.
    pub fn advance(&mut self, now_ns: u64) -> Result<Vec<PortDeparture<T>>, GateRefusal> {
        let mut left = Vec::new();
        while let Some(at) = self.next().filter(|at| *at <= now_ns) {
            while let Some(entry) = self.inside.first_entry().filter(|it| it.key().0 <= at) {
                let Inside { port, class, wire_ns, item } = entry.remove();
                let books = &mut self.queues[port][class];
                if self.ports[port].waiting(class) >= self.room {
                    books.full += 1;
                    continue;
                }
                self.ports[port].push(at, class, wire_ns, item)?;
                books.peak = books.peak.max(self.ports[port].waiting(class) as u64);
                self.next_ns[port] = at;
            }
            for port in 0..self.ports.len() {
                if self.next_ns[port] <= at {
                    self.act(port, at, &mut left);
                }
            }
        }
        Ok(left)
    }

    fn act(&mut self, port: usize, at_ns: u64, left: &mut Vec<PortDeparture<T>>) {
        self.next_ns[port] = match self.ports[port].step(at_ns) {
            EgressStep::Sends { class, item, end_ns } => {
                self.queues[port][class].passed += 1;
                left.push(PortDeparture { port, class, item, start_ns: at_ns, end_ns });
                end_ns
            }
            EgressStep::Waits { until_ns } => until_ns,
            EgressStep::Idle => u64::MAX,
        };
    }
}
