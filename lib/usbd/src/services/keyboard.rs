//! Keyboards: keys to a pipe.

use super::clients::Clients;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log};
use crate::slots::Shape;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::keyboard::{KEYS, KeyChange, RECORDS};
use diapason_pipe::Writer;
use diapason_usb::class::hid::{Keyboard, KeyboardEvent};

/// The service for keyboards.
pub(crate) struct Keys<P: Platform> {
    keys: Writer<'static, KeyChange, RECORDS>,
    clients: Clients<P::Memory>,
}

impl<P: Platform> Keys<P> {
    /// Returns the service without a keyboard.
    ///
    /// # Errors
    /// The pipe is not there.
    pub fn new(platform: &P) -> Result<Keys<P>, Errno> {
        Ok(Keys { keys: platform.writer(KEYS)?, clients: Clients::new() })
    }
}

impl<P: Platform> Kind<P> for Keys<P> {
    type Class = Keyboard;

    const NAME: &'static str = "a keyboard";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 6 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Keyboard> {
        Keyboard::find(&found.set)
    }

    fn hear(&mut self, event: KeyboardEvent, now: Nanos) -> Next {
        match event {
            KeyboardEvent::Opened => log!(P, "keyboard: open"),
            KeyboardEvent::Key { usage, down } => {
                let key = KeyChange { taken: now.0, usage: usage.into(), down: down.into() };
                // A full pipe counts what it drops; its client sees that.
                let _ = self.keys.push(&key);
                self.clients.ring(1);
            }
            KeyboardEvent::Failed => {
                log!(P, "keyboard: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
