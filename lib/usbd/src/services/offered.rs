//! A kind of devices and the class of the one that is there: a service.

use super::{Child, ClassStage, Found, Kind, Next, Service};
use crate::places::Order;
use crate::platform::Platform;
use crate::server::{Driver, Turn};
use crate::slots::Shape;
use alloc::boxed::Box;
use diapason_abi::Nanos;
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::descriptor::Endpoint;
use diapason_usb::xhci::{DeviceId, EndpointPlan};

/// A service and its class.
pub struct Offered<P: Platform, K: Kind<P>> {
    kind: K,
    interrupter: u16,
    class: Option<Box<K::Class>>,
    stage: ClassStage,
}

impl ClassStage {
    /// Takes in the answer to an event.
    fn note(&mut self, next: Next) {
        match next {
            Next::End => *self = ClassStage::Failed,
            Next::On if *self == ClassStage::Begun => *self = ClassStage::Works,
            Next::On => {}
        }
    }
}

impl<P: Platform, K: Kind<P>> Offered<P, K> {
    /// Without a device. Its transfers are reported by this interrupter.
    pub fn new(kind: K, interrupter: u16) -> Offered<P, K> {
        Offered { kind, interrupter, class: None, stage: ClassStage::Begun }
    }
}

impl<P: Platform, K: Kind<P>> Service<P> for Offered<P, K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        self.kind.fits(found)
    }

    fn memory(&self) -> &'static [Shape] {
        K::MEMORY
    }

    fn plan(&self, endpoint: Endpoint) -> EndpointPlan {
        self.kind.plan(endpoint)
    }

    fn chosen(&self, endpoint: Endpoint) -> EndpointPlan {
        self.kind.chosen(endpoint)
    }

    fn interrupter(&self) -> u16 {
        self.interrupter
    }

    fn welcome(&mut self) {
        self.kind.welcome();
    }

    fn begin(&mut self, found: &Found<'_>, now: Nanos) -> bool {
        self.stage = ClassStage::Begun;
        self.class = self.kind.find(found, now).map(Box::new);
        self.class.is_some()
    }

    fn end(&mut self, now: Nanos) {
        self.class = None;
        self.kind.forget(now);
    }

    fn stage(&self) -> ClassStage {
        self.stage
    }

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        self.class.as_mut()?.request(now)
    }

    fn complete(&mut self, done: Completion<'_>, now: Nanos) {
        let Some(class) = &mut self.class else { return };
        class.complete(now, done, &mut |event| {
            self.stage.note(self.kind.hear(event, now));
        });
    }

    fn lent(&mut self, place: u32) {
        self.kind.lent(place);
    }

    fn returned(&mut self, place: u32, now: Nanos) {
        self.kind.returned(place, now);
    }

    fn landed(&mut self, done: Landed<'_>, now: Nanos) {
        let Some(class) = &mut self.class else { return };
        class.landed(now, done, &mut |event| {
            self.stage.note(self.kind.hear(event, now));
        });
    }

    fn next_wake(&self) -> Nanos {
        let class = self.class.as_ref().map_or(Nanos::FOREVER, |class| class.next_wake());
        class.min(self.kind.next_wake())
    }

    fn heed(&mut self, now: Nanos) {
        self.kind.heed(now);
    }

    fn wake(&mut self, now: Nanos) {
        if let Some(class) = self.class.as_mut().filter(|class| now >= class.next_wake()) {
            class.wake(now, &mut |event| {
                self.stage.note(self.kind.hear(event, now));
            });
        }
        self.kind.attend(self.class.as_deref_mut(), now);
    }

    fn steer(&mut self, driver: &mut Driver<P>, device: DeviceId, turn: &mut Turn) {
        if let Some(class) = &mut self.class
            && self.kind.steer(class, driver, device, turn) == Next::End
        {
            self.stage = ClassStage::Failed;
        }
    }

    fn settled(&mut self) {
        self.kind.settled();
    }

    fn child(&mut self, port: u8, child: Child) {
        self.kind.child(port, child);
    }

    fn shared(&self) -> Option<(&P::Memory, usize)> {
        self.kind.shared()
    }

    fn has_pipes(&self) -> bool {
        self.class.is_some() && self.kind.has_pipes()
    }

    fn order(&mut self, order: &Order, now: Nanos) {
        self.kind.order(order, now);
    }

    fn bells(&self) -> &[&'static str] {
        self.kind.bells()
    }

    fn take_fresh(&mut self) -> u32 {
        self.kind.take_fresh()
    }

    fn asked(&self) -> Option<&'static str> {
        self.kind.asked()
    }
}
