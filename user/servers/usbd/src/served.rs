//! A device that is served: what is between its driver and its service.

use crate::change::{Change, Changes};
use crate::policy::{self, MANAGING, REOPEN};
use crate::server::Driver;
use crate::services::{Found, Service};
use crate::slots::{Pool, Slots};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_rt::log;
use diapason_usb::class::{Completion, Fault, Request};
use diapason_usb::trb::endpoint_address;
use diapason_usb::xhci::{self, DeviceId, EndpointPlan, Finished, Outcome, Refused};
use diapason_usb::{Setup, Speed};

/// A device and the service it belongs to.
pub struct Served {
    /// Which.
    pub device: DeviceId,
    /// Number of its service.
    pub service: usize,
    speed: Speed,
    slots: Slots,
    stage: Stage,
    changes: Changes,
    /// Endpoints (by context) whose last transfer the driver recovers from.
    halted: u32,
    /// What was received last.
    bytes: Vec<u8>,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its configuration is being chosen.
    Configuring,
    Working,
    /// It failed, and is asked anew then.
    Resting(Nanos),
    /// Its transfers come back; nothing else is known of it.
    Gone,
}

/// A transfer whose bytes are already where the controller finds them.
struct Todo {
    endpoint: u8,
    slot: usize,
    length: usize,
}

/// What became of a request at once.
enum Step {
    /// It is to be queued.
    Transfer(Todo),
    /// It is over.
    Answered(u8, Result<&'static [u8], Fault>),
    /// It is under way, or nothing comes of it.
    Begun,
}

/// In place of a slot: no memory goes with a transfer.
const NO_SLOT: u64 = 64;

impl Served {
    /// A device of this service, being configured; `None` if it cannot be.
    pub fn adopt(
        (device, speed): (DeviceId, Speed),
        (number, service): (usize, &dyn Service),
        found: &Found<'_>,
        driver: &mut Driver,
        pool: &mut Pool,
    ) -> Option<Served> {
        let name = service.name();
        let Some(slots) = pool.carve(service.memory()) else {
            log!("{name}: no memory for its transfers");
            return None;
        };
        let settings = found.set.interfaces().filter(|interface| interface.alternate == 0);
        let endpoints = settings.flat_map(|interface| interface.endpoints());
        let plans: Vec<EndpointPlan> = endpoints.map(|e| service.plan(e)).collect();
        if let Err(refused) = driver.configure(device, found.set.header().value, &plans) {
            log!("{name}: not configured: {refused:?}");
            pool.give_back(slots);
            return None;
        }
        let bytes = vec![0; slots.largest()];
        let (stage, changes) = (Stage::Configuring, Changes::default());
        Some(Served { device, service: number, speed, slots, stage, changes, halted: 0, bytes })
    }

    /// It is gone; only its transfers are still to come back.
    pub fn leave(&mut self, service: &mut dyn Service) {
        if self.stage != Stage::Gone {
            self.stage = Stage::Gone;
            service.end();
        }
    }

    /// Is it gone?
    pub fn is_gone(&self) -> bool {
        self.stage == Stage::Gone
    }

    /// Is it gone, and nothing of it left?
    pub fn is_over(&self) -> bool {
        self.is_gone() && self.slots.are_free()
    }

    /// Its memory, at its end.
    pub fn into_slots(self) -> Slots {
        self.slots
    }

    /// When it wants to be asked anew.
    pub fn next_wake(&self) -> Nanos {
        if let Stage::Resting(until) = self.stage { until } else { Nanos::FOREVER }
    }

    /// The driver did what was asked for: the configuration, or a change of endpoints.
    pub fn settled(&mut self, service: &mut dyn Service, driver: &Driver, now: Nanos) {
        if self.stage == Stage::Configuring {
            return self.begin(service, driver, now);
        }
        if let Some(change) = self.changes.settled() {
            service.complete(Completion { endpoint: change.endpoint(), result: Ok(&[]) }, now);
        }
    }

    /// The device did not do a change; false if that was its configuration.
    pub fn refused(&mut self, service: &mut dyn Service, now: Nanos) -> bool {
        if self.stage == Stage::Configuring {
            return false;
        }
        if let Some(change) = self.changes.refused() {
            let result = Err(Fault::Stall);
            service.complete(Completion { endpoint: change.endpoint(), result }, now);
        }
        true
    }

    fn begin(&mut self, service: &mut dyn Service, driver: &Driver, now: Nanos) {
        let mut bytes = [0; policy::CONFIGURATION];
        let found = Found::read(driver, self.device, self.speed, &mut bytes);
        let begun = found.is_some_and(|found| service.begin(&found, now));
        self.stage = if begun { Stage::Working } else { Stage::Resting(now + REOPEN) };
    }

    /// It rested long enough.
    pub fn revive(&mut self, service: &mut dyn Service, driver: &Driver, now: Nanos) {
        if let Stage::Resting(until) = self.stage
            && now >= until
            && self.slots.are_free()
        {
            self.begin(service, driver, now);
        }
    }

    /// A transfer of its device ended.
    pub fn finish(
        &mut self,
        service: &mut dyn Service,
        driver: &mut Driver,
        pool: &Pool,
        done: &Finished,
        now: Nanos,
    ) {
        let (slot, endpoint, actual) = (done.cookie as usize, done.endpoint, done.actual as usize);
        let slotted = done.cookie < NO_SLOT;
        let result = match fault(done.outcome) {
            None if slotted => Ok(self.slots.copy(pool, slot, actual, &mut self.bytes)),
            None => Ok(&[][..]),
            Some(fault) => Err(fault),
        };
        if slotted {
            self.slots.give_back(slot);
        }
        let halts = endpoint != 0 && !is_isochronous(driver, self.device, endpoint);
        if halts && matches!(result, Err(Fault::Stall | Fault::Damaged)) {
            // The class wants to start from nothing; the driver recovers the endpoint by itself.
            let _ = driver.cancel_all(self.device, endpoint);
            self.halted |= 1 << diapason_usb::trb::context_index(endpoint);
        }
        if self.stage == Stage::Working {
            service.complete(Completion { endpoint, result }, now);
            self.note(service, driver, now);
        }
    }

    /// Do what its class wants.
    pub fn drive(
        &mut self,
        service: &mut dyn Service,
        driver: &mut Driver,
        pool: &Pool,
        now: Nanos,
    ) {
        if self.stage != Stage::Working {
            return;
        }
        self.transfer(service, driver, pool, now);
        if let Some((change, fault)) = self.changes.ask(driver, self.device, self.speed, service) {
            let (endpoint, result) = (change.endpoint(), Err(fault));
            service.complete(Completion { endpoint, result }, now);
        }
        self.note(service, driver, now);
    }

    /// All transfers the class wants now. One is held until the next is known, so that a doorbell
    /// rings for a batch and not for each.
    fn transfer(
        &mut self,
        service: &mut dyn Service,
        driver: &mut Driver,
        pool: &Pool,
        now: Nanos,
    ) {
        let mut held = None::<Todo>;
        loop {
            let next = service.request(now).map(|request| self.prepare(request, driver, pool));
            if let Some(todo) = held.take() {
                let more =
                    matches!(&next, Some(Step::Transfer(next)) if next.endpoint == todo.endpoint);
                if !self.submit(service, driver, pool, &todo, more) {
                    let (endpoint, result) = (todo.endpoint, Err(Fault::Gone));
                    service.complete(Completion { endpoint, result }, now);
                }
            }
            match next {
                None => return,
                Some(Step::Transfer(todo)) => held = Some(todo),
                Some(Step::Answered(endpoint, result)) => {
                    service.complete(Completion { endpoint, result }, now);
                }
                Some(Step::Begun) => {}
            }
        }
    }

    /// Puts the bytes of a request into a place of their own, or does what it asks for.
    fn prepare(&mut self, request: Request<'_>, driver: &mut Driver, pool: &Pool) -> Step {
        let (endpoint, length, data) = match request {
            Request::In { endpoint, length } => (endpoint, length, &[][..]),
            Request::Out { endpoint, data } => (endpoint, data.len(), data),
            Request::Control { setup, data } => return self.control(setup, data, driver, pool),
            Request::Alternate { interface, alternate } => {
                self.changes.want(Change::Alternate { interface, alternate });
                return Step::Begun;
            }
            Request::Recover { endpoint } => return self.recover(endpoint),
            Request::Cancel { endpoint } => {
                let _ = driver.cancel_all(self.device, endpoint);
                return Step::Begun;
            }
        };
        let Some(slot) = self.slots.take(length) else {
            return Step::Answered(endpoint, Err(Fault::Gone));
        };
        self.slots.fill(pool, slot, data);
        Step::Transfer(Todo { endpoint, slot, length })
    }

    /// After a fault the driver has done that, or is doing it: transfers behind wait for it.
    fn recover(&mut self, endpoint: u8) -> Step {
        let bit = 1 << diapason_usb::trb::context_index(endpoint);
        if self.halted & bit != 0 {
            self.halted &= !bit;
            return Step::Answered(endpoint, Ok(&[]));
        }
        self.changes.want(Change::Renew { endpoint });
        Step::Begun
    }

    fn control(&mut self, setup: Setup, data: &[u8], driver: &mut Driver, pool: &Pool) -> Step {
        let length = usize::from(setup.length);
        let Some(slot) = self.slots.take(length) else {
            return Step::Answered(0, Err(Fault::Gone));
        };
        self.slots.fill(pool, slot, data);
        let buffer = self.slots.buffer(pool, slot, length);
        match driver.control(self.device, setup, buffer, MANAGING, slot as u64) {
            Ok(_) => Step::Begun,
            Err(_) => {
                self.slots.give_back(slot);
                Step::Answered(0, Err(Fault::Gone))
            }
        }
    }

    /// Queues a transfer; if that is refused, its place is free again.
    fn submit(
        &mut self,
        service: &dyn Service,
        driver: &mut Driver,
        pool: &Pool,
        todo: &Todo,
        more: bool,
    ) -> bool {
        let buffers = [self.slots.buffer(pool, todo.slot, todo.length)];
        let request = xhci::Request {
            interrupter: service.interrupter(todo.endpoint),
            more,
            cookie: todo.slot as u64,
            ..xhci::Request::new(self.device, todo.endpoint, &buffers)
        };
        let queued = driver.submit(&request);
        if let Err(refused) = queued {
            self.slots.give_back(todo.slot);
            if refused != Refused::NoDevice {
                log!("{}: no transfer: {refused:?}", service.name());
            }
        }
        queued.is_ok()
    }

    /// If it failed as a whole: let go of everything and ask it anew, if it is still there then.
    fn note(&mut self, service: &mut dyn Service, driver: &mut Driver, now: Nanos) {
        if !service.has_failed() {
            return;
        }
        service.end();
        self.changes.forget();
        self.stage = Stage::Resting(now + REOPEN);
        for context in 1..32 {
            let _ = driver.cancel_all(self.device, endpoint_address(context));
        }
    }
}

fn is_isochronous(driver: &Driver, device: DeviceId, endpoint: u8) -> bool {
    use diapason_usb::context::EndpointKind::{IsochIn, IsochOut};
    matches!(driver.endpoint_kind(device, endpoint), Some(IsochIn | IsochOut))
}

/// What a class calls an outcome; `None` if it is none to speak of.
const fn fault(outcome: Outcome) -> Option<Fault> {
    match outcome {
        Outcome::Done | Outcome::Short => None,
        Outcome::Stalled => Some(Fault::Stall),
        Outcome::Cancelled | Outcome::Unscheduled => Some(Fault::Cancelled),
        Outcome::Gone | Outcome::Died => Some(Fault::Gone),
        Outcome::Babble
        | Outcome::Transaction
        | Outcome::Missed
        | Outcome::Lost
        | Outcome::Failed(_) => Some(Fault::Damaged),
    }
}
