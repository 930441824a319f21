//! The kinds of devices that the server serves, and what is known of each.

use crate::home::Home;
use crate::{camera, can, disk, endpoint, keyboard, network, pair, sensor, sink};

/// All that the table has of a kind of devices.
struct Row {
    kind: ServiceKind,
    word: &'static str,
    homes: &'static [Home],
    segments: &'static [&'static [&'static str]],
}

/// Makes the kinds of devices, and the table of what is known of each.
macro_rules! services {
    ($($(#[$doc:meta])* $kind:ident, $word:literal, $homes:expr, $segments:expr;)*) => {
        /// A kind of devices that the server serves. The order is that of interrupters;
        /// descriptions are told as numbers of it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ServiceKind {
            $($(#[$doc])* $kind,)*
        }

        const TABLE: [Row; [$($word),*].len()] = [$(Row {
            kind: ServiceKind::$kind,
            word: $word,
            homes: $homes,
            segments: $segments,
        }),*];

        /// The words of all services, in their order.
        pub const WORDS: [&str; TABLE.len()] = [$($word),*];
    };
}

// A kind, its word in descriptions, the threads that work for it, one for each device at a time
// (without any, the thread that manages does), and the segments that each shares with its clients.
// The channels of CAN interfaces have their own segments.
services! {
    Can, "can", &can::HOMES, &[];
    /// Sensors on a serial line.
    Sensors, "sensors", &sensor::HOMES, &sensor::SEGMENTS;
    Keyboards, "keyboards", &[keyboard::HOME], &[&[keyboard::KEYS]];
    Disks, "disks", &disk::HOMES, &disk::SEGMENTS;
    Cameras, "cameras", &camera::HOMES, &camera::SEGMENTS;
    /// Hubs, and what is behind them.
    Hubs, "hubs", &[], &[];
    Networks, "networks", &[network::HOME], &[&network::SEGMENTS];
    /// The endpoint of a device that no other service is for, packet by packet.
    Endpoints, "endpoints", &[endpoint::HOME], &[&[endpoint::PACKETS]];
    /// The endpoint of such a device to which programs write packets.
    Sinks, "sinks", &[sink::HOME], &[&[sink::WRITES, sink::ANSWERS]];
    /// Such a device of which programs read one endpoint and write another one.
    Pairs, "pairs", &[pair::HOME], &[&[endpoint::PACKETS, sink::WRITES, sink::ANSWERS]];
}

/// Bytes of a place for a short transfer: answers to control requests, reports of keys.
pub(crate) const PLACE: u64 = 64;

/// Hubs that a server serves at a time: as many as USB allows in a row, and one aside.
pub const HUBS: usize = 6;

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

    /// Returns the segments that the thread with this number shares with its clients.
    #[must_use]
    pub fn segments(self, seat: usize) -> &'static [&'static str] {
        TABLE[self as usize].segments.get(seat).copied().unwrap_or_default()
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

    /// Returns whether pipes of several of its devices have seats at one server.
    #[must_use]
    pub const fn has_seats(self) -> bool {
        !matches!(self, ServiceKind::Can) && self.homes().len() > 1
    }

    /// Returns the threads that work for it, one for each device that it serves at a time.
    #[must_use]
    pub const fn homes(self) -> &'static [Home] {
        TABLE[self as usize].homes
    }
}
