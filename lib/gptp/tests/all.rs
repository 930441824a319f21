//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod attack;
mod follow;
mod frames;
mod gates;
mod hostile;
mod peer;
mod support;
