//! gPTP (IEEE 802.1AS) without hardware: the messages, the delay of a link, the choice of the
//! grandmaster, and a clock that follows it with a proved bound.
//!
//! All of it is state machines with explicit time. Nothing here reads a clock or sends anything:
//! the caller stamps frames by its own clock, and asks the node when to look again. A node that is
//! not sure of the time says so.

#![no_std]
#![forbid(unsafe_code)]

mod best;
mod books;
mod frame;
mod link;
mod message;
mod node;
mod port;
mod steer;
mod terms;

pub use best::{Grandmaster, PRIORITY_FOLLOWER};
pub use books::{GptpFault, TimeBooks};
pub use frame::{FRAME_MAX, GROUP, GptpFrame, HEAD, identity_of};
pub use message::{
    Announce, ClockIdentity, ETHERTYPE, GptpBody, GptpHeader, GptpMessage, PortIdentity,
    TimeProperties,
};
pub use node::{GptpOutgoing, SentEvent, TimeNode, TimeStep};
pub use steer::{SteeredClock, TimeSample};
pub use terms::{SyncBase, SyncRefusal, SyncTerms};
