//! The socket of the slow path: it gets whole frames that no other socket of its adapter wants, for
//! a stack of protocols that runs on the budget of the program.

use crate::memory::{self, FrameSlots};
use crate::{Outbox, names, report, told};
use diapason_abi::{Errno, Key, Nanos};
use diapason_contract::ethernet::{FRAME_MAX, OUT_FRAMES, OutFrame, TAKE};
use diapason_ether::{Buffers, Discard, FRAME_MIN, FrameCounts, InboxReader, Own};
use diapason_pipe::measured::{FrameEnd, FrameGauge};
use diapason_rt::sync::Semaphore;
use diapason_rt::time;

/// A socket that the description declares with `rest`.
///
/// It measures what passes it and reports once a second, in whatever call its program is then.
pub struct RestSocket {
    inbox: InboxReader<'static>,
    slots: FrameSlots,
    ready: Semaphore,
    outbox: Outbox,
    gauge: FrameGauge,
    counts: FrameCounts,
    own: Own,
}

impl RestSocket {
    /// Opens the socket of this name. A process opens a socket once.
    ///
    /// # Errors
    /// `Absent` if the description declares no socket of this name with `rest` for this process.
    pub fn open(name: &str) -> Result<RestSocket, Errno> {
        let key = Key::new(name);
        let terms = told(|terms| terms.is_rest() && terms.name == key).ok_or(Errno::Absent)?;
        let names = names(&terms)?;
        let (inbox, slots) = memory::inbox(names.inbox, terms.quota)?;
        Ok(RestSocket {
            inbox: InboxReader::new(inbox),
            slots,
            ready: Semaphore::open(names.ready)?,
            outbox: Outbox::open(&terms, names)?,
            gauge: FrameGauge::new(FrameEnd::Program, terms.number),
            counts: FrameCounts::default(),
            own: Own { mac: terms.mac, address: terms.address },
        })
    }

    /// Returns the addresses of the adapter.
    #[must_use]
    pub const fn own(&self) -> Own {
        self.own
    }

    /// Takes the oldest frame that waits, if there is one, and copies it into `into`. Returns its
    /// length. A frame for which `into` has no room is counted and passed over.
    pub fn try_recv(&mut self, into: &mut [u8]) -> Option<usize> {
        report(&mut self.gauge, &self.counts, time::now());
        loop {
            let post = self.inbox.peek()?;
            let came = self.slots.stamped(post.buffer);
            let length = usize::from(post.length);
            let copied = time::work(TAKE, || {
                let frame = self.slots.buffer(post.buffer).get(..length)?;
                into.get_mut(..length)?.copy_from_slice(frame);
                Some(length)
            });
            self.inbox.done();
            let (Some(length), Some(came)) = (copied, came) else {
                self.counts.discard(Discard::Room);
                continue;
            };
            self.counts.pass();
            self.gauge.took(self.counts.passed, time::now() - came);
            return Some(length);
        }
    }

    /// Waits until a frame comes or `deadline` is there.
    ///
    /// # Errors
    /// Those of waiting, but for the deadline.
    pub fn wait(&mut self, deadline: Nanos) -> Result<(), Errno> {
        loop {
            let now = time::now();
            report(&mut self.gauge, &self.counts, now);
            let due = self.gauge.due(now);
            match self.ready.take(deadline.min(due)) {
                Err(Errno::TimedOut) if due < deadline => {}
                Err(Errno::TimedOut) => return Ok(()),
                taken => return taken,
            }
        }
    }

    /// Returns whether one more frame can be sent now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.outbox.frames.len().is_ok_and(|waiting| waiting < OUT_FRAMES)
    }

    /// Sends the frame that `write` writes: `length` bytes, padded to the shortest frame. Returns
    /// what `write` returned, and `Full` if too many frames wait to be sent.
    pub fn send<R>(
        &mut self,
        length: usize,
        write: impl FnOnce(&mut [u8]) -> R,
    ) -> (R, Result<(), Errno>) {
        let mut frame = OutFrame { length: 0, spare: 0, data: [0; _] };
        let length = length.min(FRAME_MAX);
        let result = write(frame.data.get_mut(..length).unwrap_or_default());
        frame.length = length.max(FRAME_MIN) as u32;
        (result, self.outbox.send(&frame))
    }
}
