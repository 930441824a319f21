//! The schedule of every USB bus that a description says something of, drawn.

mod json;
mod tables;
mod words;

pub use json::buses as to_json;
pub use tables::tables;
pub(super) use words::{slot_name, speed_name};
