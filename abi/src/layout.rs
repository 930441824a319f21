//! The address map of a process, the same on every machine the system runs on.
//!
//! Each process owns the 1 GiB window at `(process + 1) << 32`, so an address says whose it is and
//! the simulator can hold every process of a system in one address space. Below 4 GiB lies the
//! kernel, supervisor-only, in every address space.
//!
//! | offset in the window | what |
//! |---|---|
//! | `IMAGE` | the program: code, constants, then its data pages |
//! | `DATA_IMAGE` | what its data pages contain at start, read-only |
//! | `STACKS` | one slot of `STACK_STRIDE` per thread: guard space, then the stack at the top |
//! | `HEAP` | what `mem_alloc` returned so far |
//! | `SEGMENTS` | one slot of `SLOT` per declared segment, while attached |
//! | `DEVICES` | one slot of `SLOT` per declared device, once mapped |
//! | `INFO` | the read-only information page |

/// Where programs are linked and loaded.
pub const IMAGE: u64 = 0;
/// The pristine contents of a program's data, read-only, at this distance from the data itself.
/// The runtime copies it at every start, so a restart costs the kernel nothing.
pub const DATA_IMAGE: u64 = 0x0400_0000;
pub const STACKS: u64 = 0x0800_0000;
/// Distance between two threads' stack tops; the largest stack is one page smaller.
pub const STACK_STRIDE: u64 = 0x4_0000;
pub const HEAP: u64 = 0x1000_0000;
/// Most pages of heap one process can have (128 MiB).
pub const HEAP_PAGES_MAX: u64 = 0x8000;
pub const SEGMENTS: u64 = 0x2000_0000;
pub const DEVICES: u64 = 0x3000_0000;
pub const INFO: u64 = 0x3fe0_0000;
/// Size of one segment or device slot: what one page table maps.
pub const SLOT: u64 = 0x20_0000;
/// Most pages in a segment or device (one slot).
pub const SLOT_PAGES: u64 = SLOT / crate::PAGE as u64;
/// Most segments, and most devices, in one system.
pub const SLOTS_MAX: u64 = 64;
/// Most threads in one process.
pub const THREADS_PER_PROCESS_MAX: u64 = 64;
/// The kernel copies what lies below this in a window, for a call: a program's memory. Registers of
/// a device are beyond it, because reading them takes as long as the device likes, and so is the
/// information page.
pub const COPYABLE: u64 = DEVICES;
/// Size of a process's window.
pub const WINDOW: u64 = 0x4000_0000;

const _: () = assert!(2 * DATA_IMAGE <= STACKS);
const _: () = assert!(STACKS + THREADS_PER_PROCESS_MAX * STACK_STRIDE <= HEAP);
const _: () = assert!(HEAP + HEAP_PAGES_MAX * crate::PAGE as u64 <= SEGMENTS);
const _: () = assert!(SEGMENTS + SLOTS_MAX * SLOT <= DEVICES);
const _: () = assert!(DEVICES + SLOTS_MAX * SLOT <= INFO);
const _: () = assert!(INFO + SLOT <= WINDOW);
const _: () = assert!(COPYABLE <= DEVICES && COPYABLE <= INFO);

/// First address of a process's window.
#[must_use]
pub const fn base(process: u16) -> u64 {
    (process as u64 + 1) << 32
}

/// Returns one past the top of the stack of a thread slot, in its process's window.
#[must_use]
pub const fn stack_offset(slot: u16) -> u64 {
    STACKS + (slot as u64 + 1) * STACK_STRIDE
}

/// Returns one past the top of the stack of a process's thread slot.
#[must_use]
pub const fn stack_top(process: u16, slot: u16) -> u64 {
    base(process) + stack_offset(slot)
}

/// Returns where in a window a declared segment appears.
#[must_use]
pub const fn segment_offset(segment: u16) -> u64 {
    SEGMENTS + segment as u64 * SLOT
}

/// Returns where a declared segment appears in a process.
#[must_use]
pub const fn segment(process: u16, segment: u16) -> u64 {
    base(process) + segment_offset(segment)
}

/// Returns where in a window a declared device appears.
#[must_use]
pub const fn device_offset(device: u16) -> u64 {
    DEVICES + device as u64 * SLOT
}

/// Returns where a declared device appears in a process.
#[must_use]
pub const fn device(process: u16, device: u16) -> u64 {
    base(process) + device_offset(device)
}

/// Returns whether `address` is in the unmapped space below a stack of this process.
#[must_use]
pub const fn is_stack_guard(process: u16, address: u64) -> bool {
    let start = base(process) + STACKS;
    address >= start && address < start + THREADS_PER_PROCESS_MAX * STACK_STRIDE
}

/// Contents of the information page, as little-endian words.
pub mod info {
    /// Word 0: multiplier that turns counter ticks into ns (32.32 fixed point).
    pub const CLOCK_MULTIPLIER: usize = 0;
    /// Word 1: the counter's value at boot.
    pub const CLOCK_BASE: usize = 1;
    /// Word 2: when the run ends, in ns since boot (`u64::MAX`: never).
    pub const HORIZON: usize = 2;
}
