//! Keyboards: keys to a pipe.

use super::{Found, Kind, Next};
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::keyboard::{KEYS, Key, READY, RECORDS};
use diapason_pipe::Writer;
use diapason_usb::class::hid::{Event, Keyboard};

/// The service for keyboards.
pub struct Keys {
    keys: Writer<'static, Key, RECORDS>,
    fresh: bool,
}

impl Keys {
    /// Returns the service without a keyboard.
    ///
    /// # Errors
    /// The pipe or the semaphore is not there.
    pub fn new(platform: &impl Platform) -> Result<Keys, Errno> {
        Ok(Keys { keys: platform.writer(KEYS)?, fresh: false })
    }
}

impl<P: Platform> Kind<P> for Keys {
    type Class = Keyboard;

    const NAME: &'static str = "a keyboard";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 6 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Keyboard> {
        Keyboard::find(&found.set)
    }

    fn hear(&mut self, event: Event, now: Nanos) -> Next {
        match event {
            Event::Opened => log!(P, "keyboard: open"),
            Event::Key { usage, down } => {
                let key = Key { taken: now.0, usage: usage.into(), down: down.into() };
                // A full pipe counts what it drops; its client sees that.
                let _ = self.keys.push(&key);
                self.fresh = true;
            }
            Event::Failed => {
                log!(P, "keyboard: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn bells(&self) -> &[&'static str] {
        &[READY]
    }

    fn take_fresh(&mut self) -> u32 {
        core::mem::take(&mut self.fresh).into()
    }
}
