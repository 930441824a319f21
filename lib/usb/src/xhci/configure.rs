//! Requests of a client for a whole device: configuration, alternate settings, hubs.

use super::access::{Dma, Mmio};
use super::budget::EndpointPlan;
use super::controller::Controller;
use super::device::{DEPTH_MAX, HubPlan, Place, Step};
use super::lane::Lanes;
use super::pipe::Wish;
use super::report::{DeviceId, Refused};
use crate::setup::Setup;
use crate::trb::context_index;
use crate::{Speed, descriptor};
use diapason_bus::ScheduleChange;

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Gives a device without endpoints to a lane: that one has them, and reports their transfers.
    ///
    /// # Errors
    /// There is no such lane, or the device has endpoints.
    pub fn assign(&mut self, device: DeviceId, lane: u16) -> Result<(), Refused> {
        let index = self.device(device)?;
        if usize::from(lane) >= self.interrupters() {
            return Err(Refused::NoInterrupter);
        }
        if self.present(index) != 0 {
            return Err(Refused::Busy);
        }
        self.devices[usize::from(index)].lane = lane;
        Ok(())
    }

    /// Chooses a configuration with these endpoints (of the alternate settings 0, usually). An
    /// endpoint without room on the bus is refused at once. A notice answers all other requests.
    ///
    /// # Errors
    /// Why not; nothing changes then.
    pub fn configure(
        &mut self,
        device: DeviceId,
        value: u8,
        endpoints: &[EndpointPlan],
    ) -> Result<(), Refused> {
        self.change(device, u32::MAX, endpoints, Some(Setup::set_configuration(value)))
    }

    /// Chooses an alternate setting: the endpoints with these addresses go, others come. All
    /// transfers of those that go must be over.
    ///
    /// # Errors
    /// Why not; nothing changes then.
    pub fn set_alternate(
        &mut self,
        device: DeviceId,
        (interface, alternate): (u8, u8),
        gone: &[u8],
        endpoints: &[EndpointPlan],
    ) -> Result<(), Refused> {
        let bits = gone.iter().map(|address| 1 << context_index(*address));
        let gone = bits.fold(0, |all: u32, bit| all | bit);
        self.change(device, gone, endpoints, Some(Setup::set_interface(interface, alternate)))
    }

    /// Restarts an endpoint: the controller forgets its position, and the device is told to
    /// (`CLEAR_FEATURE`), also if neither has halted it. Its transfers must be over.
    ///
    /// # Errors
    /// Why not; nothing changes then.
    pub fn renew(&mut self, device: DeviceId, endpoint: u8) -> Result<(), Refused> {
        let (index, context) = (self.settled(device)?, context_index(endpoint));
        let plan = self.endpoint(index, context, |pipe| pipe.plan).flatten();
        let plan = plan.filter(|_| context > 1).ok_or(Refused::NoEndpoint)?;
        self.change(device, 1 << context, &[plan], Some(Setup::clear_halt(endpoint)))
    }

    /// The device is a hub: from now on children can be attached to it.
    ///
    /// # Errors
    /// Returns the cause of a refusal.
    pub fn set_hub(&mut self, device: DeviceId, hub: HubPlan) -> Result<(), Refused> {
        if hub.ports == 0 || hub.ports > descriptor::HUB_PORTS_MAX || hub.think_time > 3 {
            return Err(Refused::Nonsense);
        }
        let index = self.settled(device)?;
        self.devices[usize::from(index)].hub = Some(hub);
        self.change(device, 0, &[], None)
    }

    /// A device was reset at a hub's port and waits to be addressed. Only one at a time may wait
    /// behind a hub: its notice comes first.
    ///
    /// # Errors
    /// Why not; the tree is too deep, for example.
    pub fn attach_child(&mut self, hub: DeviceId, port: u8, speed: Speed) -> Result<(), Refused> {
        let index = self.device(hub)?;
        let parent = &self.devices[usize::from(index)];
        let plan = parent.hub.ok_or(Refused::NoEndpoint)?;
        let place = parent.place;
        if port == 0 || port > plan.ports || place.depth == DEPTH_MAX {
            return Err(Refused::Nonsense);
        }
        let taken = |child: &super::device::Device| child.place.parent == Some((index, port));
        if self.is_crowded() || self.devices.iter().any(taken) {
            return Err(Refused::Busy);
        }
        let slow = matches!(speed, Speed::Low | Speed::Full);
        let translator = match parent.speed {
            Speed::High if slow => Some((parent.slot, port, plan.multi_tt)),
            _ => place.translator,
        };
        let place = Place {
            port: place.port,
            route: place.route | u32::from(port) << (4 * place.depth),
            depth: place.depth + 1,
            parent: Some((index, port)),
            translator,
        };
        self.new_device(place, speed, false).map(|_| ())
    }

    /// Removes every device at the hub's port.
    ///
    /// # Errors
    /// There is no such hub, or nothing at its port.
    pub fn detach_child(&mut self, hub: DeviceId, port: u8) -> Result<(), Refused> {
        let index = self.device(hub)?;
        let is = |place: Place| place.parent == Some((index, port));
        let child = self.devices.iter().position(|child| child.is_here() && is(child.place));
        self.lose_device(child.ok_or(Refused::NoDevice)? as u8, None);
        Ok(())
    }

    /// Returns the period of a periodic endpoint in slots of its bus; 0 if it is not periodic.
    ///
    /// # Errors
    /// There is no such endpoint, or it has no place in the schedule, and why.
    pub fn period(&mut self, device: DeviceId, endpoint: u8) -> Result<u32, Refused> {
        let (index, context) = (self.device(device)?, context_index(endpoint));
        let wish = self.endpoint(index, context, |pipe| pipe.wish).ok_or(Refused::NoEndpoint)?;
        if let Wish::Rest(why) = wish {
            return Err(Refused::Unscheduled(why));
        }
        let speed = self.devices[usize::from(index)].speed;
        self.budget.place(speed, index, context).map_err(Refused::Unscheduled)
    }

    /// Returns the schedule that the endpoints of this speed share.
    #[must_use]
    pub fn schedule(&self, speed: Speed) -> &diapason_bus::BusScheduler {
        self.budget.scheduler(speed)
    }

    /// Returns a device that nothing is being done about.
    pub(super) fn settled(&self, device: DeviceId) -> Result<u8, Refused> {
        let index = self.device(device)?;
        let idle = self.devices[usize::from(index)].step == Step::Idle;
        if idle && !self.is_crowded() { Ok(index) } else { Err(Refused::Busy) }
    }

    /// Endpoints `gone` (bits of context indices) go, `plans` come, and `request` tells the device.
    fn change(
        &mut self,
        id: DeviceId,
        gone: u32,
        plans: &[EndpointPlan],
        request: Option<Setup>,
    ) -> Result<(), Refused> {
        let index = self.settled(id)?;
        let gone = self.present(index) & gone;
        let mut before = [Wish::Run; 32];
        let changes = match self.begin_change(index, gone, plans, &mut before) {
            Ok(changes) => changes,
            Err(refused) => {
                for context in bits(gone) {
                    self.endpoint(index, context, |pipe| {
                        (pipe.wish, pipe.old) = (before[usize::from(context)], None);
                    });
                }
                return Err(refused);
            }
        };
        for plan in plans {
            self.add_pipe(index, *plan);
        }
        for change in &changes {
            self.apply(change);
        }
        self.place_own(index);
        let device = &mut self.devices[usize::from(index)];
        device.quiet = false;
        device.enter(Step::Configure(request));
        self.attention = true;
        Ok(())
    }

    /// The endpoints a device has, besides its control endpoint.
    pub(super) fn present(&self, index: u8) -> u32 {
        self.devices[usize::from(index)].contexts & u32::MAX << 2
    }

    /// Closes the endpoints that go, and gives those that come a place on the bus. `before` gets
    /// the wishes of those that go.
    fn begin_change(
        &mut self,
        index: u8,
        gone: u32,
        plans: &[EndpointPlan],
        before: &mut [Wish; 32],
    ) -> Result<[ScheduleChange; 2], Refused> {
        let mut quiet = true;
        for context in bits(gone) {
            // Quiet and closed in one step: its lane queues nothing in between.
            self.endpoint(index, context, |pipe| {
                before[usize::from(context)] = pipe.wish;
                (pipe.wish, pipe.old) = (Wish::Remove, pipe.plan);
                quiet &= pipe.is_quiet();
            });
        }
        if !quiet {
            return Err(Refused::Busy);
        }
        self.check_change(index, gone, plans)?;
        let speed = self.devices[usize::from(index)].speed;
        self.budget.exchange(speed, index, gone, plans).map_err(Refused::Unfit)
    }

    fn check_change(&self, index: u8, gone: u32, plans: &[EndpointPlan]) -> Result<(), Refused> {
        let mut taken = self.present(index);
        let device = &self.devices[usize::from(index)];
        for plan in plans {
            let context = plan.endpoint.index();
            let twice = taken & !gone & 1 << context != 0;
            let sane = context > 1 && plan.endpoint.speed == device.speed && plan.stretch > 0;
            if twice || !sane || plan.endpoint.packet == 0 {
                return Err(Refused::Nonsense);
            }
            taken = taken & !(gone & 1 << context) | 1 << context;
        }
        let fresh = plans.iter().filter(|plan| gone >> plan.endpoint.index() & 1 == 0).count();
        if self.free.len() < fresh { Err(Refused::Busy) } else { Ok(()) }
    }
}

/// Returns the bits that are set, by number.
pub(super) fn bits(mask: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |bit| mask >> bit & 1 != 0)
}
