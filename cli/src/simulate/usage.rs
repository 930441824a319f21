//! How much of its time each USB bus was used, and by whom.

use crate::table::{Columns, TableCell, cell};
use diapason_abi::Nanos;
use diapason_bus::{Picos, Speed};
use diapason_sim::TapTraffic;
use diapason_usb::context::EndpointKind;
use diapason_usb::trb::endpoint_address;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The share of a bus that one endpoint used.
#[derive(Clone, Copy, Debug)]
struct Share {
    kind: EndpointKind,
    packets: u64,
    bytes: u64,
    time: Picos,
}

impl Share {
    fn of(packets: impl Iterator<Item = Share>, kind: EndpointKind) -> Share {
        let none = Share { kind, packets: 0, bytes: 0, time: Picos::ZERO };
        packets.fold(none, |sum, one| Share {
            kind,
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
            time: sum.time + one.time,
        })
    }
}

/// The buses of one controller.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    controller: String,
    buses: Vec<(Speed, bool)>,
    /// By bus, slot and context index.
    shares: BTreeMap<(usize, u8, u8), Share>,
}

impl Usage {
    /// Returns an empty count.
    #[must_use]
    pub fn new(controller: String) -> Usage {
        Usage { controller, buses: Vec::new(), shares: BTreeMap::new() }
    }

    /// Adds the traffic of a bus.
    pub fn add(&mut self, passed: &TapTraffic) {
        self.buses.clone_from(&passed.buses);
        for packet in &passed.packets {
            let place = (packet.bus, packet.slot, packet.endpoint);
            let kind = packet.kind;
            let none = Share { kind, packets: 0, bytes: 0, time: Picos::ZERO };
            let share = self.shares.entry(place).or_insert(none);
            share.packets += 1;
            share.bytes += u64::from(packet.bytes);
            share.time = share.time + (packet.end - packet.start);
        }
    }

    /// Returns a bus in words.
    #[must_use]
    pub fn bus(&self, bus: usize) -> String {
        let speed = match self.buses.get(bus) {
            Some((Speed::Super, _)) => "super speed",
            Some((Speed::High, _)) => "high speed",
            Some((_, true)) => "full speed, behind a hub",
            Some((_, false)) => "full speed",
            None => "bus",
        };
        // A controller has one of each but of those behind hubs.
        let behind = self.buses.get(bus).is_some_and(|(_, behind)| *behind);
        let number = if behind { format!(" (bus {bus})") } else { String::new() };
        format!("{}, {speed}{number}", self.controller)
    }

    /// Returns a line for each bus that was used, and below it one for each endpoint.
    #[must_use]
    pub fn render(all: &[Usage], end: Nanos) -> String {
        let lines = |usage: &Usage, bus| {
            let [periodic, asynchronous] = usage.sums(bus);
            let line = |bus, who: &str, share| Line { bus, who: who.into(), share };
            let sums = [
                line(usage.bus(bus), "periodic", periodic),
                line(String::new(), "asynchronous", asynchronous),
            ];
            sums.into_iter().chain(usage.endpoints(bus)).collect::<Vec<Line>>()
        };
        let used = all.iter().flat_map(|usage| usage.used().into_iter().map(move |it| (usage, it)));
        Line::columns(end).table(used.flat_map(|(usage, bus)| lines(usage, bus))).render()
    }

    fn used(&self) -> Vec<usize> {
        let mut buses: Vec<usize> = self.shares.keys().map(|place| place.0).collect();
        buses.dedup();
        buses
    }

    fn endpoints(&self, bus: usize) -> impl Iterator<Item = Line> {
        self.of(bus).map(|(place, share)| {
            let who = who(*place, share.kind);
            Line { bus: String::new(), who: cell(format!("  {who}"), who), share: *share }
        })
    }

    fn of(&self, bus: usize) -> impl Iterator<Item = (&(usize, u8, u8), &Share)> {
        self.shares.range((bus, 0, 0)..=(bus, u8::MAX, u8::MAX))
    }

    /// Returns the sums of periodic and asynchronous endpoints.
    fn sums(&self, bus: usize) -> [Share; 2] {
        [true, false].map(|periodic| {
            let shares = self.of(bus).map(|(_, share)| *share);
            let kind = if periodic { EndpointKind::InterruptIn } else { EndpointKind::BulkIn };
            Share::of(shares.filter(|share| share.kind.is_periodic() == periodic), kind)
        })
    }

    /// Returns the usage of all buses as JSON, shares in millionths.
    #[must_use]
    pub fn to_json(all: &[Usage], end: Nanos) -> Value {
        let used = all.iter().flat_map(|usage| usage.used().into_iter().map(move |it| (usage, it)));
        let bus = |(usage, bus): (&Usage, usize)| {
            let [periodic, asynchronous] = usage.sums(bus);
            json!({
                "bus": usage.bus(bus),
                "periodic_ppm": ppm(periodic.time, end),
                "asynchronous_ppm": ppm(asynchronous.time, end),
                "endpoints": Line::columns(end).objects(usage.endpoints(bus)),
            })
        };
        used.map(bus).collect()
    }
}

/// A line of the table. The bus stands in the first of its lines.
struct Line {
    bus: String,
    who: TableCell,
    share: Share,
}

impl Line {
    fn columns(end: Nanos) -> Columns<'static, Line> {
        Columns::<Line>::default()
            .left("bus", |it| it.bus.clone())
            .left(("used by", "used_by"), |it| it.who.clone())
            .right(("packets", "packets"), |it| it.share.packets)
            .right(("bytes", "bytes"), |it| it.share.bytes)
            .json("time_ps", |it| it.share.time.0)
            .right(("of its time", "share_ppm"), move |it| {
                let ppm = ppm(it.share.time, end);
                cell(format!("{}.{:04} %", ppm / 10_000, ppm % 10_000), ppm)
            })
    }
}

/// Returns an endpoint in words.
pub fn who(place: (usize, u8, u8), kind: EndpointKind) -> String {
    let kind = match kind {
        EndpointKind::Control => "control",
        EndpointKind::BulkIn => "bulk in",
        EndpointKind::BulkOut => "bulk out",
        EndpointKind::InterruptIn => "interrupt in",
        EndpointKind::InterruptOut => "interrupt out",
        EndpointKind::IsochIn => "isochronous in",
        EndpointKind::IsochOut => "isochronous out",
    };
    format!("device {}, {kind} {}", place.1, endpoint_address(place.2) & 0xf)
}

/// Millionths of the time up to `end`, rounded down.
fn ppm(time: Picos, end: Nanos) -> u64 {
    let whole = u128::from(end.0.max(1)) * 1_000;
    (u128::from(time.0) * 1_000_000 / whole) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_sim::{BusPacket, PacketOutcome};

    fn packet(bus: usize, endpoint: u8, kind: EndpointKind, nanos: u64) -> BusPacket {
        let (start, end) = (Picos::ZERO, Picos::from_nanos(nanos));
        let outcome = PacketOutcome::Moved;
        BusPacket { start, end, bus, slot: 1, endpoint, kind, bytes: 512, outcome }
    }

    #[test]
    fn times_add_up_by_bus_and_endpoint() {
        let mut usage = Usage::new("xhci".into());
        let bulk = packet(0, 5, EndpointKind::BulkIn, 1_000);
        let buses = vec![(Speed::High, false), (Speed::Full, false), (Speed::Super, false)];
        let packets = vec![bulk, bulk, packet(2, 3, EndpointKind::IsochIn, 250)];
        usage.add(&TapTraffic { packets, buses, ..TapTraffic::default() });
        let expected = "\
bus                used by                       packets  bytes  of its time
-----------------  ----------------------------  -------  -----  -----------
xhci, high speed   periodic                            0      0     0.0000 %
                   asynchronous                        2   1024    20.0000 %
                     device 1, bulk in 2               2   1024    20.0000 %
xhci, super speed  periodic                            1    512     2.5000 %
                   asynchronous                        0      0     0.0000 %
                     device 1, isochronous in 1        1    512     2.5000 %
";
        assert_eq!(Usage::render(&[usage.clone()], Nanos(10_000)), expected);
        let json = Usage::to_json(&[usage], Nanos(10_000));
        assert_eq!(json[0]["asynchronous_ppm"], 200_000);
        assert_eq!(json[1]["endpoints"][0]["time_ps"], 250_000);
    }
}
