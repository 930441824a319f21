//! usbredir on the wire: packets and their framing, as the guest (QEMU) and the host (us) send
//! them.
//!
//! Both sides must have the capabilities of [`CAPABILITIES_NEEDED`]; then every field has one form.
//! QEMU has them, and would itself refuse a host without them at its xHCI controller.

mod decode;
mod encode;
mod fields;
mod info;

pub use decode::PacketDecoder;
pub use encode::encode;
pub use fields::Malformed;
pub use info::{Connect, EndpointInfo, Interfaces, SLOTS, TransferType, slot};

use diapason_usb::Setup;

/// The capabilities that we announce: device version, filter, acknowledged disconnect, packet
/// sizes, long identifiers, long bulk transfers.
pub const CAPABILITIES: u32 = 0x7e;
/// The capabilities that the other side must announce: the same, but for the filter.
pub const CAPABILITIES_NEEDED: u32 = 0x7a;
/// Most bytes of one packet; more is taken for damage.
pub const LENGTH_MAX: usize = 16 << 20;

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PacketStatus {
    Success = 0,
    /// Called back before it was done.
    Cancelled = 1,
    /// The request makes no sense.
    Invalid = 2,
    /// No answer, or a damaged one.
    Error = 3,
    Stall = 4,
    Timeout = 5,
    /// The device sent more than was asked.
    Babble = 6,
}

impl PacketStatus {
    /// From the wire; what is unknown is an error.
    #[must_use]
    pub const fn decode(number: u8) -> PacketStatus {
        match number {
            0 => PacketStatus::Success,
            1 => PacketStatus::Cancelled,
            2 => PacketStatus::Invalid,
            4 => PacketStatus::Stall,
            5 => PacketStatus::Timeout,
            6 => PacketStatus::Babble,
            _ => PacketStatus::Error,
        }
    }
}

/// A transfer of bulk, interrupt or isochronous data, or the answer to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    pub endpoint: u8,
    /// The status of the transfer; of no meaning in a request.
    pub status: PacketStatus,
    /// Bytes wanted, given or taken.
    pub length: u32,
    /// The stream of a bulk endpoint; 0.
    pub stream: u32,
    /// The bytes, where they travel this way.
    pub bytes: Vec<u8>,
}

/// The content of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RedirPacket {
    /// The first packet in both directions: capabilities.
    Hello(u32),
    /// A device is there.
    Connect(Connect),
    Disconnect,
    Reset,
    /// The interfaces of the active configuration.
    Interfaces(Interfaces),
    /// The endpoints of the active configuration and settings.
    Endpoints(Box<[EndpointInfo; SLOTS]>),
    SetConfiguration(u8),
    /// Asks for the number of the configuration.
    GetConfiguration,
    /// The answer to both.
    ConfigurationStatus(PacketStatus, u8),
    /// Choose an alternate setting: interface, setting.
    SetAlternate(u8, u8),
    /// Asks for the alternate setting of this interface.
    GetAlternate(u8),
    /// The answer to both.
    AlternateStatus(PacketStatus, u8, u8),
    /// Begin to stream: endpoint, packets per block, blocks.
    StartIsochronous(u8, u8, u8),
    StopIsochronous(u8),
    /// The answer to both.
    IsochronousStatus(PacketStatus, u8),
    /// Begin to poll an interrupt endpoint.
    StartInterrupt(u8),
    StopInterrupt(u8),
    /// The answer to both.
    InterruptStatus(PacketStatus, u8),
    /// Call back the transfer with the identifier of this packet.
    Cancel,
    /// The guest does not want the device.
    FilterReject,
    /// The devices that the guest wants.
    Filter(Vec<u8>),
    /// The guest has seen that the device is gone.
    DisconnectAcknowledged,
    /// A control transfer on the endpoint; `Setup::length` counts the answer's bytes in an answer.
    Control(u8, PacketStatus, Setup, Vec<u8>),
    Bulk(Data),
    Isochronous(Data),
    Interrupt(Data),
}

/// A packet and what it belongs to: the guest chooses, the answer says the same; 0 if unasked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressedPacket {
    pub id: u64,
    pub packet: RedirPacket,
}

impl AddressedPacket {
    /// Clears what a request does not say: QEMU sends there whatever was in its memory.
    #[must_use]
    pub fn as_request(mut self) -> AddressedPacket {
        match &mut self.packet {
            RedirPacket::Control(_, status, _, _)
            | RedirPacket::Bulk(Data { status, .. })
            | RedirPacket::Isochronous(Data { status, .. })
            | RedirPacket::Interrupt(Data { status, .. }) => *status = PacketStatus::Success,
            _ => {}
        }
        self
    }
}

/// Packet numbers on the wire.
mod number {
    pub const HELLO: u32 = 0;
    pub const CONNECT: u32 = 1;
    pub const DISCONNECT: u32 = 2;
    pub const RESET: u32 = 3;
    pub const INTERFACES: u32 = 4;
    pub const ENDPOINTS: u32 = 5;
    pub const SET_CONFIGURATION: u32 = 6;
    pub const GET_CONFIGURATION: u32 = 7;
    pub const CONFIGURATION_STATUS: u32 = 8;
    pub const SET_ALTERNATE: u32 = 9;
    pub const GET_ALTERNATE: u32 = 10;
    pub const ALTERNATE_STATUS: u32 = 11;
    pub const START_ISOCHRONOUS: u32 = 12;
    pub const STOP_ISOCHRONOUS: u32 = 13;
    pub const ISOCHRONOUS_STATUS: u32 = 14;
    pub const START_INTERRUPT: u32 = 15;
    pub const STOP_INTERRUPT: u32 = 16;
    pub const INTERRUPT_STATUS: u32 = 17;
    pub const CANCEL: u32 = 21;
    pub const FILTER_REJECT: u32 = 22;
    pub const FILTER: u32 = 23;
    pub const DISCONNECT_ACKNOWLEDGED: u32 = 24;
    pub const CONTROL: u32 = 100;
    pub const BULK: u32 = 101;
    pub const ISOCHRONOUS: u32 = 102;
    pub const INTERRUPT: u32 = 103;
}

/// Bytes of the text in a hello.
const VERSION_BYTES: usize = 64;
/// Bytes of a header without and with a long identifier.
const HEADER_HELLO: usize = 12;
const HEADER: usize = 16;
