//! Messages that were overwritten in a buffer, and may be on the wire.
//!
//! A frame that is on the wire when its buffer is overwritten goes out, and no flag says so; the
//! driver would send it twice. So two buffers are kept to hear such a frame (*echoes*). A message
//! is overwritten only once an echo expects its identifier. It is in doubt until the module does
//! not send, another frame of the module is through, or the longest frame is over. It is dropped if
//! its echo came. Nothing of that depends on how fast the driver is.

use super::controller::{ToucanDriver, ToucanRegisters};
use super::outbox::BufferedOutbox;
use super::waiting::Waiting;
use crate::wire::{INTERFRAME_BITS, worst};
use diapason_abi::Nanos;

/// The buffers that hear frames which were overwritten.
pub(super) const ECHOES: [usize; 2] = [14, 15];
/// Bits after which no frame is on the wire that was there before. The timer counts whole bits.
pub(super) const LONGEST_BITS: u16 = worst(true, 8) as u16 + INTERFRAME_BITS as u16 + 1;

/// A message may have been on the wire when it was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    /// The stream of the message.
    pub stream: u8,
    /// The timer of the module behind the moment when it was overwritten.
    pub since: u16,
    /// When to look again.
    pub until: Nanos,
    /// A frame of this module is through that ended later. So that which was on the wire is, too.
    pub over: bool,
}

/// Why no message leaves its buffer for one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// That one is less urgent than all of them.
    InOrder,
    /// Both echoes are taken.
    NoEcho,
}

impl BufferedOutbox {
    /// Moves the least urgent message of the shared buffers into the queue, if `head` is more
    /// urgent. Returns its buffer.
    ///
    /// # Errors
    /// All buffers keep their messages, and why.
    pub(super) fn preempt(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        now: Nanos,
        head: Waiting,
    ) -> Result<usize, Kept> {
        let shared = self.own..self.own + self.shared;
        let buffer = shared.max_by_key(|buffer| self.loaded[*buffer]).ok_or(Kept::InOrder)?;
        let victim = self.loaded[buffer].filter(|it| head < *it).ok_or(Kept::InOrder)?;
        let Some(echo) = self.doubts.iter().position(Option::is_none) else {
            self.counts.held += 1;
            return Err(Kept::NoEcho);
        };
        module.expect(ECHOES[echo], victim.id());
        if self.empty(module, buffer).is_none() {
            module.withdraw(ECHOES[echo]);
            return Ok(buffer);
        }
        let (since, until) = (module.timer(), now + self.longest);
        self.counts.preempted += 1;
        self.queue.insert(victim);
        self.doubts[echo] = Some(Doubt { stream: victim.stream(), since, until, over: false });
        self.clear_doubts(module, now);
        Ok(buffer)
    }

    /// Drops messages whose frames went out when they were overwritten, and lets those go again of
    /// which it is certain that they did not.
    pub(super) fn clear_doubts(&mut self, module: &ToucanDriver<impl ToucanRegisters>, now: Nanos) {
        for (place, echo) in ECHOES.into_iter().enumerate() {
            let Some(doubt) = self.doubts[place] else { continue };
            // In this order: a frame that ends meanwhile is heard.
            let is_late = || module.timer().wrapping_sub(doubt.since) >= LONGEST_BITS;
            let over = doubt.over || is_late() || !module.sends();
            if module.came(echo) {
                if let Some(waiting) = self.queue.take(doubt.stream) {
                    self.note_sent(module, echo, waiting);
                }
                self.counts.escaped += 1;
                self.release(module, place);
            } else if over {
                self.release(module, place);
            } else if doubt.until <= now {
                self.doubts[place] = Some(Doubt { until: now + self.longest, ..doubt });
            }
        }
    }

    /// Notes that a frame of the module is through which ended after all that are in doubt were
    /// overwritten.
    pub(super) fn end_doubts(&mut self) {
        self.doubts.iter_mut().flatten().for_each(|doubt| doubt.over = true);
    }

    /// Forgets the doubt about a message of `stream`, if there is one.
    pub(super) fn settle_doubt(&mut self, module: &ToucanDriver<impl ToucanRegisters>, stream: u8) {
        let is_it = |doubt: &Option<Doubt>| doubt.is_some_and(|it| it.stream == stream);
        if let Some(place) = self.doubts.iter().position(is_it) {
            self.release(module, place);
        }
    }

    /// Frees an echo, and forgets the message that it would hear.
    fn release(&mut self, module: &ToucanDriver<impl ToucanRegisters>, place: usize) {
        module.withdraw(ECHOES[place]);
        self.doubts[place] = None;
    }
}
