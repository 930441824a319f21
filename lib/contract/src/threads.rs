//! The threads of the server: the VCPU that each runs on, and what its work is called in
//! descriptions. The services, and which thread works for each.

use crate::settings::{LINKS, SERVES, STREAMS};
use crate::{camera, disk, keyboard, link, network, sensor};
use diapason_abi::Nanos;

/// A thread of the server, with its VCPU and its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// Its VCPU in the description.
    pub vcpu: &'static str,
    pub thread: &'static str,
    /// Its work in the description: all that it does each time it is woken, under the lock of its
    /// branch.
    pub work: &'static str,
    /// The shortest time between two of its interrupts: the description's interval is a little
    /// shorter.
    pub moderation: Nanos,
    /// Interrupts are handled so much later, for controllers that ignore moderation: none
    /// interrupts again before that.
    pub pace: Nanos,
    /// The semaphore by which clients ask for something: a second thread on the same VCPU hears it.
    pub asked: Option<&'static str>,
    /// The semaphore that is given to clients when there is something new, if there is only one.
    pub ready: Option<&'static str>,
}

impl Home {
    pub(crate) const fn new(vcpu: &'static str, thread: &'static str, work: &'static str) -> Home {
        let (moderation, pace) = (Nanos::ZERO, Nanos::ZERO);
        Home { vcpu, thread, work, moderation, pace, asked: None, ready: None }
    }

    pub(crate) const fn moderated(self, moderation: Nanos) -> Home {
        Home { moderation, ..self }
    }

    pub(crate) const fn asked(self, asked: &'static str) -> Home {
        Home { asked: Some(asked), ..self }
    }

    pub(crate) const fn ready(self, ready: &'static str) -> Home {
        Home { ready: Some(ready), ..self }
    }

    /// Returns how many threads run on its VCPU, each doing its work under the lock of its branch.
    #[must_use]
    pub const fn threads(&self) -> usize {
        1 + self.asked.is_some() as usize
    }

    /// Interrupts are handled as much later as they are apart.
    pub(crate) const fn paced(self, moderation: Nanos) -> Home {
        Home { moderation, pace: moderation, ..self }
    }
}

/// The work of the thread that manages: commands, ports, time. It runs on the server's own VCPU.
pub const MANAGE: &str = "usbd.manage";

/// The bottom half of CAN channels.
pub const RECEIVE: Home =
    Home::new("usb-receive", "receive", "usbd.receive").moderated(Nanos::from_millis(1));
/// Hears clients of CAN channels and takes the frames they write. It has no interrupter.
pub const SEND: Home = Home::new("usb-send", "send", "usbd.send");
/// Questions about tuned pipes. It has no interrupter, and pauses between two questions.
pub const TUNE: Home =
    Home { pace: Nanos::from_millis(5), ..Home::new("usb-tune", "tune", "usbd.tune") };

/// Messages from and to other computers: none waits for another.
pub const LINK: [Home; link::LINKS] = [
    linked("usb-link0", 0),
    linked("usb-link1", 1),
    linked("usb-link2", 2),
    linked("usb-link3", 3),
];

const fn linked(vcpu: &'static str, number: usize) -> Home {
    let [_, _, asked] = link::NAMES[number];
    let home = Home::new(vcpu, "link", "usbd.link").moderated(Nanos::from_micros(50));
    home.asked(asked).ready(link::READY)
}

/// Cameras that nobody watches: of 16 transfers pending, one each 125 us at most, four wait for an
/// interrupt.
pub const STREAM: [Home; crate::settings::MOST] =
    [stream("usb-stream0"), stream("usb-stream1"), stream("usb-stream2"), stream("usb-stream3")];

const fn stream(vcpu: &'static str) -> Home {
    Home::new(vcpu, "stream", "usbd.stream").moderated(Nanos::from_micros(500))
}

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
    Can, "can", Some(&RECEIVE), &[];
    /// Sensors on a serial line.
    Sensors, "sensors", Some(&sensor::HOME), &[sensor::PACKETS];
    Keyboards, "keyboards", Some(&keyboard::HOME), &[keyboard::KEYS];
    Disks, "disks", Some(&disk::HOME), &[disk::ASKS, disk::ANSWERS, disk::DATA];
    Cameras, "cameras", Some(&camera::HOME), &[camera::PIECES, camera::RETURNED, camera::DATA];
    /// Hubs, and what is behind them.
    Hubs, "hubs", None, &[];
    Networks, "networks", Some(&network::HOME), &[network::ASKS, network::TOLD, network::DATA];
}

impl ServiceKind {
    /// The service with this number, if there is one.
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

    /// Returns the thread that works for it.
    #[must_use]
    pub const fn home(self) -> Option<&'static Home> {
        TABLE[self as usize].home
    }
}

/// Returns what a server with these settings serves. Without any it serves CAN interfaces.
pub fn services<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = ServiceKind> + use<'s, F> {
    let numbers = setting(SERVES);
    let alone = numbers.is_empty() && setting(LINKS).is_empty() && setting(STREAMS).is_empty();
    let all = TABLE.iter().map(|row| row.kind);
    all.filter(move |service| {
        numbers.contains(&(*service as u64)) || alone && *service == ServiceKind::Can
    })
}

/// Returns the bottom halves of a server with these settings, in the order of their
/// interrupters, which follow that of the thread that manages.
pub fn homes<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = &'static Home> + use<'s, F> {
    let links = setting(LINKS).len().min(LINK.len());
    let streams = setting(STREAMS).len().min(STREAM.len());
    let served = services(setting).filter_map(ServiceKind::home);
    served.chain(&LINK[..links]).chain(&STREAM[..streams])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn of<'s>(settings: &'s [(&str, Vec<u64>)]) -> impl Fn(&str) -> &'s [u64] {
        move |name| settings.iter().find(|(known, _)| *known == name).map_or(&[], |(_, all)| all)
    }

    #[test]
    fn a_server_that_is_told_nothing_serves_can() {
        assert_eq!(services(&of(&[])).collect::<Vec<_>>(), [ServiceKind::Can]);
        assert_eq!(homes(&of(&[])).collect::<Vec<_>>(), [&RECEIVE]);
    }

    #[test]
    fn a_server_of_links_serves_nothing_else() {
        let settings = [(LINKS, vec![0, 3])];
        assert_eq!(services(&of(&settings)).count(), 0);
        let vcpus: Vec<_> = homes(&of(&settings)).map(|home| home.vcpu).collect();
        assert_eq!(vcpus, ["usb-link0", "usb-link1"]);
    }

    #[test]
    fn interrupters_follow_the_order_of_the_services() {
        use ServiceKind::{Can, Disks, Hubs, Networks};
        let serves = [Networks, Hubs, Disks, Can].map(|kind| kind as u64);
        let settings = [(SERVES, serves.to_vec()), (STREAMS, vec![1])];
        let works: Vec<_> = homes(&of(&settings)).map(|home| home.work).collect();
        assert_eq!(works, ["usbd.receive", "usbd.disk", "usbd.network", "usbd.stream"]);
        assert_eq!(ServiceKind::numbered(Hubs as u64), Some(Hubs));
        assert_eq!(ServiceKind::numbered(WORDS.len() as u64), None);
    }

    #[test]
    fn no_vcpu_works_for_two() {
        let all = WORDS.iter().enumerate().map(|(number, _)| number as u64).collect();
        let settings = [(SERVES, all), (LINKS, vec![0; 4]), (STREAMS, vec![1; 4])];
        let mut vcpus: Vec<_> = homes(&of(&settings)).map(|home| home.vcpu).collect();
        vcpus.extend([SEND.vcpu, TUNE.vcpu]);
        let count = vcpus.len();
        vcpus.sort_unstable();
        vcpus.dedup();
        // Links and streams have four each, questions and writers one; hubs have none.
        assert_eq!((vcpus.len(), count), (WORDS.len() + 9, WORDS.len() + 9));
    }
}
