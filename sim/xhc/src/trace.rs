//! The packets on the buses, for drawings.

use diapason_bus::Picos;
use diapason_usb::context::EndpointKind;

/// How a packet ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketOutcome {
    Moved,
    Nak,
    /// The endpoint is halted.
    Stall,
    /// No answer, or a damaged one.
    Error,
    /// More than was asked.
    Babble,
}

/// A packet on a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusPacket {
    pub start: Picos,
    pub end: Picos,
    pub bus: usize,
    /// The slot of the device.
    pub slot: u8,
    /// Context index of the endpoint.
    pub endpoint: u8,
    pub kind: EndpointKind,
    pub bytes: u32,
    pub outcome: PacketOutcome,
}

/// Counts of a driver's misdeeds and of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceCounts {
    /// Register writes while the controller was not ready.
    pub not_ready_writes: u64,
    /// Doorbells that meant nothing: halted, or no such slot or endpoint.
    pub idle_doorbells: u64,
    /// Events for which there was no room for too long.
    pub events_lost: u64,
    pub interrupts: u64,
    /// Packets on all buses.
    pub packets: u64,
    /// Blocks of transfers whose memory was lent, and so watched.
    pub lent: u64,
}
