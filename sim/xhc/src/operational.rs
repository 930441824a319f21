//! Operational registers: run, halt, reset, errors.

use crate::config::Config;
use crate::extended::{OPERATIONAL, RUNTIME};
use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_usb::register::{command, operational as register, status};

/// Operational registers but those of rings and ports.
#[derive(Debug)]
pub(crate) struct Operational {
    run: bool,
    halted: bool,
    enables: u32,
    pub system_error: bool,
    pub controller_error: bool,
    pub events: bool,
    pub port_change: bool,
    notifications: u32,
    pub contexts: u64,
    pub configure: u32,
    /// Until then it is not ready.
    pub ready: Nanos,
    pub halting: Nanos,
    /// The microframe counter while halted.
    pub microframe: u64,
}

const ENABLES: u32 = command::INTERRUPTS | command::SYSTEM_ERRORS | command::WRAP_EVENTS;
/// The microframe counter wraps after so many.
pub(crate) const MICROFRAMES: u64 = 1 << 14;
const MICROFRAME: u64 = 125_000;

impl Operational {
    /// Coming out of reset at that time.
    pub fn new(ready: Nanos) -> Operational {
        Operational {
            run: false,
            halted: true,
            enables: 0,
            system_error: false,
            controller_error: false,
            events: false,
            port_change: false,
            notifications: 0,
            contexts: 0,
            configure: 0,
            ready,
            halting: Nanos::FOREVER,
            microframe: 0,
        }
    }

    /// Returns whether rings and buses run.
    pub fn runs(&self) -> bool {
        self.run
    }

    /// Returns whether the controller is ready after its last reset.
    pub fn is_ready(&self) -> bool {
        self.ready == Nanos::FOREVER
    }

    /// Returns whether the controller is halted; then there are no events.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// Returns whether interrupts are enabled.
    pub fn interrupts(&self) -> bool {
        self.enables & command::INTERRUPTS != 0
    }

    /// Returns when the microframe counter wraps, if that is to be reported.
    pub fn next_wrap(&self, now: Nanos) -> Nanos {
        if !self.run || self.enables & command::WRAP_EVENTS == 0 {
            return Nanos::FOREVER;
        }
        let length = MICROFRAME * MICROFRAMES;
        Nanos((now.0 / length + 1) * length)
    }

    /// Returns the microframe counter.
    pub fn microframe(&self, now: Nanos) -> u32 {
        let count = if self.halted { self.microframe } else { now.0 / MICROFRAME };
        (count % MICROFRAMES) as u32
    }

    fn status(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        flag(self.halted, status::HALTED)
            | flag(self.system_error, status::SYSTEM_ERROR)
            | flag(self.events, status::EVENT)
            | flag(self.port_change, status::PORT_CHANGE)
            | flag(!self.is_ready(), status::NOT_READY)
            | flag(self.controller_error, status::CONTROLLER_ERROR)
    }

    fn read(&self, offset: u64, config: &Config) -> u32 {
        match offset {
            register::COMMAND => {
                let reset = if self.is_ready() { 0 } else { command::RESET };
                self.enables | u32::from(self.run) | reset
            }
            register::STATUS => self.status(),
            register::PAGE_SIZE => 1,
            register::NOTIFICATIONS => self.notifications,
            register::CONTEXTS => self.contexts as u32,
            0x34 => (self.contexts >> 32) as u32,
            register::CONFIGURE => self.configure.min(u32::from(config.slots)),
            _ => 0,
        }
    }
}

impl Xhc {
    pub(crate) fn read_operational(&self, offset: u64) -> u32 {
        match offset {
            register::COMMAND_RING => self.command.read(),
            register::PORTS.. => {
                let (port, word) = place_of_port(offset);
                self.ports.get(port).map_or(0, |port| port.read(word))
            }
            _ => self.operational.read(offset, &self.config),
        }
    }

    pub(crate) fn write_operational(&mut self, memory: &mut dyn Memory, offset: u64, value: u32) {
        let operational = &mut self.operational;
        match offset {
            register::COMMAND => self.write_command(memory, value),
            register::STATUS => {
                operational.system_error &= value & status::SYSTEM_ERROR == 0;
                operational.events &= value & status::EVENT == 0;
                operational.port_change &= value & status::PORT_CHANGE == 0;
            }
            register::NOTIFICATIONS => operational.notifications = value & 0xffff,
            register::COMMAND_RING => self.write_command_ring(memory, false, value),
            0x1c => self.write_command_ring(memory, true, value),
            register::CONTEXTS => {
                let high = operational.contexts & !0xffff_ffff;
                operational.contexts = high | u64::from(value & !0x3f);
            }
            0x34 => {
                let low = operational.contexts & 0xffff_ffff;
                operational.contexts = low | u64::from(value) << 32;
            }
            register::CONFIGURE => operational.configure = value & 0xff,
            register::PORTS.. => {
                let (port, word) = place_of_port(offset);
                let switched = self.config.port_power;
                let port = u8::try_from(port + 1).unwrap_or(0);
                self.change_port(memory, port, |port, now, times| {
                    port.write(word, value, switched, now, times);
                });
            }
            _ => {}
        }
    }

    fn write_command(&mut self, memory: &mut dyn Memory, value: u32) {
        if value & command::RESET != 0 {
            self.reset_controller();
            return;
        }
        self.operational.enables = value & ENABLES;
        let dead = self.operational.controller_error || self.operational.system_error;
        let run = value & command::RUN != 0 && !dead;
        if run && !self.operational.run {
            self.operational.run = true;
            self.operational.halted = false;
            self.operational.halting = Nanos::FOREVER;
            self.resume(memory);
        } else if !run && self.operational.run {
            self.operational.run = false;
            self.operational.halting = self.now + self.config.times.halt;
        }
        self.set_wrap();
        for which in 0..usize::from(self.config.interrupters) {
            self.deliver(which);
        }
    }

    pub(crate) fn halt_now(&mut self) {
        self.operational.microframe = u64::from(self.operational.microframe(self.now));
        self.operational.run = false;
        self.operational.halted = true;
        self.operational.halting = Nanos::FOREVER;
        self.command.halt();
        for bus in &mut self.buses {
            bus.flight = None;
            bus.wake = crate::schedule::NEVER;
        }
    }
}

/// Port, from 0, and word of it.
fn place_of_port(offset: u64) -> (usize, u64) {
    let offset = offset - register::PORTS;
    ((offset / register::PORT_STRIDE) as usize, offset % register::PORT_STRIDE / 4)
}

const _: () = assert!(OPERATIONAL + register::PORTS + 255 * register::PORT_STRIDE <= RUNTIME);
