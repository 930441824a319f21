//! Two endpoints of one device: packets come from one and go to the other. Each has its own class,
//! and both go on side by side until one of them fails.

use super::endpoint::{PacketEvent, PacketSource};
use super::sink::{PacketSink, SinkEvent};
use super::{Class, Completion, Request};
use crate::descriptor::Configuration;
use diapason_abi::Nanos;

/// An event of one of the two endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PairEvent<'a> {
    /// The endpoint that is read.
    Source(PacketEvent<'a>),
    /// The endpoint that is written.
    Sink(SinkEvent),
}

/// The reader of one endpoint, and the writer of another one of the same device.
#[derive(Clone, Debug)]
pub struct PacketPair {
    source: PacketSource,
    sink: PacketSink,
}

impl PacketPair {
    /// Returns the class for the endpoints with these numbers, the first to be read and the second
    /// to be written, if one configuration has both.
    #[must_use]
    pub fn find(set: &Configuration<'_>, [read, written]: [u8; 2]) -> Option<PacketPair> {
        let (source, sink) = (PacketSource::find(set, read)?, PacketSink::find(set, written)?);
        Some(PacketPair { source, sink })
    }

    /// Returns the part that takes packets to send.
    pub const fn sink(&mut self) -> &mut PacketSink {
        &mut self.sink
    }
}

impl Class for PacketPair {
    type Event<'a> = PairEvent<'a>;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        match self.sink.request(now) {
            Some(request) => Some(request),
            None => self.source.request(now),
        }
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(PairEvent<'_>)) {
        // Each takes the transfers of its own endpoint only.
        self.sink.complete(now, done, &mut |event| tell(PairEvent::Sink(event)));
        self.source.complete(now, done, &mut |event| tell(PairEvent::Source(event)));
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        self.source.renew(endpoint)
    }

    fn next_wake(&self) -> Nanos {
        self.sink.next_wake().min(self.source.next_wake())
    }

    fn wake(&mut self, now: Nanos, tell: &mut dyn FnMut(PairEvent<'_>)) {
        if now >= self.sink.next_wake() {
            self.sink.wake(now, &mut |event| tell(PairEvent::Sink(event)));
        }
        if now >= self.source.next_wake() {
            self.source.wake(now, &mut |event| tell(PairEvent::Source(event)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Speed;
    use crate::class::TransferFault;
    use crate::descriptor::build::{self, bulk, interrupt};
    use crate::setup::IN;
    use alloc::vec::Vec;

    fn device() -> Vec<u8> {
        let usual = build::Interface::new(0)
            .class(0xff, 0, 0)
            .endpoint(interrupt(0x01, 64, 4))
            .endpoint(interrupt(0x81, 64, 4))
            .endpoint(bulk(0x02, 512));
        build::Configuration::new(1).with(usual).bytes(Speed::High)
    }

    /// Returns a class whose endpoints are both open.
    fn open() -> PacketPair {
        let bytes = device();
        let set = Configuration::parse_once(&bytes, Speed::High).unwrap();
        assert!(PacketPair::find(&set, [2, 1]).is_none(), "nothing comes from 2");
        assert!(
            PacketPair::find(&set, [1, 3]).is_none() && PacketPair::find(&set, [0, 1]).is_none()
        );
        let mut class = PacketPair::find(&set, [1, 2]).unwrap();
        let mut told = Vec::new();
        while class.next_wake() < Nanos::FOREVER {
            class.wake(class.next_wake(), &mut |event| match event {
                PairEvent::Source(PacketEvent::Opened) => told.push('r'),
                PairEvent::Sink(SinkEvent::Opened) => told.push('w'),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(told, ['w', 'r'], "old packets settle first");
        class
    }

    #[test]
    fn both_endpoints_work_at_once_and_none_takes_the_transfer_of_the_other() {
        let mut class = open();
        let (mut asked, mut sent) = (0, 0);
        assert!(class.sink().write(&[7; 512]));
        while let Some(request) = class.request(Nanos(1)) {
            match request {
                Request::In { endpoint: 0x81, length: 64 } => asked += 1,
                Request::Out { endpoint: 2, data } => sent += data.len(),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((asked, sent), (super::super::endpoint::DEPTH, 512));
        let mut told = Vec::new();
        let mut end = |endpoint, result: Result<&[u8], TransferFault>| {
            class.complete(Nanos(2), Completion { endpoint, result }, &mut |event| match event {
                PairEvent::Source(PacketEvent::Packet(bytes)) => told.push(bytes.len()),
                PairEvent::Sink(SinkEvent::Written) => told.push(0),
                other => panic!("{other:?}"),
            });
        };
        end(1 | IN, Ok(&[3; 64]));
        end(2, Ok(&[7; 512]));
        assert_eq!(told, [64, 0]);
        assert_eq!((class.renew(2), class.renew(1 | IN)), (None, Some(64)));
    }

    #[test]
    fn an_endpoint_that_fails_says_so_and_the_other_is_untouched() {
        for failing in [1 | IN, 2] {
            let mut class = open();
            let (mut source, mut sink) = (0, 0);
            for _ in 0..100 {
                class.sink().write(&[7]);
                while class.request(Nanos::ZERO).is_some() {}
                let done = Completion { endpoint: failing, result: Err(TransferFault::Stall) };
                class.complete(Nanos::ZERO, done, &mut |event| match event {
                    PairEvent::Source(PacketEvent::Failed) => source += 1,
                    PairEvent::Sink(SinkEvent::Failed) => sink += 1,
                    _ => {}
                });
            }
            assert_eq!((source, sink), if failing == 2 { (0, 1) } else { (1, 0) });
        }
    }
}
