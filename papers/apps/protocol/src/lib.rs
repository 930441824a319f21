//! The programs of the experiment share this: the ways, the flows, the adapters, and the memory in
//! which frames and results lie.

#![no_std]

use core::net::{Ipv4Addr, SocketAddrV4};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use diapason_ether::adapter::BUFFER_BYTES;
use diapason_ether::{Buffers, FrameInbox, Listener, SocketBuffers, UdpFrame};
pub use diapason_netlib::card::{CardReceiver, CardSender, start};
use diapason_rt::memory::Segment;
use diapason_rt::{Errno, Nanos};

/// The buffers for frames, and as many for payloads.
pub const BUFFERS: u16 = 128;
/// The most frames that wait for one listener.
pub const QUOTA: u16 = 16;
/// The most frames that wait for the network thread.
pub const QUOTA_OF_ALL: u16 = 48;
/// The addresses of the two adapters.
pub const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Receptions of which the times are kept.
pub const RECEPTIONS: usize = 101;
/// The period of the more urgent flow.
pub const PERIOD: Nanos = Nanos(1_500_000);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORTS: [u16; 2] = [5_000, 5_001];

/// The way of a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handling {
    /// A network thread processes everything.
    Conventional,
    /// The receiver processes its frames through all layers.
    Lazy,
    /// The receiver takes its frames past the layers.
    Bypass,
    /// As lazy, but the driver copies each frame out of the adapter's buffer.
    TwoCopies,
}

impl Handling {
    /// Returns the way that an argument names.
    #[must_use]
    pub const fn of(argument: u64) -> Handling {
        match argument {
            0 => Handling::Conventional,
            1 => Handling::Lazy,
            2 => Handling::Bypass,
            _ => Handling::TwoCopies,
        }
    }
}

/// Returns the listener of this number.
#[must_use]
pub fn listener(number: usize, way: Handling) -> Listener {
    let port = PORTS.get(number).copied().unwrap_or(1);
    Listener { real_time: way == Handling::Bypass, ..Listener::udp(OWN, port, QUOTA) }
}

/// Returns the flow to the listener of this number, or past the receiving adapter.
#[must_use]
pub fn flow(number: usize, past: bool) -> UdpFrame {
    let [receiver, sender] = MACS;
    UdpFrame {
        source_mac: sender,
        destination_mac: if past { [2, 0, 0, 0, 0, 9] } else { receiver },
        tag: None,
        source: SocketAddrV4::new(OTHER, 4_000),
        destination: SocketAddrV4::new(OWN, PORTS.get(number).copied().unwrap_or(1)),
        checksum: false,
    }
}

/// Returns a segment that stays attached for the life of the process.
fn kept(name: &str) -> Result<*mut u8, Errno> {
    let segment = Segment::attach(name)?;
    let address = segment.address();
    core::mem::forget(segment);
    Ok(address)
}

/// Buffers of 2,048 bytes in a segment, whose owner is whoever has their number.
#[derive(Clone, Copy, Debug)]
pub struct FramePool(*mut u8);

impl FramePool {
    /// Attaches the buffers in this segment, which has at least [`BUFFERS`].
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach(name: &str) -> Result<FramePool, Errno> {
        kept(name).map(FramePool)
    }

    /// Returns the place of a buffer's first byte in the segment.
    #[must_use]
    pub fn place(number: u16) -> usize {
        usize::from(number % BUFFERS) * BUFFER_BYTES
    }
}

impl Buffers for FramePool {
    #[inline(always)]
    fn buffer(&self, number: u16) -> &[u8] {
        // SAFETY: the segment has BUFFERS buffers and stays attached. Neither the adapter nor
        // another program writes to a buffer while somebody has its number in hand.
        unsafe { core::slice::from_raw_parts(self.0.add(FramePool::place(number)), BUFFER_BYTES) }
    }
}

impl SocketBuffers for FramePool {
    fn buffer_mut(&mut self, number: u16) -> &mut [u8] {
        // SAFETY: as above; only the one who took this number from the free buffers writes.
        unsafe {
            core::slice::from_raw_parts_mut(self.0.add(FramePool::place(number)), BUFFER_BYTES)
        }
    }
}

/// The inboxes and the results.
#[derive(Debug)]
#[repr(C)]
pub struct Common {
    /// Written where what is measured begins, and where it has ended: a plugin of QEMU looks at the
    /// first two words.
    pub marks: [AtomicU64; 2],
    /// The inbox of each listener, and that of the network thread.
    pub inboxes: [FrameInbox; 3],
    /// Whether the driver is ready.
    pub ready: AtomicU64,
    /// The payload bytes that each reader received.
    pub bytes: [AtomicU64; 2],
    /// Frames that were discarded anywhere.
    pub discarded: AtomicU64,
    /// When the frame on its way to the first reader was sent, by the processor's counter.
    pub sent: AtomicU64,
    /// How long it took until the first reader had a datagram, in counts of the processor.
    pub receptions: [AtomicU64; RECEPTIONS],
    /// The number of these times.
    pub received: AtomicU64,
}

const _: () = assert!(size_of::<Common>() <= 8_192);

impl Common {
    /// Attaches the shared memory.
    ///
    /// # Errors
    /// None where the description grants it.
    pub fn attach() -> Result<&'static Common, Errno> {
        let address = kept("shared")?;
        // SAFETY: the segment is this large, zeroed at first, aligned to a page, stays attached,
        // and everything in it is made of atomics.
        Ok(unsafe { &*address.cast::<Common>() })
    }

    /// Notes that the first reader has a datagram now.
    #[inline(always)]
    pub fn note(&self) {
        let took = stamp().saturating_sub(self.sent.load(Relaxed));
        let count = self.received.load(Relaxed);
        if let Some(slot) = self.receptions.get(count as usize) {
            slot.store(took, Relaxed);
            self.received.store(count + 1, Relaxed);
        }
    }
}

/// Returns the processor's counter: instructions, under QEMU's `-icount shift=0`.
#[inline(always)]
#[must_use]
pub fn stamp() -> u64 {
    // SAFETY: reading the counter has no effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}
