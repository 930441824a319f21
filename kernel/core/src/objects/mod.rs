//! The objects of the kernel, each as data with what concerns it alone.
//!
//! An object names another one by its id, so no file here needs another object's, but for what is
//! inside it.

pub mod alarm;
pub mod condition;
pub mod event;
pub mod mailbox;
pub mod memory;
pub mod process;
pub mod ready;
pub mod semaphore;
pub mod thread;
pub mod vcpu;
