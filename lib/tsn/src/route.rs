//! Flows over several ports: each hop delays them and spreads them, and the next hop sees that.
//!
//! An aligned flow comes to its first port in a known part of the cycle. The gates of each port
//! bring it in line again, so its spread does not grow from hop to hop.

use crate::{CLASSES, GateList, GateRefusal, LinkRate, PortModel, Shaping, TrafficFlow};
use alloc::vec::Vec;

/// A port of a network.
#[derive(Clone, Debug)]
pub struct RoutedPort {
    pub gates: GateList,
    pub rate: LinkRate,
    pub shaping: [Shaping; CLASSES],
    /// Time from the end of a frame at this port to the queue at the next: cable and switch.
    pub onward_ns: (u64, u64),
}

/// A flow and the ports that it passes.
#[derive(Clone, Debug)]
pub struct FlowRoute {
    /// The flow as it comes to its first port.
    pub flow: TrafficFlow,
    pub ports: Vec<usize>,
}

/// Time of a frame from its first queue to the end of its last hop's onward time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndToEnd {
    pub most_ns: u64,
    pub least_ns: u64,
    /// The longest time at each port, from its queue to the end of the frame.
    pub hops: Vec<u64>,
}

/// Rounds after which jitter that still grows is taken to grow for ever.
const MOST_ROUNDS: usize = 64;

/// Returns the delay of every route. Clocks of two ports differ by at most `sync_ns`.
///
/// # Errors
/// If a port refuses what comes to it, a route names no port, or jitter grows round a circle.
pub fn end_to_end(
    ports: &[RoutedPort],
    routes: &[FlowRoute],
    sync_ns: u64,
) -> Result<Vec<EndToEnd>, GateRefusal> {
    if let Some(port) = routes.iter().flat_map(|it| &it.ports).find(|it| **it >= ports.len()) {
        return Err(GateRefusal::Port { port: *port });
    }
    let stages = |route: &FlowRoute| alloc::vec![route.flow; route.ports.len()];
    let mut seen: Vec<Vec<TrafficFlow>> = routes.iter().map(stages).collect();
    for _ in 0..MOST_ROUNDS {
        let delays = at_ports(ports, routes, &seen)?;
        let mut later = seen.clone();
        for (number, route) in routes.iter().enumerate() {
            for hop in 1..route.ports.len() {
                let before = seen[number][hop - 1];
                let port = route.ports[hop - 1];
                let pair = (&ports[port], &ports[route.ports[hop]]);
                let next = onward(pair, &delays[port], before, sync_ns)?;
                later[number][hop] = next;
            }
        }
        if later == seen {
            let ends = routes.iter().map(|route| total(ports, route, &delays));
            return Ok(ends.collect());
        }
        seen = later;
    }
    let class = routes.first().map_or(0, |route| route.flow.class);
    Err(GateRefusal::Rate { class, asked_ppm: u64::MAX, offered_ppm: 1_000_000 })
}

/// The longest and the shortest delay of each class at a port, and where its frames end in a cycle.
struct AtPort {
    delays: crate::PortDelays,
    flows: Vec<TrafficFlow>,
}

fn at_ports(
    ports: &[RoutedPort],
    routes: &[FlowRoute],
    seen: &[Vec<TrafficFlow>],
) -> Result<Vec<AtPort>, GateRefusal> {
    let mut all = Vec::new();
    for (number, port) in ports.iter().enumerate() {
        let mut flows = Vec::new();
        for (route, stages) in routes.iter().zip(seen) {
            let here = route.ports.iter().zip(stages).filter(|(it, _)| **it == number);
            flows.extend(here.map(|(_, flow)| *flow));
        }
        let delays = model(port, &flows).delays()?;
        all.push(AtPort { delays, flows });
    }
    Ok(all)
}

fn model<'a>(port: &'a RoutedPort, flows: &'a [TrafficFlow]) -> PortModel<'a> {
    PortModel { gates: &port.gates, rate: port.rate, shaping: &port.shaping, flows, guard_ns: 0 }
}

/// Returns a flow as it comes from one port to the next.
fn onward(
    (port, next): (&RoutedPort, &RoutedPort),
    at: &AtPort,
    flow: TrafficFlow,
    sync_ns: u64,
) -> Result<TrafficFlow, GateRefusal> {
    let most = at.delays[flow.class].map_or(0, |delay| delay.most_ns);
    let spread = most - flow.wire_ns + (port.onward_ns.1 - port.onward_ns.0);
    let any = TrafficFlow { jitter_ns: flow.jitter_ns + spread, phase: None, ..flow };
    let cycle = port.gates.cycle_ns();
    let Some((from, to)) = flow.phase.filter(|_| next.gates.cycle_ns() == cycle) else {
        return Ok(any);
    };
    let Some(start) = port.gates.next_start(flow.class, from, flow.wire_ns) else {
        return Ok(any);
    };
    let first = start + flow.wire_ns + port.onward_ns.0;
    let last = model(port, &at.flows).latest_end(flow.class)?.unwrap_or(to + most);
    let last = last + port.onward_ns.1;
    // The next port's clock may be ahead or behind.
    let (first, spread) = (first + cycle - sync_ns % cycle, last - first + 2 * sync_ns);
    if spread >= cycle {
        return Ok(any);
    }
    let from = first % cycle;
    let jitter_ns = spread.min(any.jitter_ns);
    Ok(TrafficFlow { jitter_ns, phase: Some((from, from + spread)), ..flow })
}

fn total(ports: &[RoutedPort], route: &FlowRoute, delays: &[AtPort]) -> EndToEnd {
    let class = route.flow.class;
    let most = |port: &usize| delays[*port].delays[class].map_or(0, |delay| delay.most_ns);
    let hops: Vec<u64> = route.ports.iter().map(most).collect();
    let onward = |last: bool| {
        let each = route.ports.iter().map(|port| ports[*port].onward_ns);
        each.map(|(least, most)| if last { most } else { least }).sum::<u64>()
    };
    let wires = route.flow.wire_ns * route.ports.len() as u64;
    EndToEnd {
        most_ns: hops.iter().sum::<u64>() + onward(true),
        least_ns: wires + onward(false),
        hops,
    }
}
