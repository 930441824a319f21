//! Which message is in which buffer, and which waits in memory ([EMERALDS 1998], §7.4.4).
//!
//! The most urgent streams have a buffer of their own each. The others share the rest: a queue in
//! memory is sorted by urgency, and its head is in the shared buffers. A message that is more
//! urgent than one of those overwrites the least urgent. The buffer with `spare` less urgent ones
//! interrupts once it is sent, so that the driver refills the buffers before they are all empty.
//!
//! **Overwritten on the wire.** A frame that is on the wire when its buffer is overwritten goes
//! out, and no flag says so; the driver would send it twice. So two buffers are kept to hear such
//! a frame (*echoes*): a message is overwritten only once an echo expects its identifier. It is in
//! doubt until the module does not send, or the longest frame is over, and is dropped if its echo
//! came. Nothing of that depends on how fast the driver is.
//!
//! An outbox holds no data. A frame is copied from its sender's memory when it is loaded.

use super::BUFFERS;
use super::controller::{Controller, ToucanRegisters};
use crate::frame::CanFrame;
use crate::timing::BitRate;
use crate::wire::{INTERFRAME_BITS, worst};
use core::fmt;
use diapason_abi::Nanos;
use embedded_can::Id;

/// Most streams of an outbox.
pub const STREAMS: usize = 64;
/// The buffers that hear frames which were overwritten.
const ECHOES: [usize; 2] = [14, 15];

/// Bits after which no frame is on the wire that was there before. The timer counts whole bits.
const LONGEST_BITS: u16 = worst(true, 8) as u16 + INTERFRAME_BITS as u16 + 1;

/// Where the frames of streams are.
pub trait Source {
    /// Returns the newest frame of this stream, under this identifier.
    fn frame(&self, stream: u8, id: Id) -> Option<CanFrame>;
}

/// Why there is no such outbox, or no such message: the caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxRefusal {
    /// Buffers of their own and shared ones are more than there are.
    Buffers { asked: usize, most: usize },
    /// No shared buffer, or not more than `spare`.
    Shared { shared: usize, spare: usize },
    /// A stream beyond the last.
    Stream { stream: u8 },
}

impl fmt::Display for OutboxRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutboxRefusal::Buffers { asked, most } => {
                write!(f, "{asked} buffers to send from, where the module has {most} for that")
            }
            OutboxRefusal::Shared { shared, spare } => {
                write!(f, "{shared} shared buffers with {spare} spare: share more than are spare")
            }
            OutboxRefusal::Stream { stream } => {
                write!(f, "stream {stream}: an outbox has {STREAMS}, counted from 0")
            }
        }
    }
}

/// What became of a message that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It is in a buffer of the module.
    Loaded,
    /// It waits in memory.
    Queued,
}

/// The counts of an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxCounts {
    /// Messages whose frames are through.
    pub sent: u64,
    /// Messages that were overwritten in a buffer by more urgent ones, and queued again.
    pub preempted: u64,
    /// Of those, messages that were on the wire at that moment.
    pub escaped: u64,
    /// Times that a more urgent message had to wait because both echoes were taken.
    pub held: u64,
    /// Messages that a newer one of their stream replaced before they were sent.
    pub replaced: u64,
    /// Times that messages waited in memory and the shared buffers were empty.
    pub dry: u64,
}

/// A frame that went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    pub stream: u8,
    /// The timer when it began. Extended frames have none.
    pub begun: Option<u16>,
}

/// A message that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    stream: u8,
    id: Id,
    doubt: Option<Doubt>,
}

/// A message may have been on the wire when it was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    /// The echo that would hear it.
    echo: u8,
    /// The timer of the module behind the moment when it was overwritten.
    since: u16,
    /// When to look again.
    until: Nanos,
}

impl Waiting {
    /// Less is more urgent, as on the wire.
    fn key(&self) -> (Id, u8) {
        (self.id, self.stream)
    }
}

/// Messages on their way into a module, and in it.
#[derive(Debug)]
pub struct Outbox {
    /// By buffer; shared ones begin at `own`.
    loaded: [Option<Waiting>; BUFFERS],
    /// How many buffers belong to one stream each, and how many are shared.
    own: usize,
    shared: usize,
    spare: usize,
    /// The most urgent last, so that it is taken without a move.
    queue: [Option<Waiting>; STREAMS],
    queued: usize,
    /// The echoes that are taken.
    echoes: [bool; ECHOES.len()],
    /// The time of the longest frame.
    longest: Nanos,
    armed: u16,
    counts: OutboxCounts,
    /// Frames that went through since somebody asked. Nobody has to.
    through: [Option<Through>; 2 * BUFFERS],
}

impl Outbox {
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
    ) -> Result<Outbox, OutboxRefusal> {
        let most = BUFFERS - ECHOES.len();
        if own + shared > most {
            return Err(OutboxRefusal::Buffers { asked: own + shared, most });
        }
        if shared <= spare {
            return Err(OutboxRefusal::Shared { shared, spare });
        }
        let longest = rate.time(LONGEST_BITS.into());
        Ok(Outbox {
            loaded: [None; BUFFERS],
            own,
            shared,
            spare,
            queue: [None; STREAMS],
            queued: 0,
            echoes: [false; ECHOES.len()],
            longest,
            armed: 0,
            counts: OutboxCounts::default(),
            through: [None; 2 * BUFFERS],
        })
    }

    /// Returns the counts since the start.
    #[must_use]
    pub fn counts(&self) -> OutboxCounts {
        self.counts
    }

    /// Returns how many messages wait in memory.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Returns when the driver has to look again although nothing interrupts.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        let waiting = self.queue[..self.queued].iter().flatten();
        waiting.filter_map(|waiting| waiting.doubt).map(|doubt| doubt.until).min()
    }

    /// Takes a message of `stream`, which goes under `id`.
    ///
    /// # Errors
    /// A stream beyond the last.
    pub fn post(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        source: &impl Source,
        now: Nanos,
        stream: u8,
        id: Id,
    ) -> Result<Posted, OutboxRefusal> {
        if usize::from(stream) >= STREAMS {
            return Err(OutboxRefusal::Stream { stream });
        }
        self.collect(module);
        let waiting = Waiting { stream, id, doubt: None };
        if usize::from(stream) < self.own {
            let buffer = usize::from(stream);
            self.counts.replaced += u64::from(self.empty(module, buffer).is_some());
            self.fill(module, source, buffer, waiting);
            return Ok(Posted::Loaded);
        }
        self.forget(module, stream);
        self.insert(waiting);
        self.settle(module, source, now);
        let is_it = |waiting: &Waiting| waiting.stream == stream;
        let here = self.loaded.iter().flatten().any(is_it);
        Ok(if here { Posted::Loaded } else { Posted::Queued })
    }

    /// Looks at the module after an interrupt, or when [`Outbox::due`] says so.
    pub fn attend(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        source: &impl Source,
        now: Nanos,
    ) {
        self.collect(module);
        self.settle(module, source, now);
    }

    /// Returns a frame that went through since the last call.
    pub fn take_sent(&mut self) -> Option<Through> {
        self.through.iter_mut().find_map(Option::take)
    }

    /// Notes what is through.
    fn collect(&mut self, module: &Controller<impl ToucanRegisters>) {
        let flags = module.take_flags();
        for buffer in 0..self.own + self.shared {
            if flags >> buffer & 1 == 0 {
                continue;
            }
            if let Some(waiting) = self.loaded[buffer].take() {
                self.note_sent(module, buffer, &waiting);
            }
        }
        let shared = &self.loaded[self.own..self.own + self.shared];
        if self.armed != 0 && shared.iter().all(Option::is_none) {
            self.counts.dry += 1;
            self.armed = 0;
            module.interrupts(0);
        }
    }

    /// Notes a message that is through; `buffer` has its frame.
    fn note_sent(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        buffer: usize,
        waiting: &Waiting,
    ) {
        self.counts.sent += 1;
        let is_standard = matches!(waiting.id, Id::Standard(_));
        let begun = is_standard.then(|| module.stamp(buffer));
        if let Some(free) = self.through.iter_mut().find(|place| place.is_none()) {
            *free = Some(Through { stream: waiting.stream, begun });
        }
    }

    /// Takes an older message of this stream out of the queue and the shared buffers.
    fn forget(&mut self, module: &Controller<impl ToucanRegisters>, stream: u8) {
        let is_it = |waiting: &Option<Waiting>| waiting.is_some_and(|it| it.stream == stream);
        if let Some(at) = self.queue[..self.queued].iter().position(is_it) {
            let doubt = self.remove(at).and_then(|waiting| waiting.doubt);
            doubt.into_iter().for_each(|doubt| self.release(module, doubt));
            self.counts.replaced += 1;
        }
        if let Some(buffer) = self.loaded.iter().position(is_it) {
            self.counts.replaced += u64::from(self.empty(module, buffer).is_some());
        }
    }

    /// Takes back what a buffer has. Returns it, unless it is through.
    fn empty(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        buffer: usize,
    ) -> Option<Waiting> {
        module.withdraw(buffer);
        // From now on the buffer gets no flag. One that it has is of the message that it had.
        self.collect(module);
        self.loaded[buffer].take()
    }

    fn insert(&mut self, waiting: Waiting) {
        let key = waiting.key();
        let mut at = self.queued.min(STREAMS - 1);
        while let Some(before) = at.checked_sub(1)
            && self.queue[before].is_some_and(|other| other.key() < key)
        {
            self.queue[at] = self.queue[before];
            at = before;
        }
        self.queue[at] = Some(waiting);
        self.queued = (self.queued + 1).min(STREAMS);
    }

    fn remove(&mut self, at: usize) -> Option<Waiting> {
        let taken = self.queue[at].take();
        self.queue[at..self.queued].rotate_left(1);
        self.queued -= 1;
        taken
    }

    fn fill(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        source: &impl Source,
        buffer: usize,
        waiting: Waiting,
    ) {
        let frame = source.frame(waiting.stream, waiting.id);
        self.loaded[buffer] = frame.map(|frame| {
            module.load(buffer, &frame);
            waiting
        });
    }

    /// Brings the most urgent messages into the shared buffers.
    fn settle(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        source: &impl Source,
        now: Nanos,
    ) {
        self.clear_doubts(module, now);
        let shared = self.own..self.own + self.shared;
        while let Some(at) = self.head() {
            let free = shared.clone().find(|buffer| self.loaded[*buffer].is_none());
            let buffer = match free {
                Some(buffer) => buffer,
                None => match self.preempt(module, now, at) {
                    Some(buffer) => buffer,
                    None => break,
                },
            };
            // A message that was preempted is in the queue by now, behind this one.
            let Some(at) = self.head() else { break };
            let Some(waiting) = self.remove(at) else { break };
            self.fill(module, source, buffer, waiting);
        }
        self.arm(module);
    }

    /// Returns the place of the most urgent message in the queue that is not in doubt.
    fn head(&self) -> Option<usize> {
        let certain = |waiting: &Option<Waiting>| waiting.is_some_and(|it| it.doubt.is_none());
        self.queue[..self.queued].iter().rposition(certain)
    }

    /// Moves the least urgent message of the shared buffers into the queue, if that at `head` is
    /// more urgent. Returns its buffer.
    fn preempt(
        &mut self,
        module: &Controller<impl ToucanRegisters>,
        now: Nanos,
        head: usize,
    ) -> Option<usize> {
        let shared = self.own..self.own + self.shared;
        let key = |buffer: &usize| self.loaded[*buffer].map(|waiting| waiting.key());
        let buffer = shared.max_by_key(key)?;
        let victim = self.loaded[buffer]?;
        if self.queue[head]?.key() > victim.key() {
            return None;
        }
        let Some(echo) = self.echoes.iter().position(|taken| !taken) else {
            self.counts.held += 1;
            return None;
        };
        self.echoes[echo] = true;
        module.expect(ECHOES[echo], victim.id);
        let taken = self.empty(module, buffer);
        let (since, until) = (module.timer(), now + self.longest);
        let doubt = Doubt { echo: echo as u8, since, until };
        if taken.is_none() {
            self.release(module, doubt);
            return Some(buffer);
        }
        self.counts.preempted += 1;
        self.insert(Waiting { doubt: Some(doubt), ..victim });
        self.clear_doubts(module, now);
        Some(buffer)
    }

    /// Drops messages whose frames went out when they were overwritten, and lets those go again of
    /// which it is certain that they did not.
    fn clear_doubts(&mut self, module: &Controller<impl ToucanRegisters>, now: Nanos) {
        let mut at = 0;
        while at < self.queued {
            let Some(doubt) = self.queue[at].and_then(|waiting| waiting.doubt) else {
                at += 1;
                continue;
            };
            // In this order: a frame that ends meanwhile is heard.
            let over = module.timer().wrapping_sub(doubt.since) >= LONGEST_BITS || !module.sends();
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

    /// Frees an echo.
    fn release(&mut self, module: &Controller<impl ToucanRegisters>, doubt: Doubt) {
        let place = usize::from(doubt.echo) % ECHOES.len();
        module.withdraw(ECHOES[place]);
        self.echoes[place] = false;
    }

    /// Lets the buffer interrupt that has `spare` less urgent ones behind it, if messages wait.
    fn arm(&mut self, module: &Controller<impl ToucanRegisters>) {
        let mut armed = 0;
        if self.queued > 0 {
            let shared = self.own..self.own + self.shared;
            let behind = |buffer: &usize| {
                let key = self.loaded[*buffer].map(|waiting| waiting.key());
                let later = |other: &&Waiting| key.is_some_and(|key| other.key() > key);
                let all = self.loaded[self.own..self.own + self.shared].iter().flatten();
                all.filter(later).count()
            };
            let loaded = shared.filter(|buffer| self.loaded[*buffer].is_some());
            let all = loaded.map(|buffer| (behind(&buffer), buffer));
            let chosen = all.filter(|(behind, _)| *behind <= self.spare).max();
            armed = chosen.map_or(0, |(_, buffer)| 1 << buffer);
        }
        if armed != self.armed {
            module.interrupts(armed);
        }
        self.armed = armed;
    }
}
