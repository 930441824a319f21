//! A kind of devices and the class of the one that is there: a service.

use super::clients::Clients;
use super::kind::{Kind, Next};
use super::service::{ClassStage, Service};
use crate::papers::Found;
use crate::platform::Platform;
use alloc::boxed::Box;
use diapason_abi::Nanos;
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::xhci::EndpointPlan;

/// A kind and its class, if a device is there.
pub(crate) struct Offered<P: Platform, K: Kind<P>> {
    pub(super) kind: K,
    pub(super) class: Option<Box<K::Class>>,
    pub(super) stage: ClassStage,
    /// Messages since somebody asked.
    pub(super) messages: u32,
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
    /// Returns the service without a device.
    pub fn new(kind: K) -> Offered<P, K> {
        Offered { kind, class: None, stage: ClassStage::Begun, messages: 0 }
    }
}

impl<P: Platform, K: Kind<P>> Service<P> for Offered<P, K> {
    fn fits(&self, found: &Found<'_>) -> bool {
        self.kind.fits(found)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        self.kind.plan(usual)
    }

    fn begin(&mut self, found: &Found<'_>, another: bool, now: Nanos) -> bool {
        if another {
            self.kind.welcome(found);
        }
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
            self.messages += u32::from(K::is_message(&event));
            self.stage.note(self.kind.hear(event, now));
        });
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        self.class.as_mut()?.renew(endpoint)
    }

    fn landed(&mut self, done: Landed<'_>, now: Nanos) {
        let Some(class) = &mut self.class else { return };
        class.landed(now, done, &mut |event| {
            self.messages += u32::from(K::is_message(&event));
            self.stage.note(self.kind.hear(event, now));
        });
    }

    fn next_wake(&self) -> Nanos {
        let class = self.class.as_ref().map_or(Nanos::FOREVER, |class| class.next_wake());
        class.min(self.kind.next_wake())
    }

    fn wake(&mut self, now: Nanos) {
        if let Some(class) = self.class.as_mut().filter(|class| now >= class.next_wake()) {
            class.wake(now, &mut |event| {
                self.stage.note(self.kind.hear(event, now));
            });
        }
        self.kind.attend(self.class.as_deref_mut(), now);
    }

    fn take_messages(&mut self) -> u32 {
        core::mem::take(&mut self.messages) + self.kind.take_asks()
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        self.kind.clients()
    }
}
