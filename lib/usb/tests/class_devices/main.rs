//! Both sides written apart, connected: class drivers against the device models that QEMU and the
//! simulator use, over an ideal bus.

mod gs_usb;
mod gs_usb_fd;
mod host;
mod kvaser;
mod others;
