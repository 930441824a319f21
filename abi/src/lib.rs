//! The agreement between the kernel and its users, and nothing else.
//!
//! System call numbers, error codes, handles, the fault report, the address map of a process, the
//! boot archive and the numbered records the kernel prints instead of text. The kernel, the user
//! runtime, the host tools and (later) the simulator all link this crate; it depends on nothing.
//!
//! Rule of this room: plain data and total functions. No I/O, no allocation, no `unsafe`.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod apic;
pub mod archive;
pub mod call;
pub mod dmar;
pub mod elf;
pub mod error;
pub mod fault;
pub mod handle;
pub mod key;
pub mod layout;
pub mod pci;
pub mod pipe;
pub mod record;
pub mod recorder;
pub mod results;
pub mod served;
pub mod settings;
pub mod time;

pub use call::CallNumber;
pub use error::{Errno, decode_result, encode_result};
pub use fault::{FaultCause, FaultReport};
pub use handle::{Handle, Kind};
pub use key::Key;
pub use time::Nanos;

/// Most processes in one system: a grant is one bit of a `u64` per object.
pub const PROCESSES_MAX: usize = 64;
/// Thread priorities run from 0 (least urgent) to 63.
pub const PRIORITIES: usize = 64;
/// Longest mailbox message in bytes. Larger data goes through shared segments: a bounded message
/// keeps every kernel path bounded.
pub const MESSAGE_BYTES: usize = 64;
/// Most waiters one `cv_signal` call wakes; the runtime repeats the call for a broadcast.
pub const SIGNAL_BATCH: usize = 8;
/// Most pages one `mem_alloc` or `shm_attach` call prepares; the runtime repeats the call.
pub const PAGES_PER_CALL: usize = 4;
/// Bytes in a page.
pub const PAGE: usize = 4096;
