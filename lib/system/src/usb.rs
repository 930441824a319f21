//! `[[usb]]` and `[[work]]`: what stands around a host, and how long what its programs do takes.
//!
//! Neither reaches the boot archive. A USB device is plugged into the simulated controller or,
//! behind QEMU, into its controller; a work takes its time in the simulator, where nothing else
//! would.

mod fd;
mod real;

use crate::carried::PipeDirection;
use crate::declared::{Declared, DeclaredPlace, DeclaredUsb, DeclaredWork};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::limits::{HUBS, XHCI};
use crate::plugged::{CanTraffic, PluggedCanBus, UsbModel};
use crate::shorthand;
use crate::source::{At, Span};
use crate::table::{Raw, Table};
use crate::works;
use diapason_abi::pipe::USUAL_DRIFT;
use diapason_contract::can;
use diapason_contract::source::PipeSource;
use diapason_contract::threads::ServiceKind;
use std::ops::RangeInclusive;

/// Most ports of a controller.
const PORTS: u64 = 15;
/// Bit rates of CAN buses.
const BIT_RATES: RangeInclusive<u64> = 10_000..=1_000_000;
/// Rates of the data of CAN FD; 0 of a channel without it.
const DATA_RATES: RangeInclusive<u64> = 0..=8_000_000;
/// Most frames a second on a bus: more than the shortest frames at the highest rate are.
const TRAFFIC: u64 = 22_000;
/// Bits of a frame with eight bytes and no stuff bit: standard, and extended.
const NUMBERED_BITS: [u64; 2] = [111, 131];
/// Longest time of a node between two frames.
const GAP_MAX: u64 = 1_000_000_000;
/// Possible sample points, in tenths of a per cent.
const SAMPLE_POINTS: RangeInclusive<u64> = 500..=950;
/// Times after which a channel that went bus-off is opened again: 1 ms to an hour.
const RESTARTS: RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;
/// Latest time that a clock shows at first, in ns: 400 days.
const CLOCK_AT_MAX: u64 = 400 * 86_400 * 1_000_000_000;
/// Largest drift of a device's clock, in millionths: far beyond any crystal.
const DRIFT_MAX: u64 = 10_000;
const WORK_MAX: u64 = 1_000_000_000_000;

pub(crate) fn usb(raw: Raw<'_>, report: &mut Report) -> DeclaredUsb {
    let mut table = Table::new("[[usb]]", "USB device", raw, report);
    let name = keys::name(&mut table);
    let on = table.text("on", "on = \"xhci\"");
    let behind = table.text("behind", "behind = \"hub\"");
    if on.is_none() && behind.is_none() {
        table.needs("on", "add `on = \"xhci\"`, the `[[device]]` it is plugged into");
    }
    let port = table.number("port", 1..=PORTS, ", of the controller or the hub; 1 is the first");
    let traffic = table.numbers("traffic", 0..=TRAFFIC, " frames a second, one for each channel");
    let extended = table.texts("extended", "extended = [\"can1\"]");
    let receivers = table.texts("receivers", "receivers = [\"can3\"]");
    let turn = table.durations("turn", 1..=GAP_MAX);
    let senders = table.texts("senders", "senders = [\"can3\"]");
    let gap = table.durations("gap", 1..=GAP_MAX);
    let takes = table.duration("takes", 1..=GAP_MAX);
    let replay = table.texts("replay", "replay = [\"can0=traffic.log\"]");
    let vendor = table.number("vendor", 1..=0xffff, ", as the device says it");
    let product = table.number("product", 1..=0xffff, ", as the device says it");
    let words = "a serial number: 1 to 126 printable characters of ASCII";
    let serial = table.parsed("serial", words, "serial = \"000000000001\"", serial);
    let channels = table.number("channels", 1..=can::EACH as u64, " CAN channels");
    let bit_rates = table.numbers("bit_rates", BIT_RATES, " bit/s, one for each channel");
    let data_rates =
        table.numbers("data_rates", DATA_RATES, " bit/s, one for each channel; 0 is classic CAN");
    let sample_point = table.number("sample_point", SAMPLE_POINTS, ", tenths of a per cent");
    let restart = table.duration("restart", RESTARTS);
    let models = UsbModel::ALL.iter().map(|m| (m.name(), (*m, None)));
    let models: Vec<(&str, real::Named)> = models.collect();
    let model = table.choice_or("model", &models, "", real::named);
    table.needs("model", "add `model = \"usb-can\"`, or another device there is a model of");
    let unit = " millionths, by which its clock and the host's run apart at most";
    let drift = table.number("drift", 1..=DRIFT_MAX, unit);
    let clock_at = table.duration("clock_at", 0..=CLOCK_AT_MAX);
    table.report_unknown();
    let port = port.unwrap_or_else(|| At::new(1, name.span.clone()));
    let adapter = model.as_ref().and_then(|at| Some(At::new(at.value.1?, at.span.clone())));
    let model = model.map(|at| at.value.0);
    DeclaredUsb {
        name,
        on,
        behind,
        port,
        model,
        adapter,
        traffic,
        extended,
        receivers,
        turn,
        senders,
        gap,
        takes,
        replay,
        vendor,
        product,
        serial,
        channels,
        first_channel: 0,
        seat: 0,
        bit_rates,
        data_rates,
        sample_point,
        restart,
        drift,
        clock_at,
    }
}

/// Returns a text that a device can have as its serial number.
fn serial(text: &str) -> Option<String> {
    let is_printable = |c: char| c.is_ascii_graphic() || c == ' ';
    let fits = (1..=126).contains(&text.len()) && text.chars().all(is_printable);
    fits.then(|| text.to_owned())
}

/// Returns how many CAN channels a device has.
pub(crate) fn channels(usb: &DeclaredUsb) -> usize {
    let most = usb.model.map_or(0, UsbModel::most_channels);
    let told = usb.channels.as_ref().and_then(|at| usize::try_from(at.value).ok());
    told.unwrap_or(usb.model.map_or(0, UsbModel::usual_channels)).min(most)
}

/// Numbers the CAN channels of the host, and the devices with pipes of each kind of which a server
/// serves several: those of the first device in the text come first.
pub(crate) fn number(declared: &mut Declared) {
    let (mut first, mut seats) = (0, Vec::new());
    for usb in &mut declared.usb {
        usb.first_channel = first;
        first += channels(usb);
        let is_own = |end: &At<String>| end.value == usb.name.value;
        let has_pipe = declared.pipes.iter().any(|pipe| pipe.usb.as_ref().is_some_and(is_own));
        let kind =
            usb.model.and_then(UsbModel::service).filter(|kind| has_pipe && kind.has_seats());
        if let Some(kind) = kind {
            usb.seat = seats.iter().filter(|other| **other == kind).count();
            seats.push(kind);
        }
    }
}

impl DeclaredUsb {
    /// Returns the source of pipes, or the sink, that it is to a pipe of this direction, and the
    /// number of that pipe. There is none if all seats of its server for such devices are taken.
    pub(crate) fn source(&self, way: PipeDirection) -> Option<(usize, &'static PipeSource)> {
        let first = self.model?.source(way)?;
        if self.seat == 0 { Some(first) } else { PipeSource::seated(first.1.kind, self.seat) }
    }
}

/// Reports the first interface whose channels are too many.
fn too_many(declared: &Declared, report: &mut Report) {
    let end = |usb: &&DeclaredUsb| usb.first_channel + channels(usb) > can::CHANNELS;
    if let Some(usb) = declared.usb.iter().find(end) {
        let all: usize = declared.usb.iter().map(channels).sum();
        let title = format!("{all} CAN channels, the most of a host is {}", can::CHANNELS);
        let help = "write fewer `channels`, or remove an interface";
        let problem = Problem::new(&usb.name.span, title, help).label("the first too many");
        report.push(with_channels(usb, problem));
    }
}

/// Returns the names of the first and of the last channel of an interface.
fn ends(usb: &DeclaredUsb) -> [&'static str; 2] {
    let name =
        |channel: usize| can::names(usb.first_channel + channel).map_or("", |names| names.arrivals);
    [name(0), name(channels(usb).saturating_sub(1))]
}

/// Returns how many channels an interface has, in words.
fn counted(channels: usize) -> String {
    format!("{channels} channel{}", if channels == 1 { "" } else { "s" })
}

/// Adds to a problem where the description says how many channels an interface has.
pub(crate) fn with_channels(usb: &DeclaredUsb, problem: Problem) -> Problem {
    match &usb.channels {
        Some(at) => problem.with(&at.span, "its channels"),
        None => problem,
    }
}

/// Returns the number of the CAN channel of this name, if the interface has it.
fn channel(usb: &DeclaredUsb, text: &str) -> Option<usize> {
    let is_called = |channel: &usize| {
        can::names(usb.first_channel + channel).is_some_and(|names| names.arrivals == text)
    };
    (0..channels(usb)).find(is_called)
}

/// Returns the bus that an entry of `replay` describes.
fn replayed(usb: &DeclaredUsb, entry: &str) -> Option<PluggedCanBus> {
    let (name, file) = entry.split_once('=')?;
    let traffic = CanTraffic::Replay { file: file.into(), log: String::new() };
    let channel = channel(usb, name).filter(|_| !file.is_empty())?;
    Some(PluggedCanBus { channel, traffic })
}

/// Returns the nodes on the buses, each with its place in the text; what is wrong is left out.
fn described(usb: &DeclaredUsb) -> Vec<(&Span, PluggedCanBus)> {
    let rates = bit_rates(usb);
    let units = |names: &'_ [At<String>], traffic: &dyn Fn(u32) -> CanTraffic| {
        let unit = |at: &At<String>| {
            let channel = channel(usb, &at.value)?;
            Some(PluggedCanBus { channel, traffic: traffic(rates[channel]) })
        };
        names.iter().map(unit).collect::<Vec<_>>()
    };
    let shortest = |rate: u32| can::FRAME_BITS.0 * 1_000_000_000 / u64::from(rate);
    let turn = |rate| {
        let turn_ns = times(&usb.turn).unwrap_or((shortest(rate), shortest(rate)));
        CanTraffic::Receiver { turn_ns }
    };
    let gap = |_| CanTraffic::Sender { gap_ns: times(&usb.gap).unwrap_or((GAP_MAX, GAP_MAX)) };
    let receivers = usb.receivers.iter().zip(units(&usb.receivers, &turn));
    let senders = usb.senders.iter().zip(units(&usb.senders, &gap));
    let logs = usb.replay.iter().map(|at| (at, replayed(usb, &at.value)));
    let named = receivers.chain(senders).chain(logs);
    let named = named.filter_map(|(at, bus)| Some((&at.span, bus?)));
    let is_extended = |channel: usize| {
        usb.extended.iter().any(|name| self::channel(usb, &name.value) == Some(channel))
    };
    let numbered =
        usb.traffic.iter().take(channels(usb)).enumerate().filter(|(_, at)| at.value > 0);
    let numbered = numbered.map(|(channel, at)| {
        let (per_second, extended) = (at.value as u32, is_extended(channel));
        (
            &at.span,
            PluggedCanBus { channel, traffic: CanTraffic::Numbered { per_second, extended } },
        )
    });
    named.chain(numbered).collect()
}

/// Returns the shortest and the longest of one time or two.
fn times(times: &[At<u64>]) -> Option<(u64, u64)> {
    Some((times.first()?.value, times.last()?.value))
}

/// Returns vendor and product of a device; 0 is any.
pub(crate) fn identity(usb: &DeclaredUsb) -> (u16, u16) {
    if let Some(adapter) = &usb.adapter {
        return adapter.value;
    }
    let number =
        |at: &Option<At<u64>>| at.as_ref().and_then(|at| u16::try_from(at.value).ok()).unwrap_or(0);
    (number(&usb.vendor), number(&usb.product))
}

/// Returns the bit rates of all channels.
pub(crate) fn bit_rates(usb: &DeclaredUsb) -> [u32; can::EACH] {
    let told = |channel: usize| u32::try_from(usb.bit_rates.get(channel)?.value).ok();
    std::array::from_fn(|channel| told(channel).unwrap_or(can::BIT_RATE))
}

/// Returns the rates of the data of CAN FD of all channels; 0 of classic ones.
pub(crate) fn data_rates(usb: &DeclaredUsb) -> [u32; can::EACH] {
    let told = |channel: usize| u32::try_from(usb.data_rates.get(channel)?.value).ok();
    std::array::from_fn(|channel| told(channel).unwrap_or(0))
}

/// Returns whether a channel of the host has CAN FD, if `usb` has that channel.
pub(crate) fn has_fd(usb: &DeclaredUsb, number: usize) -> bool {
    let channel = number.checked_sub(usb.first_channel);
    channel.and_then(|at| usb.data_rates.get(at)).is_some_and(|rate| rate.value > 0)
}

/// Returns the sample point of an interface.
pub(crate) fn sample_point(usb: &DeclaredUsb) -> u16 {
    let told = usb.sample_point.as_ref().and_then(|at| u16::try_from(at.value).ok());
    told.unwrap_or(can::SAMPLE_POINT)
}

/// Returns the buses of a checked device.
pub(crate) fn buses(usb: &DeclaredUsb) -> Vec<PluggedCanBus> {
    described(usb).into_iter().map(|(_, bus)| bus).collect()
}

/// Returns whether a description says how often a device of this model has a message.
fn is_paced(model: UsbModel) -> bool {
    use UsbModel::{Instrument, Network, Sensor, Servo};
    matches!(model, Sensor | Instrument | Servo | Network)
}

/// Returns the time from one message of a checked device to the next, in ns, if it is said.
pub(crate) fn pace(usb: &DeclaredUsb) -> Option<u64> {
    usb.model.filter(|model| is_paced(*model))?;
    usb.gap.first().map(|gap| gap.value)
}

/// Returns by how many millionths the clock of a checked device and the host's run apart at most.
pub(crate) fn drift(usb: &DeclaredUsb) -> u32 {
    let drift = usb.drift.as_ref().and_then(|drift| u32::try_from(drift.value).ok());
    drift.unwrap_or(USUAL_DRIFT)
}

/// Checks what the description says that a device says of itself.
fn check_identity(usb: &DeclaredUsb, report: &mut Report) {
    if let (None, Some(product)) = (&usb.vendor, &usb.product) {
        let help = "add `vendor = …`: products are numbered by each vendor";
        report.push(Problem::new(&product.span, "a product of no vendor", help));
    }
    let vendor = usb.vendor.as_ref().map(|vendor| &vendor.span);
    let first = vendor.or(usb.serial.as_ref().map(|serial| &serial.span));
    if let Some(first) = first.filter(|_| usb.model.is_some_and(UsbModel::is_hub)) {
        let help = "any hub is served: remove the key, and say it of the devices behind it";
        report.push(Problem::new(first, "a hub that nobody would check", help));
    }
}

/// Checks that an actuator, a servo drive or a network device whose time is stated has a pipe to
/// it. Without one nothing holds it to that time.
fn check_written(declared: &Declared, usb: &DeclaredUsb, report: &mut Report) {
    let Some(takes) = &usb.takes else { return };
    let of_it = |pipe: &At<String>| pipe.value == usb.name.value;
    let mut written = declared.pipes.iter().filter(|pipe| pipe.is_to_device());
    let has_pipe = written.any(|pipe| pipe.usb.as_ref().is_some_and(of_it));
    if usb.model.is_some_and(takes_packets) && !has_pipe {
        let title = format!("nothing is written to `{}`, so nothing checks this", usb.name.value);
        let help = "remove the key, or add a `[[pipe]]` to the device";
        report.push(Problem::new(&takes.span, title, help));
    }
}

/// Returns whether pipes to a device of this model carry packets or frames to one of its endpoints.
fn takes_packets(model: UsbModel) -> bool {
    let kinds = [ServiceKind::Sinks, ServiceKind::Pairs, ServiceKind::Networks];
    model.service().is_some_and(|kind| kinds.contains(&kind)) && !model.only_in_qemu()
}

fn check_buses(usb: &DeclaredUsb, report: &mut Report) {
    let is_other = usb.model.is_some_and(|model| !model.is_can());
    let is_mute = usb.model.is_some_and(|model| !model.tells_time());
    if let Some(drift) = usb.drift.as_ref().filter(|_| is_mute) {
        let help = "only messages that pipes carry bear times: remove the key";
        report.push(Problem::new(&drift.span, "a device whose clock nobody reads", help));
    }
    let is_disk = usb.model.and_then(UsbModel::service) == Some(ServiceKind::Disks);
    let is_asked = is_disk || usb.model.is_some_and(takes_packets);
    if let Some(takes) = usb.takes.as_ref().filter(|_| usb.model.is_some() && !is_asked) {
        let help = "remove the key: it is the longest time that a disk takes for a command, or \
                    that an endpoint takes before it accepts a packet";
        report.push(Problem::new(&takes.span, "a device without commands", help));
    }
    let channels = || usb.receivers.iter().chain(&usb.senders).chain(&usb.extended);
    let texts = channels().chain(&usb.replay).map(|at| &at.span);
    let numbers = usb.channels.iter().chain(&usb.bit_rates).chain(&usb.sample_point);
    let numbers = numbers.chain(&usb.data_rates);
    let numbers = numbers.chain(&usb.traffic).chain(&usb.restart).chain(&usb.clock_at);
    let paced = usb.model.is_some_and(is_paced);
    let gaps = usb.gap.iter().skip(usize::from(paced));
    let numbers = numbers.chain(&usb.turn).chain(gaps).map(|at| &at.span);
    let first = texts.chain(numbers).next();
    if let Some(first) = first
        && is_other
    {
        let help = "only `\"usb-can\"` and `\"gs-usb\"` have CAN buses: remove the key, or take \
                    such a model";
        report.push(Problem::new(first, "a device without CAN buses", help));
    }
    if is_other {
        return;
    }
    let has = self::channels(usb);
    if let Some(extra) = usb.bit_rates.get(has) {
        let title = format!("{} bit rates for {}", usb.bit_rates.len(), counted(has));
        report.push(with_channels(usb, Problem::new(&extra.span, title, "remove those too many")));
    }
    fd::check(usb, has, report);
    real::check(usb, report);
    check_nodes(usb, report);
    for name in channels().filter(|name| channel(usb, &name.value).is_none()) {
        let title = format!("`{}` is no channel of `{}`", name.value, usb.name.value);
        let [first, last] = ends(usb);
        let help = match has {
            1 => format!("write `\"{first}\"`"),
            _ => format!("write `\"{first}\"` to `\"{last}\"`"),
        };
        report.push(with_channels(usb, Problem::new(&name.span, title, help)));
    }
    for entry in usb.replay.iter().filter(|entry| replayed(usb, &entry.value).is_none()) {
        let title = format!("`{}` is no channel of `{}` and its log", entry.value, usb.name.value);
        let [first, last] = ends(usb);
        let help = match has {
            1 => format!("write `\"{first}=traffic.log\"`"),
            _ => format!("write `\"{first}=traffic.log\"`, or a channel up to {last}"),
        };
        report.push(with_channels(usb, Problem::new(&entry.span, title, help)));
    }
    let described = described(usb);
    for (index, (place, bus)) in described.iter().enumerate() {
        let mut before = described[..index].iter();
        if let Some((first, _)) = before.find(|(_, other)| other.channel == bus.channel) {
            let number = usb.first_channel + bus.channel;
            let title = format!("the bus of can{number} is described twice");
            let problem = Problem::new(place, title, "remove one of the two");
            report.push(problem.with(first, "first here"));
        }
    }
}

/// Reports times and loads that no node of a bus can have.
fn check_nodes(usb: &DeclaredUsb, report: &mut Report) {
    let lists = [
        ("turn", &usb.turn, "receivers", &usb.receivers),
        ("gap", &usb.gap, "senders", &usb.senders),
    ];
    for (key, times, of, nodes) in lists {
        let Some((first, last)) = times.first().zip(times.last()) else { continue };
        if nodes.is_empty() {
            let help = format!("add `{of} = [\"can3\"]`, or remove the key");
            report.push(Problem::new(&first.span, format!("`{key}` without `{of}`"), help));
        }
        if times.len() > 2 || first.value > last.value {
            let help = format!("write `{key} = [\"325us\", \"328us\"]`, or one time");
            let title = format!("`{key}` is no shortest and longest time");
            report.push(Problem::new(&last.span, title, help));
        }
    }
    if let (Some(sender), None) = (usb.senders.first(), usb.gap.first()) {
        let help =
            "add `gap = [\"9ms\", \"11ms\"]`, the shortest and the longest time between frames";
        report.push(Problem::new(&sender.span, "senders that send nobody knows how often", help));
    }
    let has = channels(usb);
    if let Some(extra) = usb.traffic.get(has) {
        let title = format!("traffic on {} buses of {}", usb.traffic.len(), counted(has));
        report.push(with_channels(usb, Problem::new(&extra.span, title, "remove those too many")));
    }
    let rates = bit_rates(usb);
    for (place, bus) in described(usb) {
        let CanTraffic::Numbered { per_second, extended } = bus.traffic else { continue };
        let rate = rates[bus.channel];
        let most = u64::from(rate) / NUMBERED_BITS[usize::from(extended)];
        if u64::from(per_second) > most {
            let number = usb.first_channel + bus.channel;
            let title = format!("can{number} carries {per_second} frames a second of {most}");
            let help = format!("at {rate} bit/s write at most {most}, or raise `bit_rates`");
            report.push(Problem::new(place, title, help));
        }
    }
}

pub(crate) fn work(raw: Raw<'_>, report: &mut Report) -> DeclaredWork {
    let mut table = Table::new("[[work]]", "work", raw, report);
    let name = table.text("name", "name = \"engine.control\"");
    table.needs("name", "add `name = \"…\"`, what the program calls it");
    let worst = table.duration("worst", 1..=WORK_MAX);
    table.needs("worst", "add `worst = \"300us\"`, the longest it takes");
    let best = table.duration("best", 0..=WORK_MAX);
    table.report_unknown();
    let place = table.place();
    let worst = worst.unwrap_or_else(|| At::new(0, place));
    let best = best.unwrap_or_else(|| worst.clone());
    DeclaredWork { name, best, worst }
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    too_many(declared, report);
    for (index, usb) in declared.usb.iter().enumerate() {
        if let Some(on) = &usb.on {
            controller(declared, on, report);
        }
        hub(declared, usb, report);
        check_identity(usb, report);
        check_buses(usb, report);
        check_written(declared, usb, report);
        let same = |other: &&DeclaredUsb| {
            let place = |usb: &DeclaredUsb| {
                let name = |at: &Option<At<String>>| at.as_ref().map(|at| at.value.clone());
                (name(&usb.on), name(&usb.behind), usb.port.value)
            };
            place(other) == place(usb)
        };
        if let Some(first) = declared.usb[..index].iter().find(same) {
            let title = format!("port {} has two devices", usb.port.value);
            let problem = Problem::new(&usb.port.span, title, "give each a `port` of its own");
            report.push(problem.with(&first.name.span, "the first"));
        }
    }
    for (index, work) in declared.works.iter().enumerate() {
        if work.best.value > work.worst.value {
            let title = "the best case is worse than the worst";
            report.push(Problem::new(&work.best.span, title, "write a `best` of at most `worst`"));
        }
        let Some(name) = &work.name else { continue };
        works::check(name, report);
        let named = |other: &&DeclaredWork| {
            other.name.as_ref().is_some_and(|other| other.value == name.value)
        };
        if let Some(Some(first)) = declared.works[..index].iter().find(named).map(|w| &w.name) {
            let title = format!("the work `{}` is declared twice", name.value);
            let problem = Problem::new(&name.span, title, "remove one of the two");
            report.push(problem.with(&first.span, "first here"));
        }
    }
}

/// The hub it is plugged into must be one, and lead to a controller.
fn hub(declared: &Declared, usb: &DeclaredUsb, report: &mut Report) {
    let Some(behind) = &usb.behind else { return };
    if let Some(on) = &usb.on {
        let title = "a device is on a controller or behind a hub, not both";
        let problem = Problem::new(&behind.span, title, "remove one of the two");
        report.push(problem.with(&on.span, "the controller"));
        return;
    }
    let Some((_, hub)) = declared.plug(&behind.value) else {
        let title = format!("no USB device is called `{}`", behind.value);
        let help = "name a `[[usb]]` with `model = \"hub\"`";
        report.push(Problem::new(&behind.span, title, help));
        return;
    };
    if hub.model.is_some_and(|model| !model.is_hub()) {
        let title = format!("`{}` is no hub", behind.value);
        let help = "devices are behind a `[[usb]]` with `model = \"hub\"` or `\"superspeed-hub\"`";
        report.push(Problem::new(&behind.span, title, help).with(&hub.name.span, "this one"));
    }
    if usb.port.value > UsbModel::HUB_PORTS.into() {
        let title = format!("a hub has {} ports", UsbModel::HUB_PORTS);
        report.push(Problem::new(&usb.port.span, title, "choose another `port`"));
    }
    speed(usb, hub, behind, report);
    if declared.hubs_above(usb).count() > HUBS || declared.controller_of(usb).is_none() {
        let title = format!("more than {HUBS} hubs, or hubs in a circle");
        report.push(Problem::new(&behind.span, title, "plug one of the hubs into a controller"));
    }
}

/// A hub of USB 2 has no room for a SuperSpeed device, and a SuperSpeed hub for no other.
fn speed(usb: &DeclaredUsb, hub: &DeclaredUsb, behind: &At<String>, report: &mut Report) {
    let (Some(device), Some(hub)) = (usb.model, hub.model.filter(|hub| hub.is_hub())) else {
        return;
    };
    let (title, help) = match (device.is_superspeed(), hub.is_superspeed()) {
        (true, false) => (
            "a SuperSpeed device does not fit into a hub of USB 2",
            "plug it into the controller: `on = …`, or into a `model = \"superspeed-hub\"`",
        ),
        (false, true) => (
            "a device of USB 2 does not fit into a SuperSpeed hub",
            "plug it into the controller: `on = …`, or into a `model = \"hub\"`",
        ),
        _ => return,
    };
    report.push(Problem::new(&behind.span, title, help));
}

/// Checks that the device of this name is a USB controller.
pub(crate) fn controller(declared: &Declared, on: &At<String>, report: &mut Report) {
    let device = declared.devices.iter().find(|device| device.name.value == on.value);
    let Some(device) = device else {
        let help = match shorthand::would_bring(declared, &on.value) {
            true => "add `[usbd]`, which brings it, or a `[[device]]` with `pci = \"0c0330\"`",
            false => "name a `[[device]]` with `pci = \"0c0330\"`",
        };
        let title = format!("no device is called `{}`", on.value);
        report.push(Problem::new(&on.span, title, help));
        return;
    };
    let wrong = match &device.what.place {
        DeclaredPlace::Pci(pci) => pci.value.class != XHCI,
        DeclaredPlace::Address(_) => true,
        DeclaredPlace::Unusable => false,
    };
    if wrong {
        let title = format!("`{}` is no USB controller", on.value);
        let help = "USB devices are plugged into a `[[device]]` with `pci = \"0c0330\"`";
        report.push(Problem::new(&on.span, title, help).with(&device.name.span, "this one"));
    }
}
