//! One endpoint of any device, written packet by packet: bulk or interrupt, without a request of a
//! class. One packet is under way at a time. A device that takes none for too long loses it.

use super::flow::Pipe;
use super::{Class, Completion, Request};
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, EndpointDescriptor};
use diapason_abi::Nanos;

/// Most bytes of a packet.
pub const PACKET: usize = 512;
/// A packet that the device has not taken within this time is given up.
pub const PATIENCE: Nanos = Nanos::from_secs(1);

/// An event of the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SinkEvent {
    /// The endpoint can be written to from now on.
    Opened,
    /// The device has the packet.
    Written,
    /// The device did not take the packet, or not all of it.
    Lost,
    /// The endpoint cannot be written to any more.
    Failed,
}

/// Returns the endpoint with this number (1 to 15) that packets go to, if its interface has it
/// without being asked for another setting.
#[must_use]
pub fn find(configuration: &Configuration<'_>, number: u8) -> Option<EndpointDescriptor> {
    let usual = configuration.interfaces().filter(|interface| interface.alternate == 0);
    let mut all = usual.flat_map(|interface| interface.endpoints());
    let can_be_written = |kind| matches!(kind, EndpointKind::BulkOut | EndpointKind::InterruptOut);
    all.find(|it| number > 0 && it.address == number && can_be_written(it.kind()))
}

/// Where the class is with its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing was asked of the device.
    New,
    Idle,
    /// A packet is to be sent.
    Next,
    /// A packet is under way and is given up at this time.
    Sending(Nanos),
    /// A packet is to be given up.
    Late,
    /// The end of a packet that was given up is awaited.
    GivenUp,
    Failed,
}

/// The writer of one endpoint.
#[derive(Clone, Debug)]
pub struct PacketSink {
    pipe: Pipe,
    step: Step,
    packet: usize,
    data: [u8; PACKET],
    length: usize,
}

impl PacketSink {
    /// Returns the class for the endpoint with this number, if the configuration has it and a
    /// packet of it is not too long.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, number: u8) -> Option<PacketSink> {
        let endpoint = find(configuration, number)?;
        let packet = usize::from(endpoint.packet);
        let pipe = Pipe::new(endpoint.address);
        let (step, data) = (Step::New, [0; PACKET]);
        (packet <= PACKET).then_some(PacketSink { pipe, step, packet, data, length: 0 })
    }

    /// Returns whether nothing is under way and a packet can be sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.step == Step::Idle
    }

    /// Takes a packet to send. Returns false if it is empty or longer than a packet of the
    /// endpoint. The class must be idle.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let fits = (1..=self.packet).contains(&bytes.len()) && self.is_idle();
        if fits && let Some(data) = self.data.get_mut(..bytes.len()) {
            data.copy_from_slice(bytes);
            (self.length, self.step) = (bytes.len(), Step::Next);
        }
        fits
    }
}

impl Class for PacketSink {
    type Event<'a> = SinkEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if let Some(recovery) = self.pipe.recovery() {
            return Some(recovery);
        }
        let endpoint = self.pipe.endpoint();
        match self.step {
            Step::Late => {
                self.step = Step::GivenUp;
                Some(Request::Cancel { endpoint })
            }
            Step::Next if self.pipe.is_good() => {
                self.pipe.start();
                self.step = Step::Sending(now + PATIENCE);
                Some(Request::Out { endpoint, data: self.data.get(..self.length)? })
            }
            _ => None,
        }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(SinkEvent)) {
        if done.endpoint != self.pipe.endpoint() || self.step == Step::Failed {
            return;
        }
        let moved = self.pipe.end(done.result);
        if matches!(self.step, Step::Sending(_) | Step::Late | Step::GivenUp) {
            self.step = Step::Idle;
            let whole = moved.is_some_and(|bytes| bytes.len() == self.length);
            tell(if whole { SinkEvent::Written } else { SinkEvent::Lost });
        }
        if self.pipe.is_dead() {
            if self.step == Step::Next {
                tell(SinkEvent::Lost);
            }
            self.step = Step::Failed;
            tell(SinkEvent::Failed);
        }
    }

    fn next_wake(&self) -> Nanos {
        match self.step {
            Step::New => Nanos::ZERO,
            Step::Sending(until) => until,
            _ => Nanos::FOREVER,
        }
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(SinkEvent)) {
        match self.step {
            Step::New => {
                self.step = Step::Idle;
                tell(SinkEvent::Opened);
            }
            Step::Sending(until) if now >= until => self.step = Step::Late,
            _ => {}
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

    /// Returns a device that packets go to at the endpoints 1 (interrupt) and 2 (bulk).
    fn device() -> Vec<u8> {
        let usual = build::Interface::new(0)
            .class(0xff, 0, 0)
            .endpoint(interrupt(0x01, 64, 4))
            .endpoint(interrupt(0x81, 64, 4))
            .endpoint(bulk(0x02, 512))
            .endpoint(isochronous(0x03, 64, 1));
        let other = build::Interface::new(0).alternate(1).endpoint(bulk(0x04, 512));
        build::Configuration::new(1).with(usual).with(other).bytes(Speed::High)
    }

    /// Returns a class that is open.
    fn open() -> PacketSink {
        let bytes = device();
        let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
        let mut class = PacketSink::find(&set, 1).unwrap();
        assert_eq!((class.is_idle(), class.write(b"soon")), (false, false));
        let mut opened = 0;
        class.wake(class.next_wake(), &mut |event| {
            assert_eq!(event, SinkEvent::Opened);
            opened += 1;
        });
        assert_eq!((opened, class.is_idle(), class.next_wake()), (1, true, Nanos::FOREVER));
        class
    }

    fn ended(class: &mut PacketSink, result: Result<&[u8], TransferFault>) -> Vec<SinkEvent> {
        let mut events = Vec::new();
        let done = Completion { endpoint: 1, result };
        class.complete(Nanos(1), done, &mut |event| events.push(event));
        events
    }

    #[test]
    fn an_endpoint_that_takes_packets_is_found_by_its_number() {
        let bytes = device();
        let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
        let found: Vec<_> = (0..=15).filter_map(|number| find(&set, number)).collect();
        let found: Vec<_> = found.iter().map(|it| (it.address, it.packet)).collect();
        assert_eq!(found, [(1, 64), (2, 512)], "no input, no stream, no other setting");
    }

    #[test]
    fn packets_go_one_by_one_and_only_whole_ones_are_written() {
        let mut class = open();
        assert!(!class.write(&[]) && !class.write(&[7; 65]) && class.request(Nanos(5)).is_none());
        assert!(class.write(&[7; 64]) && !class.write(&[8; 64]), "one at a time");
        let sent = Request::Out { endpoint: 1, data: &[7; 64] };
        assert_eq!(class.request(Nanos(5)), Some(sent));
        assert!(class.request(Nanos(5)).is_none());
        assert_eq!(class.next_wake(), Nanos(5) + PATIENCE);
        assert_eq!(ended(&mut class, Ok(&[7; 64])), [SinkEvent::Written]);
        assert_eq!(ended(&mut class, Ok(&[7; 64])), [], "nothing was under way");
        assert!(class.write(&[9; 3]) && class.request(Nanos(6)).is_some());
        assert_eq!(ended(&mut class, Ok(&[9; 2])), [SinkEvent::Lost], "it is not whole");
        assert!(class.is_idle());
    }

    #[test]
    fn a_packet_that_is_not_taken_is_given_up_and_the_next_one_goes_after_the_recovery() {
        let mut class = open();
        for _ in 0..20 {
            assert!(class.write(&[7]) && class.request(Nanos::ZERO).is_some());
            class.wake(Nanos(PATIENCE.0 - 1), &mut |event| panic!("{event:?}"));
            assert!(class.request(Nanos::ZERO).is_none());
            class.wake(PATIENCE, &mut |event| panic!("{event:?}"));
            assert_eq!(class.request(PATIENCE), Some(Request::Cancel { endpoint: 1 }));
            assert_eq!(class.request(PATIENCE), None, "once");
            assert_eq!(ended(&mut class, Err(TransferFault::Cancelled)), [SinkEvent::Lost]);
            assert_eq!(class.request(PATIENCE), Some(Request::Recover { endpoint: 1 }));
            assert_eq!(ended(&mut class, Ok(&[])), []);
        }
    }

    #[test]
    fn a_device_that_stalls_again_and_again_is_given_up_and_each_packet_has_an_end() {
        let mut class = open();
        let (mut written, mut lost, mut failed) = (0, 0, 0);
        for _ in 0..100 {
            written += u32::from(class.write(&[7]));
            while class.request(Nanos::ZERO).is_some() {
                for event in ended(&mut class, Err(TransferFault::Stall)) {
                    lost += u32::from(event == SinkEvent::Lost);
                    failed += u32::from(event == SinkEvent::Failed);
                }
            }
        }
        assert!(written > 0 && written == lost, "{written} {lost}");
        assert_eq!((failed, class.is_idle()), (1, false));
    }
}
