//! CAN for applications: a channel of the USB server is opened, put on its bus, read and written.
//!
//! The calls are those of Kvaser's CANlib; [`Channel`] has the traits of `embedded-can`, too.
//!
//! ```ignore
//! let mut channel = Channel::open(3, deadline)?;
//! channel.bus_on(deadline)?;
//! channel.set_acceptance_filter(&[Filter::only(false, 0x123)])?;
//! channel.write(&frame)?;
//! let answer = channel.read_wait(deadline)?;
//! channel.write_sync(deadline)?;
//! ```
//!
//! | CANlib | [`Channel`] |
//! |---|---|
//! | `canOpenChannel` | `open`; to read only, `listen` |
//! | `canSetBusParams`, `canSetBusOutputControl` | `set_bus_params`, `set_silent` |
//! | `canBusOn`, `canBusOff` | `bus_on`, `bus_off` |
//! | `canRead`, `canReadWait` | `read`, `read_wait` |
//! | `canWrite`, `canWriteWait`, `canWriteSync` | `write`, `write_wait`, `write_sync` |
//! | `canReadStatus`, `canRequestChipStatus` | `read_status`, `request_chip_status` |
//! | `canSetAcceptanceFilter` | `set_acceptance_filter` |
//! | none | `next_mark`: when written frames were through |
//!
//! A channel whose `data_rates` in the description has CAN FD is opened with `open_fd` or
//! `listen_fd`. It has frames of both formats ([`AnyFrame`]), and the same calls. Frames of CAN FD
//! are written with the switch of the bit rate (`with_fast`).
//!
//! A channel measures what passes it and reports once a second how its pipe does, whether anything
//! comes or not; an application has no part in that. If it knows from what messages say that some
//! are missing, it tells with `missed`.
//!
//! A channel takes part in its bus at the rate that the description says. A program that sets
//! another one is on a bus that no bound of a pipe is about.
//!
//! A timeout is an instant here, as everywhere in this system: `Nanos::ZERO` does not wait,
//! `Nanos::FOREVER` waits as long as it takes.
//!
//! A program that sends messages of the description through a controller with message buffers has
//! [`Outgoing`] instead, and one that reads messages of other nodes from it has [`Incoming`].

#![no_std]
#![forbid(unsafe_code)]

pub mod agreement;
mod channel;
mod error;
mod filters;
mod format;
mod incoming;
mod marks;
mod outgoing;
mod receive;
mod send;
mod traits;

pub use agreement::{LOST_BEFORE, OUTSIDE, Phase, ReceivedFrame};
pub use channel::{Channel, FdChannel, Status};
pub use diapason_can::{AnyFrame, CanFrame, FdFrame, Filter};
pub use error::Error;
pub use filters::FILTERS;
pub use format::{Classic, Flexible, Format};
pub use incoming::{HeardMessage, Incoming, IncomingMessage};
pub use marks::Mark;
pub use outgoing::{Outgoing, OutgoingMessage};
pub use receive::TimedFrame;
