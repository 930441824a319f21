//! The message buffers that hear frames of other nodes.
//!
//! A buffer keeps one frame: the next one takes its place, and the module says only that there was
//! one more. So each message has a buffer of its own, and the driver has to read it before the
//! message comes again. A frame that was lost because it did not is counted.

use super::BUFFERS;
use super::controller::{ToucanDriver, ToucanRegisters};
use super::doubts::ECHOES;
use super::outbox::{BufferRefusal, BufferedOutbox};
use crate::filter::Filter;
use crate::frame::{CanFrame, FrameRefusal, extended, standard};
use embedded_can::Id;

/// The buffers that hear, and what for.
#[derive(Debug)]
pub(super) struct Listening {
    filters: [Option<Filter>; BUFFERS],
    /// The buffers that hear, one bit each.
    pub buffers: u16,
    /// The buffers that have a frame nobody has read, one bit each.
    rang: u16,
    /// The buffers of which a frame is counted as lost already, one bit each.
    overran: u16,
    missed: [u64; BUFFERS],
}

/// A frame that a buffer has heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedFrame {
    pub frame: CanFrame,
    /// The timer when the frame began. Of an extended frame it is up to 255 bits before that: the
    /// module keeps the upper half only.
    pub begun: u16,
}

/// Returns the identifier that a filter names. A filter may name more than there are.
///
/// # Errors
/// It is too large.
fn named(filter: &Filter) -> Result<Id, FrameRefusal> {
    if filter.extended { extended(filter.code) } else { standard(filter.code) }
}

impl Listening {
    /// Returns that no buffer hears.
    pub const fn new() -> Listening {
        let (filters, missed) = ([None; BUFFERS], [0; BUFFERS]);
        Listening { filters, buffers: 0, rang: 0, overran: 0, missed }
    }

    /// Notes that these buffers have a frame, one bit each.
    pub fn note(&mut self, flags: u16) {
        self.rang |= flags & self.buffers;
    }

    /// Sets all buffers up again on a module that has lost its set-up.
    pub fn revive(&mut self, module: &ToucanDriver<impl ToucanRegisters>) {
        (self.rang, self.overran) = (0, 0);
        for (buffer, filter) in self.filters.iter().enumerate() {
            if let Some(id) = filter.and_then(|filter| named(&filter).ok()) {
                module.expect(buffer, id);
            }
        }
    }

    /// Takes the frame that a buffer has heard, if there is one, and lets it hear the next.
    fn take(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        buffer: usize,
    ) -> Option<BufferedFrame> {
        let filter = self.filters.get(buffer).copied().flatten()?;
        let bit = 1 << buffer;
        if self.rang & bit == 0 {
            return None;
        }
        self.rang &= !bit;
        let counted = self.overran & bit != 0;
        self.overran &= !bit;
        let received = module.received(buffer);
        let Some((heard, overran)) = received else {
            // The frame came after the one before was read, and before the buffer was free again.
            self.missed[buffer] += u64::from(!counted);
            return None;
        };
        if overran {
            self.missed[buffer] += 1;
            self.overran |= bit;
        }
        module.expect(buffer, named(&filter).ok()?);
        // A mask may let more in than the filter.
        filter.passes(heard.frame.id()).then_some(heard)
    }
}

impl BufferedOutbox {
    /// Lets a buffer hear the frames that pass `filter`, and returns its number. It interrupts for
    /// each. The module compares whole identifiers unless
    /// [`ToucanDriver::ignore_regions`] was called.
    ///
    /// # Errors
    /// No buffer is left, or there is no such identifier.
    pub fn listen(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        filter: Filter,
    ) -> Result<usize, BufferRefusal> {
        let id = named(&filter).map_err(|_| BufferRefusal::Identifier { raw: filter.code })?;
        let taken = self.own + self.shared;
        let hearing = self.listening.buffers.count_ones() as usize;
        let most = BUFFERS - ECHOES.len() - hearing;
        if taken >= most {
            return Err(BufferRefusal::Buffers { asked: taken + 1, most });
        }
        let buffer = most - 1;
        self.listening.filters[buffer] = Some(filter);
        self.listening.buffers |= 1 << buffer;
        module.expect(buffer, id);
        self.interrupt(module);
        Ok(buffer)
    }

    /// Returns the frame that a buffer of [`BufferedOutbox::listen`] has heard, if one came since
    /// the last call. The driver looks at the module with [`BufferedOutbox::attend`] before.
    #[must_use]
    pub fn heard(
        &mut self,
        module: &ToucanDriver<impl ToucanRegisters>,
        buffer: usize,
    ) -> Option<BufferedFrame> {
        self.listening.take(module, buffer)
    }

    /// Returns whether a buffer has rung since [`BufferedOutbox::heard`] was called for it.
    #[must_use]
    pub fn has_heard(&self, buffer: usize) -> bool {
        buffer < BUFFERS && self.listening.rang & 1 << buffer != 0
    }

    /// Returns how many frames a buffer has lost, at least, because another came before they were
    /// read.
    #[must_use]
    pub fn missed(&self, buffer: usize) -> u64 {
        self.listening.missed.get(buffer).copied().unwrap_or(0)
    }
}
