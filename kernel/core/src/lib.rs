//! The kernel's objects and policy, as a pure state machine.
//!
//! There are two ways in. [`Kernel::quick`] completes a call that cannot change who runs, or does
//! nothing; [`Kernel::enter`] takes everything else: `enter(now, cause) -> Decision`. Time comes
//! in as an argument, and what goes out (who runs, what its call returns, when to call again) is a
//! value; only what has no value to be, such as copying user memory or mapping a page, is a method
//! of [`Machine`]. So the same source runs in ring 0, in plain `cargo test`, and in the simulator.
//!
//! Rules of this room: no hardware, no clock, no allocation, no `unsafe`, no formatting. Every
//! operation first checks everything and then does it; what it does is bounded by the pools, which
//! are sized once from the system description.
//!
//! | file | what |
//! |---|---|
//! | `kernel` | the two ways in, dispatch of calls, the decision |
//! | `scheduler`, `queue` | who is ready, who waits in which order |
//! | `alarm`, `ring` | what is due, when it may ring, and who pays for it |
//! | `vcpu`, `admission` | budgets: who pays for the time, and what may be promised |
//! | `helping` | who runs in whose place: priority inheritance, hints |
//! | `start` | what a thread begins with |
//! | `thread`, `process` | their life from creation to join, fault and restart |
//! | `semaphore`, `condition`, `mailbox`, `event` | the services of EMERALDS ch. 3 |
//! | `exchange` | one call that sends and receives |
//! | `shortcut` | short ways through calls that change who runs |
//! | `memory` | frames, heaps, shared segments, devices |
//! | `accounts` | how a run went, in records |
//! | `config` | pools and their contents from the boot archive |
//! | `check` | the invariants, run after every step of a test |
//! | `walks` | how long its loops are, counted on a host |
//! | `host`, `inspect` | the core under test, and what watchers on a host ask it |

#![cfg_attr(not(any(test, feature = "host")), no_std)]
#![forbid(unsafe_code)]

mod accounts;
mod admission;
mod alarm;
mod check;
mod condition;
mod config;
mod event;
mod exchange;
mod helping;
mod kernel;
mod machine;
mod mailbox;
mod memory;
mod pool;
mod process;
mod queue;
mod ring;
mod scheduler;
mod semaphore;
mod shortcut;
mod start;
mod thread;
mod vcpu;
mod walks;

#[cfg(any(test, feature = "host"))]
pub mod host;
#[cfg(any(test, feature = "host"))]
mod inspect;

pub use condition::Condition;
pub use config::{Pools, Sizes};
pub use event::Event;
#[cfg(any(test, feature = "host"))]
pub use inspect::{Standing, Stock};
pub use kernel::{Arguments, Cause, Decision, Fault, Kernel};
pub use machine::{BadAddress, Machine, UserMemory};
pub use mailbox::{Mailbox, Message};
pub use memory::{Device, Frame, FrameId, Segment};
pub use pool::{Id, Pool};
pub use process::{Process, ProcessId, ProcessState};
pub use semaphore::Semaphore;
pub use shortcut::{Longer, Passed};
pub use start::ThreadStart;
pub use thread::{State, Thread, ThreadId, Wait};
pub use vcpu::{Server, Vcpu, VcpuId};
#[cfg(any(test, feature = "host"))]
pub use walks::take_walked;
