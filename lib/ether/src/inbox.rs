//! The queue of one listener: numbers of buffers, from the thread that posts them to one reader.
//!
//! An inbox is shared memory, and its reader is not trusted: the writer keeps its own books of
//! which buffers wait, and believes the reader only how many it has taken. A reader that writes
//! anything else loses its own frames.

use crate::Discard;
use crate::release::GateAhead;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

/// The most frames that can wait in an inbox.
pub const INBOX_DEPTH: usize = 128;
const MASK: u32 = INBOX_DEPTH as u32 - 1;

/// The shared memory of one listener. Zeroed memory is an empty inbox.
#[derive(Debug)]
#[repr(C)]
pub struct FrameInbox {
    /// How many posts were written. Only the writer changes it.
    put: AtomicU32,
    /// How many posts the reader has done with. Only the reader changes it.
    taken: AtomicU32,
    posts: [AtomicU64; INBOX_DEPTH],
    /// The time of the gates behind which frames of the reader wait. The server tells it.
    pub gates: GateAhead,
}

impl FrameInbox {
    /// Returns an empty inbox whose counts wrap after ten posts. In zeroed memory they begin at 0,
    /// and wrap after more posts than any test makes.
    #[must_use]
    pub const fn new() -> FrameInbox {
        let posts = [const { AtomicU64::new(0) }; INBOX_DEPTH];
        let gates = GateAhead::new();
        let [put, taken] = [const { AtomicU32::new(u32::MAX - 9) }; 2];
        FrameInbox { put, taken, posts, gates }
    }
}

impl Default for FrameInbox {
    fn default() -> Self {
        FrameInbox::new()
    }
}

/// The place of one frame, or of the payload in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Post {
    /// The number of the buffer.
    pub buffer: u16,
    /// The place of the payload in the buffer; 0: the full stack has to look for it.
    pub at: u16,
    /// The bytes of the payload, or of the whole frame.
    pub length: u16,
}

impl Post {
    #[inline(always)]
    const fn pack(self) -> u64 {
        self.buffer as u64 | (self.at as u64) << 16 | (self.length as u64) << 32
    }

    #[inline(always)]
    const fn unpack(bits: u64) -> Post {
        Post { buffer: bits as u16, at: (bits >> 16) as u16, length: (bits >> 32) as u16 }
    }
}

/// The numbers of the buffers that nobody holds: up to `N`.
#[derive(Clone, Debug)]
pub struct FreeBuffers<const N: usize> {
    numbers: [u16; N],
    count: usize,
}

impl<const N: usize> FreeBuffers<N> {
    /// Returns the numbers from 0 on, as many as there are buffers. More than `N` are left out.
    #[must_use]
    pub fn new(buffers: u16) -> FreeBuffers<N> {
        let mut numbers = [0; N];
        (0..).zip(&mut numbers).for_each(|(number, place)| *place = number);
        FreeBuffers { numbers, count: N.min(usize::from(buffers)) }
    }

    /// Returns how many buffers are free.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether no buffer is free.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes a free buffer.
    #[inline(always)]
    pub fn take(&mut self) -> Option<u16> {
        let last = self.count.checked_sub(1)?;
        let number = *self.numbers.get(last)?;
        self.count = last;
        Some(number)
    }

    /// Gives a buffer back. One that is already free is not noticed; the callers keep books.
    #[inline(always)]
    pub(crate) fn give(&mut self, number: u16) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }
}

/// The writing end of an inbox, with the writer's own books.
#[derive(Debug)]
pub struct InboxWriter<'a> {
    inbox: &'a FrameInbox,
    quota: u32,
    put: u32,
    /// How many posts came back to the free buffers.
    seen: u32,
    /// The buffers of the posts that wait, by the place of their post.
    held: [u16; INBOX_DEPTH],
    broken: bool,
}

impl<'a> InboxWriter<'a> {
    /// Returns the writing end of an inbox. At most `quota` frames wait in it. Frames of a writer
    /// before are forgotten, and a reader that is there already goes on.
    #[must_use]
    pub fn new(inbox: &'a FrameInbox, quota: u16) -> InboxWriter<'a> {
        let taken = inbox.taken.load(Acquire);
        inbox.put.store(taken, Release);
        let quota = u32::from(quota).min(INBOX_DEPTH as u32);
        let held = [0; INBOX_DEPTH];
        InboxWriter { inbox, quota, put: taken, seen: taken, held, broken: false }
    }

    /// Returns how many buffers this inbox holds, by the writer's books.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.put.wrapping_sub(self.seen)
    }

    /// Returns how many posts the reader has not done with, as far as it says.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.put.wrapping_sub(self.inbox.taken.load(Acquire)).min(self.held())
    }

    /// Returns how many buffers this inbox may hold.
    #[must_use]
    pub const fn quota(&self) -> u32 {
        self.quota
    }

    /// Posts a frame, and returns whether its reader may sleep because nothing else waited.
    /// Buffers that the reader has done with may be free afterwards.
    ///
    /// # Errors
    /// If the quota is used up, or the reader is broken. The buffer still belongs to the caller.
    #[inline(always)]
    pub fn post<const N: usize>(
        &mut self,
        post: Post,
        free: &mut FreeBuffers<N>,
    ) -> Result<bool, Discard> {
        if self.held() >= self.quota {
            self.reclaim(free);
            if self.held() >= self.quota {
                return Err(if self.broken { Discard::Broken } else { Discard::Quota });
            }
        }
        let place = (self.put & MASK) as usize;
        self.held[place] = post.buffer;
        self.inbox.posts[place].store(post.pack(), Relaxed);
        let before = self.put;
        self.put = before.wrapping_add(1);
        self.inbox.put.store(self.put, Release);
        // The reader looks for posts after it says what it took; one of the two sees the other.
        fence(SeqCst);
        Ok(self.inbox.taken.load(Relaxed) == before)
    }

    /// Frees the buffers that the reader has done with.
    pub fn reclaim<const N: usize>(&mut self, free: &mut FreeBuffers<N>) {
        let taken = self.inbox.taken.load(Acquire);
        if self.broken || taken.wrapping_sub(self.seen) > self.held() {
            // The buffers stay where they are: the reader may still look at them.
            (self.broken, self.quota) = (true, 0);
            return;
        }
        while self.seen != taken {
            free.give(self.held[(self.seen & MASK) as usize]);
            self.seen = self.seen.wrapping_add(1);
        }
    }
}

/// The reading end of an inbox.
#[derive(Debug)]
pub struct InboxReader<'a> {
    inbox: &'a FrameInbox,
    taken: u32,
}

impl<'a> InboxReader<'a> {
    /// Returns the reading end of an inbox. It has one.
    #[must_use]
    pub fn new(inbox: &'a FrameInbox) -> InboxReader<'a> {
        InboxReader { inbox, taken: inbox.taken.load(Relaxed) }
    }

    /// Returns the oldest post that waits. It waits until [`InboxReader::done`].
    #[must_use]
    #[inline(always)]
    pub fn peek(&self) -> Option<Post> {
        if self.inbox.put.load(Acquire) == self.taken {
            fence(SeqCst);
            if self.inbox.put.load(Acquire) == self.taken {
                return None;
            }
        }
        let place = (self.taken & MASK) as usize;
        Some(Post::unpack(self.inbox.posts[place].load(Relaxed)))
    }

    /// Gives the oldest buffer back to the writer.
    #[inline(always)]
    pub fn done(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.inbox.taken.store(self.taken, Release);
    }
}

/// The memory of the buffers, as a reader sees it.
pub trait Buffers {
    /// Returns the bytes of a buffer, or nothing if there is no such buffer.
    fn buffer(&self, number: u16) -> &[u8];
}
