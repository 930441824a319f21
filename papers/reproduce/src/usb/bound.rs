//! How long a message may take from one board to the other and back: the article's equation 10, and
//! the same sum for our programs, with the exact time of the bus.
//!
//! Every stage on a processor ends within the period of its VCPU: `plan` has shown that a whole
//! budget is had within it, and no stage wants more than its budget in a period. The bus is exact
//! for whatever may wait on an endpoint: a board's message, and its answer to one of the other
//! board. Control endpoints are silent, as in the article.

use super::machine::{Machine, ROUTER};
use diapason::Failure;
use diapason_bus::{
    Async, BusInstance, Criticality, Direction, EndpointId, PeriodicEndpoint, Transfer, plan,
};

/// Bytes of a packet.
pub const PACKET: u32 = 1024;
/// The server's moderation of links, and the time from one look of a target to the next, in ns.
const MODERATION_NS: u64 = 50_000;
const LOOK_NS: u64 = 125_000;

/// Returns the bus of the article: its packet times, and all of a microframe for periodic packets.
pub fn bus() -> BusInstance {
    BusInstance { periodic_percent: 100, ..BusInstance::uncoded() }
}

/// Returns a camera: 33 packets every `period` microframes.
pub const fn camera(number: u32, period: u32) -> PeriodicEndpoint {
    PeriodicEndpoint {
        id: EndpointId(number),
        transfer: Transfer::Isochronous,
        direction: Direction::In,
        packet: PACKET,
        burst: 10,
        mult: 2,
        period,
        longest_period: period,
        criticality: Criticality::High,
    }
}

/// Returns a bulk endpoint of a link.
const fn bulk(number: u32) -> Async {
    let (transfer, direction) = (Transfer::Bulk, Direction::In);
    let id = EndpointId(100 + number);
    Async { id, transfer, direction, packet: PACKET, burst: 0, guarantee: None }
}

/// Returns the longest time in which an endpoint of four moves so many bytes beside two cameras, in
/// ns.
pub fn bus_ns(bytes: u32) -> Result<u64, Failure> {
    let (bus, all) = (bus(), [bulk(1), bulk(2), bulk(3), bulk(4)]);
    let unfit = || Failure::Ours("table 2's endpoints do not fit".into());
    let plan = plan(&bus, &[camera(1, 1), camera(2, 2)], &all).map_err(|_| unfit())?;
    let worst = plan.worst_time(&bus, &all, all[0].id, bytes).map_err(|_| unfit())?;
    worst.map(|worst| worst.nanos().0).ok_or_else(unfit)
}

/// Returns the terms of a round trip: what, how long in ns, how often.
pub fn terms(machine: &Machine, bus_ns: u64) -> Result<Vec<(&'static str, u64, u64)>, Failure> {
    let board = 1;
    let (app, server) = (machine.period_ns(board, "ping")?, machine.period_ns(board, "dbc")?);
    let route = machine.period_ns(ROUTER, "route")?;
    Ok(vec![
        ("board's program: send, answer, receive (T_tx, T_rx)", app, 3),
        ("board's debug server: send, receive (T_tx, T_rx)", server, 4),
        ("until the debug server looks (T_xDbC)", LOOK_NS, 2),
        ("USB, bulk in and out (T_usb)", bus_ns, 4),
        ("cable and back", machine.cable_ns(), 4),
        ("moderation of the interrupt", MODERATION_NS, 2),
        ("bottom half: what came, what is asked (T_iovcpu, T'_tx)", route, 4),
        ("router (T'_rx)", route, 2),
    ])
}

/// Their sum, in ns.
pub fn sum(terms: &[(&'static str, u64, u64)]) -> u64 {
    terms.iter().map(|(_, ns, times)| ns * times).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact times of `docs/bus.md`, table 2.
    #[test]
    fn the_bus_is_that_of_table_2() {
        let exact = [8_192, 20_480, 40_960, 88_064].map(|bytes| bus_ns(bytes).unwrap() / 100);
        assert_eq!(exact, [2_298, 4_869, 9_726, 19_869]);
    }
}
