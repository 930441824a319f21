//! Both sides written apart, connected: class drivers against the device models that QEMU and the
//! simulator use, over an ideal bus.

mod gs_usb;
mod host;
mod kvaser;
mod others;
