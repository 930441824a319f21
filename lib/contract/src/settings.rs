//! Settings of the USB server in a description: their names and their values.
//!
//! Words are told as their places in the list.

use crate::can::{self, CHANNELS};
use crate::kinds::{ServiceKind, WORDS};
use diapason_abi::Key;

/// The program that takes these settings.
pub const PROGRAM: &str = "usbd";
/// The only controller that it drives, by the name of its device in the description.
pub const DEVICE: &str = "xhci";

/// The values that a setting may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Some of these words.
    Words(&'static [&'static str]),
    /// Numbers from the first to the second, at least and at most so many of them.
    Numbers((u64, u64), (usize, usize)),
    /// Powers of two up to the first, at most so many of them.
    Powers(u64, usize),
}

/// A setting and what it can be.
pub type Known = (&'static str, Values);

/// Devices that it serves; without it, and without links and streams, CAN interfaces.
pub const SERVES: &str = "serves";
/// Subjects that it logs.
pub const SAYS: &str = "says";
/// The root port of each link to another computer; 0 is any.
pub const LINKS: &str = "links";
/// The promise to each direction of a link: microframes, and bytes in them.
pub const PROMISE: &str = "promise";
/// Cameras that nobody watches: each runs at so many times the period that it asks for.
pub const STREAMS: &str = "streams";
/// Numbers of the critical streams.
pub const CRITICAL: &str = "critical";
/// CAN channels whose clients open and write them.
pub const CLIENTS: &str = "clients";

/// CAN channels that the server opens: those whose pipe it may use. A description does not say it;
/// it follows from its pipes.
pub const OPENS: &str = "opens";

/// The bit rate of each CAN channel, in bit/s. It follows from the `[[usb]]` of the interface.
pub const BIT_RATES: &str = "bit-rates";
/// The rate of the data of CAN FD on each CAN channel, in bit/s; 0 has classic frames only. It
/// follows from the same, and is not there if no channel has CAN FD.
pub const DATA_RATES: &str = "data-rates";
/// The sample point of a bit on the channels of each interface, in tenths of a per cent. It follows
/// from the same.
pub const SAMPLE_POINT: &str = "sample-point";

/// The times after which channels that went bus-off are opened again, in ns, one for each
/// interface; 0 leaves it to their clients. It follows from the same.
pub const RESTART: &str = "restart";

/// The buses of the controller that the description does not have as the standard has them, as
/// [`Counted`] words. It follows from `[[bus]]`.
pub const BUSES: &str = "buses";

/// The part of a host in the order in which a network of hosts forms, as the words of an
/// [`FormingOrder`]. It follows from the list of hosts, or from the semaphore
/// [`ENABLE`](crate::link::ENABLE) in `uses`.
pub const ORDER: &str = "order";

/// A root port at which a debug target belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awaited {
    /// The number of the root port.
    pub port: u8,
    /// The key of the serial number that the right target has; 0 is any.
    pub serial: u64,
    /// The host enumerates when it senses this target, and not before.
    pub waits: bool,
}

/// The part of a host in the order in which a network forms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FormingOrder {
    /// The host enables its debug capability.
    pub enables: bool,
    /// The host does so before it waits for anybody.
    pub leads: bool,
    /// No debug targets belong to it but those of the list.
    pub listed: bool,
    /// The ports of its debug targets.
    pub awaits: [Option<Awaited>; MOST],
}

impl FormingOrder {
    /// Returns the numbers of a setting: flags, then two for each port.
    #[must_use]
    pub const fn words(&self) -> [u64; 1 + 2 * MOST] {
        let mut words = [0; 1 + 2 * MOST];
        words[0] = (self.listed as u64) << 2 | (self.leads as u64) << 1 | self.enables as u64;
        let mut at = 0;
        while at < MOST {
            if let Some(Awaited { port, serial, waits }) = self.awaits[at] {
                words[1 + 2 * at] = (waits as u64) << 8 | port as u64;
                words[2 + 2 * at] = serial;
            }
            at += 1;
        }
        words
    }

    /// Reads the numbers of a setting; `None` if there are none.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<FormingOrder> {
        let (flags, ports) = words.split_first()?;
        let mut awaits = [None; MOST];
        for (awaited, [port, serial]) in awaits.iter_mut().zip(ports.as_chunks().0) {
            let (serial, waits) = (*serial, port >> 8 & 1 != 0);
            *awaited = (*port != 0).then_some(Awaited { port: *port as u8, serial, waits });
        }
        let [enables, leads, listed] = [1, 2, 4].map(|bit| flags & bit != 0);
        Some(FormingOrder { enables, leads, listed, awaits })
    }
}

/// A bus of the controller, and how its share is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The bus's speed: 0 is low, 3 is super.
    pub speed: u8,
    /// The line code of super speed counts.
    pub coded: bool,
    /// Most of a slot that may be periodic, in per cent.
    pub periodic_percent: u8,
    /// The control endpoints of its devices count.
    pub control: bool,
}

impl Counted {
    /// Returns the topic as a number of a setting.
    #[must_use]
    pub const fn word(&self) -> u64 {
        let flags = (self.control as u64) << 1 | self.coded as u64;
        flags << 16 | (self.periodic_percent as u64) << 8 | self.speed as u64
    }

    /// Out of a number.
    #[must_use]
    pub const fn of(word: u64) -> Counted {
        Counted {
            speed: word as u8,
            coded: word >> 16 & 1 != 0,
            periodic_percent: (word >> 8) as u8,
            control: word >> 17 & 1 != 0,
        }
    }
}

/// Devices that the description names, as words of [`Expected`], two for each. They follow from
/// `[[usb]]`.
pub const DEVICES: &str = "devices";

/// A device that the description names: what serves it, where it is plugged in, and what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The service for it.
    pub service: ServiceKind,
    /// The number of the CAN interface, or of the camera's seat if the server has streams; 0 of any
    /// other service.
    pub interface: u8,
    /// The connector of the controller, 1 to 15.
    pub connector: u8,
    /// Hub ports on the way, four bits each, the first in the lowest.
    pub route: u32,
    /// The device's vendor and its product; 0 is any.
    pub identity: (u16, u16),
    /// The key of its serial number; 0 is any.
    pub serial: u64,
}

/// Most numbers of [`Expected::interface`]: a word has four bits for it, and for the service.
pub const INTERFACES_MAX: usize = 16;
// The last number is that of cameras without a seat.
const _: () = assert!(WORDS.len() < 16 && can::MOST <= INTERFACES_MAX && MOST + 1 < INTERFACES_MAX);

impl Expected {
    /// Returns the key of a serial number; it is never 0.
    #[must_use]
    pub const fn key(serial: &str) -> u64 {
        let Key(key) = Key::new(serial);
        if key == 0 { 1 } else { key }
    }

    /// Returns the numbers of a setting for this device.
    #[must_use]
    pub const fn words(&self) -> [u64; 2] {
        let place = (self.route as u64 & 0xf_ffff) << 12 | (self.connector as u64 & 0xf) << 4;
        let place = place | (self.interface as u64 & 0xf) << 8;
        let identity = (self.identity.0 as u64) << 48 | (self.identity.1 as u64) << 32;
        [identity | place | self.service as u64, self.serial]
    }

    /// Reads the devices out of the numbers of a setting; those of no service are left out.
    pub fn all(numbers: &[u64]) -> impl Iterator<Item = Expected> + '_ {
        numbers.as_chunks().0.iter().filter_map(|[word, serial]| {
            Some(Expected {
                service: ServiceKind::numbered(word & 0xf)?,
                interface: (word >> 8 & 0xf) as u8,
                connector: (word >> 4 & 0xf) as u8,
                route: (word >> 12 & 0xf_ffff) as u32,
                identity: ((word >> 48) as u16, (word >> 32) as u16),
                serial: *serial,
            })
        })
    }

    /// Returns whether a device at this place, with this identity, can be the one. Its serial
    /// number is another question, because reading it takes time.
    #[must_use]
    pub const fn is(&self, connector: u8, route: u32, (vendor, product): (u16, u16)) -> bool {
        let here = self.connector == connector && self.route == route;
        let (known, kind) = self.identity;
        here && (known == 0 || known == vendor) && (kind == 0 || kind == product)
    }
}

/// A subject that the server logs; descriptions are told as its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saying {
    /// Each device: what it is, its endpoints, and what is left of its bus.
    Devices,
    /// The remaining room of every pool, whenever a device is gone.
    Pools,
    /// When the bottom half of the first service was where, in the segment `usb-times`.
    Times,
}

/// The words of [`SAYS`], each at the number of its subject.
pub const SAYINGS: [&str; 3] = {
    let mut words = [""; 3];
    words[Saying::Devices as usize] = "devices";
    words[Saying::Pools as usize] = "pools";
    words[Saying::Times as usize] = "times";
    words
};
/// Most links, and most streams.
pub const MOST: usize = 4;

pub const SETTINGS: [Known; 7] = [
    (SERVES, Values::Words(&WORDS)),
    (SAYS, Values::Words(&SAYINGS)),
    (LINKS, Values::Numbers((0, 255), (1, MOST))),
    (PROMISE, Values::Numbers((1, u32::MAX as u64), (2, 2))),
    (STREAMS, Values::Powers(1 << 15, MOST)),
    (CRITICAL, Values::Numbers((0, MOST as u64 - 1), (1, MOST))),
    (CLIENTS, Values::Numbers((0, CHANNELS as u64 - 1), (1, CHANNELS))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_bus_survives_its_word() {
        let odd = Counted { speed: 3, coded: false, periodic_percent: 100, control: true };
        let other = Counted { speed: 2, coded: true, periodic_percent: 80, control: false };
        for bus in [odd, other] {
            assert_eq!(Counted::of(bus.word()), bus);
        }
    }

    #[test]
    fn an_order_survives_its_words() {
        let awaited = |port, serial| Some(Awaited { port, serial, waits: serial != 0 });
        let awaits = [awaited(17, 9), awaited(30, 0), None, None];
        for order in [
            FormingOrder { enables: true, leads: true, listed: true, awaits },
            FormingOrder::default(),
        ] {
            assert_eq!(FormingOrder::of(&order.words()), Some(order));
        }
        assert_eq!(FormingOrder::of(&[]), None);
    }

    #[test]
    fn an_expected_device_survives_its_words() {
        let disk = Expected {
            service: ServiceKind::Disks,
            interface: 9,
            connector: 15,
            route: 0x4_3214,
            identity: (0xffff, 0x8001),
            serial: Expected::key("000000000001"),
        };
        let any = Expected { serial: 0, connector: 1, ..disk };
        let words = [disk.words(), [WORDS.len() as u64, 0], any.words()].concat();
        assert!(Expected::all(&words).eq([disk, any]));
        assert_eq!(Expected::all(&words[..1]).count(), 0);
    }

    #[test]
    fn a_device_is_its_place_and_what_is_said_of_it() {
        let service = ServiceKind::Disks;
        let any = Expected {
            service,
            connector: 3,
            route: 0x21,
            identity: (0, 0),
            serial: 0,
            interface: 0,
        };
        assert!(any.is(3, 0x21, (1, 2)));
        assert!(!any.is(3, 0x20, (1, 2)) && !any.is(2, 0x21, (1, 2)));
        let known = Expected { identity: (0x46f4, 0), ..any };
        assert!(known.is(3, 0x21, (0x46f4, 9)) && !known.is(3, 0x21, (0x46f5, 9)));
        let known = Expected { identity: (0x46f4, 9), ..any };
        assert!(known.is(3, 0x21, (0x46f4, 9)) && !known.is(3, 0x21, (0x46f4, 8)));
    }
}
