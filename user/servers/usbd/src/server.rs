//! The server: the controller, what is plugged into it, and what becomes of both.

use crate::channels::{Channels, Fresh};
use crate::hardware::{Bar, Shared};
use crate::interface::Interface;
use crate::policy::{BATCH, INTERRUPTERS, MODERATION, PAUSES};
use crate::slots::Slots;
use diapason_abi::Nanos;
use diapason_rt::log;
use diapason_usb::xhci::{Controller, Death, Notice, State};

/// Why the server is attended to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// This interrupter interrupted.
    Interrupt(u16),
    /// Something is due.
    Time,
}

/// The driver on this machine.
pub type Driver = Controller<Bar, Shared>;

/// All of it. Whoever holds it does whatever is due.
pub struct Server {
    driver: Driver,
    slots: Slots,
    interface: Option<Interface>,
    channels: Channels,
    /// Interrupters that have not interrupted since the last look at the time.
    silent: [bool; INTERRUPTERS as usize],
    /// When a controller that died is started again, and how long the next pause is.
    again_at: Nanos,
    pause: Nanos,
}

impl Server {
    /// A server whose controller is being started.
    pub fn new(mut driver: Driver, slots: Slots, channels: Channels, now: Nanos) -> Server {
        for (interrupter, least) in (0..).zip(MODERATION) {
            let _ = driver.moderate(interrupter, least);
        }
        driver.start(now);
        let (pause, again_at) = (PAUSES.0, Nanos::FOREVER);
        let silent = [false; INTERRUPTERS as usize];
        Server { driver, slots, interface: None, channels, silent, again_at, pause }
    }

    /// Do whatever is due. Channels that got something.
    pub fn attend(&mut self, cause: Cause, now: Nanos) -> Fresh {
        for (number, silent) in (0..).zip(&mut self.silent) {
            let lost = cause == Cause::Time && *silent && self.driver.has_events(number);
            if lost || cause == Cause::Interrupt(number) {
                while self.driver.handle_interrupt(number, BATCH, now).more {}
            }
            *silent = cause == Cause::Time || *silent && cause != Cause::Interrupt(number);
        }
        if now >= self.again_at {
            self.again_at = Nanos::FOREVER;
            self.driver.start(now);
        }
        self.driver.poll(now);
        while let Some(notice) = self.driver.take_notice() {
            self.hear(notice, now);
        }
        self.collect(now);
        if let Some(interface) = &mut self.interface {
            interface.drive(&mut self.driver, &mut self.slots, &mut self.channels, now);
        }
        // What was asked for meanwhile is begun.
        self.driver.poll(now);
        self.channels.take_fresh()
    }

    /// When something is due if nothing else happens.
    pub fn next_wake(&self) -> Nanos {
        let interface = self.interface.as_ref().map_or(Nanos::FOREVER, Interface::next_wake);
        self.driver.next_wake().min(interface).min(self.channels.next_wake()).min(self.again_at)
    }

    /// Transfers that ended.
    fn collect(&mut self, now: Nanos) {
        for number in 0..INTERRUPTERS {
            while let Some(done) = self.driver.take_finished(number) {
                let device = done.device;
                if let Some(interface) = self.interface.as_mut().filter(|i| i.device == device) {
                    let (driver, channels) = (&mut self.driver, &mut self.channels);
                    interface.finish(driver, &self.slots, &done, channels, now);
                }
                self.slots.give_back(done.cookie as usize);
            }
        }
    }

    fn hear(&mut self, notice: Notice, now: Nanos) {
        match notice {
            Notice::Found { device, speed, port, route } => {
                if self.interface.is_none() {
                    self.interface = Interface::adopt(&mut self.driver, device, speed);
                }
                let ours = self.interface.as_ref().is_some_and(|i| i.device == device);
                let what = if ours { "a CAN interface" } else { "a device nobody serves" };
                log!("port {port}, route {route:x}: {what}, {speed:?} speed");
            }
            Notice::Configured(device) => {
                if let Some(interface) = self.interface.as_mut().filter(|i| i.device == device) {
                    self.pause = PAUSES.0;
                    interface.begin(now);
                }
            }
            Notice::Refused(device, cause) => {
                log!("not configured: {cause:?}");
                self.interface.take_if(|interface| interface.device == device);
            }
            Notice::Gone(device) => {
                if self.interface.take_if(|interface| interface.device == device).is_some() {
                    log!("the CAN interface is gone");
                    self.channels.forget();
                }
            }
            Notice::Failed { port, route, cause } => {
                log!("port {port}, route {route:x}: does not work: {cause:?}");
            }
            Notice::OverCurrent(port) => log!("port {port}: too much current"),
            Notice::Stopped { endpoint, .. } => log!("endpoint {endpoint:#x} was stopped"),
            Notice::Died(death) => self.bury(death, now),
        }
    }

    /// The controller died, and everything with it. It is started again after a pause.
    fn bury(&mut self, death: Death, now: Nanos) {
        log!("the controller died: {death:?}; started again after {} ms", self.pause.0 / 1_000_000);
        self.interface = None;
        self.channels.forget();
        if matches!(self.driver.state(), State::Dead(_)) {
            self.again_at = now + self.pause;
            self.pause = Nanos(self.pause.0 * 2).min(PAUSES.1);
        }
    }
}
