//! Links to other computers: bridge cables and debug devices. Messages stay in memory that clients
//! share with the controller.
//!
//! A client's loans and gifts outlive the device: they are asked of the next one.

use super::clients::Clients;
use super::kind::{Kind, Next};
use crate::papers::Found;
use crate::platform::{Platform, log, report};
use crate::slots::Shape;
use alloc::collections::VecDeque;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_contract::link::{
    Ask, DATA, DONE, DROPPED, Done, FILL, LINKS, NAMES, NONSENSE, PENDING, RECORDS, SEND, UNIT,
};
use diapason_pipe::measured::{LinkReport, Measurement};
use diapason_pipe::{Reader, Writer};
use diapason_usb::class::link::{DEPTH, Link as Class, LinkEvent};
use diapason_usb::xhci::{EndpointPlan, Guarantee};

const _: () = assert!(DEPTH == PENDING);

/// The requests of clients for one direction, in order. They end in this order, too.
struct Asked {
    asks: VecDeque<Ask>,
    /// Requests that the class knows: the first ones.
    given: usize,
}

impl Asked {
    fn new() -> Asked {
        Asked { asks: VecDeque::with_capacity(2 * RECORDS), given: 0 }
    }

    fn has_room(&self) -> bool {
        self.asks.len() < self.asks.capacity()
    }

    /// Takes the first request, if the class knows it and it has this place.
    fn end(&mut self, place: u32) -> Option<Ask> {
        let first = self.asks.front()?;
        if self.given == 0 || first.place != place {
            return None;
        }
        self.given -= 1;
        self.asks.pop_front()
    }
}

/// A link and its client.
pub(crate) struct Link<P: Platform> {
    number: usize,
    asks: Reader<'static, Ask, RECORDS>,
    done: Writer<'static, Done, RECORDS>,
    clients: Clients<P::Memory>,
    /// The root port it is for; 0: any.
    port: u8,
    /// The promise to each direction.
    guarantee: Option<Guarantee>,
    /// The most bytes of a message.
    longest: u32,
    /// The requests of clients, those for memory ([`FILL`]) and those with messages ([`SEND`]).
    asked: [Asked; 2],
    /// Requests that were taken in since somebody asked.
    taken: u32,
    /// The link's state, and whether that changed since it was told.
    state: LinkReport,
    changed: bool,
}

impl<P: Platform> Link<P> {
    /// Number `number`, for whatever is at this root port (0: at any).
    ///
    /// # Errors
    /// A pipe or the shared memory is not there.
    pub fn new(
        platform: &P,
        number: usize,
        port: u8,
        (guarantee, longest): (Option<Guarantee>, u32),
    ) -> Result<Link<P>, Errno> {
        let [asks, done, _] = NAMES[number % LINKS];
        Ok(Link {
            number,
            asks: platform.reader(asks)?,
            done: platform.writer(done)?,
            clients: Clients::sharing(platform.memory(DATA)?, UNIT),
            port,
            guarantee,
            longest,
            asked: [Asked::new(), Asked::new()],
            taken: 0,
            state: LinkReport { number: number as u8, ..LinkReport::default() },
            changed: false,
        })
    }

    /// Notes whether the link is there.
    fn is_here(&mut self, here: bool) {
        self.changed |= self.state.here != here;
        self.state.here = here;
    }

    fn answer(&mut self, ask: &Ask, bytes: u32, status: u32, now: Nanos) {
        let Ask { what, place, .. } = *ask;
        // A client that lets more answers wait than there is room for loses some.
        let _ = self.done.push(&Done { taken: now.0, what, place, bytes, status });
        self.clients.ring((ask.quiet == 0 || status != DONE).into());
    }

    /// Something the class knew is over.
    fn over(&mut self, what: u32, place: u32, (bytes, status): (Option<u32>, u32), now: Nanos) {
        let Some(ask) = self.asked[what as usize].end(place) else { return };
        self.answer(&ask, bytes.unwrap_or(ask.bytes), status, now);
    }
}

impl<P: Platform> Kind<P> for Link<P> {
    type Class = Class;

    const NAME: &'static str = "a link to another computer";
    const MEMORY: &'static [Shape] = &[Shape { bytes: 64, count: 1 }];

    fn find(&self, found: &Found<'_>, _: Nanos) -> Option<Class> {
        let here = self.port == 0 || self.port == found.port;
        Class::find(&found.set).filter(|_| here)
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        EndpointPlan { guarantee: self.guarantee, ..usual }
    }

    fn is_message(event: &LinkEvent) -> bool {
        matches!(event, LinkEvent::Came { .. } | LinkEvent::Sent { .. } | LinkEvent::Dropped { .. })
    }

    fn hear(&mut self, event: LinkEvent, now: Nanos) -> Next {
        let number = self.number;
        match event {
            LinkEvent::Came { place, bytes } => {
                self.state.came += 1;
                self.changed |= self.state.came == 1;
                self.over(FILL, place, (Some(bytes), DONE), now);
            }
            LinkEvent::Sent { place } => {
                self.state.sent += 1;
                self.changed |= self.state.sent == 1;
                self.over(SEND, place, (None, DONE), now);
            }
            LinkEvent::Dropped { place } => self.over(SEND, place, (None, DROPPED), now),
            LinkEvent::PeerGone => {
                log!(P, "link {number}: the other side takes nothing");
                self.is_here(false);
            }
            LinkEvent::PeerBack => {
                log!(P, "link {number}: the other side is there again");
                self.is_here(true);
            }
            LinkEvent::Failed => {
                log!(P, "link {number}: failed");
                return Next::End;
            }
        }
        Next::On
    }

    fn welcome(&mut self, _: &Found<'_>) {
        self.state.found += 1;
        self.is_here(true);
    }

    fn attend(&mut self, class: Option<&mut Class>, now: Nanos) {
        if core::mem::take(&mut self.changed) {
            report::<P>(now, Measurement::Link(self.state));
        }
        while self.asked.iter().all(Asked::has_room)
            && let Some(ask) = self.asks.pop()
        {
            self.taken += 1;
            let window = self.clients.window();
            if window.is_some_and(|all| ask.is_sane((all.base, all.length), self.longest)) {
                self.asked[ask.what as usize].asks.push_back(ask);
            } else {
                self.answer(&ask, 0, NONSENSE, now);
            }
        }
        let Some(class) = class else { return };
        for Asked { asks, given } in &mut self.asked {
            while let Some(Ask { what, place, bytes, .. }) = asks.get(*given).copied() {
                let known =
                    if what == SEND { class.send(place, bytes) } else { class.fill(place, bytes) };
                if !known {
                    break;
                }
                *given += 1;
            }
        }
    }

    fn take_asks(&mut self) -> u32 {
        core::mem::take(&mut self.taken)
    }

    fn forget(&mut self, now: Nanos) {
        for asked in &mut self.asked {
            asked.given = 0;
        }
        self.is_here(false);
        if core::mem::take(&mut self.changed) {
            report::<P>(now, Measurement::Link(self.state));
        }
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
