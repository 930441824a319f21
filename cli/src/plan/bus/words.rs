//! The names of things on a bus.

use diapason_bus::{Direction, Speed, Transfer};

/// Returns the name of a slot.
pub(in crate::plan) const fn slot_name(speed: Speed) -> &'static str {
    match speed {
        Speed::Super | Speed::High => "microframe",
        Speed::Full | Speed::Low => "frame",
    }
}

pub(in crate::plan) const fn speed_name(speed: Speed) -> &'static str {
    match speed {
        Speed::Super => "super",
        Speed::High => "high",
        Speed::Full => "full",
        Speed::Low => "low",
    }
}

pub(super) const fn transfer_name(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Control => "control",
        Transfer::Bulk => "bulk",
        Transfer::Interrupt => "interrupt",
        Transfer::Isochronous => "isochronous",
    }
}

pub(super) const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}
