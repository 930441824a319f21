//! x
#![no_std]
#![no_main]
use diapason_rt::{Arguments, entry};
entry!(main);
fn main(_: Arguments) {}
