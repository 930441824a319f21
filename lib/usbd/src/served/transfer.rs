//! From what a class wants to transfers of the driver.

use crate::change::{Change, Changes};
use crate::platform::{Platform, log};
use crate::posts::{Outside, Post};
use crate::services::service::Service;
use crate::slots::Slots;
use diapason_abi::Nanos;
use diapason_usb::Setup;
use diapason_usb::class::{Completion, HEAD, Landed, Request, TransferFault};
use diapason_usb::trb::context_index;
use diapason_usb::xhci::{self, DeviceId, Refused, TransferOutcome};

/// A transfer whose bytes are already where the controller finds them.
struct Todo {
    endpoint: u8,
    memory: Memory,
    length: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Memory {
    /// In the device's own piece of the pool.
    Slot(usize),
    /// Shared with a client.
    Shared(u32),
}

impl Memory {
    /// Returns the driver's number for a transfer with it.
    const fn cookie(self) -> u64 {
        match self {
            Memory::Slot(slot) => slot as u64,
            Memory::Shared(place) => SHARED | place as u64,
        }
    }

    pub(super) const fn of(cookie: u64) -> Memory {
        if cookie & SHARED != 0 {
            Memory::Shared(cookie as u32)
        } else {
            Memory::Slot(cookie as usize)
        }
    }
}

/// In the name of a transfer: its memory is shared.
const SHARED: u64 = 1 << 63;

/// The fate of a request at once.
enum Step {
    /// The request is to be queued.
    Transfer(Todo),
    Answered(u8, Result<&'static [u8], TransferFault>),
    /// The request is under way, or nothing comes of it.
    Begun,
}

/// A device's transfers: where their bytes are, and what the driver is at.
pub(super) struct Transfers<P: Platform> {
    pub device: DeviceId,
    pub name: &'static str,
    pub slots: Slots<P>,
    /// Transfers with shared memory that are pending.
    pub sharing: u32,
    pub changes: Changes,
    /// Endpoints (by context) whose last transfer the driver recovers from.
    pub halted: u32,
}

impl<P: Platform> Transfers<P> {
    /// None, for a device with these places.
    pub fn new(device: DeviceId, name: &'static str, slots: Slots<P>) -> Transfers<P> {
        Transfers { device, name, slots, sharing: 0, changes: Changes::default(), halted: 0 }
    }

    /// Returns whether all are over.
    pub fn are_over(&self) -> bool {
        self.slots.are_free() && self.sharing == 0
    }

    /// Begins all transfers that the class wants now.
    pub fn begin(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        now: Nanos,
    ) {
        while let Some(request) = service.request(now) {
            match self.prepare(request, outside) {
                Step::Transfer(todo) => self.queue(service, outside, &todo, now),
                Step::Answered(endpoint, result) => {
                    service.complete(Completion { endpoint, result }, now);
                }
                Step::Begun => {}
            }
        }
    }

    /// Begins a transfer from the device in a place that the one before it had.
    pub fn renew(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        (endpoint, slot, length): (u8, usize, usize),
        now: Nanos,
    ) {
        let todo = Todo { endpoint, memory: Memory::Slot(slot), length };
        self.queue(service, outside, &todo, now);
    }

    /// Queues a transfer. A class whose transfer is refused hears that it is gone.
    fn queue(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        todo: &Todo,
        now: Nanos,
    ) {
        if !self.submit(service, outside, todo) {
            refuse(service, todo, now);
        }
    }

    /// Puts the bytes of a request into a place of their own, or does what it asks for.
    fn prepare(&mut self, request: Request<'_>, outside: &mut Outside<'_, P>) -> Step {
        let (endpoint, length, data) = match request {
            Request::In { endpoint, length } => (endpoint, length, &[][..]),
            Request::Out { endpoint, data } => (endpoint, data.len(), data),
            Request::Shared { endpoint, place, length } => {
                return Step::Transfer(Todo { endpoint, memory: Memory::Shared(place), length });
            }
            Request::Control { setup, data } => return self.control(setup, data, outside),
            Request::Alternate { interface, alternate } => {
                self.changes.want(Change::Alternate { interface, alternate });
                return Step::Begun;
            }
            Request::Recover { endpoint } => return self.recover(endpoint),
            Request::Cancel { endpoint } => {
                if endpoint == 0 {
                    outside.post(Post::CancelControl(self.device));
                } else {
                    let _ = outside.lane.cancel_all(self.device, endpoint);
                }
                return Step::Begun;
            }
        };
        let Some(slot) = self.slots.take(length) else {
            return Step::Answered(endpoint, Err(TransferFault::Gone));
        };
        if !data.is_empty() {
            self.slots.fill(slot, data);
        }
        Step::Transfer(Todo { endpoint, memory: Memory::Slot(slot), length })
    }

    /// After a fault the driver has done that, or is doing it: transfers behind wait for it.
    fn recover(&mut self, endpoint: u8) -> Step {
        let bit = 1 << context_index(endpoint);
        if self.halted & bit != 0 {
            self.halted &= !bit;
            return Step::Answered(endpoint, Ok(&[]));
        }
        self.changes.want(Change::Renew { endpoint });
        Step::Begun
    }

    fn control(&mut self, setup: Setup, data: &[u8], outside: &mut Outside<'_, P>) -> Step {
        let length = usize::from(setup.length);
        let Some(slot) = self.slots.take(length) else {
            return Step::Answered(0, Err(TransferFault::Gone));
        };
        self.slots.fill(slot, data);
        let buffer = self.slots.buffer(slot, length);
        outside.post(Post::Control { device: self.device, setup, buffer, slot });
        Step::Begun
    }

    /// Queues a transfer; if that is refused, its place is free again.
    fn submit(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        todo: &Todo,
    ) -> bool {
        let buffer = match todo.memory {
            Memory::Slot(slot) => Some(self.slots.buffer(slot, todo.length)),
            Memory::Shared(place) => {
                service.clients().and_then(|clients| clients.buffer(place, todo.length))
            }
        };
        let Some(buffer) = buffer else {
            log!(P, "{}: no such place in its memory", self.name);
            return false;
        };
        let request = xhci::Request {
            more: true,
            cookie: todo.memory.cookie(),
            ..xhci::Request::new(self.device, todo.endpoint, buffer)
        };
        let queued = outside.lane.submit(&request);
        match (todo.memory, queued.is_ok()) {
            (Memory::Shared(place), true) => {
                self.sharing += 1;
                if let Some(clients) = service.clients() {
                    clients.lend(place);
                }
            }
            (Memory::Slot(slot), false) => self.slots.give_back(slot),
            _ => {}
        }
        if let Err(refused) = queued
            && !matches!(refused, Refused::NoDevice | Refused::Unscheduled(_))
        {
            log!(P, "{}: no transfer: {refused:?}", self.name);
        }
        queued.is_ok()
    }
}

/// A transfer that could not be queued.
fn refuse<P: Platform>(service: &mut dyn Service<P>, todo: &Todo, now: Nanos) {
    let endpoint = todo.endpoint;
    match todo.memory {
        Memory::Slot(_) => {
            let result = Err(TransferFault::Gone);
            service.complete(Completion { endpoint, result }, now);
        }
        Memory::Shared(place) => {
            let result = Err(TransferFault::Gone);
            service.landed(Landed { endpoint, place, result, head: &[] }, now);
        }
    }
}

/// Notes that the controller has let go of a place in shared memory. Returns the first bytes of
/// what came.
pub(super) fn took_back<'a, P: Platform>(
    service: &mut dyn Service<P>,
    (endpoint, place): (u8, u32),
    moved: Result<usize, TransferFault>,
    into: &'a mut [u8; HEAD],
) -> &'a [u8] {
    let Some(clients) = service.clients() else { return &[] };
    clients.take_back(place);
    if endpoint & 0x80 == 0 { &[] } else { clients.head(place, moved.unwrap_or(0), into) }
}

pub(super) fn is_isochronous<P: Platform>(
    outside: &Outside<'_, P>,
    device: DeviceId,
    endpoint: u8,
) -> bool {
    use diapason_usb::context::EndpointKind::{IsochIn, IsochOut};
    matches!(outside.lane.endpoint_kind(device, endpoint), Some(IsochIn | IsochOut))
}

/// Returns the class's name for an outcome; `None` if it is not worth one.
pub(super) const fn fault(outcome: TransferOutcome) -> Option<TransferFault> {
    match outcome {
        TransferOutcome::Done | TransferOutcome::Short => None,
        TransferOutcome::Stalled => Some(TransferFault::Stall),
        TransferOutcome::Cancelled | TransferOutcome::Unscheduled => Some(TransferFault::Cancelled),
        TransferOutcome::Gone | TransferOutcome::Died => Some(TransferFault::Gone),
        TransferOutcome::Babble
        | TransferOutcome::Transaction
        | TransferOutcome::Missed
        | TransferOutcome::Lost
        | TransferOutcome::Failed(_) => Some(TransferFault::Damaged),
    }
}
