//! The server: the controller, what is plugged into it, and what becomes of both.

use crate::attended::WakeCause;
use crate::branch::{Branch, Branches, Driver};
use crate::change::DriverRequest;
use crate::forming::Forming;
use crate::furnished::{Furnished, Offered, furnish};
use crate::listing;
use crate::modes::Modes;
use crate::papers::Papers;
use crate::platform::{Guarded as _, Platform, log, report};
use crate::plugged::Place;
use crate::policy::{self, BATCH, LOST, MANAGED, PAUSES};
use crate::posts::Post;
use crate::served::Served;
use crate::services::Offers;
use crate::services::any::AnyService;
use crate::services::hub::{Child, Turn};
use crate::serving::{Letter, Serving};
use crate::slots::Pool;
use crate::told::ServerSettings;
use crate::unserved::{Described, Match, Unserved, Unwanted};
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use diapason_abi::{Errno, Nanos};
use diapason_contract::needs;
use diapason_contract::settings::{Expected, Saying};
use diapason_contract::threads::ServiceKind;
use diapason_pipe::measured::{DeviceReport, Fate, Measurement};
use diapason_usb::Speed;
use diapason_usb::class::TransferFault;
use diapason_usb::descriptor::{DeviceDescriptor, Text};
use diapason_usb::xhci::{
    Controller, ControllerState, Death, DeviceId, EndpointPlan, Notice, Window,
};

/// Times that the server serves its own devices before others have their turn again.
const ROUNDS: usize = 4;

/// A device that is served, or is gone and not over.
pub(crate) struct Seat {
    device: DeviceId,
    /// Number of its service among all.
    service: usize,
    pub place: Place,
    speed: Speed,
    name: &'static str,
    pub gone: bool,
}

/// The part that all threads share: commands, ports, control endpoints, the bus schedule, and hubs.
/// The thread that holds it does everything that is due there.
pub struct UsbServer<P: Platform> {
    pub(crate) driver: Driver<P>,
    branches: Branches<P>,
    /// Services without a branch of their own.
    desk: Serving<P>,
    pool: Pool<P>,
    offices: Vec<Offered>,
    bells: Vec<&'static str>,
    /// Devices that the description names.
    described: Described,
    pub(crate) seats: Vec<Seat>,
    turn: Turn,
    /// Devices of which another configuration is being read.
    pub(crate) unserved: Vec<Unserved>,
    /// Changes for which the driver had no time yet, with their branches.
    changes: VecDeque<(u16, DeviceId, DriverRequest)>,
    /// Since when the interrupter has had events, but no interrupt.
    waiting: Option<Nanos>,
    /// A device is gone since the pools were last looked at, and that is to be told.
    left: bool,
    /// The log topics: bit n stands for the [`Saying`] with number n.
    tell: u64,
    /// The server's part in the order in which a network forms.
    pub(crate) forming: Option<Forming>,
    /// The modes of operation, if the description has some.
    modes: Option<Modes>,
    /// When a controller that died is started again, and how long the next pause is.
    again_at: Nanos,
    pause: Nanos,
}

impl<P: Platform> UsbServer<P> {
    /// Opens the controller and starts it.
    ///
    /// # Errors
    /// The registers or the memory are not there, the controller does not take them, or the process
    /// has too few semaphores for its locks.
    pub fn open(
        platform: &P,
        mut offers: Offers<P>,
        told: &ServerSettings,
        now: Nanos,
    ) -> Result<UsbServer<P>, Errno> {
        let homes: Vec<_> = offers.iter().filter_map(|offer| offer.home).collect();
        let clients = offers.iter_mut().filter_map(|offer| offer.service.clients());
        let shared: Vec<Window> = clients.flat_map(|clients| clients.windows()).collect();
        let interfaces = offers.iter().filter(|it| it.kind == Some(ServiceKind::Can)).count();
        let limits = policy::limits(offers.len(), homes.len(), shared.len(), interfaces);
        let registers = platform.registers(needs::CONTROLLER)?;
        let rings = platform.memory(needs::RINGS)?;
        let pool = Pool::new(platform.memory(needs::BUFFERS)?, limits.devices.into());
        let Furnished { desks, desk, offices, bells } = furnish(offers);
        let mut branches = None;
        let made = Controller::over((registers, rings), limits, &told.buses, |lanes| {
            let all = lanes.into_iter().zip(desks).map(|(lane, desk)| Branch::new(lane, desk));
            branches.insert(Branches::new(all)).clone()
        });
        let made = made.map_err(|why| log!(P, "the limits: {why:?}"));
        let (Ok(mut driver), Some(branches)) = (made, branches) else {
            return Err(Errno::Exhausted);
        };
        branches.open()?;
        for window in shared.into_iter().chain([pool.window()]) {
            if let Err(why) = driver.grant(window) {
                log!(P, "memory of transfers: {why:?}");
                return Err(Errno::Exhausted);
            }
        }
        let _ = driver.moderate(policy::MANAGING, MANAGED);
        for (interrupter, home) in (1..).zip(&homes) {
            let _ = driver.moderate(interrupter, home.moderation);
        }
        let forming = told.order.map(|order| Forming::new(order, told, now));
        if forming.is_some() {
            driver.hold();
        }
        driver.start(now);
        Ok(UsbServer {
            modes: Modes::of(platform, told, now)?,
            forming,
            driver,
            branches,
            desk,
            pool,
            seats: Vec::with_capacity(2 * offices.len()),
            unserved: Vec::with_capacity(offices.len()),
            changes: VecDeque::with_capacity(offices.len()),
            offices,
            bells,
            turn: None,
            waiting: None,
            left: false,
            tell: told.tell,
            described: Described::new(&told.expected, told.order.as_ref()),
            again_at: Nanos::FOREVER,
            pause: PAUSES.0,
        })
    }

    /// Returns the branches, for the threads of bottom halves.
    pub fn branches(&self) -> Branches<P> {
        self.branches.clone()
    }

    /// Returns the branch of each CAN interface, in their order.
    pub fn can_branches(&self) -> Vec<u16> {
        let can = |office: &&Offered| office.kind == Some(ServiceKind::Can);
        self.offices.iter().filter(can).map(|office| office.branch).collect()
    }

    /// Returns all bells, in the order of their numbers.
    pub fn bells(&self) -> Vec<&'static str> {
        self.bells.clone()
    }

    /// Does whatever is due but in branches: those with news are due then, which their
    /// [`is_due`](Branch::is_due) says.
    pub fn attend(&mut self, cause: WakeCause, now: Nanos) {
        let own = cause == WakeCause::Interrupt(policy::MANAGING);
        if own || cause == WakeCause::Time && self.is_lost(now) {
            while self.driver.handle_interrupt(policy::MANAGING, BATCH, now).more {}
            self.waiting = None;
        }
        if now >= self.again_at {
            self.again_at = Nanos::FOREVER;
            self.driver.start(now);
        }
        if let WakeCause::Posts(branch) = cause {
            self.driver.look(branch);
        }
        self.driver.poll(now);
        while let Some(notice) = self.driver.take_notice() {
            self.hear(notice, now);
        }
        self.collect();
        if let WakeCause::Posts(branch) = cause {
            self.take_posts(branch);
        }
        self.carry_out();
        self.form(now);
        if let Some(modes) = &mut self.modes {
            modes.attend(now, &mut |said| report::<P>(now, Measurement::Mode(said)));
        }
        let manages = !matches!(cause, WakeCause::Posts(_));
        if manages && self.has_pools_to_tell() {
            // That looks into every branch: no bottom half does it in another's.
            listing::pools(&mut self.driver, &self.pool);
            self.left = false;
        }
        self.serve(now);
        // Requests that came meanwhile begin now.
        self.driver.poll(now);
    }

    /// Returns whether the interrupter has had events for so long that its interrupt must be lost.
    fn is_lost(&mut self, now: Nanos) -> bool {
        let has = self.driver.has_events(policy::MANAGING);
        self.waiting = has.then(|| self.waiting.unwrap_or(now));
        self.waiting.is_some_and(|since| now >= since + LOST)
    }

    /// Returns whether this topic is logged.
    pub fn tells(&self, what: Saying) -> bool {
        self.tell >> what as u64 & 1 != 0
    }

    /// Returns whether a device is gone and everything that it had is back: its branch gives that
    /// back later than the controller does.
    fn has_pools_to_tell(&self) -> bool {
        self.left && self.seats.iter().all(|seat| !seat.gone)
    }

    /// Returns the time at which something is due if nothing else happens. Branches have their own.
    pub fn next_wake(&self) -> Nanos {
        if self.has_pools_to_tell() {
            return Nanos::ZERO;
        }
        let forms = self.forming.as_ref().map_or(Nanos::FOREVER, |forming| forming.next_look);
        let modes = self.modes.as_ref().map_or(Nanos::FOREVER, Modes::next_wake);
        self.driver.next_wake().min(self.again_at).min(self.desk.next_wake()).min(forms).min(modes)
    }

    /// Puts a letter into a branch, or onto the server's own desk.
    fn deliver(&mut self, branch: u16, letter: Letter<P>) {
        match branch {
            0 => self.desk.deliver(letter),
            _ => self.branches.of(branch).enter(|branch| branch.serving().deliver(letter)),
        }
    }

    /// Calls `act` with a service.
    fn with_service<R>(&mut self, number: usize, act: impl FnOnce(&mut AnyService<P>) -> R) -> R {
        let Offered { branch, number, .. } = self.offices[number];
        match branch {
            0 => act(self.desk.service(number)),
            _ => self.branches.of(branch).enter(|branch| act(branch.serving().service(number))),
        }
    }

    /// Returns the branch of a device that is served.
    fn branch_of(&self, device: DeviceId) -> Option<u16> {
        let seat = self.seats.iter().find(|seat| seat.device == device)?;
        Some(self.offices[seat.service].branch)
    }

    /// Tells the branch of a device what became of it.
    fn inform(&mut self, device: DeviceId, letter: Letter<P>) {
        if let Some(branch) = self.branch_of(device) {
            self.deliver(branch, letter);
        }
    }

    /// Passes on what lane 0 has finished: that of the server's own desk, and what went over
    /// control endpoints of others.
    fn collect(&mut self) {
        while let Some(done) = self.driver.take_finished(policy::MANAGING) {
            self.inform(done.device, Letter::Finished(done));
        }
    }

    /// Carries out the requests that a branch left.
    fn take_posts(&mut self, branch: u16) {
        while let Some(post) = self.next_post(branch) {
            match post {
                Post::Control { device, setup, buffer, slot } => {
                    if self.driver.control(device, setup, buffer, slot as u64).is_err() {
                        self.deliver(branch, Letter::Unasked(device, slot));
                    }
                }
                Post::CancelControl(device) => {
                    let _ = self.driver.cancel_all(device, 0);
                }
                Post::Forget(device) => {
                    let _ = self.driver.cancel_all(device, 0);
                    self.changes.retain(|(_, whose, _)| *whose != device);
                }
                Post::Change(device, order) => self.changes.push_back((branch, device, order)),
                Post::Over(device, slots) => {
                    self.pool.give_back(&slots);
                    self.seats.retain(|seat| seat.device != device);
                }
            }
        }
    }

    fn next_post(&mut self, branch: u16) -> Option<Post<P>> {
        match branch {
            0 => self.desk.take_post(),
            _ => self.branches.of(branch).enter(|branch| branch.serving().take_post()),
        }
    }

    /// Asks the driver for the changes it has time for.
    fn carry_out(&mut self) {
        for _ in 0..self.changes.len() {
            let Some((branch, device, order)) = self.changes.pop_front() else { return };
            match order.ask(&mut self.driver, device) {
                None => self.changes.push_back((branch, device, order)),
                Some(Ok(())) => {}
                Some(Err(fault)) => self.deliver(branch, Letter::Refused(device, fault)),
            }
        }
    }

    /// Serves the devices of the server's own desk.
    fn serve(&mut self, now: Nanos) {
        for _ in 0..ROUNDS {
            self.desk.steer(&mut self.driver, &mut self.turn);
            self.desk.attend(self.driver.own(), false, now);
            self.take_posts(0);
            self.carry_out();
            if !self.desk.has_letters() {
                return;
            }
        }
    }

    fn hear(&mut self, notice: Notice, now: Nanos) {
        match notice {
            Notice::Found { device, speed, port, route } => {
                let place = Place { port, route };
                self.tell_hub(place, Child::Found);
                self.consider(Unserved::new(device, speed, place), now);
            }
            Notice::Read(device) => {
                let at = self.unserved.iter().position(|unserved| unserved.device == device);
                if let Some(at) = at {
                    let unserved = self.unserved.swap_remove(at);
                    match unserved.asked {
                        true => self.identify(unserved),
                        false => self.consider(unserved, now),
                    }
                }
            }
            Notice::Configured(device) => {
                if let Some(speed) = here(&mut self.seats, device).map(|seat| seat.speed) {
                    self.pause = PAUSES.0;
                    if self.tells(Saying::Devices) {
                        listing::schedule::<P>(&self.driver, speed);
                    }
                    self.inform(device, Letter::Settled(device));
                }
            }
            Notice::Refused(device, cause) => {
                log!(P, "not configured: {cause:?}");
                if let Some(place) = here(&mut self.seats, device).map(|seat| seat.place) {
                    self.tell(place, (0, 0), Fate::Unconfigured, now);
                }
                self.inform(device, Letter::Refused(device, TransferFault::Stall));
            }
            Notice::Gone(device) => {
                self.left = self.tells(Saying::Pools);
                self.turn.take_if(|(hub, _)| *hub == device);
                self.unserved.retain(|unserved| unserved.device != device);
                if let Some(seat) = here(&mut self.seats, device) {
                    seat.gone = true;
                    log!(P, "{} is gone", seat.name);
                    self.inform(device, Letter::Gone(device));
                }
            }
            Notice::Failed { port, route, cause } => {
                log!(P, "port {port}, route {route:x}: does not work: {cause:?}");
                self.tell(Place { port, route }, (0, 0), Fate::Dead, now);
                self.tell_hub(Place { port, route }, Child::Failed);
            }
            Notice::OverCurrent(port) => log!(P, "port {port}: too much current"),
            Notice::Stopped { endpoint, .. } => log!(P, "endpoint {endpoint:#x} was stopped"),
            Notice::Died(death) => self.bury(death, now),
        }
    }

    /// Reports the fate of a device that is not served.
    fn tell(&self, place: Place, identity: (u16, u16), fate: Fate, now: Nanos) {
        let (connector, route) = (self.driver.connector(place.port), place.route);
        report::<P>(now, Measurement::Device(DeviceReport { connector, route, identity, fate }));
    }

    /// Tells a hub the fate of a device behind it; the next one may come.
    fn tell_hub(&mut self, place: Place, child: Child) {
        let Some((above, port)) = place.hub() else { return };
        let hub = self.seats.iter().find(|seat| seat.place == above && !seat.gone);
        if let Some(hub) = hub {
            let (device, Offered { branch, number, .. }) = (hub.device, &self.offices[hub.service]);
            if *branch == 0
                && let AnyService::Hub(hub) = self.desk.service(*number)
            {
                hub.child(port, child);
            }
            self.turn.take_if(|turn| *turn == (device, port));
        }
    }

    /// A device with one of its configurations is served, or shows its serial number or the next
    /// configuration.
    fn consider(&mut self, unserved: Unserved, now: Nanos) {
        let Unserved { device, speed, place, number, .. } = unserved;
        let what = self.adopt(&unserved, now);
        let next = match what {
            Ok(_) => None,
            Err(Unwanted::Serial(text)) => {
                let asked = self.driver.read_text(device, text).is_ok();
                asked.then_some(Unserved { asked, ..unserved })
            }
            Err(Unwanted::Not(fate)) => {
                self.read(Unserved { number: number + 1, fate, ..unserved })
            }
        };
        if let Some(next) = next {
            self.unserved.push(next);
            return;
        }
        if let Err(Unwanted::Not(fate)) = what {
            let about = self.driver.device_descriptor(device).ok();
            let about = about.and_then(|bytes| DeviceDescriptor::parse(&bytes, speed).ok());
            let identity = about.map_or((0, 0), |about| (about.vendor, about.product));
            self.tell(place, identity, fate, now);
        }
        let (Place { port, route }, what) = (place, what.unwrap_or("a device nobody serves"));
        log!(P, "port {port}, route {route:x}: {what}, {speed:?} speed");
        if self.tells(Saying::Devices) {
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
    fn adopt(&mut self, unserved: &Unserved, now: Nanos) -> Result<&'static str, Unwanted> {
        let Unserved { device, speed, place, serial, mut fate, .. } = *unserved;
        let papers = Papers::read(&self.driver, device, (speed, place));
        let papers = papers.ok_or(Unwanted::Not(fate))?;
        let found = papers.found().ok_or(Unwanted::Not(fate))?;
        let at = (self.driver.connector(place.port), place.route);
        let mut stranger = None;
        for service in 0..self.offices.len() {
            let taken = |seat: &Seat| seat.service == service && !seat.gone;
            if self.seats.iter().any(taken) {
                continue;
            }
            if !self.with_service(service, |service| service.fits(&found)) {
                continue;
            }
            let Offered { kind, interface, name, .. } = self.offices[service];
            let judged = match found.is_debug_target() {
                true => self.described.judge_target(place.port, &found.about, serial),
                false => self.described.judge((kind, interface), at, &found.about, serial),
            };
            match judged {
                Match::Yes => {
                    let seat = Seat { device, service, place, speed, name, gone: false };
                    let is_seated = self.seat(seat, papers);
                    return is_seated.then_some(name).ok_or(Unwanted::Not(Fate::Unconfigured));
                }
                Match::Ask(text) => return Err(Unwanted::Serial(text)),
                Match::No => {
                    fate = Fate::Stranger;
                    stranger = Some((name, "is not a described one"));
                }
                Match::OtherSerial => {
                    fate = Fate::OtherSerial;
                    if found.is_debug_target() {
                        self.found_stranger(place.port, serial.unwrap_or_default(), now);
                    }
                    stranger = Some((name, "has not the serial number of the described one"));
                }
            }
        }
        if let Some((name, why)) = stranger {
            let (vendor, product) = (found.about.vendor, found.about.product);
            let at = format_args!("connector {}, route {:x}", at.0, at.1);
            log!(P, "{at}: {name} {vendor:04x}:{product:04x} {why}: not served");
        }
        Err(Unwanted::Not(fate))
    }

    /// Configures a device for its service; false if that cannot be.
    fn seat(&mut self, seat: Seat, papers: Papers) -> bool {
        let Seat { device, name, .. } = seat;
        let Offered { branch, number, memory, .. } = self.offices[seat.service];
        let Some(found) = papers.found() else { return false };
        let settings = found.set.interfaces().filter(|interface| interface.alternate == 0);
        let endpoints = settings.flat_map(|interface| interface.endpoints());
        let plans: Vec<_> = self.with_service(seat.service, |service| {
            endpoints.map(|endpoint| service.plan(EndpointPlan::new(endpoint))).collect()
        });
        let Some(slots) = self.pool.carve(memory) else {
            log!(P, "{name}: no memory for its transfers");
            return false;
        };
        let value = found.set.header().value;
        let assigned = self.driver.assign(device, branch);
        let done = assigned.and_then(|()| self.driver.configure(device, value, &plans));
        if let Err(refused) = done {
            log!(P, "{name}: not configured: {refused:?}");
            self.pool.give_back(&slots);
            return false;
        }
        self.seats.push(seat);
        let served = Served::new(device, (number, name), papers, slots);
        self.deliver(branch, Letter::Adopted(served));
        true
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
        self.changes.clear();
        let there = self.seats.iter_mut().filter(|seat| !seat.gone);
        let gone: Vec<DeviceId> = there
            .map(|seat| {
                seat.gone = true;
                seat.device
            })
            .collect();
        for device in gone {
            self.inform(device, Letter::Gone(device));
        }
        if matches!(self.driver.state(), ControllerState::Dead(_)) {
            self.again_at = now + self.pause;
            self.pause = Nanos(self.pause.0 * 2).min(PAUSES.1);
        }
    }
}

/// Returns a device that is served and still there.
fn here(seats: &mut [Seat], device: DeviceId) -> Option<&mut Seat> {
    seats.iter_mut().find(|seat| seat.device == device && !seat.gone)
}
