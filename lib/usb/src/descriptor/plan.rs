//! From an endpoint to what the controller and the schedule want to know of it.

use super::EndpointDescriptor;
use crate::Speed;
use crate::context::{self, EndpointKind};
use diapason_bus::{
    Async, Criticality, Direction, EndpointId, Guarantee, PERIOD_MAX, PeriodicEndpoint, Transfer,
};

/// No endpoint is asked less often than every so many slots: an endpoint that wants to be is asked
/// more often. A schedule is as long as its longest period, and a device that claims 2^15 slots
/// must not cost the driver 2^15 numbers.
const PERIOD_LONGEST: u32 = 256;
/// Attempts of a packet before the endpoint halts.
const ATTEMPTS: u32 = 3;
/// Average bytes of a block to start with, for bulk and isochronous endpoints.
const AVERAGE: u32 = 3_072;
/// Average bytes of a block to start with, for interrupt endpoints.
const AVERAGE_INTERRUPT: u32 = 1_024;

impl EndpointDescriptor {
    /// Returns its kind in a context.
    #[must_use]
    pub const fn kind(&self) -> EndpointKind {
        match (self.transfer, self.is_in()) {
            (Transfer::Control, _) => EndpointKind::Control,
            (Transfer::Bulk, false) => EndpointKind::BulkOut,
            (Transfer::Bulk, true) => EndpointKind::BulkIn,
            (Transfer::Interrupt, false) => EndpointKind::InterruptOut,
            (Transfer::Interrupt, true) => EndpointKind::InterruptIn,
            (Transfer::Isochronous, false) => EndpointKind::IsochOut,
            (Transfer::Isochronous, true) => EndpointKind::IsochIn,
        }
    }

    /// Returns where its context stands among the device's.
    #[must_use]
    pub const fn index(&self) -> u8 {
        crate::trb::context_index(self.address)
    }

    /// Returns the period in slots of its bus (microframes; frames at full and low speed) at which
    /// it is asked, 256 at most; `None` for bulk.
    #[must_use]
    pub const fn period(&self) -> Option<u32> {
        match self.speed.period(self.transfer, self.interval) {
            Some(period) if period > PERIOD_LONGEST => Some(PERIOD_LONGEST),
            period => period,
        }
    }

    /// Returns its context, but for the ring.
    #[must_use]
    pub fn context(&self) -> context::EndpointContext {
        let mut context = context::EndpointContext::default();
        let periodic = self.kind().is_periodic();
        let attempts = if self.kind().is_isochronous() { 0 } else { ATTEMPTS };
        let average = match self.transfer {
            Transfer::Interrupt => AVERAGE_INTERRUPT,
            _ => AVERAGE,
        };
        context.set_kind_number(self.kind().number());
        context.set_attempts(attempts);
        context.set_packet(self.packet.into());
        context.set_burst(self.burst.into());
        context.set_mult(self.mult.into());
        context.set_average(if periodic { average.min(self.interval_bytes) } else { average });
        if let Some(period) = self.period() {
            let microframes = match self.speed {
                Speed::Low | Speed::Full => 3,
                Speed::High | Speed::Super => 0,
            };
            context.set_interval(period.ilog2() + microframes);
            context.set_payload(self.interval_bytes);
        }
        context
    }

    /// Returns the bus reservation of the endpoint, at its own period or up to `stretch` times
    /// that. Returns `None` if it is bulk or switched off.
    #[must_use]
    pub fn periodic(
        &self,
        id: EndpointId,
        criticality: Criticality,
        stretch: u32,
    ) -> Option<PeriodicEndpoint> {
        let period = self.period().filter(|_| self.packet > 0)?;
        Some(PeriodicEndpoint {
            id,
            transfer: self.transfer,
            direction: self.direction(),
            packet: self.packet.into(),
            burst: self.burst.into(),
            mult: self.mult.into(),
            period,
            longest_period: period.saturating_mul(stretch).min(PERIOD_MAX),
            criticality,
        })
    }

    /// Returns its part in the round robin; `None` unless it is bulk.
    #[must_use]
    pub fn asynchronous(&self, id: EndpointId, guarantee: Option<Guarantee>) -> Option<Async> {
        (self.transfer == Transfer::Bulk).then_some(Async {
            id,
            transfer: Transfer::Bulk,
            direction: self.direction(),
            packet: self.packet.into(),
            burst: self.burst.into(),
            guarantee,
        })
    }
}

/// Returns the control endpoint of a device, but for its ring.
#[must_use]
pub fn control_context(packet: u16) -> context::EndpointContext {
    let mut context = context::EndpointContext::default();
    context.set_kind_number(EndpointKind::Control.number());
    context.set_attempts(ATTEMPTS);
    context.set_packet(packet.into());
    context.set_average(8);
    context
}

/// Returns the control endpoint's part in the round robin. Its stages go both ways; the way in is
/// charged: a whole packet takes no longer the other way, at any speed.
#[must_use]
pub const fn control_asynchronous(id: EndpointId, packet: u16) -> Async {
    Async {
        id,
        transfer: Transfer::Control,
        direction: Direction::In,
        packet: packet as u32,
        burst: 0,
        guarantee: None,
    }
}
