//! Class drivers against scripted far sides, cut streams, and devices that answer anything.

mod camera;
mod gs_usb;
mod hub;
mod link;

mod kvaser;
mod lines;
mod network;
mod shell;
mod storage;
