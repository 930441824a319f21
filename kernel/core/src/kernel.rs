//! The kernel of one core: its state, and the words in which it is entered and answers.

use crate::alarms::Alarms;
use crate::ids::{ProcessId, ThreadId};
use crate::objects::condition::Condition;
use crate::objects::event::Event;
use crate::objects::mailbox::{Mailbox, Message};
use crate::objects::memory::{Chain, Device, Frame, Segment};
use crate::objects::process::Process;
use crate::objects::semaphore::Semaphore;
use crate::objects::thread::Thread;
use crate::objects::vcpu::Vcpu;
use crate::pool::{Id, Pool, Pooled, Range};
use crate::promise::{Fees, Promise};
use crate::scheduler::Scheduler;
use diapason_abi::recorder::{Entry, EntryKind};
use diapason_abi::{Errno, FaultCause, Handle, Key, Kind, Nanos};

/// The words a call came with.
pub type Arguments = [u64; 5];

/// The mistake of the running thread, and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub cause: FaultCause,
    /// The address or argument concerned.
    pub address: u64,
    /// Address of the instruction.
    pub instruction: u64,
}

impl Fault {
    /// Returns the fault of a receiver that has no memory for its message at `address`.
    #[must_use]
    #[inline(always)]
    pub const fn undelivered(address: u64) -> Fault {
        Fault { cause: FaultCause::BadAddress, address, instruction: 0 }
    }
}

/// Why the kernel was entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The first entry: start what the description starts at boot.
    Boot,
    /// The alarm rang, or the machine is not sure: early, late and spurious ones do no harm.
    Timer,
    /// The interrupt of a declared device.
    Irq(u16),
    /// The machine stopped an access, or an interrupt, of a device that the description does not
    /// grant: the device, the address, and the rest of what the machine knows.
    Stray(u16, u64, u64),
    /// A system call that [`Kernel::quick`] did not complete.
    Syscall(u64, Arguments),
    /// The running thread faulted.
    Fault(Fault),
}

impl Cause {
    /// This entry and what was decided, for the flight recorder.
    #[must_use]
    pub fn entry(&self, now: Nanos, decision: &Decision) -> Entry {
        let (kind, number, arguments) = match *self {
            Cause::Boot => (EntryKind::Boot, 0, [0; 5]),
            Cause::Timer => (EntryKind::Timer, 0, [0; 5]),
            Cause::Irq(device) => (EntryKind::Irq, 0, [u64::from(device), 0, 0, 0, 0]),
            Cause::Stray(device, address, fault) => {
                (EntryKind::Stray, 0, [u64::from(device), address, fault, 0, 0])
            }
            Cause::Syscall(number, arguments) => (EntryKind::Syscall, number, arguments),
            Cause::Fault(f) => {
                (EntryKind::Fault, 0, [f.cause as u64, f.address, f.instruction, 0, 0])
            }
        };
        Entry {
            kind,
            // No call has such a number; the kernel refuses all of them alike.
            detail: number.min(0xfffe) as u16,
            run: decision.run.index(),
            has_result: decision.result.is_some(),
            now: now.0,
            arguments,
            result: decision.result.unwrap_or(0),
            alarm: decision.alarm.0,
        }
    }
}

/// The next thread to run, and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The thread to run; none: idle.
    pub run: ThreadId,
    /// The result of its pending call.
    pub result: Option<u64>,
    /// The thread's received message goes to this address of its memory first; 0 if there is none.
    /// If that fails, the thread faults before it goes on.
    pub deliver_to: u64,
    /// Call again at this time.
    pub alarm: Nanos,
}

impl Decision {
    /// Returns the fault of a receiver that has no memory for its message.
    #[must_use]
    #[inline(always)]
    pub const fn undelivered(&self) -> Fault {
        Fault::undelivered(self.deliver_to)
    }
}

/// A call did not go a short way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Longer {
    /// It goes the long one: [`Kernel::enter`]. Nothing was done, but that who pays may be charged,
    /// and for the message buffer of who waits for its message: what is in it counts for nothing.
    Way,
    /// The call goes the long one and will end in a fault: the caller has no such memory.
    BadAddress(u64),
    /// Another thread runs, and another VCPU pays, or none: [`Kernel::resume_running`] says how.
    Over,
    /// The thread that came is less urgent: the caller goes on with this result.
    Stays(u64),
}

/// How a call leaves its thread.
pub(crate) enum Flow {
    /// A call that ends with this result.
    Done(u64),
    /// A call that ends with this result and changed nothing that decides who runs: no thread, no
    /// budget, no alarm. The caller's process lost no memory.
    Same(u64),
    /// The thread waits, or has ended.
    Away,
}

/// Why a call was refused.
pub(crate) enum Refused {
    /// Something a correct program must expect.
    Errno(Errno),
    /// Something no correct program does: the process ends.
    Misuse(FaultCause, u64),
}

/// The outcome of a call.
pub(crate) type Step = Result<Flow, Refused>;

/// Everything the kernel of one core knows. The fields used most come first, where the instructions
/// that reach them are short.
#[repr(C)]
pub struct Kernel<'a> {
    /// Threads, and the objects of most calls.
    pub threads: Pool<'a, Thread>,
    pub(crate) semaphores: Pool<'a, Semaphore>,
    pub(crate) mailboxes: Pool<'a, Mailbox>,
    pub(crate) events: Pool<'a, Event>,
    pub vcpus: Pool<'a, Vcpu>,
    /// Time of this entry.
    pub(crate) now: Nanos,
    /// The running thread's process, and its bit in grants.
    pub(crate) grant: u64,
    pub(crate) process: ProcessId,
    /// The ready threads and the running one.
    pub scheduler: Scheduler,
    pub(crate) alarms: Alarms,
    pub processes: Pool<'a, Process>,
    pub(crate) conditions: Pool<'a, Condition>,
    pub(crate) messages: Pool<'a, Message>,
    pub(crate) segments: Pool<'a, Segment>,
    pub(crate) devices: Pool<'a, Device>,
    pub(crate) frames: Pool<'a, Frame>,
    pub(crate) entries: u64,
    /// True if no alarm rings in this entry: it is long already, or a call for which no VCPU pays,
    /// which may have a short way. A due alarm makes the machine call again.
    pub(crate) quiet: bool,
    /// The VCPU that pays was not charged up to `now`. A change of a VCPU or an alarm charges it
    /// first (`pay_up`).
    pub(crate) unsettled: bool,
    pub(crate) free_frames: Chain,
    /// The costs of alarms and unplanned switches for the VCPUs that cause them.
    pub(crate) fees: Fees,
    /// The promises to VCPUs.
    pub(crate) promise: Promise,
    /// The most instructions of rounds in a stage of the end of a process. Tests change it.
    pub stage: u64,
    /// How many semaphores and conditions have names: they come first in their pools.
    pub(crate) named_semaphores: u16,
    pub(crate) named_conditions: u16,
}

impl Kernel<'_> {
    /// The thread that runs, and whose call this is.
    #[inline(always)]
    pub(crate) fn running(&self) -> ThreadId {
        self.scheduler.running
    }

    /// Returns the refusal of a handle that names nothing the caller may use. It is stale if it was
    /// given out once, to this process, for this kind of object, else misused.
    #[cold]
    #[inline(never)]
    pub(crate) fn stale_or_misused(
        &self,
        handle: Handle,
        kind: Kind,
        generation: Option<u32>,
    ) -> Refused {
        let issued = 1..=generation.unwrap_or(0);
        if handle.kind_bits() == kind as u16 && issued.contains(&handle.generation()) {
            Refused::Errno(Errno::Gone)
        } else {
            Refused::Misuse(FaultCause::BadHandle, handle.0)
        }
    }

    /// The declared object of a pool that has the name `key` and is granted to the running process;
    /// `of` tells names and grants.
    #[inline(always)]
    pub(crate) fn granted<T: Pooled>(
        &self,
        pool: &Pool<'_, T>,
        key: u64,
        of: impl Fn(&T) -> (u64, u64),
    ) -> Result<Id<T::Tag>, Refused> {
        self.granted_among(pool, pool.len(), key, of)
    }

    /// As [`Kernel::granted`], if only the first so many objects of the pool have names.
    #[inline(always)]
    pub(crate) fn granted_among<T: Pooled>(
        &self,
        pool: &Pool<'_, T>,
        count: u16,
        key: u64,
        of: impl Fn(&T) -> (u64, u64),
    ) -> Result<Id<T::Tag>, Refused> {
        let grant = if key == Key::PRIVATE.0 { 0 } else { self.grant };
        let found = pool.find_in(Range { first: 0, count }, |object| {
            let (own, allowed) = of(object);
            own == key && allowed & grant != 0
        });
        found.ok_or(Refused::Misuse(FaultCause::BadGrant, key))
    }

    /// Refuses a call that wants to wait until `deadline` if it may not.
    pub(crate) fn may_wait(&self, deadline: Nanos) -> Result<(), Refused> {
        if deadline > self.now {
            Ok(())
        } else if deadline == Nanos::ZERO {
            Err(Refused::Errno(Errno::WouldBlock))
        } else {
            Err(Refused::Errno(Errno::TimedOut))
        }
    }
}
