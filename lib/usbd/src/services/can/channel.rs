//! A channel of a CAN interface: it is opened and closed as its client wishes, or as the
//! description says if it has none.

use crate::client::Client;
use crate::platform::{Platform, log};
use crate::policy::REOPEN;
use diapason_abi::Nanos;
use diapason_can::exchange::{
    ChannelCommand, ChannelParameters, ChannelRequest, FdReceivedFrame, LOST_BEFORE, OUTSIDE,
    Phase, ReceivedFrame,
};
use diapason_can::{AnyFrame, BitRate};
use diapason_contract::can::{FD_RECORD, RECORDS};
use diapason_pipe::Writer;
use diapason_pipe::clock::{Delay, DeviceClock};
use diapason_pipe::meter::Meter;
use diapason_usb::class::can::{
    BusRates, CloseCause, InterfaceClass, InterfaceEvent, Mode, Refused,
};

/// Bells of those who have something new: bit n stands for bell n.
pub(super) type Fresh = u32;

// Rings are as large as descriptions make them.
const _: () = assert!(size_of::<FdReceivedFrame>() <= FD_RECORD.0);

/// The pipe of a channel, as the channel has frames.
pub(super) enum Outlet {
    Classic(Writer<'static, ReceivedFrame, RECORDS>),
    Fd(Writer<'static, FdReceivedFrame, RECORDS>),
}

/// A channel of an interface, with its pipe and the client that owns it.
pub(super) struct Channel<P: Platform> {
    /// The channel's name, for the log.
    pub name: &'static str,
    /// The channel's pipe in the description, if it has one, its contract, and the bell of its
    /// reader.
    pub outlet: Option<Outlet>,
    pub meter: Option<Meter>,
    /// The interface's clock, as the channel's messages show it.
    pub clock: DeviceClock,
    pub bell: Fresh,
    pub phase: Phase,
    /// The channel's controller left its bus by itself, and is not back.
    pub off: bool,
    /// The parameters with which the channel is to take part in its bus, if it is.
    pub wish: Option<ChannelParameters>,
    /// The parameters with which the channel was opened last.
    pub opened_as: Option<ChannelParameters>,
    /// The time at which the channel's state and its wanted state are compared again.
    pub look_at: Nanos,
    pub lost_before: bool,
    /// The number of times that the channel was opened.
    pub opened: u16,
    /// The parameters with which the channel takes part in its bus if no client says so.
    pub usual: Option<ChannelParameters>,
    /// The time after which the channel is opened again when it went bus-off, whoever owns it.
    /// `None` leaves it to its client.
    pub restart: Option<Nanos>,
    pub client: Option<Client<P>>,
    /// The place that the client is of, if it has the channel for as long as a tuned pipe is open.
    pub lent_to: Option<usize>,
}

/// As nobody wants a channel: one that was given back is closed in any case.
pub(super) const GIVEN_BACK: ChannelParameters =
    ChannelParameters { bit_rate: 0, sample_point: 0, silent: true, data_rate: 0 };

impl<P: Platform> Channel<P> {
    /// Returns one that is not there.
    pub const fn new(
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
            restart: None,
            client,
            lent_to: None,
        }
    }

    /// Returns whether it has CAN FD.
    pub fn has_fd(&self) -> bool {
        self.usual.is_some_and(|usual| usual.data_rate > 0)
    }

    /// Adds to a frame that came what the channel knows of its way.
    pub fn arrives(&mut self, arrival: &mut ReceivedFrame, time: Nanos, now: Nanos) {
        let Delay { beyond, inexact } = self.clock.measure(now, time);
        *arrival = arrival.moved(beyond, inexact);
        arrival.opened = self.opened;
        if core::mem::take(&mut self.lost_before) {
            arrival.flags |= LOST_BEFORE;
        }
    }

    /// Returns whether a frame is more than the contract of the pipe allows.
    fn is_outside(&mut self, time: Nanos) -> bool {
        self.meter.as_mut().is_some_and(|meter| !meter.admits(time))
    }

    /// Puts a frame into the classic pipe of the channel; returns whom to wake. A full pipe counts
    /// what it drops, and its client sees that.
    pub fn deliver(&mut self, mut arrival: ReceivedFrame, time: Nanos) -> Fresh {
        if self.is_outside(time) {
            arrival.flags |= OUTSIDE;
        }
        let Some(Outlet::Classic(pipe)) = &mut self.outlet else { return 0 };
        let _ = pipe.push(&arrival);
        self.bell
    }

    /// Puts a frame into the pipe with CAN FD, like [`Channel::deliver`].
    pub fn deliver_fd(
        &mut self,
        arrival: &ReceivedFrame,
        mut record: FdReceivedFrame,
        time: Nanos,
    ) -> Fresh {
        record.head = *arrival;
        if self.is_outside(time) {
            record.head.flags |= OUTSIDE;
        }
        let Some(Outlet::Fd(pipe)) = &mut self.outlet else { return 0 };
        let _ = pipe.push(&record);
        self.bell
    }

    /// Returns whether it is open for tuned pipes, if at all.
    pub const fn has_no_owner(&self) -> bool {
        !self.is_always_open() && (self.client.is_none() || self.lent_to.is_some())
    }

    /// Returns whether it is opened for the pipe that the description has.
    pub const fn is_always_open(&self) -> bool {
        self.outlet.is_some() && self.client.is_none()
    }

    /// Returns where those who listen are told that it is; `None` on the way.
    pub const fn told(&self) -> Option<Phase> {
        match self.phase {
            Phase::Changing => None,
            Phase::Closed if self.off => Some(Phase::BusOff),
            phase => Some(phase),
        }
    }

    /// Returns the phase that its client is told. A channel that will be opened again by itself is
    /// bus-off until then.
    pub const fn reported(&self) -> Phase {
        match self.phase {
            Phase::Closed if self.off && self.restart.is_some() => Phase::BusOff,
            phase => phase,
        }
    }

    /// Carries out a request of its client.
    pub fn heed(&mut self, ChannelRequest { wanted, token }: ChannelRequest, now: Nanos) {
        let Some(client) = &mut self.client else { return };
        if self.lent_to.is_some() {
            // It has no say in how the channel takes part in its bus.
            return client.look();
        }
        match wanted {
            ChannelCommand::Wake => return client.look(),
            ChannelCommand::Status if self.phase == Phase::Open => return client.owe(token),
            ChannelCommand::Status => {}
            ChannelCommand::Close => {
                client.give_up();
                self.wish = None;
            }
            ChannelCommand::Open(parameters) => {
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
    pub fn settle(&mut self, number: u8, class: &mut InterfaceClass, now: Nanos) {
        self.look_at = Nanos::FOREVER;
        let done = match (self.phase, self.wish) {
            (Phase::Closed, Some(wish)) => self.open(number, class, wish, now),
            (Phase::Open, wish) if wish != self.opened_as => class.close(now, number),
            _ => return,
        };
        match done {
            Ok(()) => self.phase = Phase::Changing,
            Err(Refused::Parameters) => {
                let rate = self.opened_as.take().map_or(0, |wish| wish.bit_rate);
                log!(P, "{}: the interface has no such bit rate: {rate}", self.name);
                self.wish = None;
                self.client.iter_mut().for_each(Client::refuse_rate);
            }
            Err(refused) => {
                log!(P, "{}: {refused}", self.name);
                self.look_at = now + REOPEN;
            }
        }
    }

    fn open(
        &mut self,
        number: u8,
        class: &mut InterfaceClass,
        wish: ChannelParameters,
        now: Nanos,
    ) -> Result<(), Refused> {
        self.opened_as = Some(wish);
        let rate = BitRate::new(wish.bit_rate).map_err(|_| Refused::Parameters)?;
        let data = BitRate::of_data(wish.data_rate).ok();
        if data.is_some_and(|data| data < rate) {
            return Err(Refused::Parameters);
        }
        let mode = if wish.silent { Mode::ListenOnly } else { Mode::Normal };
        class.open(
            now,
            number,
            BusRates { rate, sample_point: wish.sample_point.into(), data },
            mode,
        )
    }

    /// Asks how its controller is, if its client wants to know.
    pub fn ask(&mut self, number: u8, class: &mut InterfaceClass) {
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
    pub fn send(&mut self, number: u8, class: &mut InterfaceClass, now: Nanos) -> bool {
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
                let queued = match &frame {
                    AnyFrame::Classic(frame) => class.send(number, frame),
                    AnyFrame::Fd(frame) => class.send_fd(number, frame),
                };
                let queued = queued.is_ok();
                client.took(queued, written);
                return true;
            }
        }
        false
    }

    /// Takes an event of an interface about the channel.
    pub fn hear(&mut self, event: InterfaceEvent, now: Nanos) {
        match event {
            InterfaceEvent::Opened { .. } => {
                log!(P, "{}: open", self.name);
                self.opened = self.opened.wrapping_add(1);
                self.off = false;
                self.meter.iter_mut().for_each(Meter::restart);
                self.clock.restart();
                (self.phase, self.look_at) = (Phase::Open, now);
            }
            InterfaceEvent::Closed { cause, .. } => self.closed(cause, now),
            InterfaceEvent::Overrun { .. } => self.lost_before = true,
            InterfaceEvent::Failed { reason, .. } => log!(P, "{}: {reason:?}", self.name),
            _ => {}
        }
        let back = match event {
            InterfaceEvent::Acknowledged { time, .. } => self.clock.measure(now, time),
            _ => Delay::default(),
        };
        if let Some(client) = &mut self.client {
            client.note(&event, now, back);
        }
    }

    fn closed(&mut self, cause: CloseCause, now: Nanos) {
        log!(P, "{}: closed: {cause:?}", self.name);
        self.phase = Phase::Closed;
        self.off = cause == CloseCause::BusOff;
        self.look_at = match cause {
            CloseCause::Asked => now,
            CloseCause::BusOff => now + self.restart.unwrap_or(REOPEN),
            CloseCause::NotOpened => now + REOPEN,
        };
        let is_owned = self.client.is_some() && self.lent_to.is_none();
        if self.off && is_owned && self.restart.is_none() {
            // Its client decides whether it goes back to a bus that did not hear it.
            (self.phase, self.wish) = (Phase::BusOff, None);
        }
    }
}
