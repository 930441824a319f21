//! The CAN channels: what comes goes into their pipes, what is in the pipes to them goes out, and
//! each is opened and closed as its client wishes, or as [`crate::policy`] does if it has none.

use crate::client::Client;
use crate::policy::{BIT_RATES, REOPEN, SAMPLE_POINT};
use crate::services::Asking;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_can::{BitRate, Frame};
use diapason_canlib::agreement::{
    Answer, Arrival, CHANNELS, LOST_BEFORE, Outlet, Parameters, Phase, Request, Wanted, outlet,
};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, log};
use diapason_usb::class::kvaser::{Cause, Event, Identity, Kvaser, Mode, Refused};

/// Channels whose client has something new: bit n stands for channel n.
pub type Fresh = u8;

/// One of them.
struct Channel {
    outlet: Outlet,
    phase: Phase,
    /// How it is to take part in its bus, if it is.
    wish: Option<Parameters>,
    /// How it was opened last.
    opened_as: Option<Parameters>,
    /// When what it is and what it is to be are looked at again.
    look_at: Nanos,
    lost_before: bool,
    /// How often it was opened.
    opened: u16,
    client: Option<Client>,
}

/// All of them.
pub struct Channels {
    all: Vec<Channel>,
    fresh: Fresh,
    /// Who sends first next time.
    turn: usize,
}

impl Channels {
    /// Closed channels, and the semaphores their clients wait for. Those of clients that ask are
    /// opened when these say so.
    pub fn new(asking: Asking<'_>) -> Result<(Channels, [Semaphore; CHANNELS]), Errno> {
        let mut all = Vec::with_capacity(CHANNELS);
        let mut ready = [None; CHANNELS];
        for (number, ready) in ready.iter_mut().enumerate() {
            let (outlet, semaphore) = outlet(number)?;
            *ready = Some(semaphore);
            let bell = asking.filter(|(clients, _)| clients & 1 << number != 0);
            let client = bell.map(|(_, bell)| Client::new(number, bell)).transpose()?;
            let wish = if client.is_some() { None } else { usual(number) };
            all.push(Channel {
                outlet,
                phase: Phase::Absent,
                wish,
                opened_as: None,
                look_at: Nanos::FOREVER,
                lost_before: false,
                opened: 0,
                client,
            });
        }
        let ready = ready.map(|semaphore| semaphore.ok_or(Errno::Absent));
        let [a, b, c, d, e] = ready;
        Ok((Channels { all, fresh: 0, turn: 0 }, [a?, b?, c?, d?, e?]))
    }

    /// Which have something new since the last call; their reports are written.
    pub fn take_fresh(&mut self) -> Fresh {
        for (number, channel) in self.all.iter_mut().enumerate() {
            let phase = channel.phase;
            if channel.client.as_mut().is_some_and(|client| client.report(phase)) {
                self.fresh |= 1 << number;
            }
        }
        core::mem::take(&mut self.fresh)
    }

    /// The interface is gone, or of no use: nothing can be opened.
    pub fn forget(&mut self) {
        for channel in &mut self.all {
            (channel.phase, channel.look_at) = (Phase::Absent, Nanos::FOREVER);
            channel.client.iter_mut().for_each(Client::lose_flying);
        }
    }

    /// When one is to be looked at.
    pub fn next_wake(&self) -> Nanos {
        let times = self.all.iter().map(|channel| channel.look_at);
        times.fold(Nanos::FOREVER, Nanos::min)
    }

    /// Hear what clients want.
    pub fn listen(&mut self, now: Nanos) {
        for channel in &mut self.all {
            while let Some(request) = channel.client.as_mut().and_then(Client::hear) {
                channel.heed(request, now);
            }
        }
    }

    /// Open and close what is due, and send what the interface takes.
    pub fn drive(&mut self, class: &mut Kvaser, now: Nanos) {
        if let Some(identity) = class.identity() {
            for (number, channel) in self.all.iter_mut().enumerate() {
                if now >= channel.look_at {
                    channel.settle(number as u8, class, &identity, now);
                }
                channel.ask(number as u8, class);
            }
        }
        self.send(class);
    }

    /// A frame of each channel in turn, as long as the interface takes any.
    fn send(&mut self, class: &mut Kvaser) {
        let mut idle = 0;
        while idle < CHANNELS {
            let number = self.turn;
            self.turn = (self.turn + 1) % CHANNELS;
            let sent = self.all.get_mut(number).is_some_and(|it| it.send(number as u8, class));
            idle = if sent { 0 } else { idle + 1 };
        }
    }

    /// What an interface tells.
    pub fn hear(&mut self, event: Event, now: Nanos) {
        let number = match event {
            Event::Ready(identity) => return self.begin(&identity, now),
            Event::Failed { channel: None, reason } => return log!("CAN interface: {reason:?}"),
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
        if let Some(channel) = self.all.get_mut(usize::from(number)) {
            channel.hear(number, event, now);
        }
    }

    fn begin(&mut self, identity: &Identity, now: Nanos) {
        log!("CAN interface {} with {} channels", identity.serial, identity.channels);
        for channel in self.all.iter_mut().take(identity.channels.into()) {
            (channel.phase, channel.look_at) = (Phase::Closed, now);
        }
    }

    fn push(&mut self, number: u8, time: Nanos, frame: &Frame, now: Nanos) {
        let Some(channel) = self.all.get_mut(usize::from(number)) else { return };
        let mut arrival = Arrival::new(frame, time, now);
        arrival.opened = channel.opened;
        if core::mem::take(&mut channel.lost_before) {
            arrival.flags |= LOST_BEFORE;
        }
        // A full pipe counts what it drops; its client sees that.
        let _ = channel.outlet.push(&arrival);
        self.fresh |= 1 << number;
    }
}

/// How a channel without a client takes part.
fn usual(number: usize) -> Option<Parameters> {
    let bit_rate = *BIT_RATES.get(number)?;
    Some(Parameters { bit_rate, sample_point: SAMPLE_POINT as u16, silent: false })
}

impl Channel {
    /// What its client wants.
    fn heed(&mut self, Request { wanted, token }: Request, now: Nanos) {
        let Some(client) = &mut self.client else { return };
        match wanted {
            Wanted::Wake => return client.look(),
            Wanted::Status if self.phase == Phase::Open => return client.owe(token),
            Wanted::Status => {}
            Wanted::Close => {
                client.give_up();
                self.wish = None;
            }
            Wanted::Open(parameters) => {
                self.wish = Some(parameters);
                if self.phase == Phase::BusOff {
                    self.phase = Phase::Closed;
                }
            }
        }
        client.answer(token, Answer::Heard);
        if self.phase != Phase::Absent {
            self.look_at = now;
        }
    }

    /// Make of it what it is to be.
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
                log!("can{number}: {refused}");
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
            log!("can{number}: the interface has no such bit rate: {}", wish.bit_rate);
            self.wish = None;
            self.client.iter_mut().for_each(Client::refuse_rate);
            return Err(Refused::Parameters);
        };
        self.opened_as = Some(wish);
        let mode = if wish.silent { Mode::ListenOnly } else { Mode::Normal };
        class.open(now, number, set, mode)
    }

    /// Ask how its controller is, if its client wants to know.
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

    /// Send one frame; false if there is none, or none can go.
    fn send(&mut self, number: u8, class: &mut Kvaser) -> bool {
        let Some(client) = &mut self.client else { return false };
        match self.wish {
            // Nobody will send them: they must not go out when the channel is opened again.
            None => client.give_up(),
            Some(wish) if wish.silent => client.give_up(),
            Some(_) if self.phase != Phase::Open || !class.takes(number) => return false,
            Some(_) => {
                let Some(frame) = client.next() else { return false };
                let queued = class.send(number, &frame, false).is_ok();
                client.took(queued);
                return true;
            }
        }
        false
    }

    /// What an interface tells about it.
    fn hear(&mut self, number: u8, event: Event, now: Nanos) {
        match event {
            Event::Opened { .. } => {
                log!("can{number}: open");
                self.opened = self.opened.wrapping_add(1);
                (self.phase, self.look_at) = (Phase::Open, now);
            }
            Event::Closed { cause, .. } => self.closed(number, cause, now),
            Event::Overrun { .. } => self.lost_before = true,
            Event::Failed { reason, .. } => log!("can{number}: {reason:?}"),
            _ => {}
        }
        if let Some(client) = &mut self.client {
            client.note(&event, now);
        }
    }

    fn closed(&mut self, number: u8, cause: Cause, now: Nanos) {
        log!("can{number}: closed: {cause:?}");
        self.phase = Phase::Closed;
        self.look_at = if cause == Cause::Asked { now } else { now + REOPEN };
        if cause == Cause::BusOff && self.client.is_some() {
            // Its client decides whether it goes back to a bus that did not hear it.
            (self.phase, self.wish) = (Phase::BusOff, None);
        }
    }
}
