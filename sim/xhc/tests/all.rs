//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod admission;
mod bridge;
mod commands;
mod debug;
mod events;
mod hostile;
mod hubs;
mod isoch;
mod lent;
mod registers;
mod speed;
mod support;
mod tape;
mod timing;
mod transfers;
