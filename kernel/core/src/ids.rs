//! Names of objects: the places in their pools, one type for each kind.

use crate::pool::Id;
/// Tells ids of threads apart from others.
pub enum ThreadTag {}
/// The id of a thread.
pub type ThreadId = Id<ThreadTag>;

/// Tells ids of processes apart from others.
pub enum ProcessTag {}
/// The id of a process: its place in the description.
pub type ProcessId = Id<ProcessTag>;

/// Tells ids of semaphores apart from others.
pub enum SemaphoreTag {}
/// The id of a semaphore.
pub type SemaphoreId = Id<SemaphoreTag>;

/// Tells ids of condition variables apart from others.
pub enum ConditionTag {}
/// The id of a condition variable.
pub type ConditionId = Id<ConditionTag>;

/// Tells ids of mailboxes apart from others.
pub enum MailboxTag {}
/// The id of a mailbox.
pub type MailboxId = Id<MailboxTag>;

/// Tells ids of message slots apart from others.
pub enum MessageTag {}
/// The id of a message slot.
pub type MessageId = Id<MessageTag>;

/// Tells ids of events apart from others.
pub enum EventTag {}
/// The id of an event.
pub type EventId = Id<EventTag>;

/// Tells ids of frames apart from others.
pub enum FrameTag {}
/// The id of a frame.
pub type FrameId = Id<FrameTag>;

/// Tells ids of segments apart from others.
pub enum SegmentTag {}
/// The id of a segment.
pub type SegmentId = Id<SegmentTag>;

/// Tells ids of devices apart from others.
pub enum DeviceTag {}
/// The id of a device.
pub type DeviceId = Id<DeviceTag>;

/// Tells ids of VCPUs apart from others.
pub enum VcpuTag {}
/// The id of a VCPU.
pub type VcpuId = Id<VcpuTag>;

impl ProcessId {
    /// Returns the process's bit in grants.
    #[inline(always)]
    pub(crate) fn grant(self) -> u64 {
        1 << (self.index() & 63)
    }
}
