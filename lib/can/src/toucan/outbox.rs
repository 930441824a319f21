//! The messages of a host on their way into a TouCAN: those in its buffers, and those that wait in
//! memory ([EMERALDS 1998], §7.4.4).
//!
//! The most urgent streams have a buffer of their own each. The others share the rest: a queue in
//! memory is sorted by urgency, and its head is in the shared buffers. A message that is more
//! urgent than one of those overwrites the least urgent. The buffer with `spare` less urgent ones
//! interrupts once it is sent, so that the driver refills the buffers before they are all empty.
//!
//! An outbox holds no data. A frame is copied from its sender's memory when it is loaded.

use super::BUFFERS;
use super::controller::{ToucanDriver, ToucanRegisters};
use super::doubts::{Doubt, ECHOES, Kept, LONGEST_BITS};
use super::listening::Listening;
use super::waiting::{Queue, Streams, Waiting};
use crate::frame::CanFrame;
use crate::timing::BitRate;
use core::fmt;
use diapason_abi::Nanos;
use embedded_can::{Id, StandardId};

/// Most streams of an outbox.
pub const STREAMS: usize = 64;

/// The counter of errors of transmission rises by this with each.
const PER_ERROR: u8 = 8;

/// Where the frames of streams are.
pub trait FrameSource {
    /// Returns the newest frame of this stream, under this identifier.
    fn frame(&self, stream: u8, id: Id) -> Option<CanFrame>;
}

/// Why there is no such outbox, or no such message: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferRefusal {
    /// Buffers of their own and shared ones are more than there are.
    Buffers { asked: usize, most: usize },
    /// No shared buffer, or not more than `spare`.
    Shared { shared: usize, spare: usize },
    /// A stream beyond the last.
    Stream { stream: u8 },
    /// No identifier is that large.
    Identifier { raw: u32 },
}

impl fmt::Display for BufferRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferRefusal::Buffers { asked, most } => {
                write!(f, "{asked} buffers are asked for, where the module has {most} for that")
            }
            BufferRefusal::Shared { shared, spare } => {
                write!(f, "{shared} shared buffers with {spare} spare: share more than are spare")
            }
            BufferRefusal::Stream { stream } => {
                write!(f, "stream {stream}: an outbox has {STREAMS}, counted from 0")
            }
            BufferRefusal::Identifier { raw } => write!(f, "{raw:#x} is no identifier"),
        }
    }
}

/// The counts of an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Messages whose frames are through.
    pub sent: u64,
    /// Messages that were overwritten in a buffer by more urgent ones, and queued again.
    pub preempted: u64,
    /// Messages that were on the wire when they were overwritten.
    pub escaped: u64,
    /// Times that a more urgent message had to wait because both echoes were taken.
    pub held: u64,
    /// Messages that a newer one of their stream replaced before they were sent.
    pub replaced: u64,
    /// Times that the driver was late: messages waited in memory while the shared buffers were
    /// empty, or one that lacked an echo waited for two frames.
    pub dry: u64,
    /// Errors on the bus, at least: several between two looks may count as one.
    pub errors: u64,
    /// Times that the module was off its bus: bus-off, or it had lost its set-up.
    pub off: u64,
}

/// A frame that went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    pub stream: u8,
    /// The timer when it began; of an extended frame up to 255 bits later.
    pub begun: u16,
}

/// Messages on their way into a module, and in it.
#[derive(Debug)]
pub struct BufferedOutbox {
    /// By buffer; shared ones begin at `own`.
    pub(super) loaded: [Option<Waiting>; BUFFERS],
    /// How many buffers belong to one stream each, and how many are shared.
    pub(super) own: usize,
    pub(super) shared: usize,
    pub(super) spare: usize,
    pub(super) queue: Queue,
    /// The messages of the queue that are in doubt, by the echoes that would hear them.
    pub(super) doubts: [Option<Doubt>; ECHOES.len()],
    /// The time of the longest frame.
    pub(super) longest: Nanos,
    /// Frames that went through since a more urgent message waits until an echo is free.
    pub(super) lacking: Option<u32>,
    pub(super) armed: u16,
    pub(super) listening: Listening,
    /// The stream whose buffer interrupts each time, if there is one.
    tells: Option<u8>,
    /// The buffers that interrupt, as the module knows it.
    interrupting: u16,
    /// The counter of errors of transmission when the driver looked last.
    transmit_errors: u8,
    pub(super) counts: OutboxCounts,
    /// Frames that went through since somebody asked. Nobody has to.
    through: [Option<Through>; 2 * BUFFERS],
}

impl BufferedOutbox {
    /// Returns an empty outbox for a module that was just started on a bus of `rate`. Streams 0 to
    /// `own - 1` have a buffer of their own each.
    ///
    /// # Errors
    /// More buffers than there are, or too few shared ones.
    pub fn new(
        rate: BitRate,
        own: usize,
        shared: usize,
        spare: usize,
    ) -> Result<BufferedOutbox, BufferRefusal> {
        let most = BUFFERS - ECHOES.len();
        if own + shared > most {
            return Err(BufferRefusal::Buffers { asked: own + shared, most });
        }
        if shared <= spare {
            return Err(BufferRefusal::Shared { shared, spare });
        }
        let longest = rate.time(LONGEST_BITS.into());
        Ok(BufferedOutbox {
            loaded: [None; BUFFERS],
            own,
            shared,
            spare,
            queue: Queue::new(),
            doubts: [None; ECHOES.len()],
            longest,
            lacking: None,
            armed: 0,
            listening: Listening::new(),
            tells: None,
            interrupting: 0,
            transmit_errors: 0,
            counts: OutboxCounts::default(),
            through: [None; 2 * BUFFERS],
        })
    }

    /// Lets the module interrupt each time that a message of this stream is through.
    pub fn tell(&mut self, stream: u8) {
        self.tells = Some(stream);
    }

    /// Lets the buffers interrupt that have to, if they are others than before.
    pub(super) fn interrupt(&mut self, module: &ToucanDriver<impl ToucanRegisters>) {
        let mut wanted = self.armed | self.listening.buffers;
        if let Some(buffer) = self.tells.and_then(|stream| self.buffer_of(stream)) {
            wanted |= 1 << buffer;
        }
        if wanted != self.interrupting {
            self.interrupting = wanted;
            module.interrupts(wanted);
        }
    }

    /// Gives the message of `stream` that waits another identifier, or takes it back if there is
    /// none. Returns whether one waited. If its frame is on the wire at that moment, that goes out
    /// as well: under another identifier the message goes twice then.
    ///
    /// Identifiers of two epochs are in no order. So all messages are renamed in one go, and
    /// [`BufferedOutbox::settle`] follows.
    pub fn rename(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        stream: u8,
        id: Option<StandardId>,
    ) -> bool {
        let Some(id) = id else { return self.take_back(module, stream) };
        let renamed = Waiting::new(stream, id.into());
        if !self.has_own(stream) && self.queue.take(stream).is_some() {
            // If it is in doubt, its echo goes on hearing the identifier that may be on the wire.
            self.queue.insert(renamed);
            return true;
        }
        let Some(buffer) = self.buffer_of(stream) else { return false };
        let waited = module.rename(buffer, id);
        if waited {
            self.loaded[buffer] = Some(renamed);
        } else {
            self.collect(module);
        }
        waited
    }

    /// Returns the counts since the start.
    #[must_use]
    pub fn counts(&self) -> OutboxCounts {
        self.counts
    }

    /// Returns how many messages wait in memory.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns when the driver has to look again although nothing interrupts.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        self.doubts.iter().flatten().map(|doubt| doubt.until).min()
    }

    /// Takes a message of `stream`, which goes under `id`.
    ///
    /// # Errors
    /// A stream beyond the last.
    pub fn post(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        source: &impl FrameSource,
        now: Nanos,
        stream: u8,
        id: Id,
    ) -> Result<(), BufferRefusal> {
        if usize::from(stream) >= STREAMS {
            return Err(BufferRefusal::Stream { stream });
        }
        self.collect(module);
        let waiting = Waiting::new(stream, id);
        self.counts.replaced += u64::from(self.take_back(module, stream));
        if self.has_own(stream) {
            self.fill(module, source, stream.into(), waiting);
            self.interrupt(module);
            return Ok(());
        }
        self.queue.insert(waiting);
        self.settle(module, source, now);
        Ok(())
    }

    /// Looks at the module after an interrupt, or when [`BufferedOutbox::due`] says so. A module
    /// that has lost its set-up is started again, and gets its messages again.
    pub fn attend(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        source: &impl FrameSource,
        now: Nanos,
    ) {
        self.collect(module);
        self.look_for_errors(module);
        if !module.is_ready() {
            self.counts.off += 1;
            self.revive(module, source);
        }
        self.settle(module, source, now);
    }

    /// Counts the errors on the bus since the driver looked last: one if there were any, or as many
    /// as the counter of transmission tells.
    pub fn look_for_errors(&mut self, module: &ToucanDriver<impl ToucanRegisters>) {
        let (errors, off) = module.take_errors(self.interrupting);
        let (_, count) = module.errors();
        let own = count.saturating_sub(self.transmit_errors).div_ceil(PER_ERROR);
        self.transmit_errors = count;
        self.counts.errors += u64::from(own.max(u8::from(errors)));
        self.counts.off += u64::from(off);
    }

    /// Returns a frame that went through since the last call.
    pub fn take_sent(&mut self) -> Option<Through> {
        self.through.iter_mut().find_map(Option::take)
    }

    /// Starts the module again. Nothing is in its buffers then, and no frame is on the wire that
    /// was there.
    fn revive(&mut self, module: &ToucanDriver<impl ToucanRegisters>, source: &impl FrameSource) {
        module.restart();
        (self.armed, self.lacking, self.interrupting) = (0, None, 0);
        self.transmit_errors = 0;
        self.listening.revive(module);
        self.doubts = [None; ECHOES.len()];
        for buffer in 0..self.own + self.shared {
            match self.loaded[buffer].take() {
                Some(waiting) if buffer < self.own => self.fill(module, source, buffer, waiting),
                Some(waiting) => self.queue.insert(waiting),
                None => {}
            }
        }
    }

    /// Notes what is through.
    fn collect(&mut self, module: &ToucanDriver<impl ToucanRegisters>) {
        let flags = module.take_flags();
        self.listening.note(flags);
        let mut left = flags;
        while left != 0 {
            let buffer = left.trailing_zeros() as usize % BUFFERS;
            left &= left - 1;
            // The buffers behind them are echoes.
            let sends = buffer < self.own + self.shared;
            if let Some(waiting) = self.loaded[buffer].take_if(|_| sends) {
                self.note_sent(module, buffer, waiting);
            }
        }
        self.note_late(module, flags.count_ones(), None);
    }

    /// Notes a message that is through; `buffer` has its frame.
    pub(super) fn note_sent(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        buffer: usize,
        waiting: Waiting,
    ) {
        self.counts.sent += 1;
        let begun = module.stamp(buffer, waiting.id());
        if let Some(free) = self.through.iter_mut().find(|place| place.is_none()) {
            *free = Some(Through { stream: waiting.stream(), begun });
        }
    }

    /// Takes back the message of this stream that waits. Returns whether there was one.
    fn take_back(&mut self, module: &ToucanDriver<impl ToucanRegisters>, stream: u8) -> bool {
        if !self.has_own(stream) && self.queue.take(stream).is_some() {
            self.settle_doubt(module, stream);
            return true;
        }
        self.buffer_of(stream).is_some_and(|buffer| self.empty(module, buffer).is_some())
    }

    /// Returns the buffer that has the message of this stream.
    fn buffer_of(&self, stream: u8) -> Option<usize> {
        let is_it = |buffer: &usize| self.loaded[*buffer].is_some_and(|it| it.stream() == stream);
        if self.has_own(stream) {
            return Some(usize::from(stream)).filter(is_it);
        }
        (self.own..self.own + self.shared).find(is_it)
    }

    /// Returns whether this stream has a buffer of its own.
    fn has_own(&self, stream: u8) -> bool {
        usize::from(stream) < self.own
    }

    /// Takes back what a buffer has. Returns it, unless it is through.
    pub(super) fn empty(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        buffer: usize,
    ) -> Option<Waiting> {
        module.withdraw(buffer);
        // From now on the buffer gets no flag. One that it has is of the message that it had.
        self.collect(module);
        self.loaded[buffer].take()
    }

    fn fill(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        source: &impl FrameSource,
        buffer: usize,
        waiting: Waiting,
    ) {
        let frame = source.frame(waiting.stream(), waiting.id());
        self.loaded[buffer] = frame.map(|frame| {
            module.load(buffer, &frame);
            waiting
        });
    }

    /// Brings the most urgent messages into the shared buffers.
    pub fn settle(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        source: &impl FrameSource,
        now: Nanos,
    ) {
        self.clear_doubts(module, now);
        let shared = self.own..self.own + self.shared;
        let mut lacks_echo = false;
        while let Some(head) = self.head() {
            let free = shared.clone().find(|buffer| self.loaded[*buffer].is_none());
            let buffer = match free.map_or_else(|| self.preempt(module, now, head), Ok) {
                Ok(buffer) => buffer,
                Err(kept) => {
                    lacks_echo = kept == Kept::NoEcho;
                    break;
                }
            };
            let Some(waiting) = self.queue.take(head.stream()) else { break };
            self.fill(module, source, buffer, waiting);
            self.collect(module);
            self.note_late(module, 0, Some(buffer));
            self.lacking = None;
        }
        self.lacking = if lacks_echo { self.lacking.or(Some(0)) } else { None };
        self.arm(module);
    }

    /// Returns the most urgent message in the queue that is not in doubt.
    fn head(&self) -> Option<Waiting> {
        let mut doubtful = Streams::default();
        self.doubts.iter().flatten().for_each(|doubt| doubtful.set(doubt.stream, true));
        self.queue.head(doubtful)
    }
}
