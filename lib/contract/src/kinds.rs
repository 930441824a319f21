//! The kinds of devices that the server serves, and what is known of each.

use crate::home::Home;
use crate::{camera, can, disk, endpoint, keyboard, network, pair, sensor, sink};

/// All that the table has of a kind of devices.
struct Row {
    kind: ServiceKind,
    word: &'static str,
    home: Option<&'static Home>,
    segments: &'static [&'static str],
}

/// Makes the kinds of devices, and the table of what is known of each.
macro_rules! services {
    ($($(#[$doc:meta])* $kind:ident, $word:literal, $home:expr, $segments:expr;)*) => {
        /// A kind of devices that the server serves. The order is that of interrupters;
        /// descriptions are told as numbers of it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ServiceKind {
            $($(#[$doc])* $kind,)*
        }

        const TABLE: [Row; [$($word),*].len()] =
            [$(Row { kind: ServiceKind::$kind, word: $word, home: $home, segments: $segments }),*];

        /// The words of all services, in their order.
        pub const WORDS: [&str; TABLE.len()] = [$($word),*];
    };
}

// A kind, its word in descriptions, the thread that works for it (without one, the thread that
// manages does), and the segments that it shares with its clients.
services! {
    Can, "can", Some(&can::HOME), &[];
    /// Sensors on a serial line.
    Sensors, "sensors", Some(&sensor::HOME), &[sensor::PACKETS];
    Keyboards, "keyboards", Some(&keyboard::HOME), &[keyboard::KEYS];
    Disks, "disks", Some(&disk::HOME), &[disk::ASKS, disk::ANSWERS, disk::DATA];
    Cameras, "cameras", Some(&camera::HOME), &[camera::PIECES, camera::RETURNED, camera::DATA];
    /// Hubs, and what is behind them.
    Hubs, "hubs", None, &[];
    Networks, "networks", Some(&network::HOME), &[network::ASKS, network::TOLD, network::DATA];
    /// The endpoint of a device that no other service is for, packet by packet.
    Endpoints, "endpoints", Some(&endpoint::HOME), &[endpoint::PACKETS];
    /// The endpoint of such a device to which programs write packets.
    Sinks, "sinks", Some(&sink::HOME), &[sink::WRITES, sink::ANSWERS];
    /// Such a device of which programs read one endpoint and write another one.
    Pairs, "pairs", Some(&pair::HOME), &[endpoint::PACKETS, sink::WRITES, sink::ANSWERS];
}

/// Bytes of a place for a short transfer: answers to control requests, reports of keys.
pub(crate) const PLACE: u64 = 64;

/// Hubs that a server serves at a time.
pub const HUBS: usize = 4;

impl ServiceKind {
    /// Returns all of them, in their order.
    pub(crate) fn all() -> impl Iterator<Item = ServiceKind> {
        TABLE.iter().map(|row| row.kind)
    }

    /// Returns the service with this number, if there is one.
    #[must_use]
    pub fn numbered(number: u64) -> Option<ServiceKind> {
        TABLE.get(usize::try_from(number).ok()?).map(|row| row.kind)
    }

    /// Returns its word in descriptions.
    #[must_use]
    pub const fn word(self) -> &'static str {
        TABLE[self as usize].word
    }

    /// Returns the segments that it shares with its clients.
    #[must_use]
    pub const fn segments(self) -> &'static [&'static str] {
        TABLE[self as usize].segments
    }

    /// Returns how many bytes the transfers of one of its devices take of the memory for all
    /// transfers.
    #[must_use]
    pub const fn buffers(self) -> u64 {
        match self {
            ServiceKind::Can => can::BUFFERS,
            ServiceKind::Sensors => sensor::BUFFERS,
            ServiceKind::Endpoints => endpoint::BUFFERS,
            ServiceKind::Sinks => sink::BUFFERS,
            ServiceKind::Pairs => pair::BUFFERS,
            ServiceKind::Keyboards => 6 * PLACE,
            ServiceKind::Disks | ServiceKind::Hubs | ServiceKind::Networks => 4 * PLACE,
            ServiceKind::Cameras => 2 * PLACE,
        }
    }

    /// Returns the service for a device with pipes of two services, which serves both pipes.
    #[must_use]
    pub fn with(self, other: ServiceKind) -> ServiceKind {
        match (self, other) {
            (ServiceKind::Endpoints, ServiceKind::Sinks)
            | (ServiceKind::Sinks, ServiceKind::Endpoints) => ServiceKind::Pairs,
            _ => self,
        }
    }

    /// Returns the thread that works for it.
    #[must_use]
    pub const fn home(self) -> Option<&'static Home> {
        TABLE[self as usize].home
    }
}
