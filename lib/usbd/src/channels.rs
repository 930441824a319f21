//! The CAN channels: what comes goes into their pipes, what is in the pipes to them goes out, and
//! each is opened and closed as its client wishes, or as [`crate::policy`] does if it has none.

use crate::client::Client;
use crate::places::{Order, Places};
use crate::platform::{Platform, log};
use crate::policy::REOPEN;
use crate::told::{Asking, Pipes};
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_abi::pipe::PLACES;
use diapason_can::exchange::{Arrival, LOST_BEFORE, OUTSIDE, Parameters, Phase, Request, Wanted};
use diapason_can::{BitRate, Frame};
use diapason_contract::can::{EACH, RECORDS, names};
use diapason_pipe::Writer;
use diapason_pipe::clock::{Delay, DeviceClock};
use diapason_pipe::meter::Meter;
use diapason_usb::class::kvaser::{Cause, Event, Identity, Kvaser, Mode, Refused};

/// Bells of those who have something new: bit n stands for bell n.
pub type Fresh = u32;

const _: () = assert!(EACH + PLACES <= Fresh::BITS as usize, "each has a bell");

struct Channel<P: Platform> {
    /// Its name, for the log.
    name: &'static str,
    /// Its pipe in the description, if it has one, its contract, and the bell of its reader.
    outlet: Option<Writer<'static, Arrival, RECORDS>>,
    meter: Option<Meter>,
    /// The interface's clock, as the channel's messages show it.
    clock: DeviceClock,
    bell: Fresh,
    phase: Phase,
    /// Its controller left its bus by itself, and is not back.
    off: bool,
    /// How it is to take part in its bus, if it is.
    wish: Option<Parameters>,
    /// How it was opened last.
    opened_as: Option<Parameters>,
    /// When what it is and what it is to be are looked at again.
    look_at: Nanos,
    lost_before: bool,
    /// How often it was opened.
    opened: u16,
    /// How it takes part in its bus if no client says so.
    usual: Option<Parameters>,
    client: Option<Client<P>>,
    /// The place that the client is of, if it has the channel for as long as a tuned pipe is open.
    lent_to: Option<usize>,
}

/// The channels of an interface.
pub(crate) struct Channels<P: Platform> {
    all: Vec<Channel<P>>,
    places: Places,
    /// The clients of places that may write, while they do not.
    writers: Vec<Option<Client<P>>>,
    /// How many bells are not those of places, which come behind.
    own_bells: usize,
    fresh: Fresh,
    /// The channel that sends first next time.
    turn: usize,
}

impl<P: Platform> Channels<P> {
    /// Closed channels of this interface, and the semaphores their clients wait for. Those of
    /// clients that ask are opened when these say so, those without any pipe when somebody
    /// listens.
    pub fn new(
        platform: &P,
        interface: usize,
        asking: Asking,
        pipes: &Pipes,
    ) -> Result<(Channels<P>, Vec<&'static str>), Errno> {
        let numbers = pipes.interfaces.get(interface).ok_or(Errno::Absent)?.numbers();
        let (mut all, mut bells) = (Vec::with_capacity(numbers.len()), Vec::new());
        for number in numbers {
            let names = names(number).ok_or(Errno::Absent)?;
            let asks = asking.filter(|clients| clients & 1 << number != 0);
            let client = asks.map(|_| Client::new(platform, interface, names)).transpose()?;
            let mut channel =
                Channel::new(names.arrivals, client, (pipes.meter(number), pipes.clock()));
            channel.usual = pipes.usual(number);
            if pipes.has(number) || channel.client.is_some() {
                let outlet = platform.writer(names.arrivals)?;
                (channel.outlet, channel.bell) = (Some(outlet), 1 << bells.len());
                bells.push(names.ready);
            }
            channel.wish = if channel.is_always_open() { channel.usual } else { None };
            all.push(channel);
        }
        let envelopes = pipes.places_of(interface);
        let (own_bells, (places, more)) = (bells.len(), Places::new(platform, envelopes.len())?);
        bells.extend(more);
        let mut writers = Vec::with_capacity(envelopes.len());
        for (number, place) in envelopes.iter().enumerate() {
            let asks = asking.filter(|_| place.to != 0);
            writers.push(asks.map(|_| Client::of_place(platform, number)).transpose()?);
        }
        Ok((Channels { all, places, writers, own_bells, fresh: 0, turn: 0 }, bells))
    }

    /// Somebody listens or writes to a channel, or no more: those that nobody wants are closed.
    pub fn order(&mut self, order: &Order, now: Nanos) {
        self.places.heed(order);
        match *order {
            Order::Write { place, channel } => self.lend(place, channel.into()),
            Order::Leave { place } => self.take_back(place),
            Order::Listen { .. } => {}
        }
        for (number, channel) in self.all.iter_mut().enumerate() {
            if channel.has_no_owner() {
                let wanted = channel.lent_to.is_some() || self.places.listen_to(number);
                channel.wish = if wanted { channel.usual } else { None };
                if channel.phase != Phase::Absent && channel.opened_as != channel.wish {
                    channel.look_at = now;
                }
            }
        }
    }

    /// A place writes to a channel, if nobody else does.
    fn lend(&mut self, place: usize, channel: usize) {
        let Some(channel) = self.all.get_mut(channel).filter(|it| it.client.is_none()) else {
            return;
        };
        let Some(client) = self.writers.get_mut(place).and_then(Option::take) else { return };
        (channel.client, channel.lent_to) = (Some(client), Some(place));
        channel.bell |= 1 << (self.own_bells + place);
    }

    /// A place writes no more. The messages under way are given up: the channel is closed, whoever
    /// owns it next.
    fn take_back(&mut self, place: usize) {
        let lent = self.all.iter_mut().find(|channel| channel.lent_to == Some(place));
        let Some((channel, mut client)) = lent.and_then(|it| it.client.take().map(|c| (it, c)))
        else {
            return;
        };
        client.give_up();
        client.lose_flying();
        if client.report(Phase::Closed) {
            self.fresh |= channel.bell;
        }
        channel.bell &= !(1 << (self.own_bells + place));
        (channel.lent_to, channel.opened_as) = (None, Some(GIVEN_BACK));
        if let Some(writer) = self.writers.get_mut(place) {
            *writer = Some(client);
        }
    }

    /// Returns the channels that have something new since the last call; their reports are written.
    pub fn take_fresh(&mut self) -> Fresh {
        for (number, channel) in self.all.iter_mut().enumerate() {
            let phase = channel.phase;
            if channel.client.as_mut().is_some_and(|client| client.report(phase)) {
                self.fresh |= channel.bell;
            }
            if let Some(phase) = channel.told() {
                self.fresh |= self.places.tell(number, phase) << self.own_bells;
            }
        }
        core::mem::take(&mut self.fresh)
    }

    /// Forgets the interface, which is gone or of no use: nothing can be opened.
    pub fn forget(&mut self) {
        for channel in &mut self.all {
            (channel.phase, channel.look_at) = (Phase::Absent, Nanos::FOREVER);
            channel.off = false;
            channel.client.iter_mut().for_each(Client::lose_flying);
            if channel.lent_to.is_some() {
                channel.client.iter_mut().for_each(Client::give_up);
            }
        }
    }

    /// Returns when one is to be looked at.
    pub fn next_wake(&self) -> Nanos {
        let times = self.all.iter().map(|channel| channel.look_at);
        times.fold(Nanos::FOREVER, Nanos::min)
    }

    /// Hears what clients want.
    pub fn listen(&mut self, now: Nanos) {
        for channel in &mut self.all {
            while let Some(request) = channel.client.as_mut().and_then(Client::hear) {
                channel.heed(request, now);
            }
        }
    }

    /// Opens and closes what is due, and sends what the interface takes.
    pub fn drive(&mut self, class: &mut Kvaser, now: Nanos) {
        if let Some(identity) = class.identity() {
            for (number, channel) in self.all.iter_mut().enumerate() {
                if now >= channel.look_at {
                    channel.settle(number as u8, class, &identity, now);
                }
                channel.ask(number as u8, class);
            }
        }
        self.send(class, now);
    }

    /// A frame of each channel in turn, as long as the interface takes any.
    fn send(&mut self, class: &mut Kvaser, now: Nanos) {
        let mut idle = 0;
        while idle < self.all.len() {
            let number = self.turn;
            self.turn = (self.turn + 1) % self.all.len();
            let channel = self.all.get_mut(number);
            let sent = channel.is_some_and(|it| it.send(number as u8, class, now));
            idle = if sent { 0 } else { idle + 1 };
        }
    }

    /// Takes an event of an interface.
    pub fn hear(&mut self, event: Event, now: Nanos) {
        let number = match event {
            Event::Ready(identity) => return self.begin(&identity, now),
            Event::Failed { channel: None, reason } => return log!(P, "CAN interface: {reason:?}"),
            Event::Frame { channel, time, frame } => {
                return self.push(channel, time, &frame, now);
            }
            Event::Opened { channel }
            | Event::Closed { channel, .. }
            | Event::Overrun { channel }
            | Event::Acknowledged { channel, .. }
            | Event::BusError { channel, .. }
            | Event::ChipState { channel, .. }
            | Event::Failed { channel: Some(channel), .. } => channel,
        };
        if matches!(event, Event::Opened { .. }) {
            self.places.restart(number.into());
        }
        if let Some(channel) = self.all.get_mut(usize::from(number)) {
            channel.hear(event, now);
        }
    }

    fn begin(&mut self, identity: &Identity, now: Nanos) {
        log!(P, "CAN interface {} with {} channels", identity.serial, identity.channels);
        for channel in self.all.iter_mut().take(identity.channels.into()) {
            (channel.phase, channel.look_at) = (Phase::Closed, now);
        }
    }

    fn push(&mut self, number: u8, time: Nanos, frame: &Frame, now: Nanos) {
        let Some(channel) = self.all.get_mut(usize::from(number)) else { return };
        let Delay { beyond, inexact } = channel.clock.measure(now, time);
        let mut arrival = Arrival::new(frame, time, now).moved(beyond, inexact);
        arrival.opened = channel.opened;
        if core::mem::take(&mut channel.lost_before) {
            arrival.flags |= LOST_BEFORE;
        }
        self.fresh |= self.places.push(number.into(), time, &arrival) << self.own_bells;
        if channel.meter.as_mut().is_some_and(|meter| !meter.admits(time)) {
            arrival.flags |= OUTSIDE;
        }
        if let Some(outlet) = &mut channel.outlet {
            // A full pipe counts what it drops; its client sees that.
            let _ = outlet.push(&arrival);
            self.fresh |= channel.bell;
        }
    }
}

/// As nobody wants a channel: one that was given back is closed in any case.
const GIVEN_BACK: Parameters = Parameters { bit_rate: 0, sample_point: 0, silent: true };

impl<P: Platform> Channel<P> {
    /// One that is not there.
    const fn new(
        name: &'static str,
        client: Option<Client<P>>,
        (meter, clock): (Option<Meter>, DeviceClock),
    ) -> Channel<P> {
        Channel {
            name,
            outlet: None,
            meter,
            clock,
            bell: 0,
            phase: Phase::Absent,
            off: false,
            wish: None,
            opened_as: None,
            look_at: Nanos::FOREVER,
            lost_before: false,
            opened: 0,
            usual: None,
            client,
            lent_to: None,
        }
    }

    /// Returns whether it is open for tuned pipes, if at all.
    const fn has_no_owner(&self) -> bool {
        !self.is_always_open() && (self.client.is_none() || self.lent_to.is_some())
    }

    /// Returns whether it is opened for the pipe that the description has.
    const fn is_always_open(&self) -> bool {
        self.outlet.is_some() && self.client.is_none()
    }

    /// Returns where those who listen are told that it is; `None` on the way.
    const fn told(&self) -> Option<Phase> {
        match self.phase {
            Phase::Changing => None,
            Phase::Closed if self.off => Some(Phase::BusOff),
            phase => Some(phase),
        }
    }

    /// Carries out a request of its client.
    fn heed(&mut self, Request { wanted, token }: Request, now: Nanos) {
        let Some(client) = &mut self.client else { return };
        if self.lent_to.is_some() {
            // It has no say in how the channel takes part in its bus.
            return client.look();
        }
        match wanted {
            Wanted::Wake => return client.look(),
            Wanted::Status if self.phase == Phase::Open => return client.owe(token),
            Wanted::Status => {}
            Wanted::Close => {
                client.give_up();
                self.wish = None;
            }
            Wanted::Open(parameters) => {
                self.wish = Some(self.usual.map_or(parameters, |usual| parameters.or(usual)));
                if self.phase == Phase::BusOff {
                    self.phase = Phase::Closed;
                }
            }
        }
        client.hears(token);
        if self.phase != Phase::Absent {
            self.look_at = now;
        }
    }

    /// Makes of it what it is to be.
    fn settle(&mut self, number: u8, class: &mut Kvaser, identity: &Identity, now: Nanos) {
        self.look_at = Nanos::FOREVER;
        let done = match (self.phase, self.wish) {
            (Phase::Closed, Some(wish)) => self.open(number, class, identity, wish, now),
            (Phase::Open, wish) if wish != self.opened_as => class.close(now, number),
            _ => return,
        };
        match done {
            Ok(()) => self.phase = Phase::Changing,
            // It has logged why, and told its client.
            Err(Refused::Parameters) => {}
            Err(refused) => {
                log!(P, "{}: {refused}", self.name);
                self.look_at = now + REOPEN;
            }
        }
    }

    fn open(
        &mut self,
        number: u8,
        class: &mut Kvaser,
        identity: &Identity,
        wish: Parameters,
        now: Nanos,
    ) -> Result<(), Refused> {
        let rate = BitRate::new(wish.bit_rate).ok();
        let point = wish.sample_point.into();
        let Some(set) = rate.and_then(|rate| identity.personality.parameters(rate, point).ok())
        else {
            log!(P, "{}: the interface has no such bit rate: {}", self.name, wish.bit_rate);
            self.wish = None;
            self.client.iter_mut().for_each(Client::refuse_rate);
            return Err(Refused::Parameters);
        };
        self.opened_as = Some(wish);
        let mode = if wish.silent { Mode::ListenOnly } else { Mode::Normal };
        class.open(now, number, set, mode)
    }

    /// Asks how its controller is, if its client wants to know.
    fn ask(&mut self, number: u8, class: &mut Kvaser) {
        if let Some(client) = &mut self.client
            && client.must_ask()
        {
            match self.phase {
                Phase::Open if class.ask_chip_state(number).is_ok() => client.asked(),
                Phase::Open => {}
                _ => client.settle_debt(),
            }
        }
    }

    /// Sends one frame; false if there is none, or none can go.
    fn send(&mut self, number: u8, class: &mut Kvaser, now: Nanos) -> bool {
        let Some(client) = &mut self.client else { return false };
        match self.wish {
            // Nobody will send them: they must not go out when the channel is opened again.
            None => client.give_up(),
            Some(wish) if wish.silent => client.give_up(),
            // Their promise is over.
            Some(_) if self.phase != Phase::Open && self.lent_to.is_some() => client.give_up(),
            Some(_) if self.phase != Phase::Open || !class.takes(number) => return false,
            Some(_) => {
                let Some((frame, written)) = client.next(now) else { return false };
                let queued = class.send(number, &frame, false).is_ok();
                client.took(queued, written);
                return true;
            }
        }
        false
    }

    /// Takes an event of an interface about the channel.
    fn hear(&mut self, event: Event, now: Nanos) {
        match event {
            Event::Opened { .. } => {
                log!(P, "{}: open", self.name);
                self.opened = self.opened.wrapping_add(1);
                self.off = false;
                self.meter.iter_mut().for_each(Meter::restart);
                self.clock.restart();
                (self.phase, self.look_at) = (Phase::Open, now);
            }
            Event::Closed { cause, .. } => self.closed(cause, now),
            Event::Overrun { .. } => self.lost_before = true,
            Event::Failed { reason, .. } => log!(P, "{}: {reason:?}", self.name),
            _ => {}
        }
        let back = match event {
            Event::Acknowledged { time, .. } => self.clock.measure(now, time),
            _ => Delay::default(),
        };
        if let Some(client) = &mut self.client {
            client.note(&event, now, back);
        }
    }

    fn closed(&mut self, cause: Cause, now: Nanos) {
        log!(P, "{}: closed: {cause:?}", self.name);
        self.phase = Phase::Closed;
        self.off = cause == Cause::BusOff;
        self.look_at = if cause == Cause::Asked { now } else { now + REOPEN };
        if cause == Cause::BusOff && self.client.is_some() && self.lent_to.is_none() {
            // Its client decides whether it goes back to a bus that did not hear it.
            (self.phase, self.wish) = (Phase::BusOff, None);
        }
    }
}
