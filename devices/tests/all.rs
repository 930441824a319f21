//! All tests of this package that see it from outside, as one program: each program more is linked
//! with the whole package once more.

mod chapter_nine;
mod faulty;
mod gs_usb;
mod hub;
mod kvaser;
mod kvaser_bus;
mod kvaser_load;
mod network;
mod receiver;
mod restless;
mod sources;
mod support;
mod toucan;
mod toucan_hears;
mod toucan_mts;
mod transport;
