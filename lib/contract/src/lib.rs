//! The agreement between the servers for USB and for Ethernet, their clients, descriptions and the
//! planner: names, layouts and limits. Each is written here once. The description's settings for
//! the USB server are in [`settings`], its threads and services in [`threads`], and its needs in
//! [`needs`]. The partition that keeps a console is in [`results`]. All about the Ethernet server
//! is in [`ethernet`], and its common time in [`time`].
//!
//! | module | segments | semaphores |
//! |---|---|---|
//! | [`can`] | `can0`, `can0.out`, `can0.report`, … | `can0.ready`, … |
//! | [`tuned`] | `tpipe0`, `tpipe0.out`, `tpipe0.report`, … | `tpipe0.ready`, … |
//! | [`sensor`] | `sensor` | `sensor.ready` |
//! | [`endpoint`] | `endpoint` | `endpoint.ready` |
//! | [`sink`] | `sink.writes`, `sink.answers` | `sink.ask`, `sink.ready` |
//! | [`pair`] | those of `endpoint` and of `sink` | |
//! | [`keyboard`] | `keyboard` | `keyboard.ready` |
//! | [`disk`] | `disk.asks`, `disk.answers`, `disk.data` (for devices) | `disk.ask`, `disk.ready` |
//! | [`camera`] | `camera`, `camera.back`, `camera.data` (for devices) | `camera.ready` |
//! | [`link`] | `link0.asks`, `link0.done`, …, `link.data` | `link0.ask`, …, `link.ready` |
//! | [`mail`] | the mailboxes of flows | |
//! | [`routes`] | those of [`link`] | |
//! | [`mode`] | `usb-mode.asks`, `usb-mode.answers` | |
//! | [`network`] | `network.asks`, `network.data` …, `network-to.asks` … | `network.ask` …|
//! | [`ethernet`] | `nic0.rings`, `nic0.buffers`, `socket0`, `socket0.out`, … | `nic0.send`, … |
//! | [`toucan`] | `toucan0.out0`, … | `toucan0.send` |
//! | [`times`] of the first of these services | `usb-times` | |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

pub mod camera;
pub mod can;
pub mod carried;
pub mod disk;
pub mod endpoint;
pub mod ethernet;
mod home;
pub mod keyboard;
mod kinds;
pub mod link;
pub mod mail;
pub mod mode;
pub mod needs;
pub mod network;
pub mod pair;
pub mod release;
pub mod results;
pub mod routes;
pub mod sensor;
pub mod settings;
pub mod sink;
pub mod source;
pub mod stream;
pub mod threads;
pub mod time;
pub mod times;
pub mod toucan;
pub mod tuned;
