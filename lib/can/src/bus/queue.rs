//! The requests of one node: by priority as good controllers do it, or in order.

use super::event::Ticket;
use crate::fd::AnyFrame;
use crate::frame::CanFrame;
use alloc::vec::Vec;

/// One frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub ticket: Option<Ticket>,
    pub frame: AnyFrame,
    pub once: bool,
}

impl Request {
    /// Returns the request of a babbling node, which nobody waits for.
    pub fn babble(frame: CanFrame) -> Request {
        Request { ticket: None, frame: frame.into(), once: false }
    }
}

/// In order of requests; a few dozen at most, so a scan is enough.
pub(super) struct Queue {
    requests: Vec<Request>,
    capacity: usize,
    in_order: bool,
}

impl Queue {
    /// Returns an empty queue.
    pub fn new(capacity: usize, in_order: bool) -> Queue {
        Queue { requests: Vec::new(), capacity, in_order }
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns how many requests wait.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns how many requests may wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// False if it is full.
    #[must_use]
    pub fn push(&mut self, request: Request) -> bool {
        let fits = self.requests.len() < self.capacity;
        if fits {
            self.requests.push(request);
        }
        fits
    }

    /// Returns the next to send: equal identifiers in order.
    pub fn choose(&self) -> Option<Request> {
        let first = self.requests.first();
        let urgent = self.requests.iter().min_by_key(|request| request.frame.priority());
        if self.in_order { first.copied() } else { urgent.copied() }
    }

    /// Returns the one that would be sent last, except `busy`.
    pub fn least(&self, busy: Option<Ticket>) -> Option<Request> {
        let free = self.requests.iter().filter(|request| request.ticket != busy);
        free.max_by_key(|request| (request.frame.priority(), request.ticket)).copied()
    }

    /// Takes the request with this ticket out of the queue, if it is there.
    pub fn remove(&mut self, ticket: Ticket) -> Option<Request> {
        let at = self.requests.iter().position(|request| request.ticket == Some(ticket))?;
        Some(self.requests.remove(at))
    }

    /// Returns the request with this ticket, if it is in the queue.
    pub fn find(&mut self, ticket: Ticket) -> Option<&mut Request> {
        self.requests.iter_mut().find(|request| request.ticket == Some(ticket))
    }

    /// Everything but `busy` is forgotten.
    pub fn clear(&mut self, busy: Option<Ticket>) -> usize {
        let before = self.requests.len();
        self.requests.retain(|request| busy.is_some() && request.ticket == busy);
        before - self.requests.len()
    }
}
