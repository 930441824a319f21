//! A device model as the host's side of one usbredir connection.
//!
//! Time is explicit. Requests act at the time at which they are handed in; between two such times
//! the device is advanced through every moment at which it changes by itself, and transfers that
//! wait are tried again there, those of one endpoint in the order in which they came.

mod journal;
mod layout;
mod requests;
mod stream;
mod transfer;

pub use journal::{Journal, PacketDirection, Spoken};

use crate::protocol::{
    self, AddressedPacket, Data, Malformed, PacketDecoder, PacketStatus, RedirPacket, TransferType,
};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_usb::descriptor::DescriptorRefusal;
use diapason_usb::setup::IN;
use layout::{Endpoint, Layout};
use std::collections::{BTreeMap, VecDeque};
use stream::Stream;
use transfer::Transfer;

/// Why a connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The guest's side sent what is no packet.
    Malformed(Malformed),
    /// The device does not give its descriptor of this kind.
    NoDescriptor(u8),
    /// The device describes itself in a way no guest would take.
    Descriptor(DescriptorRefusal),
    /// The guest's side refused the device.
    Rejected,
}

impl From<Malformed> for Trouble {
    fn from(malformed: Malformed) -> Trouble {
        Trouble::Malformed(malformed)
    }
}

impl From<DescriptorRefusal> for Trouble {
    fn from(refusal: DescriptorRefusal) -> Trouble {
        Trouble::Descriptor(refusal)
    }
}

impl core::fmt::Display for Trouble {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Trouble::Malformed(malformed) => malformed.fmt(f),
            Trouble::NoDescriptor(kind) => write!(f, "the device has no descriptor of kind {kind}"),
            Trouble::Descriptor(refusal) => write!(f, "the device's {refusal}"),
            Trouble::Rejected => write!(f, "the emulator refused the device"),
        }
    }
}

impl std::error::Error for Trouble {}

/// The transfers of each endpoint, by its address.
type Pipes = BTreeMap<u8, (Endpoint, VecDeque<Transfer>)>;

/// A device and its guest.
pub struct Redirected<D: ?Sized> {
    now: Nanos,
    layout: Layout,
    decoder: PacketDecoder,
    out: Vec<u8>,
    /// Bytes said so far.
    said: usize,
    journal: Journal,
    spoken: Option<Vec<Spoken>>,
    greeted: bool,
    plugged: bool,
    /// True if the device was there at the last look.
    is_there: bool,
    /// Transfers under way by endpoint, oldest first.
    pipes: Pipes,
    /// Endpoints with a failed transfer, and the bytes that are said when the guest knows of it.
    failed: BTreeMap<u8, usize>,
    streams: BTreeMap<u8, Stream>,
    device: Box<D>,
}

impl<D: UsbDevice + ?Sized> Redirected<D> {
    /// Returns a device that is plugged in as soon as the guest's side says hello.
    ///
    /// # Errors
    /// If the device does not describe itself.
    pub fn new(mut device: Box<D>) -> Result<Redirected<D>, Trouble> {
        device.reset(Nanos::ZERO);
        let layout = Layout::of(&mut *device, Nanos::ZERO)?;
        let mut redirected = Redirected {
            now: Nanos::ZERO,
            layout,
            decoder: PacketDecoder::default(),
            out: Vec::new(),
            said: 0,
            journal: Journal::default(),
            spoken: None,
            greeted: false,
            plugged: true,
            is_there: true,
            pipes: BTreeMap::new(),
            failed: BTreeMap::new(),
            streams: BTreeMap::new(),
            device,
        };
        redirected.say(0, RedirPacket::Hello(protocol::CAPABILITIES));
        Ok(redirected)
    }

    /// Returns the device behind the connection.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the device, to be changed from outside; not its place in time.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the journal so far.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Keeps every message from now on, or no longer.
    pub fn record(&mut self, on: bool) {
        self.spoken = on.then(Vec::new);
    }

    /// The messages kept since the last call.
    pub fn take_record(&mut self) -> Vec<Spoken> {
        self.spoken.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn keep(&mut self, way: PacketDirection, message: &AddressedPacket) {
        if let Some(spoken) = &mut self.spoken {
            spoken.push(Spoken { time: self.now, way, message: message.clone() });
        }
    }

    /// Returns whether the guest's side has said hello.
    #[must_use]
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Returns whether a packet has begun to arrive and is not whole.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.decoder.is_partial()
    }

    /// Bytes for the guest's side, until the sender takes them.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Bytes from the guest's side.
    ///
    /// # Errors
    /// If the guest's side does not keep the protocol, or does not want the device.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.decoder.push(bytes);
        while let Some(message) = self.decoder.decode()? {
            let message = message.as_request();
            let mut whole = Vec::new();
            protocol::encode(&message, &mut whole);
            self.journal.note(self.now, PacketDirection::FromGuest, &whole);
            self.keep(PacketDirection::FromGuest, &message);
            self.handle(message)?;
        }
        Ok(())
    }

    /// Lets time pass until `to`.
    pub fn advance(&mut self, to: Nanos) {
        while let Some(at) = self.next_moment(to) {
            self.arrive(at);
        }
        self.arrive(to);
    }

    /// Takes the device out; the guest's transfers end.
    pub fn unplug(&mut self) {
        if std::mem::take(&mut self.plugged) && self.greeted {
            self.drop_transfers();
            self.say(0, RedirPacket::Disconnect);
        }
    }

    /// Puts it in again, as after power-up.
    pub fn replug(&mut self) {
        if !std::mem::replace(&mut self.plugged, true) {
            self.device.reset(self.now);
            self.layout.configure(0);
            self.introduce();
        }
    }

    /// Returns the next moment before `to` at which something happens.
    #[must_use]
    pub fn next_moment(&self, to: Nanos) -> Option<Nanos> {
        let streams = self.streams.values().map(Stream::due);
        let all = streams.chain([self.device.next_change()]);
        all.filter(|next| *next > self.now && *next < to).min()
    }

    fn arrive(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        self.device.advance(self.now);
        self.look();
        self.serve_streams();
        self.go_on();
    }

    /// Notices that the device has left its port by itself, or has come back.
    fn look(&mut self) {
        let is_there = self.device.is_there();
        match (std::mem::replace(&mut self.is_there, is_there), is_there) {
            (true, false) => self.unplug(),
            (false, true) => self.replug(),
            _ => {}
        }
    }

    fn serve_streams(&mut self) {
        let mut news = Vec::new();
        for stream in self.streams.values_mut() {
            while stream.due() <= self.now {
                let packet = stream.serve(&mut *self.device, self.now);
                news.extend(packet.map(|packet| (stream.next_number(), packet)));
            }
        }
        for (number, packet) in news {
            self.say(number, packet);
        }
    }

    /// Tries all transfers until each endpoint's first has to wait. One that ends may make room
    /// for another.
    fn go_on(&mut self) {
        let mut ended = true;
        while std::mem::take(&mut ended) {
            let waiting: Vec<u8> = self.pipes.keys().copied().collect();
            for endpoint in waiting {
                ended |= self.go_on_at(endpoint);
            }
        }
    }

    /// Tries the transfers of an endpoint until one has to wait. Returns whether any ended.
    fn go_on_at(&mut self, address: u8) -> bool {
        let mut ended = false;
        while let Some((endpoint, queue)) = self.pipes.get_mut(&address) {
            let Some(first) = queue.front_mut() else { break };
            let Some(status) = first.go_on(&mut *self.device, self.now, *endpoint) else {
                return ended;
            };
            if status != PacketStatus::Success {
                queue.iter_mut().skip(1).for_each(Transfer::hold);
            }
            if let Some(transfer) = queue.pop_front() {
                self.finish(address, transfer, status);
            }
            if status != PacketStatus::Success {
                self.failed.insert(address, self.said);
            }
            ended = true;
        }
        self.pipes.remove(&address);
        ended
    }

    /// Returns whether the guest does not know yet that a transfer of this endpoint failed.
    fn has_failed_unheard(&self, address: u8) -> bool {
        let taken = self.said - self.out.len();
        self.failed.get(&address).is_some_and(|heard| taken < *heard)
    }

    /// Tells the guest how a transfer ended.
    fn finish(&mut self, endpoint: u8, transfer: Transfer, status: PacketStatus) {
        let to_host = endpoint & IN != 0;
        let data = Data {
            endpoint,
            status,
            length: transfer.done(to_host) as u32,
            stream: transfer.stream,
            bytes: if to_host { transfer.bytes } else { Vec::new() },
        };
        let answer = match transfer.kind {
            TransferType::Interrupt => RedirPacket::Interrupt(Data { stream: 0, ..data }),
            _ => RedirPacket::Bulk(data),
        };
        self.say(transfer.id, answer);
    }

    /// Ends everything that is under way, as cancelled and without data.
    fn drop_transfers(&mut self) {
        self.streams.clear();
        self.failed.clear();
        let all = std::mem::take(&mut self.pipes);
        self.all_cancelled(all);
    }

    fn all_cancelled(&mut self, pipes: Pipes) {
        for (endpoint, (_, queue)) in pipes {
            for transfer in queue {
                self.cancelled(endpoint, &transfer);
            }
        }
    }

    fn cancelled(&mut self, endpoint: u8, transfer: &Transfer) {
        self.finish(endpoint, transfer.without_data(), PacketStatus::Cancelled);
    }

    fn introduce(&mut self) {
        if self.plugged && self.greeted {
            self.describe();
            self.say(0, RedirPacket::Connect(self.layout.connect()));
        }
    }

    fn describe(&mut self) {
        self.say(0, RedirPacket::Endpoints(self.layout.info()));
        self.say(0, RedirPacket::Interfaces(self.layout.interfaces()));
    }

    fn say(&mut self, id: u64, packet: RedirPacket) {
        let start = self.out.len();
        let message = AddressedPacket { id, packet };
        protocol::encode(&message, &mut self.out);
        self.said += self.out.len() - start;
        self.journal.note(self.now, PacketDirection::ToGuest, &self.out[start..]);
        self.keep(PacketDirection::ToGuest, &message);
    }
}
