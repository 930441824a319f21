//! Contexts: what controller and driver tell each other about a device and its endpoints.
//!
//! A context is eight words (sixteen on controllers with large contexts, of which the second half
//! is the controller's own). A device context is the slot followed by endpoints 1 to 31; an input
//! context has one more in front that says which of them to add and to drop.

/// Words of a context that have a meaning.
pub const WORDS: usize = 8;

/// A slot's state, as the controller keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotState {
    /// Not in use, or enabled and not yet addressed.
    Disabled,
    /// Addressed with the address held back.
    Default,
    Addressed,
    /// Has endpoints besides the control endpoint.
    Configured,
}

/// An endpoint's state, as the controller keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndpointState {
    Disabled,
    /// Works on its ring.
    Running,
    /// After a stall, a babble or a transaction error.
    Halted,
    /// Told to stop, or reset.
    Stopped,
    /// The endpoint's ring made no sense.
    Error,
}

/// The transfer type of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum EndpointKind {
    /// Guaranteed time, no retries, to the device.
    IsochOut,
    /// The bulk type, to the device.
    BulkOut,
    /// Guaranteed time, to the device.
    InterruptOut,
    /// A control endpoint: both directions, in stages.
    Control,
    /// Guaranteed time, no retries, to the host.
    IsochIn,
    /// The bulk type, to the host.
    BulkIn,
    /// Guaranteed time, to the host.
    InterruptIn,
}

impl EndpointKind {
    /// Returns its number in a context.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            EndpointKind::IsochOut => 1,
            EndpointKind::BulkOut => 2,
            EndpointKind::InterruptOut => 3,
            EndpointKind::Control => 4,
            EndpointKind::IsochIn => 5,
            EndpointKind::BulkIn => 6,
            EndpointKind::InterruptIn => 7,
        }
    }

    /// Decodes the number in a context; returns `None` for 0, "not valid".
    #[must_use]
    pub const fn decode(number: u32) -> Option<EndpointKind> {
        Some(match number {
            1 => EndpointKind::IsochOut,
            2 => EndpointKind::BulkOut,
            3 => EndpointKind::InterruptOut,
            4 => EndpointKind::Control,
            5 => EndpointKind::IsochIn,
            6 => EndpointKind::BulkIn,
            7 => EndpointKind::InterruptIn,
            _ => return None,
        })
    }

    /// Returns whether it has time of its own in the schedule.
    #[must_use]
    pub const fn is_periodic(self) -> bool {
        self.is_isochronous()
            || matches!(self, EndpointKind::InterruptIn | EndpointKind::InterruptOut)
    }

    /// Returns whether the endpoint transfers without handshakes.
    #[must_use]
    pub const fn is_isochronous(self) -> bool {
        matches!(self, EndpointKind::IsochIn | EndpointKind::IsochOut)
    }

    /// Returns whether the endpoint transfers to the host.
    #[must_use]
    pub const fn is_in(self) -> bool {
        matches!(self, EndpointKind::IsochIn | EndpointKind::BulkIn | EndpointKind::InterruptIn)
    }
}

/// The words of one context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words(pub [u32; WORDS]);

impl Words {
    /// Bits `low..low + width` of a word.
    #[must_use]
    pub const fn field(&self, word: usize, low: u32, width: u32) -> u32 {
        self.0[word] >> low & mask(width)
    }

    /// Changes these bits; bits of `value` beyond `width` are dropped.
    pub const fn set(&mut self, word: usize, low: u32, width: u32, value: u32) {
        let mask = mask(width);
        self.0[word] = self.0[word] & !(mask << low) | (value & mask) << low;
    }
}

const fn mask(width: u32) -> u32 {
    if width >= 32 { u32::MAX } else { (1 << width) - 1 }
}

macro_rules! fields {
    ($(
        $(#[$doc:meta])*
        $get:ident, $set:ident: $word:literal [$low:literal; $width:literal];
    )*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $get(&self) -> u32 {
                self.0.field($word, $low, $width)
            }

            $(#[$doc])*
            pub const fn $set(&mut self, value: u32) {
                self.0.set($word, $low, $width, value);
            }
        )*
    };
}

/// The slot context, which describes a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slot(pub Words);

impl Slot {
    fields! {
        /// Hub ports on the way, four bits a tier.
        route, set_route: 0 [0; 20];
        /// Speed number (1 full, 2 low, 3 high, 4 super).
        speed, set_speed: 0 [20; 4];
        /// One transaction translator per port.
        multi_tt, set_multi_tt: 0 [25; 1];
        /// The device is a hub.
        hub, set_hub: 0 [26; 1];
        entries, set_entries: 0 [27; 5];
        /// Root port, from 1.
        root_port, set_root_port: 1 [16; 8];
        /// Ports, if it is a hub.
        ports, set_ports: 1 [24; 8];
        /// Slot of the high-speed hub that translates.
        parent_slot, set_parent_slot: 2 [0; 8];
        /// Port of that hub.
        parent_port, set_parent_port: 2 [8; 8];
        /// Think time of the translator.
        think_time, set_think_time: 2 [16; 2];
        /// The interrupter that reports events without a transfer block.
        interrupter, set_interrupter: 2 [22; 10];
        /// Address on the bus.
        address, set_address: 3 [0; 8];
        /// State as a number.
        state_number, set_state_number: 3 [27; 5];
    }

    /// Returns its state; `None` if the number is reserved.
    #[must_use]
    pub const fn state(&self) -> Option<SlotState> {
        Some(match self.state_number() {
            0 => SlotState::Disabled,
            1 => SlotState::Default,
            2 => SlotState::Addressed,
            3 => SlotState::Configured,
            _ => return None,
        })
    }
}

/// The endpoint context, which describes an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointContext(pub Words);

impl EndpointContext {
    fields! {
        /// State as a number.
        state_number, set_state_number: 0 [0; 3];
        /// Bursts per service interval, less one (SuperSpeed isochronous).
        mult, set_mult: 0 [8; 2];
        /// Streams; 0 is none.
        streams, set_streams: 0 [10; 5];
        /// The service interval is 2^n microframes.
        interval, set_interval: 0 [16; 8];
        /// Attempts before a transaction error; 0 for isochronous.
        attempts, set_attempts: 1 [1; 2];
        /// Kind as a number.
        kind_number, set_kind_number: 1 [3; 3];
        /// Packets per burst, less one.
        burst, set_burst: 1 [8; 8];
        packet, set_packet: 1 [16; 16];
        /// Expected bytes per block.
        average, set_average: 4 [0; 16];
        /// Most bytes per service interval.
        payload, set_payload: 4 [16; 16];
    }

    /// Returns its state; `None` if the number is reserved.
    #[must_use]
    pub const fn state(&self) -> Option<EndpointState> {
        Some(match self.state_number() {
            0 => EndpointState::Disabled,
            1 => EndpointState::Running,
            2 => EndpointState::Halted,
            3 => EndpointState::Stopped,
            4 => EndpointState::Error,
            _ => return None,
        })
    }

    /// Returns its kind; `None` if not valid.
    #[must_use]
    pub const fn kind(&self) -> Option<EndpointKind> {
        EndpointKind::decode(self.kind_number())
    }

    /// Returns where the ring goes on, and the cycle state there.
    #[must_use]
    pub const fn dequeue(&self) -> (u64, bool) {
        let pointer = (self.0.0[3] as u64) << 32 | self.0.0[2] as u64;
        (pointer & !0xf, pointer & 1 != 0)
    }

    /// Sets where the ring goes on, and the cycle state there.
    pub const fn set_dequeue(&mut self, pointer: u64, cycle: bool) {
        let pointer = pointer & !0xf | cycle as u64;
        self.0.0[2] = pointer as u32;
        self.0.0[3] = (pointer >> 32) as u32;
    }
}

/// The contexts that an input context adds and drops; bit n is context n.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Control(pub Words);

impl Control {
    /// Contexts to drop and to add.
    #[must_use]
    pub const fn new(drop: u32, add: u32) -> Control {
        Control(Words([drop, add, 0, 0, 0, 0, 0, 0]))
    }

    /// Returns the contexts to drop as bits.
    #[must_use]
    pub const fn dropped(&self) -> u32 {
        self.0.0[0]
    }

    /// Returns the contexts to add as bits.
    #[must_use]
    pub const fn added(&self) -> u32 {
        self.0.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_their_neighbours() {
        let mut e = EndpointContext::default();
        e.set_packet(1024);
        e.set_burst(15);
        e.set_kind_number(EndpointKind::BulkIn.number());
        e.set_attempts(3);
        assert_eq!(e.0.0[1], 1024 << 16 | 15 << 8 | 6 << 3 | 3 << 1);
        e.set_burst(0x1ff);
        assert_eq!((e.burst(), e.packet(), e.kind()), (0xff, 1024, Some(EndpointKind::BulkIn)));
        e.set_dequeue(0x12_3456_7890, true);
        assert_eq!(e.dequeue(), (0x12_3456_7890, true));
        let mut s = Slot::default();
        s.set_entries(31);
        s.set_route(0xfffff);
        assert_eq!((s.0.0[0], s.state()), (31 << 27 | 0xfffff, Some(SlotState::Disabled)));
    }

    #[test]
    fn kinds_have_their_numbers() {
        for number in 1..8 {
            let kind = EndpointKind::decode(number).unwrap();
            assert_eq!(kind.number(), number);
            assert_eq!(kind.is_in(), number > 4);
        }
        assert_eq!(EndpointKind::decode(0), None);
    }
}
