//! A lane: an interrupter with its event ring, the endpoints whose transfers it reports, and their
//! finished transfers. It shares nothing that changes with another lane or with the controller. Its
//! registers and its part of the memory are its own. So each lane may have a lock of its own.
//!
//! Commands, ports and devices are the controller's. It enters a lane to give it an endpoint, to
//! take one back, and to recover one; [`Lane::wants`] says that there is something to recover.

use super::access::{Dma, Hardware, Mmio, Regions};
use super::event_ring::{EventRing, Handled};
use super::limits::{Limits, Window};
use super::pipe::{Pipe, Span};
use super::report::{Counters, DeviceId, Finished, TransferId, TransferOutcome};
use crate::context::EndpointKind;
use crate::trb::{Kind, Trb, context_index};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// An interrupter and the endpoints that it serves.
#[derive(Debug)]
pub struct Lane<M, D> {
    pub(super) number: u16,
    pub(super) hw: Hardware<M, D>,
    pub(super) events: EventRing,
    /// The endpoints. Lane 0 begins with the control endpoints of all devices.
    pub(super) pipes: Vec<Pipe>,
    pub(super) windows: Vec<Window>,
    pub(super) finished: VecDeque<Finished>,
    /// Requests of the driver itself that are over, by the index of the device.
    pub(super) answered: VecDeque<(u8, TransferOutcome, u32)>,
    /// Transfers of clients, queued or finished and not yet taken.
    pub(super) outstanding: usize,
    pub(super) most: usize,
    pub(super) counters: Counters,
    serial: u64,
    /// Whether the controller runs and has this interrupter.
    pub(super) runs: bool,
    /// An endpoint needs a command.
    pub(super) attention: bool,
}

/// The lanes beside the first, wherever they are: each may be behind a lock.
pub trait Lanes<M, D> {
    /// Enters the lane with this number, from 1. The controller enters one at a time.
    fn with<R>(&self, lane: u16, act: impl FnOnce(&mut Lane<M, D>) -> R) -> R;
}

/// Lanes that nobody but the controller enters.
#[derive(Debug)]
pub struct Together<M, D>(Vec<core::cell::RefCell<Lane<M, D>>>);

impl<M, D> Together<M, D> {
    /// Takes the lanes from 1 on.
    #[must_use]
    pub fn new(lanes: Vec<Lane<M, D>>) -> Together<M, D> {
        Together(lanes.into_iter().map(core::cell::RefCell::new).collect())
    }
}

impl<M, D> Lanes<M, D> for Together<M, D> {
    fn with<R>(&self, lane: u16, act: impl FnOnce(&mut Lane<M, D>) -> R) -> R {
        act(&mut self.0[usize::from(lane) - 1].borrow_mut())
    }
}

impl<M: Mmio, D: Dma> Lane<M, D> {
    pub(super) fn new(hw: Hardware<M, D>, events: EventRing, limits: &Limits) -> Lane<M, D> {
        let most = usize::from(limits.transfers);
        Lane {
            number: events.interrupter(),
            hw,
            events,
            pipes: Vec::with_capacity(usize::from(limits.pipes) + usize::from(limits.devices)),
            windows: Vec::with_capacity(usize::from(limits.windows)),
            finished: VecDeque::with_capacity(most),
            answered: VecDeque::with_capacity(usize::from(limits.devices)),
            outstanding: 0,
            most,
            counters: Counters::default(),
            serial: 0,
            runs: false,
            attention: false,
        }
    }

    /// Returns the interrupter of the lane.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Learns where the registers are.
    pub(super) fn locate(&mut self, regions: Regions) {
        self.hw.regions = regions;
    }

    /// Installs an empty event ring.
    pub(super) fn install(&mut self) {
        self.events.install(&mut self.hw);
    }

    /// Takes events off its ring, at most `budget` of them.
    pub fn handle_interrupt(&mut self, budget: u32, now: Nanos) -> Handled {
        let mut handled = Handled::default();
        while handled.events < budget && self.take_event(now) {
            handled.events += 1;
        }
        handled.more = self.has_events();
        self.acknowledge(!handled.more);
        handled
    }

    /// Returns the next transfer that is finished. If there is none yet, takes events off the ring
    /// until one of them finishes a transfer. Call it until it returns `None`: then the controller
    /// may interrupt again. Until then, it learns after each `batch` of events how far the driver
    /// has read.
    ///
    /// The caller may use the lane between two calls: an event that is still on the ring is like
    /// one that the controller has not written yet.
    pub fn next_finished(&mut self, batch: u32, now: Nanos) -> Option<Finished> {
        loop {
            if let Some(finished) = self.take_finished() {
                return Some(finished);
            }
            if self.events.unacknowledged >= batch && self.has_events() {
                self.acknowledge(false);
            }
            if !self.take_event(now) {
                self.acknowledge(true);
                return None;
            }
        }
    }

    /// Takes one event off the ring, and does what it says. Returns false if there is none.
    fn take_event(&mut self, now: Nanos) -> bool {
        let Some(event) = self.next_event() else { return false };
        self.events.pass();
        match event.kind() {
            Some(Kind::TransferEvent) => self.transfer_event(event, now),
            kind => self.other_event(kind, event),
        }
        true
    }

    /// Returns the next event while the controller runs; it stays on the ring.
    pub(super) fn next_event(&self) -> Option<Trb> {
        if self.runs { self.events.peek(&self.hw) } else { None }
    }

    /// Tells the controller how far the ring was read; `done` lets it interrupt again.
    pub(super) fn acknowledge(&mut self, done: bool) {
        self.counters.events += u64::from(core::mem::take(&mut self.events.unacknowledged));
        if self.runs {
            self.events.acknowledge(&mut self.hw, done);
        }
    }

    /// Counts an event that changes nothing.
    pub(super) fn other_event(&mut self, kind: Option<Kind>, event: Trb) {
        use crate::trb::Completion::EventRingFull;
        match kind {
            Some(Kind::HostController) if event.completion() == Some(EventRingFull) => {
                self.counters.full += 1;
            }
            Some(Kind::MicroframeWrap) => {}
            // Commands and ports report to the first interrupter.
            Some(Kind::CommandCompletion | Kind::PortStatusChange) => self.counters.spurious += 1,
            _ => self.counters.unknown += 1,
        }
    }

    /// Returns whether there are events that no call has taken yet. Looks at memory only.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.next_event().is_some()
    }

    /// Returns whether an endpoint needs a command of the controller: [`Controller::look`] then
    /// issues it.
    ///
    /// [`Controller::look`]: super::Controller::look
    #[must_use]
    pub fn wants(&self) -> bool {
        self.attention
    }

    /// Returns the kind of an endpoint, if the device has it in this lane.
    #[must_use]
    pub fn endpoint_kind(&self, device: DeviceId, endpoint: u8) -> Option<EndpointKind> {
        self.of(device, context_index(endpoint)).map(|number| self.pipes[number].kind)
    }

    /// Returns the place of an endpoint, by the index of its device and its context.
    pub(super) fn find(&self, owner: (u8, u8)) -> Option<usize> {
        self.pipes.iter().position(|pipe| pipe.owner == Some(owner))
    }

    /// Returns the place of an endpoint of a device that is still there.
    pub(super) fn of(&self, device: DeviceId, context: u8) -> Option<usize> {
        let number = self.find((device.index, context))?;
        let pipe = &self.pipes[number];
        (pipe.device == device && !pipe.leaves).then_some(number)
    }

    /// Takes a free endpoint on, with an empty ring.
    pub(super) fn take_on(&mut self, mut pipe: Pipe) {
        pipe.ring.clear(&mut self.hw);
        self.pipes.push(pipe);
    }

    pub(super) fn next_transfer(&mut self) -> TransferId {
        self.serial += 1;
        TransferId(u64::from(self.number) << 48 | self.serial)
    }

    /// Returns the transfer that a block of an endpoint belongs to.
    pub(super) fn span(&self, number: usize, block: u16) -> Span {
        self.pipes[number].spans[usize::from(block)]
    }
}
