//! The users of a bus instance: the bus itself, periodic and asynchronous endpoints, and the checks
//! that find a senseless description.

use crate::limits::{BYTES_MAX, ENDPOINTS_MAX, EndpointId, GUARANTEE_SLOTS_MAX, PERIOD_MAX};
use crate::nonsense::InvalidDemand;
use crate::packet::{Coding, Direction, Speed, Transfer, packet_time};
use crate::time::Picos;

/// The unit that the controller starts only if it ends inside the microframe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A packet; a burst may go on in the next microframe.
    Packet,
    Burst,
    /// The documentation does not say: the worse of the two is promised.
    Unknown,
}

/// The rule that decides in which slot of its period a periodic endpoint transmits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Starts {
    /// The schedule: the driver hands over each transfer for its slot.
    Chosen,
    /// The controller, and it does not say: every endpoint is charged in every slot.
    Unknown,
}

/// One bus instance: a controller at one speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusInstance {
    pub speed: Speed,
    /// The way in which the bus's line code is counted.
    pub coding: Coding,
    /// Most of a slot that may be periodic, in percent.
    pub periodic_percent: u32,
    /// The unit that is never divided.
    pub unit: Unit,
    /// The rule that places periodic endpoints.
    pub starts: Starts,
    /// Packets of any endpoint that may fail and be repeated during one guaranteed transfer.
    pub retries: u32,
    /// From the doorbell until the controller has the transfer in its schedule, at most.
    pub doorbell: Picos,
}

impl BusInstance {
    /// Returns a bus as the standard has it, counted as the wire counts, without repetitions, with
    /// a controller that divides bursts, schedules at once, and leaves the starts to us.
    #[must_use]
    pub const fn new(speed: Speed) -> BusInstance {
        BusInstance {
            speed,
            coding: Coding::EightTen,
            periodic_percent: speed.periodic_percent(),
            unit: Unit::Packet,
            starts: Starts::Chosen,
            retries: 0,
            doorbell: Picos::ZERO,
        }
    }

    /// Super speed without its line code: 8 bits on the wire per byte.
    #[must_use]
    pub const fn uncoded() -> BusInstance {
        BusInstance { coding: Coding::Ignored, ..BusInstance::new(Speed::Super) }
    }

    /// Returns the most time of a slot that periodic endpoints may take.
    #[must_use]
    pub const fn periodic_limit(&self) -> Picos {
        Picos(self.speed.slot().0 / 100 * self.periodic_percent as u64)
    }
}

/// Whether an endpoint may be refused for the sake of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Criticality {
    /// The schedule holds with it or not at all.
    High,
    /// The endpoint gets what is left.
    Low,
}

/// An interrupt or isochronous endpoint: one transfer of up to `q` bytes every period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeriodicEndpoint {
    pub id: EndpointId,
    pub transfer: Transfer,
    /// The direction of the endpoint's data.
    pub direction: Direction,
    /// `b`: bytes of its largest packet.
    pub packet: u32,
    /// `n`: packets of a burst, less one.
    pub burst: u32,
    /// `m`: bursts of a transfer, less one.
    pub mult: u32,
    /// `T` in slots, a power of two.
    pub period: u32,
    /// The endpoint may run at any longer period up to this one if it does not fit otherwise.
    pub longest_period: u32,
    /// The consequence if it does not fit.
    pub criticality: Criticality,
}

/// The promise to a bulk or control endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarantee {
    /// `B`: so many bytes …
    pub bytes: u32,
    /// `T`: … within so many slots of being queued, from whatever instant.
    pub period: u32,
}

/// A bulk or control endpoint: it takes part in the round robin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Async {
    pub id: EndpointId,
    pub transfer: Transfer,
    /// The direction of the endpoint's data.
    pub direction: Direction,
    /// `b`: bytes of its largest packet.
    pub packet: u32,
    /// `n`: packets of a burst, less one.
    pub burst: u32,
    /// The endpoint's promise; without one it only takes time from the others.
    pub guarantee: Option<Guarantee>,
}

impl PeriodicEndpoint {
    /// `(m + 1)(n + 1)`.
    #[must_use]
    pub const fn packets(&self) -> u32 {
        (self.mult + 1) * (self.burst + 1)
    }

    /// `w`: how long its packet takes, equation 3.
    #[must_use]
    pub const fn packet_time(&self, bus: &BusInstance) -> Picos {
        packet_time(bus.speed, bus.coding, self.transfer, self.direction, self.packet)
    }

    /// Returns how long its transfer takes: all its packets, whether the device uses them or not.
    #[must_use]
    pub const fn cost(&self, bus: &BusInstance) -> Picos {
        self.packet_time(bus).times(self.packets() as u64)
    }

    /// Equation 2 and what goes with it.
    ///
    /// # Errors
    /// Returns an error that names the first key that makes no sense on this bus.
    pub fn check(&self, bus: &BusInstance) -> Result<(), InvalidDemand> {
        if !matches!(self.transfer, Transfer::Interrupt | Transfer::Isochronous) {
            return Err(InvalidDemand::Type(self.id));
        }
        check_packet(self.id, bus, self.transfer, self.packet)?;
        let most = match (bus.speed, self.transfer) {
            (Speed::Super, Transfer::Isochronous) => 48,
            (Speed::Super | Speed::High, _) => 3,
            (Speed::Full | Speed::Low, _) => 1,
        };
        let fits = self.burst <= 15 && self.mult <= 2 && self.packets() <= most;
        if !fits {
            return Err(InvalidDemand::Packets(self.id, most));
        }
        let possible = |period: u32| period.is_power_of_two() && period <= PERIOD_MAX;
        let sane = possible(self.period)
            && possible(self.longest_period)
            && self.period <= self.longest_period;
        if sane { Ok(()) } else { Err(InvalidDemand::Period(self.id)) }
    }
}

impl Async {
    /// `w`: how long its packet takes, equation 3.
    #[must_use]
    pub const fn packet_time(&self, bus: &BusInstance) -> Picos {
        packet_time(bus.speed, bus.coding, self.transfer, self.direction, self.packet)
    }

    /// `(n + 1)·w`: how long one visit of the round robin takes.
    #[must_use]
    pub const fn visit(&self, bus: &BusInstance) -> Picos {
        self.packet_time(bus).times(self.burst as u64 + 1)
    }

    /// Equation 4: visits needed for `bytes`.
    #[must_use]
    pub const fn visits(&self, bytes: u32) -> u32 {
        bytes.div_ceil((self.burst + 1) * self.packet)
    }

    /// # Errors
    /// Returns an error that names the first key that makes no sense on this bus.
    pub fn check(&self, bus: &BusInstance) -> Result<(), InvalidDemand> {
        if !matches!(self.transfer, Transfer::Control | Transfer::Bulk) {
            return Err(InvalidDemand::Type(self.id));
        }
        check_packet(self.id, bus, self.transfer, self.packet)?;
        let most = match (bus.speed, self.transfer) {
            (Speed::Super, Transfer::Bulk) => 16,
            _ => 1,
        };
        if self.burst >= most {
            return Err(InvalidDemand::Packets(self.id, most));
        }
        match self.guarantee {
            Some(Guarantee { bytes, period })
                if !(1..=BYTES_MAX).contains(&bytes)
                    || !(1..=GUARANTEE_SLOTS_MAX).contains(&period) =>
            {
                Err(InvalidDemand::Guarantee(self.id))
            }
            _ => Ok(()),
        }
    }
}

fn check_packet(
    id: EndpointId,
    bus: &BusInstance,
    transfer: Transfer,
    packet: u32,
) -> Result<(), InvalidDemand> {
    match bus.speed.largest_packet(transfer) {
        0 => Err(InvalidDemand::Type(id)),
        most if packet == 0 || packet > most => Err(InvalidDemand::Packet(id, most)),
        _ => Ok(()),
    }
}

/// Everything on a bus, checked.
///
/// # Errors
/// The first thing that makes no sense.
pub fn check(
    bus: &BusInstance,
    periodic: &[PeriodicEndpoint],
    asyncs: &[Async],
) -> Result<(), InvalidDemand> {
    if !(1..=100).contains(&bus.periodic_percent) {
        return Err(InvalidDemand::Percent(bus.periodic_percent));
    }
    if bus.retries > 65_535 {
        return Err(InvalidDemand::Retries(bus.retries));
    }
    let count = periodic.len().max(asyncs.len());
    if count > ENDPOINTS_MAX {
        return Err(InvalidDemand::Endpoints(count));
    }
    periodic.iter().try_for_each(|endpoint| endpoint.check(bus))?;
    asyncs.iter().try_for_each(|endpoint| endpoint.check(bus))?;
    let mut ids: alloc::vec::Vec<EndpointId> =
        periodic.iter().map(|e| e.id).chain(asyncs.iter().map(|e| e.id)).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(InvalidDemand::Twice(pair[0])),
        None => Ok(()),
    }
}
