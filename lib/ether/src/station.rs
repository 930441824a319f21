//! A station of the common time at one adapter, in two halves for two threads.
//!
//! The thread that receives takes the stamp together with its frame, because the adapter has room
//! for one ([`TimeReceiver`]). The other thread reads both clocks, asks the node, and sends, in
//! turns ([`TimeStation::turn`]). A ring of [`HeardFrame`]s joins them. A stamp is used only if it
//! is as near as the terms say and the adapter's clock runs as it must; else the frame counts as
//! lost, and a node that loses too many says that it does not know the time.

use crate::adapter::AdapterRegisters;
use crate::stamps::{self, ClockPair, ReceiveStamps};
use diapason_abi::Nanos;
use diapason_gptp::{FRAME_MAX, GptpOutgoing, HEAD, SentEvent, TimeNode};
use diapason_state::plain;

const TYPE: usize = 12;
const MESSAGE_MAX: usize = FRAME_MAX - HEAD;
/// Messages that may wait between the two threads, and frames that a turn sends at most. A turn
/// sends at most one event, a second part of an answer, a Follow_Up and an Announce.
pub const HEARD_MAX: usize = 8;
pub const TURN_FRAMES: usize = 4;
/// Reads of both clocks for one stamp. The thread may be preempted between the looks of a read.
const READS: usize = 3;
/// Types of messages up to this one are events, which have stamps.
const EVENT_MAX: u8 = 7;
/// The adapter's clock is compared with the host's over at least this time: a rate that is wrong by
/// 100 ppm shows itself among the errors of the reads.
const COMPARED: Nanos = Nanos(20_000_000);

plain! {
    /// A message that came, and what the adapter's clock said when it passed the plug.
    #[derive(PartialEq, Eq, Debug)]
    pub struct HeardFrame {
        stamp: u64,
        length: u32,
        stamped: u32,
        /// The message, or its beginning: the node refuses one that is not whole.
        message: [u8; MESSAGE_MAX.next_multiple_of(8)],
    }
}

impl HeardFrame {
    fn message(&self) -> &[u8] {
        self.message.get(..self.length as usize).unwrap_or(&[])
    }

    fn stamp(&self) -> Option<u64> {
        (self.stamped != 0).then_some(self.stamp)
    }
}

/// The half of the thread that receives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeReceiver(ReceiveStamps);

impl TimeReceiver {
    /// Takes a frame that came, with its stamp if the adapter `stamped` it. Returns the message for
    /// the other half; `None` if the frame is of another protocol.
    pub fn take(
        &mut self,
        registers: &impl AdapterRegisters,
        frame: &[u8],
        stamped: bool,
    ) -> Option<HeardFrame> {
        let stamp = if stamped { self.0.take(registers) } else { None };
        let (head, rest) = frame.split_at_checked(HEAD)?;
        if head.get(TYPE..) != Some(&diapason_gptp::ETHERTYPE.to_be_bytes()) {
            return None;
        }
        let length = rest.len().min(MESSAGE_MAX);
        let mut message = [0; _];
        message.iter_mut().zip(rest.iter().take(length)).for_each(|(to, from)| *to = *from);
        let (length, stamped) = (length as u32, stamp.is_some().into());
        Some(HeardFrame { stamp: stamp.unwrap_or(0), length, stamped, message })
    }

    /// Ends a round, as [`ReceiveStamps::round`] says.
    pub fn round(&mut self, registers: &impl AdapterRegisters) {
        self.0.round(registers);
    }
}

/// The half of the thread that sends.
#[derive(Clone, Debug)]
pub struct TimeStation {
    node: TimeNode<1>,
    /// A stamp that is further off than this is not used.
    stamp: Nanos,
    /// The rates of the adapter's clock and the host's differ by at most this.
    apart_ppm: u32,
    /// An earlier pair, and whether the clocks advanced alike when they were last compared.
    earlier: Option<ClockPair>,
    alike: bool,
    /// A frame that was sent and has no stamp yet, and when it was asked for.
    awaited: Option<(SentEvent, Nanos)>,
    unstamped: u64,
}

impl TimeStation {
    /// Returns the half with this node, whose terms say that no stamp is further off than `stamp`.
    #[must_use]
    pub const fn new(node: TimeNode<1>, stamp: Nanos, apart_ppm: u32) -> TimeStation {
        let (earlier, alike, awaited, unstamped) = (None, true, None, 0);
        TimeStation { node, stamp, apart_ppm, earlier, alike, awaited, unstamped }
    }

    /// Returns the node: the time, and when to look again, are asked of it.
    #[must_use]
    pub const fn node(&self) -> &TimeNode<1> {
        &self.node
    }

    /// Returns how many events had no stamp that could be used.
    #[must_use]
    pub const fn unstamped(&self) -> u64 {
        self.unstamped
    }

    /// Does a turn: hears at most [`HEARD_MAX`] messages, takes the stamp of an event if that is
    /// `gone`, and sends at most [`TURN_FRAMES`] frames. Returns when the next turn is due.
    pub fn turn(
        &mut self,
        registers: &impl AdapterRegisters,
        now: impl Fn() -> Nanos,
        (heard, gone): (impl Iterator<Item = HeardFrame>, bool),
        mut send: impl FnMut(&GptpOutgoing),
    ) -> Nanos {
        heard.take(HEARD_MAX).for_each(|frame| self.heard(registers, &now, &frame));
        if gone {
            self.gone(registers, &now);
        }
        for _ in 0..TURN_FRAMES {
            let Some(out) = self.look(registers, now()) else { break };
            send(&out);
        }
        if self.awaits() { now() } else { self.node.next_look() }
    }

    /// Hears a message of the other half.
    pub fn heard(
        &mut self,
        registers: &impl AdapterRegisters,
        now: impl Fn() -> Nanos,
        frame: &HeardFrame,
    ) {
        let stamp = frame.stamp().and_then(|stamp| self.by_host(registers, &now, stamp));
        let now = now();
        let is_event = frame.message().first().is_some_and(|first| first & 0xf <= EVENT_MAX);
        if is_event && stamp.is_none() {
            self.unstamped += 1;
        } else {
            // The node counts what it refuses.
            let _ = self.node.heard(0, stamp.unwrap_or(now), now, frame.message());
        }
    }

    /// Returns a frame to send now. None is due while another awaits its stamp: the adapter has
    /// room for one. A stamp that is still there is of an earlier frame, and is dropped.
    pub fn look(&mut self, registers: &impl AdapterRegisters, now: Nanos) -> Option<GptpOutgoing> {
        if self.awaited.is_some() {
            return None;
        }
        let out = self.node.look(now)?;
        if let Some(event) = out.event {
            let _ = stamps::sent(registers);
            self.awaited = Some((event, now));
        }
        Some(out)
    }

    /// Returns whether a frame that was sent awaits its stamp. [`TimeStation::gone`] ends that.
    #[must_use]
    pub const fn awaits(&self) -> bool {
        self.awaited.is_some()
    }

    /// Takes the stamp of the frame that awaits it. The adapter has sent that frame. It may have
    /// written that back before it had the stamp of one: a stamp from before the frame was
    /// asked for is of another.
    pub fn gone(&mut self, registers: &impl AdapterRegisters, now: impl Fn() -> Nanos) {
        let Some((event, asked)) = self.awaited.take() else { return };
        let stamp = stamps::sent(registers).and_then(|it| self.by_host(registers, now, it));
        match stamp.filter(|at| *at + self.stamp >= asked) {
            Some(at) => self.node.sent(event, at),
            None => self.unstamped += 1,
        }
    }

    /// Returns what the host's clock said at a stamp, if that is as near as the terms say.
    fn by_host(
        &mut self,
        registers: &impl AdapterRegisters,
        now: impl Fn() -> Nanos,
        stamp: u64,
    ) -> Option<Nanos> {
        (0..READS).find_map(|_| self.read(registers, &now, stamp))
    }

    fn read(
        &mut self,
        registers: &impl AdapterRegisters,
        now: impl Fn() -> Nanos,
        stamp: u64,
    ) -> Option<Nanos> {
        let pair = ClockPair::read(registers, now)?;
        match self.earlier {
            Some(earlier) if pair.before < earlier.after + COMPARED => {}
            Some(earlier) => {
                self.alike = pair.runs_since(&earlier, self.apart_ppm);
                self.earlier = Some(pair);
            }
            None => self.earlier = Some(pair),
        }
        let (at, error) = pair.host(stamp, self.apart_ppm)?;
        (self.alike && error <= self.stamp).then_some(at)
    }
}
