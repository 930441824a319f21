//! The description's settings for the server, and its knowledge of pipes: their contracts, the
//! limits of programs' requests at run time, and the driver's costs.

use crate::order::Order;
use crate::policy;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_abi::pipe::{
    COSTS, DRIFT, DriverCosts, ENVELOPES, Envelope, OUTPUT_COSTS, OutputCosts, PLACES, USUAL_DRIFT,
};
use diapason_abi::settings::Settings;
use diapason_bus::Coding;
use diapason_can::exchange::ChannelParameters;
use diapason_contract::can::{BIT_RATE, CHANNELS, CanInterface, SAMPLE_POINT};
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::disk;
use diapason_contract::endpoint::NUMBER;
use diapason_contract::link::{LINKS, LONGEST, longest};
use diapason_contract::mode;
use diapason_contract::needs;
use diapason_contract::settings::{self as usbd, Counted, Expected, FormingOrder, MOST};
use diapason_contract::sink;
use diapason_contract::source::{MessageShape, SHAPES, SOURCES};
use diapason_contract::threads::{self, LINK, STREAM, ServiceKind};
use diapason_pipe::clock::DeviceClock;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_usb::xhci::{Buses, Guarantee};

/// The settings of the server.
#[derive(Clone)]
pub struct ServerSettings {
    /// The services that have a bottom half, in the order of their interrupters, each with its
    /// number among those of its kind.
    pub(crate) seats: Vec<(ServiceKind, usize)>,
    /// The server serves hubs.
    pub(crate) hubs: bool,
    /// Devices that the description names.
    pub expected: Vec<Expected>,
    pub tell: u64,
    /// The server serves one CAN interface and nothing else.
    pub is_small: bool,
    /// How the shares of the controller's buses are computed.
    pub buses: Buses,
    /// CAN channels whose clients open and write them, one bit each.
    pub clients: u16,
    /// The knowledge about pipes.
    pub pipes: Pipes,
    /// The promise to links.
    pub guarantee: Option<Guarantee>,
    /// The server's part in the order in which a network of hosts forms.
    pub order: Option<FormingOrder>,
    /// The root port of each link; 0 is any.
    pub links: Vec<u8>,
    /// The most bytes of a message of each link.
    pub longest: [u32; LINKS],
    /// How each stream is scheduled.
    pub streams: Vec<StreamTerms>,
    /// The bytes of each stream in each mode, as the setting has them.
    pub(crate) modes: Vec<u64>,
    /// The time that must pass from one change of modes to the next.
    pub(crate) rest: Nanos,
}

/// How a stream is scheduled.
#[derive(Clone)]
pub struct StreamTerms {
    /// The stream runs at 2ⁿ times the period its camera asks for.
    pub stretch: u8,
    /// The schedule holds with it, or it is refused.
    pub critical: bool,
    /// The order that a change of modes gives it, if the description has modes.
    pub(crate) order: Option<Order>,
}

/// CAN channels with a client that asks, one bit each, if a thread hears clients.
pub type Asking = Option<u16>;

// Each channel has a bit.
const _: () = assert!(CHANNELS <= u16::BITS as usize);

/// Places for tuned pipes, what the pipes of the description carry, and what it costs.
#[derive(Clone)]
pub struct Pipes {
    /// The CAN interfaces, and the channels of each. Places are of the first.
    pub interfaces: Vec<CanInterface>,
    /// The limits of requests in each place.
    pub places: Vec<Envelope>,
    /// CAN channels that are open for pipes of the description, one bit each.
    opens: u64,
    /// How channels take part in their buses unless a client says so.
    usual: [ChannelParameters; CHANNELS],
    /// The time after which a channel of each interface that went bus-off is opened again, in ns;
    /// 0 leaves it to its client.
    restarts: Vec<u64>,
    /// The contracts of the described pipes.
    contracts: Contracts,
    /// The shapes of the messages of sources, in the order of their numbers.
    shapes: [MessageShape; SOURCES.len()],
    /// The number of the endpoint that packets are read from; 0 of none.
    pub endpoint: u8,
    /// The number of the endpoint that packets are written to; 0 of none.
    pub sink: u8,
    /// The kind of the asks of the pipe of each disk.
    pub disks: [u32; MOST],
    /// By how many millionths a device's clock and the host's run apart at most.
    drift: u32,
    /// The costs that the plan computes with.
    pub costs: Option<DriverCosts>,
    /// The costs of what goes to the device, if anything does.
    pub output: Option<OutputCosts>,
}

/// Returns a bit for each number.
fn bits(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |all, number| all | 1 << (number & 63))
}

/// Returns the buses of the controller: the standard's, but for those that the description changes.
fn buses(words: &[u64]) -> Buses {
    let mut buses = Buses::default();
    for counted in words.iter().copied().map(Counted::of) {
        let bus = match counted.speed {
            0 => &mut buses.low,
            1 => &mut buses.full,
            2 => &mut buses.high,
            _ => &mut buses.superspeed,
        };
        bus.coding = if counted.coded { Coding::EightTen } else { Coding::Ignored };
        bus.periodic_percent = counted.periodic_percent.into();
        buses.control &= counted.control;
    }
    buses
}

/// Returns the shapes of the messages of all sources.
fn shapes(words: &[u64]) -> [MessageShape; SOURCES.len()] {
    let shape =
        |at: usize| words.get(at).map_or(MessageShape::default(), |it| MessageShape::of(*it));
    core::array::from_fn(shape)
}

/// Returns how channels take part in their buses, as the description says it of their interfaces.
fn usual(settings: &Settings, interfaces: &[CanInterface]) -> [ChannelParameters; CHANNELS] {
    let rates = settings.get(usbd::BIT_RATES);
    let known = |number: usize| rates.get(number).and_then(|rate| u32::try_from(*rate).ok());
    let data_rates = settings.get(usbd::DATA_RATES);
    let data = |number: usize| data_rates.get(number).and_then(|rate| u32::try_from(*rate).ok());
    let points = settings.get(usbd::SAMPLE_POINT);
    let point = |number: usize| {
        let own = interfaces.iter().position(|it| it.numbers().contains(&number))?;
        points.get(own).and_then(|point| u16::try_from(*point).ok())
    };
    core::array::from_fn(|number| {
        let bit_rate = known(number).unwrap_or(BIT_RATE);
        let sample_point = point(number).unwrap_or(SAMPLE_POINT);
        let data_rate = data(number).unwrap_or(0);
        ChannelParameters { bit_rate, sample_point, silent: false, data_rate }
    })
}

impl ServerSettings {
    /// Out of its settings.
    pub fn read(settings: &Settings) -> ServerSettings {
        let (links, streams) = (settings.get(usbd::LINKS), settings.get(usbd::STREAMS));
        let setting = |name: &str| settings.get(name);
        let critical = bits(settings.get(usbd::CRITICAL));
        let modes = settings.get(mode::MODES);
        let guarantee = match *settings.get(usbd::PROMISE) {
            [period, bytes] => Some(Guarantee { bytes: bytes as u32, period: period as u32 }),
            _ => None,
        };
        let stream = |(number, times): (usize, &u64)| StreamTerms {
            stretch: times.trailing_zeros() as u8,
            critical: critical >> number & 1 != 0,
            order: (!modes.is_empty()).then(Order::default),
        };
        ServerSettings {
            seats: threads::seats(&setting).collect(),
            hubs: threads::services(&setting).any(|service| service == ServiceKind::Hubs),
            expected: Expected::all(settings.get(usbd::DEVICES)).collect(),
            tell: bits(settings.get(usbd::SAYS)),
            is_small: needs::is_small(&setting),
            buses: buses(settings.get(usbd::BUSES)),
            clients: bits(settings.get(usbd::CLIENTS)) as u16,
            pipes: Pipes::read(settings),
            guarantee,
            order: FormingOrder::of(settings.get(usbd::ORDER)),
            longest: core::array::from_fn(|link| longest(settings.get(LONGEST), link)),
            links: links.iter().take(LINK.len()).map(|port| *port as u8).collect(),
            streams: streams.iter().take(STREAM.len()).enumerate().map(stream).collect(),
            modes: modes.into(),
            rest: Nanos(settings.first(mode::REST).unwrap_or(0)),
        }
    }

    /// Returns whether it tells another program when to enable the debug capability.
    pub fn enables(&self) -> bool {
        self.order.is_some_and(|order| order.enables)
    }

    /// Returns whether a thread hears what clients of this interface's channels want.
    pub fn hears_clients(&self, interface: usize) -> bool {
        let channels = self.pipes.interfaces.get(interface).map_or(0..0, |it| it.numbers());
        let clients = channels.into_iter().any(|number| self.clients >> number & 1 != 0);
        clients || interface == 0 && self.pipes.may_write()
    }
}

impl Pipes {
    fn read(settings: &Settings) -> Pipes {
        let interfaces: Vec<_> = threads::interfaces(&|name: &str| settings.get(name)).collect();
        Pipes {
            usual: usual(settings, &interfaces),
            interfaces,
            places: Envelope::all(settings.get(ENVELOPES)).take(PLACES).collect(),
            opens: bits(settings.get(usbd::OPENS)),
            restarts: settings.get(usbd::RESTART).into(),
            contracts: Contracts::of(settings.get(CONTRACTS)),
            shapes: shapes(settings.get(SHAPES)),
            endpoint: settings.first(NUMBER).map_or(0, |number| number as u8 & 0xf),
            sink: settings.first(sink::NUMBER).map_or(0, |number| number as u8 & 0xf),
            disks: core::array::from_fn(|seat| {
                settings.get(disk::PIPED).get(seat).map_or(disk::READ, |what| *what as u32)
            }),
            drift: settings.first(DRIFT).map_or(USUAL_DRIFT, |drift| drift as u32),
            costs: DriverCosts::of(settings.get(COSTS)),
            output: OutputCosts::of(settings.get(OUTPUT_COSTS)),
        }
    }

    /// Returns the places of an interface: programs open pipes of the first one only.
    pub fn places_of(&self, interface: usize) -> &[Envelope] {
        if interface == 0 { &self.places } else { &[] }
    }

    /// Returns whether anything may be written in a place.
    pub fn may_write(&self) -> bool {
        self.places.iter().any(|place| place.to != 0)
    }

    /// Returns whether the description has a pipe from this channel. Any other channel is closed
    /// unless a client opens it, so that nothing comes from its bus.
    pub fn has(&self, channel: usize) -> bool {
        channel < 64 && self.opens >> channel & 1 != 0
    }

    /// Returns whether a channel has CAN FD.
    pub fn has_fd(&self, channel: usize) -> bool {
        self.usual(channel).is_some_and(|usual| usual.data_rate > 0)
    }

    /// Returns how a channel without a client takes part in its bus.
    pub fn usual(&self, channel: usize) -> Option<ChannelParameters> {
        self.usual.get(channel).copied()
    }

    /// Returns after which time a channel of this interface that went bus-off is opened again,
    /// whoever owns it. `None` leaves it to its client.
    pub fn restart(&self, interface: usize) -> Option<Nanos> {
        self.restarts.get(interface).copied().filter(|time| *time > 0).map(Nanos)
    }

    /// Returns the contract of the pipe with this number.
    pub fn contract(&self, number: usize) -> Option<Bucket> {
        let Contract { messages, per, burst, jitter } = (*self.contracts.0.get(number)?)?;
        Some(Bucket { burst, messages: messages.into(), per, jitter })
    }

    /// Returns the shape of the messages of the pipe with this number, if it is that of a source.
    pub fn shape(&self, number: usize) -> Option<MessageShape> {
        let shape = self.shapes.get(number.checked_sub(CHANNELS)?)?;
        (shape.bytes > 0).then_some(*shape)
    }

    /// Returns a device's clock, of which nothing is known yet.
    pub const fn clock(&self) -> DeviceClock {
        DeviceClock::new(self.drift)
    }

    /// Returns a meter for the pipe with this number, by the clock of its device.
    pub fn meter(&self, number: usize) -> Option<Meter> {
        let contract = self.contract(number)?;
        Some(Meter::new(contract.with_jitter(contract.jitter + policy::CLOCK)))
    }
}
