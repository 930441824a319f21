//! The kernel on x86-64.
//!
//! Everything privileged is in this crate, and nothing else is: it boots the machine, turns
//! interrupts and system calls into entries of `diapason-core`, and carries out what the core
//! decides. Interrupts are off in ring 0 from the first instruction to the last, on one stack per
//! core that is empty between entries.
//!
//! | file | what |
//! |---|---|
//! | `boot.s`, `start` | from the loader to the first decision |
//! | `entry.s`, `context` | into and out of the kernel, and what is kept of a thread meanwhile |
//! | `shell` | around the core: clock, timer, address space, recorder |
//! | `machine` | the effects the core asks for |
//! | `paging`, `frames`, `loader` | address spaces, boot memory, programs |
//! | `acpi`, `apic`, `clock`, `tables`, `cpu` | the processor and its tables |
//! | `console`, `recorder`, `fatal` | what the kernel says, keeps, and says last |

#![no_std]
#![no_main]

use diapason_routines as _;

mod acpi;
mod apic;
mod calls;

mod clock;
mod console;
mod context;
mod cpu;
mod fatal;
mod frames;
mod loader;
mod machine;
mod paging;
mod percpu;
mod recorder;
mod shell;
mod start;
mod tables;
