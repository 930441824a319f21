//! The driver's side: each received frame goes to one listener's inbox or is discarded, early and
//! without a copy.

use crate::{
    Discard, FrameCounts, FrameInbox, FreeBuffers, InboxWriter, Listener, Listeners, Match,
};
use crate::{Post, filter::ListenerRefusal};

/// The fate of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// The frame waits for the listener of this number, behind others.
    Waits(u8),
    /// The frame is the only one that waits for the listener of this number, whose reader may
    /// sleep.
    Wakes(u8),
    /// The frame is discarded. Its buffer is free.
    Discarded(Discard),
}

impl Posted {
    /// Returns the frame's fate after a post: `alone` says that nothing else waited.
    #[inline(always)]
    pub(crate) const fn of(listener: u8, alone: bool) -> Posted {
        if alone { Posted::Wakes(listener) } else { Posted::Waits(listener) }
    }

    /// Returns the number of the listener, if the frame waits for one.
    #[must_use]
    pub const fn listener(self) -> Option<u8> {
        match self {
            Posted::Waits(listener) | Posted::Wakes(listener) => Some(listener),
            Posted::Discarded(_) => None,
        }
    }
}

/// Up to `L` listeners, and the books of up to `B` buffers.
#[derive(Debug)]
pub struct Demux<'a, const L: usize, const B: usize> {
    listeners: Listeners<L>,
    inboxes: [Option<InboxWriter<'a>>; L],
    free: FreeBuffers<B>,
    counts: FrameCounts,
}

impl<'a, const L: usize, const B: usize> Demux<'a, L, B> {
    /// Returns a driver's side without listeners, to which so many buffers belong.
    #[must_use]
    pub fn new(buffers: u16) -> Demux<'a, L, B> {
        Demux {
            listeners: Listeners::default(),
            inboxes: [const { None }; L],
            free: FreeBuffers::new(buffers),
            counts: FrameCounts::default(),
        }
    }

    /// Registers a listener with its inbox, and returns its number.
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

    /// Registers the inbox of the process that gets what nobody else wants, and returns its number.
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
        let place = self.inboxes.iter().position(Option::is_none);
        place.map(|place| place as u8).ok_or(ListenerRefusal::Full)
    }

    fn open(&mut self, number: u8, inbox: &'a FrameInbox, quota: u16) {
        if let Some(place) = self.inboxes.get_mut(usize::from(number)) {
            *place = Some(InboxWriter::new(inbox, quota));
        }
    }

    /// Takes a free buffer for the adapter to receive into.
    #[inline]
    pub fn refill(&mut self) -> Option<u16> {
        match self.free.take() {
            None => {
                self.reclaim();
                self.free.take()
            }
            some => some,
        }
    }

    /// Frees all buffers that readers have done with.
    pub fn reclaim(&mut self) {
        for inbox in self.inboxes.iter_mut().flatten() {
            inbox.reclaim(&mut self.free);
        }
    }

    /// Takes in a frame that the adapter received into this buffer.
    #[inline(always)]
    pub fn arrive(&mut self, buffer: u16, frame: &[u8]) -> Posted {
        let (number, at, length) = match self.listeners.classify(frame) {
            Match::Exact { listener, at, length } => (listener, at, length),
            Match::Full { listener } => (listener, 0, frame.len() as u16),
            Match::Nobody(reason) => return self.discard(buffer, reason),
        };
        let Some(Some(inbox)) = self.inboxes.get_mut(usize::from(number)) else {
            return self.discard(buffer, Discard::Unregistered);
        };
        match inbox.post(Post { buffer, at, length }, &mut self.free) {
            Ok(alone) => {
                self.counts.pass();
                Posted::of(number, alone)
            }
            Err(reason) => self.discard(buffer, reason),
        }
    }

    /// Discards a frame that the adapter could not put into one buffer, or found damaged.
    pub fn refuse(&mut self, buffer: u16, reason: Discard) -> Posted {
        self.discard(buffer, reason)
    }

    /// Counts a frame that the adapter lost, because it had no buffer for it.
    pub const fn lost(&mut self) {
        self.counts.discard(Discard::NoBuffer);
    }

    #[cold]
    fn discard(&mut self, buffer: u16, reason: Discard) -> Posted {
        self.free.give(buffer);
        self.counts.discard(reason);
        Posted::Discarded(reason)
    }

    /// Returns what was offered, posted and discarded so far.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        &self.counts
    }

    /// Returns how many buffers are free, and how many wait in inboxes. The others are the
    /// adapter's.
    #[must_use]
    pub fn buffers(&self) -> (usize, usize) {
        let held = self.inboxes.iter().flatten().map(|inbox| inbox.held() as usize).sum();
        (self.free.len(), held)
    }
}
