//! Asking a device one thing at a time.

use crate::Setup;
use crate::class::{Request, TransferFault};
use diapason_abi::Nanos;

/// A control transfer has so long.
pub(in crate::class) const CONTROL_TIME: Nanos = Nanos::from_secs(1);
/// Most bytes that go with a control transfer: a camera's negotiation.
const CONTROL_BYTES: usize = 48;

/// One control transfer at a time, each with a deadline.
#[derive(Clone, Copy, Debug)]
pub(in crate::class) struct Errand {
    stage: Stage,
    setup: Setup,
    data: [u8; CONTROL_BYTES],
    length: usize,
    /// Not a transfer but a choice of this interface's setting.
    alternate: Option<(u8, u8)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    Wanted,
    Pending { deadline: Nanos },
    Late,
    Cancelling,
}

impl Errand {
    pub(in crate::class) const fn new() -> Errand {
        let setup = Setup { kind: 0, request: 0, value: 0, index: 0, length: 0 };
        let data = [0; CONTROL_BYTES];
        Errand { stage: Stage::Idle, setup, data, length: 0, alternate: None }
    }

    pub(in crate::class) fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Asks the device this, with data that goes to it.
    pub(in crate::class) fn begin(&mut self, setup: Setup, data: &[u8]) {
        let length = data.len().min(CONTROL_BYTES);
        self.data[..length].copy_from_slice(&data[..length]);
        *self = Errand { stage: Stage::Wanted, setup, length, alternate: None, ..*self };
    }

    pub(in crate::class) fn choose(&mut self, interface: u8, alternate: u8) {
        *self = Errand { stage: Stage::Wanted, alternate: Some((interface, alternate)), ..*self };
    }

    pub(in crate::class) fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        match self.stage {
            Stage::Late => {
                self.stage = Stage::Cancelling;
                Some(Request::Cancel { endpoint: 0 })
            }
            Stage::Wanted => {
                self.stage = Stage::Pending { deadline: now + CONTROL_TIME };
                Some(match self.alternate {
                    Some((interface, alternate)) => Request::Alternate { interface, alternate },
                    None => {
                        let data = &self.data[..self.length];
                        Request::Control { setup: self.setup, data }
                    }
                })
            }
            _ => None,
        }
    }

    /// Returns how it ended, unless nothing was asked. An answer is never longer than asked for.
    pub(in crate::class) fn end<'a>(
        &mut self,
        result: Result<&'a [u8], TransferFault>,
    ) -> Option<Result<&'a [u8], TransferFault>> {
        let stage = core::mem::replace(&mut self.stage, Stage::Idle);
        let most = usize::from(self.setup.length);
        match (stage, result) {
            (Stage::Idle | Stage::Wanted, _) => {
                self.stage = stage;
                None
            }
            (Stage::Late | Stage::Cancelling, Err(TransferFault::Cancelled)) => {
                Some(Err(TransferFault::Late))
            }
            (_, Ok(bytes)) => Some(Ok(bytes.get(..most).unwrap_or(bytes))),
            (_, Err(fault)) => Some(Err(fault)),
        }
    }

    pub(in crate::class) const fn next_wake(&self) -> Nanos {
        match self.stage {
            Stage::Pending { deadline } => deadline,
            _ => Nanos::FOREVER,
        }
    }

    pub(in crate::class) fn wake(&mut self, now: Nanos) {
        if now >= self.next_wake() && now < Nanos::FOREVER {
            self.stage = Stage::Late;
        }
    }
}
