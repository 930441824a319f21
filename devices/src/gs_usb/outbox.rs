//! Frames that wait for the host: the pool of frames from the bus, and echoes apart from it.
//!
//! A frame that finds the pool full is lost, and the next one of its channel that does not says so.
//! An echo has the place of the frame that it confirms. Of the states of a channel only the last
//! waits.

use super::POOL;
use super::wire::{HostFrame, OVERFLOW};
use crate::device::Answer;
use std::collections::VecDeque;

/// The time of a frame to the host, if it is to have one.
type Stamp = Option<u32>;

/// The state kept for one channel.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// News of the controller, and its place in the order of all.
    state: Option<(u64, HostFrame, Stamp)>,
    lost: bool,
    overruns: u64,
}

/// Everything on its way to the host.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    order: u64,
    echoes: VecDeque<(u64, HostFrame, Stamp)>,
    frames: VecDeque<(u64, HostFrame, Stamp)>,
    lines: Vec<Line>,
}

impl Outbox {
    /// Returns an empty outbox of an interface with so many channels.
    pub fn new(channels: usize) -> Outbox {
        let lines = vec![Line::default(); channels];
        Outbox { order: 0, echoes: VecDeque::new(), frames: VecDeque::new(), lines }
    }

    fn number(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Puts in a frame of the host that is through.
    pub fn echo(&mut self, frame: HostFrame, stamp: Stamp) {
        let order = self.number();
        self.echoes.push_back((order, frame, stamp));
    }

    /// Returns how many echoes wait.
    pub fn echoes(&self) -> usize {
        self.echoes.len()
    }

    /// Puts in a frame from a bus, or one about an error on it.
    pub fn frame(&mut self, mut frame: HostFrame, stamp: Stamp) {
        let order = self.number();
        let full = self.frames.len() == POOL;
        let Some(line) = self.lines.get_mut(usize::from(frame.channel)) else { return };
        if full {
            (line.lost, line.overruns) = (true, line.overruns + 1);
            return;
        }
        if std::mem::take(&mut line.lost) {
            frame.flags |= OVERFLOW;
        }
        self.frames.push_back((order, frame, stamp));
    }

    /// Puts in the state of a channel; an older one that still waits is replaced.
    pub fn state(&mut self, frame: HostFrame, stamp: Stamp) {
        let order = self.number();
        if let Some(line) = self.lines.get_mut(usize::from(frame.channel)) {
            line.state = Some((order, frame, stamp));
        }
    }

    /// Returns how many frames from buses wait.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Returns how many frames of a channel were lost.
    pub fn overruns(&self, channel: usize) -> u64 {
        self.lines.get(channel).map_or(0, |line| line.overruns)
    }

    /// Forgets what the channel of this number has for the host.
    pub fn forget(&mut self, channel: u8) {
        self.echoes.retain(|(_, frame, _)| frame.channel != channel);
        self.frames.retain(|(_, frame, _)| frame.channel != channel);
        if let Some(line) = self.lines.get_mut(usize::from(channel)) {
            (line.state, line.lost) = (None, false);
        }
    }

    /// Returns the oldest of all that waits.
    fn take(&mut self) -> Option<(HostFrame, Stamp)> {
        let order = |entry: Option<&(u64, HostFrame, Stamp)>| entry.map_or(u64::MAX, |it| it.0);
        let (echo, frame) = (order(self.echoes.front()), order(self.frames.front()));
        let states = self.lines.iter_mut().map(|line| &mut line.state);
        let state = states.min_by_key(|state| order(state.as_ref()));
        let oldest = order(state.as_ref().and_then(|state| state.as_ref()));
        let (_, frame, stamp) = if oldest < echo.min(frame) {
            state?.take()?
        } else if echo < frame {
            self.echoes.pop_front()?
        } else {
            self.frames.pop_front()?
        };
        Some((frame, stamp))
    }

    /// Returns the next transfer: one frame, which is a short packet.
    pub fn send(&mut self, packet: &mut [u8]) -> Answer {
        match self.take() {
            Some((frame, stamp)) => Answer::packet(packet, &frame.bytes(stamp)),
            None => Answer::Nak,
        }
    }
}
