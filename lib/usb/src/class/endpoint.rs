//! One endpoint of any device, read packet by packet: bulk or interrupt, without a request of a
//! class. It is for devices that send by themselves once they are configured.

use super::flow::Inlet;
use super::{Class, Completion, Request};
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, EndpointDescriptor};
use crate::setup::IN;
use diapason_abi::Nanos;

/// Transfers kept pending. Each is one packet.
pub const DEPTH: usize = 16;
/// The packets that a device kept before it was read are old. They come within so many turns of the
/// endpoint, or within [`SETTLING`] if that is longer.
const OLD: u64 = 32;
/// The time for which packets are old, unless the turns of the endpoint are rare.
pub const SETTLING: Nanos = Nanos::from_millis(100);

/// An event of the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketEvent<'a> {
    /// The endpoint is read from now on.
    Opened,
    Packet(&'a [u8]),
    /// The endpoint cannot be read.
    Failed,
}

/// Returns the endpoint with this number (1 to 15) that packets come from, if its interface has it
/// without being asked for another setting.
#[must_use]
pub fn find(configuration: &Configuration<'_>, number: u8) -> Option<EndpointDescriptor> {
    of_packets(configuration, number, number | IN)
}

/// Returns the endpoint with this address if its number is 1 to 15, its packets go one by one, and
/// its interface has it without being asked for another setting.
pub(super) fn of_packets(
    configuration: &Configuration<'_>,
    number: u8,
    address: u8,
) -> Option<EndpointDescriptor> {
    use EndpointKind::{BulkIn, BulkOut, InterruptIn, InterruptOut};
    let usual = configuration.interfaces().filter(|interface| interface.alternate == 0);
    let mut all = usual.flat_map(|interface| interface.endpoints());
    let one_by_one = |kind| matches!(kind, BulkIn | InterruptIn | BulkOut | InterruptOut);
    all.find(|it| number > 0 && it.address == address && one_by_one(it.kind()))
}

/// Where the class is with its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing was asked of the device.
    New,
    /// Packets are old until then.
    Settling(Nanos),
    Open,
    Failed,
}

/// The reader of one endpoint.
#[derive(Clone, Debug)]
pub struct PacketSource {
    step: Step,
    settling: Nanos,
    inlet: Inlet,
}

/// Returns how long the packets that a device kept may take.
fn settling(endpoint: &EndpointDescriptor) -> Nanos {
    let slots = 1 + u64::from(endpoint.period().unwrap_or(0));
    let each = endpoint.speed.slot().nanos();
    SETTLING.max(Nanos(each.0 * slots * OLD))
}

impl PacketSource {
    /// Returns the class for the endpoint with this number, if the configuration has it.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, number: u8) -> Option<PacketSource> {
        let endpoint = find(configuration, number)?;
        let inlet = Inlet::new(endpoint.address, endpoint.packet.into(), DEPTH);
        Some(PacketSource { step: Step::New, settling: settling(&endpoint), inlet })
    }
}

impl Class for PacketSource {
    type Event<'a> = PacketEvent<'a>;

    fn request(&mut self, _: Nanos) -> Option<Request<'_>> {
        if self.step == Step::Failed { None } else { self.inlet.request() }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(PacketEvent<'_>)) {
        if done.endpoint != self.inlet.pipe.endpoint() || self.step == Step::Failed {
            return;
        }
        if let Some(bytes) = self.inlet.pipe.end(done.result)
            && !bytes.is_empty()
            && self.step == Step::Open
        {
            tell(PacketEvent::Packet(bytes));
        }
        if self.inlet.pipe.is_dead() {
            self.step = Step::Failed;
            tell(PacketEvent::Failed);
        }
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        let works = endpoint == self.inlet.pipe.endpoint() && self.step != Step::Failed;
        if works { self.inlet.renew() } else { None }
    }

    fn next_wake(&self) -> Nanos {
        match self.step {
            Step::New => Nanos::ZERO,
            Step::Settling(until) => until,
            Step::Open | Step::Failed => Nanos::FOREVER,
        }
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(PacketEvent<'_>)) {
        match self.step {
            Step::New => self.step = Step::Settling(now + self.settling),
            Step::Settling(until) if now >= until => {
                self.step = Step::Open;
                tell(PacketEvent::Opened);
            }
            Step::Settling(_) | Step::Open | Step::Failed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Speed;
    use crate::class::TransferFault;
    use crate::descriptor::build::{self, bulk, interrupt, isochronous};
    use alloc::vec::Vec;

    /// Returns a device with a bulk endpoint 2, and with interrupt endpoints 1 in and out.
    fn device() -> Vec<u8> {
        let usual = build::Interface::new(0)
            .class(0xff, 0, 0)
            .endpoint(interrupt(0x01, 64, 4))
            .endpoint(interrupt(0x81, 64, 4))
            .endpoint(bulk(0x82, 512))
            .endpoint(isochronous(0x83, 64, 1));
        let other = build::Interface::new(0).alternate(1).endpoint(bulk(0x84, 512));
        build::Configuration::new(1).with(usual).with(other).bytes(Speed::High)
    }

    /// Returns how often it was opened, the packets that came, and how often it failed.
    fn ended(class: &mut PacketSource, result: Result<&[u8], TransferFault>) -> (u32, usize, u32) {
        let (mut opened, mut bytes, mut failed) = (0, 0, 0);
        class.complete(Nanos(1), Completion { endpoint: 0x82, result }, &mut |event| match event {
            PacketEvent::Opened => opened += 1,
            PacketEvent::Packet(packet) => bytes += packet.len(),
            PacketEvent::Failed => failed += 1,
        });
        (opened, bytes, failed)
    }

    #[test]
    fn an_endpoint_that_sends_packets_is_found_by_its_number() {
        let bytes = device();
        let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
        let found: Vec<_> = (0..=15).filter_map(|number| find(&set, number)).collect();
        let found: Vec<_> = found.iter().map(|it| (it.address, it.packet)).collect();
        assert_eq!(found, [(0x81, 64), (0x82, 512)], "no output, no stream, no other setting");
        assert!(PacketSource::find(&set, 3).is_none());
    }

    #[test]
    fn old_packets_are_none_of_its_own_and_it_fails_once() {
        let bytes = device();
        let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
        let mut class = PacketSource::find(&set, 2).unwrap();
        let queue = |class: &mut PacketSource| {
            let mut queued = 0;
            while let Some(request) = class.request(Nanos::ZERO) {
                let read = Request::In { endpoint: 0x82, length: 512 };
                assert!(request == read || request == Request::Recover { endpoint: 0x82 });
                queued += 1;
            }
            queued
        };
        assert_eq!((queue(&mut class), class.next_wake()), (DEPTH, Nanos::ZERO));
        class.wake(Nanos(2), &mut |event| panic!("too soon: {event:?}"));
        assert_eq!(class.next_wake(), Nanos(2) + SETTLING);
        assert_eq!(ended(&mut class, Ok(&[7; 100])), (0, 0, 0), "it is old");
        let mut opened = 0;
        class.wake(class.next_wake(), &mut |event| {
            assert_eq!(event, PacketEvent::Opened);
            opened += 1;
        });
        assert_eq!((opened, class.next_wake()), (1, Nanos::FOREVER));
        assert_eq!(ended(&mut class, Ok(&[7; 100])), (0, 100, 0));
        assert_eq!(ended(&mut class, Ok(&[])), (0, 0, 0), "no packet");
        let mut failures = 0;
        for _ in 0..100 {
            queue(&mut class);
            failures += ended(&mut class, Err(TransferFault::Damaged)).2;
        }
        assert_eq!((failures, class.request(Nanos::ZERO)), (1, None));
        assert_eq!(ended(&mut class, Ok(&[7])), (0, 0, 0), "it is over");
    }
}
