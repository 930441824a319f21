//! Access to the buses: every endpoint passes `diapason_bus::BusScheduler` before the controller
//! learns of it.

use crate::Speed;
use crate::descriptor::EndpointDescriptor;
use alloc::vec::Vec;
use diapason_bus::{
    Async, BusInstance, BusScheduler, Criticality, EndpointId, EndpointRefusal, Guarantee, Moves,
    NoSchedule, PeriodicEndpoint, ScheduleChange, Transfer,
};

/// The bus instances of a controller: one for each speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buses {
    pub low: BusInstance,
    pub full: BusInstance,
    pub high: BusInstance,
    pub superspeed: BusInstance,
    /// Control endpoints count, although they are silent most of the time.
    pub control: bool,
}

impl Default for Buses {
    fn default() -> Buses {
        Buses {
            low: BusInstance::new(Speed::Low),
            full: BusInstance::new(Speed::Full),
            high: BusInstance::new(Speed::High),
            superspeed: BusInstance::new(Speed::Super),
            control: true,
        }
    }
}

/// An endpoint a client wants, and how much it matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointPlan {
    /// As its descriptor says.
    pub endpoint: EndpointDescriptor,
    /// Periodic: what happens if it does not fit.
    pub criticality: Criticality,
    /// Periodic: it may run at so many times its period, a power of two.
    pub stretch: u32,
    /// Bulk: what it is promised.
    pub guarantee: Option<Guarantee>,
}

impl EndpointPlan {
    /// Plans the endpoint at its own period, and not before others.
    #[must_use]
    pub const fn new(endpoint: EndpointDescriptor) -> EndpointPlan {
        EndpointPlan { endpoint, criticality: Criticality::Low, stretch: 1, guarantee: None }
    }

    /// The schedule holds with it or the device is not configured.
    #[must_use]
    pub const fn critical(endpoint: EndpointDescriptor) -> EndpointPlan {
        EndpointPlan { criticality: Criticality::High, ..EndpointPlan::new(endpoint) }
    }
}

#[derive(Debug)]
pub(super) struct Budget {
    schedulers: [BusScheduler; 4],
    control: bool,
}

/// Returns the name of an endpoint on its bus: index of its device and device context index.
pub(super) const fn name(device: u8, index: u8) -> EndpointId {
    EndpointId((device as u32) << 5 | index as u32)
}

/// Returns the owner of the reservation.
pub(super) const fn owner(id: EndpointId) -> (u8, u8) {
    ((id.0 >> 5) as u8, (id.0 & 0x1f) as u8)
}

const fn instance(speed: Speed) -> usize {
    match speed {
        Speed::Low => 0,
        Speed::Full => 1,
        Speed::High => 2,
        Speed::Super => 3,
    }
}

impl Budget {
    /// Returns the budgets of empty buses, or why they are impossible.
    pub fn new(buses: &Buses) -> Result<Budget, NoSchedule> {
        let [low, full, high, superspeed] =
            [buses.low, buses.full, buses.high, buses.superspeed].map(BusScheduler::new);
        let control = buses.control;
        Ok(Budget { schedulers: [low?, full?, high?, superspeed?], control })
    }

    /// Forgets all endpoints of all buses.
    pub fn clear(&mut self) {
        for scheduler in &mut self.schedulers {
            if let Ok(empty) = BusScheduler::new(*scheduler.bus()) {
                *scheduler = empty;
            }
        }
    }

    /// Returns the scheduler of the bus with this speed.
    pub fn scheduler(&self, speed: Speed) -> &BusScheduler {
        &self.schedulers[instance(speed)]
    }

    /// A control endpoint takes part in the round robin, if such count.
    pub fn attach_control(
        &mut self,
        speed: Speed,
        endpoint: Async,
    ) -> Result<ScheduleChange, NoSchedule> {
        if !self.control {
            return Ok(ScheduleChange::default());
        }
        self.schedulers[instance(speed)].attach(&[], &[endpoint], Moves::Never)
    }

    /// Some contexts of a device leave, others come: all of it or nothing.
    pub fn exchange(
        &mut self,
        speed: Speed,
        device: u8,
        gone: u32,
        plans: &[EndpointPlan],
    ) -> Result<[ScheduleChange; 2], NoSchedule> {
        let id = |plan: &EndpointPlan| name(device, plan.endpoint.index());
        let periodic: Vec<PeriodicEndpoint> = plans
            .iter()
            .filter_map(|plan| plan.endpoint.periodic(id(plan), plan.criticality, plan.stretch))
            .collect();
        let asyncs: Vec<Async> = plans
            .iter()
            .filter_map(|plan| plan.endpoint.asynchronous(id(plan), plan.guarantee))
            .collect();
        let before = self.schedulers[instance(speed)].clone();
        let left = self.detach(speed, device, gone);
        let scheduler = &mut self.schedulers[instance(speed)];
        match scheduler.attach(&periodic, &asyncs, Moves::Never) {
            Ok(came) => Ok([left, came]),
            Err(unfit) => {
                *scheduler = before;
                Err(unfit)
            }
        }
    }

    /// Takes those of these contexts of a device off the bus that are on it.
    pub fn detach(&mut self, speed: Speed, device: u8, contexts: u32) -> ScheduleChange {
        let scheduler = &mut self.schedulers[instance(speed)];
        let here = |id: &EndpointId| {
            scheduler.periodic().iter().any(|p| p.id == *id)
                || scheduler.asyncs().iter().any(|a| a.id == *id)
        };
        let names = (1..32).filter(|index| contexts >> index & 1 != 0).map(|i| name(device, i));
        let ids: Vec<EndpointId> = names.filter(here).collect();
        scheduler.detach(&ids).unwrap_or_default()
    }

    /// Returns the period of an endpoint in slots, or why it has none. Asynchronous ones have
    /// period 0.
    pub fn place(&self, speed: Speed, device: u8, index: u8) -> Result<u32, EndpointRefusal> {
        let (plan, id) = (self.scheduler(speed).plan(), name(device, index));
        match plan.refused.iter().find(|refusal| refusal.id == id) {
            Some(refusal) => Err(*refusal),
            None => Ok(plan.placed.iter().find(|p| p.id == id).map_or(0, |p| p.period)),
        }
    }
}

/// Returns whether it is scheduled by time.
pub(super) const fn is_periodic(transfer: Transfer) -> bool {
    matches!(transfer, Transfer::Interrupt | Transfer::Isochronous)
}
