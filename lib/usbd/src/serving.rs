//! The serving in a branch: its services, the devices that they serve, letters and posts.

use crate::attended::Fresh;
use crate::platform::Platform;
use crate::posts::{DriverLane, Outside, Post};
use crate::served::Served;
use crate::services::any::AnyService;
use crate::services::can::Can;
use crate::services::hub::Turn;
use crate::services::offered::Offered;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_usb::class::TransferFault;
use diapason_usb::xhci::{Controller, DeviceId, Finished, Lanes};

/// News of the server for a branch.
pub(crate) enum Letter<P: Platform> {
    /// A device of it is being configured.
    Adopted(Served<P>),
    /// The driver did what was asked for.
    Settled(DeviceId),
    /// The driver, or the device, did not do it.
    Refused(DeviceId, TransferFault),
    /// A request to a control endpoint was not queued.
    Unasked(DeviceId, usize),
    /// A request to a control endpoint ended.
    Finished(Finished),
    Gone(DeviceId),
}

/// Letters, and posts, that find room without more memory.
const USUAL: usize = 16;

/// Services, and the devices that they serve.
pub(crate) struct Serving<P: Platform> {
    services: Vec<AnyService<P>>,
    served: Vec<Served<P>>,
    letters: VecDeque<Letter<P>>,
    posts: VecDeque<Post<P>>,
    /// The number of its first bell.
    first_bell: usize,
}

impl<P: Platform> Serving<P> {
    /// Returns the services without any device.
    pub fn new(services: Vec<AnyService<P>>, first_bell: usize) -> Serving<P> {
        Serving {
            // A device that is gone may have transfers left when the next one is there.
            served: Vec::with_capacity(2 * services.len()),
            services,
            letters: VecDeque::with_capacity(USUAL),
            posts: VecDeque::with_capacity(USUAL),
            first_bell,
        }
    }

    /// Returns a service by its number.
    pub fn service(&mut self, number: usize) -> &mut AnyService<P> {
        &mut self.services[number]
    }

    /// Puts a letter into the branch.
    pub fn deliver(&mut self, letter: Letter<P>) {
        self.letters.push_back(letter);
    }

    /// Returns whether there are letters.
    pub fn has_letters(&self) -> bool {
        !self.letters.is_empty()
    }

    /// Returns whether there are requests for the server.
    pub fn has_posts(&self) -> bool {
        !self.posts.is_empty()
    }

    /// Takes the oldest request for the server.
    pub fn take_post(&mut self) -> Option<Post<P>> {
        self.posts.pop_front()
    }

    /// Lets hubs that work make their requests to the driver. Any other hub loses its turn first,
    /// even if the letter that it is gone is unread: nobody would ever release that turn.
    pub fn steer<L: Lanes<P::Registers, P::Memory>>(
        &mut self,
        driver: &mut Controller<P::Registers, P::Memory, L>,
        turn: &mut Turn,
    ) {
        let letters = &self.letters;
        let is_gone =
            |device| letters.iter().any(|it| matches!(it, Letter::Gone(d) if *d == device));
        let works = |served: &&Served<P>| served.works() && !is_gone(served.device());
        turn.take_if(|(hub, _)| !self.served.iter().filter(works).any(|it| it.device() == *hub));
        for served in self.served.iter().filter(works) {
            if let AnyService::Hub(hub) = &mut self.services[served.service] {
                hub.steer(driver, served.device(), turn);
            }
        }
    }

    /// Serves the letters, the clients' wishes and the devices, and shows the controller their
    /// transfers.
    pub fn attend(&mut self, lane: &mut DriverLane<P>, asked: bool, now: Nanos) {
        self.read(lane, now);
        if asked && let Some(can) = self.can() {
            can.heed(now);
        }
        self.serve(lane, now);
        lane.announce();
    }

    /// Returns how many messages came since the last call.
    pub fn take_messages(&mut self) -> u32 {
        self.services.iter_mut().map(|service| service.take_messages()).sum()
    }

    /// Returns the CAN channels, if they are here.
    pub fn can(&mut self) -> Option<&mut Offered<P, Can<P>>> {
        self.services.iter_mut().find_map(|service| match service {
            AnyService::Can(can) => Some(&mut **can),
            _ => None,
        })
    }

    /// Reads all letters, the oldest first.
    pub fn read(&mut self, lane: &mut DriverLane<P>, now: Nanos) {
        while let Some(letter) = self.letters.pop_front() {
            let device = match &letter {
                Letter::Adopted(served) => served.device(),
                Letter::Finished(done) => done.device,
                Letter::Settled(device)
                | Letter::Refused(device, _)
                | Letter::Unasked(device, _)
                | Letter::Gone(device) => *device,
            };
            let here = self.served.iter_mut().find(|served| served.device() == device);
            let Some(served) = here else {
                if let Letter::Adopted(served) = letter {
                    self.served.push(served);
                }
                continue;
            };
            let service = &mut self.services[served.service];
            match letter {
                Letter::Adopted(_) => {}
                Letter::Finished(done) => {
                    let posts = &mut self.posts;
                    served.finish(&mut **service, &mut Outside { lane, posts }, &done, now);
                }
                Letter::Unasked(_, slot) => served.unasked(&mut **service, slot, now),
                _ if served.is_gone() => {}
                Letter::Settled(_) => {
                    let for_class = served.settled(&mut **service, now);
                    if let (false, AnyService::Hub(hub)) = (for_class, service) {
                        hub.settled();
                    }
                }
                Letter::Refused(_, fault) => {
                    if !served.refused(&mut **service, fault, now) {
                        served.leave(&mut **service, now);
                    }
                }
                Letter::Gone(_) => served.leave(&mut **service, now),
            }
        }
    }

    /// Takes up a transfer that is finished.
    pub fn finish(&mut self, lane: &mut DriverLane<P>, done: &Finished, now: Nanos) {
        let here = self.served.iter_mut().find(|served| served.device() == done.device);
        let Some(served) = here else { return };
        let (service, posts) = (&mut *self.services[served.service], &mut self.posts);
        served.finish(service, &mut Outside { lane, posts }, done, now);
    }

    /// Serves the requests of devices and clients.
    fn serve(&mut self, lane: &mut DriverLane<P>, now: Nanos) {
        while let Some(index) = self.served.iter().position(Served::is_over) {
            let served = self.served.swap_remove(index);
            self.posts.push_back(Post::Over(served.device(), served.into_slots()));
        }
        for served in &mut self.served {
            served.revive(&mut *self.services[served.service], now);
        }
        for service in &mut self.services {
            service.wake(now);
        }
        for served in &mut self.served {
            let (service, posts) = (&mut *self.services[served.service], &mut self.posts);
            served.drive(service, &mut Outside { lane, posts }, now);
        }
    }

    /// Takes the bells that are to be rung.
    pub fn take_fresh(&mut self) -> Fresh {
        if let Some(can) = self.can() {
            can.report();
        }
        let all = self.services.iter_mut().filter_map(|service| service.clients());
        all.fold(0, |fresh, clients| fresh | Fresh::from(clients.take_fresh())) << self.first_bell
    }

    /// Returns the time at which something is due if nothing else happens.
    pub fn next_wake(&self) -> Nanos {
        let served = self.served.iter().map(Served::next_wake);
        let services = self.services.iter().map(|service| service.next_wake());
        served.chain(services).fold(Nanos::FOREVER, Nanos::min)
    }
}
