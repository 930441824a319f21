//! The common parts of the tests: systems described by hand ([`Plan`]) and a booted host ([`Sys`])
//! whose threads are brought into named states by the calls they would make themselves.

pub mod audit;
pub mod chance;
pub mod lab;
pub mod memo;
pub mod model;
pub mod plan;
pub mod script;
pub mod shell;
pub mod stage;
pub mod storm;
pub mod sys;
pub mod weights;

pub use audit::check_books;
pub use diapason_abi::CallNumber as Call;
pub use diapason_abi::Errno::{self, *};
pub use diapason_abi::{FaultCause, Nanos};
pub use diapason_core::{Cause, ProcessState, State, ThreadId, Wait};
pub use plan::{EVERYBODY, Plan, key};
pub use sys::{Outcome, Sys, run};

pub const FOREVER: u64 = u64::MAX;
pub const NOW: u64 = 0;
