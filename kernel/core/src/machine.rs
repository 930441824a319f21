//! The operations that the core needs of the machine underneath.

use crate::ids::{FrameId, ProcessId, ThreadId};
use diapason_abi::archive::DeviceRecord;
use diapason_abi::layout;
use diapason_abi::record::Record;

/// User memory that is not there, or may not be used that way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAddress;

/// The memory of the running thread's process.
pub trait UserMemory {
    /// Copies from the running process.
    ///
    /// # Errors
    /// `BadAddress` if any byte is not readable memory of the process.
    fn copy_in(&mut self, address: u64, to: &mut [u8]) -> Result<(), BadAddress>;

    /// Copies to the running process.
    ///
    /// # Errors
    /// `BadAddress` if any byte is not writable memory of the process.
    fn copy_out(&mut self, address: u64, from: &[u8]) -> Result<(), BadAddress>;

    /// Copies within the running process, in one piece.
    ///
    /// # Errors
    /// `BadAddress` as above.
    fn copy_user(&mut self, to: u64, from: u64, length: u64) -> Result<(), BadAddress>;
}

/// Effects that cannot be values. Clock, timer and context switch are not among them: they are
/// arguments and results of [`crate::Kernel::enter`].
///
/// Pages, once mapped, belong to a
/// process until the core says otherwise; the implementation never fails to map one, because every
/// quota was reserved at boot.
pub trait Machine: UserMemory {
    /// First address of a process's window. A simulator of several hosts puts each elsewhere.
    fn window(&self, process: ProcessId) -> u64 {
        layout::base(process.index())
    }

    /// The running thread's instruction pointer.
    fn instruction(&self) -> u64;

    /// Prepares a thread: when it first runs it enters `entry` with `argument` on its own stack.
    /// `None` means the program's entry point, with the arguments of the description.
    fn start_thread(&mut self, thread: ThreadId, entry: Option<(u64, u64)>);

    /// Shows or hides a process's whole window, while it ends: a thread that runs in a hidden one
    /// faults at its next instruction. Windows are visible at first.
    fn show_process(&mut self, process: ProcessId, visible: bool);

    /// Maps `frame`, zeroed, as page `page` of the process's heap.
    fn map_heap(&mut self, process: ProcessId, page: u32, frame: FrameId);

    /// Unmaps the first `pages` pages of the process's heap.
    fn clear_heap(&mut self, process: ProcessId, pages: u32);

    /// Makes `frame`, zeroed, page `page` of a shared segment.
    fn map_segment(&mut self, segment: u16, page: u32, frame: FrameId);

    /// Forgets the pages of a shared segment that nobody has attached.
    fn clear_segment(&mut self, segment: u16, pages: u32);

    /// Shows or hides a segment in a process.
    fn attach_segment(&mut self, process: ProcessId, segment: u16, visible: bool);

    /// Shows or hides a device's registers in a process.
    fn attach_device(&mut self, process: ProcessId, device: u16, visible: bool);

    /// Lets a device read and write memory by itself, or not: only while some process has its
    /// registers. Nothing happens for a device that cannot.
    fn set_bus_master(&mut self, device: u16, enabled: bool);

    /// Where devices find a segment declared for them that a process has attached. Its frames begin
    /// at `first`, one behind the other, unless it is in common with other cores. Below 4 GiB.
    fn bus_address(&mut self, segment: u16, first: FrameId) -> u64;

    /// Lets a device's interrupt through, or holds it back.
    fn set_irq(&mut self, device: &DeviceRecord, enabled: bool);

    /// Rings doorbell `number` on another core. The writes of the ringing core before are visible
    /// where the bell is heard.
    fn ring(&mut self, core: u16, number: u16);

    /// One line of text from the running process.
    fn log(&mut self, process: ProcessId, text: &[u8]);

    /// Something worth a record on the console.
    fn emit(&mut self, record: Record, words: &[u64]);

    /// A counter of the machine (`diapason_abi::call::Counter`); zero if it does not exist.
    fn counter(&mut self, which: u64) -> u64;

    /// A process that supervises others ended by a fault, and nobody supervises it.
    fn supervisor_died(&mut self, process: ProcessId);
}
