//! Settings of a process: what its program is told by name, in `[process.settings]`, by what
//! follows from the description, or by tools. They go into the program's image, where it has room.

use crate::carried::{PipeDirection, PipeSpec};
use crate::diagnostics::{Problem, Report};
use crate::ethernet;
use crate::plugged::{UsbBus, UsbPlug};
use crate::source::At;
use crate::suggest::nearest;
use crate::system::{ProcessSpec, Setting, System};
use crate::table::{Raw, Table};
use diapason_abi::elf::{Program, Segment};
use diapason_abi::pipe::{DRIFT, ENVELOPES, USUAL_DRIFT};
use diapason_abi::settings::{MARK, Settings, WORDS};
use diapason_bus::{Coding, Speed};
use diapason_contract::can::{self, CanInterface, INTERFACES};
use diapason_contract::carried::{CONTRACTS, Contracts};
use diapason_contract::disk;
use diapason_contract::endpoint;
use diapason_contract::link::ENABLE;
use diapason_contract::settings::{self as usbd, Values};
use diapason_contract::sink;
use diapason_contract::source::{LOOKS, MessageShape, PipeSource, READS, SHAPES, SOURCES};
use diapason_contract::threads::{Home, ServiceKind, homes};
use toml::de::DeValue;

/// Reads what is told to `program` in the table of a process.
pub(crate) fn read(process: &mut Table<'_, '_>, program: &str) -> Vec<Setting> {
    let Some(entry) = process.get("settings") else { return Vec::new() };
    let DeValue::Table(entries) = entry.get_ref() else {
        let help = "write `[process.settings]` below the process, and one `key = value` per line";
        process.report.push(Problem::new(&entry.span(), "`settings` is not a table", help));
        return Vec::new();
    };
    if program != usbd::PROGRAM {
        let title = format!("`{program}` takes no settings");
        let help = format!("remove them: `{}` is the program that does", usbd::PROGRAM);
        process.report.push(Problem::new(&entry.span(), title, help));
        return Vec::new();
    }
    let raw = Raw { entries, place: entry.span() };
    let mut table = Table::new("[process.settings]", "settings", raw, process.report);
    let all = usbd::SETTINGS.iter().filter_map(|known| one(&mut table, known));
    let all: Vec<(&str, Vec<At<u64>>)> = all.collect();
    table.report_unknown();
    check_critical(&all, process.report);
    let plain = |numbers: &[At<u64>]| -> Vec<u64> { numbers.iter().map(|n| n.value).collect() };
    all.iter().map(|(name, numbers)| Setting::new(name, &plain(numbers))).collect()
}

/// Checks that each critical stream is one of the streams.
fn check_critical(all: &[(&str, Vec<At<u64>>)], report: &mut Report) {
    let of = |name: &str| all.iter().find(|(known, _)| *known == name);
    let numbers = |name: &str| of(name).map_or(&[][..], |(_, numbers)| numbers);
    let count = numbers(usbd::STREAMS).len() as u64;
    for beyond in numbers(usbd::CRITICAL).iter().filter(|number| number.value >= count) {
        let title = format!("there is no stream {}", beyond.value);
        let help = match count.checked_sub(1) {
            None => "say in `streams` which cameras there are, or remove `critical`".to_owned(),
            Some(last) => format!("`streams` has {count}, counted from 0: write at most {last}"),
        };
        report.push(Problem::new(&beyond.span, title, help));
    }
}

/// Reads a known setting, and reports numbers and words that it cannot have.
pub(crate) fn one<'k>(
    table: &mut Table<'_, '_>,
    (name, values): &'k usbd::Known,
) -> Option<(&'k str, Vec<At<u64>>)> {
    let entry = table.get(name)?;
    let (span, count) = (entry.span(), entry.get_ref().as_array().map(|array| array.len()));
    let numbers: Vec<At<u64>> = match values {
        Values::Words(words) => {
            let example = format!("{name} = [\"{}\"]", words[0]);
            let given = table.texts(name, &example);
            given.iter().filter_map(|word| place(table, name, words, word)).collect()
        }
        Values::Numbers((least, most), _) => table.numbers(name, *least..=*most, ""),
        Values::Powers(most, _) => {
            let numbers = table.numbers(name, 1..=*most, ", a power of two");
            for odd in numbers.iter().filter(|number| !number.value.is_power_of_two()) {
                let title = format!("{} is no power of two", odd.value);
                let help = format!("write {}", odd.value.next_power_of_two());
                table.report.push(Problem::new(&odd.span, title, help));
            }
            numbers
        }
    };
    let (least, most) = match values {
        Values::Words(words) => (1, words.len()),
        Values::Numbers(_, counts) => *counts,
        Values::Powers(_, most) => (1, *most),
    };
    if let Some(count) = count.filter(|count| !(least..=most).contains(count)) {
        let title = format!("{count} numbers or words in `{name}`");
        let help = match least == most {
            true => format!("write {least}"),
            false => format!("write {least} to {most}"),
        };
        table.report.push(Problem::new(&span, title, help));
    }
    Some((name, numbers))
}

/// Returns the place of a word in a list.
fn place(
    table: &mut Table<'_, '_>,
    name: &str,
    words: &[&str],
    word: &At<String>,
) -> Option<At<u64>> {
    if let Some(place) = words.iter().position(|known| *known == word.value) {
        return Some(At::new(place as u64, word.span.clone()));
    }
    let help = match nearest(&word.value, words.iter().copied()) {
        Some(near) => format!("did you mean `\"{near}\"`?"),
        None => format!("it can be: {}", words.join(", ")),
    };
    let title = format!("`{name}` cannot be `{}`", word.value);
    table.report.push(Problem::new(&word.span, title, help));
    None
}

/// Returns the system whose programs are told what follows from its pipes, as they are now.
pub(crate) fn followed(system: &System) -> System {
    let mut told = system.clone();
    for (server, process) in (0u16..).zip(&mut told.processes) {
        let settings = of_server(system, server);
        let settings = settings.into_iter().chain(ethernet::settings(system, server));
        let settings = settings.chain(crate::can::settings(system, server));
        let settings = settings.chain(looks(system, server)).chain(reads(system, server));
        let own = &system.processes[usize::from(server)];
        let settings = settings.chain(crate::moded::settings(system, own));
        settings.for_each(|setting| process.set(&setting.name, &setting.numbers));
    }
    told
}

/// Returns the pipes for whose messages a process has to look, as a setting.
fn looks(system: &System, process: u16) -> Option<Setting> {
    let far = system.far.iter().filter(|pipe| pipe.process == process);
    let numbers: Vec<u64> = far.map(|pipe| pipe.number.into()).collect();
    (!numbers.is_empty()).then(|| Setting::new(LOOKS, &numbers))
}

/// Returns the sources that a process has pipes of, beyond the first of each kind, as a setting.
fn reads(system: &System, process: u16) -> Option<Setting> {
    let own = system.pipes.iter().filter(|pipe| pipe.ends_at(process)).map(|pipe| pipe.number);
    let far = system.far.iter().filter(|pipe| pipe.process == process).map(|pipe| pipe.number);
    let is_seated = |number: &u8| {
        let source = PipeSource::numbered(usize::from(*number));
        source.and_then(PipeSource::seat).is_some_and(|seat| seat > 0)
    };
    let numbers: Vec<u64> = own.chain(far).filter(is_seated).map(u64::from).collect();
    (!numbers.is_empty()).then(|| Setting::new(READS, &numbers))
}

fn of_server(system: &System, server: u16) -> Vec<Setting> {
    let mut settings = Vec::new();
    let pipes = || system.pipes.iter().filter(|pipe| pipe.server == server);
    let mut clients: Vec<u64> = system.processes[usize::from(server)]
        .settings
        .iter()
        .filter(|setting| setting.name == usbd::CLIENTS)
        .flat_map(|setting| setting.numbers.iter().copied())
        .collect();
    let is_channel = |pipe: &&PipeSpec| usize::from(pipe.number) < can::CHANNELS;
    let written = pipes().filter(is_channel).filter(|pipe| pipe.way == PipeDirection::ToDevice);
    clients.extend(written.map(|pipe| u64::from(pipe.number)));
    if !clients.is_empty() {
        settings.push(Setting::new(usbd::CLIENTS, &clients));
    }
    let process = &system.processes[usize::from(server)];
    let enables = process.program == usbd::PROGRAM && process.uses.iter().any(|it| it == ENABLE);
    if enables && process.setting(usbd::ORDER).is_empty() {
        let order = usbd::FormingOrder { enables, ..usbd::FormingOrder::default() };
        settings.push(Setting::new(usbd::ORDER, &order.words()));
    }
    let opens = opened(&system.processes[usize::from(server)]);
    if !opens.is_empty() {
        settings.push(Setting::new(usbd::OPENS, &opens));
    }
    settings.extend(of_interfaces(system, &system.processes[usize::from(server)]));
    let counted = counted(system, &system.processes[usize::from(server)]);
    if !counted.is_empty() {
        settings.push(Setting::new(usbd::BUSES, &counted));
    }
    let expected = expected(system, &system.processes[usize::from(server)]);
    if !expected.is_empty() {
        settings.push(Setting::new(usbd::DEVICES, &expected));
    }
    let contracts = contracts(pipes());
    if !contracts.are_none() {
        settings.push(Setting::new(CONTRACTS, &contracts.words()));
    }
    let is_server = system.processes[usize::from(server)].program == usbd::PROGRAM;
    let shapes = shapes(pipes().map(|pipe| (pipe.number.into(), pipe.shape)));
    if !shapes.is_empty() {
        settings.push(Setting::new(SHAPES, &shapes));
    }
    let mut asks = [disk::READ; usbd::MOST];
    for pipe in pipes().filter(|pipe| pipe.is_written() && pipe.has_blocks()) {
        if let Some(what) = pipe.source().and_then(|it| asks.get_mut(it.seat()?)) {
            *what = disk::WRITE;
        }
    }
    if let Some(last) = asks.iter().rposition(|what| *what == disk::WRITE) {
        let words: Vec<u64> = asks[..=last].iter().map(|what| (*what).into()).collect();
        settings.push(Setting::new(disk::PIPED, &words));
    }
    for pipe in pipes().filter(|pipe| pipe.endpoint != 0 && is_server) {
        let name = match pipe.way {
            PipeDirection::FromDevice => endpoint::NUMBER,
            PipeDirection::ToDevice => sink::NUMBER,
        };
        settings.push(Setting::new(name, &[pipe.endpoint.into()]));
    }
    if let Some(drift) = drift(system).filter(|_| is_server) {
        settings.push(Setting::new(DRIFT, &[drift]));
    }
    let places = system.tpipes.iter().filter(|tpipe| tpipe.server == server);
    let envelopes: Vec<u64> = places.flat_map(|tpipe| tpipe.envelope.words()).collect();
    if !envelopes.is_empty() {
        settings.push(Setting::new(ENVELOPES, &envelopes));
    }
    settings
}

impl System {
    /// Returns the CAN interfaces that a USB server serves, each by the number of its plug, in the
    /// order of their numbers.
    #[must_use]
    pub fn interfaces(&self, process: &ProcessSpec) -> Vec<(usize, CanInterface)> {
        let is_driven = |plug: &UsbPlug| {
            let controller = self.devices.get(plug.device);
            let driven = controller.is_some_and(|it| process.uses.contains(&it.name));
            driven && plug.model.is_can() && process.program == usbd::PROGRAM
        };
        let interface = |(number, plug): (usize, &UsbPlug)| {
            let first = u8::try_from(plug.first_channel).ok()?;
            Some((number, CanInterface { first, channels: plug.channels.try_into().ok()? }))
        };
        let plugs = self.usb.iter().enumerate();
        plugs.filter(|(_, plug)| is_driven(plug)).filter_map(interface).collect()
    }

    /// Returns the bottom halves of the USB server with this number, in the order of their
    /// interrupters. Its pipes and its devices say how many there are of a kind.
    #[must_use]
    pub fn bottom_halves(&self, server: u16) -> Vec<&'static Home> {
        let Some(process) = self.processes.get(usize::from(server)) else { return Vec::new() };
        let told = of_server(self, server);
        let of = |name: &str| told.iter().find(|setting| setting.name == name);
        let setting = |name: &str| of(name).map_or(process.setting(name), |it| &it.numbers);
        homes(&setting).collect()
    }

    /// Returns the cameras that a USB server with pipes from cameras or with streams serves, by the
    /// numbers of their plugs. Camera n of the list has seat n. The first seats are those of the
    /// cameras with pipes, or of the first camera if a client watches it without one, and the
    /// streams follow. Any other server takes the camera that comes first, and has an empty list.
    #[must_use]
    pub fn bound_cameras(&self, process: &ProcessSpec) -> Vec<usize> {
        let is_driven = |number: &usize| {
            let controller = self.devices.get(self.usb[*number].device);
            controller.is_some_and(|controller| process.uses.contains(&controller.name))
        };
        let is_camera = |number: &usize| self.service_of(*number) == Some(ServiceKind::Cameras);
        let all = (0..self.usb.len()).filter(|_| process.program == usbd::PROGRAM);
        let all = all.filter(is_driven).filter(is_camera);
        let (mut cameras, others): (Vec<usize>, Vec<usize>) =
            all.partition(|number| self.has_pipe(*number));
        if cameras.is_empty() && process.setting(usbd::STREAMS).is_empty() {
            return Vec::new();
        }
        cameras.extend(others);
        cameras
    }

    /// Returns whether a pipe comes from the USB device with this number, or goes to it.
    pub(crate) fn has_pipe(&self, usb: usize) -> bool {
        self.pipes.iter().any(|pipe| pipe.usb == usb)
    }

    /// Returns the service for the USB device with this number: that of its pipes, if it has pipes
    /// of another service than that for its model.
    #[must_use]
    pub fn service_of(&self, usb: usize) -> Option<ServiceKind> {
        let pipes = self.pipes.iter().filter(|pipe| pipe.usb == usb);
        let kinds = pipes.filter_map(PipeSpec::source).map(|source| source.kind);
        kinds.reduce(ServiceKind::with).or(self.usb.get(usb)?.model.service())
    }

    /// Returns where a device is plugged in, as a USB server says it: the connector of the
    /// controller, and the hub ports on the way, the first in the lowest four bits.
    #[must_use]
    pub fn place_of(&self, plug: &UsbPlug) -> (u8, u32) {
        let above = |at: &&UsbPlug| at.behind.and_then(|hub| self.usb.get(hub));
        let mut ports: Vec<u8> =
            std::iter::successors(Some(plug), above).map(|at| at.port).collect();
        let connector = ports.pop().unwrap_or_default();
        (connector, ports.iter().fold(0, |route, port| route << 4 | u32::from(*port)))
    }
}

/// Returns the devices that a USB server is to serve: each kind is known by where the description
/// has it.
fn expected(system: &System, process: &ProcessSpec) -> Vec<u64> {
    if process.program != usbd::PROGRAM {
        return Vec::new();
    }
    let interfaces = system.interfaces(process);
    let cameras = system.bound_cameras(process);
    let of = |(number, plug): (usize, &UsbPlug)| {
        let seat = || system.pipes.iter().find(|pipe| pipe.usb == number)?.source()?.seat();
        let bound = interfaces.iter().map(|(plug, _)| plug).position(|plug| *plug == number);
        let bound = bound.or_else(|| cameras.iter().position(|plug| *plug == number));
        let bound = bound.or_else(seat);
        let interface = bound.unwrap_or(0).min(usbd::INTERFACES_MAX - 1) as u8;
        let controller = system.devices.get(plug.device)?;
        let service = system.service_of(number)?;
        process.uses.contains(&controller.name).then_some(())?;
        let (connector, route) = system.place_of(plug);
        let serial = plug.serial.as_deref().map_or(0, usbd::Expected::key);
        let identity = plug.identity;
        let expected = usbd::Expected { service, interface, connector, route, identity, serial };
        Some(expected.words())
    };
    system.usb.iter().enumerate().filter_map(of).flatten().collect()
}

/// Returns the declared buses of the controller that a USB server drives.
fn counted(system: &System, process: &ProcessSpec) -> Vec<u64> {
    let drives = |bus: &&UsbBus| {
        let controller = system.devices.get(bus.device);
        process.program == usbd::PROGRAM
            && controller.is_some_and(|controller| process.uses.contains(&controller.name))
    };
    let of = |bus: &UsbBus| {
        let UsbBus { bus, control, .. } = bus;
        let speed = match bus.speed {
            Speed::Low => 0,
            Speed::Full => 1,
            Speed::High => 2,
            Speed::Super => 3,
        };
        let coded = bus.coding == Coding::EightTen;
        let periodic_percent = bus.periodic_percent as u8;
        usbd::Counted { speed, coded, periodic_percent, control: *control }.word()
    };
    system.buses.iter().filter(drives).map(of).collect()
}

/// Returns what a USB server is told of its CAN interfaces, if the description has any.
fn of_interfaces(system: &System, process: &ProcessSpec) -> Vec<Setting> {
    let interfaces = system.interfaces(process);
    let Some((_, last)) = interfaces.last() else { return Vec::new() };
    let (mut rates, mut points) = (vec![u64::from(can::BIT_RATE); last.numbers().end], Vec::new());
    let mut data_rates = vec![0; last.numbers().end];
    for (plug, interface) in &interfaces {
        let plug = &system.usb[*plug];
        for (number, rate) in interface.numbers().zip(plug.bit_rates) {
            rates[number] = rate.into();
        }
        for (number, rate) in interface.numbers().zip(plug.data_rates) {
            data_rates[number] = rate.into();
        }
        points.push(plug.sample_point.into());
    }
    let restarts: Vec<u64> =
        interfaces.iter().map(|(plug, _)| system.usb[*plug].restart_ns.unwrap_or(0)).collect();
    let restarts = restarts.iter().any(|time| *time > 0).then_some((usbd::RESTART, restarts));
    let has_fd = data_rates.iter().any(|rate| *rate > 0);
    let data_rates = has_fd.then_some((usbd::DATA_RATES, data_rates));
    let words: Vec<u64> = interfaces.iter().map(|(_, interface)| interface.word()).collect();
    let usual = words == [CanInterface::USUAL.word()];
    let told = [(usbd::BIT_RATES, rates), (usbd::SAMPLE_POINT, points)];
    let further = (!usual).then_some((INTERFACES, words));
    told.into_iter()
        .chain(data_rates)
        .chain(restarts)
        .chain(further)
        .map(|(name, all)| Setting::new(name, &all))
        .collect()
}

/// Returns the drift of devices' clocks, if it is not the usual.
fn drift(system: &System) -> Option<u64> {
    let sources = system.usb.iter().filter(|plug| plug.model.carries());
    let most = sources.map(|plug| plug.drift).max()?;
    (most != USUAL_DRIFT).then_some(most.into())
}

/// Returns the channels whose pipes a process may use, if it is a USB server.
fn opened(process: &ProcessSpec) -> Vec<u64> {
    if process.program != usbd::PROGRAM {
        return Vec::new();
    }
    let uses = |name: &str| process.uses.iter().any(|used| used == name);
    let channels = (0..can::CHANNELS as u64).zip((0..).map_while(can::names));
    let opens = |names: &can::ChannelNames| uses(names.arrivals) || uses(names.fd_arrivals);
    channels.filter(|(_, names)| opens(names)).map(|(channel, _)| channel).collect()
}

/// Returns what the pipes from a device, and to any endpoint, carry at most: the server measures
/// what comes.
fn contracts<'p>(pipes: impl Iterator<Item = &'p PipeSpec>) -> Contracts {
    let mut contracts = Contracts::default();
    let is_measured = |pipe: &&PipeSpec| {
        pipe.way == PipeDirection::FromDevice || usize::from(pipe.number) >= can::CHANNELS
    };
    for pipe in pipes.filter(is_measured) {
        if let Some(contract) = contracts.0.get_mut(usize::from(pipe.number)) {
            *contract = Some(pipe.contract());
        }
    }
    contracts
}

/// Returns the shapes of the messages of sources, up to the last one with a pipe, from the number
/// and the shape of each pipe.
pub(crate) fn shapes(pipes: impl Iterator<Item = (usize, MessageShape)>) -> Vec<u64> {
    let mut shapes = [0; SOURCES.len()];
    for (number, shape) in pipes {
        let place = number.checked_sub(can::CHANNELS);
        if let Some(word) = place.and_then(|place| shapes.get_mut(place)) {
            *word = shape.word();
        }
    }
    let length = shapes.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    shapes[..length].to_vec()
}

/// Writes the settings of `process` into the image of its program.
///
/// # Errors
/// It has no room for them: what is wrong, and the remedy.
pub(crate) fn write(image: &mut [u8], process: &ProcessSpec) -> Result<(), (String, &'static str)> {
    if process.settings.is_empty() {
        return Ok(());
    }
    let mut all = Settings::NONE;
    for Setting { name, numbers } in &process.settings {
        all.put(name, numbers).map_err(|_| {
            let title = format!("`{}` has more settings than its program can hold", process.name);
            (title, "declare fewer pipes for it")
        })?;
    }
    let room = room(image).ok_or_else(|| {
        let title =
            format!("`{}` takes no settings, but `{}` has some", process.program, process.name);
        (title, "use a program that serves pipes, or build it again with the tools of this system")
    })?;
    for (place, word) in room.chunks_exact_mut(8).zip(all.words()) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Ok(())
}

/// Where the header of an image says at which address it has room for settings.
const ROOM: usize = 56;

/// Returns the room for settings in an image, if it has one: where the header says, and behind the
/// mark.
fn room(image: &mut [u8]) -> Option<&mut [u8]> {
    let program = Program::parse(image).ok()?;
    let header = program.segments().find(|segment| segment.address == 0)?;
    let address = program.bytes(&header).get(ROOM..)?.first_chunk::<4>()?;
    let address = u64::from(u32::from_le_bytes(*address));
    let inside = |part: &Segment| (part.address..part.address + part.file_size).contains(&address);
    let part = program.segments().find(inside)?;
    let start = usize::try_from(part.offset + address - part.address).ok()?;
    let (mark, room) = image.get_mut(start..)?.split_at_mut_checked(8 * MARK.len())?;
    let (mark, _) = mark.as_chunks::<8>();
    let is_marked = mark.iter().map(|word| u64::from_le_bytes(*word)).eq(MARK);
    room.get_mut(..8 * WORDS).filter(|_| is_marked)
}
