//! The two rings of the debug capability: blocks become packets, packets become events.

use super::partner::{IN, News, OUT, PACKET};
use super::{Debug, State};
use crate::ring::{BLOCKS_MAX, Cursor, Found};
use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_usb::trb::{BUFFER_MAX, Completion, Kind, Trb, bit};
use std::collections::VecDeque;

/// Packets that stand ready on either side.
const READY: usize = 16;
/// Bytes of an endpoint context here, whatever the controller's are.
const CONTEXT: u64 = 64;

/// A block the controller took from a ring and has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    at: Cursor,
    block: Trb,
    moved: u32,
    /// Packets of it on their way.
    packets: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pipe {
    /// The next block to take.
    pub cursor: Cursor,
    pub halted: bool,
    /// The pipe's doorbell rang since it was configured.
    active: bool,
    posted: VecDeque<Posted>,
}

impl Pipe {
    /// Returns a ring whose doorbell has not rung.
    pub fn at(cursor: Cursor) -> Pipe {
        Pipe { cursor, ..Pipe::default() }
    }

    /// Packets of its blocks that are on their way.
    fn packets(&self) -> usize {
        self.posted.iter().map(|posted| posted.packets).sum()
    }

    /// The first block that is not completed.
    fn first(&self) -> Cursor {
        self.posted.front().map_or(self.cursor, |posted| posted.at)
    }
}

impl Debug {
    fn runs(&self) -> bool {
        self.state == State::Configured
    }

    /// A packet came for the IN ring. A halted ring loses it.
    pub(super) fn receive(&mut self, packet: Vec<u8>) {
        if !self.pipes[IN].halted {
            self.granted = self.granted.saturating_sub(1);
            self.received.push_back(packet);
        }
    }

    /// Lets the host send as many packets as there are places for. The rest of a block after a
    /// short packet was granted, too. Packets that come for it wait for the next one.
    fn grant(&mut self, now: Nanos) {
        let under_way = self.received.len() + self.granted;
        let more = self.pipes[IN].packets().saturating_sub(under_way);
        if more > 0 {
            self.granted += more;
            self.tell(now, News::Room(self.count, more));
        }
    }

    fn forget_received(&mut self) {
        self.received.clear();
        self.granted = 0;
    }
}

impl Xhc {
    pub(super) fn ring_debug(&mut self, memory: &mut dyn Memory, ring: u32) {
        let Some(debug) = &mut self.debug else { return };
        let dead = !debug.runs() || debug.run_change;
        match debug.pipes.get_mut(ring as usize) {
            Some(pipe) if !dead => {
                pipe.active = true;
                self.serve_debug(memory);
            }
            _ => self.counts.idle_doorbells += 1,
        }
    }

    /// An event of the debug capability.
    pub(super) fn post_debug(&mut self, memory: &mut dyn Memory, event: Trb) {
        let which = self.interrupters.len() - 1;
        if !self.interrupters[which].hold(event) {
            self.counts.events_lost += 1;
        }
        self.flush(memory, which);
    }

    /// Moves what can be moved: blocks to packets for the host, packets from the host to blocks.
    pub(super) fn serve_debug(&mut self, memory: &mut dyn Memory) {
        let blocked = self.interrupters.last().is_some_and(|ring| ring.is_blocked());
        if blocked || !self.debug.as_ref().is_some_and(Debug::runs) {
            return;
        }
        self.store_received(memory);
        for ring in [OUT, IN] {
            for _ in 0..BLOCKS_MAX {
                if !self.post_block(memory, ring) {
                    break;
                }
            }
        }
        self.store_received(memory);
        let now = self.now;
        if let Some(debug) = &mut self.debug {
            debug.grant(now);
        }
    }

    /// Takes one more block from a ring, if there is one and it is wanted.
    fn post_block(&mut self, memory: &mut dyn Memory, ring: usize) -> bool {
        let Some(debug) = &self.debug else { return false };
        let pipe = &debug.pipes[ring];
        if !debug.runs() || !pipe.active || pipe.halted || pipe.packets() >= READY {
            return false;
        }
        let mut cursor = pipe.cursor;
        let (at, block) = match self.next_block(memory, &mut cursor) {
            Found::Block(at, block) => (at, block),
            Found::Nothing => return false,
            Found::Broken => {
                self.halt_pipe(memory, ring, Completion::Trb);
                return false;
            }
        };
        let begin = block.parameter % u64::from(BUFFER_MAX);
        let sane = block.kind() == Some(Kind::Normal)
            && begin + u64::from(block.length()) <= u64::from(BUFFER_MAX);
        if !sane {
            self.halt_pipe(memory, ring, Completion::Trb);
            return false;
        }
        let packets = (block.length() as usize).div_ceil(PACKET).max(1);
        if ring == OUT && self.send_block(memory, block).is_none() {
            return false;
        }
        if let Some(debug) = &mut self.debug {
            debug.pipes[ring].cursor = cursor;
            debug.pipes[ring].posted.push_back(Posted { at, block, moved: 0, packets });
        }
        true
    }

    /// Cuts a block into packets for the host.
    fn send_block(&mut self, memory: &mut dyn Memory, block: Trb) -> Option<()> {
        let mut bytes = vec![0; block.length() as usize];
        self.load(memory, block.parameter, &mut bytes)?;
        let (debug, now) = (self.debug.as_ref()?, self.now);
        let send = |packet: &[u8]| debug.tell(now, News::Packet(debug.count, packet.to_vec()));
        if bytes.is_empty() {
            send(&bytes);
        } else {
            bytes.chunks(PACKET).for_each(send);
        }
        Some(())
    }

    /// A packet of the OUT ring is through.
    pub(super) fn taken(&mut self, memory: &mut dyn Memory) {
        let Some(debug) = &mut self.debug else { return };
        let pipe = &mut debug.pipes[OUT];
        let Some(first) = pipe.posted.front_mut() else { return };
        first.packets -= 1;
        first.moved = (first.moved + PACKET as u32).min(first.block.length());
        if first.packets == 0
            && let Some(posted) = pipe.posted.pop_front()
        {
            self.report_debug(memory, OUT, posted, Completion::Success);
        }
    }

    /// Packets of the host go into the blocks of the IN ring.
    fn store_received(&mut self, memory: &mut dyn Memory) {
        loop {
            let Some(debug) = &mut self.debug else { return };
            let Some(first) = debug.pipes[IN].posted.front_mut() else { return };
            let Some(packet) = debug.received.pop_front() else { return };
            let room = first.block.length() - first.moved;
            if packet.len() > room as usize {
                self.halt_pipe(memory, IN, Completion::Babble);
                return;
            }
            let address = first.block.parameter + u64::from(first.moved);
            first.moved += packet.len() as u32;
            first.packets = first.packets.saturating_sub(1);
            let ended = packet.len() < PACKET || first.moved == first.block.length();
            let posted = *first;
            if ended {
                debug.pipes[IN].posted.pop_front();
            }
            if self.store(memory, address, &packet).is_none() {
                return;
            }
            if ended {
                let short = posted.moved < posted.block.length();
                let code = [Completion::Success, Completion::ShortPacket][usize::from(short)];
                self.report_debug(memory, IN, posted, code);
            }
        }
    }

    fn report_debug(
        &mut self,
        memory: &mut dyn Memory,
        ring: usize,
        posted: Posted,
        code: Completion,
    ) {
        let wanted = code != Completion::Success || posted.block.has(bit::COMPLETION);
        let Some(debug) = self.debug.as_ref().filter(|_| wanted) else { return };
        let endpoint = debug.config.first_endpoint + ring as u8;
        let status = Trb::event_status(code, posted.block.length() - posted.moved);
        let place = Trb::place(0, endpoint);
        let event = Trb::new(Kind::TransferEvent, posted.at.pointer, status, place);
        self.post_debug(memory, event);
    }

    /// Halt a ring; the host sees a stall until it clears it.
    pub(super) fn halt_pipe(&mut self, memory: &mut dyn Memory, ring: usize, code: Completion) {
        let now = self.now;
        let Some(debug) = &mut self.debug else { return };
        let pipe = &mut debug.pipes[ring];
        pipe.halted = true;
        pipe.active = false;
        let first = pipe.posted.front().copied();
        pipe.cursor = pipe.first();
        pipe.posted.clear();
        if ring == IN {
            debug.forget_received();
        }
        debug.tell(now, News::Halted(ring));
        if let Some(posted) = first {
            self.report_debug(memory, ring, posted, code);
        }
        self.show_pipe(memory, ring, 2);
    }

    /// The host cleared a halt: software may have moved the ring meanwhile.
    pub(super) fn clear_halt(&mut self, memory: &mut dyn Memory, ring: usize) {
        let halted = self.debug.as_ref().filter(|debug| debug.pipes[ring].halted);
        let Some(context) = halted.map(|debug| debug.context) else { return };
        let cursor = self.pipe_cursor(memory, context, ring);
        self.show_pipe_state(memory, ring, 3);
        if let (Some(debug), Some(cursor)) = (&mut self.debug, cursor) {
            debug.pipes[ring] = Pipe::at(cursor);
        }
    }

    /// No longer configured: what was on its way fails, the doorbells are dead.
    pub(super) fn leave_configured(&mut self, memory: &mut dyn Memory, next: State) {
        let Some(debug) = &mut self.debug else { return };
        let ran = debug.runs();
        debug.state = next;
        debug.run_change |= ran;
        debug.forget_received();
        debug.tell(self.now, News::Void(debug.count));
        for ring in [OUT, IN] {
            let Some(debug) = &mut self.debug else { return };
            let pipe = &mut debug.pipes[ring];
            let first = pipe.posted.pop_front();
            let cursor = pipe.first();
            let under_way = first.filter(|posted| posted.moved > 0);
            let restart = first.filter(|posted| posted.moved == 0).map(|posted| posted.at);
            *pipe = Pipe::at(restart.unwrap_or(cursor));
            if let Some(posted) = under_way {
                self.report_debug(memory, ring, posted, Completion::Transaction);
            }
        }
    }

    /// Shows state and position of a ring in its context.
    pub(super) fn show_pipe(&mut self, memory: &mut dyn Memory, ring: usize, state: u32) {
        self.show_pipe_state(memory, ring, state);
        let Some(debug) = &self.debug else { return };
        let at = debug.pipes[ring].first();
        let words = [at.pointer as u32 | u32::from(at.cycle), (at.pointer >> 32) as u32];
        let base = debug.context.wrapping_add(CONTEXT * (ring as u64 + 1));
        let _ = self.store_words(memory, base.wrapping_add(8), &words);
    }

    fn show_pipe_state(&mut self, memory: &mut dyn Memory, ring: usize, state: u32) {
        let Some(debug) = &self.debug else { return };
        let base = debug.context.wrapping_add(CONTEXT * (ring as u64 + 1));
        if let Some([word]) = self.load_words(memory, base) {
            let _ = self.store_words(memory, base, &[word & !7 | state]);
        }
    }
}
