//! A switch that takes a frame whole before it passes it on, with the shaper at each port.

use crate::{CLASSES, Egress, EgressStep, GateList, GateRefusal, LinkRate, Shaping};
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
        Ok(StoreForward { fabric_ns, ports, inside: BTreeMap::new(), received: 0, next_ns })
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
                self.ports[port].push(at, class, wire_ns, item)?;
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
                left.push(PortDeparture { port, class, item, start_ns: at_ns, end_ns });
                end_ns
            }
            EgressStep::Waits { until_ns } => until_ns,
            EgressStep::Idle => u64::MAX,
        };
    }
}
