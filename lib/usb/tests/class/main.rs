//! Class drivers against scripted far sides, cut streams, and devices that answer anything.

mod bridge;
mod camera;
mod hub;

mod kvaser;
mod lines;
mod shell;
mod storage;
