//! The eight bytes that begin a control transfer.

/// Direction bit of `bmRequestType` and of endpoint addresses: device to host.
pub const IN: u8 = 0x80;

/// The standard requests (`bRequest`).
pub mod request {
    /// Two bytes of status.
    pub const GET_STATUS: u8 = 0;
    /// Switch a feature off.
    pub const CLEAR_FEATURE: u8 = 1;
    /// Switch a feature on.
    pub const SET_FEATURE: u8 = 3;
    /// Never seen by a device model: the controller does it.
    pub const SET_ADDRESS: u8 = 5;
    /// A descriptor: type and index in `value`.
    pub const GET_DESCRIPTOR: u8 = 6;
    pub const GET_CONFIGURATION: u8 = 8;
    /// Choose a configuration; 0 is none.
    pub const SET_CONFIGURATION: u8 = 9;
    /// The alternate setting of an interface.
    pub const GET_INTERFACE: u8 = 10;
    /// Choose an alternate setting.
    pub const SET_INTERFACE: u8 = 11;
}

/// Descriptor types, the high byte of `value` in `GET_DESCRIPTOR`.
pub mod descriptor_type {
    pub const DEVICE: u8 = 1;
    /// A configuration with all it contains.
    pub const CONFIGURATION: u8 = 2;
    pub const STRING: u8 = 3;
    /// Part of a configuration.
    pub const INTERFACE: u8 = 4;
    /// Part of an interface.
    pub const ENDPOINT: u8 = 5;
    /// The description of a high-speed device at full speed.
    pub const DEVICE_QUALIFIER: u8 = 6;
    /// A configuration as it would be at the other speed.
    pub const OTHER_SPEED_CONFIGURATION: u8 = 7;
    /// Interfaces that belong together.
    pub const INTERFACE_ASSOCIATION: u8 = 11;
    /// The further capabilities of the device.
    pub const BOS: u8 = 15;
    /// The class descriptor of a human interface device.
    pub const HID: u8 = 0x21;
    pub const HID_REPORT: u8 = 0x22;
    pub const CLASS_INTERFACE: u8 = 0x24;
    pub const CLASS_ENDPOINT: u8 = 0x25;
    /// A USB 2 hub.
    pub const HUB: u8 = 0x29;
    pub const SUPERSPEED_HUB: u8 = 0x2a;
    /// Follows each endpoint of a SuperSpeed device.
    pub const SUPERSPEED_COMPANION: u8 = 0x30;
}

/// The feature that a halted endpoint has.
pub const ENDPOINT_HALT: u16 = 0;

/// A request to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// Direction, kind (standard, class, vendor) and recipient.
    pub kind: u8,
    pub request: u8,
    pub value: u16,
    /// The interface or endpoint, or a second parameter.
    pub index: u16,
    /// Bytes of the data stage.
    pub length: u16,
}

impl Setup {
    /// Decodes the eight bytes of the wire.
    #[must_use]
    pub const fn decode(b: [u8; 8]) -> Setup {
        Setup {
            kind: b[0],
            request: b[1],
            value: u16::from_le_bytes([b[2], b[3]]),
            index: u16::from_le_bytes([b[4], b[5]]),
            length: u16::from_le_bytes([b[6], b[7]]),
        }
    }

    /// Encodes the eight bytes of the wire.
    #[must_use]
    pub const fn encode(self) -> [u8; 8] {
        let ([v0, v1], [i0, i1], [l0, l1]) =
            (self.value.to_le_bytes(), self.index.to_le_bytes(), self.length.to_le_bytes());
        [self.kind, self.request, v0, v1, i0, i1, l0, l1]
    }

    /// Returns whether the data stage goes to the host.
    #[must_use]
    pub const fn is_in(self) -> bool {
        self.kind & IN != 0
    }

    /// Returns whether this reads a text, or the list of its languages.
    #[must_use]
    pub const fn is_of_text(self) -> bool {
        let asks = self.kind == IN && self.request == request::GET_DESCRIPTOR;
        asks && self.value >> 8 == descriptor_type::STRING as u16
    }

    /// `GET_DESCRIPTOR` of the device.
    #[must_use]
    pub const fn get_descriptor(kind: u8, index: u8, language: u16, length: u16) -> Setup {
        Setup {
            kind: IN,
            request: request::GET_DESCRIPTOR,
            value: (kind as u16) << 8 | index as u16,
            index: language,
            length,
        }
    }

    /// Returns a `SET_CONFIGURATION` request.
    #[must_use]
    pub const fn set_configuration(value: u8) -> Setup {
        Setup {
            kind: 0,
            request: request::SET_CONFIGURATION,
            value: value as u16,
            index: 0,
            length: 0,
        }
    }

    /// Returns a `SET_INTERFACE` request.
    #[must_use]
    pub const fn set_interface(interface: u8, alternate: u8) -> Setup {
        Setup {
            kind: 1,
            request: request::SET_INTERFACE,
            value: alternate as u16,
            index: interface as u16,
            length: 0,
        }
    }

    /// `CLEAR_FEATURE(ENDPOINT_HALT)` of the endpoint with this address.
    #[must_use]
    pub const fn clear_halt(endpoint: u8) -> Setup {
        Setup {
            kind: 2,
            request: request::CLEAR_FEATURE,
            value: ENDPOINT_HALT,
            index: endpoint as u16,
            length: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_there_and_back() {
        let setup = Setup::get_descriptor(descriptor_type::CONFIGURATION, 1, 0x409, 255);
        assert_eq!(setup.encode(), [0x80, 6, 1, 2, 9, 4, 255, 0]);
        assert_eq!(Setup::decode(setup.encode()), setup);
        assert!(setup.is_in() && !Setup::clear_halt(0x81).is_in());
    }
}
