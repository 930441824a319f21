//! A simulated bus that sends packet after packet, and attacks that try to break what was planned.
//!
//! It shares with the planner only what endpoints are and how long a packet takes: it adds up no
//! patterns and knows no sequences of items.

mod attack;
mod exhaustive;
mod set;
mod wire;

pub use attack::{CampaignReport, attack, attack_uniform, compare};
pub use diapason_random::Random;
pub use exhaustive::exhaustive;
pub use set::Set;
pub use wire::{AttackedBus, Observed};
