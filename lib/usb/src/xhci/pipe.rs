//! An endpoint's ring with the transfers on it, and what of its recovery is left to do.

use super::budget::{EndpointPlan, is_periodic};
use super::report::{DeviceId, TransferId, TransferOutcome};
use super::ring::Ring;
use crate::context::EndpointKind;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use diapason_bus::EndpointRefusal;

/// The owner of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// Reported to the client.
    Client,
    /// The driver's own request.
    Driver,
    /// Blocks of a cancelled transfer, reported already, that the controller has to pass.
    Nobody,
}

/// A transfer on the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub id: TransferId,
    pub cookie: u64,
    pub owner: Owner,
    pub first: u16,
    pub last: u16,
    /// Bytes of the whole.
    pub length: u32,
    /// The controller's count of the data before the end.
    pub actual: Option<u32>,
    /// The failure that the controller reported in the middle, while it continues to the end
    /// (isochronous).
    pub failed: Option<TransferOutcome>,
    /// To be taken off the ring, and what is then reported.
    pub cancelled: Option<TransferOutcome>,
}

/// The transfer that a block of the ring belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    /// Bytes of the transfer before it.
    pub before: u32,
    pub length: u32,
}

/// The steps that an endpoint needs before its doorbell may be rung again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Running,
    Stop,
    Reset,
    Move,
    Clear,
}

/// The change of an endpoint at the next Configure Endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Run,
    /// The endpoint has no place in the schedule, for now.
    Rest(EndpointRefusal),
    /// Another alternate setting does not have it.
    Remove,
}

/// An endpoint of a device.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    /// Index of its device and its device context index, while it belongs to one.
    pub owner: Option<(u8, u8)>,
    /// The device's name and its slot.
    pub device: DeviceId,
    pub slot: u8,
    /// The device is of no use any more: nothing is queued.
    pub leaves: bool,
    pub kind: EndpointKind,
    pub packet: u16,
    pub burst: u8,
    /// The plan that the client wants; `None` for control endpoints.
    pub plan: Option<EndpointPlan>,
    pub wish: Wish,
    /// The plan that the controller has while a change is under way.
    pub old: Option<EndpointPlan>,
    /// The controller knows it.
    pub configured: bool,
    pub ring: Ring,
    pub spans: Vec<Span>,
    pub queue: VecDeque<Queued>,
    pub phase: Phase,
    /// The command or request of this phase is under way.
    pub issued: bool,
    /// The block that the last new place in the ring named.
    pub target: u16,
    /// The device has to be told that the endpoint was reset.
    pub tell: bool,
    /// Attempts to recover since the last transfer that ended well.
    pub attempts: u8,
    /// The last block of a transfer that ended short before it: a second event may name it.
    pub tail: Option<u16>,
}

impl Pipe {
    /// Returns a pipe that no endpoint uses.
    pub fn new(ring: Ring, blocks: u16, transfers: usize) -> Pipe {
        Pipe {
            owner: None,
            device: DeviceId { index: 0, generation: 0 },
            slot: 0,
            leaves: false,
            kind: EndpointKind::Control,
            packet: 8,
            burst: 0,
            plan: None,
            wish: Wish::Run,
            old: None,
            configured: false,
            ring,
            spans: vec![Span::default(); usize::from(blocks)],
            queue: VecDeque::with_capacity(transfers),
            phase: Phase::Running,
            issued: false,
            target: 0,
            tell: false,
            attempts: 0,
            tail: None,
        }
    }

    /// Makes it as good as new, for this endpoint.
    pub fn adopt(
        &mut self,
        (device, slot): (DeviceId, u8),
        context: u8,
        kind: EndpointKind,
        plan: Option<EndpointPlan>,
    ) {
        self.owner = Some((device.index, context));
        (self.device, self.slot, self.leaves) = (device, slot, false);
        self.kind = kind;
        self.plan = plan;
        if let Some(plan) = plan {
            self.set_plan(plan);
        }
        (self.wish, self.old, self.configured) = (Wish::Run, None, false);
        self.queue.clear();
        self.enter(Phase::Running);
        (self.tell, self.tail, self.attempts) = (false, None, 0);
    }

    /// Takes over the sizes and the kind of an endpoint.
    pub fn set_plan(&mut self, plan: EndpointPlan) {
        (self.packet, self.burst) = (plan.endpoint.packet, plan.endpoint.burst);
        (self.plan, self.kind) = (Some(plan), plan.endpoint.kind());
    }

    /// Returns the most bytes of a transfer, for periodic endpoints.
    pub fn most(&self) -> Option<u32> {
        let plan = self.plan.filter(|plan| is_periodic(plan.endpoint.transfer))?;
        Some(plan.endpoint.interval_bytes)
    }

    /// Returns whether nothing is under way and nothing is wrong.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.phase == Phase::Running
    }

    /// Returns the transfer that a block belongs to, by its place in the queue.
    #[inline]
    pub fn find(&self, block: u16) -> Option<usize> {
        let ring = &self.ring;
        let has = |queued: &Queued| {
            ring.distance(queued.first, block) <= ring.distance(queued.first, queued.last)
        };
        // Nearly every event is about the oldest.
        if self.queue.front().is_some_and(has) {
            return Some(0);
        }
        self.queue.iter().position(has)
    }

    /// The first block the controller may still touch.
    pub fn head(&self) -> u16 {
        self.queue.front().map_or(self.ring.enqueue(), |queued| queued.first)
    }

    /// The part in front of the queue belongs to the driver again, except for the tail.
    pub fn release(&mut self) {
        let head = self.tail.unwrap_or(self.head());
        self.ring.release_to(head);
    }

    /// Begins a phase, with no command issued for it.
    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.issued = false;
    }
}
