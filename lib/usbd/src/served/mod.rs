//! A device that is served: what is between its driver and its service.

mod place;
mod transfer;

pub use place::Place;

use crate::change::Changes;
use crate::platform::{Platform, log};
use crate::policy::{self, REOPEN};
use crate::server::{Driver, Turn};
use crate::services::{Found, Service};
use crate::slots::{Pool, Slots};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_usb::Speed;
use diapason_usb::class::{Completion, Fault, HEAD, Landed};
use diapason_usb::trb::{context_index, endpoint_address};
use diapason_usb::xhci::{DeviceId, EndpointPlan, Finished};
use transfer::{Memory, fault, head_of, is_isochronous};

/// A device and the service it belongs to.
pub struct Served {
    pub device: DeviceId,
    /// Number of its service.
    pub service: usize,
    pub place: Place,
    speed: Speed,
    slots: Slots,
    /// Transfers with shared memory that are pending.
    sharing: u32,
    stage: Stage,
    changes: Changes,
    /// Endpoints (by context) whose last transfer the driver recovers from.
    halted: u32,
    /// The bytes received last.
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

impl Served {
    /// A device of this service, being configured; `None` if it cannot be.
    pub fn adopt<P: Platform>(
        (device, speed, place): (DeviceId, Speed, Place),
        (number, service): (usize, &dyn Service<P>),
        found: &Found<'_>,
        driver: &mut Driver<P>,
        pool: &mut Pool<P>,
    ) -> Option<Served> {
        let name = service.name();
        let Some(slots) = pool.carve(service.memory()) else {
            log!(P, "{name}: no memory for its transfers");
            return None;
        };
        let settings = found.set.interfaces().filter(|interface| interface.alternate == 0);
        let endpoints = settings.flat_map(|interface| interface.endpoints());
        let plans: Vec<EndpointPlan> = endpoints.map(|endpoint| service.plan(endpoint)).collect();
        let assigned = driver.assign(device, service.interrupter());
        if let Err(refused) =
            assigned.and_then(|()| driver.configure(device, found.set.header().value, &plans))
        {
            log!(P, "{name}: not configured: {refused:?}");
            pool.give_back(slots);
            return None;
        }
        let bytes = vec![0; slots.largest()];
        Some(Served {
            device,
            service: number,
            place,
            speed,
            slots,
            sharing: 0,
            stage: Stage::Configuring,
            changes: Changes::default(),
            halted: 0,
            bytes,
        })
    }

    /// It is gone; only its transfers are still to come back.
    pub fn leave<P: Platform>(&mut self, service: &mut dyn Service<P>, now: Nanos) {
        if self.stage != Stage::Gone {
            self.stage = Stage::Gone;
            service.end(now);
        }
    }

    /// Returns whether the device is gone.
    pub fn is_gone(&self) -> bool {
        self.stage == Stage::Gone
    }

    /// Is it gone, and nothing of it left?
    pub fn is_over(&self) -> bool {
        self.is_gone() && self.is_still()
    }

    /// Are all transfers over?
    fn is_still(&self) -> bool {
        self.slots.are_free() && self.sharing == 0
    }

    /// Its memory, at its end.
    pub fn into_slots(self) -> Slots {
        self.slots
    }

    /// How fast it is.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// When it wants to be asked anew.
    pub fn next_wake(&self) -> Nanos {
        if let Stage::Resting(until) = self.stage { until } else { Nanos::FOREVER }
    }

    /// The driver did what was asked for: the configuration, or a change of endpoints.
    pub fn settled<P: Platform>(
        &mut self,
        service: &mut dyn Service<P>,
        driver: &Driver<P>,
        now: Nanos,
    ) {
        if self.stage == Stage::Configuring {
            service.welcome();
            return self.begin(service, driver, now);
        }
        match self.changes.settled() {
            None => service.settled(),
            Some(change) => {
                let (endpoint, result) = (change.endpoint(), Ok(&[][..]));
                service.complete(Completion { endpoint, result }, now);
            }
        }
    }

    /// The device did not do a change; false if that was its configuration.
    pub fn refused<P: Platform>(&mut self, service: &mut dyn Service<P>, now: Nanos) -> bool {
        if self.stage == Stage::Configuring {
            return false;
        }
        if let Some(change) = self.changes.refused() {
            let result = Err(Fault::Stall);
            service.complete(Completion { endpoint: change.endpoint(), result }, now);
        }
        true
    }

    fn begin<P: Platform>(&mut self, service: &mut dyn Service<P>, driver: &Driver<P>, now: Nanos) {
        let mut bytes = [0; policy::CONFIGURATION];
        let found = Found::read::<P>(driver, self.device, (self.speed, self.place), &mut bytes);
        let begun = found.is_some_and(|found| service.begin(&found, now));
        self.stage = if begun { Stage::Working } else { Stage::Resting(now + REOPEN) };
    }

    /// It rested long enough.
    pub fn revive<P: Platform>(
        &mut self,
        service: &mut dyn Service<P>,
        driver: &Driver<P>,
        now: Nanos,
    ) {
        if let Stage::Resting(until) = self.stage
            && now >= until
            && self.is_still()
        {
            self.begin(service, driver, now);
        }
    }

    /// A transfer of its device ended.
    pub fn finish<P: Platform>(
        &mut self,
        service: &mut dyn Service<P>,
        driver: &mut Driver<P>,
        pool: &mut Pool<P>,
        done: &Finished,
        now: Nanos,
    ) {
        let endpoint = done.endpoint;
        let fault = fault(done.outcome);
        let halts = endpoint != 0 && !is_isochronous::<P>(driver, self.device, endpoint);
        if halts && matches!(fault, Some(Fault::Stall | Fault::Damaged)) {
            // The class wants to start from nothing; the driver recovers the endpoint by itself.
            let _ = driver.cancel_all(self.device, endpoint);
            self.halted |= 1 << context_index(endpoint);
        }
        let result = match fault {
            None => Ok(done.actual as usize),
            Some(fault) => Err(fault),
        };
        match Memory::of(done.cookie) {
            Memory::Slot(slot) => {
                self.slots.give_back(slot);
                if self.stage == Stage::Working {
                    let result = match result {
                        Ok(count) => Ok(self.slots.copy(pool, slot, count, &mut self.bytes)),
                        Err(fault) => Err(fault),
                    };
                    service.complete(Completion { endpoint, result }, now);
                }
            }
            Memory::Shared(place) => {
                self.sharing -= 1;
                service.returned(place, now);
                if self.stage == Stage::Working {
                    let mut head = [0; HEAD];
                    let head = head_of(service, endpoint, place, result, &mut head);
                    service.landed(Landed { endpoint, place, result, head }, now);
                }
            }
        }
        if self.stage == Stage::Working {
            self.note(service, driver, now);
        }
    }

    /// Do what its class wants.
    pub fn drive<P: Platform>(
        &mut self,
        service: &mut dyn Service<P>,
        driver: &mut Driver<P>,
        pool: &mut Pool<P>,
        turn: &mut Turn,
        now: Nanos,
    ) {
        if self.stage != Stage::Working {
            return;
        }
        service.steer(driver, self.device, turn);
        self.transfer(service, driver, pool, now);
        let of = (self.device, self.speed, self.place);
        if let Some((change, fault)) = self.changes.ask(service, driver, of) {
            let (endpoint, result) = (change.endpoint(), Err(fault));
            service.complete(Completion { endpoint, result }, now);
        }
        self.note(service, driver, now);
    }

    /// If it failed as a whole: let go of everything and ask it anew, if it is still there then.
    fn note<P: Platform>(
        &mut self,
        service: &mut dyn Service<P>,
        driver: &mut Driver<P>,
        now: Nanos,
    ) {
        if !service.has_failed() {
            return;
        }
        service.end(now);
        self.changes.forget();
        self.stage = Stage::Resting(now + REOPEN);
        for context in 1..32 {
            let _ = driver.cancel_all(self.device, endpoint_address(context));
        }
    }
}
