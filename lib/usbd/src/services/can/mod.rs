//! CAN interfaces: what comes goes into the pipes of their channels, what is in the pipes to them
//! goes out, and each channel is opened and closed.

mod channel;

use super::clients::Clients;
use super::kind::{Kind, Next};
use super::offered::Offered;
use crate::client::Client;
use crate::papers::Found;
use crate::places::{PlaceOrder, Places};
use crate::platform::{Platform, log};
use crate::presence::Presence;
use crate::slots::Shape;
use crate::told::{Asking, Pipes};
use crate::tuned;
use alloc::vec::Vec;
use channel::{Channel, Fresh, GIVEN_BACK, Outlet};
use diapason_abi::pipe::PLACES;
use diapason_abi::{Errno, Nanos};
use diapason_bus::Guarantee;
use diapason_can::exchange::{FdReceivedFrame, Phase, ReceivedFrame};
use diapason_can::{AnyFrame, CanFrame, FdFrame};
use diapason_contract::can::{EACH, PENDING, names};
use diapason_usb::class::can::{InterfaceClass, InterfaceEvent};
use diapason_usb::class::{gs_usb, kvaser};
use diapason_usb::xhci::EndpointPlan;

const _: () = assert!(EACH + PLACES <= Fresh::BITS as usize, "each has a bell");

/// Bytes of a small place for transfers, and how many there are: for what is sent, and for a
/// request. The transfers from an interface are in the places of its packets; those of a `gs_usb`
/// interface are small, and fill the small places first.
const SMALL: (usize, usize) = (64, 20);

const _: () = assert!(kvaser::SENT_MAX <= SMALL.0 && kvaser::SENDING.1 < SMALL.1);
const _: () = assert!(gs_usb::TRANSFER.0 <= SMALL.0 && gs_usb::SENT <= SMALL.0);
const _: () = assert!(gs_usb::TRANSFER.1 + gs_usb::SENDING.1 < SMALL.1 + kvaser::TRANSFER.1);

/// Bytes of a place for transfers of an interface with CAN FD, which is no Kvaser one, and how many
/// there are.
const LONG: (usize, usize) = (gs_usb::LONG_TRANSFER, 32);

const _: () = assert!(gs_usb::LONG_SENT <= LONG.0);
const _: () = assert!(gs_usb::TRANSFER.1 + gs_usb::SENDING.1 < LONG.1);

const _: () = assert!(kvaser::TRANSFER.1 as u64 == PENDING);

/// The memory for transfers of an interface of any family, and of one with CAN FD.
const MEMORY: &[Shape] = &[
    Shape { bytes: SMALL.0, count: SMALL.1 as u8 },
    Shape { bytes: kvaser::TRANSFER.0, count: kvaser::TRANSFER.1 as u8 },
];
const FD_MEMORY: &[Shape] = &[Shape { bytes: LONG.0, count: LONG.1 as u8 }];

/// The service for a CAN interface.
pub(crate) struct Can<P: Platform> {
    clients: Clients<P::Memory>,
    channels: Vec<Channel<P>>,
    places: Places,
    /// The clients of places that may write, while they do not.
    writers: Vec<Option<Client<P>>>,
    /// How many bells are not those of places, which come behind.
    own_bells: usize,
    fresh: Fresh,
    /// The channel that sends first next time.
    turn: usize,
    /// Whether there is an interface.
    presence: Presence,
    /// The guarantee of the bus that the channels rest on.
    guarantee: Option<Guarantee>,
    /// Some of the channels have CAN FD.
    fd: bool,
}

impl<P: Platform> Can<P> {
    /// Returns the service for an interface that is not there, its channels closed, and the
    /// semaphores that their clients wait for. Channels of clients that ask are opened when these
    /// say so, those without any pipe when somebody listens.
    ///
    /// # Errors
    /// A pipe or a mailbox is not there.
    pub fn new(
        platform: &P,
        interface: usize,
        asking: Asking,
        pipes: &Pipes,
    ) -> Result<(Can<P>, &'static [&'static str]), Errno> {
        let numbers = pipes.interfaces.get(interface).ok_or(Errno::Absent)?.numbers();
        let (mut channels, mut bells) = (Vec::with_capacity(numbers.len()), Vec::new());
        for number in numbers {
            let names = names(number).ok_or(Errno::Absent)?;
            let asks = asking.filter(|clients| clients & 1 << number != 0);
            let fd = pipes.has_fd(number);
            let client = asks.map(|_| Client::new(platform, interface, (names, fd))).transpose()?;
            let mut channel =
                Channel::new(names.arrivals, client, (pipes.meter(number), pipes.clock()));
            channel.usual = pipes.usual(number);
            channel.restart = pipes.restart(interface);
            if pipes.has(number) || channel.client.is_some() {
                let outlet = match fd {
                    true => Outlet::Fd(platform.writer(names.fd_arrivals)?),
                    false => Outlet::Classic(platform.writer(names.arrivals)?),
                };
                (channel.outlet, channel.bell) = (Some(outlet), 1 << bells.len());
                bells.push(names.ready);
            }
            channel.wish = if channel.is_always_open() { channel.usual } else { None };
            channels.push(channel);
        }
        let envelopes = pipes.places_of(interface);
        let (own_bells, (places, more)) = (bells.len(), Places::new(platform, envelopes.len())?);
        bells.extend(more);
        let mut writers = Vec::with_capacity(envelopes.len());
        for (number, place) in envelopes.iter().enumerate() {
            let asks = asking.filter(|_| place.to != 0);
            writers.push(asks.map(|_| Client::of_place(platform, number)).transpose()?);
        }
        let (clients, presence) = (Clients::new(), Presence::default());
        let costs = pipes.costs.as_ref().filter(|_| interface == 0);
        let guarantee = costs.map(tuned::guarantee);
        let fd = channels.iter().any(Channel::has_fd);
        Ok((
            Can {
                clients,
                channels,
                places,
                writers,
                own_bells,
                fresh: 0,
                turn: 0,
                presence,
                guarantee,
                fd,
            },
            bells.leak(),
        ))
    }

    /// Returns the memory for transfers of its interface.
    pub const fn memory(&self) -> &'static [Shape] {
        if self.fd { FD_MEMORY } else { MEMORY }
    }

    /// A place writes to a channel, if nobody else does.
    fn lend(&mut self, place: usize, channel: usize) {
        let channel = self.channels.get_mut(channel).filter(|it| it.client.is_none());
        let Some(channel) = channel else { return };
        let Some(client) = self.writers.get_mut(place).and_then(Option::take) else { return };
        (channel.client, channel.lent_to) = (Some(client), Some(place));
        channel.bell |= 1 << (self.own_bells + place);
    }

    /// A place writes no more. The messages under way are given up: the channel is closed, whoever
    /// owns it next.
    fn take_back(&mut self, place: usize) {
        let lent = self.channels.iter_mut().find(|channel| channel.lent_to == Some(place));
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

    /// Opens and closes what is due, and sends what the interface takes.
    fn drive(&mut self, class: &mut InterfaceClass, now: Nanos) {
        if class.is_ready() {
            for (number, channel) in self.channels.iter_mut().enumerate() {
                if now >= channel.look_at {
                    channel.settle(number as u8, class, now);
                }
                channel.ask(number as u8, class);
            }
        }
        self.send(class, now);
    }

    /// Sends a frame of each channel in turn, as long as the interface takes any.
    fn send(&mut self, class: &mut InterfaceClass, now: Nanos) {
        let mut idle = 0;
        while idle < self.channels.len() {
            let number = self.turn;
            self.turn = (self.turn + 1) % self.channels.len();
            let channel = self.channels.get_mut(number);
            let sent = channel.is_some_and(|it| it.send(number as u8, class, now));
            idle = if sent { 0 } else { idle + 1 };
        }
    }

    /// The interface is ready: its channels can be opened.
    fn begin(&mut self, channels: u8, serial: Option<u32>, now: Nanos) {
        match serial {
            Some(serial) => log!(P, "CAN interface {serial} with {channels} channels"),
            None => log!(P, "CAN interface with {channels} channels"),
        }
        for channel in self.channels.iter_mut().take(channels.into()) {
            (channel.phase, channel.look_at) = (Phase::Closed, now);
        }
    }

    /// Puts a frame into the pipes of its channel.
    fn push(&mut self, number: u8, time: Nanos, frame: &CanFrame, now: Nanos) {
        let Some(channel) = self.channels.get_mut(usize::from(number)) else { return };
        let mut arrival = ReceivedFrame::new(frame, time, now);
        channel.arrives(&mut arrival, time, now);
        self.fresh |= self.places.push(number.into(), time, &arrival) << self.own_bells;
        self.fresh |= match &channel.outlet {
            Some(Outlet::Fd(_)) => {
                let record = FdReceivedFrame::new(&AnyFrame::Classic(*frame), time, now);
                channel.deliver_fd(&arrival, record, time)
            }
            _ => channel.deliver(arrival, time),
        };
    }

    /// Puts a frame of CAN FD into the pipe of its channel. No tuned pipe has such frames.
    fn push_fd(&mut self, number: u8, time: Nanos, frame: &FdFrame, now: Nanos) {
        let Some(channel) = self.channels.get_mut(usize::from(number)) else { return };
        let record = FdReceivedFrame::new(&AnyFrame::Fd(*frame), time, now);
        let mut arrival = record.head;
        channel.arrives(&mut arrival, time, now);
        self.fresh |= channel.deliver_fd(&arrival, record, time);
    }

    /// Takes an event about one channel, but a frame.
    fn about(&mut self, number: u8, event: InterfaceEvent, now: Nanos) {
        if matches!(event, InterfaceEvent::Opened { .. }) {
            self.places.restart(number.into());
        }
        if let Some(channel) = self.channels.get_mut(usize::from(number)) {
            channel.hear(event, now);
        }
    }
}

impl<P: Platform> Offered<P, Can<P>> {
    /// Returns the view of whether there is an interface.
    pub fn presence(&self) -> Presence {
        self.kind.presence.clone()
    }

    /// Somebody listens or writes to a channel, or no more: those that nobody wants are closed.
    pub fn order(&mut self, order: &PlaceOrder, now: Nanos) {
        let can = &mut self.kind;
        can.places.heed(order);
        match *order {
            PlaceOrder::Write { place, channel } => can.lend(place, channel.into()),
            PlaceOrder::Leave { place } => can.take_back(place),
            PlaceOrder::Listen { .. } => {}
        }
        for (number, channel) in can.channels.iter_mut().enumerate() {
            if channel.has_no_owner() {
                let wanted = channel.lent_to.is_some() || can.places.listen_to(number);
                channel.wish = if wanted { channel.usual } else { None };
                if channel.phase != Phase::Absent && channel.opened_as != channel.wish {
                    channel.look_at = now;
                }
            }
        }
    }

    /// Hears what clients have put into their mailboxes.
    pub fn heed(&mut self, now: Nanos) {
        for channel in &mut self.kind.channels {
            while let Some(request) = channel.client.as_mut().and_then(Client::hear) {
                channel.heed(request, now);
            }
        }
    }

    /// Writes reports for the clients of channels.
    pub fn report(&mut self) {
        let can = &mut self.kind;
        for (number, channel) in can.channels.iter_mut().enumerate() {
            let phase = channel.reported();
            if channel.client.as_mut().is_some_and(|client| client.report(phase)) {
                can.fresh |= channel.bell;
            }
            if let Some(phase) = channel.told() {
                can.fresh |= can.places.tell(number, phase) << can.own_bells;
            }
        }
        can.clients.ring(core::mem::take(&mut can.fresh));
    }
}

impl<P: Platform> Kind<P> for Can<P> {
    type Class = InterfaceClass;

    const NAME: &'static str = "a CAN interface";
    const MEMORY: &'static [Shape] = MEMORY;

    fn find(&self, found: &Found<'_>, now: Nanos) -> Option<InterfaceClass> {
        InterfaceClass::find(now, &found.about, &found.set, self.fd)
    }

    fn fits(&self, found: &Found<'_>) -> bool {
        InterfaceClass::fits(&found.about, &found.set, self.fd)
    }

    fn is_message(event: &InterfaceEvent) -> bool {
        matches!(event, InterfaceEvent::Frame { .. } | InterfaceEvent::FdFrame { .. })
    }

    fn hear(&mut self, event: InterfaceEvent, now: Nanos) -> Next {
        match event {
            InterfaceEvent::Frame { channel, time, frame } => self.push(channel, time, &frame, now),
            InterfaceEvent::FdFrame { channel, time, frame } => {
                self.push_fd(channel, time, &frame, now);
            }
            InterfaceEvent::Ready { channels, serial } => self.begin(channels, serial, now),
            InterfaceEvent::Failed { channel: None, reason } => {
                log!(P, "CAN interface: {reason:?}");
                return Next::End;
            }
            InterfaceEvent::Opened { channel }
            | InterfaceEvent::Closed { channel, .. }
            | InterfaceEvent::Overrun { channel }
            | InterfaceEvent::Acknowledged { channel, .. }
            | InterfaceEvent::BusError { channel, .. }
            | InterfaceEvent::ChipState { channel, .. }
            | InterfaceEvent::Failed { channel: Some(channel), .. } => {
                self.about(channel, event, now)
            }
        }
        Next::On
    }

    fn plan(&self, usual: EndpointPlan) -> EndpointPlan {
        // Messages come from its one endpoint of this direction.
        let guarantee = self.guarantee.filter(|_| usual.endpoint.address & 0x80 != 0);
        EndpointPlan { guarantee, ..usual }
    }

    fn attend(&mut self, class: Option<&mut InterfaceClass>, now: Nanos) {
        self.presence.set(class.is_some());
        if let Some(class) = class {
            self.drive(class, now);
        }
    }

    fn forget(&mut self, _: Nanos) {
        for channel in &mut self.channels {
            (channel.phase, channel.look_at) = (Phase::Absent, Nanos::FOREVER);
            channel.off = false;
            channel.client.iter_mut().for_each(Client::lose_flying);
            if channel.lent_to.is_some() {
                channel.client.iter_mut().for_each(Client::give_up);
            }
        }
    }

    fn next_wake(&self) -> Nanos {
        let times = self.channels.iter().map(|channel| channel.look_at);
        times.fold(Nanos::FOREVER, Nanos::min)
    }

    fn clients(&mut self) -> Option<&mut Clients<P::Memory>> {
        Some(&mut self.clients)
    }
}
