//! A device that is served: what is between its driver and its service.

mod transfer;

use crate::papers::Papers;
use crate::platform::{Platform, report};
use crate::policy::REOPEN;
use crate::posts::{Outside, Post};
use crate::services::service::{ClassStage, Service};
use crate::slots::Slots;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_pipe::measured::Fate;
use diapason_usb::class::{Completion, HEAD, Landed, TransferFault};
use diapason_usb::trb::{context_index, endpoint_address};
use diapason_usb::xhci::{DeviceId, Finished};
use transfer::{Memory, Transfers, fault, is_isochronous, took_back};

/// A device and the service it belongs to.
pub(crate) struct Served<P: Platform> {
    /// Number of its service in its branch.
    pub service: usize,
    papers: Papers,
    transfers: Transfers<P>,
    stage: Stage,
    /// The fate that was told last.
    told: Option<Fate>,
    /// The bytes received last.
    bytes: Vec<u8>,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The device's configuration is being chosen.
    Configuring,
    Working,
    /// The device failed, and is asked again then.
    Resting(Nanos),
    /// The device's transfers come back; nothing else is known of it.
    Gone,
}

impl<P: Platform> Served<P> {
    /// Returns a device of this service and this name, being configured.
    pub fn new(
        device: DeviceId,
        (service, name): (usize, &'static str),
        papers: Papers,
        slots: Slots<P>,
    ) -> Served<P> {
        let bytes = vec![0; slots.largest()];
        Served {
            service,
            papers,
            transfers: Transfers::new(device, name, slots),
            stage: Stage::Configuring,
            told: None,
            bytes,
        }
    }

    /// Returns which device it is.
    pub const fn device(&self) -> DeviceId {
        self.transfers.device
    }

    /// Takes leave of the device; only its transfers are still to come back.
    pub fn leave(&mut self, service: &mut dyn Service<P>, now: Nanos) {
        if self.stage != Stage::Gone {
            self.stage = Stage::Gone;
            service.end(now);
        }
    }

    /// Returns whether its class is at work.
    pub fn works(&self) -> bool {
        self.stage == Stage::Working
    }

    /// Returns whether the device is gone.
    pub fn is_gone(&self) -> bool {
        self.stage == Stage::Gone
    }

    /// Returns whether it is gone, and nothing of it is left.
    pub fn is_over(&self) -> bool {
        self.is_gone() && self.transfers.are_over()
    }

    /// Returns its memory, at its end.
    pub fn into_slots(self) -> Slots<P> {
        self.transfers.slots
    }

    /// Returns when it wants to be asked again.
    pub fn next_wake(&self) -> Nanos {
        if let Stage::Resting(until) = self.stage { until } else { Nanos::FOREVER }
    }

    /// Notes that the driver did the configuration, or a change of endpoints. Returns false if it
    /// was neither.
    pub fn settled(&mut self, service: &mut dyn Service<P>, now: Nanos) -> bool {
        if self.stage == Stage::Configuring {
            self.begin(service, true, now);
            return true;
        }
        let change = self.transfers.changes.settled();
        if let Some(change) = change {
            let (endpoint, result) = (change.endpoint(), Ok(&[][..]));
            service.complete(Completion { endpoint, result }, now);
        }
        change.is_some()
    }

    /// Notes that the device, or the driver, did not do a change. Returns false if that was its
    /// configuration.
    pub fn refused(
        &mut self,
        service: &mut dyn Service<P>,
        fault: TransferFault,
        now: Nanos,
    ) -> bool {
        if self.stage == Stage::Configuring {
            return false;
        }
        if let Some(change) = self.transfers.changes.refused() {
            let result = Err(fault);
            service.complete(Completion { endpoint: change.endpoint(), result }, now);
        }
        true
    }

    /// Notes that a request to its control endpoint was not queued.
    pub fn unasked(&mut self, service: &mut dyn Service<P>, slot: usize, now: Nanos) {
        self.transfers.slots.give_back(slot);
        if self.stage == Stage::Working {
            service.complete(Completion { endpoint: 0, result: Err(TransferFault::Gone) }, now);
        }
    }

    fn begin(&mut self, service: &mut dyn Service<P>, another: bool, now: Nanos) {
        let begun = self.papers.found().is_some_and(|found| service.begin(&found, another, now));
        self.stage = if begun { Stage::Working } else { Stage::Resting(now + REOPEN) };
    }

    /// Asks the device again, which rested long enough.
    pub fn revive(&mut self, service: &mut dyn Service<P>, now: Nanos) {
        if let Stage::Resting(until) = self.stage
            && now >= until
            && self.transfers.are_over()
        {
            self.begin(service, false, now);
        }
    }

    /// Takes in a transfer of its device that ended.
    pub fn finish(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        done: &Finished,
        now: Nanos,
    ) {
        let endpoint = done.endpoint;
        let fault = fault(done.outcome);
        if matches!(fault, Some(TransferFault::Stall | TransferFault::Damaged))
            && endpoint != 0
            && !is_isochronous(outside, self.device(), endpoint)
        {
            // The class wants to start from nothing; the driver recovers the endpoint by itself.
            let _ = outside.lane.cancel_all(self.device(), endpoint);
            self.transfers.halted |= 1 << context_index(endpoint);
        }
        let result = match fault {
            None => Ok(done.actual as usize),
            Some(fault) => Err(fault),
        };
        match Memory::of(done.cookie) {
            Memory::Slot(slot) => self.returned(service, outside, (endpoint, slot), result, now),
            Memory::Shared(place) => {
                self.transfers.sharing -= 1;
                let mut head = [0; HEAD];
                let head = took_back(service, (endpoint, place), result, &mut head);
                if self.stage == Stage::Working {
                    service.landed(Landed { endpoint, place, result, head }, now);
                }
            }
        }
        if self.stage == Stage::Working {
            self.note(service, outside, now);
        }
    }

    /// Takes in a transfer whose bytes are in a place of the device's own. The place is used again
    /// at once if its class wants the same once more.
    fn returned(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        (endpoint, slot): (u8, usize),
        moved: Result<usize, TransferFault>,
        now: Nanos,
    ) {
        if self.stage != Stage::Working {
            return self.transfers.slots.give_back(slot);
        }
        let result = match moved {
            Ok(count) => Ok(self.transfers.slots.copy(slot, count, &mut self.bytes)),
            Err(fault) => Err(fault),
        };
        service.complete(Completion { endpoint, result }, now);
        let again = moved.ok().and_then(|_| service.renew(endpoint));
        match again {
            Some(length) => self.transfers.renew(service, outside, (endpoint, slot, length), now),
            None => self.transfers.slots.give_back(slot),
        }
    }

    /// Does what its class wants.
    pub fn drive(
        &mut self,
        service: &mut dyn Service<P>,
        outside: &mut Outside<'_, P>,
        now: Nanos,
    ) {
        if self.stage != Stage::Working {
            return;
        }
        self.transfers.begin(service, outside, now);
        match self.transfers.changes.order(service, &self.papers) {
            Some(Ok(order)) => outside.post(Post::Change(self.device(), order)),
            Some(Err((change, fault))) => {
                let (endpoint, result) = (change.endpoint(), Err(fault));
                service.complete(Completion { endpoint, result }, now);
            }
            None => {}
        }
        self.note(service, outside, now);
    }

    /// Reports its fate, if that is news.
    fn tell(&mut self, fate: Fate, now: Nanos) {
        if self.told != Some(fate) {
            self.told = Some(fate);
            report::<P>(now, self.papers.report(fate));
        }
    }

    /// Lets go of everything if it failed as a whole, and asks it again if it is still there then.
    fn note(&mut self, service: &mut dyn Service<P>, outside: &mut Outside<'_, P>, now: Nanos) {
        match service.stage() {
            ClassStage::Begun => return,
            ClassStage::Works => return self.tell(Fate::Works, now),
            ClassStage::Failed => self.tell(Fate::Failed, now),
        }
        service.end(now);
        self.transfers.changes.forget();
        self.stage = Stage::Resting(now + REOPEN);
        for context in 2..32 {
            let _ = outside.lane.cancel_all(self.device(), endpoint_address(context));
        }
        outside.post(Post::Forget(self.device()));
    }
}
