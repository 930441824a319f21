//! The cables at which a debug capability can come up, and which of them it has.
//!
//! A passive cable joins a port of each controller, and carries the capability of one of the two. A
//! capability that is on shows itself at all of its cables. The first host that asks it something
//! has it: then no other host finds it, and the port at this end of the cable finds nothing.

use super::partner::{Cable, Face, Happening, News};
use diapason_abi::Nanos;
use diapason_devices::faulty::OwnClock;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The end of a passive cable at a port, seen from this port's own controller.
#[derive(Clone, Debug, Default)]
pub struct CableEnd(Rc<Uses>);

#[derive(Debug, Default)]
struct Uses {
    /// The debug capability has the port.
    by_capability: Cell<bool>,
    /// The host has asked the device at it something.
    by_host: Cell<bool>,
}

impl CableEnd {
    /// Returns whether the debug capability has the port.
    pub(super) fn is_lent(&self) -> bool {
        self.0.by_capability.get()
    }

    /// Notes that the host uses the device at the port, or that there is none any more.
    pub(super) fn host_uses(&self, uses: bool) -> bool {
        self.0.by_host.replace(uses)
    }
}

/// A cable of a capability.
#[derive(Debug)]
struct Lead {
    cable: Rc<RefCell<Cable>>,
    /// The end at this controller.
    end: CableEnd,
}

/// All cables of a capability.
#[derive(Debug, Default)]
pub(super) struct Leads {
    all: Vec<Lead>,
    /// The one over which a host has it.
    chosen: Option<usize>,
    /// The clock by which cables go. All other times here are the controller's.
    world: OwnClock,
}

impl Leads {
    /// Lets the cables go by this clock instead of the controller's.
    pub fn go_by(&mut self, world: OwnClock) {
        self.world = world;
    }

    /// Adds a cable. From the second on, hosts say when they ask something first.
    pub fn add(&mut self, end: &CableEnd) -> Rc<RefCell<Cable>> {
        if self.chosen.is_none() {
            // Nobody holds the far end of a cable that was pulled.
            self.all.retain(|lead| Rc::strong_count(&lead.cable) > 1);
        }
        let cable = Rc::<RefCell<Cable>>::default();
        self.all.push(Lead { cable: Rc::clone(&cable), end: end.clone() });
        if self.has_rivals() {
            self.all.iter().for_each(|lead| lead.cable.borrow_mut().has_rivals = true);
        }
        cable
    }

    const fn has_rivals(&self) -> bool {
        self.all.len() > 1
    }

    /// Tells the host that has the capability.
    pub fn tell(&self, now: Nanos, news: News) {
        if let Some(lead) = self.chosen.and_then(|number| self.all.get(number)) {
            lead.cable.borrow_mut().tell_host(self.world.own(now), news);
        }
    }

    /// Shows the capability, or hides it: to the host that has it, or to all.
    pub fn show(&self, now: Nanos, face: Option<&Rc<Face>>) {
        for (number, lead) in self.all.iter().enumerate() {
            if self.chosen.is_none_or(|chosen| chosen == number) {
                let news = News::Face(face.cloned());
                lead.cable.borrow_mut().tell_host(self.world.own(now), news);
            }
        }
    }

    /// No host has the capability any more.
    pub fn let_go(&mut self) {
        if let Some(lead) = self.chosen.take().and_then(|number| self.all.get(number)) {
            lead.end.0.by_capability.set(false);
        }
    }

    /// A host has the capability from now on, unless another has it, or unless this controller's
    /// own host uses the cable. Returns whether it has.
    fn choose(&mut self, now: Nanos, number: usize) -> bool {
        let lead = &self.all[number];
        if self.chosen.is_some() || lead.end.0.by_host.get() {
            return self.chosen == Some(number);
        }
        lead.end.0.by_capability.set(true);
        for other in self.all.iter().filter(|other| !Rc::ptr_eq(&other.cable, &lead.cable)) {
            other.cable.borrow_mut().tell_host(self.world.own(now), News::Face(None));
        }
        self.chosen = Some(number);
        true
    }

    /// Returns when the capability has to look.
    pub fn next_happening(&self) -> Nanos {
        let next = self.all.iter().map(|lead| lead.cable.borrow().next_happening());
        self.world.host(next.fold(Nanos::FOREVER, Nanos::min))
    }

    /// Returns the next action of the host that has the capability, or that gets it by this.
    pub fn take_happening(&mut self, now: Nanos) -> Option<Happening> {
        loop {
            let next = |number: &usize| self.all[*number].cable.borrow().next_happening();
            let first = (0..self.all.len()).min_by_key(next)?;
            let world = self.world.own(now);
            let happening = self.all[first].cable.borrow_mut().take_happening(world)?;
            let gets = match happening {
                Happening::Reset(_) => !self.has_rivals(),
                Happening::Asked(_) => true,
                _ => false,
            };
            if self.chosen == Some(first) || gets && self.choose(now, first) {
                return Some(happening);
            }
        }
    }
}
