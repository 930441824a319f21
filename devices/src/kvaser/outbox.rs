//! The messages that wait for the host: the bounded receive buffer, and replies apart from it.
//!
//! The receive buffer has 4 KB: 64 messages of 64 bytes. When it is full the oldest
//! frame makes room, and the next frame of that channel says that something was lost before it.
//! Replies, acknowledgements and states have places of their own and cannot be lost so.

use super::command::{HostCommand, MESSAGE};
use crate::device::Answer;
use std::collections::VecDeque;

/// Bytes of the receive buffer.
pub const BUFFER: usize = 4_096;
pub const FRAMES: usize = BUFFER / MESSAGE;
/// Largest packet of a bulk endpoint at high speed.
const PACKET: usize = 512;
/// "Something was lost before this frame", and where it stands.
const OVERRUN: u8 = 1 << 1;
const FLAGS_NORMAL: usize = 7;
const FLAGS_EXTENDED: usize = 8;

/// A message with its place in time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    order: u64,
    message: HostCommand,
}

/// The state kept for one channel.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    state: Option<Waiting>,
    lost: bool,
    overruns: u64,
}

/// Everything on its way to the host.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    order: u64,
    replies: VecDeque<Waiting>,
    frames: VecDeque<(usize, Waiting)>,
    lines: Vec<Line>,
    /// The rest of a message that was cut.
    rest: Vec<u8>,
    /// The last packet was full, so the host's transfer may still be open.
    open: bool,
}

impl Outbox {
    /// Returns an empty outbox.
    #[must_use]
    pub fn new(channels: usize) -> Outbox {
        Outbox {
            order: 0,
            replies: VecDeque::new(),
            frames: VecDeque::new(),
            lines: vec![Line::default(); channels],
            rest: Vec::new(),
            open: false,
        }
    }

    fn waiting(&mut self, message: HostCommand) -> Waiting {
        self.order += 1;
        Waiting { order: self.order, message }
    }

    /// A reply or an acknowledgement; never lost.
    pub fn reply(&mut self, message: HostCommand) {
        let waiting = self.waiting(message);
        self.replies.push_back(waiting);
    }

    /// Replies and acknowledgements that wait.
    #[must_use]
    pub fn replies(&self) -> usize {
        self.replies.len()
    }

    /// The state of a channel; an older one that still waits is replaced.
    pub fn state(&mut self, channel: usize, message: HostCommand) {
        let waiting = self.waiting(message);
        if let Some(line) = self.lines.get_mut(channel) {
            line.state = Some(waiting);
        }
    }

    /// A frame from the bus of a channel.
    pub fn frame(&mut self, channel: usize, message: HostCommand) {
        if self.frames.len() == FRAMES
            && let Some((oldest, _)) = self.frames.pop_front()
            && let Some(line) = self.lines.get_mut(oldest)
        {
            line.lost = true;
            line.overruns += 1;
        }
        let waiting = self.waiting(message);
        self.frames.push_back((channel, waiting));
    }

    /// Frames in the receive buffer.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Frames of a channel that were overwritten.
    #[must_use]
    pub fn overruns(&self, channel: usize) -> u64 {
        self.lines.get(channel).map_or(0, |line| line.overruns)
    }

    fn peek(&self) -> Option<Waiting> {
        let frame = self.frames.front().map(|(_, waiting)| *waiting);
        let states = self.lines.iter().filter_map(|line| line.state);
        let all = states.chain(frame).chain(self.replies.front().copied());
        all.min_by_key(|waiting| waiting.order)
    }

    fn take(&mut self, order: u64) -> Option<HostCommand> {
        if self.replies.front().is_some_and(|waiting| waiting.order == order) {
            return self.replies.pop_front().map(|waiting| waiting.message);
        }
        if self.frames.front().is_some_and(|(_, waiting)| waiting.order == order) {
            let (channel, waiting) = self.frames.pop_front()?;
            let lost = self.lines.get_mut(channel).is_some_and(|l| std::mem::take(&mut l.lost));
            let extended = waiting.message.is_extended();
            let flags = if extended { FLAGS_EXTENDED } else { FLAGS_NORMAL };
            return Some(waiting.message.mark(flags, if lost { OVERRUN } else { 0 }));
        }
        let states = self.lines.iter_mut().map(|line| &mut line.state);
        let mut states = states.filter(|state| state.is_some_and(|w| w.order == order));
        states.next()?.take().map(|waiting| waiting.message)
    }

    /// The next packet. An extended command may be cut; a normal one begins a transfer of its own
    /// rather than be cut. A transfer ends with a short packet, so a full one is followed by
    /// another, empty if need be. A buffer for less than a full packet means babble.
    pub fn send(&mut self, packet: &mut [u8]) -> Answer {
        let mut bytes = std::mem::take(&mut self.rest);
        while bytes.len() < PACKET {
            let Some(next) = self.peek() else { break };
            let fits = bytes.len() + next.message.bytes().len() <= PACKET;
            if !fits && !next.message.is_extended() && !bytes.is_empty() {
                break;
            }
            let Some(message) = self.take(next.order) else { break };
            bytes.extend_from_slice(message.bytes());
        }
        let length = bytes.len().min(PACKET);
        self.rest = bytes.split_off(length);
        if length == 0 && !self.open {
            return Answer::Nak;
        }
        self.open = length == PACKET;
        Answer::packet(packet, &bytes)
    }
}
