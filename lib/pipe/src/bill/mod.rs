//! The bill of a pipe: an end-to-end bound that holds at every phase, item by item.
//!
//! A message that arrives at a device waits for a transfer, is carried over the bus, waits for the
//! interrupt and the top half, is handled by the driver's bottom half (and its thread, if it has
//! one), and then by the user's thread. [`input`] adds the longest times of all of it, from the
//! contracts of the traffic and from what each stage gets of a processor ([`Service`]).
//! [`output()`] does the same the other way, down to the bus behind the device, [`pump()`] for a
//! writer that may fill its pipe, [`chain()`] for users that pass messages on, and [`relay()`] for
//! those that take the newest once in a period.
//!
//! Everything is integer arithmetic that saturates: what cannot be computed is too long, never
//! short. `docs/pipes-proofs.md` of the workspace has the theorems.
//!
//! ```
//! use diapason_abi::Nanos;
//! use diapason_pipe::bill::*;
//! use diapason_pipe::size::Bucket;
//!
//! const US: fn(u64) -> Nanos = Nanos::from_micros;
//! let frames = [Bucket::per_second(2752)];
//! let interface = Promised::io(100_000, US(5_000), US(990));
//! let reader = Promised::main(US(200), US(5_000));
//! let work = StageTimes::new(US(10), US(5));
//! let stages = Stages {
//!     bus: Transfers {
//!         worst: US(125),
//!         least: US(10),
//!         run: 1,
//!         queued: 32,
//!         messages: 96,
//!         empties: false,
//!         paced: None,
//!     },
//!     interrupts: Interrupts {
//!         moderation: US(1_000),
//!         gap: US(990),
//!         top_half: US(10),
//!         shared: false,
//!     },
//!     bottom_half: Stage { work, telling: Telling::All, service: &interface },
//!     receiver: None,
//!     user: User { message: US(4), wake: US(2), taking: Taking::Each, service: &reader },
//! };
//! let bill = input(&stages, &Traffic::alone(&[&frames])).unwrap();
//! assert_eq!(bill.items().iter().map(|item| item.value.0).sum::<u64>(), bill.total.0);
//! assert_eq!(bill.total, US(16_260));
//! assert_eq!(bill.slots, 45);
//! ```

mod apart;
mod chain;
mod input;
mod item;
mod output;
mod paper;
mod pump;
mod rate;
mod refusal;
mod relay;
mod rounds;
mod scarce;
mod service;
mod stages;
mod steps;

pub use apart::{Coming, Found, busy_period, done, found, keeps_apart};
pub use chain::{ChainBound, ChainStage, chain};
pub use input::input;
pub(crate) use item::Time;
pub use item::{Basis, Bill, Item, What};
pub use output::{Drain, OutputStages, Sender, output};
pub use paper::equation_nine;
pub use pump::{Look, Pump, pump};
pub use refusal::BillRefusal;
pub use relay::{Before, Hop, Reach, Relay, Stuck, relay};
pub use service::{Promised, Service};
pub use stages::{
    InterruptDemand, Interrupts, Stage, StageTimes, Stages, Taking, Telling, Traffic, Transfers,
    User, top_half,
};
