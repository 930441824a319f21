//! What clients of the other services see: pipes, and memory that devices fill themselves.
//!
//! | service | segments | semaphores |
//! |---|---|---|
//! | [`sensor`] | `sensor` | `sensor.ready` |
//! | [`keyboard`] | `keyboard` | `keyboard.ready` |
//! | [`disk`] | `disk.asks`, `disk.answers`, `disk.data` (for devices) | `disk.ask`, `disk.ready` |
//! | [`camera`] | `camera`, `camera.back`, `camera.data` (for devices) | `camera.ready` |
//! | [`link`] | `link0.asks`, `link0.done`, …, `link.data` | `link0.ask`, …, `link.ready` |
//! | [`network`] | `network.asks`, `network.news`, `network.data` (for devices) | `network.ask`, …|
//! | [`times`] of the first of these services | `usb-times` | |

pub mod camera;
pub mod disk;
pub mod keyboard;
pub mod link;
pub mod network;
pub mod sensor;
pub mod times;
