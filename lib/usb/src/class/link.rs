//! A link to another computer: a cable that is a device to both (PL27A1 and its relatives), or the
//! debug device that the other one shows (xHCI debug capability).
//!
//! Messages stay in memory that is shared with a client, one transfer each; nobody copies them. The
//! clients define their content (`diapason_frame`). The device takes a short packet for the end of
//! a message, so one whose last packet is full must fill the memory it goes to.

use super::flow::{Errand, Lane, Span};
use super::{Class, Completion, Landed, Request};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::{Configuration, Interface};
use diapason_abi::Nanos;

/// Transfers that wait or are pending, in each direction.
pub use super::flow::LANE_ROOM as ROOM;
/// Transfers of a direction that are pending at once.
pub const DEPTH: usize = 16;
/// The other side has so long to take a message before it counts as gone. With a message every
/// 40 ms, and 10 ms for the thread that looks, a host without power is found within 100 ms.
pub const PEER_TIME: Nanos = Nanos::from_millis(50);
const DEBUG: [u8; 2] = [0xdc, 2];
/// A cable's class is its vendor's own.
const CABLE: u8 = 0xff;
/// Vendor request that sets features, and what a start of a cable sets: suspend, reset of both
/// pipes, and that somebody is here.
const SET_FEATURES: Setup = Setup { kind: 0x40, request: 3, value: 0x99, index: 0, length: 0 };

/// An event of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// A message came to this place.
    Came {
        /// As it was lent.
        place: u32,
        bytes: u32,
    },
    /// The message in this place is on the other side, or in the cable.
    Sent {
        /// As it was given.
        place: u32,
    },
    /// The message in this place went nowhere.
    Dropped {
        /// As it was given.
        place: u32,
    },
    /// The other side takes nothing: what waited is dropped.
    PeerGone,
    /// The other side is there again.
    PeerBack,
    /// The pipes do not work.
    Failed,
}

/// Knowledge about the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gone {
    No,
    /// Cancels the transfers that it did not take.
    Cancel,
    /// The request is being cancelled.
    Cancelling,
    Yes,
}

/// The driver of one end.
#[derive(Clone, Debug)]
pub struct Link {
    errand: Errand,
    failed: bool,
    receive: Lane,
    send: Lane,
    /// Until when something must be taken; `FOREVER` if nothing is pending.
    patience: Nanos,
    gone: Gone,
}

impl Link {
    /// Returns the class for the first diagnostic interface, or a cable's, with a bulk pair.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<Link> {
        let first = || configuration.interfaces().filter(|i| i.alternate == 0);
        let debug = first().filter(|i| i.class[..2] == DEBUG).find_map(|i| Link::over(&i));
        debug.or_else(|| {
            let mut link = first().filter(|i| i.class[0] == CABLE).find_map(|i| Link::over(&i))?;
            link.errand.begin(SET_FEATURES, &[]);
            Some(link)
        })
    }

    fn over(interface: &Interface<'_>) -> Option<Link> {
        let input = interface.endpoint(EndpointKind::BulkIn)?;
        let output = interface.endpoint(EndpointKind::BulkOut)?;
        Some(Link {
            errand: Errand::new(),
            failed: false,
            receive: Lane::new(input.address, DEPTH),
            send: Lane::new(output.address, DEPTH),
            patience: Nanos::FOREVER,
            gone: Gone::No,
        })
    }

    /// Lends memory for a message of at most `length` bytes; false if there is no room for more.
    pub fn fill(&mut self, place: u32, length: u32) -> bool {
        length > 0 && self.receive.push(Span { place, length })
    }

    /// Gives a message of `length` bytes; false if there is no room for it.
    pub fn send(&mut self, place: u32, length: u32) -> bool {
        length > 0 && self.send.push(Span { place, length })
    }

    fn sent(&mut self, now: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(LinkEvent)) {
        let sent = self.send.end(done.result);
        let idle = self.send.pipe.pending() == 0;
        self.patience = if idle { Nanos::FOREVER } else { now + PEER_TIME };
        if let Some((Span { place, .. }, _)) = sent {
            if core::mem::replace(&mut self.gone, Gone::No) == Gone::Yes {
                tell(LinkEvent::PeerBack);
            }
            tell(LinkEvent::Sent { place });
        } else if idle && matches!(self.gone, Gone::Cancel | Gone::Cancelling) {
            self.gone = Gone::Yes;
            tell(LinkEvent::PeerGone);
            while let Some(Span { place, .. }) = self.send.take() {
                tell(LinkEvent::Dropped { place });
            }
        }
    }

    fn note(&mut self, tell: &mut dyn FnMut(LinkEvent)) {
        let dead = self.receive.pipe.is_dead() || self.send.pipe.is_dead();
        if dead && !self.failed {
            (self.failed, self.patience) = (true, Nanos::FOREVER);
            tell(LinkEvent::Failed);
        }
    }
}

impl Class for Link {
    type Event<'a> = LinkEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.failed {
            return None;
        }
        if !self.errand.is_idle() {
            return self.errand.request(now);
        }
        if let Some(request) = self.receive.request() {
            return Some(request);
        }
        match self.gone {
            Gone::Cancel => {
                self.gone = Gone::Cancelling;
                return Some(Request::Cancel { endpoint: self.send.pipe.endpoint() });
            }
            Gone::Cancelling => return None,
            Gone::No | Gone::Yes => {}
        }
        let request = self.send.request();
        if matches!(request, Some(Request::Shared { .. })) && self.patience == Nanos::FOREVER {
            self.patience = now + PEER_TIME;
        }
        request
    }

    /// The answer to a control transfer, or an endpoint that works again.
    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(LinkEvent)) {
        if done.endpoint == 0 {
            // Some units refuse the request and work all the same.
            let _ = self.errand.end(done.result);
            return;
        }
        let lanes = [&mut self.receive, &mut self.send];
        let lane = lanes.into_iter().find(|lane| lane.pipe.endpoint() == done.endpoint);
        if let Some(lane) = lane {
            lane.pipe.end(done.result);
        }
        self.note(tell);
    }

    fn landed(&mut self, now: Nanos, done: Landed<'_>, tell: &mut dyn FnMut(LinkEvent)) {
        if done.endpoint == self.send.pipe.endpoint() {
            self.sent(now, done, tell);
        } else if done.endpoint == self.receive.pipe.endpoint()
            && let Some((Span { place, .. }, bytes)) = self.receive.end(done.result)
        {
            tell(LinkEvent::Came { place, bytes });
        }
        self.note(tell);
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake().min(self.patience)
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(LinkEvent)) {
        self.errand.wake(now);
        if now >= self.patience && self.patience < Nanos::FOREVER {
            self.patience = Nanos::FOREVER;
            self.gone = Gone::Cancel;
        }
    }
}
