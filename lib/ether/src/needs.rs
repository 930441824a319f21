//! How many buffers the single copy needs: enough that a program which reads in time never makes
//! the adapter lose a frame.
//!
//! [EMERALDS 1998, §6.3.3] keeps frames in the adapter's ring, and copies them out when the ring
//! comes round to one that still waits. An adapter whose descriptors point to any buffer needs no
//! such copy: each listener holds its own quota, and the ring always has others. So the sum of all
//! quotas and the ring is enough, whatever other senders do.

/// The traffic to one listener, and how it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowReading {
    /// The most frames that come at once.
    pub burst: u32,
    /// The time between two frames in the long run, in ns.
    pub interval_ns: u64,
    /// The longest time from the post of a frame until the reader gives its buffer back, in ns.
    pub holds_ns: u64,
}

/// The wire, and the driver thread that serves its adapter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverService {
    /// The shortest time between two frames on the wire, in ns.
    pub frame_ns: u64,
    /// The longest time in which the driver thread does not refill the ring, in ns.
    pub away_ns: u64,
}

/// The reason why a number cannot be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeedsRefusal {
    /// A time between frames is 0, or a burst is: the traffic has no bound.
    Unbounded,
    /// A listener needs more buffers than an inbox holds: its number, and how many.
    Quota(usize, u64),
    /// The ring needs more descriptors than the adapter has.
    Ring(u64),
}

/// The most descriptors in a ring of the 82574L that are worth their memory here.
pub const RING_MAX: u64 = 4_096;

impl FlowReading {
    /// Returns how many frames can wait at once: those that come, both ends included, in the time
    /// that the reader holds one and the driver takes to post it.
    ///
    /// # Errors
    /// If the traffic has no bound.
    pub fn quota(&self, service: &DriverService) -> Result<u64, NeedsRefusal> {
        if self.interval_ns == 0 || self.burst == 0 {
            return Err(NeedsRefusal::Unbounded);
        }
        let window = self.holds_ns.saturating_add(service.away_ns);
        Ok(u64::from(self.burst) + window / self.interval_ns)
    }
}

impl DriverService {
    /// Returns how many descriptors the ring needs: a multiple of eight, and one more than the
    /// frames that come while the driver is away, because a full ring looks like an empty one.
    ///
    /// # Errors
    /// If the wire has no bound, or the adapter has no such ring.
    pub fn ring(&self) -> Result<u64, NeedsRefusal> {
        if self.frame_ns == 0 {
            return Err(NeedsRefusal::Unbounded);
        }
        let frames = 1 + self.away_ns / self.frame_ns;
        let ring = (frames + 1).next_multiple_of(8);
        if ring > RING_MAX { Err(NeedsRefusal::Ring(ring)) } else { Ok(ring) }
    }
}

/// Returns how many buffers all listeners and the ring need together.
///
/// # Errors
/// If a listener or the ring has no bound, or too high a one.
pub fn buffers(service: &DriverService, listeners: &[FlowReading]) -> Result<u64, NeedsRefusal> {
    let mut sum = service.ring()?;
    for (number, listener) in listeners.iter().enumerate() {
        let quota = listener.quota(service)?;
        if quota > crate::INBOX_DEPTH as u64 {
            return Err(NeedsRefusal::Quota(number, quota));
        }
        sum += quota;
    }
    Ok(sum)
}
