//! The endpoints of [USB 2023]: cameras of 33 KB, four bulk endpoints with one guarantee.

use diapason_bus::{
    Async, BusInstance, Criticality, Direction, EndpointId, Guarantee, PeriodicEndpoint, Picos,
    Transfer, Unit,
};

pub const W_BULK: u64 = 1_778_400;
pub const W_CAMERA: u64 = 1_720_800;
pub const SLOT: u64 = 125_000_000;

/// 3 × 11 packets of 1024 bytes every `period` microframes.
pub fn camera(id: u32, period: u32, criticality: Criticality) -> PeriodicEndpoint {
    PeriodicEndpoint {
        id: EndpointId(id),
        transfer: Transfer::Isochronous,
        direction: Direction::In,
        packet: 1024,
        burst: 10,
        mult: 2,
        period,
        longest_period: period,
        criticality,
    }
}

pub fn bulk(id: u32, guarantee: Option<Guarantee>) -> Async {
    Async {
        id: EndpointId(id),
        transfer: Transfer::Bulk,
        direction: if id.is_multiple_of(2) { Direction::Out } else { Direction::In },
        packet: 1024,
        burst: 0,
        guarantee,
    }
}

/// b₁ … b₄ of [USB 2023].
pub fn four(bytes: u32, period: u32) -> [Async; 4] {
    [101, 102, 103, 104].map(|id| bulk(id, Some(Guarantee { bytes, period })))
}

/// Returns the bus of [USB 2023] with the whole microframe for periodic endpoints: timing alone
/// decides.
pub fn timing_alone() -> BusInstance {
    BusInstance { periodic_percent: 100, ..BusInstance::uncoded() }
}

pub fn ns10(tenths: u64) -> Picos {
    Picos(tenths * 100)
}

pub fn with_unit(unit: Unit) -> BusInstance {
    BusInstance { unit, ..BusInstance::uncoded() }
}
