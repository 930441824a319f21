//! The schedules of buses for people.

use super::words::{direction_name, slot_name, speed_name, transfer_name};
use crate::table::{Align, Columns, TableCell, TextTable, cell};
use diapason_bus::{
    Async, BusPlan, Coding, Direction, EndpointId, NoSchedule, PeriodicEndpoint, Picos, Placed,
    Speed, Transfer, packet_time,
};
use diapason_plan::bus::{Bused, name, why};
use diapason_plan::share;
use diapason_system::{System, UsbBus};
use serde_json::Value;

/// Slots that are named one by one; of more, only the first.
const NAMED: usize = 8;

/// Returns a section for each bus.
#[must_use]
pub fn tables(buses: &[Bused], system: &System) -> Vec<String> {
    let each = system.buses.iter().zip(buses);
    each.map(|(instance, bused)| section(instance, bused, system)).collect()
}

fn section(instance: &UsbBus, bused: &Bused, system: &System) -> String {
    let parts = [
        head(instance, system),
        periodic(instance, bused, system).table(instance.periodic.iter().enumerate()).render(),
        bused.plan.as_ref().map_or_else(|_| String::new(), |p| refused(p, system)),
        bused.plan.as_ref().map_or_else(|_| String::new(), |p| slots_table(instance, p, system)),
        left(instance, bused),
        bulk(instance, bused, system).table(&instance.asyncs).render(),
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

/// Returns the kinds of packets on it, each once; the directions differ only below 480 Mbit/s.
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

/// A periodic endpoint, with its number among those of its bus.
pub(super) type Numbered<'a> = (usize, &'a PeriodicEndpoint);

/// Returns the columns of the periodic endpoints of a bus. Programs read times in picoseconds,
/// which are exact.
pub(super) fn periodic<'a>(
    instance: &'a UsbBus,
    bused: &'a Bused,
    system: &'a System,
) -> Columns<'a, Numbered<'a>> {
    let (bus, plan) = (&instance.bus, bused.plan.as_ref().ok());
    let placed = move |it: &Numbered<'_>| plan?.placed.iter().find(|at| at.id == it.1.id);
    let mean = |it: &Numbered<'_>| bused.mean.as_ref().is_some_and(|mean| mean.kept[it.0]);
    let literal =
        |it: &Numbered<'_>| bused.literal.as_ref().is_some_and(|o| o.starts[it.0].is_some());
    let kept = |is: bool| cell(if is { "kept" } else { "refused" }, is);
    let refusal = |it: &Numbered<'_>| match &bused.plan {
        Ok(plan) => plan.refused.iter().find(|refusal| refusal.id == it.1.id),
        Err(NoSchedule::Refused(refusal)) => Some(refusal).filter(|refusal| refusal.id == it.1.id),
        Err(NoSchedule::Nonsense(_)) => None,
    };
    Columns::<Numbered<'_>>::default()
        .left(("endpoint", "endpoint"), |it| name(system, it.1.id))
        .left(("type", "type"), |it| transfer_name(it.1.transfer))
        .left(("", "direction"), |it| direction_name(it.1.direction))
        .right(("b", "packet"), |it| it.1.packet)
        .right(("n", "burst"), |it| it.1.burst)
        .right(("m", "mult"), |it| it.1.mult)
        .right(("T", "period"), |it| it.1.period)
        .json("packet_ps", |it| it.1.packet_time(bus).0)
        .json("cost_ps", |it| it.1.cost(bus).0)
        .right(("share", "share_ppm"), |it| of_million(ppm(instance, it.1)))
        .right(("start", "start"), move |it| {
            placed(it).map_or_else(|| cell("NONE", Value::Null), |at| at.start.into())
        })
        .right(("every", "given_period"), move |it| placed(it).map(|at| at.period))
        .left(("by the mean", "kept_by_the_mean"), move |it| kept(mean(it)))
        .left(("algorithms 1-3", "kept_by_the_algorithms"), move |it| kept(literal(it)))
        .json("refused", move |it| refusal(it).map(|refusal| why(refusal, system).join("; ")))
}

/// Returns a share in millionths, which people read in per cent.
fn of_million(ppm: u64) -> TableCell {
    cell(share(ppm), ppm)
}

/// Returns its part of the bus, at the period it asks for.
fn ppm(instance: &UsbBus, endpoint: &PeriodicEndpoint) -> u64 {
    let time = instance.bus.speed.slot().0 * u64::from(endpoint.period);
    endpoint.cost(&instance.bus).0 * 1_000_000 / time
}

fn refused(plan: &BusPlan, system: &System) -> String {
    let each = plan.refused.iter().map(|refusal| {
        let [why, instead] = why(refusal, system);
        format!("{why}; {instead}\n")
    });
    each.collect()
}

/// Slots in which the same endpoints transmit share a row.
fn slots_table(instance: &UsbBus, plan: &BusPlan, system: &System) -> String {
    let slot = slot_name(instance.bus.speed);
    let mut table = TextTable::new(&[
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
fn rows(plan: &BusPlan) -> Vec<(Vec<usize>, Vec<EndpointId>)> {
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

/// Returns the readings of t_A, each by its name.
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
        (fullest, format!("left in the fullest {slot} of this schedule")),
        (bused.sound, format!("needed in every {slot} for every guarantee to hold, exactly")),
    ];
    let mut table = TextTable::new(&[("t_A", Align::Right), ("which", Align::Left)]);
    for (time, what) in lines {
        table.row(vec![time.map_or("NONE".to_owned(), |time| time.to_string()), what]);
    }
    table.render()
}

/// Returns the columns of the asynchronous endpoints of a bus.
pub(super) fn bulk<'a>(
    instance: &'a UsbBus,
    bused: &'a Bused,
    system: &'a System,
) -> Columns<'a, Async> {
    let (bus, plan) = (&instance.bus, bused.plan.as_ref().ok());
    let slot = bus.speed.slot();
    let promise = move |it: &Async| plan?.promises.iter().find(|promise| promise.id == it.id);
    let exact = |time: Picos| cell(micros(time), time.0);
    let slots = move |it: &Async, reading: usize| {
        let slots = bused.slots(instance, it)[reading];
        slots.map(|count| cell(format!("{count} = {} us", slot.times(count).0 / 1_000_000), count))
    };
    Columns::<Async>::default()
        .left(("endpoint", "endpoint"), |it| name(system, it.id))
        .left(("type", "type"), |it| transfer_name(it.transfer))
        .left(("", "direction"), |it| direction_name(it.direction))
        .json("packet", |it| it.packet)
        .json("burst", |it| it.burst)
        .json("packet_ps", |it| it.packet_time(bus).0)
        .right(("B", "bytes"), |it| it.guarantee.map(|of| of.bytes))
        .right(("T", "within"), |it| it.guarantee.map(|of| of.period))
        .right(("c by the mean", "c_by_the_mean"), move |it| slots(it, 0))
        .right(("c by [USB 2023, eq. 6, 8]", "c_by_the_equations"), move |it| slots(it, 1))
        .right(("worst time", "worst_ps"), move |it| promise(it).map(|of| exact(of.worst)))
        .right(("in any order", "any_order_ps"), move |it| promise(it)?.any_order.map(exact))
        .right("guaranteed", move |it| it.guarantee.map(|of| exact(slot.times(of.period.into()))))
}
