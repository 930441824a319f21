//! The faults that a simulator can cause.

use crate::interrupter::Disturbance;
use crate::{Memory, Xhc};
use diapason_abi::Nanos;

impl Xhc {
    /// This happens to the next interrupt; several queue up.
    pub fn disturb(&mut self, disturbance: Disturbance) {
        self.disturbances.push_back(disturbance);
    }

    /// The next `packets` packets of an endpoint are lost on the wire.
    pub fn fail_packets(&mut self, slot: u8, endpoint: u8, packets: u32) {
        if let Some(endpoint) = self.endpoint(slot, endpoint) {
            endpoint.failing = packets;
        }
    }

    /// The link of a port breaks down: it becomes inactive until a warm reset.
    pub fn lose_link(&mut self, now: Nanos, memory: &mut dyn Memory, port: u8) {
        self.advance(now, memory);
        self.change_port(memory, port, |port, _, _| port.lose_link());
    }

    /// Host system error: the controller halts, and the driver can reset it.
    pub fn system_error(&mut self) {
        self.operational.system_error = true;
        self.halt_now();
    }

    /// Host controller error: only a reset helps.
    pub fn controller_error(&mut self) {
        self.operational.controller_error = true;
        self.halt_now();
    }
}
