//! From power-on, or from death, to running: a state machine that never waits in a loop.

use super::access::{Dma, GONE, Mmio};
use super::controller::Controller;
use super::lane::Lanes;
use super::limits::{PAGE, Window};
use super::report::{Death, Notice, Waiting};
use super::state::{Capabilities, ControllerState};
use crate::register::{capability, command, command_ring, extended, operational, port, status};
use diapason_abi::Nanos;

/// Steps of the extended-capability list that are followed.
const LIST_MAX: usize = 64;
/// How often a step of the start looks.
const GLANCE: Nanos = Nanos::from_millis(1);

const fn patience(waiting: Waiting) -> Nanos {
    match waiting {
        Waiting::HandOver => Nanos::from_secs(1),
        Waiting::Halt | Waiting::Run => Nanos::from_millis(32),
        Waiting::Ready | Waiting::Reset => Nanos::from_secs(10),
    }
}

/// Bits of the hand-over capability.
mod legacy {
    pub const FIRMWARE: u32 = 1 << 16;
    pub const SYSTEM: u32 = 1 << 24;
    pub const CONTROL: u64 = 4;
    /// Interrupts to the firmware: enables off, events cleared.
    pub const KEPT: u32 = 0x000e_1fee;
    pub const EVENTS: u32 = 7 << 29;
}

impl<M: Mmio, D: Dma, L: Lanes<M, D>> Controller<M, D, L> {
    /// Starts, or starts again after a death. Every transfer that was under way is reported as
    /// [`TransferOutcome::Died`](super::TransferOutcome::Died).
    pub fn start(&mut self, now: Nanos) {
        let located = self.hw.locate();
        let regions = self.hw.regions;
        self.each_lane(|lane| lane.locate(regions));
        match self.read_capabilities().and_then(|c| located.then_some(c).ok_or(Death::Nonsense)) {
            Ok(capabilities) => {
                self.capabilities = capabilities;
                self.begin_hand_over();
                self.wait_for(Waiting::HandOver, now);
                self.step_start(now);
            }
            Err(death) => self.dead(death, now),
        }
    }

    fn read_capabilities(&mut self) -> Result<Capabilities, Death> {
        let mut read = |register| self.hw.mmio.read32(register);
        let words = [
            capability::LENGTH,
            capability::PARAMETERS_1,
            capability::PARAMETERS_2,
            capability::CAPABILITIES_1,
        ];
        let [length, first, second, flags] = words.map(&mut read);
        if length == GONE || first == GONE {
            return Err(Death::Removed);
        }
        let capabilities = Capabilities {
            version: (length >> 16) as u16,
            slots: first as u8,
            interrupters: (first >> 8 & 0x7ff) as u16,
            ports: (first >> 24) as u8,
            context: if flags & capability::LARGE_CONTEXTS != 0 { 64 } else { 32 },
            scratchpads: (second >> 21 & 0x1f) << 5 | second >> 27,
            port_power: flags & capability::PORT_POWER != 0,
            wide: flags & 1 != 0,
            extended: u64::from(flags >> 16) * 4,
        };
        let Window { base, length: bytes } = self.hw.window();
        let counts =
            [capabilities.slots.into(), capabilities.interrupters, capabilities.ports.into()];
        if counts.contains(&0) {
            Err(Death::Nonsense)
        } else if !capabilities.wide && base + bytes > 1 << 32 {
            Err(Death::Address)
        } else if capabilities.scratchpads > u32::from(self.limits.scratchpads) {
            Err(Death::Scratchpads(capabilities.scratchpads))
        } else {
            Ok(capabilities)
        }
    }

    /// Returns the offsets of the extended capabilities with this id.
    fn extended(&mut self, id: u8) -> impl Iterator<Item = (u64, u32)> + use<'_, M, D, L> {
        let mut at = self.capabilities.extended;
        let steps = (0..LIST_MAX).map_while(move |_| {
            let here = at;
            // The longest that is looked into has twelve bytes.
            let inside = here != 0 && here + 12 <= self.hw.mmio.length();
            let word = if inside { self.hw.mmio.read32(here) } else { GONE };
            let next = u64::from(word >> 8 & 0xff) * 4;
            at = if next == 0 { 0 } else { here + next };
            (word != GONE).then_some((here, word))
        });
        steps.filter(move |(_, word)| *word as u8 == id)
    }

    fn begin_hand_over(&mut self) {
        let found = self.extended(extended::LEGACY).next();
        if let Some((at, word)) = found
            && word & legacy::FIRMWARE != 0
        {
            self.hw.mmio.write32(at, word | legacy::SYSTEM);
        }
    }

    fn wait_for(&mut self, waiting: Waiting, now: Nanos) {
        self.state = ControllerState::Starting(waiting, now + patience(waiting));
    }

    /// Returns when a start wants to be looked at again.
    pub(super) fn start_wake(&self) -> Nanos {
        match self.state {
            ControllerState::Starting(_, until) | ControllerState::Dying(_, until) => {
                until.min(self.glance)
            }
            _ => Nanos::FOREVER,
        }
    }

    /// Does as many steps of the start as can be done now.
    pub(super) fn step_start(&mut self, now: Nanos) {
        self.glance = now + GLANCE;
        while let ControllerState::Starting(waiting, until) = self.state {
            let over = now >= until;
            match (waiting, self.is_over(waiting)) {
                (_, None) => return self.dead(Death::Removed, now),
                (Waiting::HandOver, Some(done)) if done || over => {
                    self.wait_for(Waiting::Ready, now);
                }
                (Waiting::Ready, Some(true)) => self.begin_halt(now),
                (Waiting::Halt, Some(true)) => self.begin_reset(now),
                (Waiting::Reset, Some(true)) => match self.set_up(now) {
                    Ok(()) => self.wait_for(Waiting::Run, now),
                    Err(death) => return self.dead(death, now),
                },
                (Waiting::Run, Some(true)) => self.running(now),
                (_, Some(_)) if over => return self.dead(Death::Start(waiting), now),
                _ => return,
            }
        }
    }

    /// Returns whether this step is over. `None` if the controller is not there.
    fn is_over(&mut self, waiting: Waiting) -> Option<bool> {
        let state = self.hw.operational(operational::STATUS);
        if state == GONE {
            return None;
        }
        Some(match waiting {
            Waiting::HandOver => {
                let word = self.extended(extended::LEGACY).next().map_or(0, |(_, word)| word);
                word & legacy::FIRMWARE == 0
            }
            Waiting::Ready => state & status::NOT_READY == 0,
            Waiting::Halt => state & status::HALTED != 0,
            Waiting::Reset => {
                let order = self.hw.operational(operational::COMMAND);
                order & command::RESET == 0 && state & status::NOT_READY == 0
            }
            Waiting::Run => state & status::HALTED == 0,
        })
    }

    /// The firmware has let go, or is ignored from here on.
    fn begin_halt(&mut self, now: Nanos) {
        let found = self.extended(extended::LEGACY).next();
        if let Some((at, word)) = found {
            let system = word & !legacy::FIRMWARE | legacy::SYSTEM;
            self.hw.mmio.write32(at, system);
            let control = self.hw.mmio.read32(at + legacy::CONTROL);
            let off = control & legacy::KEPT | legacy::EVENTS;
            self.hw.mmio.write32(at + legacy::CONTROL, off);
        }
        let order = self.hw.operational(operational::COMMAND);
        let off = order & !(command::RUN | command::INTERRUPTS);
        self.hw.set_operational(operational::COMMAND, off);
        self.wait_for(Waiting::Halt, now);
    }

    fn begin_reset(&mut self, now: Nanos) {
        self.hw.set_operational(operational::COMMAND, command::RESET);
        self.wait_for(Waiting::Reset, now);
    }

    /// The controller forgot everything: tell it where its memory is, and let it run.
    fn set_up(&mut self, now: Nanos) -> Result<(), Death> {
        if self.hw.operational(operational::PAGE_SIZE) & 1 == 0 && self.capabilities.scratchpads > 0
        {
            return Err(Death::Scratchpads(self.capabilities.scratchpads));
        }
        self.forget_everything(now);
        let slots = self.capabilities.slots.min(self.limits.devices);
        self.hw.set_operational(operational::CONFIGURE, slots.into());
        self.hw.zero(self.layout.contexts, 2048);
        self.set_scratchpads();
        let contexts = self.hw.address(self.layout.contexts);
        self.hw.set_operational_64(operational::CONTEXTS, contexts);
        self.commands.clear(&mut self.hw);
        let ring = self.hw.address(self.commands.start()) | u64::from(command_ring::CYCLE);
        self.hw.set_operational_64(operational::COMMAND_RING, ring);
        let usable = self.capabilities.interrupters;
        self.each_lane(|lane| {
            if lane.number < usable {
                lane.install();
            }
        });
        let order = command::RUN | command::INTERRUPTS | command::SYSTEM_ERRORS;
        self.hw.set_operational(operational::COMMAND, order);
        Ok(())
    }

    fn set_scratchpads(&mut self) {
        let count = u64::from(self.capabilities.scratchpads);
        if count == 0 {
            return;
        }
        self.hw.zero(self.layout.scratchpads, count * PAGE);
        for page in 0..count {
            let address = self.hw.address(self.layout.scratchpads + page * PAGE);
            self.hw.dma.store_64(self.layout.scratch_table + 8 * page, address);
        }
        let table = self.hw.address(self.layout.scratch_table);
        self.hw.dma.store_64(self.layout.contexts, table);
    }

    /// Begins to run: everything that is plugged in is found by looking, not by events.
    fn running(&mut self, now: Nanos) {
        self.state = ControllerState::Running;
        let usable = self.capabilities.interrupters;
        self.each_lane(|lane| lane.runs = lane.number < usable);
        self.find_protocols();
        for number in 1..=self.port_count() {
            if self.capabilities.port_power {
                let word = self.hw.port(number);
                self.hw.set_port(number, word & port::NEUTRAL | port::POWER);
            }
            self.stir(number);
        }
        self.checked = now;
        self.attention = true;
    }

    fn find_protocols(&mut self) {
        let mut found = [None; LIST_MAX];
        for (place, entry) in found.iter_mut().zip(self.extended(extended::PROTOCOL)) {
            *place = Some(entry);
        }
        for (at, word) in found.into_iter().flatten() {
            let ports = self.hw.mmio.read32(at + 8);
            let (first, count) = (ports & 0xff, ports >> 8 & 0xff);
            for port in first..first + count {
                let index = (port as usize).wrapping_sub(1);
                if let Some(port) = self.ports.get_mut(index) {
                    port.usb3 = word >> 24 >= 3;
                }
            }
        }
    }

    /// Ports that exist and are served.
    pub(super) fn port_count(&self) -> u8 {
        self.capabilities.ports.min(self.limits.ports)
    }

    /// Halts a controller that is of no use any more, then reports everything.
    pub(super) fn die(&mut self, death: Death, now: Nanos) {
        if !matches!(self.state, ControllerState::Running | ControllerState::Starting(..)) {
            return;
        }
        self.each_lane(|lane| lane.runs = false);
        if death == Death::Removed {
            return self.dead(death, now);
        }
        self.hw.set_operational(operational::COMMAND, 0);
        self.state = ControllerState::Dying(death, now + patience(Waiting::Halt));
        self.step_death(now);
    }

    /// Returns whether the controller has halted. Then it touches no memory any more.
    pub(super) fn step_death(&mut self, now: Nanos) {
        self.glance = now + GLANCE;
        if let ControllerState::Dying(death, until) = self.state {
            let state = self.hw.operational(operational::STATUS);
            if state & status::HALTED != 0 || now >= until {
                self.dead(death, now);
            }
        }
    }

    fn dead(&mut self, death: Death, now: Nanos) {
        self.state = ControllerState::Dead(death);
        self.each_lane(|lane| lane.runs = false);
        self.forget_everything(now);
        self.notices.clear();
        self.notice(Notice::Died(death));
    }
}
