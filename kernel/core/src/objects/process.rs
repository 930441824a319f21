//! Processes: their shares of the pools, and where they are in their lives.

use crate::ids::{
    ConditionTag, EventTag, MailboxId, ProcessId, ProcessTag, SemaphoreTag, ThreadId, VcpuId,
};
use crate::objects::memory::Chain;
use crate::pool::{Id, Places, Pooled, Range};
/// Where a process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ProcessState {
    /// The process's program was refused at boot.
    Refused = 0,
    /// Not started, or ended.
    Idle = 1,
    Running = 2,
    /// Ended by a fault.
    Faulted = 3,
    /// The process ends, a stage at a time, and is not all gone yet.
    Ending = 4,
}

/// One declared process. Its shares of the pools are fixed ranges.
pub struct Process {
    pub(crate) key: u64,
    /// The state of the process.
    pub state: ProcessState,
    /// Ceiling for its threads.
    pub priority: u8,
    /// Threads that have not ended.
    pub(crate) live: u16,
    pub threads: Range,
    pub(crate) semaphores: Places<SemaphoreTag>,
    pub(crate) conditions: Places<ConditionTag>,
    pub(crate) events: Places<EventTag>,
    /// VCPUs it may make.
    pub(crate) vcpus: Range,
    /// The process made something of its own: one of these four.
    pub(crate) made: bool,
    /// While it ends: the thread that is stopped last. It faults wherever it goes on, and each
    /// fault is a stage of the end, which its budget pays.
    pub(crate) reaper: ThreadId,
    /// While it ends: how many of its threads, events, conditions and semaphores are gone.
    pub(crate) reaped: u32,
    /// While it ends, or is about to because a device of it strayed: its window is hidden, so that
    /// none of its threads gets anywhere.
    pub(crate) hidden: bool,
    /// The address that the device strayed to, if that is why it is hidden.
    pub(crate) strayed_to: u64,
    /// While it ends: a fault is why, and its report waits in the buffer of the last thread.
    pub(crate) blamed: bool,
    /// The VCPU its threads run on if they do not say.
    pub(crate) vcpu: VcpuId,
    /// Heap pages it has.
    pub heap: Chain,
    /// Heap pages it may have.
    pub heap_max: u32,
    /// Segments it has attached, and devices it has mapped, one bit each.
    pub(crate) segments: u64,
    pub(crate) devices: u64,
    /// Processes that may start it.
    pub(crate) starters: u64,
    /// The process may read the counters of the machine, which tell of all others.
    pub(crate) counters: bool,
    /// The process told of its faults, and the mailbox that takes the reports.
    pub(crate) supervisor: ProcessId,
    pub(crate) reports: MailboxId,
    /// Others are supervised by it.
    pub(crate) supervises: bool,
    pub(crate) restarts_max: u32,
    pub(crate) backoff: u64,
    pub starts: u32,
    pub faults: u32,
}

impl Pooled for Process {
    type Tag = ProcessTag;
}

impl Process {
    pub const EMPTY: Process = Process {
        key: 0,
        state: ProcessState::Refused,
        priority: 0,
        live: 0,
        threads: Range::EMPTY,
        semaphores: Places::EMPTY,
        conditions: Places::EMPTY,
        events: Places::EMPTY,
        vcpus: Range::EMPTY,
        made: false,
        reaper: Id::NONE,
        reaped: 0,
        hidden: false,
        strayed_to: 0,
        blamed: false,
        vcpu: Id::NONE,
        heap: Chain::EMPTY,
        heap_max: 0,
        segments: 0,
        devices: 0,
        starters: 0,
        counters: false,
        supervisor: Id::NONE,
        reports: Id::NONE,
        supervises: false,
        restarts_max: 0,
        backoff: 0,
        starts: 0,
        faults: 0,
    };

    /// All its places in the pools of objects are free.
    pub(crate) fn forget_objects(&mut self) {
        self.events.clear();
        self.conditions.clear();
        self.semaphores.clear();
    }
}
