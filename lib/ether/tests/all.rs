//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod copied;
mod demux;
mod frames;
mod needs;
mod station;
