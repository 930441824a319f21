//! Keyboards: keys to a pipe.

use super::{Found, Kind, Next};
use crate::slots::Shape;
use diapason_abi::Nanos;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, log};
use diapason_usb::class::hid::{Event, Keyboard};
use diapason_usbd::keyboard::{Key, Outlet, outlet};

/// The pipe.
pub struct Keys {
    outlet: Outlet,
    ready: [Semaphore; 1],
    fresh: bool,
}

impl Keys {
    /// Without a keyboard.
    ///
    /// # Errors
    /// The pipe or the semaphore is not there.
    pub fn new() -> Result<Keys, Errno> {
        let (outlet, ready) = outlet()?;
        Ok(Keys { outlet, ready: [ready], fresh: false })
    }
}

impl Kind for Keys {
    type Class = Keyboard;

    const NAME: &'static str = "a keyboard";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 6 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Keyboard> {
        Keyboard::find(&found.set)
    }

    fn hear(&mut self, event: Event, now: Nanos) -> Next {
        match event {
            Event::Opened => log!("keyboard: open"),
            Event::Key { usage, down } => {
                let key = Key { taken: now.0, usage: usage.into(), down: down.into() };
                // A full pipe counts what it drops; its client sees that.
                let _ = self.outlet.push(&key);
                self.fresh = true;
            }
            Event::Failed => {
                log!("keyboard: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn bells(&self) -> &[Semaphore] {
        &self.ready
    }

    fn take_fresh(&mut self) -> u32 {
        core::mem::take(&mut self.fresh).into()
    }
}
