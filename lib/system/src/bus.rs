//! `[[bus]]` and `[[endpoint]]`: what shares a USB bus, as far as its schedule has to know.
//!
//! Neither reaches the boot archive, and an endpoint is no device: it says what some device has and
//! what it is to be given, so that `diapason plan` can tell whether that is possible.

use crate::declared::{Declared, DeclaredBus, DeclaredEndpoint, DeclaredTransfers};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::plugged::UsbBus;
use crate::source::At;
use crate::table::{Raw, Table};
use crate::{units, usb};
use diapason_bus::{
    Async, BYTES_MAX, BusInstance, Coding, Criticality, Direction, EndpointId, GUARANTEE_SLOTS_MAX,
    Guarantee, PERIOD_MAX, PeriodicEndpoint, Speed, Transfer,
};

const SPEEDS: [(&str, Speed); 4] =
    [("super", Speed::Super), ("high", Speed::High), ("full", Speed::Full), ("low", Speed::Low)];
const CODINGS: [(&str, Coding); 2] = [("8b10b", Coding::EightTen), ("ignored", Coding::Ignored)];
const TRANSFERS: [(&str, Transfer); 4] = [
    ("isochronous", Transfer::Isochronous),
    ("interrupt", Transfer::Interrupt),
    ("bulk", Transfer::Bulk),
    ("control", Transfer::Control),
];
const DIRECTIONS: [(&str, Direction); 2] = [("in", Direction::In), ("out", Direction::Out)];
const CRITICALITIES: [(&str, Criticality); 2] =
    [("low", Criticality::Low), ("high", Criticality::High)];
/// Largest packet, burst and number of bursts of any speed; the speed's own limits come later.
const PACKET_MAX: u64 = 1024;
const BURST_MAX: u64 = 15;
const MULT_MAX: u64 = 2;
/// Parts per million in a percent.
const PERCENT: u32 = 10_000;

pub(crate) fn bus(raw: Raw<'_>, report: &mut Report) -> DeclaredBus {
    let mut table = Table::new("[[bus]]", "bus", raw, report);
    let on = controller(&mut table);
    let mut bus = BusInstance::new(speed(&mut table));
    if let Some(coding) = table.choice("coding", &CODINGS, "") {
        bus.coding = coding.value;
    }
    let example = "periodic = \"90%\"";
    if let Some(share) = table.parsed("periodic", "a share", example, units::share) {
        let percent = share.value / PERCENT;
        if share.value.is_multiple_of(PERCENT) && (1..=100).contains(&percent) {
            bus.periodic_percent = percent;
        } else {
            let title = "`periodic` is no whole percentage of a slot";
            table.report.push(Problem::new(&share.span, title, "write `\"1%\"` to `\"100%\"`"));
        }
    }
    let control = table.flag("control").unwrap_or(true);
    table.report_unknown();
    DeclaredBus { on, bus, control }
}

fn controller(table: &mut Table<'_, '_>) -> Option<At<String>> {
    let on = table.text("on", "on = \"xhci\"");
    table.needs("on", "add `on = \"xhci\"`, the `[[device]]` that is its controller");
    on
}

fn speed(table: &mut Table<'_, '_>) -> Speed {
    table.choice("speed", &SPEEDS, "").map_or(Speed::Super, |speed| speed.value)
}

pub(crate) fn endpoint(raw: Raw<'_>, report: &mut Report) -> DeclaredEndpoint {
    let mut table = Table::new("[[endpoint]]", "endpoint", raw, report);
    let table = &mut table;
    let endpoint = DeclaredEndpoint {
        name: keys::name(table),
        on: controller(table),
        speed: speed(table),
        what: transfers(table).unwrap_or(DeclaredTransfers::Unusable),
    };
    table.report_unknown();
    endpoint
}

/// Returns the transfers of its descriptor, and its promises. Its number follows later.
fn transfers(table: &mut Table<'_, '_>) -> Option<DeclaredTransfers> {
    let id = EndpointId(0);
    for (key, help) in [
        ("type", "add `type = \"bulk\"`, or `\"isochronous\"`, `\"interrupt\"`, `\"control\"`"),
        ("direction", "add `direction = \"in\"`, from the device, or `\"out\"`"),
        ("packet", "add `packet = 1024`: bytes of its largest packet"),
    ] {
        table.needs(key, help);
    }
    let transfer = table.choice("type", &TRANSFERS, "").map(|transfer| transfer.value);
    let direction = table.choice("direction", &DIRECTIONS, "").map(|direction| direction.value);
    let packet = number(table, "packet", 1..=PACKET_MAX, ", bytes");
    let burst = number(table, "burst", 0..=BURST_MAX, ": packets of a burst, less one");
    let burst = burst.unwrap_or(0);
    match transfer? {
        transfer @ (Transfer::Bulk | Transfer::Control) => {
            let guarantee = guarantee(table);
            let (direction, packet) = (direction?, packet?);
            let endpoint = Async { id, transfer, direction, packet, burst, guarantee };
            Some(DeclaredTransfers::Async(endpoint))
        }
        transfer @ (Transfer::Interrupt | Transfer::Isochronous) => {
            let mult = number(table, "mult", 0..=MULT_MAX, ": bursts of a transfer, less one");
            let mult = mult.unwrap_or(0);
            let most = u64::from(PERIOD_MAX);
            table.needs("period", "add `period = 1`, in microframes (frames below 480 Mbit/s)");
            let period = number(table, "period", 1..=most, ", slots of its bus");
            let longest = number(table, "longest", 1..=most, ", slots of its bus").or(period);
            let criticality = table.choice("criticality", &CRITICALITIES, "");
            let criticality = criticality.map_or(Criticality::Low, |found| found.value);
            let (direction, packet) = (direction?, packet?);
            let (period, longest_period) = (period?, longest?);
            Some(DeclaredTransfers::Periodic(PeriodicEndpoint {
                id,
                transfer,
                direction,
                packet,
                burst,
                mult,
                period,
                longest_period,
                criticality,
            }))
        }
    }
}

/// Reads a guarantee: bytes and slots, both or neither.
fn guarantee(table: &mut Table<'_, '_>) -> Option<Guarantee> {
    let bytes = number(table, "bytes", 1..=BYTES_MAX.into(), " of a transfer");
    let slots = number(table, "within", 1..=GUARANTEE_SLOTS_MAX.into(), ", slots of its bus");
    match (table.has("bytes"), table.has("within")) {
        (true, false) => table.needs("within", "add `within = 8`: the slots it may take"),
        (false, true) => table.needs("bytes", "add `bytes = 4096`: the bytes of a transfer"),
        _ => {}
    }
    Some(Guarantee { bytes: bytes?, period: slots? })
}

fn number(
    table: &mut Table<'_, '_>,
    key: &'static str,
    range: std::ops::RangeInclusive<u64>,
    hint: &str,
) -> Option<u32> {
    u32::try_from(table.number(key, range, hint)?.value).ok()
}

pub(crate) fn check(declared: &Declared, report: &mut Report) {
    let of_buses = declared.buses.iter().filter_map(|bus| bus.on.as_ref());
    let of_endpoints = declared.endpoints.iter().filter_map(|endpoint| endpoint.on.as_ref());
    for on in of_buses.chain(of_endpoints) {
        usb::controller(declared, on, report);
    }
    twice(declared, report);
    for bus in buses(declared) {
        let Err(nonsense) = diapason_bus::check(&bus.bus, &bus.periodic, &bus.asyncs) else {
            continue;
        };
        let endpoint = |id: EndpointId| &declared.endpoints[id.0 as usize].name;
        let (title, help) = nonsense.describe(|id| format!("`{}`", endpoint(id).value));
        let place = nonsense.endpoint().map_or(&declared.top, |id| &endpoint(id).span);
        report.push(Problem::new(place, title, help));
    }
}

/// Names of endpoints, and buses, are there once.
fn twice(declared: &Declared, report: &mut Report) {
    for (index, endpoint) in declared.endpoints.iter().enumerate() {
        let mut before = declared.endpoints[..index].iter();
        if let Some(first) = before.find(|other| other.name.value == endpoint.name.value) {
            let title = format!("the endpoint `{}` is declared twice", endpoint.name.value);
            let problem = Problem::new(&endpoint.name.span, title, "give each a name of its own");
            report.push(problem.with(&first.name.span, "first here"));
        }
    }
    let instance = |bus: &DeclaredBus| Some((bus.on.as_ref()?.value.clone(), bus.bus.speed));
    for (index, bus) in declared.buses.iter().enumerate() {
        let mut before = declared.buses[..index].iter();
        let Some(on) = &bus.on else { continue };
        if let Some(first) = before.find(|other| instance(other) == instance(bus)) {
            let title = format!("the bus of this speed on `{}` is declared twice", on.value);
            let problem = Problem::new(&on.span, title, "remove one of the two");
            let first = first.on.as_ref().map_or(&declared.top, |on| &on.span);
            report.push(problem.with(first, "first here"));
        }
    }
}

/// Returns every bus instance of which something is declared, in the order of the text.
pub(crate) fn buses(declared: &Declared) -> Vec<UsbBus> {
    let device = |on: &Option<At<String>>| {
        let name = &on.as_ref()?.value;
        declared.devices.iter().position(|device| device.name.value == *name)
    };
    let mut buses: Vec<UsbBus> = Vec::new();
    for declared in &declared.buses {
        let Some(device) = device(&declared.on) else { continue };
        let DeclaredBus { bus, control, .. } = *declared;
        let new = UsbBus { device, bus, control, periodic: vec![], asyncs: vec![] };
        buses.push(new);
    }
    for (number, endpoint) in (0..).zip(&declared.endpoints) {
        let Some(device) = device(&endpoint.on) else { continue };
        let is_its = |bus: &UsbBus| bus.device == device && bus.bus.speed == endpoint.speed;
        let place = buses.iter().position(is_its).unwrap_or_else(|| {
            let bus = BusInstance::new(endpoint.speed);
            buses.push(UsbBus { device, bus, control: true, periodic: vec![], asyncs: vec![] });
            buses.len() - 1
        });
        let (id, bus) = (EndpointId(number), &mut buses[place]);
        match endpoint.what {
            DeclaredTransfers::Periodic(periodic) => {
                bus.periodic.push(PeriodicEndpoint { id, ..periodic })
            }
            DeclaredTransfers::Async(endpoint) => bus.asyncs.push(Async { id, ..endpoint }),
            DeclaredTransfers::Unusable => {}
        }
    }
    buses
}
