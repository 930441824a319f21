//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod bad_input;
mod buses;
mod cores;
mod difference;
mod explain;
mod hosts;
mod output;
mod plan;
mod remedies;
mod sarif;
mod schema;
mod witness;
