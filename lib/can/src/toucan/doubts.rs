//! Messages that were overwritten in a buffer, and may be on the wire.
//!
//! A frame that is on the wire when its buffer is overwritten goes out, and no flag says so; the
//! driver would send it twice. So two buffers are kept to hear such a frame (*echoes*). A message
//! is overwritten only once an echo expects its identifier. It is in doubt until the module does
//! not send, another frame of the module is through, or the longest frame is over. It is dropped if
//! its echo came. Nothing of that depends on how fast the driver is.

use super::controller::{ToucanDriver, ToucanRegisters};
use super::outbox::{BufferedOutbox, Waiting};
use crate::wire::{INTERFRAME_BITS, worst};
use diapason_abi::Nanos;

/// The buffers that hear frames which were overwritten.
pub(super) const ECHOES: [usize; 2] = [14, 15];
/// Bits after which no frame is on the wire that was there before. The timer counts whole bits.
pub(super) const LONGEST_BITS: u16 = worst(true, 8) as u16 + INTERFRAME_BITS as u16 + 1;

/// A message may have been on the wire when it was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    /// The echo that would hear it.
    pub echo: u8,
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
    /// Moves the least urgent message of the shared buffers into the queue, if that at `head` is
    /// more urgent. Returns its buffer.
    ///
    /// # Errors
    /// All buffers keep their messages, and why.
    pub(super) fn preempt(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        now: Nanos,
        head: usize,
    ) -> Result<usize, Kept> {
        let shared = self.own..self.own + self.shared;
        let key = |buffer: &usize| self.loaded[*buffer].map(|waiting| waiting.key());
        let buffer = shared.max_by_key(key).ok_or(Kept::InOrder)?;
        let victim = self.loaded[buffer].ok_or(Kept::InOrder)?;
        if self.queue[head].is_none_or(|head| head.key() > victim.key()) {
            return Err(Kept::InOrder);
        }
        let Some(echo) = self.echoes.iter().position(|taken| !taken) else {
            self.counts.held += 1;
            return Err(Kept::NoEcho);
        };
        self.echoes[echo] = true;
        module.expect(ECHOES[echo], victim.id);
        let taken = self.empty(module, buffer);
        let (since, until) = (module.timer(), now + self.longest);
        let doubt = Doubt { echo: echo as u8, since, until, over: false };
        if taken.is_none() {
            self.release(module, doubt);
            return Ok(buffer);
        }
        self.counts.preempted += 1;
        self.insert(Waiting { doubt: Some(doubt), ..victim });
        self.clear_doubts(module, now);
        Ok(buffer)
    }

    /// Drops messages whose frames went out when they were overwritten, and lets those go again of
    /// which it is certain that they did not.
    pub(super) fn clear_doubts(&mut self, module: &ToucanDriver<impl ToucanRegisters>, now: Nanos) {
        let mut at = 0;
        while at < self.queued {
            let Some(doubt) = self.queue[at].and_then(|waiting| waiting.doubt) else {
                at += 1;
                continue;
            };
            // In this order: a frame that ends meanwhile is heard.
            let is_late = || module.timer().wrapping_sub(doubt.since) >= LONGEST_BITS;
            let over = doubt.over || is_late() || !module.sends();
            let echo = ECHOES[usize::from(doubt.echo) % ECHOES.len()];
            if module.came(echo) {
                if let Some(waiting) = self.remove(at) {
                    self.note_sent(module, echo, &waiting);
                }
                self.counts.escaped += 1;
                self.release(module, doubt);
                continue;
            }
            if let Some(waiting) = &mut self.queue[at] {
                let until = if doubt.until > now { doubt.until } else { now + self.longest };
                waiting.doubt = (!over).then_some(Doubt { until, ..doubt });
            }
            if over {
                self.release(module, doubt);
            }
            at += 1;
        }
    }

    /// Notes that a frame of the module is through which ended after all that are in doubt were
    /// overwritten.
    pub(super) fn end_doubts(&mut self) {
        let doubts = self.queue[..self.queued].iter_mut().flatten();
        doubts.filter_map(|waiting| waiting.doubt.as_mut()).for_each(|doubt| doubt.over = true);
    }

    /// Frees the echo of a message that is in doubt no more.
    pub(super) fn release(&mut self, module: &ToucanDriver<impl ToucanRegisters>, doubt: Doubt) {
        let place = usize::from(doubt.echo) % ECHOES.len();
        module.withdraw(ECHOES[place]);
        self.echoes[place] = false;
    }
}
