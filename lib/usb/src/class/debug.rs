//! The host's side of a debug device (xHCI debug capability): one bulk pair, bytes both ways.

use super::flow::{Inlet, Outlet};
use super::{Class, Completion, Request};
use crate::context::EndpointKind;
use crate::descriptor::Configuration;
use diapason_abi::Nanos;

/// Bytes that wait to be sent.
pub const ROOM: usize = 4096;
/// Transfers from the device that are kept pending.
const DEPTH: usize = 4;
/// Diagnostic device, debug.
const CLASS: [u8; 2] = [0xdc, 2];

/// What it tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// Bytes came.
    Data(&'a [u8]),
    /// The pipes do not work.
    Failed,
}

/// The driver of one debug device.
#[derive(Clone, Debug)]
pub struct Debug {
    inlet: Inlet,
    outlet: Outlet<ROOM>,
    failed: bool,
}

impl Debug {
    /// For the first diagnostic interface with a bulk pair.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<Debug> {
        configuration.interfaces().filter(|i| i.class[..2] == CLASS).find_map(|interface| {
            let input = interface.endpoint(EndpointKind::BulkIn)?;
            let output = interface.endpoint(EndpointKind::BulkOut)?;
            Some(Debug {
                inlet: Inlet::new(input.address, input.packet.into(), DEPTH),
                outlet: Outlet::new(output.address, output.packet),
                failed: false,
            })
        })
    }

    /// Sends as many of these bytes as there is room for, and says how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.outlet.write(bytes)
    }
}

impl Class for Debug {
    type Event<'a> = Event<'a>;

    fn request(&mut self, _: Nanos) -> Option<Request<'_>> {
        if self.failed {
            return None;
        }
        self.inlet.request().or_else(|| self.outlet.request())
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        if done.endpoint == self.outlet.pipe.endpoint() {
            self.outlet.complete(done.result);
        } else if done.endpoint == self.inlet.pipe.endpoint()
            && let Some(bytes) = self.inlet.pipe.end(done.result)
            && !bytes.is_empty()
        {
            tell(Event::Data(bytes));
        }
        let dead = self.inlet.pipe.is_dead() || self.outlet.pipe.is_dead();
        if dead && !self.failed {
            self.failed = true;
            tell(Event::Failed);
        }
    }

    fn next_wake(&self) -> Nanos {
        Nanos::FOREVER
    }

    fn wake(&mut self, _: Nanos, _: &mut dyn FnMut(Event<'_>)) {}
}
