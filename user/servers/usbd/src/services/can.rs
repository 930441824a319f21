//! CAN interfaces: frames to the pipes of their channels.

use super::{Found, Service};
use crate::channels::Channels;
use crate::policy::MANAGING;
use crate::slots::Shape;
use alloc::boxed::Box;
use diapason_abi::Nanos;
use diapason_rt::Errno;
use diapason_rt::sync::Semaphore;
use diapason_usb::class::kvaser::{Event, Kvaser, TRANSFER};
use diapason_usb::class::{Class, Completion, Request};
use diapason_usbd::CHANNELS;

/// Transfers to an interface, and what it sends.
const MEMORY: &[Shape] =
    &[Shape { bytes: 128, count: 16 }, Shape { bytes: TRANSFER.0, count: TRANSFER.1 as u8 }];

/// The channels and, while there is one, the class of their interface.
pub struct Can {
    interrupter: u16,
    channels: Channels,
    ready: [Semaphore; CHANNELS],
    class: Option<Box<Kvaser>>,
    failed: bool,
}

impl Can {
    /// Channels without an interface; what it receives is reported by this interrupter.
    ///
    /// # Errors
    /// A pipe or a semaphore is not there.
    pub fn new(interrupter: u16) -> Result<Can, Errno> {
        let (channels, ready) = Channels::new()?;
        Ok(Can { interrupter, channels, ready, class: None, failed: false })
    }
}

/// Was that the end of the interface?
const fn is_end(event: &Event) -> bool {
    matches!(event, Event::Failed { channel: None, .. })
}

impl Service for Can {
    fn name(&self) -> &'static str {
        "a CAN interface"
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        Kvaser::fits(&found.about, &found.set)
    }

    fn memory(&self) -> &'static [Shape] {
        MEMORY
    }

    fn interrupter(&self, endpoint: u8) -> u16 {
        if endpoint & 0x80 != 0 { self.interrupter } else { MANAGING }
    }

    fn begin(&mut self, _: &Found<'_>, now: Nanos) -> bool {
        self.failed = false;
        self.class = Some(Box::new(Kvaser::new(now, true)));
        true
    }

    fn end(&mut self) {
        self.class = None;
        self.channels.forget();
    }

    fn has_failed(&self) -> bool {
        self.failed
    }

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        self.class.as_mut()?.request(now)
    }

    fn complete(&mut self, done: Completion<'_>, now: Nanos) {
        let Some(class) = &mut self.class else { return };
        class.complete(now, done, &mut |event| {
            self.failed |= is_end(&event);
            self.channels.hear(event, now);
        });
    }

    fn next_wake(&self) -> Nanos {
        let class = self.class.as_ref().map_or(Nanos::FOREVER, |class| class.next_wake());
        class.min(self.channels.next_wake())
    }

    fn wake(&mut self, now: Nanos) {
        let Some(class) = &mut self.class else { return };
        if now >= class.next_wake() {
            class.wake(now, &mut |event| {
                self.failed |= is_end(&event);
                self.channels.hear(event, now);
            });
        }
        self.channels.open(class, now);
    }

    fn bells(&self) -> &[Semaphore] {
        &self.ready
    }

    fn take_fresh(&mut self) -> u32 {
        self.channels.take_fresh().into()
    }
}
