//! `[[adapter]]` and `[[socket]]`: adapters for Ethernet that `netd` drives, and the UDP sockets of
//! programs.
//!
//! A socket is declared once. Its segments and semaphores follow from it, and so do the rights of
//! both ends: [`expand`] declares them as if they had been written out, as it is done for pipes.

mod carried;
mod ports;

pub(crate) use carried::datagrams;
pub use ports::{AdapterDevice, EthernetAdapter, UdpPort, UsbAdapter};

use crate::declared::{
    Declared, DeclaredAdapter, DeclaredDevice, DeclaredPlace, DeclaredSegment, DeclaredSocket,
    Named,
};
use crate::diagnostics::{Problem, Report};
use crate::keys::{self, required};
use crate::names::Names;
use crate::source::At;
use crate::suggest::nearest;
use crate::system::{SemaphoreKind, Setting, System};
use crate::table::{Raw, Table};
use core::net::{Ipv4Addr, SocketAddrV4};
use diapason_abi::Key;
use diapason_contract::ethernet::{
    self, ADAPTER, ADAPTER_NAMES, ADAPTER_SETTING, ADAPTERS, AdapterPart, AdapterTerms, OUT_BYTES,
    PAYLOAD_MAX, PROGRAM, Peer, QUOTA_MAX, REST, SOCKET_NAMES, SOCKETS, SOCKETS_SETTING,
    SocketTerms,
};

/// Rates of the wire, in Mbit/s.
const SPEEDS: [(u64, &str); 3] = [(10, "10"), (100, "100"), (1_000, "1000")];
/// Most frames a second, at once, and longest times.
const FRAMES_MAX: u64 = 10_000_000;
const BURST_MAX: u64 = 100_000;
const TIME_MAX: u64 = 1_000_000_000_000;
/// Bytes of the tag that says a priority.
const TAG: u64 = 4;
/// Frames that wait for a socket if the description does not say.
const QUOTA: u64 = 16;

pub(crate) fn adapter(raw: Raw<'_>, report: &mut Report) -> DeclaredAdapter {
    let mut table = Table::new("[[adapter]]", "adapter", raw, report);
    let place = table.place();
    let device = required(&mut table, "device", "the `[[device]]` that `netd` drives");
    let address = table.parsed("address", ADDRESS, "address = \"10.0.0.1\"", own_address);
    table.needs("address", "add `address = \"10.0.0.1\"`: the address of this host there");
    let mac = table.parsed("mac", MAC, "mac = \"02:00:00:00:00:01\"", own_mac);
    table.needs("mac", "add `mac = \"02:00:00:00:00:01\"`: the address of the adapter");
    let speed = table.number("speed", 10..=1_000, " Mbit/s");
    if let Some(speed) = speed.as_ref().filter(|it| SPEEDS.iter().all(|(s, _)| *s != it.value)) {
        let title = format!("the adapter has no speed of {} Mbit/s", speed.value);
        table.report.push(Problem::new(&speed.span, title, "write 10, 100 or 1000"));
    }
    let rate = table.number("rate", 1..=FRAMES_MAX, ", frames a second of anybody");
    let burst = table.number("burst", 1..=BURST_MAX, ", frames at once");
    if let Some(burst) = burst.as_ref().filter(|_| rate.is_none()) {
        let help = "add `rate = 1000`: the most frames a second, or remove `burst`";
        table.report.push(Problem::new(&burst.span, "`burst` without `rate`", help));
    }
    let of_card = [(&speed, "speed"), (&rate, "rate")];
    let of_card = of_card.into_iter().find_map(|(at, key)| Some((at.as_ref()?.span.clone(), key)));
    table.report_unknown();
    DeclaredAdapter {
        place,
        of_card,
        device,
        address: address.map_or([0; 4], |it| it.value),
        mac: mac.map_or([0; 6], |it| it.value),
        speed: speed.map_or(1_000, |it| it.value),
        traffic: rate.map(|rate| (rate.value, burst.map_or(1, |burst| burst.value))),
    }
}

pub(crate) fn socket(raw: Raw<'_>, report: &mut Report) -> DeclaredSocket {
    let mut table = Table::new("[[socket]]", "socket", raw, report);
    let name = keys::name(&mut table);
    let adapter = required(&mut table, "adapter", "the device of an `[[adapter]]`");
    let process = required(&mut table, "process", "the `[[process]]` that has it");
    let rest = table.flag("rest").unwrap_or(false);
    let port = table.number("port", 1..=u64::from(u16::MAX), "");
    if rest {
        DATAGRAMS.iter().for_each(|key| of_datagrams(&mut table, key));
    } else {
        let help = "add `port = 5000`: the port where datagrams come, or `rest = true` for what no \
                    socket wants";
        table.needs("port", help);
    }
    let peer = table.parsed("peer", PEER, "peer = \"10.0.0.2:5000\"", peer);
    let peer_mac = table.parsed("peer_mac", MAC, "peer_mac = \"02:00:00:00:00:02\"", mac);
    match (&peer, &peer_mac) {
        (Some(peer), None) => {
            let help = "add `peer_mac = \"02:00:00:00:00:02\"`: nobody asks the wire for it";
            table.report.push(Problem::new(&peer.span, "`peer` without `peer_mac`", help));
        }
        (None, Some(mac)) => {
            let help = "add `peer = \"10.0.0.2:5000\"`, or remove `peer_mac`";
            table.report.push(Problem::new(&mac.span, "`peer_mac` without `peer`", help));
        }
        _ => {}
    }
    let quota = table.number("quota", 1..=QUOTA_MAX, ", frames that wait");
    let priority = table.number("priority", 0..=7, "");
    if let Some(priority) = priority.as_ref().filter(|_| peer.is_none()) {
        let help = "add `peer`, or remove `priority`: it is of the frames that are sent";
        table.report.push(Problem::new(&priority.span, "`priority` without `peer`", help));
    }
    let most = PAYLOAD_MAX - if priority.is_some() { TAG } else { 0 };
    let bytes = table.number("bytes", 1..=most, " of payload, at most");
    let or = |number: Option<At<u64>>, otherwise| number.map_or(otherwise, |it| it.value);
    let nowhere = if rest { REST.into() } else { 1 };
    let socket = DeclaredSocket {
        port: port.filter(|_| !rest).unwrap_or_else(|| At::new(nowhere, name.span.clone())),
        real_time: table.flag("real_time").unwrap_or(true),
        priority: priority.map(|it| it.value as u8),
        bytes: or(bytes, most),
        period: table.duration("period", 1..=TIME_MAX),
        burst: or(table.number("burst", 1..=BURST_MAX, ", datagrams at once"), 1),
        work_ns: table.duration("work", 1..=TIME_MAX).map(|work| work.value),
        latency: table.duration("latency", 1..=TIME_MAX),
        peer: peer.zip(peer_mac).map(|(peer, mac)| Peer {
            address: peer.value.ip().octets(),
            port: peer.value.port(),
            mac: mac.value,
        }),
        quota: quota.unwrap_or_else(|| At::new(QUOTA, name.span.clone())),
        name,
        adapter,
        process,
    };
    table.report_unknown();
    socket
}

/// Keys of a socket that belong to datagrams.
const DATAGRAMS: [&str; 10] = [
    "port",
    "peer",
    "peer_mac",
    "priority",
    "real_time",
    "bytes",
    "period",
    "burst",
    "work",
    "latency",
];

/// Reports a key of datagrams in a socket that gets whole frames.
fn of_datagrams(table: &mut Table<'_, '_>, key: &'static str) {
    let Some(span) = table.place_of(key) else { return };
    let title = format!("a socket with `rest` has no `{key}`: it gets frames, and no datagrams");
    let help = format!("remove `{key}`, or `rest`");
    table.report.push(Problem::new(&span, title, help));
}

const ADDRESS: &str = "an IPv4 address of one host";
const MAC: &str = "an Ethernet address: six pairs of hexadecimal digits";
const PEER: &str = "an IPv4 address of one host and a port";

/// Returns whether an address can be that of one host.
fn is_host(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first != 127 && first < 224
}

fn own_address(text: &str) -> Option<[u8; 4]> {
    let address: Ipv4Addr = text.parse().ok()?;
    is_host(address).then(|| address.octets())
}

fn peer(text: &str) -> Option<SocketAddrV4> {
    let peer: SocketAddrV4 = text.parse().ok()?;
    (is_host(*peer.ip()) && peer.port() != 0).then_some(peer)
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        if !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    (parts.next().is_none() && mac != [0; 6]).then_some(mac)
}

/// An address of one adapter, and not of a group.
fn own_mac(text: &str) -> Option<[u8; 6]> {
    mac(text).filter(|mac| mac[0] & 1 == 0)
}

/// Returns the number of the adapter of this device name.
fn number(device: &At<String>) -> Option<usize> {
    ADAPTER_NAMES.iter().position(|names| names.device == device.value)
}

impl DeclaredAdapter {
    /// Returns whether its device has this name.
    fn is_of(&self, device: &str) -> bool {
        self.device.as_ref().is_some_and(|own| own.value == device)
    }
}

impl DeclaredSocket {
    /// Returns whether it is at the adapter whose device has this name.
    fn is_at(&self, device: &str) -> bool {
        self.adapter.as_ref().is_some_and(|own| own.value == device)
    }

    /// Returns whether it gets the frames that no other socket of its adapter wants.
    fn is_rest(&self) -> bool {
        self.port.value == REST.into()
    }

    /// Returns whether its program may send.
    fn sends(&self) -> bool {
        self.peer.is_some() || self.is_rest()
    }
}

impl Declared {
    /// Returns the adapter whose device has this name.
    fn adapter(&self, device: &At<String>) -> Option<&DeclaredAdapter> {
        self.adapters.iter().find(|it| it.is_of(&device.value))
    }

    /// Returns the number of the process that receives the frames of an adapter.
    fn driver(&self, device: &At<String>) -> Option<usize> {
        if self.plug(&device.value).is_some() {
            return self.adapter_end(device, false);
        }
        self.processes.iter().position(|it| it.uses.iter().any(|used| used.value == device.value))
    }
}

/// Declares what adapters and sockets need, and that both ends use it.
pub(crate) fn expand(declared: &mut Declared) {
    for index in 0..declared.adapters.len() {
        let Some(device) = declared.adapters[index].device.clone() else { continue };
        let (Some(number), Some(driver)) = (number(&device), declared.driver(&device)) else {
            continue;
        };
        // A USB device brings its pipes.
        if declared.plug(&device.value).is_some() {
            continue;
        }
        let known = &ADAPTER_NAMES[number];
        let named = |name: &str| At::new(name.to_owned(), device.span.clone());
        for (name, size) in
            [(known.rings, ethernet::RINGS_BYTES), (known.buffers, ethernet::BUFFERS_BYTES)]
        {
            let what = DeclaredSegment { size, dma: true, common: false };
            declared.segments.push(Named { name: named(name), what });
        }
        let what = SemaphoreKind::Counting(0);
        declared.semaphores.push(Named { name: named(known.send), what });
        let own = [known.rings, known.buffers, known.send].map(named);
        declared.processes[driver].uses.extend(own);
    }
    for index in 0..declared.sockets.len() {
        let socket = &declared.sockets[index];
        // A socket without a number is reported by `check`.
        let (Some(known), Some(adapter)) = (SOCKET_NAMES.get(index), &socket.adapter) else {
            continue;
        };
        let (Some(card), Some(driver)) = (self::number(adapter), declared.driver(adapter)) else {
            continue;
        };
        let is_carried = declared.plug(&adapter.value).is_some();
        let sender = if is_carried { declared.adapter_end(adapter, true) } else { Some(driver) };
        let end = socket.process.as_ref().and_then(|name| declared.process(&name.value));
        let span = socket.name.span.clone();
        let sends = socket.sends();
        let quota = u16::try_from(socket.quota.value).unwrap_or(u16::MAX);
        let named = |name: &str| At::new(name.to_owned(), span.clone());
        let comes = vec![named(known.ready), named(known.inbox)];
        let goes = if sends { vec![named(known.out)] } else { Vec::new() };
        let send = named(ADAPTER_NAMES[card].send);
        let mut segments = vec![(known.inbox, ethernet::inbox_bytes(quota))];
        segments.extend(sends.then_some((known.out, OUT_BYTES)));
        for (name, size) in segments {
            let what = DeclaredSegment { size, dma: false, common: false };
            declared.segments.push(Named { name: named(name), what });
        }
        let what = SemaphoreKind::Counting(0);
        declared.semaphores.push(Named { name: named(known.ready), what });
        declared.processes[driver].uses.extend(comes.iter().cloned());
        if let Some(sender) = sender {
            declared.processes[sender].uses.extend(goes.iter().cloned());
        }
        if let Some(end) = end {
            let uses = &mut declared.processes[end].uses;
            uses.extend(comes.into_iter().chain(goes));
            if sends && !is_carried && uses.iter().all(|used| used.value != send.value) {
                uses.push(send);
            }
        }
    }
}

pub(crate) fn check(declared: &Declared, names: &Names<'_>, report: &mut Report) {
    if let Some(first) = declared.adapters.first().filter(|_| declared.cores.value > 1) {
        let title = "an adapter on a host with several cores";
        let help = "write `cores = 1`: sockets do not reach other cores yet";
        report.push(Problem::new(&first.place, title, help));
    }
    for (index, adapter) in declared.adapters.iter().enumerate() {
        let Some(device) = &adapter.device else { continue };
        if let Some(first) = declared.adapters[..index].iter().find(|it| it.is_of(&device.value)) {
            let title = format!("`{}` has two `[[adapter]]`", device.value);
            let problem = Problem::new(&device.span, title, "remove one of the two");
            report.push(problem.with(&first.place, "the first"));
        } else if let Some((_, usb)) = declared.plug(&device.value) {
            carried::check(declared, (adapter, device), usb, report);
            called(device, report);
        } else {
            driven(declared, device, report);
        }
    }
    idle(declared, report);
    if let Some(extra) = declared.sockets.get(SOCKETS) {
        let title = format!("{} sockets, the most is {SOCKETS}", declared.sockets.len());
        let help = "let one program take the datagrams of several senders on one port";
        report.push(Problem::new(&extra.name.span, title, help).label("the first too many"));
    }
    for (index, socket) in declared.sockets.iter().enumerate() {
        if let Some(process) = &socket.process {
            names.is_process(process, report);
        }
        let Some(adapter) = &socket.adapter else { continue };
        if declared.adapter(adapter).is_none() {
            report.push(unknown(declared, adapter));
        }
        let same = |other: &&DeclaredSocket| {
            other.name.value == socket.name.value
                || other.port.value == socket.port.value && other.is_at(&adapter.value)
        };
        if let Some(first) = declared.sockets[..index].iter().find(same) {
            let what = if socket.is_rest() { "`rest`" } else { "the port" };
            let title = format!("`{}` has the name or {what} of another socket", socket.name.value);
            let help = "give each socket of an adapter a `name` and a `port` of its own; one has \
                        `rest`";
            let problem = Problem::new(&socket.name.span, title, help);
            report.push(problem.with(&first.name.span, "the other"));
        }
    }
}

/// Reports processes of `netd` that have no adapter: they would end at once.
fn idle(declared: &Declared, report: &mut Report) {
    let devices = || declared.adapters.iter().filter_map(|adapter| adapter.device.as_ref());
    let is_served = |process: usize| {
        devices().any(|device| {
            let ends = [declared.driver(device), declared.adapter_end(device, true)];
            ends.contains(&Some(process))
        })
    };
    for (number, process) in declared.processes.iter().enumerate() {
        if process.whole.program == PROGRAM && !is_served(number) {
            let title = format!("`{}` runs `{PROGRAM}` and has no adapter", process.name.value);
            let help = "declare an `[[adapter]]` whose device it uses, or whose pipe it reads or \
                        writes; or remove the process";
            report.push(Problem::new(&process.name.span, title, help));
        }
    }
}

fn unknown(declared: &Declared, adapter: &At<String>) -> Problem {
    let title = format!("`{}` is no adapter", adapter.value);
    let known = declared.adapters.iter().filter_map(|it| it.device.as_ref());
    let help = match nearest(&adapter.value, known.map(|device| device.value.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it: `[[adapter]]` with `device = \"{}\"`", adapter.value),
    };
    Problem::new(&adapter.span, title, help)
}

/// Returns the number of an adapter. A device with another name is reported.
fn called(device: &At<String>, report: &mut Report) -> Option<usize> {
    let number = number(device);
    if number.is_none() {
        let title = format!("`{}` cannot be the device of an adapter", device.value);
        let last = ADAPTER_NAMES[ADAPTERS - 1].device;
        let help = format!(
            "call the device `{}` to `{last}`: `{PROGRAM}` looks for these names",
            ADAPTER_NAMES[0].device
        );
        report.push(Problem::new(&device.span, title, help));
    }
    number
}

/// Reports a card that `netd` cannot drive, or does not.
fn driven(declared: &Declared, device: &At<String>, report: &mut Report) {
    let Some(number) = called(device, report) else { return };
    let Some(found) = declared.devices.iter().find(|it| it.name.value == device.value) else {
        let title = format!("no device is called `{}`", device.value);
        let help = "declare it: `[[device]]` with `pci = \"020000\"`, `vendor = \"8086:10d3\"`, \
                    `size = \"128K\"` and `irqs = 1`; or `[[usb]]` with `model = \"network\"`";
        return report.push(Problem::new(&device.span, title, help));
    };
    if !is_card(&found.what) {
        let title = format!("`{}` is no adapter that `{PROGRAM}` drives", device.value);
        let help = "write `pci = \"020000\"`, `vendor = \"8086:10d3\"` and `irqs = 1` in its \
                    `[[device]]`: an Intel 82574L";
        let problem = Problem::new(&device.span, title, help);
        return report.push(problem.with(&found.name.span, "the device"));
    }
    let Some(driver) = declared.driver(device).map(|driver| &declared.processes[driver]) else {
        let title = format!("nobody drives `{}`", device.value);
        let help = format!(
            "add a `[[process]]` with `program = \"{PROGRAM}\"` and `uses = [\"{}\", \"{}\"]`",
            device.value, ADAPTER_NAMES[number].vcpu
        );
        return report.push(Problem::new(&device.span, title, help));
    };
    if driver.whole.program != PROGRAM {
        let title =
            format!("`{}` uses `{}` and does not run `{PROGRAM}`", driver.name.value, device.value);
        let help = format!("write `program = \"{PROGRAM}\"`, or remove the `[[adapter]]`");
        return report.push(Problem::new(&device.span, title, help));
    }
    let other = driver.uses.iter().find(|used| {
        used.value != device.value && declared.adapters.iter().any(|it| it.is_of(&used.value))
    });
    if let Some(other) = other {
        let title = format!("`{}` has two adapters", driver.name.value);
        let help = "give each adapter a process of its own";
        report.push(Problem::new(&other.span, title, help));
    }
    let vcpu = ADAPTER_NAMES[number].vcpu;
    if !driver.uses.iter().any(|used| used.value == vcpu) {
        let title = format!("`{}` has no VCPU to receive on", driver.name.value);
        let help = format!("declare a `[[vcpu]]` named `{vcpu}` and add it to its `uses`");
        report.push(Problem::new(&device.span, title, help));
    }
}

fn is_card(device: &DeclaredDevice) -> bool {
    let (class, vendor, product) = ADAPTER;
    let DeclaredPlace::Pci(function) = &device.place else { return false };
    let function = &function.value;
    let is_one = (function.class, function.vendor, function.product) == (class, vendor, product);
    is_one && device.messages() == 1 && device.size >= 0x2_0000
}

/// Returns the adapters, as far as they are whole.
pub(crate) fn adapters(declared: &Declared) -> Vec<EthernetAdapter> {
    let whole = |adapter: &DeclaredAdapter| {
        let device = adapter.device.as_ref()?;
        let card = declared.devices.iter().position(|it| it.name.value == device.value);
        Some(EthernetAdapter {
            number: number(device)? as u8,
            device: match carried::whole(declared, device) {
                Some(usb) => AdapterDevice::Usb(usb),
                None => AdapterDevice::Card(card?),
            },
            driver: u16::try_from(declared.driver(device)?).ok()?,
            address: adapter.address,
            mac: adapter.mac,
            speed: adapter.speed,
            traffic: adapter.traffic,
            interval_ns: interval(declared, device),
            // Only the wires of a list of hosts say so.
            keeps_time: false,
        })
    };
    declared.adapters.iter().filter_map(whole).collect()
}

/// Returns the least distance of two interrupts of a device; 0 if the description does not say.
fn interval(declared: &Declared, device: &At<String>) -> u64 {
    let found = declared.devices.iter().find(|it| it.name.value == device.value);
    found.and_then(|found| found.what.interval(0)).unwrap_or(0)
}

/// Returns the sockets, as far as they are whole.
pub(crate) fn sockets(declared: &Declared) -> Vec<UdpPort> {
    let adapters = adapters(declared);
    let whole = |(number, socket): (usize, &DeclaredSocket)| {
        let card = self::number(socket.adapter.as_ref()?)?;
        Some(UdpPort {
            name: socket.name.value.clone(),
            number: u8::try_from(number).ok()?,
            adapter: adapters.iter().position(|it| usize::from(it.number) == card)?,
            process: u16::try_from(declared.process(&socket.process.as_ref()?.value)?).ok()?,
            port: u16::try_from(socket.port.value).ok()?,
            real_time: socket.real_time,
            priority: socket.priority,
            quota: u16::try_from(socket.quota.value).ok()?,
            bytes: socket.bytes,
            period_ns: socket.period.as_ref().map(|period| period.value),
            burst: socket.burst,
            work_ns: socket.work_ns,
            latency_ns: socket.latency.as_ref().map(|latency| latency.value),
            peer: socket.peer,
        })
    };
    declared.sockets.iter().enumerate().filter_map(whole).collect()
}

impl UdpPort {
    /// Returns whether it gets the frames that no other socket of its adapter wants.
    #[must_use]
    pub const fn is_rest(&self) -> bool {
        self.port == REST
    }

    /// Returns whether its program may send.
    #[must_use]
    pub const fn sends(&self) -> bool {
        self.peer.is_some() || self.is_rest()
    }

    /// Returns what `netd` and the program are told of it.
    fn terms(&self, adapter: &EthernetAdapter) -> SocketTerms {
        SocketTerms {
            name: Key::new(&self.name),
            number: self.number,
            adapter: adapter.number,
            real_time: self.real_time,
            priority: self.priority,
            port: self.port,
            address: adapter.address,
            mac: adapter.mac,
            quota: self.quota,
            bytes: u16::try_from(self.bytes).unwrap_or(u16::MAX),
            peer: self.peer,
            is_polled: adapter.card().is_none(),
        }
    }
}

/// Returns the part that a process has in the work of an adapter, if it has one.
fn part(system: &System, adapter: &EthernetAdapter, process: u16) -> Option<AdapterPart> {
    let is_driver = adapter.driver == process;
    match adapter.device {
        AdapterDevice::Card(_) => is_driver.then(|| AdapterPart::Card {
            moderation_ns: ethernet::moderation(adapter.interval_ns),
        }),
        AdapterDevice::Usb(_) if is_driver => Some(AdapterPart::Comes),
        AdapterDevice::Usb(usb) => {
            let (pipe, _) = usb.goes.filter(|(_, sender)| *sender == process)?;
            let pipe = system.pipes.get(pipe)?;
            let contract = pipe.contract();
            let messages = contract.messages.max(1).into();
            let (period_ns, bytes) = (contract.per.0.div_ceil(messages), pipe.shape.bytes as u16);
            Some(AdapterPart::Goes { period_ns, bytes })
        }
    }
}

/// Returns what a process is told of adapters and sockets.
pub(crate) fn settings(system: &System, process: u16) -> Vec<Setting> {
    let mut settings = Vec::new();
    let parts = system.adapters.iter().map(|adapter| part(system, adapter, process));
    let own = parts.enumerate().find_map(|(adapter, part)| Some((adapter, part?)));
    if let Some((adapter, part)) = own.map(|(adapter, part)| (&system.adapters[adapter], part)) {
        let terms = AdapterTerms { number: adapter.number, mac: adapter.mac, part };
        settings.push(Setting::new(ADAPTER_SETTING, &terms.words()));
    }
    let adapter = own.map(|(adapter, _)| adapter);
    let concerns = |socket: &&UdpPort| socket.process == process || Some(socket.adapter) == adapter;
    let sockets = system.sockets.iter().filter(concerns);
    let words = sockets.flat_map(|it| it.terms(&system.adapters[it.adapter]).words());
    let words: Vec<u64> = words.collect();
    if !words.is_empty() {
        settings.push(Setting::new(SOCKETS_SETTING, &words));
    }
    settings
}
