//! System call numbers, with the meaning of their arguments.
//!
//! A call carries its number in `rax` and up to five words in `rdi`, `rsi`, `rdx`, `r10`, `r8`;
//! the result comes back in `rax` (see [`crate::error`]). Deadlines are absolute [`crate::Nanos`]:
//! zero means "do not block", `u64::MAX` "wait for ever".
//!
//! A `hint` is the handle of the mutex that the caller locks after this call, `u64::MAX` if there
//! is none or it is not known. It changes who runs first, never a result.

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// The requests that a program can make of the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum CallNumber { $($(#[$doc])* $name = $number,)* }

        impl CallNumber {
            /// Every call, in numeric order without gaps.
            pub const ALL: &'static [CallNumber] = &[$(CallNumber::$name,)*];

            /// Returns the call with this number, if there is one.
            #[must_use]
            #[inline(always)]
            pub const fn decode(number: u64) -> Option<CallNumber> {
                match number { $($number => Some(CallNumber::$name),)* _ => None }
            }

            /// Returns its name, for traces and tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(CallNumber::$name => stringify!($name),)* }
            }
        }
    };
}

calls! {
    /// `()`: nothing; the floor of every measurement.
    Null = 0,
    /// `()`: let the next thread of the same priority run.
    Yield = 1,
    /// `(code)`: end the calling thread.
    ThreadExit = 2,
    /// `(entry, argument, priority, name, vcpu)` → thread handle. Starts `entry(argument)`, on the
    /// VCPU that its process has by default if `vcpu` is 0.
    ThreadCreate = 3,
    /// `(thread, deadline, hint)` → exit code of a thread of the same process.
    ThreadJoin = 4,
    /// `(thread)`: nobody will join it.
    ThreadDetach = 5,
    /// `(time, hint)`: sleep until then.
    SleepUntil = 6,
    /// `(first_release, period, relative_deadline, hint)`: the caller becomes a periodic task.
    JobsStart = 7,
    /// `(hint)` → releases passed over. Ends this job and waits for the next release.
    JobWait = 8,
    /// `(key, initial)` → semaphore handle; see [`MUTEX`].
    SemCreate = 9,
    /// `(semaphore)`: its waiters get `Gone`.
    SemDelete = 10,
    /// `(semaphore, deadline, hint)` → 0, or [`OWNER_DIED`].
    SemLock = 11,
    /// `(semaphore)` → 0, or [`OWNER_DIED`]; `WouldBlock` if it is not free.
    SemTryLock = 12,
    /// `(semaphore)`: release, or signal.
    SemUnlock = 13,
    /// `(key)` → condition handle.
    CvCreate = 14,
    /// `(condition)`: its waiters get `Gone`, holding their mutex again.
    CvDelete = 15,
    /// `(condition, mutex, deadline)`: release the mutex, wait, hold it again.
    CvWait = 16,
    /// `(condition, most)` → waiters woken, the most urgent first, up to `SIGNAL_BATCH`.
    CvSignal = 17,
    /// `(key, event)` → mailbox handle. `event` (or 0) is raised at each arrival.
    MboxCreate = 18,
    /// `(mailbox)`: its waiters get `Gone`, messages in it are lost.
    MboxDelete = 19,
    /// `(mailbox, address, length, priority, deadline)`: waits while the mailbox is full.
    MboxSend = 20,
    /// `(mailbox, address, deadline, hint)` → `length << 32 | priority`. `address` has room for
    /// `MESSAGE_BYTES`; only `length` are written.
    MboxReceive = 21,
    /// `(key)` → address, or with [`PARTIAL`] set the pages ready so far: call again.
    ShmAttach = 22,
    /// `(key)`: the last process to detach frees the memory.
    ShmDetach = 23,
    /// `(pages)` → address of the new pages, zeroed; at most `PAGES_PER_CALL`.
    MemAlloc = 24,
    /// `()` → event handle of a stopped timer.
    TimerCreate = 25,
    /// `(event, first, period)`: period 0 is a single shot; first 0 stops it.
    TimerStart = 26,
    /// `()` → event handle, raised only by what it is attached to.
    EventCreate = 27,
    /// `(event, deadline, hint)` → number of occurrences since the last wait.
    EventWait = 28,
    EventDelete = 29,
    /// `(key)` → address of the granted device's registers, with their [pages](mapped); `Absent` if
    /// the machine has no such device.
    MapDevice = 30,
    /// `(key)` → event handle of the granted device's interrupt, or `Absent` as above.
    SetIsr = 31,
    /// `(key, mailbox, address, deadline)`: start a process of the archive that is not running.
    /// Unless `mailbox` is 0, then go on as `MboxReceive`.
    ProcCreate = 32,
    /// `(key)`: end a process the caller supervises.
    ProcKill = 33,
    /// `(destination, source, length)`: copy in one piece, for slow readers of state messages.
    ReadSlow = 34,
    /// `(address, length)`: one line of text to the console; or, if `length` is [`MEASUREMENT`],
    /// the words of a [`Record::Measured`](crate::record::Record::Measured), which the kernel puts
    /// the number of the calling process in front of.
    Log = 35,
    /// `(which, index)` → a counter of the kernel; see [`Counter`].
    Count = 36,
    /// `(address)`: the program gives up (a panic); its process ends.
    Fail = 37,
    /// `(key, budget, period, replenishments, background)` → VCPU handle: of a declared one, or of
    /// a new one that is admitted now.
    VcpuCreate = 38,
    /// `(vcpu, budget, period)`: another budget and period, if they are admitted.
    VcpuSet = 39,
    /// `(vcpu)`: a private one without threads goes.
    VcpuDelete = 40,
    /// `(period)` → the largest budget that would be admitted at that period, in ns.
    VcpuFit = 41,
    /// `(send, address, length << 32 | priority, receive, deadline)` → as `MboxReceive`. Sends
    /// `length` bytes at `address` without waiting (`Full`), then waits at the other mailbox
    /// `receive` for a message into the same `address`, which has room for `MESSAGE_BYTES`. A call
    /// that is refused sends nothing; what ends the wait (`TimedOut`, `Gone`) comes after sending.
    /// With a mailbox that has a server on both sides, the server answers the request that it took
    /// last and waits for the next one, and everybody else asks, and the server runs in that
    /// thread's place.
    MboxCall = 42,
    /// `(key)` → where devices find a segment that is declared for them (`dma`) and that the caller
    /// has attached, with its [pages](mapped); `Gone` if it is not attached.
    ShmBus = 43,
    /// `(key)`: the doorbell of this name rings, and its event is raised on the core that answers
    /// it. It rings once, however often that is asked before it is heard.
    Ring = 44,
}

impl CallNumber {
    /// Returns the index of the word in which a blocking call names the mutex that its thread locks
    /// next, if the call has one. A word of [`NO_HINT`] names none.
    #[must_use]
    pub const fn hint_word(self) -> Option<usize> {
        match self {
            CallNumber::JobWait => Some(0),
            CallNumber::SleepUntil => Some(1),
            CallNumber::SemLock | CallNumber::ThreadJoin | CallNumber::EventWait => Some(2),
            CallNumber::JobsStart | CallNumber::MboxReceive => Some(3),
            _ => None,
        }
    }
}

/// Turns a hint off.
pub const NO_HINT: u64 = u64::MAX;
/// `SemCreate`'s `initial` for a mutex: it has an owner, and waiters lend the owner their priority.
pub const MUTEX: u64 = u64::MAX;
/// Result of a lock whose last owner ended while holding it: what it guards may be inconsistent.
pub const OWNER_DIED: u64 = 1;
/// `Log`'s `length` for the words of a measurement instead of text.
pub const MEASUREMENT: u64 = 1 << 63;
/// Set in the result of a call that has done a part and is to be repeated: `ShmAttach` while pages
/// are prepared, `ProcCreate` while an earlier life of the process ends, `ThreadExit` of a thread
/// that holds very many mutexes, a deletion while there are waiters to be sent away.
pub const PARTIAL: u64 = 1 << 62;

/// Where a result that names an address has the number of pages there.
const PAGES_SHIFT: u32 = 48;

/// Returns an address and the pages there, in one result.
#[must_use]
pub const fn mapped(address: u64, pages: u32) -> u64 {
    address | (pages as u64) << PAGES_SHIFT
}

/// Address and pages of such a result.
#[must_use]
pub const fn unmapped(result: u64) -> (u64, u32) {
    (result & ((1 << PAGES_SHIFT) - 1), (result >> PAGES_SHIFT) as u32)
}

/// A counter that `Count` can report: of the machine, to a process whose description has
/// `counters`, and of the caller, to everybody. They cost nothing unless asked for and let a
/// benchmark say how many of the expensive things, which an instruction count hides, an operation
/// contains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Counter {
    /// Writes of CR3 (address-space switches).
    Cr3 = 0,
    /// Writes of model-specific registers (`wrmsr`, and each `swapgs` pair counts as none).
    Msr = 1,
    /// Memory-mapped device accesses by the kernel.
    Mmio = 2,
    /// CPU time used by the calling thread, in ns.
    CpuTime = 3,
    /// Longest kernel path so far, in instructions; only where the run was told to watch.
    LongestPath = 4,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_pages_fit_one_result() {
        let (address, pages) = (crate::layout::device(63, 63), crate::layout::SLOT_PAGES as u32);
        let result = mapped(address, pages);
        assert_eq!(unmapped(result), (address, pages));
        assert_eq!(crate::decode_result(result), Ok(result));
    }

    #[test]
    fn numbers_are_dense_and_decode_to_themselves() {
        for (i, call) in CallNumber::ALL.iter().enumerate() {
            assert_eq!(*call as usize, i);
            assert_eq!(CallNumber::decode(i as u64), Some(*call));
        }
        assert_eq!(CallNumber::decode(CallNumber::ALL.len() as u64), None);
        assert_eq!(CallNumber::decode(u64::MAX), None);
    }
}
