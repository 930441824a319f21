//! One endpoint of any device, written packet by packet: bulk or interrupt, without a request of a
//! class. Several packets may be under way, and end in their order. A device that takes none for
//! too long loses those that are under way. If one fails, those that are under way behind it fail
//! with it: their order would be lost if they came later.

use super::endpoint::of_packets;
use super::flow::Pipe;
use super::{Class, Completion, Request};
use crate::descriptor::{Configuration, EndpointDescriptor};
use diapason_abi::Nanos;

/// Most bytes of a packet.
pub const PACKET: usize = 512;
/// Most packets that are under way.
pub const DEPTH: usize = 4;
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
    of_packets(configuration, number, number)
}

/// Where the class is with its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing was asked of the device.
    New,
    Open,
    /// The oldest packet is to be given up.
    Late,
    /// The ends of the packets that were given up are awaited.
    GivenUp,
    Failed,
}

/// A packet that has not ended.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    data: [u8; PACKET],
    length: usize,
    /// When it is given up, once it is under way.
    until: Nanos,
}

/// The writer of one endpoint.
#[derive(Clone, Debug)]
pub struct PacketSink {
    pipe: Pipe,
    step: Step,
    packet: usize,
    /// Packets that have not ended, the oldest at `first`, and how many of them are under way.
    queue: [Outgoing; DEPTH],
    first: usize,
    count: usize,
    started: usize,
}

impl PacketSink {
    /// Returns the class for the endpoint with this number, if the configuration has it and a
    /// packet of it is not too long.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, number: u8) -> Option<PacketSink> {
        let endpoint = find(configuration, number)?;
        let packet = usize::from(endpoint.packet);
        let none = Outgoing { data: [0; PACKET], length: 0, until: Nanos::FOREVER };
        (packet <= PACKET).then_some(PacketSink {
            pipe: Pipe::new(endpoint.address),
            step: Step::New,
            packet,
            queue: [none; DEPTH],
            first: 0,
            count: 0,
            started: 0,
        })
    }

    /// Returns whether one more packet can be taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !matches!(self.step, Step::New | Step::Failed) && self.count < DEPTH
    }

    /// Takes a packet to send. Returns false if it is empty or longer than a packet of the
    /// endpoint. There must be room for it.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let fits = (1..=self.packet).contains(&bytes.len()) && self.has_room();
        if fits
            && let Some(next) = self.queue.get_mut((self.first + self.count) % DEPTH)
            && let Some(data) = next.data.get_mut(..bytes.len())
        {
            data.copy_from_slice(bytes);
            next.length = bytes.len();
            self.count += 1;
        }
        fits
    }

    /// Takes the oldest packet, which has ended, and returns its length.
    fn take(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        self.started = self.started.saturating_sub(1);
        let length = self.queue.get(self.first)?.length;
        self.first = (self.first + 1) % DEPTH;
        Some(length)
    }

    /// Returns when the oldest packet that is under way is given up.
    fn until(&self) -> Nanos {
        let oldest = self.queue.get(self.first).filter(|_| self.started > 0);
        oldest.filter(|_| self.step == Step::Open).map_or(Nanos::FOREVER, |oldest| oldest.until)
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
            Step::Open if self.pipe.is_good() && self.started < self.count => {
                self.pipe.start();
                let next = self.queue.get_mut((self.first + self.started) % DEPTH)?;
                self.started += 1;
                next.until = now + PATIENCE;
                Some(Request::Out { endpoint, data: next.data.get(..next.length)? })
            }
            _ => None,
        }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(SinkEvent)) {
        if done.endpoint != self.pipe.endpoint() || self.step == Step::Failed {
            return;
        }
        // A recovery begins when no packet is under way.
        let is_of_packet = self.started > 0;
        let moved = self.pipe.end(done.result);
        if is_of_packet && let Some(length) = self.take() {
            let whole = moved.is_some_and(|bytes| bytes.len() == length);
            tell(if whole { SinkEvent::Written } else { SinkEvent::Lost });
        }
        if self.step == Step::Late || self.step == Step::GivenUp && self.started == 0 {
            self.step = Step::Open;
        }
        if self.pipe.is_dead() {
            while self.take().is_some() {
                tell(SinkEvent::Lost);
            }
            self.step = Step::Failed;
            tell(SinkEvent::Failed);
        }
    }

    fn next_wake(&self) -> Nanos {
        if self.step == Step::New { Nanos::ZERO } else { self.until() }
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(SinkEvent)) {
        match self.step {
            Step::New => {
                self.step = Step::Open;
                tell(SinkEvent::Opened);
            }
            Step::Open if now >= self.until() => self.step = Step::Late,
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
        assert_eq!((class.has_room(), class.write(b"soon")), (false, false));
        let mut opened = 0;
        class.wake(class.next_wake(), &mut |event| {
            assert_eq!(event, SinkEvent::Opened);
            opened += 1;
        });
        assert_eq!((opened, class.has_room(), class.next_wake()), (1, true, Nanos::FOREVER));
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
    fn packets_end_in_their_order_and_only_whole_ones_are_written() {
        let mut class = open();
        assert!(!class.write(&[]) && !class.write(&[7; 65]) && class.request(Nanos(5)).is_none());
        assert!(class.write(&[7; 64]));
        let sent = Request::Out { endpoint: 1, data: &[7; 64] };
        assert_eq!(class.request(Nanos(5)), Some(sent));
        assert!(class.request(Nanos(5)).is_none());
        assert_eq!(class.next_wake(), Nanos(5) + PATIENCE);
        assert_eq!(ended(&mut class, Ok(&[7; 64])), [SinkEvent::Written]);
        assert_eq!(ended(&mut class, Ok(&[7; 64])), [], "nothing was under way");
        assert!(class.write(&[9; 3]) && class.request(Nanos(6)).is_some());
        assert_eq!(ended(&mut class, Ok(&[9; 2])), [SinkEvent::Lost], "it is not whole");
        assert!((0..DEPTH as u8).all(|number| class.write(&[number])));
        assert!(!class.has_room() && !class.write(&[9]), "so many and no more");
        for number in 0..DEPTH as u8 {
            let sent = Request::Out { endpoint: 1, data: &[number] };
            assert_eq!(class.request(Nanos(7 + u64::from(number))), Some(sent));
        }
        assert_eq!(class.request(Nanos(9)), None);
        for number in 0..DEPTH as u8 {
            assert_eq!(class.next_wake(), Nanos(7 + u64::from(number)) + PATIENCE);
            assert_eq!(ended(&mut class, Ok(&[number])), [SinkEvent::Written]);
        }
        assert_eq!(class.next_wake(), Nanos::FOREVER);
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

    /// Those behind it are never sent again: the device could have them twice, or in another order.
    #[test]
    fn packets_under_way_behind_one_that_failed_fail_with_it_and_later_ones_go_on() {
        for (first, is_late) in [(TransferFault::Stall, false), (TransferFault::Cancelled, true)] {
            let mut class = open();
            assert!(class.write(&[1]) && class.request(Nanos(1)).is_some());
            assert!(class.write(&[2]) && class.request(Nanos(2)).is_some());
            if is_late {
                class.wake(class.next_wake(), &mut |event| panic!("{event:?}"));
                assert_eq!(class.request(PATIENCE), Some(Request::Cancel { endpoint: 1 }));
            }
            assert!(class.write(&[3]));
            assert_eq!(ended(&mut class, Err(first)), [SinkEvent::Lost]);
            assert_eq!(class.request(PATIENCE), None, "the second one is under way");
            assert_eq!(ended(&mut class, Err(TransferFault::Cancelled)), [SinkEvent::Lost]);
            assert_eq!(class.request(PATIENCE), Some(Request::Recover { endpoint: 1 }));
            assert_eq!(ended(&mut class, Ok(&[])), []);
            let third = Request::Out { endpoint: 1, data: &[3] };
            assert_eq!(class.request(PATIENCE), Some(third));
            assert_eq!(ended(&mut class, Ok(&[3])), [SinkEvent::Written]);
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
        assert_eq!((failed, class.has_room()), (1, false));
    }
}
