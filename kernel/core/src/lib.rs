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
//! | `served` | the calls and kinds of objects that this kernel has |
//! | `pool`, `ids` | memory of objects, and their names |
//! | `objects` | threads, processes, mailboxes and the others: data, and what concerns one alone |
//! | `alarms` | what is due, in order |
//! | `scheduler` | whose turn it is |
//! | `promise` | what may be promised to VCPUs, and the kernel's own costs |
//! | `kernel` | the state of the kernel, and the words of its entries and answers |
//! | `budget`, `ring` | who pays for the time; when an alarm may ring, and who pays for that |
//! | `helping` | who runs in whose place: priority inheritance, hints |
//! | `services` | the calls: threads, processes, the services of EMERALDS ch. 3, memory, VCPUs |
//! | `cross` | from one VCPU to another without a decision |
//! | `shortcut`, `exchange` | short ways through calls; a call that sends and receives |
//! | `serving` | calls to a server that runs in its caller's place |
//! | `enter` | the ways in, dispatch of calls, the decision |
//! | `machine`, `start` | what the core needs of the machine, and what a thread begins with |
//! | `config` | pools and their contents from the boot archive |
//! | `accounts` | how a run went, in records |
//! | `check` | the invariants, run after every step of a test |
//! | `walks` | how long its loops are, counted on a host |
//! | `host`, `inspect` | the core under test, and what watchers on a host ask it |
//!
//! A file uses those above it in this table and none below, but for the last six rows.

#![cfg_attr(not(any(test, feature = "host")), no_std)]
#![forbid(unsafe_code)]

mod accounts;
mod alarms;
mod budget;
mod check;
mod config;
mod cross;
mod enter;
mod exchange;
mod helping;
mod ids;
mod kernel;
mod machine;
mod objects;
mod pool;
mod promise;
mod ring;
mod scheduler;
mod served;
mod services;
mod serving;
mod shortcut;
mod start;
mod walks;

pub mod speed;

#[cfg(any(test, feature = "host"))]
pub mod host;
#[cfg(any(test, feature = "host"))]
mod inspect;

pub use config::{Pools, Sizes};
pub use ids::{FrameId, ProcessId, ThreadId, VcpuId};
#[cfg(any(test, feature = "host"))]
pub use inspect::{MailboxState, Standing, Stock};
pub use kernel::{Arguments, Cause, Decision, Fault, Kernel, Longer};
pub use machine::{BadAddress, Machine, UserMemory};
pub use objects::condition::Condition;
pub use objects::event::Event;
pub use objects::mailbox::{Mailbox, Message};
pub use objects::memory::{Device, Frame, Segment};
pub use objects::process::{Process, ProcessState};
pub use objects::semaphore::Semaphore;
pub use objects::thread::{State, Thread, Wait};
pub use objects::vcpu::{Server, Vcpu};
pub use pool::{Id, Pool};
pub use served::{SERVED, Tag};
pub use start::ThreadStart;
#[cfg(any(test, feature = "host"))]
pub use walks::take_walked;
