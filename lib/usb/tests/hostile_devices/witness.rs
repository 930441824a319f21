//! The device that must not notice: a sensor, whose packets all come, in order and in
//! the time they are guaranteed.

use crate::work::Work;
use diapason_abi::Nanos;
use diapason_bus::Guarantee;
use diapason_devices::sensor;
use diapason_random::Random;
use diapason_usb::class::cdc_acm::{CdcAcm, LineCoding, SerialEvent};
use diapason_usb::class::{Class, Completion, Landed, Request};
use diapason_usb::descriptor::Configuration;
use diapason_usb::xhci::EndpointPlan;
use std::cell::RefCell;
use std::rc::Rc;

/// A packet within so many microframes, whatever else is on the bus.
pub const GUARANTEE: Guarantee = Guarantee { bytes: sensor::PACKET as u32, period: 8 };

/// The events that a client heard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    pub packets: u64,
    pub slowest: Nanos,
}

pub struct Witness {
    class: CdcAcm,
    heard: Rc<RefCell<Heard>>,
}

impl Witness {
    pub fn new(set: &Configuration<'_>, heard: &Rc<RefCell<Heard>>) -> Witness {
        let class = CdcAcm::find(set, LineCoding::new(115_200)).expect("a sensor");
        Witness { class, heard: Rc::clone(heard) }
    }
}

/// Returns the plans that its endpoints are given.
pub fn plans(set: &Configuration<'_>) -> Vec<EndpointPlan> {
    let endpoints = set.interfaces().flat_map(|interface| interface.endpoints());
    let plan = |endpoint: diapason_usb::descriptor::EndpointDescriptor| {
        let guarantee = (endpoint.address == sensor::IN).then_some(GUARANTEE);
        EndpointPlan { guarantee, ..EndpointPlan::critical(endpoint) }
    };
    endpoints.map(plan).collect()
}

impl Heard {
    fn packet(&mut self, bytes: &[u8], now: Nanos) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes, sensor::packet(self.packets, Nanos(word(16))), "the wrong packet");
        self.packets += 1;
        self.slowest = self.slowest.max(now - Nanos(word(16)));
    }
}

impl Work for Witness {
    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        self.class.request(now)
    }

    fn complete(&mut self, now: Nanos, done: Completion<'_>) {
        let mut heard = self.heard.borrow_mut();
        self.class.complete(now, done, &mut |event| match event {
            SerialEvent::Data(bytes) => heard.packet(bytes, now),
            SerialEvent::Opened | SerialEvent::State(_) => {}
            other => panic!("the sensor noticed: {other:?}"),
        });
    }

    fn landed(&mut self, _: Nanos, done: Landed<'_>) {
        panic!("a sensor shares nothing: {done:?}");
    }

    fn next_wake(&self) -> Nanos {
        self.class.next_wake()
    }

    fn wake(&mut self, now: Nanos) {
        self.class.wake(now, &mut |event| panic!("the sensor noticed: {event:?}"));
    }

    fn client(&mut self, _: &mut Random, _: Nanos) {}
}
