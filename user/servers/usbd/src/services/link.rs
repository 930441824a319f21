//! Links to other computers: bridge cables and debug devices. Messages stay in memory that clients
//! share with the controller.
//!
//! What a client lent or gave outlives the device: it is asked of the next one.

use super::{Found, Kind, Next};
use crate::slots::Shape;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_rt::memory::Dma;
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, log};
use diapason_usb::class::link::{Event, Link as Class};
use diapason_usb::descriptor::Endpoint;
use diapason_usb::xhci::{EndpointPlan, Guarantee};
use diapason_usbd::link::{
    Ask, Counter, DONE, DROPPED, Done, FILL, NONSENSE, RECORDS, SEND, UNIT, counter,
};

/// A link and its client.
pub struct Link {
    number: usize,
    counter: Counter,
    ready: [Semaphore; 1],
    /// The root port it is for; 0: any.
    port: u8,
    /// What is promised of each direction.
    guarantee: Option<Guarantee>,
    /// What clients wait for, in order.
    asked: Vec<Ask>,
    /// So many of them the class knows.
    given: usize,
    fresh: bool,
}

impl Link {
    /// Number `number`, for whatever is at this root port (0: at any).
    ///
    /// # Errors
    /// A pipe, a semaphore or the shared memory is not there.
    pub fn new(number: usize, port: u8, guarantee: Option<Guarantee>) -> Result<Link, Errno> {
        let counter = counter(number)?;
        let (ready, asked) = ([counter.ready], Vec::with_capacity(2 * RECORDS));
        Ok(Link { number, counter, ready, port, guarantee, asked, given: 0, fresh: false })
    }

    fn answer(&mut self, ask: &Ask, bytes: u32, status: u32, now: Nanos) {
        let Ask { what, place, .. } = *ask;
        // A client that lets more answers wait than there is room for loses some.
        let _ = self.counter.done.push(&Done { taken: now.0, what, place, bytes, status });
        self.fresh |= ask.quiet == 0 || status != DONE;
    }

    /// Something the class knew is over.
    fn over(&mut self, what: u32, place: u32, (bytes, status): (Option<u32>, u32), now: Nanos) {
        let mut known = self.asked[..self.given].iter();
        let at = known.position(|ask| (ask.what, ask.place) == (what, place));
        let Some(at) = at else { return };
        let ask = self.asked.remove(at);
        self.given -= 1;
        self.answer(&ask, bytes.unwrap_or(ask.bytes), status, now);
    }
}

impl Kind for Link {
    type Class = Class;

    const NAME: &'static str = "a link to another computer";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 1 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Class> {
        let here = self.port == 0 || self.port == found.port;
        Class::find(&found.set).filter(|_| here)
    }

    fn plan(&self, endpoint: Endpoint) -> EndpointPlan {
        EndpointPlan { guarantee: self.guarantee, ..EndpointPlan::new(endpoint) }
    }

    fn hear(&mut self, event: Event, now: Nanos) -> Next {
        let number = self.number;
        match event {
            Event::Came { place, bytes } => self.over(FILL, place, (Some(bytes), DONE), now),
            Event::Sent { place } => self.over(SEND, place, (None, DONE), now),
            Event::Dropped { place } => self.over(SEND, place, (None, DROPPED), now),
            Event::PeerGone => log!("link {number}: the other side takes nothing"),
            Event::PeerBack => log!("link {number}: the other side is there again"),
            Event::Failed => {
                log!("link {number}: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn attend(&mut self, class: Option<&mut Class>, now: Nanos) {
        while self.asked.len() < self.asked.capacity()
            && let Some(ask) = self.counter.asks.pop()
        {
            if ask.is_sane(&self.counter.data) {
                self.asked.push(ask);
            } else {
                self.answer(&ask, 0, NONSENSE, now);
            }
        }
        let Some(class) = class else { return };
        while let Some(ask) = self.asked.get(self.given) {
            let Ask { what, place, bytes, .. } = *ask;
            let known =
                if what == SEND { class.send(place, bytes) } else { class.fill(place, bytes) };
            if !known {
                return;
            }
            self.given += 1;
        }
    }

    fn forget(&mut self) {
        self.given = 0;
    }

    fn shared(&self) -> Option<(&Dma, usize)> {
        Some((&self.counter.data, UNIT))
    }

    fn bells(&self) -> &[Semaphore] {
        &self.ready
    }

    fn take_fresh(&mut self) -> u32 {
        core::mem::take(&mut self.fresh).into()
    }

    fn asked(&self) -> Option<Semaphore> {
        Some(self.counter.ask)
    }
}
