//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod attack;
mod common;
mod exact;
mod golden;
mod modes;
mod offsets;
mod properties;
mod scheduler;
