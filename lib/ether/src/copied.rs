//! The driver's side for listeners that do not trust each other: each has slots of its own, and
//! the driver copies a frame there. So no program sees or touches the frames of another, and the
//! adapter gets its buffer back at once.

use crate::filter::ListenerRefusal;
use crate::{Discard, FrameCounts, FrameInbox, FreeBuffers, INBOX_DEPTH, InboxWriter};
use crate::{Listener, Listeners, Match, Post, Posted};

/// The slots of all listeners, to which the driver copies.
pub trait Slots {
    /// Copies a frame into a slot of this listener. The slot has room for every frame that fits a
    /// buffer of the adapter.
    fn copy(&mut self, listener: u8, slot: u16, frame: &[u8]);
}

/// One listener: its inbox, the slots that are free, and what became of its frames.
#[derive(Debug)]
struct Own<'a> {
    inbox: InboxWriter<'a>,
    free: FreeBuffers<INBOX_DEPTH>,
    counts: FrameCounts,
}

/// Up to `L` listeners with slots of their own.
#[derive(Debug)]
pub struct CopyingDemux<'a, const L: usize> {
    listeners: Listeners<L>,
    own: [Option<Own<'a>>; L],
    counts: FrameCounts,
}

impl<const L: usize> Default for CopyingDemux<'_, L> {
    fn default() -> Self {
        CopyingDemux {
            listeners: Listeners::default(),
            own: [const { None }; L],
            counts: FrameCounts::default(),
        }
    }
}

impl<'a, const L: usize> CopyingDemux<'a, L> {
    /// Registers a listener with its inbox, and returns its number. It has as many slots as its
    /// quota says.
    ///
    /// # Errors
    /// If there is no room, another listener has its address, or a value is out of range.
    pub fn listen(
        &mut self,
        listener: &Listener,
        inbox: &'a FrameInbox,
    ) -> Result<u8, ListenerRefusal> {
        let number = self.vacant()?;
        self.listeners.add(number, listener)?;
        self.open(number, inbox, listener.quota);
        Ok(number)
    }

    /// Registers the listener that gets what nobody else wants, and returns its number.
    ///
    /// # Errors
    /// If there is no room, or the quota is out of range.
    pub fn listen_to_rest(
        &mut self,
        inbox: &'a FrameInbox,
        quota: u16,
    ) -> Result<u8, ListenerRefusal> {
        let number = self.vacant()?;
        self.listeners.set_rest(number, quota)?;
        self.open(number, inbox, quota);
        Ok(number)
    }

    fn vacant(&self) -> Result<u8, ListenerRefusal> {
        let place = self.own.iter().position(Option::is_none);
        place.map(|place| place as u8).ok_or(ListenerRefusal::Full)
    }

    fn open(&mut self, number: u8, inbox: &'a FrameInbox, quota: u16) {
        if let Some(own) = self.own.get_mut(usize::from(number)) {
            let (inbox, free) = (InboxWriter::new(inbox, quota), FreeBuffers::new(quota));
            *own = Some(Own { inbox, free, counts: FrameCounts::default() });
        }
    }

    /// Takes in a frame that the adapter received. The caller may reuse its buffer afterwards.
    #[inline]
    pub fn arrive(&mut self, frame: &[u8], slots: &mut impl Slots) -> Posted {
        let (number, at, length) = match self.listeners.classify(frame) {
            Match::Exact { listener, at, length } => (listener, at, length),
            Match::Full { listener } => (listener, 0, frame.len() as u16),
            Match::Nobody(reason) => return self.refuse(reason),
        };
        let Some(Some(own)) = self.own.get_mut(usize::from(number)) else {
            return self.refuse(Discard::Unregistered);
        };
        match own.post(frame, at, length, |slot| slots.copy(number, slot, frame)) {
            Ok(alone) => {
                self.counts.pass();
                Posted::of(number, alone)
            }
            Err(reason) => self.refuse(reason),
        }
    }

    /// Discards a frame that the adapter could not put into one buffer, or found damaged.
    pub fn refuse(&mut self, reason: Discard) -> Posted {
        self.counts.discard(reason);
        Posted::Discarded(reason)
    }

    /// Counts frames that the adapter lost, because it had no buffer for them.
    pub const fn lost(&mut self, frames: u64) {
        self.counts.discard_all(Discard::NoBuffer, frames);
    }

    /// Returns what was offered, posted and discarded so far.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        &self.counts
    }

    /// Returns how many frames wait for the reader of a listener now, as far as it says.
    #[must_use]
    pub fn waiting(&self, listener: u8) -> u32 {
        let own = self.own.get(usize::from(listener)).and_then(Option::as_ref);
        own.map_or(0, |own| own.inbox.waiting())
    }

    /// Returns what was posted to one listener, and discarded because its slots were full.
    #[must_use]
    pub fn counts_of(&self, listener: u8) -> Option<&FrameCounts> {
        self.own.get(usize::from(listener))?.as_ref().map(|own| &own.counts)
    }
}

impl Own<'_> {
    /// Copies and posts a frame. Returns whether nothing else waited.
    #[inline(always)]
    fn post(
        &mut self,
        frame: &[u8],
        at: u16,
        length: u16,
        copy: impl FnOnce(u16),
    ) -> Result<bool, Discard> {
        debug_assert!(usize::from(at) + usize::from(length) <= frame.len());
        if self.free.is_empty() {
            self.inbox.reclaim(&mut self.free);
        }
        let posted = match self.free.take() {
            None if self.inbox.quota() == 0 => Err(Discard::Broken),
            None => Err(Discard::Quota),
            Some(slot) => {
                copy(slot);
                let post = Post { buffer: slot, at, length };
                let posted = self.inbox.post(post, &mut self.free);
                if posted.is_err() {
                    self.free.give(slot);
                }
                posted
            }
        };
        match posted {
            Ok(_) => self.counts.pass(),
            Err(reason) => self.counts.discard(reason),
        }
        posted
    }
}
