//! An endpoint that recovers from faults, a bounded number of times in a row.

use crate::class::{Request, TransferFault};

/// Consecutive faults after which an endpoint is given up.
pub(in crate::class) const FAULTS_MAX: u8 = 8;
/// Whether an endpoint takes transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Good,
    Halted,
    Recovering,
    Dead,
}

/// An endpoint that recovers from faults.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Pipe {
    endpoint: u8,
    health: Health,
    faults: u8,
    pending: usize,
}

impl Pipe {
    pub(in crate::class) const fn new(endpoint: u8) -> Pipe {
        Pipe { endpoint, health: Health::Good, faults: 0, pending: 0 }
    }

    pub(in crate::class) const fn endpoint(&self) -> u8 {
        self.endpoint
    }

    pub(in crate::class) const fn pending(&self) -> usize {
        self.pending
    }

    pub(in crate::class) fn is_dead(&self) -> bool {
        self.health == Health::Dead
    }

    /// Returns whether another transfer may be started.
    pub(in crate::class) fn is_good(&self) -> bool {
        self.health == Health::Good
    }

    pub(in crate::class) fn start(&mut self) {
        self.pending += 1;
    }

    /// Returns the request for recovery, when it is due.
    pub(in crate::class) fn recovery(&mut self) -> Option<Request<'static>> {
        if self.health != Health::Halted || self.pending > 0 {
            return None;
        }
        self.health = Health::Recovering;
        self.pending = 1;
        Some(Request::Recover { endpoint: self.endpoint })
    }

    /// A transfer ended; `Some` if it did what it should. A completion that nobody asked for is
    /// ignored.
    pub(in crate::class) fn end<'a>(
        &mut self,
        result: Result<&'a [u8], TransferFault>,
    ) -> Option<&'a [u8]> {
        if self.pending == 0 {
            return None;
        }
        self.pending -= 1;
        match (self.health, result) {
            (Health::Dead, _) => return None,
            (Health::Recovering, Ok(_)) => self.health = Health::Good,
            (Health::Good, Ok(bytes)) => {
                self.faults = 0;
                return Some(bytes);
            }
            (Health::Halted, Ok(bytes)) => return Some(bytes),
            (_, Err(TransferFault::Gone)) => self.health = Health::Dead,
            (Health::Halted, Err(_)) => {}
            (Health::Good | Health::Recovering, Err(fault)) => {
                self.health = Health::Halted;
                if fault != TransferFault::Cancelled {
                    self.fail();
                }
            }
        }
        None
    }

    /// Data came that was worth nothing: a fault that the controller does not see.
    pub(in crate::class) fn fail(&mut self) {
        self.faults += 1;
        if self.faults >= FAULTS_MAX {
            self.health = Health::Dead;
        }
    }
}

/// Keeps transfers to the host pending.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Inlet {
    pub(in crate::class) pipe: Pipe,
    length: usize,
    depth: usize,
}

impl Inlet {
    /// `depth` transfers of `length` bytes.
    pub(in crate::class) const fn new(endpoint: u8, length: usize, depth: usize) -> Inlet {
        Inlet { pipe: Pipe::new(endpoint), length, depth }
    }

    pub(in crate::class) const fn length(&self) -> usize {
        self.length
    }

    pub(in crate::class) fn request(&mut self) -> Option<Request<'static>> {
        if let Some(recovery) = self.pipe.recovery() {
            return Some(recovery);
        }
        let length = self.renew()?;
        Some(Request::In { endpoint: self.pipe.endpoint(), length })
    }

    /// Begins one more transfer, if another is to be pending, and returns its bytes.
    pub(in crate::class) fn renew(&mut self) -> Option<usize> {
        if !self.pipe.is_good() || self.pipe.pending() >= self.depth {
            return None;
        }
        self.pipe.start();
        Some(self.length)
    }
}
