//! The threads of the server: the VCPU that each runs on, and what its work is called in
//! descriptions. The services, and which thread works for each.

use crate::can::{self, CanInterface, INTERFACES};
pub use crate::can::{HOME as RECEIVE, HOMES as RECEIVERS};
pub use crate::home::Home;
pub use crate::kinds::{HUBS, ServiceKind, WORDS};
use crate::link;
use crate::settings::{LINKS, MOST, SERVES, STREAMS};
use crate::source::{SHAPES, piped};
use diapason_abi::Nanos;

/// The work of the thread that manages: commands, ports, time. It runs on the server's own VCPU.
pub const MANAGE: &str = "usbd.manage";

/// The time between interrupts of the thread that manages.
pub const MANAGED: Nanos = Nanos::from_millis(2);

/// Hears clients of the first interface's CAN channels and takes the frames they write. It has no
/// interrupter.
pub const SEND: Home = SENDERS[0];
/// The threads that hear clients, one for each interface.
pub const SENDERS: [Home; can::MOST] = {
    let mut homes = [const { Home::new("", "send", "usbd.send") }; can::MOST];
    let mut number = 0;
    while number < can::MOST {
        homes[number].vcpu = can::VCPUS[number].1;
        number += 1;
    }
    homes
};
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
    let home = Home::new(vcpu, "link", "usbd.link").each("usbd.link.message");
    home.moderated(Nanos::from_micros(50)).asked(asked).ready(&[link::READY])
}

/// Cameras that nobody watches: of 16 transfers pending, one each 125 us at most, four wait for an
/// interrupt.
pub const STREAM: [Home; MOST] =
    [stream("usb-stream0"), stream("usb-stream1"), stream("usb-stream2"), stream("usb-stream3")];

const fn stream(vcpu: &'static str) -> Home {
    Home::new(vcpu, "stream", "usbd.stream").moderated(Nanos::from_micros(500))
}

/// Returns what a server with these settings serves. Without any it serves CAN interfaces.
pub fn services<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = ServiceKind> + use<'s, F> {
    let numbers = setting(SERVES);
    let alone = numbers.is_empty() && setting(LINKS).is_empty() && setting(STREAMS).is_empty();
    let all = ServiceKind::all();
    all.filter(move |service| {
        numbers.contains(&(*service as u64)) || alone && *service == ServiceKind::Can
    })
}

/// Returns the CAN interfaces of a server with these settings.
pub fn interfaces<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = CanInterface> + use<'s, F> {
    CanInterface::all(setting(INTERFACES)).take(can::MOST)
}

/// Returns the seats of a server with these settings: a service, and a number among its devices.
/// Every kind has one, but there is one for each CAN interface, and for each camera, each sensor
/// and each disk with a pipe.
pub fn seats<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = (ServiceKind, usize)> + use<'s, F> {
    let interfaces = interfaces(setting).count();
    let shapes = setting(SHAPES);
    services(setting).flat_map(move |kind| {
        let count = match kind {
            ServiceKind::Can => interfaces,
            _ => piped(kind, shapes).max(1).min(kind.homes().len()),
        };
        (0..count).map(move |seat| (kind, seat))
    })
}

/// Returns the bottom halves of a server with these settings, in the order of their
/// interrupters, which follow that of the thread that manages.
pub fn homes<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = &'static Home> + use<'s, F> {
    let links = setting(LINKS).len().min(LINK.len());
    let streams = setting(STREAMS).len().min(STREAM.len());
    let served = seats(setting).map(|(kind, seat)| &kind.homes()[seat]);
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
    fn each_interface_has_a_bottom_half_before_all_others() {
        let words = [(0, 5), (5, 2)].map(|(first, channels)| CanInterface { first, channels });
        let words = words.map(CanInterface::word).to_vec();
        let serves = [ServiceKind::Disks, ServiceKind::Can].map(|kind| kind as u64).to_vec();
        let settings = [(SERVES, serves), (INTERFACES, words)];
        let vcpus: Vec<_> = homes(&of(&settings)).map(|home| home.vcpu).collect();
        assert_eq!(vcpus, ["usb-receive", "usb-receive1", "usb-disk"]);
        let without = [(SERVES, vec![ServiceKind::Disks as u64]), settings[1].clone()];
        assert_eq!(homes(&of(&without)).count(), 1);
    }

    #[test]
    fn each_camera_with_a_pipe_has_a_seat_and_one_without_has_the_first() {
        let serves = [ServiceKind::Cameras, ServiceKind::Disks].map(|kind| kind as u64);
        for (shapes, count) in [(vec![], 1), (vec![0, 0, 9], 1), (vec![0, 0, 9, 9, 0, 9, 9], 3)] {
            let settings = [(SERVES, serves.to_vec()), (SHAPES, shapes)];
            let vcpus: Vec<_> = homes(&of(&settings)).map(|home| home.vcpu).collect();
            let cameras = ["usb-camera", "usb-camera1", "usb-camera2"];
            assert_eq!(vcpus[0], "usb-disk");
            assert_eq!(vcpus[1..], cameras[..count]);
        }
    }

    #[test]
    fn no_vcpu_works_for_two() {
        let all = WORDS.iter().enumerate().map(|(number, _)| number as u64).collect();
        let one = |first| CanInterface { first, channels: 1 }.word();
        let interfaces = (0..can::MOST as u8).map(one).collect();
        let shapes = vec![1; crate::source::SOURCES.len()];
        let settings = [
            (SERVES, all),
            (INTERFACES, interfaces),
            (SHAPES, shapes),
            (LINKS, vec![0; 4]),
            (STREAMS, vec![1; 4]),
        ];
        let mut vcpus: Vec<_> = homes(&of(&settings)).map(|home| home.vcpu).collect();
        vcpus.extend(SENDERS.map(|home| home.vcpu));
        vcpus.push(TUNE.vcpu);
        let count = vcpus.len();
        vcpus.sort_unstable();
        vcpus.dedup();
        // Links, streams, cameras, sensors and disks have four each, questions one, interfaces two
        // each; hubs have none.
        let all = WORDS.len() - 5 + 21 + 2 * can::MOST;
        assert_eq!((vcpus.len(), count), (all, all));
    }
}
