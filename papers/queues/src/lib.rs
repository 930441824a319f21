//! The dissertation's one list of blocked and ready tasks, and the kernel's ranks beside it, as
//! plain structures for the same tasks: one blocks, one becomes ready, the most urgent is chosen.
//!
//! Tasks are numbered from 0, at most [`TASKS_MAX`]. Of equals the one with the lower number goes
//! first. A number that is none is nobody: its calls do nothing.

#![no_std]

mod list;
mod ranks;

pub use list::{DeadlineList, PeriodList};
pub use ranks::Ranks;

/// Most tasks of a core.
pub const TASKS_MAX: usize = 64;

/// A task, or [`NOBODY`].
pub type Task = u8;

pub const NOBODY: Task = u8::MAX;
