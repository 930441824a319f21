//! The CAN interface that is served: its device, its class, and what is between the two.

use crate::channels::Channels;
use crate::policy::{CAN, MANAGING, REOPEN};
use crate::server::Driver;
use crate::slots::{Slots, Way};
use alloc::vec::Vec;
use alloc::{boxed::Box, vec};
use diapason_abi::Nanos;
use diapason_rt::log;
use diapason_usb::Speed;
use diapason_usb::class::kvaser::{Event, Kvaser, TRANSFER};
use diapason_usb::class::{Class, Completion, Fault, Request};
use diapason_usb::descriptor::{Configuration, Device};
use diapason_usb::xhci::{self, DeviceId, EndpointPlan, Finished, Outcome, Refused};

/// An interface whose device is configured or about to be.
pub struct Interface {
    /// Its device.
    pub device: DeviceId,
    endpoints: Vec<u8>,
    class: Option<Box<Kvaser>>,
    /// When it is asked anew after a failure.
    anew_at: Nanos,
    /// What was received last.
    bytes: Vec<u8>,
}

/// What a class wants done, its bytes already where the controller finds them.
struct Todo {
    endpoint: u8,
    slot: usize,
    length: usize,
}

impl Interface {
    /// The interface behind a device that was found, if it is one; it is being configured then.
    pub fn adopt(driver: &mut Driver, device: DeviceId, speed: Speed) -> Option<Interface> {
        let about = driver.device_descriptor(device).ok()?;
        let about = Device::parse(&about, speed).ok()?;
        let mut bytes = [0; 1024];
        let length = driver.configuration(device, &mut bytes).ok()?;
        let set = Configuration::parse_once(bytes.get(..length)?, speed).ok()?;
        if !Kvaser::fits(&about, &set) {
            return None;
        }
        let endpoints: Vec<_> = set.interface(0, 0)?.endpoints().collect();
        let plans: Vec<_> = endpoints.iter().map(|e| EndpointPlan::new(*e)).collect();
        if let Err(refused) = driver.configure(device, set.header().value, &plans) {
            log!("CAN interface: not configured: {refused:?}");
            return None;
        }
        Some(Interface {
            device,
            endpoints: endpoints.iter().map(|endpoint| endpoint.address).collect(),
            class: None,
            anew_at: Nanos::FOREVER,
            bytes: vec![0; TRANSFER.0],
        })
    }

    /// Its device is configured, or it failed a while ago: find out what it is.
    pub fn begin(&mut self, now: Nanos) {
        self.anew_at = Nanos::FOREVER;
        self.class = Some(Box::new(Kvaser::new(now, true)));
    }

    /// When it wants to be driven.
    pub fn next_wake(&self) -> Nanos {
        let class = self.class.as_ref().map_or(Nanos::FOREVER, |class| class.next_wake());
        class.min(self.anew_at)
    }

    /// A transfer of its device ended.
    pub fn finish(
        &mut self,
        driver: &mut Driver,
        slots: &Slots,
        done: &Finished,
        channels: &mut Channels,
        now: Nanos,
    ) {
        let actual = done.actual as usize;
        let result = match fault(done.outcome) {
            None => Ok(slots.copy(done.cookie as usize, actual, &mut self.bytes)),
            Some(fault) => Err(fault),
        };
        if matches!(result, Err(Fault::Stall | Fault::Damaged)) {
            // The class wants to start from nothing; the driver recovers the endpoint by itself.
            let _ = driver.cancel_all(self.device, done.endpoint);
        }
        let Some(class) = &mut self.class else { return };
        let failed = complete(class, done.endpoint, result, channels, now);
        self.note(failed, driver, channels, now);
    }

    /// Do what is due and what the class wants.
    pub fn drive(
        &mut self,
        driver: &mut Driver,
        slots: &mut Slots,
        channels: &mut Channels,
        now: Nanos,
    ) {
        if now >= self.anew_at && slots.are_free() {
            self.begin(now);
        }
        let Some(class) = &mut self.class else { return };
        let mut failed = false;
        if now >= class.next_wake() {
            class.wake(now, &mut |event| {
                failed |= is_end(&event);
                channels.hear(event, now);
            });
        }
        channels.open(class, now);
        failed |= self.transfer(driver, slots, channels, now);
        self.note(failed, driver, channels, now);
    }

    /// All transfers the class wants now; true if that was the end of the interface. One is held
    /// until the next is known, so that a doorbell rings for a batch and not for each.
    fn transfer(
        &mut self,
        driver: &mut Driver,
        slots: &mut Slots,
        channels: &mut Channels,
        now: Nanos,
    ) -> bool {
        let Some(class) = &mut self.class else { return false };
        let (mut failed, mut held) = (false, None::<Todo>);
        loop {
            let next = class.request(now).map(|request| prepare(request, slots));
            if let Some(todo) = held.take() {
                let more = matches!(&next, Some(Ok(next)) if next.endpoint == todo.endpoint);
                if !submit(driver, self.device, &todo, more, slots) {
                    let gone = Err(Fault::Gone);
                    failed |= complete(class, todo.endpoint, gone, channels, now);
                }
            }
            match next {
                None => return failed,
                Some(Ok(todo)) => held = Some(todo),
                Some(Err((endpoint, answer))) => {
                    failed |= complete(class, endpoint, answer, channels, now);
                }
            }
        }
    }

    /// It failed as a whole: let go of everything and ask it anew, if it is still there then.
    fn note(&mut self, failed: bool, driver: &mut Driver, channels: &mut Channels, now: Nanos) {
        if !failed {
            return;
        }
        self.class = None;
        self.anew_at = now + REOPEN;
        channels.forget();
        for endpoint in &self.endpoints {
            let _ = driver.cancel_all(self.device, *endpoint);
        }
    }
}

/// Tells the class how a transfer ended; true if that was the end of the interface.
fn complete(
    class: &mut Kvaser,
    endpoint: u8,
    result: Result<&[u8], Fault>,
    channels: &mut Channels,
    now: Nanos,
) -> bool {
    let mut failed = false;
    class.complete(now, Completion { endpoint, result }, &mut |event| {
        failed |= is_end(&event);
        channels.hear(event, now);
    });
    failed
}

const fn is_end(event: &Event) -> bool {
    matches!(event, Event::Failed { channel: None, .. })
}

/// Puts the bytes of a request into a place of their own; or the answer that it gets at once.
fn prepare(
    request: Request<'_>,
    slots: &mut Slots,
) -> Result<Todo, (u8, Result<&'static [u8], Fault>)> {
    let (way, endpoint, length, data) = match request {
        Request::In { endpoint, length } => (Way::In, endpoint, length, &[][..]),
        Request::Out { endpoint, data } => (Way::Out, endpoint, data.len(), data),
        // The driver has done that, or is doing it: transfers behind wait for it.
        Request::Recover { endpoint } => return Err((endpoint, Ok(&[]))),
        // This class asks for no others.
        Request::Control { .. } | Request::Alternate { .. } | Request::Cancel { .. } => {
            return Err((0, Err(Fault::Stall)));
        }
    };
    let slot = slots.take(way, length).ok_or((endpoint, Err(Fault::Gone)))?;
    slots.fill(slot, data);
    Ok(Todo { endpoint, slot, length })
}

/// Queues a transfer; if that is refused, its place is free again.
fn submit(
    driver: &mut Driver,
    device: DeviceId,
    todo: &Todo,
    more: bool,
    slots: &mut Slots,
) -> bool {
    let buffers = [slots.buffer(todo.slot, todo.length)];
    let interrupter = if todo.endpoint & 0x80 != 0 { CAN } else { MANAGING };
    let request = xhci::Request {
        interrupter,
        more,
        cookie: todo.slot as u64,
        ..xhci::Request::new(device, todo.endpoint, &buffers)
    };
    let queued = driver.submit(&request);
    if let Err(refused) = queued {
        slots.give_back(todo.slot);
        if refused != Refused::NoDevice {
            log!("CAN interface: no transfer: {refused:?}");
        }
    }
    queued.is_ok()
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
