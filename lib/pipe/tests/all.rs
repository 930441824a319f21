//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod bill;
mod exchange;
mod hostile;
mod intake;
mod interface;
mod interleavings;
mod meter;
mod queue;
mod size;
mod threads;
mod tuned;
mod tuned_outputs;
