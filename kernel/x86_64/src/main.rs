//! The kernel on x86-64.
//!
//! Everything privileged is in this crate, and nothing else is: it boots the machine, turns
//! interrupts and system calls into entries of `diapason-core`, and carries out what the core
//! decides. Interrupts are off in ring 0 from the first instruction to the last, on one stack per
//! core that is empty between entries.
//!
//! | file | what |
//! |---|---|
//! | `boot` | from the loader to a kernel that is ready; leaves memory before the first thread |
//! | `handover` | from boot to the first decision |
//! | `entry.s`, `context` | into and out of the kernel, and what is kept of a thread meanwhile |
//! | `shell` | around the core: clock, timer, address space, recorder |
//! | `machine` | the effects the core asks for |
//! | `iommu` | what a device was stopped from doing |
//! | `paging`, `table` | address spaces, arrays |
//! | `apic`, `clock`, `tables`, `cpu` | the processor and its tables |
//! | `seat` | this core among others: doorbells, and whose turn it is |
//! | `console`, `recorder`, `fatal` | what the kernel says, keeps, and says last |
//! | `kept` | a copy of what it says, for a process that takes it to a medium |
//! | `screen` | what a PC shows of that, at boot and after the end |
//! | `watch` | what its paths take |

#![no_std]
#![no_main]

use diapason_routines as _;

mod apic;
mod boot;
mod calls;
mod clock;
mod console;
mod context;
mod cpu;
mod fatal;
mod handover;
mod iommu;
mod kept;
mod machine;
mod paging;
mod pci;
mod percpu;
mod recorder;
mod screen;
mod seat;
mod shell;
mod table;
mod tables;
mod watch;
