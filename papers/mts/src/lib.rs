//! Messages on CAN under DM, MTS and ED*: chapter 7 of the EMERALDS dissertation.
//!
//! The promises of `diapason plan` are those of `diapason-can`. Here are the workloads of the
//! dissertation and its tests as printed, which are not all sound, so that its figures can be
//! drawn again and their unsafe verdicts shown late on the bus.

#![forbid(unsafe_code)]

pub mod late;
pub mod printed;
pub mod sound;
pub mod workload;
