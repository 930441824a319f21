//! What the USB server and its clients agree on, by name and by layout. Of CAN channels:
//! `diapason_canlib::agreement`.

#![no_std]
#![forbid(unsafe_code)]

mod clients;

pub use clients::{camera, disk, keyboard, link, network, sensor, times};
