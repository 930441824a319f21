//! Names that the server needs in its description, as they follow from its settings.

use crate::settings::{CLIENTS, LINKS, OPENS, SERVES, STREAMS};
use crate::threads::{Home, LINK, SEND, TUNE, WORDS, homes, services};
use crate::{can, link, stream, tuned};

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

/// Everything that a server with these settings opens by name.
pub fn needs<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = Named> + use<'s, F> {
    let links = setting(LINKS).len().min(LINK.len());
    let streams = setting(STREAMS).len().min(stream::DATA.len());
    let own = [(Device, CONTROLLER), (Segment, RINGS), (Segment, BUFFERS)];
    let vcpus = homes(setting).map(|home| (Vcpu, home.vcpu));
    let shared = services(setting).flat_map(|service| {
        let given = service.home().into_iter().flat_map(|home| [home.asked, home.ready]);
        let given = given.flatten().map(|name| (Semaphore, name));
        service.segments().iter().map(|name| (Segment, *name)).chain(given)
    });
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
    const SERVICES: &[u64] = &numbers::<{ WORDS.len() }>();
    const CHANNELS: &[u64] = &numbers::<{ can::CHANNELS }>();
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

/// Returns the numbers from 0 on.
const fn numbers<const N: usize>() -> [u64; N] {
    let (mut all, mut at) = ([0; N], 0);
    while at < N {
        all[at] = at as u64;
        at += 1;
    }
    all
}

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
