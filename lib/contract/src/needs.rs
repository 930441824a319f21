//! Names that the server needs in its description, as they follow from its settings.

use crate::settings::{CLIENTS, LINKS, OPENS, SERVES, STREAMS};
use crate::threads::{Home, LINK, SEND, ServiceKind, TUNE, WORDS, homes, services};
use crate::{camera, can, disk, keyboard, link, network, sensor, stream, tuned};

/// The controller in the description.
pub const CONTROLLER: &str = "xhci";
/// Memory that the driver and the controller share: contexts and rings.
pub const RINGS: &str = "usb-rings";
/// Memory that transfers carry to and fro.
pub const BUFFERS: &str = "usb-buffers";

/// The kind of object behind a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Device,
    Segment,
    Semaphore,
    Mailbox,
    Vcpu,
}

use Need::{Device, Mailbox, Segment, Semaphore, Vcpu};

/// Something by its name.
pub type Named = (Need, &'static str);

impl ServiceKind {
    /// Names that it shares with its clients, beside the VCPU of its bottom half.
    #[must_use]
    pub const fn needs(self) -> &'static [Named] {
        match self {
            ServiceKind::Can | ServiceKind::Hubs => &[],
            ServiceKind::Sensors => &[(Segment, sensor::PACKETS), (Semaphore, sensor::READY)],
            ServiceKind::Keyboards => &[(Segment, keyboard::KEYS), (Semaphore, keyboard::READY)],
            ServiceKind::Disks => &[
                (Segment, disk::ASKS),
                (Segment, disk::ANSWERS),
                (Segment, disk::DATA),
                (Semaphore, disk::ASKED),
                (Semaphore, disk::READY),
            ],
            ServiceKind::Cameras => &[
                (Segment, camera::PIECES),
                (Segment, camera::RETURNED),
                (Segment, camera::DATA),
                (Semaphore, camera::READY),
            ],
            ServiceKind::Networks => &[
                (Segment, network::ASKS),
                (Segment, network::TOLD),
                (Segment, network::DATA),
                (Semaphore, network::ASKED),
                (Semaphore, network::READY),
            ],
        }
    }
}

/// Everything that a server with these settings opens by name.
pub fn needs<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = Named> + use<'s, F> {
    let links = setting(LINKS).len().min(LINK.len());
    let streams = setting(STREAMS).len().min(stream::DATA.len());
    let own = [(Device, CONTROLLER), (Segment, RINGS), (Segment, BUFFERS)];
    let vcpus = homes(setting).map(|home| (Vcpu, home.vcpu));
    let shared = services(setting).flat_map(|service| service.needs().iter().copied());
    let ends = (0..links).flat_map(|number| {
        let [asks, done, asked] = link::NAMES[number];
        [(Segment, asks), (Segment, done), (Semaphore, asked)]
    });
    let common = [(Segment, link::DATA), (Semaphore, link::READY)];
    let common = common.into_iter().filter(move |_| links > 0);
    let data = stream::DATA[..streams].iter().map(|name| (Segment, *name));
    let of = |numbers: &'s [u64]| numbers.iter().filter_map(|at| can::names(*at as usize));
    let open =
        of(setting(OPENS)).flat_map(|names| [(Segment, names.arrivals), (Semaphore, names.ready)]);
    let written = of(setting(CLIENTS)).flat_map(|names| {
        let pipes = [(Segment, names.departures), (Segment, names.reports)];
        pipes.into_iter().chain([
            (Segment, names.arrivals),
            (Semaphore, names.ready),
            (Mailbox, names.requests),
        ])
    });
    let all = own.into_iter().chain(vcpus).chain(shared).chain(ends).chain(common);
    all.chain(data).chain(open).chain(written)
}

/// Every name that any server may open.
pub fn all() -> impl Iterator<Item = &'static str> {
    const SERVICES: &[u64] = &[0, 1, 2, 3, 4, 5, 6];
    const CHANNELS: &[u64] = &[0, 1, 2, 3, 4];
    const MOST: &[u64] = &[1; crate::settings::MOST];
    let setting = |name: &str| match name {
        SERVES => SERVICES,
        OPENS | CLIENTS => CHANNELS,
        LINKS | STREAMS => MOST,
        _ => &[],
    };
    let places = (0..).map_while(tuned::names).flat_map(|names| {
        let of_input = [names.ring, names.ready, names.questions, names.answers, names.vcpu];
        of_input.into_iter().chain([names.out, names.reports, names.control])
    });
    needs(&setting).map(|(_, name)| name).chain([SEND.vcpu, TUNE.vcpu]).chain(places)
}

const _: () = assert!(WORDS.len() == 7 && can::CHANNELS == 5, "as `all` counts them");

/// Returns how many threads a server with these settings starts, beside those that hear clients of
/// CAN channels and answer questions about tuned pipes.
pub fn threads<'s, F: Fn(&str) -> &'s [u64]>(setting: &F) -> usize {
    1 + homes(setting).map(Home::threads).sum::<usize>()
}

/// Returns how many locks a server with these settings makes: one for its heap, one for the part
/// that all threads share, and one for each bottom half.
pub fn semaphores<'s, F: Fn(&str) -> &'s [u64]>(setting: &F) -> usize {
    2 + homes(setting).count()
}
