//! An ideal host: enumerates a device, takes no time for a packet, and asks again when the device
//! says that something changed.

use diapason_abi::Nanos;
use diapason_devices::{Answer, Handshake, Stall, UsbDevice};
use diapason_usb::class::{Class, Completion, HEAD, Landed, Request, TransferFault};
use diapason_usb::descriptor::{self, Configuration, ConfigurationHeader};
use diapason_usb::setup::descriptor_type::{CONFIGURATION, DEVICE};
use diapason_usb::{Setup, Speed};
use std::collections::{BTreeMap, VecDeque};

/// A held-off transfer to the device is tried again after a microframe.
const RETRY: Nanos = Nanos::from_micros(125);

enum Asked {
    Control(Setup, Vec<u8>),
    /// Bytes wanted, and those that came.
    In(usize, Vec<u8>),
    /// Bytes to send, and how many went.
    Out(Vec<u8>, usize),
    Recover,
}

/// A transfer, and its place if its bytes are in shared memory.
type Pending = (Asked, Option<u32>);

/// Reads a device's descriptors, as the driver of a controller does; of its configurations the one
/// with this number.
pub fn enumerate(
    device: &mut dyn UsbDevice,
    number: u8,
) -> (descriptor::DeviceDescriptor, Vec<u8>) {
    let (now, speed) = (Nanos::ZERO, device.speed());
    device.reset(now);
    let mut get = |kind, number, length| {
        let setup = Setup::get_descriptor(kind, number, 0, length);
        device.control(now, setup, &[]).expect("a descriptor")
    };
    let about = descriptor::DeviceDescriptor::parse(&get(DEVICE, 0, 18), speed).expect("a device");
    let header =
        ConfigurationHeader::parse(&get(CONFIGURATION, number, 9)).expect("a configuration");
    let bytes = get(CONFIGURATION, number, header.total);
    let set = Configuration::parse(header, &bytes, speed).expect("a sound configuration");
    device.control(now, Setup::set_configuration(set.header().value), &[]).expect("is configured");
    (about, bytes)
}

/// A device and its class.
pub struct Host<D: UsbDevice, C: Class> {
    pub device: D,
    pub class: C,
    pub now: Nanos,
    /// Bytes of a packet of each endpoint.
    packets: BTreeMap<u8, usize>,
    isochronous: Option<u8>,
    next_interval: Nanos,
    pending: BTreeMap<u8, VecDeque<Pending>>,
    /// Memory that is shared with a client, by place.
    pub shared: BTreeMap<u32, Vec<u8>>,
}

impl<D: UsbDevice, C: Class> Host<D, C> {
    /// Returns the host of a device that [`enumerate`] has set up.
    pub fn new(device: D, bytes: &[u8], class: C) -> Host<D, C> {
        let speed = device.speed();
        let set = Configuration::parse_once(bytes, speed).expect("a configuration");
        let endpoints: Vec<_> = set.interfaces().flat_map(|i| i.endpoints()).collect();
        let isochronous = endpoints.iter().find(|e| e.kind().is_isochronous()).map(|e| e.address);
        let packets = endpoints.iter().map(|e| (e.address, e.packet.into())).collect();
        Host {
            device,
            class,
            now: Nanos::ZERO,
            packets,
            isochronous,
            next_interval: Nanos::ZERO,
            pending: BTreeMap::new(),
            shared: BTreeMap::new(),
        }
    }

    fn pull(&mut self) {
        while let Some(request) = self.class.request(self.now) {
            let mut shared = None;
            let (endpoint, asked) = match request {
                Request::Control { setup, data } => (0, Asked::Control(setup, data.to_vec())),
                Request::Alternate { interface, alternate } => {
                    (0, Asked::Control(Setup::set_interface(interface, alternate), vec![]))
                }
                Request::In { endpoint, length } => (endpoint, Asked::In(length, Vec::new())),
                Request::Out { endpoint, data } => (endpoint, Asked::Out(data.to_vec(), 0)),
                Request::Shared { endpoint, place, length } => {
                    shared = Some(place);
                    let bytes = || self.shared[&place][..length].to_vec();
                    let asked = match endpoint & 0x80 {
                        0 => Asked::Out(bytes(), 0),
                        _ => Asked::In(length, Vec::new()),
                    };
                    (endpoint, asked)
                }
                Request::Recover { endpoint } => (endpoint, Asked::Recover),
                Request::Cancel { .. } => panic!("nothing is late here"),
            };
            self.pending.entry(endpoint).or_default().push_back((asked, shared));
        }
    }

    /// Goes on with the first transfer of an endpoint; `Some` when it ended.
    fn advance(&mut self, endpoint: u8) -> Option<Result<Vec<u8>, TransferFault>> {
        let packet = self.packets.get(&endpoint).copied().unwrap_or(64);
        let (now, device) = (self.now, &mut self.device);
        let stalled = |result: Result<Vec<u8>, Stall>| result.map_err(|Stall| TransferFault::Stall);
        match &mut self.pending.get_mut(&endpoint)?.front_mut()?.0 {
            Asked::Control(setup, data) => {
                let answer = device.control(now, *setup, data);
                let answer = answer.map(|bytes| if setup.is_in() { bytes } else { data.clone() });
                Some(stalled(answer))
            }
            Asked::Recover => Some(stalled(device.control(now, Setup::clear_halt(endpoint), &[]))),
            Asked::In(length, bytes) => loop {
                let mut buffer = vec![0; packet.min(*length - bytes.len())];
                match device.send(now, endpoint, &mut buffer) {
                    Answer::Data(count) if count <= buffer.len() => {
                        bytes.extend(&buffer[..count]);
                        if count < packet || bytes.len() == *length {
                            return Some(Ok(std::mem::take(bytes)));
                        }
                    }
                    Answer::Nak if self.isochronous == Some(endpoint) => {
                        return Some(Ok(std::mem::take(bytes)));
                    }
                    Answer::Nak => return None,
                    Answer::Stall => return Some(Err(TransferFault::Stall)),
                    Answer::Data(_) | Answer::Error => return Some(Err(TransferFault::Damaged)),
                }
            },
            Asked::Out(bytes, sent) => loop {
                let rest = &bytes[*sent..];
                let chunk = &rest[..packet.min(rest.len())];
                match device.receive(now, endpoint, chunk) {
                    Handshake::Ack => *sent += chunk.len(),
                    Handshake::Nak => return None,
                    Handshake::Stall => return Some(Err(TransferFault::Stall)),
                    Handshake::Error => return Some(Err(TransferFault::Damaged)),
                }
                if *sent == bytes.len() {
                    return Some(Ok(std::mem::take(bytes)));
                }
            },
        }
    }

    fn end(
        &mut self,
        endpoint: u8,
        place: Option<u32>,
        result: Result<Vec<u8>, TransferFault>,
        tell: &mut dyn FnMut(C::Event<'_>),
    ) {
        let Some(place) = place else {
            let done = Completion { endpoint, result: result.as_deref().map_err(|f| *f) };
            return self.class.complete(self.now, done, tell);
        };
        let moved = result.as_ref().map(Vec::len).map_err(|fault| *fault);
        let bytes = result.unwrap_or_default();
        let head = if endpoint & 0x80 != 0 { &bytes[..bytes.len().min(HEAD)] } else { &[] };
        self.class.landed(self.now, Landed { endpoint, place, result: moved, head }, tell);
        if endpoint & 0x80 != 0 {
            self.shared.insert(place, bytes);
        }
    }

    /// Does what can be done now; true if anything ended.
    fn step(&mut self, tell: &mut dyn FnMut(C::Event<'_>)) -> bool {
        self.pull();
        let endpoints: Vec<u8> = self.pending.keys().copied().collect();
        let mut progress = false;
        for endpoint in endpoints {
            if self.isochronous == Some(endpoint) {
                if self.now < self.next_interval {
                    continue;
                }
                self.next_interval = self.now + RETRY;
            }
            if let Some(result) = self.advance(endpoint) {
                progress = true;
                let queue = self.pending.entry(endpoint).or_default();
                let (_, place) = queue.pop_front().expect("it was there");
                // After a fault an endpoint takes nothing until it is recovered.
                let kept = if result.is_err() && endpoint != 0 { 0 } else { queue.len() };
                let rest = queue.split_off(kept);
                self.end(endpoint, place, result, tell);
                for (_, place) in rest {
                    self.end(endpoint, place, Err(TransferFault::Cancelled), tell);
                }
                self.pull();
            }
        }
        progress
    }

    /// Runs both ends to `until`.
    pub fn run(&mut self, until: Nanos, tell: &mut dyn FnMut(C::Event<'_>)) {
        loop {
            let steps = (0..10_000).take_while(|_| self.step(tell)).count();
            assert!(steps < 10_000, "no end at {:?}", self.now);
            if self.now >= until {
                return;
            }
            let mut next = self.class.next_wake().min(self.device.next_change()).min(until);
            let held = self.pending.iter().any(|(endpoint, queue)| {
                (endpoint & 0x80 == 0 || self.isochronous == Some(*endpoint)) && !queue.is_empty()
            });
            if held {
                next = next.min(self.now + RETRY);
            }
            self.now = next.max(self.now + Nanos(1));
            self.device.advance(self.now);
            self.class.wake(self.now, tell);
        }
    }
}

/// Returns a device in a class that its first configuration leads to.
pub fn connect<D: UsbDevice, C: Class>(
    device: D,
    find: impl FnOnce(&Configuration<'_>) -> Option<C>,
) -> Host<D, C> {
    connect_in(device, 0, find)
}

/// Returns a device in a class that the configuration with this number leads to.
pub fn connect_in<D: UsbDevice, C: Class>(
    mut device: D,
    number: u8,
    find: impl FnOnce(&Configuration<'_>) -> Option<C>,
) -> Host<D, C> {
    let (_, bytes) = enumerate(&mut device, number);
    let speed: Speed = device.speed();
    let set = Configuration::parse_once(&bytes, speed).expect("a configuration");
    let class = find(&set).expect("the class of the device");
    Host::new(device, &bytes, class)
}
