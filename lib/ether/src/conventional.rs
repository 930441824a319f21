//! The conventional way, for comparison: one network thread processes every frame, whoever it is
//! for, and copies its payload to a buffer of the kernel's kind. The receiver copies it again.

use crate::stack;
use crate::{Buffers, Discard, FrameCounts, FrameInbox, FreeBuffers, InboxReader, InboxWriter};
use crate::{Listener, Post, Posted, UDP};
use core::net::SocketAddrV4;

/// The bytes before the payload in a buffer of a socket: the sender's address and port.
const SENDER: usize = 6;

/// The memory that payloads wait in, as the network thread writes it.
pub trait SocketBuffers {
    /// Returns the bytes of a buffer, or nothing if there is no such buffer.
    fn buffer_mut(&mut self, number: u16) -> &mut [u8];
}

/// The thread that processes all frames: up to `L` listeners, and `B` buffers of payloads.
#[derive(Debug)]
pub struct NetworkThread<'a, const L: usize, const B: usize> {
    frames: InboxReader<'a>,
    sockets: [Option<(Listener, InboxWriter<'a>)>; L],
    free: FreeBuffers<B>,
    counts: FrameCounts,
}

impl<'a, const L: usize, const B: usize> NetworkThread<'a, L, B> {
    /// Returns the thread that reads every frame from `frames`, the inbox for the rest of a
    /// [`crate::Demux`] without listeners. So many buffers for payloads belong to it.
    #[must_use]
    pub fn new(frames: &'a FrameInbox, buffers: u16) -> NetworkThread<'a, L, B> {
        NetworkThread {
            frames: InboxReader::new(frames),
            sockets: [const { None }; L],
            free: FreeBuffers::new(buffers),
            counts: FrameCounts::default(),
        }
    }

    /// Registers a listener with the inbox of its socket, and returns its number; `None` if there
    /// is no room.
    pub fn listen(&mut self, listener: &Listener, inbox: &'a FrameInbox) -> Option<u8> {
        let place = self.sockets.iter().position(Option::is_none)?;
        let writer = InboxWriter::new(inbox, listener.quota);
        *self.sockets.get_mut(place)? = Some((*listener, writer));
        Some(place as u8)
    }

    /// Processes the oldest frame that waits. Returns the listener that its payload waits for,
    /// or `None` if no frame waits.
    ///
    /// # Errors
    /// The reason for which the frame was discarded.
    pub fn process(
        &mut self,
        frames: &impl Buffers,
        payloads: &mut impl SocketBuffers,
    ) -> Option<Result<Posted, Discard>> {
        let post = self.frames.peek()?;
        let buffer = frames.buffer(post.buffer);
        let result = match buffer.get(..usize::from(post.length)) {
            Some(frame) => self.deliver(frame, payloads),
            None => Err(Discard::Long),
        };
        self.frames.done();
        match &result {
            Ok(_) => self.counts.pass(),
            Err(reason) => self.counts.discard(*reason),
        }
        Some(result)
    }

    fn deliver(
        &mut self,
        frame: &[u8],
        payloads: &mut impl SocketBuffers,
    ) -> Result<Posted, Discard> {
        let datagram = stack::receive(frame)?;
        let wanted = |socket: &Option<(Listener, InboxWriter<'_>)>| {
            socket.as_ref().is_some_and(|(listener, _)| {
                let own = SocketAddrV4::new(listener.address, listener.port);
                listener.protocol == UDP && own == datagram.destination
            })
        };
        let number = self.sockets.iter().position(wanted).ok_or(Discard::Unregistered)?;
        let Some(Some((_, inbox))) = self.sockets.get_mut(number) else {
            return Err(Discard::Unregistered);
        };
        inbox.reclaim(&mut self.free);
        let buffer = self.free.take().ok_or(Discard::NoBuffer)?;
        let length = datagram.payload.len();
        let post = Post { buffer, at: SENDER as u16, length: length as u16 };
        let bytes = payloads.buffer_mut(buffer);
        let written = bytes.get_mut(..SENDER + length).and_then(|bytes| {
            let (sender, payload) = bytes.split_at_mut_checked(SENDER)?;
            payload.copy_from_slice(datagram.payload);
            let (address, port) = sender.split_at_mut_checked(4)?;
            address.copy_from_slice(&datagram.source.ip().octets());
            port.copy_from_slice(&datagram.source.port().to_be_bytes());
            Some(())
        });
        let posted = written.ok_or(Discard::Long).and_then(|()| inbox.post(post, &mut self.free));
        match posted {
            Ok(alone) => Ok(Posted::of(number as u8, alone)),
            Err(reason) => {
                self.free.give(buffer);
                Err(reason)
            }
        }
    }

    /// Returns what was taken, delivered and discarded so far.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        &self.counts
    }
}

/// The receiving end of a socket of the conventional way.
#[derive(Debug)]
pub struct SocketReader<'a> {
    inbox: InboxReader<'a>,
    counts: FrameCounts,
}

impl<'a> SocketReader<'a> {
    /// Returns the receiving end of a socket's inbox.
    #[must_use]
    pub fn new(inbox: &'a FrameInbox) -> SocketReader<'a> {
        SocketReader { inbox: InboxReader::new(inbox), counts: FrameCounts::default() }
    }

    /// Copies the oldest payload that waits into `into`. Returns `None` if nothing waits.
    ///
    /// # Errors
    /// The reason for which the payload was discarded.
    pub fn take(
        &mut self,
        payloads: &impl Buffers,
        into: &mut [u8],
    ) -> Option<Result<(SocketAddrV4, usize), Discard>> {
        let post = self.inbox.peek()?;
        let result = copy(payloads.buffer(post.buffer), post, into);
        self.inbox.done();
        match &result {
            Ok(_) => self.counts.pass(),
            Err(reason) => self.counts.discard(*reason),
        }
        Some(result)
    }

    /// Returns what was taken, delivered and discarded so far.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        &self.counts
    }
}

fn copy(buffer: &[u8], post: Post, into: &mut [u8]) -> Result<(SocketAddrV4, usize), Discard> {
    let (sender, rest) = buffer.split_first_chunk::<SENDER>().ok_or(Discard::Short)?;
    let length = usize::from(post.length);
    let payload = rest.get(..length).ok_or(Discard::Long)?;
    into.get_mut(..length).ok_or(Discard::Room)?.copy_from_slice(payload);
    let [a, b, c, d, e, f] = *sender;
    let source = SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([e, f]));
    Ok((source, length))
}
