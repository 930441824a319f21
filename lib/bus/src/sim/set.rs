//! Random sets of endpoints.

use crate::endpoint::{Async, BusInstance, Criticality, Guarantee, PeriodicEndpoint, Unit};
use crate::limits::EndpointId;
use crate::packet::{Coding, Direction, Speed, Transfer};
use crate::time::Picos;
use alloc::vec::Vec;
use diapason_random::Random;

/// A bus and what is on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    pub bus: BusInstance,
    pub periodic: Vec<PeriodicEndpoint>,
    pub asyncs: Vec<Async>,
}

impl Set {
    /// Returns a random set that makes sense: mostly super and high speed, loads from little to too
    /// much.
    #[must_use]
    pub fn draw(random: &mut Random) -> Set {
        let speed = match random.within(0, 9) {
            0 => Speed::Low,
            1 => Speed::Full,
            2..=4 => Speed::High,
            _ => Speed::Super,
        };
        let mut bus = BusInstance::new(speed);
        if random.one_in(2) {
            bus.coding = Coding::Ignored;
        }
        bus.unit = [Unit::Packet, Unit::Burst, Unit::Unknown][random.within(0, 2) as usize];
        bus.retries = if random.one_in(4) { random.within(1, 3) } else { 0 };
        bus.doorbell = if random.one_in(4) { Picos::from_nanos(500) } else { Picos::ZERO };
        let shift = random.within(0, 4);
        let share = random.within(20, 110);
        let periodic = (0..random.within(0, 6))
            .map(|id| periodic(random, &bus, id, shift, share))
            .collect::<Vec<_>>();
        let count = if speed == Speed::Low { random.within(0, 2) } else { random.within(0, 4) };
        let asyncs = (0..count).map(|id| asynchronous(random, &bus, 100 + id)).collect();
        Set { bus, periodic, asyncs }
    }

    /// Returns all periodic endpoints critical, at their own periods: a set is accepted whole or
    /// not.
    #[must_use]
    pub fn all_critical(mut self) -> Set {
        for endpoint in &mut self.periodic {
            endpoint.criticality = Criticality::High;
            endpoint.longest_period = endpoint.period;
        }
        self
    }

    /// Returns a set near the edge: isochronous endpoints of super speed that fill most of what
    /// they may, all critical, and bulk that needs most of what they leave.
    #[must_use]
    pub fn draw_tight(random: &mut Random) -> Set {
        let bus = BusInstance::uncoded();
        let periodic: Vec<PeriodicEndpoint> = (0..random.within(3, 5))
            .map(|id| {
                let period = 2 << random.within(0, 2);
                PeriodicEndpoint {
                    id: EndpointId(id),
                    transfer: Transfer::Isochronous,
                    direction: Direction::In,
                    packet: 1024,
                    burst: random.within(3, 14),
                    mult: random.within(0, 2),
                    period,
                    longest_period: period,
                    criticality: Criticality::High,
                }
            })
            .collect();
        let share = |p: &PeriodicEndpoint| p.cost(&bus).0 / u64::from(p.period);
        let left = bus.speed.slot().0.saturating_sub(periodic.iter().map(share).sum());
        let count = random.within(1, 3);
        let asyncs = (0..count).map(|id| {
            let period = random.within(1, 12);
            let percent = u64::from(random.within(30, 95));
            let time = left * u64::from(period) / 100 * percent / u64::from(count);
            let packets = (time / 1_778_400).max(1) as u32;
            Async {
                id: EndpointId(100 + id),
                transfer: Transfer::Bulk,
                direction: Direction::In,
                packet: 1024,
                burst: 0,
                guarantee: Some(Guarantee { bytes: packets * 1024, period }),
            }
        });
        let asyncs = asyncs.collect();
        Set { bus, periodic, asyncs }
    }
}

fn direction(random: &mut Random) -> Direction {
    if random.one_in(2) { Direction::In } else { Direction::Out }
}

fn periodic(
    random: &mut Random,
    bus: &BusInstance,
    id: u32,
    shift: u32,
    share: u32,
) -> PeriodicEndpoint {
    let isochronous = bus.speed != Speed::Low && random.one_in(2);
    let transfer = if isochronous { Transfer::Isochronous } else { Transfer::Interrupt };
    let most = bus.speed.largest_packet(transfer);
    let packet = if random.one_in(2) { most } else { random.within(1, most) };
    let (burst, mult) = match (bus.speed, transfer) {
        (Speed::Super, Transfer::Isochronous) => {
            (random.within(0, 15 * share / 110), random.within(0, 2))
        }
        (Speed::Super | Speed::High, _) => (0, random.within(0, 2)),
        _ => (0, 0),
    };
    let period = 1 << random.within(0, shift);
    PeriodicEndpoint {
        id: EndpointId(id),
        transfer,
        direction: direction(random),
        packet,
        burst,
        mult,
        period,
        longest_period: period << if random.one_in(4) { random.within(1, 3) } else { 0 },
        criticality: if random.one_in(2) { Criticality::High } else { Criticality::Low },
    }
}

fn asynchronous(random: &mut Random, bus: &BusInstance, id: u32) -> Async {
    let bulk = bus.speed != Speed::Low && !random.one_in(5);
    let transfer = if bulk { Transfer::Bulk } else { Transfer::Control };
    let most = bus.speed.largest_packet(transfer);
    let packet = if random.one_in(2) { most } else { random.within(8.min(most), most) };
    let burst = match (bus.speed, transfer) {
        (Speed::Super, Transfer::Bulk) if random.one_in(2) => random.within(0, 15),
        _ => 0,
    };
    let endpoint = Async {
        id: EndpointId(id),
        transfer,
        direction: direction(random),
        packet,
        burst,
        guarantee: None,
    };
    if random.one_in(4) {
        return endpoint;
    }
    // Between much less and somewhat more than a slot's share of one endpoint among three.
    let period = random.within(1, 16);
    let slots = bus.speed.slot().0 / 3 / endpoint.packet_time(bus).0.max(1);
    let packets = (slots * u64::from(period)).clamp(1, 1_000) as u32;
    let bytes = random.within(1, packets) * packet - random.within(0, packet - 1);
    Async { guarantee: Some(Guarantee { bytes, period }), ..endpoint }
}
