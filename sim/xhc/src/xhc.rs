//! The controller: its parts, its register window, its time.

use crate::command::CommandRing;
use crate::config::{Config, ControllerTimes, Protocol};
use crate::debug::Debug;
use crate::extended::{self, Extended};
use crate::interrupter::{Disturbance, InterruptMessage, Interrupter};
use crate::lent::Lent;
use crate::memory::{Denial, Memory};
use crate::operational::Operational;
use crate::port::Port;
use crate::schedule::{Bus, NEVER, Place};
use crate::slot::Slot;
use crate::tape::Tape;
use crate::trace::{BusPacket, TraceCounts};
use diapason_abi::Nanos;
use diapason_bus::{Picos, Speed};
use diapason_devices::UsbDevice;
use diapason_usb::register::runtime;
use diapason_usb::trb::{Completion, Kind, Trb};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of the register window. A page more, and it would be as large as that of QEMU's
/// controller, whose last page is the table of messages.
pub const WINDOW: u64 = 0x3000;

/// A part of the register window.
enum Region {
    Capability,
    Operational,
    Runtime,
    Doorbells,
    Extended,
}

/// The part an offset is in, and the offset there; only whole words exist.
fn region(offset: u64) -> Option<(Region, u64)> {
    let regions = [
        (extended::EXTENDED, Region::Extended),
        (extended::DOORBELLS, Region::Doorbells),
        (extended::RUNTIME, Region::Runtime),
        (extended::OPERATIONAL, Region::Operational),
        (0, Region::Capability),
    ];
    let whole = offset.is_multiple_of(4) && offset < WINDOW;
    let (base, region) = regions.into_iter().find(|(base, _)| *base <= offset)?;
    whole.then_some((region, offset - base))
}

/// A host controller with its buses and what is plugged in.
///
/// Time is an argument and never goes back. Between calls nothing happens: call [`Xhc::advance`]
/// no later than [`Xhc::next_event`] says. Register reads show the state of the last call.
pub struct Xhc {
    pub(crate) config: Config,
    pub(crate) now: Nanos,
    pub(crate) operational: Operational,
    pub(crate) command: CommandRing,
    pub(crate) extended: Extended,
    pub(crate) ports: Vec<Port>,
    /// Ports with a device, or that wait for something, in order: nothing happens at the others.
    busy: Vec<u8>,
    /// Slot 0 is never enabled.
    pub(crate) slots: Vec<Slot>,
    /// Endpoints whose device said "not now", in order.
    pub(crate) put_off: Vec<Place>,
    /// Memory for the next packet of a device.
    pub(crate) spare: Vec<u8>,
    pub(crate) interrupters: Vec<Interrupter>,
    /// So many, from the first, were written to or had events.
    pub(crate) used: usize,
    pub(crate) buses: Vec<Bus>,
    /// The first bus of each group of ports.
    pub(crate) group_buses: Vec<usize>,
    /// Buses behind hubs that translate, by the hub's slot and its port (0: all its ports).
    pub(crate) translators: BTreeMap<(u8, u8), usize>,
    pub(crate) interrupts: Vec<InterruptMessage>,
    pub(crate) disturbances: VecDeque<Disturbance>,
    pub(crate) records: Option<Vec<BusPacket>>,
    pub(crate) tape: Option<Tape>,
    pub(crate) denials: Vec<Denial>,
    pub(crate) lent: Lent,
    pub(crate) counts: TraceCounts,
    pub(crate) debug: Option<Debug>,
    wrap: Nanos,
}

impl Xhc {
    /// Returns a controller that was just switched on, at time 0. It needs its reset time to be
    /// ready.
    ///
    /// # Panics
    /// If there is no such controller (see [`Config`]).
    #[must_use]
    pub fn new(config: Config) -> Xhc {
        config.check();
        let power = !config.port_power;
        let mut xhc = Xhc {
            now: Nanos::ZERO,
            operational: Operational::new(config.times.reset),
            command: CommandRing::new(),
            extended: Extended::new(&config),
            ports: config.protocols().map(|protocol| Port::new(protocol, power)).collect(),
            busy: Vec::new(),
            slots: Vec::new(),
            put_off: Vec::new(),
            spare: Vec::new(),
            interrupters: Vec::new(),
            used: 0,
            buses: Vec::new(),
            group_buses: Vec::new(),
            translators: BTreeMap::new(),
            interrupts: Vec::new(),
            disturbances: VecDeque::new(),
            records: None,
            tape: None,
            denials: Vec::new(),
            lent: Lent::default(),
            counts: TraceCounts::default(),
            wrap: Nanos::FOREVER,
            debug: config.debug.map(Debug::new),
            config,
        };
        xhc.begin_anew();
        xhc
    }

    /// Everything a reset forgets.
    fn begin_anew(&mut self) {
        self.tape_end_all();
        self.operational = Operational::new(self.now + self.config.times.reset);
        self.command = CommandRing::new();
        self.slots = vec![Slot::new(); usize::from(self.config.slots) + 1];
        self.put_off.clear();
        self.lent.forget();
        let kept = self.config.debug.filter(|debug| debug.survives_reset);
        let kept = kept.and(self.interrupters.pop());
        let interrupters = 0..self.config.interrupters;
        self.interrupters = interrupters.map(|_| Interrupter::new()).collect();
        self.interrupters.push(kept.unwrap_or_else(Interrupter::new));
        self.used = 0;
        self.reset_debug();
        self.translators.clear();
        self.buses.clear();
        self.group_buses.clear();
        for group in &self.config.groups {
            self.group_buses.push(self.buses.len());
            let speeds: &[Speed] = match group.protocol {
                Protocol::Usb2 => &[Speed::High, Speed::Full],
                Protocol::Usb3 => &[Speed::Super],
            };
            let percent = self.config.periodic_percent;
            let new = |&speed| Bus { percent, ..Bus::new(speed, self.config.coding, false) };
            self.buses.extend(speeds.iter().map(new));
        }
        self.wrap = Nanos::FOREVER;
    }

    pub(crate) fn reset_controller(&mut self) {
        self.begin_anew();
    }

    /// Reads a register as of the last call; counters as of `now`.
    #[must_use]
    pub fn read(&self, offset: u64, now: Nanos) -> u32 {
        match region(offset) {
            Some((Region::Capability, offset)) => extended::capability(&self.config, offset / 4),
            Some((Region::Operational, offset)) => self.read_operational(offset),
            Some((Region::Runtime, offset)) => self.read_runtime(offset, now),
            Some((Region::Extended, offset)) => match self.extended.beyond(offset / 4) {
                Some(word) => self.read_debug(word),
                None => self.extended.read(offset / 4),
            },
            Some((Region::Doorbells, _)) | None => 0,
        }
    }

    fn read_runtime(&self, offset: u64, now: Nanos) -> u32 {
        if offset == runtime::MICROFRAME {
            return self.operational.microframe(now);
        }
        let Some(offset) = offset.checked_sub(runtime::INTERRUPTERS) else { return 0 };
        let which = (offset / runtime::INTERRUPTER_STRIDE) as usize;
        let interrupter = self.host_interrupters().get(which);
        interrupter.map_or(0, |it| it.read(offset % runtime::INTERRUPTER_STRIDE, now))
    }

    /// Writes the register at `offset`.
    pub fn write(&mut self, offset: u64, value: u32, now: Nanos, memory: &mut dyn Memory) {
        self.advance(now, memory);
        match region(offset) {
            Some((Region::Extended, offset)) => match self.extended.beyond(offset / 4) {
                Some(word) => self.write_debug(memory, word, value),
                None => self.extended.write(offset / 4, value, self.now, &self.config),
            },
            Some(_) if !self.operational.is_ready() => self.counts.not_ready_writes += 1,
            Some((Region::Operational, offset)) => self.write_operational(memory, offset, value),
            Some((Region::Runtime, offset)) => self.write_runtime(memory, offset, value),
            Some((Region::Doorbells, offset)) => self.write_doorbell(memory, offset / 4, value),
            Some((Region::Capability, _)) | None => {}
        }
    }

    fn write_runtime(&mut self, memory: &mut dyn Memory, offset: u64, value: u32) {
        if let Some(offset) = offset.checked_sub(runtime::INTERRUPTERS) {
            let which = (offset / runtime::INTERRUPTER_STRIDE) as usize;
            self.write_interrupter(memory, which, offset % runtime::INTERRUPTER_STRIDE, value);
        }
    }

    fn write_doorbell(&mut self, memory: &mut dyn Memory, slot: u64, value: u32) {
        match u8::try_from(slot) {
            Ok(slot) if self.operational.runs() => match slot {
                0 if value == 0 => self.ring_command(memory),
                0 => self.counts.idle_doorbells += 1,
                _ => self.ring_endpoint(memory, slot, value as u8),
            },
            _ => self.counts.idle_doorbells += 1,
        }
    }

    /// Returns when something happens next by itself.
    #[must_use]
    pub fn next_event(&self) -> Nanos {
        let fixed = [
            self.operational.ready,
            self.operational.halting,
            self.extended.release,
            self.command.due,
            self.wrap,
            self.debug.as_ref().map_or(Nanos::FOREVER, Debug::next),
        ];
        let mut next = fixed.into_iter().fold(Nanos::FOREVER, Nanos::min);
        for port in &self.busy {
            let port = &self.ports[usize::from(*port) - 1];
            next = next.min(port.due).min(port.next_change());
        }
        let seen = self.buses.iter().filter(|bus| !self.ends_unseen(bus));
        let packet = seen.map(Bus::next).min().filter(|at| *at != NEVER);
        next = next.min(packet.map_or(Nanos::FOREVER, Picos::nanos));
        for interrupter in self.used_interrupters() {
            next = next.min(interrupter.next());
        }
        next
    }

    /// A port whose device goes on changing in the past: its model is wrong.
    #[must_use]
    pub fn late_port(&self) -> Option<u8> {
        self.busy.iter().copied().find(|port| self.ports[usize::from(*port) - 1].is_late())
    }

    /// Lets time pass, up to `now`. A packet that ends unseen is no step: its end is made up for
    /// before the next thing happens.
    pub fn advance(&mut self, now: Nanos, memory: &mut dyn Memory) {
        loop {
            let next = self.next_event();
            if next > now || next == Nanos::FOREVER {
                break;
            }
            self.end_unseen(memory, next);
            self.now = self.now.max(next);
            self.step(memory);
        }
        self.end_unseen(memory, now + Nanos(1));
        self.now = self.now.max(now);
    }

    /// Everything that is due.
    fn step(&mut self, memory: &mut dyn Memory) {
        let now = self.now;
        self.step_itself(memory);
        let mut next = self.busy.first().copied();
        while let Some(port) = next {
            self.step_port(memory, port);
            next = self.busy.iter().copied().find(|other| *other > port);
        }
        for bus in 0..self.buses.len() {
            if self.buses[bus].next_nanos() <= now {
                self.run_bus(memory, bus);
            }
        }
        if self.command.due <= now {
            self.end_command(memory);
        }
        if self.debug.as_ref().is_some_and(|debug| debug.next() <= now) {
            self.run_debug(memory);
        }
        for which in 0..self.used {
            self.announce(which);
        }
    }

    fn step_itself(&mut self, memory: &mut dyn Memory) {
        let now = self.now;
        if self.operational.ready <= now {
            self.operational.ready = Nanos::FOREVER;
            let power = !self.config.port_power;
            for port in &mut self.ports {
                port.restart(power, now, &self.config.times);
            }
            self.list_busy();
        }
        if self.operational.halting <= now {
            self.halt_now();
        }
        if self.extended.release <= now {
            self.extended.let_go();
        }
        if self.wrap <= now {
            let status = Trb::event_status(Completion::Success, 0);
            self.post(memory, 0, Trb::new(Kind::MicroframeWrap, 0, status, 0), false);
        }
        self.set_wrap();
    }

    /// Sets when the microframe counter wraps next, if anybody wants to know.
    pub(crate) fn set_wrap(&mut self) {
        self.wrap = self.operational.next_wrap(self.now);
    }

    fn step_port(&mut self, memory: &mut dyn Memory, port: u8) {
        let index = usize::from(port) - 1;
        if self.ports[index].due <= self.now {
            self.change_port(memory, port, |port, now, _| port.expire(now));
        }
        if self.ports[index].is_due(self.now) {
            self.ports[index].advance(self.now);
            if self.ports[index].is_news() {
                self.change_port(memory, port, |port, now, times| port.notice(now, times));
            }
            self.wake_port(memory, port);
        }
    }

    /// Notices devices that the debug capability hides, or hides no more.
    pub(crate) fn look_at_ports(&mut self, memory: &mut dyn Memory) {
        let news = |port: &u8| self.ports[usize::from(*port) - 1].is_news();
        let moved: Vec<u8> = self.busy.iter().copied().filter(news).collect();
        for port in moved {
            self.change_port(memory, port, |port, now, times| port.notice(now, times));
        }
    }

    /// Endpoints of devices at a port that were told "not now" ask again.
    fn wake_port(&mut self, memory: &mut dyn Memory, port: u8) {
        let mut at = 0;
        while let Some(&(slot, _)) = self.put_off.get(at) {
            let known = &self.slots[usize::from(slot)];
            if known.enabled && known.port() == port {
                self.wake(memory, slot);
            } else {
                at += 1;
            }
        }
        for bus in 0..self.buses.len() {
            self.kick(memory, bus);
        }
    }

    /// Changes a port; the driver is told of changes.
    pub(crate) fn change_port(
        &mut self,
        memory: &mut dyn Memory,
        port: u8,
        change: impl FnOnce(&mut Port, Nanos, &ControllerTimes),
    ) {
        let Some(state) = self.ports.get_mut(usize::from(port).wrapping_sub(1)) else { return };
        let (changes, generation) = (state.changes(), state.generation);
        change(state, self.now, &self.config.times);
        let other_life = state.generation != generation;
        let news = changes == 0 && state.changes() != 0;
        self.list_busy();
        if news {
            self.operational.port_change = true;
            let status = Trb::event_status(Completion::Success, 0);
            let parameter = u64::from(port) << 24;
            let event = Trb::new(Kind::PortStatusChange, parameter, status, 0);
            self.post(memory, 0, event, false);
        }
        if other_life {
            self.wake_port(memory, port);
        }
    }

    fn list_busy(&mut self) {
        let ports = (1..).zip(&self.ports);
        self.busy.clear();
        self.busy.extend(ports.filter(|(_, port)| port.is_busy()).map(|(number, _)| number));
    }

    /// Plugs a device into a port, from 1. The device that was there is pulled.
    pub fn attach(
        &mut self,
        port: u8,
        device: Box<dyn UsbDevice>,
        now: Nanos,
        memory: &mut dyn Memory,
    ) {
        self.advance(now, memory);
        self.change_port(memory, port, |port, now, times| port.attach(device, now, times));
    }

    /// Pulls what is plugged into a port.
    pub fn detach(
        &mut self,
        port: u8,
        now: Nanos,
        memory: &mut dyn Memory,
    ) -> Option<Box<dyn UsbDevice>> {
        self.advance(now, memory);
        let mut device = None;
        self.change_port(memory, port, |port, _, _| device = port.detach());
        if let Some(device) = &mut device {
            device.unplugged(now);
        }
        device
    }

    /// Returns the interrupts that left since the last call, in the order in which they left.
    pub fn take_interrupts(&mut self) -> Vec<InterruptMessage> {
        core::mem::take(&mut self.interrupts)
    }

    /// Records every packet from now on, or no longer.
    pub fn record(&mut self, on: bool) {
        self.records = on.then(Vec::new);
    }

    /// Returns the packets recorded since the last call.
    pub fn take_records(&mut self) -> Vec<BusPacket> {
        self.records.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Returns the speeds of the bus instances, and which are behind a hub that translates. A reset
    /// forgets the latter.
    pub fn buses(&self) -> impl Iterator<Item = (Speed, bool)> {
        self.buses.iter().map(|bus| (bus.speed, bus.is_translator))
    }

    /// Accesses to memory that were refused.
    #[must_use]
    pub fn denials(&self) -> &[Denial] {
        &self.denials
    }

    /// Returns the counts since the beginning.
    #[must_use]
    pub fn counts(&self) -> TraceCounts {
        self.counts
    }
}
