//! The services of the kernel: calls of programs, and what they do to objects.

mod condition;
mod end;
mod event;
mod mailbox;
mod memory;
mod process;
mod semaphore;
mod thread;
mod vcpu;
