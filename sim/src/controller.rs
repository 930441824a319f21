//! A host controller among the devices of a host.

use crate::faults::{ControllerMishap, Plan};
use crate::function::{FunctionModel, Note};
use crate::tap::Tap;
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::faulty::OwnClock;
use diapason_usb::Speed;
use diapason_xhc::{
    CableEnd, Coding, Config, DebugConfig, Denied, Disturbance, Group, InterruptMessage, Memory,
    Misuse, Protocol, Xhc,
};
use std::collections::VecDeque;

/// The class of an xHCI controller.
pub const CLASS: u32 = 0x0c_0330;

/// Messages that a controller sends by MSI.
const MSI_MESSAGES: u64 = 8;

/// Connectors of a controller.
const CONNECTORS: u8 = 15;

/// A controller that has not been started reaches no memory.
struct Unreachable;

impl Memory for Unreachable {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), Denied> {
        Err(Denied)
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Denied> {
        Err(Denied)
    }
}

/// Where nothing is that a device may reach.
const STRAY: u64 = 0xdead_0000;

/// The debug capability, which sends packets one by one.
const DEBUG: DebugConfig =
    DebugConfig { port: 2 * CONNECTORS, burst: 0, first_endpoint: 2, survives_reset: false };

/// The features of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// The controller can show its host to another as a device.
    pub debug: bool,
    /// Packets of super speed take no time for the line code.
    pub uncoded: bool,
    /// Most of a slot that may be periodic, in per cent; `None` is what the standard allows.
    pub periodic_percent: Option<u8>,
    /// Contexts of 64 bytes, as Intel's parts have.
    pub large_contexts: bool,
    /// Pages that it wants for itself; `None` is the usual number.
    pub scratchpads: Option<u16>,
    /// Firmware has it until its driver asks.
    pub firmware: bool,
    /// It sends messages without a table (MSI), so no single one can be held back.
    pub bare: bool,
}

impl Features {
    /// As many connectors as a description can name, each with both protocols.
    fn controller(self) -> Xhc {
        let ports = |protocol| Group { protocol, ports: CONNECTORS };
        let groups = vec![ports(Protocol::Usb2), ports(Protocol::Usb3)];
        let coding = if self.uncoded { Coding::Ignored } else { Coding::EightTen };
        let periodic_percent = self.periodic_percent;
        let debug = self.debug.then_some(DEBUG);
        let usual = Config::default();
        let Features { large_contexts, firmware, .. } = self;
        let scratchpads = self.scratchpads.unwrap_or(usual.scratchpads);
        Xhc::new(Config {
            groups,
            coding,
            periodic_percent,
            debug,
            large_contexts,
            scratchpads,
            firmware,
            ..usual
        })
    }
}

/// An xHCI controller with what is plugged into it.
pub struct PluggedController {
    xhc: Xhc,
    features: Features,
    /// Interrupts on their way, in order of time.
    coming: VecDeque<InterruptMessage>,
    /// Connectors that something was plugged into, and its port.
    ports: Vec<(u8, u8)>,
    mishaps: Plan<ControllerMishap>,
    /// The pulled devices: when each comes back, and into which port.
    pulled: Vec<(Nanos, u8, Box<dyn UsbDevice>)>,
    notes: Vec<Note>,
    /// The observer, and whether it also wants the contents.
    tap: Option<(Tap, bool)>,
}

impl PluggedController {
    /// Returns a controller with nothing plugged in.
    #[must_use]
    pub fn new() -> PluggedController {
        PluggedController::with(Features::default())
    }

    /// Returns a controller with these features and nothing plugged in.
    #[must_use]
    pub fn with(features: Features) -> PluggedController {
        PluggedController {
            xhc: features.controller(),
            features,
            coming: VecDeque::new(),
            ports: Vec::new(),
            mishaps: Plan::new(Vec::new()),
            pulled: Vec::new(),
            notes: Vec::new(),
            tap: None,
        }
    }

    /// Plugs a device into a connector, from 1, before anything runs.
    pub fn plug(&mut self, connector: u8, device: Box<dyn UsbDevice>) {
        let super_speed = device.speed() == Speed::Super;
        let port = if super_speed { connector + CONNECTORS } else { connector };
        self.xhc.attach(port, device, Nanos::ZERO, &mut Unreachable);
        self.ports.push((connector, port));
    }

    /// Returns the far end of a debug cable, for a connector of another host; `None` if it has no
    /// debug capability. The ends of the cable are here and there.
    #[must_use]
    pub fn debug_partner(
        &mut self,
        delay: Nanos,
        ends: &[CableEnd; 2],
    ) -> Option<Box<dyn UsbDevice>> {
        self.xhc.debug_partner(delay, ends)
    }

    /// Lets the cables of its debug capability go by this clock.
    pub fn go_by(&mut self, world: OwnClock) {
        self.xhc.go_by(world);
    }

    /// Returns the last connector into which nothing is plugged.
    #[must_use]
    pub fn free_connector(&self) -> Option<u8> {
        let is_free = |connector: &u8| self.ports.iter().all(|(taken, _)| taken != connector);
        (1..=CONNECTORS).rev().find(is_free)
    }

    /// Looks at its buses from now on: at packets, and at what they carry if `transfers`. Nothing
    /// else changes.
    pub fn tap(&mut self, transfers: bool) -> Tap {
        let (tap, _) = self.tap.insert((Tap::default(), transfers));
        let tap = tap.clone();
        self.record();
        tap
    }

    fn record(&mut self) {
        if let Some((_, transfers)) = self.tap {
            self.xhc.record(true);
            self.xhc.record_transfers(transfers);
        }
    }

    /// This will go wrong; `words` are what is said then.
    pub fn suffer(&mut self, at: Nanos, mishap: ControllerMishap, words: String) {
        self.mishaps.add((at, mishap, words));
    }

    /// Mishaps and returns that are due.
    fn happen(&mut self, now: Nanos, memory: &mut dyn Memory) {
        while let Some((mishap, words)) = self.mishaps.take(now) {
            self.notes.push(Note::Fault(words));
            self.inflict(mishap, now, memory);
        }
        while let Some(index) = self.pulled.iter().position(|(back, ..)| *back <= now) {
            let (_, port, device) = self.pulled.swap_remove(index);
            self.notes.push(Note::Other(format!("port {port} has its device again")));
            self.xhc.attach(port, device, now, memory);
        }
    }

    fn inflict(&mut self, mishap: ControllerMishap, now: Nanos, memory: &mut dyn Memory) {
        match mishap {
            ControllerMishap::Device => {}
            ControllerMishap::LoseInterrupt => self.xhc.disturb(Disturbance::Lost),
            ControllerMishap::DelayInterrupt(by) => self.xhc.disturb(Disturbance::Delayed(by)),
            ControllerMishap::RepeatInterrupt(after) => self.xhc.disturb(Disturbance::Twice(after)),
            ControllerMishap::Unplug(connector, back) => {
                if let Some(port) = self.port(connector)
                    && let Some(device) = self.xhc.detach(port, now, memory)
                {
                    self.pulled.push((now + back, port, device));
                }
            }
            ControllerMishap::LoseLink(connector) => {
                if let Some(port) = self.port(connector) {
                    self.xhc.lose_link(now, memory, port);
                }
            }
            ControllerMishap::SystemError => self.xhc.system_error(),
            ControllerMishap::ControllerError => self.xhc.controller_error(),
            // Whether it is refused is for the memory to say.
            ControllerMishap::StrayDma => drop(memory.write(STRAY, &[0xff; 8])),
        }
    }

    fn port(&self, connector: u8) -> Option<u8> {
        self.ports.iter().find(|(known, _)| *known == connector).map(|(_, port)| *port)
    }

    fn gather(&mut self) {
        let risen = self.xhc.take_interrupts();
        if let Some((tap, _)) = &self.tap {
            tap.fill(&mut self.xhc, &risen);
        }
        if !risen.is_empty() {
            self.coming.extend(risen);
            self.coming.make_contiguous().sort_by_key(|interrupt| interrupt.at);
        }
    }
}

impl Default for PluggedController {
    fn default() -> PluggedController {
        PluggedController::new()
    }
}

impl FunctionModel for PluggedController {
    fn read(&mut self, now: Nanos, offset: u64, bytes: u8) -> u64 {
        let low = u64::from(self.xhc.read(offset, now));
        if bytes == 4 { low } else { low | u64::from(self.xhc.read(offset + 4, now)) << 32 }
    }

    fn write(&mut self, now: Nanos, offset: u64, bytes: u8, value: u64, memory: &mut dyn Memory) {
        self.xhc.write(offset, value as u32, now, memory);
        if bytes == 8 {
            self.xhc.write(offset + 4, (value >> 32) as u32, now, memory);
        }
        self.gather();
    }

    fn next_change(&self) -> Nanos {
        let coming = self.coming.front().map_or(Nanos::FOREVER, |interrupt| interrupt.at);
        let back = self.pulled.iter().map(|(back, ..)| *back).min().unwrap_or(Nanos::FOREVER);
        coming.min(self.xhc.next_event()).min(self.mishaps.next()).min(back)
    }

    fn advance(&mut self, now: Nanos, memory: &mut dyn Memory) {
        self.xhc.advance(now, memory);
        self.happen(now, memory);
        self.gather();
    }

    fn take_interrupts(&mut self, now: Nanos) -> Vec<u16> {
        let risen = self.coming.iter().take_while(|interrupt| interrupt.at <= now).count();
        self.coming.drain(..risen).map(|interrupt| interrupt.vector).collect()
    }

    fn most_messages(&self) -> Option<u64> {
        self.features.bare.then_some(MSI_MESSAGES)
    }

    fn stuck(&self) -> Option<String> {
        let port = self.xhc.late_port();
        port.map(|port| format!("the device at port {port} changes in the past"))
    }

    fn take_misuses(&mut self) -> Vec<(Misuse, u64)> {
        self.xhc.take_misuses()
    }

    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn settle(&mut self, end: Nanos) {
        self.xhc.end_unseen(&mut Unreachable, end);
        self.gather();
    }

    /// Devices lose their power with the host that feeds them.
    fn power_cycle(&mut self, now: Nanos) {
        let mut xhc = self.features.controller();
        for (_, port) in &self.ports {
            if let Some(mut device) = self.xhc.detach(*port, now, &mut Unreachable) {
                device.reset(now);
                xhc.attach(*port, device, now, &mut Unreachable);
            }
        }
        xhc.take_cables(&mut self.xhc, now);
        self.xhc = xhc;
        self.record();
        self.coming.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Nothing;
    use diapason_devices::{Answer, Handshake, Stall};
    use diapason_usb::Setup;

    /// A device whose next change is so much later than the last, or always at the beginning.
    struct Ticking {
        every: Option<Nanos>,
        last: Nanos,
    }

    impl UsbDevice for Ticking {
        fn speed(&self) -> Speed {
            Speed::High
        }

        fn reset(&mut self, _: Nanos) {}

        fn control(&mut self, _: Nanos, _: Setup, _: &[u8]) -> Result<Vec<u8>, Stall> {
            Err(Stall)
        }

        fn receive(&mut self, _: Nanos, _: u8, _: &[u8]) -> Handshake {
            Handshake::Nak
        }

        fn send(&mut self, _: Nanos, _: u8, _: &mut [u8]) -> Answer {
            Answer::Nak
        }

        fn next_change(&self) -> Nanos {
            self.every.map_or(Nanos::ZERO, |every| self.last + every)
        }

        fn advance(&mut self, now: Nanos) {
            self.last = now;
        }
    }

    fn steps_until_stuck(every: Option<Nanos>) -> Option<usize> {
        let mut controller = PluggedController::new();
        controller.plug(3, Box::new(Ticking { every, last: Nanos::ZERO }));
        (0..20_000).position(|_| {
            controller.advance(controller.next_change(), &mut Nothing);
            let said = controller.stuck();
            assert!(said.as_ref().is_none_or(|said| said.contains("port 3")), "{said:?}");
            said.is_some()
        })
    }

    #[test]
    fn a_device_that_stays_in_the_past_is_named_with_its_port() {
        assert!(steps_until_stuck(None).is_some());
        assert_eq!(steps_until_stuck(Some(Nanos(1))), None);
    }
}
