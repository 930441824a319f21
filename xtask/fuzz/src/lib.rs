//! Fuzzing of every parser of bytes from outside: the targets, their corpora, and the loop that
//! changes inputs. The compiler's counters of branches belong to the program (`main.rs`), so that
//! the tests of the host can run all of this without them.

#![forbid(unsafe_code)]

mod classes;
pub mod corpus;
pub mod engine;
mod mutate;
mod seeds;
pub mod targets;
