//! The lazy receiver: all processing of a frame is done in the call of the program that wants it,
//! at its priority and on its budget.

use crate::stack;
use crate::{Buffers, Discard, FrameCounts, FrameInbox, InboxReader, Listener, Post};
use core::net::{Ipv4Addr, SocketAddrV4};

/// The bytes from the payload back to the sender's address, and back to its port.
const TO_ADDRESS: usize = 16;
const TO_PORT: usize = 8;

/// A payload that was copied to its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The address and port that sent it.
    pub source: SocketAddrV4,
    /// The bytes that were copied.
    pub length: usize,
    /// Whether the datagram bypassed the layers.
    pub bypassed: bool,
}

/// The receiving end of one listener.
#[derive(Debug)]
pub struct LazyReceiver<'a> {
    inbox: InboxReader<'a>,
    address: Ipv4Addr,
    port: u16,
    counts: FrameCounts,
}

impl<'a> LazyReceiver<'a> {
    /// Returns the receiving end of this listener's inbox.
    #[must_use]
    pub fn new(inbox: &'a FrameInbox, listener: &Listener) -> LazyReceiver<'a> {
        LazyReceiver {
            inbox: InboxReader::new(inbox),
            address: listener.address,
            port: listener.port,
            counts: FrameCounts::default(),
        }
    }

    /// Copies the payload of the oldest frame that waits into `into`, and gives its buffer back.
    /// Returns `None` if nothing waits.
    ///
    /// # Errors
    /// The reason for which the frame was discarded. The next call looks at the next frame.
    #[inline(always)]
    pub fn take(
        &mut self,
        buffers: &impl Buffers,
        into: &mut [u8],
    ) -> Option<Result<Received, Discard>> {
        let post = self.inbox.peek()?;
        let buffer = buffers.buffer(post.buffer);
        let result =
            if post.at == 0 { self.full(buffer, post, into) } else { bypass(buffer, post, into) };
        self.inbox.done();
        match &result {
            Ok(_) => self.counts.pass(),
            Err(reason) => self.counts.discard(*reason),
        }
        Some(result)
    }

    /// Returns the buffer of the oldest frame that waits.
    #[must_use]
    pub fn oldest(&self) -> Option<u16> {
        self.inbox.peek().map(|post| post.buffer)
    }

    /// Takes a frame through all layers.
    #[inline(never)]
    fn full(&self, buffer: &[u8], post: Post, into: &mut [u8]) -> Result<Received, Discard> {
        let frame = buffer.get(..usize::from(post.length)).ok_or(Discard::Long)?;
        let datagram = stack::receive(frame)?;
        if *datagram.destination.ip() != self.address {
            return Err(Discard::Address);
        }
        if datagram.destination.port() != self.port {
            return Err(Discard::Port);
        }
        let length = datagram.payload.len();
        into.get_mut(..length).ok_or(Discard::Room)?.copy_from_slice(datagram.payload);
        Ok(Received { source: datagram.source, length, bypassed: false })
    }

    /// Returns what was taken, delivered and discarded so far.
    #[must_use]
    pub const fn counts(&self) -> &FrameCounts {
        &self.counts
    }
}

/// Copies what the filter found. The sender stands at fixed places before the payload.
#[inline(always)]
fn bypass(buffer: &[u8], post: Post, into: &mut [u8]) -> Result<Received, Discard> {
    let (at, length) = (usize::from(post.at), usize::from(post.length));
    let (heads, rest) = buffer.split_at_checked(at).ok_or(Discard::Long)?;
    let payload = rest.get(..length).ok_or(Discard::Long)?;
    let Some(&[a, b, c, d, .., e, f, _, _, _, _, _, _]) = heads.last_chunk::<TO_ADDRESS>() else {
        return Err(Discard::Short);
    };
    into.get_mut(..length).ok_or(Discard::Room)?.copy_from_slice(payload);
    let source = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([e, f]));
    Ok(Received { source, length, bypassed: true })
}

const _: () = assert!(TO_ADDRESS - TO_PORT == 8 && TO_PORT == crate::UDP_HEAD);
