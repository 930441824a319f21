//! Random ports, their traffic, and a run of it.

use diapason_random::Random;
use diapason_tsn::{
    CLASSES, Egress, EgressStep, GateEntry, GateList, LinkRate, Shaping, TrafficFlow,
};

/// A frame that comes: when, its class, its time on the wire.
pub type Arriving = (u64, usize, u64);
/// A frame that went: its number among those that came, its start, its end.
pub type Gone = (usize, u64, u64);

/// Runs a port until everything has left that came.
pub fn run(egress: &mut Egress<usize>, arriving: &[Arriving]) -> Vec<Gone> {
    let (mut next, mut now, mut gone) = (0, 0, Vec::new());
    loop {
        while let Some((_, class, wire)) = arriving.get(next).filter(|it| it.0 <= now) {
            egress.push(now, *class, *wire, next).unwrap();
            next += 1;
        }
        let comes = arriving.get(next).map(|it| it.0);
        let acts = match egress.step(now) {
            EgressStep::Sends { item, end_ns, .. } => {
                gone.push((item, now, end_ns));
                Some(end_ns)
            }
            EgressStep::Waits { until_ns } => Some(until_ns),
            EgressStep::Idle => None,
        };
        let Some(at) = comes.into_iter().chain(acts).min() else { return gone };
        assert!(at > now || comes == Some(at), "time stands still at {now}");
        now = at;
    }
}

/// Returns a list of a few short entries for the first `classes` classes.
pub fn gates(random: &mut Random, classes: u32) -> GateList {
    let entries: Vec<GateEntry> = (0..random.between(1, 5))
        .map(|_| GateEntry {
            mask: random.within(0, (1 << classes) - 1) as u8,
            interval_ns: random.between(1, 14),
        })
        .collect();
    GateList::new(random.below(30), None, &entries).unwrap()
}

/// Returns flows of the first `classes` classes, each of whose frames fits somewhere.
pub fn flows(random: &mut Random, gates: &GateList, classes: usize) -> Vec<TrafficFlow> {
    let mut flows = Vec::new();
    for _ in 0..random.between(1, 4) {
        let flow = TrafficFlow {
            class: random.index(classes),
            wire_ns: random.between(1, 7),
            period_ns: random.between(12, 90),
            jitter_ns: if random.one_in(2) { 0 } else { random.below(40) },
            burst: random.between(1, 2),
            phase: None,
        };
        if gates.check(flow.class, flow.wire_ns).is_ok() {
            flows.push(flow);
        }
    }
    flows
}

/// Returns frames as the flows allow them, up to a time: late first and early then, or at random.
pub fn arrivals(random: &mut Random, flows: &[TrafficFlow], until: u64) -> Vec<Arriving> {
    let mut all = Vec::new();
    for flow in flows {
        let (mut at, clump) = (random.below(flow.period_ns + 20), random.one_in(2));
        let mut first = true;
        while at < until {
            let late = if clump {
                if first { flow.jitter_ns } else { 0 }
            } else {
                random.below(flow.jitter_ns + 1)
            };
            for _ in 0..flow.burst {
                all.push((at + late, flow.class, flow.wire_ns));
            }
            first = false;
            at += flow.period_ns + if clump { 0 } else { random.below(3) };
        }
    }
    all.sort_unstable();
    all
}

/// Returns a gigabit port without credit.
pub fn strict(gates: &GateList) -> Egress<usize> {
    Egress::new(gates.clone(), LinkRate::GIGABIT, [Shaping::Strict; CLASSES]).unwrap()
}
