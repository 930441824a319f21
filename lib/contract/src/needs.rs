//! Names that the server needs in its description, as they follow from its settings.

use crate::can::INTERFACES;
use crate::settings::{CLIENTS, DATA_RATES, FormingOrder, LINKS, OPENS, ORDER, SERVES, STREAMS};
use crate::source::{PipeSource, SHAPES, SOURCES, is_used};
use crate::threads::{
    Home, LINK, SENDERS, ServiceKind, TUNE, WORDS, homes, interfaces, seats, services,
};
use crate::{camera, can, disk, link, mode, network, stream, tuned};

/// The controller in the description.
pub const CONTROLLER: &str = "xhci";
/// Memory that the driver and the controller share: contexts and rings.
pub const RINGS: &str = "usb-rings";
/// Memory that transfers carry to and fro.
pub const BUFFERS: &str = "usb-buffers";

/// Bytes of the registers of a controller, and of the contexts and rings.
pub const REGISTERS_BYTES: u64 = 16 << 10;
pub const RINGS_BYTES: u64 = 512 << 10;

/// Bytes of the stack of each thread of a server, and of one that opens pipes for programs.
pub const STACK: u64 = 40 << 10;
pub const TUNING_STACK: u64 = 56 << 10;

/// Returns everything that a server of a debug target opens by name. Its arguments say whether it
/// waits for the USB server of the controller, and the number of its link.
pub fn target_needs([_, waits, number, _]: [u64; 4]) -> impl Iterator<Item = Named> {
    let [asks, done, asked] = link::NAMES[number as usize % link::LINKS];
    let own = [(Device, CONTROLLER), (Segment, link::TARGET_RINGS), (Segment, link::DATA)];
    let of_link = [(Segment, asks), (Segment, done), (Semaphore, asked), (Semaphore, link::READY)];
    own.into_iter().chain(of_link).chain((waits != 0).then_some((Semaphore, link::ENABLE)))
}

/// Returns whether devices use the segment of this name, too.
#[must_use]
pub fn is_for_devices(name: &str) -> bool {
    let own = [RINGS, BUFFERS, link::TARGET_RINGS, link::DATA];
    own.contains(&name)
        || [network::FROM.data, network::TO.data].contains(&name)
        || stream::DATA.contains(&name)
        || camera::NAMES.iter().any(|camera| camera.data == name)
        || disk::NAMES.iter().any(|disk| disk.data == name)
}

/// Bytes of heap of a server of one CAN interface and nothing else, and those that any other needs
/// beyond them.
pub const HEAP: (u64, u64) = (128 << 10, 256 << 10);

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

/// Returns everything that a server with these settings opens by name.
pub fn needs<'s, F: Fn(&str) -> &'s [u64]>(
    setting: &F,
) -> impl Iterator<Item = Named> + use<'s, F> {
    let links = setting(LINKS).len().min(LINK.len());
    let streams = setting(STREAMS).len().min(stream::DATA.len());
    let shapes = setting(SHAPES);
    let has_pipe = move |source: &PipeSource| {
        shapes.get(source.number() - can::CHANNELS).is_some_and(|word| *word != 0)
    };
    let own = [(Device, CONTROLLER), (Segment, RINGS), (Segment, BUFFERS)];
    let vcpus = homes(setting).map(|home| (Vcpu, home.vcpu));
    let shared = seats(setting).flat_map(move |(kind, seat)| {
        let home = &kind.homes()[seat];
        let given = home.asked.iter().chain(home.ready).map(|name| (Semaphore, *name));
        let segments = kind.segments(seat).iter().map(|name| (Segment, *name));
        segments.chain(given).filter(move |(_, name)| is_used(kind, name, has_pipe))
    });
    let ends = (0..links).flat_map(|number| {
        let [asks, done, asked] = link::NAMES[number];
        [(Segment, asks), (Segment, done), (Semaphore, asked)]
    });
    let common = [(Segment, link::DATA), (Semaphore, link::READY)];
    let common = common.into_iter().filter(move |_| links > 0);
    let enables = FormingOrder::of(setting(ORDER)).is_some_and(|order| order.enables);
    let enable = enables.then_some((Semaphore, link::ENABLE));
    let data = stream::DATA[..streams].iter().map(|name| (Segment, *name));
    let data_rates = setting(DATA_RATES);
    let of = move |numbers: &'s [u64]| {
        let has_fd = move |at: u64| data_rates.get(at as usize).is_some_and(|rate| *rate > 0);
        let named = move |at: &u64| Some((can::names(*at as usize)?, has_fd(*at)));
        numbers.iter().filter_map(named)
    };
    let open = of(setting(OPENS))
        .flat_map(|(names, fd)| [(Segment, names.pipes(fd).0), (Semaphore, names.ready)]);
    let written = of(setting(CLIENTS)).flat_map(|(names, fd)| {
        let (arrivals, departures) = names.pipes(fd);
        let pipes = [(Segment, departures), (Segment, names.reports)];
        pipes.into_iter().chain([
            (Segment, arrivals),
            (Semaphore, names.ready),
            (Mailbox, names.requests),
        ])
    });
    let all = own.into_iter().chain(vcpus).chain(shared).chain(ends).chain(common).chain(enable);
    let has_modes = !setting(mode::MODES).is_empty();
    let changes = [mode::ASKS, mode::ANSWERS].into_iter().filter(move |_| has_modes);
    let changes = changes.map(|name| (Segment, name));
    all.chain(data).chain(open).chain(written).chain(changes)
}

/// Returns every name that any server may open.
pub fn all() -> impl Iterator<Item = &'static str> {
    const SERVICES: &[u64] = &numbers::<{ WORDS.len() }>();
    const CHANNELS: &[u64] = &numbers::<{ can::CHANNELS }>();
    const EACH_ALONE: &[u64] = &alone();
    const MOST: &[u64] = &[1; crate::settings::MOST];
    let setting = |name: &str| match name {
        SERVES => SERVICES,
        OPENS | CLIENTS => CHANNELS,
        INTERFACES => EACH_ALONE,
        LINKS | STREAMS => MOST,
        SHAPES => &[1; SOURCES.len()],
        ORDER | mode::MODES => &[1],
        _ => &[],
    };
    let places = (0..).map_while(tuned::names).flat_map(|names| {
        let of_input = [names.ring, names.ready, names.questions, names.answers, names.vcpu];
        of_input.into_iter().chain([names.out, names.reports, names.control])
    });
    let senders = SENDERS.iter().map(|home| home.vcpu);
    let flexible = (0..can::CHANNELS).filter_map(can::names);
    let flexible = flexible.flat_map(|names| [names.fd_arrivals, names.fd_departures]);
    needs(&setting)
        .map(|(_, name)| name)
        .chain(senders)
        .chain([TUNE.vcpu])
        .chain(places)
        .chain(flexible)
}

/// Returns as many interfaces as there can be, each with one channel.
const fn alone() -> [u64; can::MOST] {
    let (mut all, mut at) = ([0; can::MOST], 0);
    while at < all.len() {
        all[at] = can::CanInterface { first: at as u8, channels: 1 }.word();
        at += 1;
    }
    all
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

/// Returns whether a server with these settings serves one CAN interface and nothing else.
pub fn is_small<'s, F: Fn(&str) -> &'s [u64]>(setting: &F) -> bool {
    services(setting).eq([ServiceKind::Can])
        && setting(LINKS).is_empty()
        && setting(STREAMS).is_empty()
        && interfaces(setting).count() == 1
}

/// Returns the bytes of heap that a server with these settings needs.
pub fn heap<'s, F: Fn(&str) -> &'s [u64]>(setting: &F) -> u64 {
    HEAP.0 + if is_small(setting) { 0 } else { HEAP.1 }
}

/// Returns how many locks a server with these settings makes: one for its heap, one for the part
/// that all threads share, and one for each bottom half.
pub fn semaphores<'s, F: Fn(&str) -> &'s [u64]>(setting: &F) -> usize {
    2 + homes(setting).count()
}
