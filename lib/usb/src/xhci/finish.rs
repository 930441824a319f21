//! The ends of transfers: what an event says is believed if it names a transfer that is under way,
//! and each transfer is reported to its owner once.

use super::access::{Dma, Mmio};
use super::lane::Lane;
use super::pipe::{Owner, Phase, Pipe, Queued};
use super::report::{Finished, TransferOutcome};
use crate::context::EndpointKind;
use crate::trb::{Completion, Trb, bit, endpoint_address};
use diapason_abi::Nanos;

/// The statement of an event about a block that is under way.
#[derive(Clone, Copy, Debug)]
struct Said {
    pipe: usize,
    /// The transfer's place in the queue.
    position: usize,
    /// The event is about the transfer's last block.
    last: bool,
    code: Completion,
    /// Bytes of the transfer so far.
    actual: u32,
}

impl<M: Mmio, D: Dma> Lane<M, D> {
    pub(super) fn transfer_event(&mut self, event: Trb, now: Nanos) {
        let (slot, context) = (event.slot(), event.endpoint());
        let is = |pipe: &Pipe| {
            pipe.slot == slot && pipe.owner.is_some_and(|(_, index)| index == context)
        };
        let pipe = self.pipes.iter().position(is).filter(|_| slot != 0);
        let (Some(pipe), false) = (pipe, event.has(bit::EVENT_DATA)) else {
            self.counters.spurious += 1;
            return;
        };
        let Some(code) = event.completion() else {
            self.counters.unknown += 1;
            return;
        };
        match self.understand(pipe, event, code) {
            Some(said) => self.believe(said, now),
            None => self.about_nothing(pipe, event, code),
        }
    }

    fn understand(&mut self, number: usize, event: Trb, code: Completion) -> Option<Said> {
        let base = self.hw.dma.base();
        let pipe = &self.pipes[number];
        let block = pipe.ring.index_of(base, event.parameter)?;
        let position = pipe.find(block)?;
        let span = self.span(number, block);
        let last = pipe.queue[position].last == block;
        let left = event.residual();
        let length_unknown = code == Completion::StoppedLengthInvalid
            || matches!(code, Completion::StoppedShortPacket);
        let actual = match span.length.checked_sub(left) {
            Some(through) => span.before + through,
            None if length_unknown => span.before,
            None => {
                self.counters.residuals += 1;
                span.before
            }
        };
        Some(Said { pipe: number, position, last, code, actual })
    }

    /// An event that names no transfer: some may, the others are dropped.
    fn about_nothing(&mut self, number: usize, event: Trb, code: Completion) {
        let base = self.hw.dma.base();
        let pipe = &mut self.pipes[number];
        let tail =
            pipe.tail.filter(|tail| pipe.ring.index_of(base, event.parameter) == Some(*tail));
        match code {
            _ if tail.is_some() => {
                pipe.tail = None;
                pipe.release();
            }
            Completion::RingUnderrun | Completion::RingOverrun if pipe.kind.is_isochronous() => {
                self.counters.starved += 1;
            }
            // A missed transfer is found when the next event names a later one.
            Completion::MissedService if pipe.kind.is_isochronous() => {}
            Completion::Stopped
            | Completion::StoppedLengthInvalid
            | Completion::StoppedShortPacket
                if pipe.phase != Phase::Running => {}
            _ => self.counters.spurious += 1,
        }
    }

    fn believe(&mut self, said: Said, now: Nanos) {
        let pipe = &mut self.pipes[said.pipe];
        let (isochronous, control) =
            (pipe.kind.is_isochronous(), pipe.kind == EndpointKind::Control);
        // In every case, the controller has passed the tail.
        pipe.tail = None;
        let queued = &mut pipe.queue[said.position];
        let (length, before_end) = (queued.length, !said.last);
        let end = match said.code {
            Completion::Stopped if queued.cancelled.is_some() => {
                queued.actual = Some(said.actual);
                None
            }
            Completion::Stopped
            | Completion::StoppedLengthInvalid
            | Completion::StoppedShortPacket => None,
            Completion::Success | Completion::ShortPacket if control && before_end => {
                queued.actual = Some(said.actual);
                None
            }
            Completion::Success if before_end => {
                self.counters.unknown += 1;
                None
            }
            Completion::Success | Completion::ShortPacket => {
                let actual = if control { queued.actual.unwrap_or(length) } else { said.actual };
                let fine =
                    if actual < length { TransferOutcome::Short } else { TransferOutcome::Done };
                let outcome = queued.failed.unwrap_or(fine);
                pipe.tail = before_end.then_some(queued.last);
                pipe.attempts = 0;
                Some((outcome, actual))
            }
            Completion::MissedService if isochronous => Some((TransferOutcome::Missed, 0)),
            code if isochronous && before_end => {
                // The controller goes on to the end of the transfer and still has its memory.
                queued.failed = Some(outcome(code));
                None
            }
            code if isochronous => Some((outcome(code), said.actual)),
            code => Some(self.halted(said, code)),
        };
        if let Some((outcome, actual)) = end {
            self.finish_upto(said, outcome, actual, now);
        }
    }

    /// Notes that an endpoint that is not isochronous stopped at an error, and returns how its
    /// transfer ended.
    fn halted(&mut self, said: Said, code: Completion) -> (TransferOutcome, u32) {
        let pipe = &mut self.pipes[said.pipe];
        let phase = match code {
            Completion::Stall
            | Completion::Babble
            | Completion::Transaction
            | Completion::SplitTransaction => Phase::Reset,
            // The endpoint is in its Error state, from which only a new place in the ring leads.
            Completion::Trb => Phase::Move,
            // In any state, it is stopped before the ring changes.
            _ => Phase::Stop,
        };
        pipe.tell = pipe.kind != EndpointKind::Control && phase == Phase::Reset;
        pipe.enter(phase);
        self.attention = true;
        let data = if said.last && pipe.kind == EndpointKind::Control {
            pipe.queue[said.position].actual.unwrap_or(0)
        } else {
            said.actual
        };
        (outcome(code), data)
    }

    /// This transfer ended, and those before it must have.
    fn finish_upto(&mut self, said: Said, last: TransferOutcome, actual: u32, now: Nanos) {
        let number = said.pipe;
        for _ in 0..said.position {
            self.pass_over(number, now);
        }
        let Some(queued) = self.pipes[number].queue.pop_front() else { return };
        self.report(number, queued, last, actual, now);
        let pipe = &mut self.pipes[number];
        pipe.release();
        // The driver's own requests may have waited for room.
        self.attention |= pipe.kind == EndpointKind::Control;
    }

    /// Ends the oldest transfer of an endpoint: the controller went on without a word about it.
    fn pass_over(&mut self, number: usize, now: Nanos) {
        let pipe = &mut self.pipes[number];
        let Some(queued) = pipe.queue.pop_front() else { return };
        let outcome = if pipe.kind.is_isochronous() {
            TransferOutcome::Missed
        } else {
            self.counters.lost += u64::from(queued.owner != Owner::Nobody);
            TransferOutcome::Lost
        };
        self.report(number, queued, outcome, 0, now);
    }

    /// Ends every transfer of an endpoint with this outcome, and makes the endpoint free.
    pub(super) fn flush(&mut self, number: usize, outcome: TransferOutcome, now: Nanos) {
        while let Some(queued) = self.pipes[number].queue.pop_front() {
            let outcome = queued.cancelled.unwrap_or(outcome);
            self.report(number, queued, outcome, 0, now);
        }
        let pipe = &mut self.pipes[number];
        pipe.owner = None;
        pipe.configured = false;
    }

    /// Reports a transfer to its owner. The caller frees its blocks.
    #[inline(always)]
    pub(super) fn report(
        &mut self,
        number: usize,
        queued: Queued,
        outcome: TransferOutcome,
        actual: u32,
        now: Nanos,
    ) {
        let pipe = &self.pipes[number];
        let Some((device, index)) = pipe.owner else { return };
        match queued.owner {
            Owner::Nobody => {}
            Owner::Driver => self.answered.push_back((device, outcome, actual)),
            Owner::Client => self.finished.push_back(Finished {
                transfer: queued.id,
                cookie: queued.cookie,
                device: pipe.device,
                endpoint: endpoint_address(index),
                outcome,
                actual,
                time: now,
            }),
        }
    }

    /// Returns whether a transfer is finished that no call has taken yet: some end with a command
    /// of the controller, without an event of this lane.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Returns the next transfer that is finished.
    pub fn take_finished(&mut self) -> Option<Finished> {
        let finished = self.finished.pop_front()?;
        self.outstanding -= 1;
        Some(finished)
    }
}

const fn outcome(code: Completion) -> TransferOutcome {
    match code {
        Completion::Stall => TransferOutcome::Stalled,
        Completion::Babble => TransferOutcome::Babble,
        Completion::Transaction | Completion::SplitTransaction => TransferOutcome::Transaction,
        code => TransferOutcome::Failed(code),
    }
}
