//! The schedules of buses for people.

use super::words::{direction_name, slot_name, speed_name, transfer_name};
use crate::table::{Align, Table};
use diapason_bus::{
    Async, Coding, Direction, EndpointId, Periodic, Picos, Placed, Plan, Speed, Transfer,
    packet_time,
};
use diapason_plan::bus::{Bused, name, why};
use diapason_plan::share;
use diapason_system::{System, UsbBus};

/// Slots that are named one by one; of more, only the first.
const NAMED: usize = 8;

/// A section for each bus.
#[must_use]
pub fn tables(buses: &[Bused], system: &System) -> Vec<String> {
    let each = system.buses.iter().zip(buses);
    each.map(|(instance, bused)| section(instance, bused, system)).collect()
}

fn section(instance: &UsbBus, bused: &Bused, system: &System) -> String {
    let parts = [
        head(instance, system),
        periodic_table(instance, bused, system),
        bused.plan.as_ref().map_or_else(|_| String::new(), |p| refused(p, system)),
        bused.plan.as_ref().map_or_else(|_| String::new(), |p| slots_table(instance, p, system)),
        left(instance, bused),
        bulk_table(instance, bused, system),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Microseconds with three decimals, rounded up.
fn micros(time: Picos) -> String {
    let ns = time.nanos().0;
    format!("{}.{:03} us", ns / 1_000, ns % 1_000)
}

fn head(instance: &UsbBus, system: &System) -> String {
    let bus = &instance.bus;
    let controller = u16::try_from(instance.device).ok();
    let controller = controller.and_then(|device| system.device_name(device)).unwrap_or_default();
    let coding = match (bus.speed, bus.coding) {
        (Speed::Super, Coding::Ignored) => {
            "; 8 bits on the wire per byte, as [USB 2023, eq. 3] counts"
        }
        (Speed::Super, Coding::EightTen) => "; 10 bits on the wire per byte",
        _ => "",
    };
    let mut text = format!(
        "USB bus of `{controller}`, {} speed: at most {} % of a {} is periodic{coding}\n",
        speed_name(bus.speed),
        bus.periodic_percent,
        slot_name(bus.speed),
    );
    for (transfer, direction, bytes) in packets(instance) {
        let time = packet_time(bus.speed, bus.coding, transfer, direction, bytes);
        let (transfer, direction) = (transfer_name(transfer), direction_name(direction));
        text += &format!("a packet of {bytes} bytes, {transfer} {direction}: {time}\n");
    }
    text
}

/// The kinds of packets on it, each once; the directions differ only below 480 Mbit/s.
fn packets(instance: &UsbBus) -> Vec<(Transfer, Direction, u32)> {
    let periodic = instance.periodic.iter().map(|e| (e.transfer, e.direction, e.packet));
    let asyncs = instance.asyncs.iter().map(|e| (e.transfer, e.direction, e.packet));
    let mut found: Vec<(Transfer, Direction, u32)> = Vec::new();
    for packet in periodic.chain(asyncs) {
        if !found.contains(&packet) {
            found.push(packet);
        }
    }
    found
}

fn periodic_table(instance: &UsbBus, bused: &Bused, system: &System) -> String {
    let mut table = Table::new(&[
        ("endpoint", Align::Left),
        ("type", Align::Left),
        ("", Align::Left),
        ("b", Align::Right),
        ("n", Align::Right),
        ("m", Align::Right),
        ("T", Align::Right),
        ("share", Align::Right),
        ("start", Align::Right),
        ("every", Align::Right),
        ("by the mean", Align::Left),
        ("algorithms 1-3", Align::Left),
    ]);
    for (index, endpoint) in instance.periodic.iter().enumerate() {
        table.row(periodic_row(instance, bused, index, endpoint, name(system, endpoint.id)));
    }
    table.render()
}

fn periodic_row(
    instance: &UsbBus,
    bused: &Bused,
    index: usize,
    endpoint: &Periodic,
    name: &str,
) -> Vec<String> {
    let place = bused.plan.as_ref().ok();
    let place = place.and_then(|plan| plan.placed.iter().find(|at| at.id == endpoint.id));
    let [start, every] = place
        .map_or(["NONE".into(), "-".into()], |at| [at.start.to_string(), at.period.to_string()]);
    let word = |kept: bool| if kept { "kept" } else { "refused" };
    let mean = bused.mean.as_ref().map_or("refused", |mean| word(mean.kept[index]));
    let literal = bused.literal.as_ref().map_or("refused", |o| word(o.starts[index].is_some()));
    vec![
        name.to_owned(),
        transfer_name(endpoint.transfer).to_owned(),
        direction_name(endpoint.direction).to_owned(),
        endpoint.packet.to_string(),
        endpoint.burst.to_string(),
        endpoint.mult.to_string(),
        endpoint.period.to_string(),
        share(ppm(instance, endpoint)),
        start,
        every,
        mean.to_owned(),
        literal.to_owned(),
    ]
}

/// Its part of the bus, at the period it asks for.
pub(super) fn ppm(instance: &UsbBus, endpoint: &Periodic) -> u64 {
    let time = instance.bus.speed.slot().0 * u64::from(endpoint.period);
    endpoint.cost(&instance.bus).0 * 1_000_000 / time
}

fn refused(plan: &Plan, system: &System) -> String {
    let each = plan.refused.iter().map(|refusal| {
        let [why, instead] = why(refusal, system);
        format!("{why}; {instead}\n")
    });
    each.collect()
}

/// Slots in which the same endpoints transmit share a row.
fn slots_table(instance: &UsbBus, plan: &Plan, system: &System) -> String {
    let slot = slot_name(instance.bus.speed);
    let mut table = Table::new(&[
        (&format!("{slot}s"), Align::Left),
        ("endpoints", Align::Left),
        ("periodic", Align::Right),
        ("share", Align::Right),
        ("left", Align::Right),
    ]);
    let length = instance.bus.speed.slot();
    for (slots, ids) in rows(plan) {
        let load = plan.load.get(slots[0]).copied().unwrap_or_default();
        let numbers: Vec<String> = slots.iter().take(NAMED).map(usize::to_string).collect();
        let more = slots.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names: Vec<&str> = ids.iter().map(|id| name(system, *id)).collect();
        table.row(vec![
            numbers.join(", ") + &more,
            if names.is_empty() { "-".to_owned() } else { names.join(", ") },
            load.to_string(),
            share(load.0 * 1_000_000 / length.0),
            (length - load).to_string(),
        ]);
    }
    let count = plan.load.len();
    let again = if count > 1 {
        format!("the {count} {slot}s come again and again\n")
    } else {
        String::new()
    };
    if plan.placed.is_empty() { String::new() } else { table.render() + &again }
}

/// Slots with the endpoints that transmit in them, those with the same endpoints together.
fn rows(plan: &Plan) -> Vec<(Vec<usize>, Vec<EndpointId>)> {
    let mut rows: Vec<(Vec<usize>, Vec<EndpointId>)> = Vec::new();
    for slot in 0..plan.load.len() {
        let due = |at: &&Placed| slot as u32 % at.period == at.start;
        let ids: Vec<EndpointId> = plan.placed.iter().filter(due).map(|at| at.id).collect();
        match rows.iter_mut().find(|(_, known)| *known == ids) {
            Some((slots, _)) => slots.push(slot),
            None => rows.push((vec![slot], ids)),
        }
    }
    rows
}

/// The readings of t_A, each by its name.
fn left(instance: &UsbBus, bused: &Bused) -> String {
    if instance.asyncs.is_empty() {
        return String::new();
    }
    let slot = slot_name(instance.bus.speed);
    let fullest = bused.fullest().map(|load| instance.bus.speed.slot() - load);
    let mean = bused.mean.as_ref().map(|mean| mean.left);
    let lines = [
        (mean, format!("left of a {slot} on average: t_A as [USB 2023, tables 2 and 5] read it")),
        (
            bused.equations,
            "the least t_A by [USB 2023, eq. 6 and 8], with this bus' limit".to_owned(),
        ),
        (fullest, format!("really left in the fullest {slot} of this schedule")),
        (bused.sound, format!("needed in every {slot} for every guarantee to hold, exactly")),
    ];
    let mut table = Table::new(&[("t_A", Align::Right), ("which", Align::Left)]);
    for (time, what) in lines {
        table.row(vec![time.map_or("NONE".to_owned(), |time| time.to_string()), what]);
    }
    table.render()
}

fn bulk_table(instance: &UsbBus, bused: &Bused, system: &System) -> String {
    let mut table = Table::new(&[
        ("endpoint", Align::Left),
        ("type", Align::Left),
        ("", Align::Left),
        ("B", Align::Right),
        ("T", Align::Right),
        ("c by the mean", Align::Right),
        ("c by [USB 2023, eq. 6, 8]", Align::Right),
        ("worst time", Align::Right),
        ("in any order", Align::Right),
        ("guaranteed", Align::Right),
    ]);
    for endpoint in &instance.asyncs {
        table.row(bulk_row(instance, bused, endpoint, name(system, endpoint.id)));
    }
    table.render()
}

fn bulk_row(instance: &UsbBus, bused: &Bused, endpoint: &Async, name: &str) -> Vec<String> {
    let slot = instance.bus.speed.slot();
    let promise = bused.plan.as_ref().ok();
    let promise = promise.and_then(|plan| plan.promises.iter().find(|p| p.id == endpoint.id));
    let count = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    let time = |time: Option<Picos>| time.map_or("-".to_owned(), micros);
    let [mean, letter] = bused.slots(instance, endpoint).map(|slots| match slots {
        Some(slots) => format!("{slots} = {} us", slot.times(slots).0 / 1_000_000),
        None => "-".to_owned(),
    });
    let guarantee = endpoint.guarantee;
    vec![
        name.to_owned(),
        transfer_name(endpoint.transfer).to_owned(),
        direction_name(endpoint.direction).to_owned(),
        count(guarantee.map(|g| g.bytes)),
        count(guarantee.map(|g| g.period)),
        mean,
        letter,
        time(promise.map(|promise| promise.worst)),
        time(promise.and_then(|promise| promise.any_order)),
        time(guarantee.map(|g| slot.times(g.period.into()))),
    ]
}
