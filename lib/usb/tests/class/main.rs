//! Class drivers against scripted far sides, cut streams, and devices that answer anything.

mod camera;
mod gs_usb;
mod gs_usb_fd;
mod hub;
mod link;

mod kvaser;
mod lines;
mod network;
mod shell;
mod storage;
