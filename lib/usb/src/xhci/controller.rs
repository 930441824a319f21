//! The controller as a whole: what it consists of, and the calls that move it.

use super::access::{Dma, GONE, Hardware, Mmio};
use super::budget::{Budget, Buses};
use super::command::Commands;
use super::device::Device;
use super::event_ring::{EventRing, Handled};
use super::lane::{Lane, Lanes, Together};
use super::limits::{COMMANDS, Layout, Limits, Unusable, Window};
use super::pipe::Pipe;
use super::report::{
    Counters, Death, DeviceId, Finished, Notice, PoolRoom, Refused, TransferOutcome,
};
use super::ring::Ring;
use super::state::{Capabilities, ControllerState, Port};
use crate::register::{interrupter, operational, status};
use crate::trb::{Kind, Trb};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;

/// A driver of one xHCI controller.
///
/// The caller forwards interrupts to [`Controller::handle_interrupt`], calls [`Controller::poll`]
/// no later than [`Controller::next_wake`] says, and takes what is finished and what is new.
#[derive(Debug)]
pub struct Controller<M, D, L = Together<M, D>> {
    pub(super) hw: Hardware<M, D>,
    pub(super) limits: Limits,
    pub(super) layout: Layout,
    pub(super) capabilities: Capabilities,
    pub(super) state: ControllerState,
    pub(super) commands: Commands,
    /// Lane 0, with the control endpoints of all devices.
    pub(super) own: Lane<M, D>,
    pub(super) lanes: L,
    lane_count: u16,
    pub(super) ports: Vec<Port>,
    pub(super) devices: Vec<Device>,
    /// Slot number to device index.
    pub(super) slots: Vec<Option<u8>>,
    /// Endpoints that no device has.
    pub(super) free: Vec<Pipe>,
    pub(super) budget: Budget,
    /// Windows of client memory: each lane knows them.
    windows: usize,
    pub(super) notices: VecDeque<Notice>,
    pub(super) counters: Counters,
    /// Something may want a command or a request.
    pub(super) attention: bool,
    /// A port's register has to be looked at.
    pub(super) stirred: bool,
    /// The first deadline of a command, a port or a device: set by [`Controller::work`], since only
    /// there are any made.
    due: Nanos,
    /// The device that is asked first for the next command.
    pub(super) turn: usize,
    /// When a start is looked at again.
    pub(super) glance: Nanos,
    /// When the status was last looked at.
    pub(super) checked: Nanos,
}

/// Notices a device can cause before the client has to look, about.
const NOTICES_EACH: usize = 8;

impl<M: Mmio + Clone, D: Dma + Clone> Controller<M, D> {
    /// Returns a driver with all its memory and all its lanes; nothing is touched yet.
    ///
    /// # Errors
    /// Limits or a window that cannot be used.
    pub fn new(mmio: M, dma: D, limits: Limits, buses: &Buses) -> Result<Self, Unusable> {
        Controller::over((mmio, dma), limits, buses, Together::new)
    }
}

impl<M: Mmio + Clone, D: Dma + Clone, L: Lanes<M, D>> Controller<M, D, L> {
    /// Returns a driver with all its memory; nothing is touched yet. `put` stores the lanes from 1
    /// on.
    ///
    /// # Errors
    /// Limits or a window that cannot be used.
    pub fn over(
        (mmio, dma): (M, D),
        limits: Limits,
        buses: &Buses,
        put: impl FnOnce(Vec<Lane<M, D>>) -> L,
    ) -> Result<Self, Unusable> {
        limits.check()?;
        let layout = Layout::new(&limits, dma.base());
        if !dma.base().is_multiple_of(4096) || dma.length() < layout.end {
            return Err(Unusable::Window(limits.window_bytes()));
        }
        let budget = Budget::new(buses).map_err(|_| Unusable::Buses)?;
        let each = usize::from(limits.transfers.min(limits.blocks)) + 2;
        let pipe = |offset: &u64| Pipe::new(Ring::new(*offset, limits.blocks), limits.blocks, each);
        let devices = usize::from(limits.devices);
        let mut pipes: Vec<Pipe> = layout.pipes.iter().map(pipe).collect();
        let free = pipes.split_off(devices);
        let lane = |number: u16| {
            let place = usize::from(number);
            let (ring, table) = (layout.event_rings[place], layout.tables[place]);
            let hw = Hardware::new(mmio.clone(), dma.clone());
            Lane::new(hw, EventRing::new(number, ring, table, limits.events), &limits)
        };
        let mut own = lane(0);
        own.pipes.extend(pipes);
        let lanes = put((1..limits.interrupters).map(lane).collect());
        Ok(Controller {
            own,
            lanes,
            lane_count: limits.interrupters,
            hw: Hardware::new(mmio, dma),
            capabilities: Capabilities::default(),
            state: ControllerState::Stopped,
            commands: Commands::new(Ring::new(layout.command_ring, COMMANDS)),
            ports: (0..limits.ports).map(|_| Port::new()).collect(),
            devices: (0..devices).map(|_| Device::new()).collect(),
            slots: vec![None; 256],
            free,
            budget,
            windows: 0,
            notices: VecDeque::with_capacity(NOTICES_EACH * (devices + ports(&limits))),
            counters: Counters::default(),
            attention: false,
            stirred: false,
            due: Nanos::FOREVER,
            turn: 0,
            glance: Nanos::ZERO,
            checked: Nanos::ZERO,
            layout,
            limits,
        })
    }
}

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Calls `act` with a lane, the controller's own or another.
    pub(super) fn on<R>(&mut self, lane: u16, act: impl FnOnce(&mut Lane<M, D>) -> R) -> R {
        if lane == 0 { act(&mut self.own) } else { self.lanes.with(lane, act) }
    }

    /// Enters all lanes, one after the other.
    pub(super) fn each_lane(&mut self, mut act: impl FnMut(&mut Lane<M, D>)) {
        for lane in 0..self.lane_count {
            self.on(lane, &mut act);
        }
    }

    /// Returns lane 0, which is the controller's own.
    pub fn own(&mut self) -> &mut Lane<M, D> {
        &mut self.own
    }

    /// Returns the lane of an endpoint.
    pub(super) fn lane_of(&self, device: u8, context: u8) -> u16 {
        if context > 1 { self.devices[usize::from(device)].lane } else { 0 }
    }

    /// Returns the connector of a root port, from 1: a connector has one port for USB 2 and one for
    /// USB 3, each counted among its own kind.
    #[must_use]
    pub fn connector(&self, port: u8) -> u8 {
        let is_usb3 = |number: u8| {
            let index = usize::from(number).checked_sub(1)?;
            self.ports.get(index).map(|port| port.usb3)
        };
        (1..=port).filter(|other| is_usb3(*other) == is_usb3(port)).count() as u8
    }

    /// Returns the state of the controller.
    #[must_use]
    pub fn state(&self) -> ControllerState {
        self.state
    }

    /// Returns the capabilities; all zero before the first start.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Returns the counts of errors so far, of all lanes.
    #[must_use]
    pub fn counters(&mut self) -> Counters {
        let mut all = self.counters;
        self.each_lane(|lane| all.add(&lane.counters));
        all
    }

    /// Returns the remaining room of the pools. Of transfers, each lane may have as many.
    #[must_use]
    pub fn pools(&mut self) -> PoolRoom {
        let mut transfers = usize::from(self.limits.transfers);
        self.each_lane(|lane| transfers = transfers.saturating_sub(lane.outstanding));
        PoolRoom {
            devices: self.devices.iter().filter(|device| device.is_free()).count(),
            pipes: self.free.len(),
            transfers,
        }
    }

    /// Returns the registers, for a caller that owns more of the controller than this driver
    /// serves.
    pub fn mmio(&mut self) -> &mut M {
        &mut self.hw.mmio
    }

    /// Time has passed, or something was asked for: do what is due, and say when to come again.
    pub fn poll(&mut self, now: Nanos) -> Nanos {
        match self.state {
            ControllerState::Starting(..) => self.step_start(now),
            ControllerState::Dying(..) => self.step_death(now),
            ControllerState::Running if now >= self.checked + self.limits.watch => {
                self.check_life(now)
            }
            _ => {}
        }
        self.work(now);
        self.next_wake()
    }

    /// Returns when [`Controller::poll`] has something to do if nothing else happens.
    #[must_use]
    pub fn next_wake(&self) -> Nanos {
        if self.state != ControllerState::Running {
            return self.start_wake();
        }
        self.due.min(self.checked + self.limits.watch)
    }

    /// Takes events off an interrupter's ring, at most `budget` of them.
    pub fn handle_interrupt(&mut self, interrupter: u16, budget: u32, now: Nanos) -> Handled {
        if self.state != ControllerState::Running || usize::from(interrupter) >= self.interrupters()
        {
            return Handled::default();
        }
        let handled = match interrupter {
            0 => self.handle_own(budget, now),
            lane => self.on(lane, |lane| lane.handle_interrupt(budget, now)),
        };
        if handled == Handled::default() {
            self.check_life(now);
        }
        self.look(interrupter);
        self.work(now);
        handled
    }

    /// Takes events off the ring of lane 0: those of commands, ports and control endpoints.
    fn handle_own(&mut self, budget: u32, now: Nanos) -> Handled {
        let mut handled = Handled::default();
        while handled.events < budget
            && let Some(event) = self.own.next_event()
        {
            self.own.events.pass();
            handled.events += 1;
            self.event(event, now);
        }
        handled.more = self.own.has_events();
        self.own.acknowledge(!handled.more);
        handled
    }

    /// Returns whether there are events that no call has taken yet. Looks at memory only.
    #[must_use]
    pub fn has_events(&mut self, interrupter: u16) -> bool {
        let is_there = usize::from(interrupter) < self.interrupters();
        is_there && self.on(interrupter, |lane| lane.has_events())
    }

    fn event(&mut self, event: Trb, now: Nanos) {
        match event.kind() {
            Some(Kind::TransferEvent) => {
                // A controller may report an endpoint that starves to the first interrupter.
                let device = self.slots[usize::from(event.slot())];
                let lane = device.map_or(0, |device| self.lane_of(device, event.endpoint()));
                self.on(lane, |lane| lane.transfer_event(event, now));
                self.settle_answers();
                if lane != 0 {
                    self.look(lane);
                }
            }
            Some(Kind::CommandCompletion) => self.command_event(event, now),
            Some(Kind::PortStatusChange) => {
                let number = (event.parameter >> 24) as u8;
                if number == 0 || number > self.port_count() {
                    self.counters.spurious += 1;
                } else {
                    self.stir(number);
                }
            }
            kind => self.own.other_event(kind, event),
        }
    }

    /// Checks that the controller is still there, and well.
    fn check_life(&mut self, now: Nanos) {
        self.checked = now;
        let state = self.hw.operational(operational::STATUS);
        let death = if state == GONE {
            Death::Removed
        } else if state & status::CONTROLLER_ERROR != 0 {
            Death::ControllerError
        } else if state & status::SYSTEM_ERROR != 0 {
            Death::SystemError
        } else if state & status::HALTED != 0 {
            Death::Halted
        } else {
            return;
        };
        self.die(death, now);
    }

    /// Nearly always there is nothing to do but transfers, and then this must cost nothing.
    fn work(&mut self, now: Nanos) {
        let quiet = !self.attention && !self.own.attention && !self.stirred && now < self.due;
        if quiet || self.state != ControllerState::Running {
            return;
        }
        self.command_late(now);
        self.requests_late(now);
        self.service_ports(now);
        if self.state == ControllerState::Running {
            self.pump(now);
        }
        self.due = self.soonest();
    }

    /// Returns the first deadline of a command, a port or a device.
    fn soonest(&self) -> Nanos {
        let command = self.commands.under_way.map_or(Nanos::FOREVER, |command| command.deadline);
        let ports = self.ports.iter().map(|port| port.deadline);
        let devices = self.devices.iter().map(|device| device.deadline);
        ports.chain(devices).fold(command, Nanos::min)
    }

    /// Interrupters that exist and are used.
    pub(super) fn interrupters(&self) -> usize {
        usize::from(self.lane_count.min(self.capabilities.interrupters))
    }

    /// Returns the shortest time between two interrupts of an interrupter, rounded up to what the
    /// controller can do (at most 16.4 ms): the bound on how long a finished transfer waits for
    /// one.
    ///
    /// # Errors
    /// There is no such interrupter.
    pub fn moderate(&mut self, interrupter: u16, least: Nanos) -> Result<Nanos, Refused> {
        if interrupter >= self.lane_count {
            return Err(Refused::NoInterrupter);
        }
        let units = u16::try_from(least.0.div_ceil(MODERATION)).unwrap_or(u16::MAX);
        let runs = self.state == ControllerState::Running;
        self.on(interrupter, |lane| {
            lane.events.moderation = units;
            if runs {
                lane.hw.set_interrupter(interrupter, interrupter::MODERATION, units.into());
            }
        });
        self.moderation(interrupter)
    }

    /// Returns that bound.
    ///
    /// # Errors
    /// There is no such interrupter.
    pub fn moderation(&mut self, interrupter: u16) -> Result<Nanos, Refused> {
        if interrupter >= self.lane_count {
            return Err(Refused::NoInterrupter);
        }
        let units = self.on(interrupter, |lane| lane.events.moderation);
        Ok(Nanos(u64::from(units) * MODERATION))
    }

    /// Returns the microframe counter, fourteen bits.
    pub fn microframe(&mut self) -> u16 {
        self.hw.microframe() as u16
    }

    /// Returns the next transfer that is finished, of those that this interrupter reports.
    pub fn take_finished(&mut self, interrupter: u16) -> Option<Finished> {
        let is_there = interrupter < self.lane_count;
        is_there.then(|| self.on(interrupter, Lane::take_finished)).flatten()
    }

    /// Returns the next thing that happened to a device or to the controller.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        if self.notices.len() == self.notices.capacity() {
            self.counters.notices_lost += 1;
        } else {
            self.notices.push_back(notice);
        }
    }

    /// Returns whether another device would have no room for its notices.
    pub(super) fn is_crowded(&self) -> bool {
        self.notices.len() + NOTICES_EACH * self.devices.len() > self.notices.capacity()
    }

    /// Allow transfers to and from this memory.
    ///
    /// # Errors
    /// It has no bytes or touches the driver's own, or there are too many windows.
    pub fn grant(&mut self, window: Window) -> Result<(), Refused> {
        let mine = Window { base: self.hw.dma.base(), length: self.layout.end };
        if window.length == 0 || mine.overlaps(window) || !window.contains(window) {
            return Err(Refused::Outside);
        }
        if self.windows == usize::from(self.limits.windows) {
            return Err(Refused::Busy);
        }
        self.windows += 1;
        self.each_lane(|lane| lane.windows.push(window));
        Ok(())
    }

    /// No more transfers to and from this memory. Those that are queued should be cancelled first:
    /// their memory is free when they are reported.
    ///
    /// # Errors
    /// It was not granted.
    pub fn revoke(&mut self, window: Window) -> Result<(), Refused> {
        let mut place = None;
        self.each_lane(|lane| {
            place = lane.windows.iter().position(|w| *w == window);
            place.map(|index| lane.windows.swap_remove(index));
        });
        self.windows -= usize::from(place.is_some());
        place.map(|_| ()).ok_or(Refused::Outside)
    }

    /// Returns the index of a device that is there.
    pub(super) fn device(&self, id: DeviceId) -> Result<u8, Refused> {
        let device = self.devices.get(usize::from(id.index));
        let same = device.is_some_and(|d| d.is_here() && d.generation == id.generation);
        if same { Ok(id.index) } else { Err(Refused::NoDevice) }
    }

    pub(super) fn id(&self, index: u8) -> DeviceId {
        DeviceId { index, generation: self.devices[usize::from(index)].generation }
    }

    /// Everything under way is over: devices, transfers, commands.
    pub(super) fn forget_everything(&mut self, now: Nanos) {
        for index in 0..self.limits.devices {
            if !self.devices[usize::from(index)].is_free() {
                self.free_device(index, TransferOutcome::Died, now);
            }
        }
        self.commands.under_way = None;
        self.slots.fill(None);
        self.budget.clear();
        for port in &mut self.ports {
            *port = Port { held: port.held, ..Port::new() };
        }
    }
}

/// Nanoseconds of a unit of the moderation register.
const MODERATION: u64 = 250;

fn ports(limits: &Limits) -> usize {
    limits.ports.into()
}
