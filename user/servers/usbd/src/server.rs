//! The server: the controller, what is plugged into it, and what becomes of both.

use crate::hardware::{Bar, Shared};
use crate::policy::{self, BATCH, MANAGED, PAUSES};
use crate::served::Served;
use crate::services::{Found, Offers, Service};
use crate::slots::Pool;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_rt::log;
use diapason_rt::sync::Semaphore;
use diapason_usb::Speed;
use diapason_usb::xhci::{Controller, Death, DeviceId, Notice, State};

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

/// Bells to be rung: bit n stands for the bell with number n, over all services.
pub type Fresh = u64;

/// All of it. Whoever holds it does whatever is due.
pub struct Server {
    driver: Driver,
    pool: Pool,
    services: Vec<Box<dyn Service>>,
    served: Vec<Served>,
    /// Interrupters that have not interrupted since the last look at the time.
    silent: Vec<bool>,
    /// When a controller that died is started again, and how long the next pause is.
    again_at: Nanos,
    pause: Nanos,
}

impl Server {
    /// A server whose controller is being started.
    pub fn new(mut driver: Driver, pool: Pool, offers: Offers, now: Nanos) -> Server {
        let _ = driver.moderate(policy::MANAGING, MANAGED);
        for (interrupter, (_, home)) in (1..).zip(&offers) {
            let _ = driver.moderate(interrupter, home.moderation);
        }
        driver.start(now);
        Server {
            driver,
            pool,
            served: Vec::with_capacity(offers.len()),
            silent: vec![false; offers.len() + 1],
            services: offers.into_iter().map(|(service, _)| service).collect(),
            again_at: Nanos::FOREVER,
            pause: PAUSES.0,
        }
    }

    /// All bells, in the order of their numbers.
    pub fn bells(&self) -> Vec<Semaphore> {
        self.services.iter().flat_map(|service| service.bells()).copied().collect()
    }

    /// Do whatever is due. Bells to be rung when nobody holds the server.
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
        self.serve(now);
        // What was asked for meanwhile is begun.
        self.driver.poll(now);
        self.fresh()
    }

    /// When something is due if nothing else happens.
    pub fn next_wake(&self) -> Nanos {
        let served = self.served.iter().map(Served::next_wake);
        let services = self.services.iter().map(|service| service.next_wake());
        served.chain(services).fold(self.driver.next_wake().min(self.again_at), Nanos::min)
    }

    /// Transfers that ended, and devices that have none left.
    fn collect(&mut self, now: Nanos) {
        for number in 0..self.silent.len() as u16 {
            while let Some(done) = self.driver.take_finished(number) {
                let whose = self.served.iter_mut().find(|served| served.device == done.device);
                let Some(served) = whose else { continue };
                let service = &mut *self.services[served.service];
                served.finish(service, &mut self.driver, &self.pool, &done, now);
            }
        }
        while let Some(index) = self.served.iter().position(Served::is_over) {
            self.pool.give_back(self.served.swap_remove(index).into_slots());
        }
    }

    /// What devices and clients want.
    fn serve(&mut self, now: Nanos) {
        for served in &mut self.served {
            served.revive(&mut *self.services[served.service], &self.driver, now);
        }
        for service in &mut self.services {
            service.wake(now);
        }
        for served in &mut self.served {
            let service = &mut *self.services[served.service];
            served.drive(service, &mut self.driver, &self.pool, now);
        }
    }

    fn fresh(&mut self) -> Fresh {
        let (mut fresh, mut first) = (0, 0);
        for service in &mut self.services {
            fresh |= Fresh::from(service.take_fresh()) << first;
            first += service.bells().len();
        }
        fresh
    }

    fn hear(&mut self, notice: Notice, now: Nanos) {
        match notice {
            Notice::Found { device, speed, port, route } => {
                let what = self.adopt(device, speed).unwrap_or("a device nobody serves");
                log!("port {port}, route {route:x}: {what}, {speed:?} speed");
            }
            Notice::Configured(device) => {
                if let Some(served) = here(&mut self.served, device) {
                    self.pause = PAUSES.0;
                    served.settled(&mut *self.services[served.service], &self.driver, now);
                }
            }
            Notice::Refused(device, cause) => {
                log!("not configured: {cause:?}");
                if let Some(served) = here(&mut self.served, device) {
                    let service = &mut *self.services[served.service];
                    if !served.refused(service, now) {
                        served.leave(service);
                    }
                }
            }
            Notice::Gone(device) => {
                if let Some(served) = here(&mut self.served, device) {
                    let service = &mut *self.services[served.service];
                    served.leave(service);
                    log!("{} is gone", service.name());
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

    /// A device was found: what it is to the first service that is free and knows it.
    fn adopt(&mut self, device: DeviceId, speed: Speed) -> Option<&'static str> {
        let mut bytes = [0; policy::CONFIGURATION];
        let found = Found::read(&self.driver, device, speed, &mut bytes)?;
        let taken = |number| self.served.iter().any(|s| s.service == number && !s.is_gone());
        let mut free = self.services.iter().enumerate().filter(|(number, _)| !taken(*number));
        let (number, service) = free.find(|(_, service)| service.fits(&found))?;
        let (driver, pool) = (&mut self.driver, &mut self.pool);
        let of = (number, &**service);
        let served = Served::adopt((device, speed), of, &found, driver, pool)?;
        self.served.push(served);
        Some(service.name())
    }

    /// The controller died, and everything with it. It is started again after a pause.
    fn bury(&mut self, death: Death, now: Nanos) {
        log!("the controller died: {death:?}; started again after {} ms", self.pause.0 / 1_000_000);
        for served in &mut self.served {
            served.leave(&mut *self.services[served.service]);
        }
        if matches!(self.driver.state(), State::Dead(_)) {
            self.again_at = now + self.pause;
            self.pause = Nanos(self.pause.0 * 2).min(PAUSES.1);
        }
    }
}

/// A device that is served and still there.
fn here(served: &mut [Served], device: DeviceId) -> Option<&mut Served> {
    served.iter_mut().find(|served| served.device == device && !served.is_gone())
}
