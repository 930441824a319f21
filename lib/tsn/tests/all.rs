//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod bound;
mod clock;
mod egress;
mod paced;
mod route;
mod support;
