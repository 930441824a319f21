//! Devices in the archive: where each is, and what interrupts it has.

use super::codec::{Reader, Writer};
use super::{ENTRY_BYTES, NONE};
use crate::layout;

/// A device: registers, an interrupt, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceRecord {
    pub key: u64,
    /// The processes that may map it and wait for its interrupt, one bit each.
    pub allowed: u64,
    pub location: Location,
    pub pages: u32,
    /// The device's interrupt: a line of the I/O APIC, from [`MESSAGES`] on a message, or [`NONE`].
    /// No two devices have the same.
    pub irq: u16,
    pub level: bool,
    /// Shortest time between two of its interrupts, in ns; 0: nobody promised one.
    pub interval: u64,
}

/// Interrupt numbers from here on are messages (MSI-X), not lines.
pub const MESSAGES: u16 = 0x100;
/// Most doorbells of all cores together: pending ones are the bits of a word.
pub const BELLS_MAX: u16 = 64;
/// Most interrupts of all devices together: what the kernel has vectors for.
pub const INTERRUPTS_MAX: usize = 14;

/// Where a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// The device's registers begin at this physical address.
    Address(u64),
    /// The device's registers are where a PCI function says.
    Pci(PciFunction),
    /// The device has no registers: it is one of the messages of an earlier device, a PCI function.
    Message {
        /// That device's place in the table.
        of: u16,
        /// The message's number in the function's MSI-X table.
        vector: u16,
    },
    /// It is nowhere: programs ring it. Only where it is answered does it have an interrupt.
    Bell {
        /// The core where it is answered.
        core: u16,
        /// The device's number among the doorbells of all cores.
        number: u16,
    },
}

/// A PCI function by what it is, not by where it is plugged in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciFunction {
    /// Class, subclass and programming interface, 24 bits.
    pub class: u32,
    /// The function's vendor, or [`NONE`]: any.
    pub vendor: u16,
    /// The vendor's number for it, or [`NONE`]: any.
    pub product: u16,
    /// The number of matching functions before this one, in the order of bus, device and function.
    pub instance: u8,
    /// The base address register that says where its registers are.
    pub bar: u8,
}

/// Base address registers of a PCI function.
pub const BARS: u8 = 6;

macro_rules! absences {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why the machine does not have a described PCI device, or not so that it can be used.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Absence { $($(#[$doc])* $name = $number,)* }

        impl Absence {
            pub const ALL: &'static [Absence] = &[$(Absence::$name,)*];

            /// Returns the reason with this number, if there is one.
            #[must_use]
            pub const fn decode(number: u64) -> Option<Absence> {
                match number { $($number => Some(Absence::$name),)* _ => None }
            }

            /// Returns the reason in words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Absence::$name => $text,)* }
            }
        }
    };
}

absences! {
    NotFound = 1, "the machine has no such PCI function";
    /// The function belongs to another device of the description.
    Taken = 2, "its PCI function is that of another device of the description";
    /// The base address register names no memory, or firmware gave it none.
    NoRegisters = 3, "firmware gave its registers no address, or they are not memory";
    /// There are fewer registers than described, or they share a page.
    Small = 4, "its registers are fewer pages than described";
    /// It has neither MSI-X nor MSI with enough messages, or there are too few vectors in a row.
    Messages = 5, "it sends fewer messages (MSI-X or MSI) than described";
    /// The kernel has no room to show itself the MSI-X table.
    Far = 6, "its MSI-X table lies above 4 GiB, as those of too many other devices do";
    /// Firmware left it asleep, and it did not wake within 10 ms.
    Asleep = 7, "firmware left it asleep, and it does not wake";
}

/// In the byte that says what kind of entry it is: the interrupt is level-triggered.
const LEVEL: u8 = 1;
/// Kinds of location, above that bit.
const ADDRESS: u8 = 0;
const PCI: u8 = 2;
const MESSAGE: u8 = 4;
const BELL: u8 = 6;

impl DeviceRecord {
    /// Returns the record as the bytes of an archive.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENTRY_BYTES] {
        let (kind, place, bar) = match self.location {
            Location::Address(address) => (ADDRESS, address, 0),
            Location::Pci(f) => (PCI, f.word(), f.bar),
            Location::Message { of, vector } => {
                (MESSAGE, u64::from(of) | u64::from(vector) << 16, 0)
            }
            Location::Bell { core, number } => (BELL, u64::from(core) | u64::from(number) << 16, 0),
        };
        let mut w = Writer::<ENTRY_BYTES>::new();
        w.put(&self.key.to_le_bytes()).put(&self.allowed.to_le_bytes());
        w.put(&place.to_le_bytes()).put(&self.pages.to_le_bytes());
        w.put(&self.irq.to_le_bytes()).put(&[if self.level { kind | LEVEL } else { kind }]);
        w.put(&self.interval.to_le_bytes()).put(&[bar]);
        w.bytes
    }

    /// `None` if the entry is of no known kind.
    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> Option<DeviceRecord> {
        let mut r = Reader(bytes);
        let (key, allowed, place, pages, irq) = (r.u64(), r.u64(), r.u64(), r.u32(), r.u16());
        let (kind, interval, bar) = (r.u8(), r.u64(), r.u8());
        let location = match kind & !LEVEL {
            ADDRESS => Location::Address(place),
            PCI => Location::Pci(PciFunction::of_word(place, bar)),
            MESSAGE => Location::Message { of: place as u16, vector: (place >> 16) as u16 },
            BELL => Location::Bell { core: place as u16, number: (place >> 16) as u16 },
            _ => return None,
        };
        let level = kind & LEVEL != 0;
        Some(DeviceRecord { key, allowed, location, pages, irq, level, interval })
    }

    /// Returns whether this can be entry `index` of a table whose PCI functions `is_pci` names.
    pub(super) fn is_possible(&self, index: u16, is_pci: impl Fn(u16) -> bool) -> bool {
        let located = match self.location {
            Location::Address(_) => self.irq == NONE || self.irq < MESSAGES,
            Location::Pci(function) => function.bar < BARS && self.irq == NONE,
            Location::Message { of, vector } => {
                let edge = (MESSAGES..NONE).contains(&self.irq) && !self.level;
                of < index && is_pci(of) && (vector as usize) < INTERRUPTS_MAX && edge
            }
            Location::Bell { number, .. } => {
                number < BELLS_MAX && self.irq >= MESSAGES && self.pages == 0 && !self.level
            }
        };
        located && u64::from(self.pages) <= layout::SLOT_PAGES
    }
}

impl PciFunction {
    fn word(&self) -> u64 {
        u64::from(self.class & 0xff_ffff)
            | u64::from(self.instance) << 24
            | u64::from(self.vendor) << 32
            | u64::from(self.product) << 48
    }

    fn of_word(word: u64, bar: u8) -> PciFunction {
        PciFunction {
            class: word as u32 & 0xff_ffff,
            vendor: (word >> 32) as u16,
            product: (word >> 48) as u16,
            instance: (word >> 24) as u8,
            bar,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(location: Location, irq: u16) -> DeviceRecord {
        DeviceRecord { key: 1, allowed: 2, location, pages: 3, irq, level: false, interval: 4 }
    }

    fn bell(number: u16) -> DeviceRecord {
        let location = Location::Bell { core: 5, number };
        DeviceRecord { pages: 0, ..record(location, NONE) }
    }

    const XHCI: PciFunction =
        PciFunction { class: 0x0c_0330, vendor: 0x1b36, product: NONE, instance: 1, bar: 5 };

    #[test]
    fn entries_come_back_as_written() {
        let message = Location::Message { of: 7, vector: 13 };
        let level = DeviceRecord { level: true, ..record(Location::Address(5 << 12), 23) };
        for written in
            [level, record(Location::Pci(XHCI), NONE), record(message, MESSAGES + 9), bell(3)]
        {
            assert_eq!(DeviceRecord::parse(&written.to_bytes()), Some(written));
        }
    }

    #[test]
    fn an_entry_of_no_known_kind_is_none() {
        let mut bytes = record(Location::Address(0), NONE).to_bytes();
        for kind in 0..=u8::MAX {
            bytes[30] = kind;
            assert_eq!(DeviceRecord::parse(&bytes).is_some(), kind < 8, "{kind}");
        }
    }

    #[test]
    fn what_cannot_be_is_told_from_what_can() {
        let possible = |record: DeviceRecord| record.is_possible(4, |index| index == 2);
        let message = |of, vector| Location::Message { of, vector };
        assert!(possible(record(Location::Address(0), NONE)));
        assert!(possible(record(Location::Address(0), 23)));
        assert!(possible(record(Location::Pci(XHCI), NONE)));
        assert!(possible(record(message(2, 13), MESSAGES)));
        assert!(possible(bell(63)) && possible(DeviceRecord { irq: MESSAGES, ..bell(0) }));
        for bad in [
            record(Location::Address(0), MESSAGES),
            record(Location::Pci(PciFunction { bar: BARS, ..XHCI }), NONE),
            record(Location::Pci(XHCI), 3),
            bell(BELLS_MAX),
            DeviceRecord { irq: 23, ..bell(0) },
            DeviceRecord { pages: 1, ..bell(0) },
            record(message(2, 14), MESSAGES),
            record(message(1, 0), MESSAGES),
            record(message(4, 0), MESSAGES),
            record(message(2, 0), 23),
            record(message(2, 0), NONE),
            DeviceRecord { level: true, ..record(message(2, 0), MESSAGES) },
            DeviceRecord { pages: 513, ..record(Location::Address(0), NONE) },
        ] {
            assert!(!possible(bad), "{bad:?}");
        }
    }

    #[test]
    fn reasons_are_told_by_their_numbers() {
        let known = (0..=u64::from(u8::MAX)).filter_map(Absence::decode);
        assert_eq!(known.map(|absence| absence as u8).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    }
}
