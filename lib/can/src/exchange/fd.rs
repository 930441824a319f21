//! The records of channels with CAN FD: those of classic channels, with the rest of the data behind
//! them. A classic frame has the same record as elsewhere, and zeros behind it.

use super::{Departure, EXTENDED, REMOTE, ReceivedFrame};
use crate::fd::{AnyFrame, FD_BYTES_MAX, FdFrame, LENGTHS};
use crate::frame::{BYTES_MAX, extended, standard};
use diapason_abi::Nanos;
use diapason_state::plain;

/// In `flags`: a frame of CAN FD.
pub const FLEXIBLE: u8 = 1 << 5;
/// In `flags`: the data of the frame goes at the rate of the data.
pub const FAST: u8 = 1 << 6;
/// In `flags`: the sender of the frame is error-passive.
pub const PASSIVE: u8 = 1 << 7;

/// Bytes of data behind those that classic frames have.
const MORE: usize = FD_BYTES_MAX as usize - BYTES_MAX;

plain! {
    /// A frame that came on a channel with CAN FD.
    #[derive(Debug, PartialEq, Eq)]
    pub struct FdReceivedFrame {
        /// The frame as one of a classic channel: the first bytes of its data, its times, its
        /// flags.
        pub head: ReceivedFrame,
        /// The data behind those bytes, with zeros behind it.
        pub more: [u8; MORE],
    }
}

plain! {
    /// A frame to be sent on a channel with CAN FD.
    #[derive(Debug, PartialEq, Eq)]
    pub struct FdDeparture {
        /// The frame as one to a classic channel.
        pub head: Departure,
        /// The data behind those bytes, with zeros behind it.
        pub more: [u8; MORE],
    }
}

/// Returns the first bytes of data, and those behind them.
fn split(frame: &FdFrame) -> ([u8; BYTES_MAX], [u8; MORE]) {
    let at = |at: usize| frame.bytes().get(at).copied().unwrap_or(0);
    (core::array::from_fn(at), core::array::from_fn(|place| at(BYTES_MAX + place)))
}

impl FdDeparture {
    /// Returns a frame to be sent, put into a pipe at `written`.
    #[must_use]
    pub fn at(frame: &AnyFrame, written: Nanos) -> FdDeparture {
        let frame = match frame {
            AnyFrame::Classic(frame) => {
                return FdDeparture { head: Departure::at(frame, written), more: [0; MORE] };
            }
            AnyFrame::Fd(frame) => frame,
        };
        let (data, more) = split(frame);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let any = AnyFrame::Fd(*frame);
        let flags = FLEXIBLE
            | flag(any.is_extended(), EXTENDED)
            | flag(frame.is_fast(), FAST)
            | flag(frame.is_passive(), PASSIVE);
        let (id, code) = (any.raw_id(), frame.code());
        let head = Departure { data, id, code, flags, spare: 0, written: written.0 };
        FdDeparture { head, more }
    }

    /// Returns the frame, if the words are one.
    #[must_use]
    pub fn frame(&self) -> Option<AnyFrame> {
        let Departure { data, id, code, flags, .. } = self.head;
        if flags & FLEXIBLE == 0 {
            return self.head.frame().map(AnyFrame::Classic);
        }
        frame((id, flags, code), (&data, &self.more)).map(AnyFrame::Fd)
    }
}

impl FdReceivedFrame {
    /// Returns a frame that was through at `time` and came at `taken`.
    #[must_use]
    pub fn new(frame: &AnyFrame, time: Nanos, taken: Nanos) -> FdReceivedFrame {
        let FdDeparture { head, more } = FdDeparture::at(frame, Nanos::ZERO);
        let Departure { data, id, code, flags, .. } = head;
        let (time, taken) = (time.0, taken.0);
        let (opened, moved, inexact) = (0, 0, 0);
        let head = ReceivedFrame { time, taken, data, id, code, flags, opened, moved, inexact };
        FdReceivedFrame { head, more }
    }

    /// Returns the frame; news are none.
    #[must_use]
    pub fn frame(&self) -> Option<AnyFrame> {
        let ReceivedFrame { data, id, code, flags, .. } = self.head;
        if flags & FLEXIBLE == 0 || flags & super::NEWS != 0 {
            return self.head.frame().map(AnyFrame::Classic);
        }
        frame((id, flags, code), (&data, &self.more)).map(AnyFrame::Fd)
    }
}

fn frame(
    (id, flags, code): (u32, u8, u8),
    (data, more): (&[u8; BYTES_MAX], &[u8; MORE]),
) -> Option<FdFrame> {
    let id = if flags & EXTENDED != 0 { extended(id) } else { standard(id) }.ok()?;
    let (length, _) = *LENGTHS.get(usize::from(code)).filter(|_| flags & REMOTE == 0)?;
    let mut all = [0; FD_BYTES_MAX as usize];
    let (first, rest) = all.split_at_mut(BYTES_MAX);
    first.copy_from_slice(data);
    rest.copy_from_slice(more);
    let frame = FdFrame::new(id, all.get(..length as usize)?).ok()?;
    Some(frame.with_fast(flags & FAST != 0).with_passive(flags & PASSIVE != 0))
}
