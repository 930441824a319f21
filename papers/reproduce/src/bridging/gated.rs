//! The port of a switch with gates: what it promises, and packets that pass it by a clock that is
//! free or steered to that of the USB controller.
//!
//! The packets are those of the run over USB alone, and are ready when they were at the link there.
//! Best-effort frames of the longest length wait at all times, and the window is all that keeps
//! them away.

use crate::links::{CABLE_NS, HEADS, PACKET, PacketWay, SENSOR_NS, SWITCH_PPM};
use diapason::Failure;
use diapason_tsn::{
    CLASSES, Egress, EgressStep, GateEntry, GateList, GateRefusal, LinkRate, PortModel, ServoClock,
    Shaping, TrafficFlow, wire_bytes,
};

/// The cycle of the gates, as long as a microframe.
pub const CYCLE_NS: u64 = 125_000;
/// The windows of the paper.
pub const WINDOWS_NS: [u64; 4] = [8_000, 16_000, 62_000, 112_000];
/// Bytes of a packet with the heads of UDP and IP, and of the longest frame.
const DATAGRAM: u64 = HEADS + PACKET;
const LONGEST: u64 = 1_500;
/// Classes of the sensor and of best effort.
const SENSOR: usize = 1;
const BEST_EFFORT: usize = 0;
/// The transfer over USB 3 (equation 4), which Ethernet does not have.
const USB3_NS: u64 = 901;
/// By how much the clock of the gates gains if nobody coordinates it with the USB controller's.
const DRIFT_PPB: i64 = 1_000 * SWITCH_PPM as i64;
/// Time between two Syncs of a coordinated clock, and the noise of one.
const SYNC_NS: u64 = 125_000_000;
const NOISE_NS: i64 = 100;

/// The clock that says when gates open.
#[derive(Clone, Copy)]
pub enum GateClock {
    /// The adapter's own clock.
    Free,
    /// The USB controller's, by messages with noise.
    Steered,
}

fn failed(refusal: GateRefusal) -> Failure {
    Failure::Ours(refusal.to_string())
}

/// Returns the time on the wire of a payload with a tag.
fn wire_ns(payload: u64) -> u64 {
    wire_bytes(payload, true).map_or(0, |bytes| LinkRate::GIGABIT.time_ns(bytes))
}

/// Returns the time of a packet on the wire.
pub fn packet_ns() -> u64 {
    wire_ns(DATAGRAM)
}

/// Returns the list with a window for the sensor that opens at this phase of the cycle.
fn gates(window_ns: u64, open_ns: u64) -> Result<GateList, Failure> {
    let entry = |class: usize, interval_ns| GateEntry { mask: 1 << class, interval_ns };
    let entries = [entry(SENSOR, window_ns), entry(BEST_EFFORT, CYCLE_NS - window_ns)];
    GateList::new(open_ns, Some(CYCLE_NS), &entries).map_err(failed)
}

/// Returns when a packet is ready for the wire: with the software of the USB link behind it.
pub fn ready(way: &PacketWay) -> u64 {
    way.came.saturating_sub(USB3_NS + CABLE_NS)
}

/// Sends all packets through a port whose window opens at this phase of its clock. Returns the time
/// from each being ready to its end on the wire.
///
/// # Errors
/// None for windows that are longer than a packet.
pub fn passed(
    ways: &[PacketWay],
    (window_ns, open_ns): (u64, u64),
    clock: GateClock,
) -> Result<Vec<u64>, Failure> {
    let mut port = Port::new(gates(window_ns, open_ns)?, clock)?;
    let mut all = Vec::new();
    for way in ways {
        let ready = ready(way);
        port.idle_until(ready)?;
        all.push(port.send(ready)? - ready);
    }
    Ok(all)
}

/// A port with best-effort frames that always wait, on a clock.
struct Port {
    egress: Egress<()>,
    clock: ServoClock,
    steered: bool,
    sync_at: u64,
    syncs: i64,
    now: u64,
}

impl Port {
    fn new(gates: GateList, clock: GateClock) -> Result<Port, Failure> {
        let shaping = [Shaping::Strict; CLASSES];
        let egress = Egress::new(gates, LinkRate::GIGABIT, shaping).map_err(failed)?;
        let steered = matches!(clock, GateClock::Steered);
        let clock = ServoClock::new(DRIFT_PPB, 0);
        Ok(Port { egress, clock, steered, sync_at: 0, syncs: 0, now: 0 })
    }

    fn local(&self, at: u64) -> u64 {
        u64::try_from(self.clock.read(at)).unwrap_or(0)
    }

    /// Takes the Syncs that are due.
    fn sync(&mut self) {
        while self.steered && self.sync_at <= self.now {
            // Noise that is as bad as it may be, one way and the other.
            let noise = if self.syncs % 2 == 0 { NOISE_NS } else { -NOISE_NS };
            self.clock.sync(self.sync_at, noise);
            (self.syncs, self.sync_at) = (self.syncs + 1, self.sync_at + SYNC_NS);
        }
    }

    /// Sends best-effort frames until a time. Long before it nothing matters to the packet.
    fn idle_until(&mut self, until: u64) -> Result<(), Failure> {
        self.now = self.now.max(until.saturating_sub(4 * CYCLE_NS));
        while self.now < until {
            self.step(until)?;
        }
        Ok(())
    }

    /// Queues a packet now, and returns the end of its transmission.
    fn send(&mut self, ready: u64) -> Result<u64, Failure> {
        self.now = ready;
        self.sync();
        let local = self.local(ready);
        self.egress.push(local, SENSOR, wire_ns(DATAGRAM), ()).map_err(failed)?;
        loop {
            if let Some(end) = self.step(u64::MAX)? {
                return Ok(end);
            }
        }
    }

    /// Does one step, but goes no further than `until`; the end of a packet that it sends.
    fn step(&mut self, until: u64) -> Result<Option<u64>, Failure> {
        self.sync();
        let local = self.local(self.now);
        if self.egress.waiting(BEST_EFFORT) == 0 {
            self.egress.push(local, BEST_EFFORT, wire_ns(LONGEST), ()).map_err(failed)?;
        }
        let (next, sends) = match self.egress.step(local) {
            EgressStep::Sends { class, end_ns, .. } => (end_ns, class == SENSOR),
            EgressStep::Waits { until_ns } => (until_ns, false),
            EgressStep::Idle => (local + 1, false),
        };
        let at = self.clock.when(i128::from(next)).max(self.now + 1);
        let turn = if self.steered { self.sync_at } else { u64::MAX };
        self.now = if sends { at } else { at.min(until).min(turn) };
        Ok(sends.then_some(at))
    }
}

/// Returns how long a packet is at the port at most, at any phase of the cycle.
///
/// # Errors
/// If no bound exists.
pub fn port_bound(window_ns: u64, spread_ns: u64) -> Result<u64, Failure> {
    bound(&gates(window_ns, 0)?, spread_ns, None)
}

/// Returns the same for packets that are ready in a known part of the cycle.
///
/// # Errors
/// If no bound exists.
pub fn aligned_bound(
    (window_ns, open_ns): (u64, u64),
    (from, to): (u64, u64),
) -> Result<u64, Failure> {
    let error = ServoClock::stated_error_ns(NOISE_NS.unsigned_abs());
    let phase = (from + CYCLE_NS - error, to + CYCLE_NS + error);
    let most = bound(&gates(window_ns, open_ns)?, to - from, Some(phase))?;
    // The clock may be corrected while the packet waits.
    Ok(most + 2 * error)
}

fn bound(gates: &GateList, jitter_ns: u64, phase: Option<(u64, u64)>) -> Result<u64, Failure> {
    let sensor = TrafficFlow {
        class: SENSOR,
        wire_ns: wire_ns(DATAGRAM),
        period_ns: SENSOR_NS,
        jitter_ns,
        burst: 1,
        phase,
    };
    // Best effort has its own windows. One long frame in each of them stands for all.
    let long = wire_ns(LONGEST);
    let other = TrafficFlow {
        class: BEST_EFFORT,
        wire_ns: long,
        period_ns: SENSOR_NS,
        phase: None,
        ..sensor
    };
    let flows = [sensor, other];
    let shaping = [Shaping::Strict; CLASSES];
    let rate = LinkRate::GIGABIT;
    let delays = PortModel { gates, rate, shaping: &shaping, flows: &flows, guard_ns: 0 }.delays();
    let delays = delays.map_err(failed)?;
    // A free clock gains while a packet waits.
    let drift = |ns: u64| ns + ns * DRIFT_PPB.unsigned_abs() / 1_000_000_000 + 2;
    delays[SENSOR].map(|delay| drift(delay.most_ns)).ok_or_else(|| Failure::Ours("no bound".into()))
}

/// Returns the phases of the cycle, from the first to the last, at which these packets are ready,
/// as one range that begins in the first cycle.
pub fn phases(ways: &[PacketWay]) -> Option<(u64, u64)> {
    let first = ready(ways.first()?) % CYCLE_NS;
    // Differences from the first one, less than half a cycle either way.
    let off = |way: &PacketWay| {
        let late = (ready(way) % CYCLE_NS + CYCLE_NS - first) % CYCLE_NS;
        if late < CYCLE_NS / 2 { late as i64 } else { late as i64 - CYCLE_NS as i64 }
    };
    let least = ways.iter().map(off).min()?;
    let most = ways.iter().map(off).max()?;
    let from = (first as i64 + least).rem_euclid(CYCLE_NS as i64) as u64;
    Some((from, from + (most - least) as u64))
}

/// Returns the opening of a coordinated window: it closes when the latest packet that was seen has
/// just passed.
pub fn planned((_, to): (u64, u64), window_ns: u64) -> u64 {
    let error = ServoClock::stated_error_ns(NOISE_NS.unsigned_abs());
    let close = to + wire_ns(DATAGRAM) + 2 * error;
    (close + 2 * CYCLE_NS - window_ns) % CYCLE_NS
}

/// Returns the share of a link, in Mbit/s, that payloads of one length can have in a window.
pub fn most_mbits(payload: u64, window_ns: u64) -> f64 {
    let frames = window_ns / wire_ns(payload).max(1);
    (frames * payload * 8) as f64 * 1_000.0 / CYCLE_NS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that are ready at these times, every 20 cycles.
    fn ways(jitter: impl Fn(u64) -> u64) -> Vec<PacketWay> {
        let way = |number: u64| {
            let made = 1_000_000_000 + number * SENSOR_NS;
            let came = made + 40_000 + jitter(number) + USB3_NS + CABLE_NS;
            PacketWay { made, sent: made + 30_000, came, here: came + 5_000 }
        };
        (0..2_000).map(way).collect()
    }

    #[test]
    fn no_packet_is_longer_at_the_port_than_its_bound() {
        let ways = ways(|number| number % 7 * 100);
        for window in WINDOWS_NS {
            let seen = passed(&ways, (window, 0), GateClock::Free).unwrap();
            let most = seen.into_iter().max().unwrap();
            let bound = port_bound(window, 1_000).unwrap();
            assert!(most <= bound, "{window}: {most} above {bound}");
            assert!(
                most + 2_000 > bound,
                "{window}: the drift reaches every phase: {most} {bound}"
            );
        }
    }

    #[test]
    fn a_coordinated_window_is_never_missed() {
        let ways = ways(|number| number % 7 * 100);
        let phases = phases(&ways).unwrap();
        assert_eq!(phases.1 - phases.0, 600);
        let open = planned(phases, 8_000);
        let seen = passed(&ways, (8_000, open), GateClock::Steered).unwrap();
        let most = seen.into_iter().max().unwrap();
        let bound = aligned_bound((8_000, open), phases).unwrap();
        assert!(most <= bound && bound < 8_000, "{most} {bound}");
        let early = passed(&ways, (8_000, open + 60_000), GateClock::Steered).unwrap();
        assert!(early.iter().all(|time| *time > 50_000), "a wrong phase waits");
    }
}
