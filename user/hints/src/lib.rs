//! An attribute that tells blocking calls which mutex comes next.
//!
//! ```ignore
//! #[hints]
//! fn inject(command: Semaphore, injector: Mutex) -> Result<(), Errno> {
//!     loop {
//!         command.take(Nanos::FOREVER)?; // becomes take_then(Nanos::FOREVER, injector.hint())
//!         let guard = injector.lock()?;
//!         drop(guard);
//!     }
//! }
//! ```
//!
//! `lib/hints` decides, and `docs/hints.md` gives the reasons. This crate is only the door, because
//! a crate with an attribute can export nothing else.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

/// Gives every blocking call of a task's function the mutex that is locked after it. Where that
/// cannot be decided it is a compile error; `#[hint(…)]` before a statement says what it should be.
#[proc_macro_attribute]
pub fn hints(arguments: TokenStream, item: TokenStream) -> TokenStream {
    diapason_hints_logic::expand(&arguments.into(), item.into()).into()
}
