//! Transfer request blocks: the sixteen-byte words of every ring of an xHCI controller.

/// Most bytes one block can describe; its buffer must not cross a multiple of this.
pub const BUFFER_MAX: u32 = 0x1_0000;
/// Bytes of a block.
pub const BYTES: usize = 16;

/// Bits of the last word.
pub mod bit {
    /// Owned by the consumer whose cycle state equals it.
    pub const CYCLE: u32 = 1;
    /// Evaluate the next block before saving state; on a Link block: toggle the cycle.
    pub const NEXT: u32 = 1 << 1;
    /// Link: both sides toggle their cycle state here.
    pub const TOGGLE: u32 = 1 << 1;
    /// Report a short packet.
    pub const SHORT: u32 = 1 << 2;
    /// Event block: the parameter is a cookie of an Event Data block.
    pub const EVENT_DATA: u32 = 1 << 2;
    /// The next block belongs to the same transfer.
    pub const CHAIN: u32 = 1 << 4;
    pub const COMPLETION: u32 = 1 << 5;
    /// The parameter is the data.
    pub const IMMEDIATE: u32 = 1 << 6;
    /// Event without an interrupt.
    pub const BLOCK_INTERRUPT: u32 = 1 << 9;
    /// Address Device: do not send `SET_ADDRESS`.
    pub const BLOCK_ADDRESS: u32 = 1 << 9;
    /// Configure Endpoint: back to Addressed.
    pub const DECONFIGURE: u32 = 1 << 9;
    /// Reset Endpoint: keep the transfer, try again.
    pub const PRESERVE: u32 = 1 << 9;
    /// Data and Status stage: device to host.
    pub const IN: u32 = 1 << 16;
    /// Isochronous: as soon as possible.
    pub const ASAP: u32 = 1 << 31;
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$item:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$item])* $variant = $number,)*
        }

        impl $name {
            /// Decodes this number; returns `None` if it is reserved.
            #[must_use]
            pub const fn decode(number: u8) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// The kind of a block.
    Kind {
        /// Data of a bulk, interrupt or isochronous transfer.
        Normal = 1,
        /// First stage of a control transfer.
        Setup = 2,
        /// Second stage, if there is data.
        Data = 3,
        Status = 4,
        /// First block of an isochronous transfer.
        Isoch = 5,
        /// Where the ring goes on.
        Link = 6,
        /// A cookie to report.
        EventData = 7,
        /// Nothing, on a transfer ring.
        NoOp = 8,
        /// A slot for a new device.
        EnableSlot = 9,
        /// The device is gone.
        DisableSlot = 10,
        /// Give the device its address.
        AddressDevice = 11,
        /// Add and drop endpoints.
        ConfigureEndpoint = 12,
        /// Change a context in place.
        EvaluateContext = 13,
        ResetEndpoint = 14,
        StopEndpoint = 15,
        /// Where the ring goes on after a stop.
        SetDequeue = 16,
        /// The device was reset.
        ResetDevice = 17,
        /// Percent of periodic bandwidth left, by port.
        GetPortBandwidth = 21,
        /// Nothing, on the command ring.
        NoOpCommand = 23,
        TransferEvent = 32,
        CommandCompletion = 33,
        PortStatusChange = 34,
        /// The controller has something to say.
        HostController = 37,
        /// The microframe counter wrapped.
        MicroframeWrap = 39,
    }
}

numbered! {
    Completion {
        Invalid = 0,
        Success = 1,
        /// Memory could not keep up.
        DataBuffer = 2,
        /// The device sent more than was asked.
        Babble = 3,
        /// No answer, or a damaged one, three times.
        Transaction = 4,
        /// The block makes no sense.
        Trb = 5,
        Stall = 6,
        /// Out of internal resources.
        Resource = 7,
        /// The schedule has no room.
        Bandwidth = 8,
        NoSlots = 9,
        /// The slot is not enabled.
        SlotNotEnabled = 11,
        /// The endpoint is not enabled.
        EndpointNotEnabled = 12,
        /// Less than was asked.
        ShortPacket = 13,
        /// Nothing to send at a service interval.
        RingUnderrun = 14,
        /// Nowhere to receive at a service interval.
        RingOverrun = 15,
        /// A context makes no sense.
        Parameter = 17,
        /// The transfer is larger than what was reserved.
        BandwidthOverrun = 18,
        /// Not in this state.
        ContextState = 19,
        /// No answer to a ping.
        NoPing = 20,
        /// No room for events.
        EventRingFull = 21,
        /// The device cannot be addressed.
        Incompatible = 22,
        /// A service interval passed unserved.
        MissedService = 23,
        /// The command ring stopped.
        CommandRingStopped = 24,
        /// The command was aborted.
        CommandAborted = 25,
        /// Stopped within the transfer.
        Stopped = 26,
        /// Stopped, and the length is unknown.
        StoppedLengthInvalid = 27,
        /// Stopped after a short packet.
        StoppedShortPacket = 28,
        /// The device sent more than the isochronous buffer holds.
        IsochBufferOverrun = 31,
        /// An event was lost.
        EventLost = 32,
        /// The bus behind a hub has no room.
        SecondaryBandwidth = 35,
        /// A split transaction failed.
        SplitTransaction = 36,
    }
}

/// A transfer request block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trb {
    /// Address, immediate data or cookie.
    pub parameter: u64,
    /// Length, interrupter, completion code.
    pub status: u32,
    /// Cycle, flags, kind, endpoint, slot.
    pub control: u32,
}

impl Trb {
    /// Returns a block of this kind, not yet owned by anybody.
    #[must_use]
    pub const fn new(kind: Kind, parameter: u64, status: u32, flags: u32) -> Trb {
        Trb { parameter, status, control: (kind as u32) << 10 | flags }
    }

    /// Reads a block from four words of memory.
    #[must_use]
    pub fn from_words(w: [u32; 4]) -> Trb {
        Trb { parameter: u64::from(w[1]) << 32 | u64::from(w[0]), status: w[2], control: w[3] }
    }

    /// Returns the words for memory; the last is written last.
    #[must_use]
    pub const fn words(self) -> [u32; 4] {
        [self.parameter as u32, (self.parameter >> 32) as u32, self.status, self.control]
    }

    /// Returns the kind of the block; `None` if reserved.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        Kind::decode((self.control >> 10 & 0x3f) as u8)
    }

    /// Returns the cycle bit.
    #[must_use]
    pub const fn cycle(self) -> bool {
        self.control & bit::CYCLE != 0
    }

    /// Returns the block with this cycle bit.
    #[must_use]
    pub const fn with_cycle(self, cycle: bool) -> Trb {
        Trb { control: self.control & !bit::CYCLE | cycle as u32, ..self }
    }

    /// Returns whether this flag is set.
    #[must_use]
    pub const fn has(self, flag: u32) -> bool {
        self.control & flag != 0
    }

    /// Bytes of a transfer block.
    #[must_use]
    pub const fn length(self) -> u32 {
        self.status & 0x1_ffff
    }

    /// Packets that remain after this block, as the driver says.
    #[must_use]
    pub const fn packets_left(self) -> u32 {
        self.status >> 17 & 0x1f
    }

    /// Returns the interrupter that reports it.
    #[must_use]
    pub const fn interrupter(self) -> u16 {
        (self.status >> 22) as u16
    }

    /// The slot a command or an event is about.
    #[must_use]
    pub const fn slot(self) -> u8 {
        (self.control >> 24) as u8
    }

    /// The endpoint (device context index) a command or an event is about.
    #[must_use]
    pub const fn endpoint(self) -> u8 {
        (self.control >> 16 & 0x1f) as u8
    }

    /// Returns how it ended, in an event; `None` if the number is reserved.
    #[must_use]
    pub const fn completion(self) -> Option<Completion> {
        Completion::decode((self.status >> 24) as u8)
    }

    /// Bytes not transferred, in a transfer event.
    #[must_use]
    pub const fn residual(self) -> u32 {
        self.status & 0xff_ffff
    }

    /// Returns the status word of a transfer block.
    #[must_use]
    pub const fn transfer_status(length: u32, packets_left: u32, interrupter: u16) -> u32 {
        length & 0x1_ffff | (packets_left & 0x1f) << 17 | (interrupter as u32) << 22
    }

    /// Returns the status word of an event.
    #[must_use]
    pub const fn event_status(completion: Completion, rest: u32) -> u32 {
        (completion as u32) << 24 | rest & 0xff_ffff
    }

    /// Returns the bits that name a slot and an endpoint.
    #[must_use]
    pub const fn place(slot: u8, endpoint: u8) -> u32 {
        (slot as u32) << 24 | (endpoint as u32 & 0x1f) << 16
    }
}

/// Device context index of an endpoint address: 1 is the control endpoint, then OUT and IN
/// alternate.
#[must_use]
pub const fn context_index(address: u8) -> u8 {
    let number = address & 0xf;
    if number == 0 { 1 } else { 2 * number + (address >> 7) }
}

/// Returns the endpoint address at a device context index (0 for the control endpoint).
#[must_use]
pub const fn endpoint_address(index: u8) -> u8 {
    if index <= 1 { 0 } else { (index / 2) | ((index & 1) << 7) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_controller_looks() {
        let status = Trb::transfer_status(512, 3, 5);
        let flags = bit::COMPLETION | bit::SHORT;
        let trb = Trb::new(Kind::Normal, 0x1_2345_6780, status, flags).with_cycle(true);
        assert_eq!(trb.words(), [0x2345_6780, 1, 5 << 22 | 3 << 17 | 512, 0x425]);
        assert_eq!(Trb::from_words(trb.words()), trb);
        assert_eq!((trb.length(), trb.packets_left(), trb.interrupter()), (512, 3, 5));
        let event = Trb::new(
            Kind::TransferEvent,
            0,
            Trb::event_status(Completion::ShortPacket, 0xdd),
            Trb::place(7, 5),
        );
        assert_eq!(event.completion(), Some(Completion::ShortPacket));
        assert_eq!((event.slot(), event.endpoint(), event.residual()), (7, 5, 0xdd));
        assert_eq!(event.kind(), Some(Kind::TransferEvent));
    }

    #[test]
    fn endpoints_have_one_index_each() {
        for index in 2..32 {
            assert_eq!(context_index(endpoint_address(index)), index);
        }
        assert_eq!((context_index(0), context_index(0x80), context_index(0x82)), (1, 1, 5));
    }
}
