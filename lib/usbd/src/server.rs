//! The server: the controller, what is plugged into it, and what becomes of both.

use crate::listing;
use crate::places::Order;
use crate::platform::{Platform, log};
use crate::policy::{self, BATCH, LOST, MANAGED, PAUSES, tell};
use crate::served::{Place, Served};
use crate::services::{Child, Found, Offers, Service};
use crate::slots::Pool;
use crate::told::Told;
use crate::unserved::{Described, Match, Unserved, Unwanted};
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::{Errno, Nanos};
use diapason_contract::needs;
use diapason_contract::settings::Expected;
use diapason_contract::threads::ServiceKind;
use diapason_usb::descriptor::Text;
use diapason_usb::xhci::{Controller, Death, DeviceId, Dma, Notice, State, Window};

/// Why the server is attended to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Interrupt(u16),
    Time,
    /// A client wants something.
    Asked,
}

/// The driver on this machine.
pub type Driver<P> = Controller<<P as Platform>::Registers, <P as Platform>::Memory>;

/// The device behind a hub that is being reset and read, by its hub and port: one at a time answers
/// at address 0.
pub type Turn = Option<(DeviceId, u8)>;

/// Bells to be rung: bit n stands for the bell with number n, over all services.
pub type Fresh = u64;

/// All of it. The thread that holds it does everything that is due.
pub struct Server<P: Platform> {
    driver: Driver<P>,
    pool: Pool<P>,
    services: Vec<Box<dyn Service<P>>>,
    /// Which devices each service is for.
    kinds: Vec<Option<ServiceKind>>,
    /// Devices that the description names.
    described: Described,
    served: Vec<Served>,
    turn: Turn,
    /// Devices of which another configuration is being read.
    unserved: Vec<Unserved>,
    /// Since when interrupters have had events, but no interrupt.
    waiting: Vec<Option<Nanos>>,
    /// A device is gone since the pools were last looked at.
    left: bool,
    /// The log topics, as bits of [`policy::tell`].
    tell: u64,
    /// When a controller that died is started again, and how long the next pause is.
    again_at: Nanos,
    pause: Nanos,
}

impl<P: Platform> Server<P> {
    /// Opens the controller and starts it.
    ///
    /// # Errors
    /// The registers or the memory are not there, or the controller does not take them.
    pub fn open(
        platform: &P,
        offers: Offers<P>,
        told: &Told,
        now: Nanos,
    ) -> Result<Server<P>, Errno> {
        let own = offers.iter().filter(|offer| offer.home.is_some()).count();
        let shared: Vec<Window> =
            offers.iter().filter_map(|offer| window(&*offer.service)).collect();
        let limits = policy::limits(offers.len(), own, shared.len());
        let registers = platform.registers(needs::CONTROLLER)?;
        let rings = platform.memory(needs::RINGS)?;
        let pool = Pool::new(platform.memory(needs::BUFFERS)?, limits.devices.into());
        let made = Controller::new(registers, rings, limits, &told.buses);
        let granted = made.map_err(|why| log!(P, "the limits: {why:?}")).and_then(|mut driver| {
            let mut windows = shared.iter().copied().chain([pool.window()]);
            let granted = windows.try_for_each(|window| driver.grant(window));
            granted.map(|()| driver).map_err(|why| log!(P, "memory of transfers: {why:?}"))
        });
        let driver = granted.map_err(|()| Errno::Exhausted)?;
        Ok(Server::new(driver, pool, offers, told, now))
    }

    /// A server whose controller is being started.
    fn new(
        mut driver: Driver<P>,
        pool: Pool<P>,
        offers: Offers<P>,
        told: &Told,
        now: Nanos,
    ) -> Server<P> {
        let _ = driver.moderate(policy::MANAGING, MANAGED);
        let homes: Vec<_> = offers.iter().filter_map(|offer| offer.home).collect();
        for (interrupter, home) in (1..).zip(&homes) {
            let _ = driver.moderate(interrupter, home.moderation);
        }
        driver.start(now);
        Server {
            driver,
            pool,
            served: Vec::with_capacity(offers.len()),
            turn: None,
            unserved: Vec::with_capacity(offers.len()),
            waiting: vec![None; homes.len() + 1],
            left: false,
            tell: told.tell,
            described: Described::new(&told.expected),
            kinds: offers.iter().map(|offer| offer.kind).collect(),
            services: offers.into_iter().map(|offer| offer.service).collect(),
            again_at: Nanos::FOREVER,
            pause: PAUSES.0,
        }
    }

    /// All bells, in the order of their numbers.
    pub fn bells(&self) -> Vec<&'static str> {
        self.services.iter().flat_map(|service| service.bells()).copied().collect()
    }

    /// Do whatever is due. Bells to be rung when nobody holds the server.
    pub fn attend(&mut self, cause: Cause, now: Nanos) -> Fresh {
        for number in 0..self.waiting.len() as u16 {
            if cause == Cause::Interrupt(number) || cause == Cause::Time && self.lost(number, now) {
                while self.driver.handle_interrupt(number, BATCH, now).more {}
                self.waiting[usize::from(number)] = None;
            }
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
        if cause == Cause::Asked {
            self.services.iter_mut().for_each(|service| service.heed(now));
        }
        self.serve(now);
        // Requests that came meanwhile begin now.
        self.driver.poll(now);
        self.fresh()
    }

    /// Has an interrupter had events for so long that its interrupt must be lost?
    fn lost(&mut self, number: u16, now: Nanos) -> bool {
        let waiting = &mut self.waiting[usize::from(number)];
        let since = self.driver.has_events(number).then(|| waiting.unwrap_or(now));
        *waiting = since;
        since.is_some_and(|since| now >= since + LOST)
    }

    /// Is there a device with tuned pipes?
    pub fn has_pipes(&self) -> bool {
        self.services.iter().any(|service| service.has_pipes())
    }

    /// Somebody listens to a channel, or no more.
    pub fn order(&mut self, order: &Order, now: Nanos) {
        self.services.iter_mut().for_each(|service| service.order(order, now));
    }

    /// Is this to be told?
    pub fn tells(&self, what: u64) -> bool {
        self.tell & what != 0
    }

    /// When something is due if nothing else happens.
    pub fn next_wake(&self) -> Nanos {
        let served = self.served.iter().map(Served::next_wake);
        let services = self.services.iter().map(|service| service.next_wake());
        served.chain(services).fold(self.driver.next_wake().min(self.again_at), Nanos::min)
    }

    /// Transfers that ended, and devices that have none left.
    fn collect(&mut self, now: Nanos) {
        for number in 0..self.waiting.len() as u16 {
            while let Some(done) = self.driver.take_finished(number) {
                let whose = self.served.iter_mut().find(|served| served.device == done.device);
                let Some(served) = whose else { continue };
                let service = &mut *self.services[served.service];
                served.finish(service, &mut self.driver, &mut self.pool, &done, now);
            }
        }
        while let Some(index) = self.served.iter().position(Served::is_over) {
            self.pool.give_back(self.served.swap_remove(index).into_slots());
        }
        if core::mem::take(&mut self.left) && self.tell & tell::POOLS != 0 {
            listing::pools(&self.driver, &self.pool);
        }
    }

    /// Serves the requests of devices and clients.
    fn serve(&mut self, now: Nanos) {
        for served in &mut self.served {
            served.revive(&mut *self.services[served.service], &self.driver, now);
        }
        for service in &mut self.services {
            service.wake(now);
        }
        for served in &mut self.served {
            let service = &mut *self.services[served.service];
            served.drive(service, &mut self.driver, &mut self.pool, &mut self.turn, now);
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
                let place = Place { port, route };
                self.tell_hub(place, Child::Found);
                self.consider(Unserved::new(device, speed, place));
            }
            Notice::Read(device) => {
                let at = self.unserved.iter().position(|unserved| unserved.device == device);
                if let Some(at) = at {
                    let unserved = self.unserved.swap_remove(at);
                    match unserved.asked {
                        true => self.identify(unserved),
                        false => self.consider(unserved),
                    }
                }
            }
            Notice::Configured(device) => {
                if let Some(served) = here(&mut self.served, device) {
                    self.pause = PAUSES.0;
                    if self.tell & tell::DEVICES != 0 {
                        listing::schedule::<P>(&self.driver, served.speed());
                    }
                    served.settled(&mut *self.services[served.service], &self.driver, now);
                }
            }
            Notice::Refused(device, cause) => {
                log!(P, "not configured: {cause:?}");
                if let Some(served) = here(&mut self.served, device) {
                    let service = &mut *self.services[served.service];
                    if !served.refused(service, now) {
                        served.leave(service, now);
                    }
                }
            }
            Notice::Gone(device) => {
                self.left = true;
                self.turn.take_if(|(hub, _)| *hub == device);
                self.unserved.retain(|unserved| unserved.device != device);
                if let Some(served) = here(&mut self.served, device) {
                    let service = &mut *self.services[served.service];
                    served.leave(service, now);
                    log!(P, "{} is gone", service.name());
                }
            }
            Notice::Failed { port, route, cause } => {
                log!(P, "port {port}, route {route:x}: does not work: {cause:?}");
                self.tell_hub(Place { port, route }, Child::Failed);
            }
            Notice::OverCurrent(port) => log!(P, "port {port}: too much current"),
            Notice::Stopped { endpoint, .. } => log!(P, "endpoint {endpoint:#x} was stopped"),
            Notice::Died(death) => self.bury(death, now),
        }
    }

    /// Tells a hub the fate of a device behind it; the next one may come.
    fn tell_hub(&mut self, place: Place, child: Child) {
        let Some((above, port)) = place.hub() else { return };
        let hub = self.served.iter().find(|served| served.place == above && !served.is_gone());
        if let Some(hub) = hub {
            self.services[hub.service].child(port, child);
            let device = hub.device;
            self.turn.take_if(|turn| *turn == (device, port));
        }
    }

    /// A device with one of its configurations is served, or shows its serial number or the next
    /// configuration.
    fn consider(&mut self, unserved: Unserved) {
        let Unserved { device, speed, place, number, .. } = unserved;
        let what = self.adopt(&unserved);
        let next = match what {
            Ok(_) => None,
            Err(Unwanted::Serial(text)) => {
                let asked = self.driver.read_text(device, text).is_ok();
                asked.then_some(Unserved { asked, ..unserved })
            }
            Err(Unwanted::Stranger) => self.read(Unserved { number: number + 1, ..unserved }),
        };
        if let Some(next) = next {
            self.unserved.push(next);
            return;
        }
        let (Place { port, route }, what) = (place, what.unwrap_or("a device nobody serves"));
        log!(P, "port {port}, route {route:x}: {what}, {speed:?} speed");
        if self.tell & tell::DEVICES != 0 {
            listing::device::<P>(&self.driver, device, speed, place);
        }
    }

    /// Asks for a configuration of a device; `None` if it has no such.
    fn read(&mut self, next: Unserved) -> Option<Unserved> {
        let more = next.number < policy::CONFIGURATIONS;
        let asked = more && self.driver.read_configuration(next.device, next.number).is_ok();
        asked.then_some(Unserved { asked: false, ..next })
    }

    /// The serial number of a device was read. Its configuration, which was where that is now, is
    /// read again.
    fn identify(&mut self, unserved: Unserved) {
        let mut bytes = [0; policy::TEXT];
        let length = self.driver.configuration(unserved.device, &mut bytes).unwrap_or(0);
        let text = bytes.get(..length).and_then(|bytes| Text::parse(bytes).ok());
        let text = text.map(|text| text.to_string()).unwrap_or_default();
        let serial = Expected::key(&text);
        if !self.described.has_serial(serial) {
            let Place { port, route } = unserved.place;
            log!(P, "port {port}, route {route:x}: its serial number is \"{text}\"");
        }
        let next = self.read(Unserved { serial: Some(serial), ..unserved });
        self.unserved.extend(next);
    }

    /// A device was found: what it is to the first service that is free and knows it.
    fn adopt(&mut self, unserved: &Unserved) -> Result<&'static str, Unwanted> {
        let Unserved { device, speed, place, serial, .. } = *unserved;
        let mut bytes = [0; policy::CONFIGURATION];
        let found = Found::read::<P>(&self.driver, device, (speed, place), &mut bytes);
        let found = found.ok_or(Unwanted::Stranger)?;
        let taken = |number| self.served.iter().any(|s| s.service == number && !s.is_gone());
        let free = self.services.iter().enumerate().filter(|(number, _)| !taken(*number));
        let at = (self.driver.connector(place.port), place.route);
        let (mut stranger, mut chosen) = (None, None);
        for (number, service) in free.filter(|(_, service)| service.fits(&found)) {
            match self.described.judge(self.kinds[number], at, &found.about, serial) {
                Match::Yes => {
                    chosen = Some((number, service));
                    break;
                }
                Match::Ask(text) => return Err(Unwanted::Serial(text)),
                Match::No => stranger = Some((service.name(), "is not a described one")),
                Match::OtherSerial => {
                    let why = "has not the serial number of the described one";
                    stranger = Some((service.name(), why));
                }
            }
        }
        let Some((number, service)) = chosen else {
            if let Some((name, why)) = stranger {
                let (vendor, product) = (found.about.vendor, found.about.product);
                let at = format_args!("connector {}, route {:x}", at.0, at.1);
                log!(P, "{at}: {name} {vendor:04x}:{product:04x} {why}: not served");
            }
            return Err(Unwanted::Stranger);
        };
        let (driver, pool) = (&mut self.driver, &mut self.pool);
        let of = (number, &**service);
        let served = Served::adopt((device, speed, place), of, &found, driver, pool);
        self.served.push(served.ok_or(Unwanted::Stranger)?);
        Ok(service.name())
    }

    /// The controller died, and everything with it. It is started again after a pause.
    fn bury(&mut self, death: Death, now: Nanos) {
        log!(
            P,
            "the controller died: {death:?}; started again after {} ms",
            self.pause.0 / 1_000_000
        );
        self.turn = None;
        self.unserved.clear();
        for served in &mut self.served {
            served.leave(&mut *self.services[served.service], now);
        }
        if matches!(self.driver.state(), State::Dead(_)) {
            self.again_at = now + self.pause;
            self.pause = Nanos(self.pause.0 * 2).min(PAUSES.1);
        }
    }
}

/// Memory that a service shares with clients and the controller.
fn window<P: Platform>(service: &dyn Service<P>) -> Option<Window> {
    let (memory, _) = service.shared()?;
    Some(Window { base: memory.base(), length: memory.length() })
}

/// A device that is served and still there.
fn here(served: &mut [Served], device: DeviceId) -> Option<&mut Served> {
    served.iter_mut().find(|served| served.device == device && !served.is_gone())
}
