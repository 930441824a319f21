//! The schedules of USB buses: which endpoint transmits in which slot, and the time left for bulk.

use super::Facts;
use super::bills::key;
use super::svg::{Picture, colour};
use super::tables::table;
use crate::chart::escaped;
use crate::plan::Bused;
use diapason_bus::{BusPlan, PeriodicEndpoint, Picos, Placed, Speed};
use diapason_system::{System, UsbBus};

const LEFT: f64 = 110.0;
const TOP: f64 = 10.0;
const HEIGHT: f64 = 130.0;
const WIDTH: f64 = 960.0;
/// Slots that are drawn; of a longer schedule, the first.
const SLOTS: usize = 64;

/// Returns a picture and two tables for each bus with a schedule; nothing without any.
pub fn buses(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let named = system.buses.iter().zip(&facts.plan.buses);
    named.filter_map(|(instance, bused)| bus(instance, bused, system)).collect()
}

fn bus(instance: &UsbBus, bused: &Bused, system: &System) -> Option<String> {
    let plan = bused.plan.as_ref().ok()?;
    let number = u16::try_from(instance.device).ok();
    let controller = number.and_then(|device| system.device_name(device)).unwrap_or_default();
    let title = format!("{controller}, {} speed", speed(instance.bus.speed));
    let head = format!("<p><b>{}</b></p>\n", escaped(&title));
    let placed = placed_table(instance, plan, system);
    Some(head + &picture(instance, plan, system, &title) + &placed + &left(bused, instance))
}

const fn speed(speed: Speed) -> &'static str {
    match speed {
        Speed::Super => "super",
        Speed::High => "high",
        Speed::Full => "full",
        Speed::Low => "low",
    }
}

/// Periodic endpoints with a place, each with its number among all of them.
fn placed<'a>(
    instance: &'a UsbBus,
    plan: &'a BusPlan,
) -> impl Iterator<Item = (usize, &'a PeriodicEndpoint, &'a Placed)> {
    let all = instance.periodic.iter().enumerate();
    all.filter_map(|(index, endpoint)| {
        let at = plan.placed.iter().find(|at| at.id == endpoint.id)?;
        Some((index, endpoint, at))
    })
}

/// Returns a stack for each slot, and the line up to which it may be periodic.
fn picture(instance: &UsbBus, plan: &BusPlan, system: &System, title: &str) -> String {
    let bus = &instance.bus;
    let slots = plan.load.len().clamp(1, SLOTS);
    let slot = bus.speed.slot().0.max(1) as f64;
    let (wide, bottom) = ((WIDTH - LEFT - 20.0) / slots as f64, TOP + HEIGHT);
    let mut picture = Picture::new(WIDTH, bottom + 28.0);
    for percent in [0, 50, 100] {
        let y = bottom - HEIGHT * f64::from(percent) / 100.0;
        picture.line((LEFT, y), (WIDTH - 20.0, y), "grid");
        picture.text((LEFT - 8.0, y + 4.0), "end", "small", &format!("{percent} %"));
    }
    let mut full = vec![0.0; slots];
    for (index, endpoint, at) in placed(instance, plan) {
        let name = system.endpoint_name(endpoint.id.0).unwrap_or_default();
        let share = endpoint.cost(bus).0 as f64 / slot;
        let own = (at.start as usize..slots).step_by(at.period.max(1) as usize);
        for place in own {
            let y = bottom - HEIGHT * (full[place] + share);
            let corner = (LEFT + wide * place as f64 + wide * 0.08, y);
            let hint = format!("{name} in slot {place}: {:.2} %", 100.0 * share);
            let class = colour(index);
            picture.rectangle(corner, (wide * 0.84, HEIGHT * share), &class, &hint);
            full[place] += share;
        }
    }
    let most = bottom - HEIGHT * f64::from(bus.periodic_percent) / 100.0;
    picture.line((LEFT, most), (WIDTH - 20.0, most), "wanted");
    for place in (0..slots).step_by(slots.div_ceil(16)) {
        let at = (LEFT + wide * (place as f64 + 0.5), bottom + 16.0);
        picture.text(at, "middle", "small", &place.to_string());
    }
    let named = placed(instance, plan).map(|(index, endpoint, _)| {
        let name = escaped(system.endpoint_name(endpoint.id.0).unwrap_or_default());
        key(&colour(index), &name)
    });
    let legend: String = named.chain([key("wanted", "most that may be periodic")]).collect();
    let more = plan.load.len().saturating_sub(slots);
    let more = if more > 0 { format!("<p>and {more} slots more</p>\n") } else { String::new() };
    let legend = format!("<p class=\"legend\">{legend}</p>\n{more}");
    picture.finish(&format!("the schedule of {title}")) + &legend
}

/// Returns the owners of slots, and how much of each they use.
fn placed_table(instance: &UsbBus, plan: &BusPlan, system: &System) -> String {
    let rows = placed(instance, plan).map(|(_, endpoint, at)| {
        vec![
            system.endpoint_name(endpoint.id.0).unwrap_or_default().to_owned(),
            at.start.to_string(),
            at.period.to_string(),
            endpoint.cost(&instance.bus).to_string(),
        ]
    });
    table(&["endpoint", "first slot", "every", "of a slot"], &rows.collect::<Vec<_>>())
}

/// Returns the part of a slot that is left for bulk: t_A in its four readings.
fn left(bused: &Bused, instance: &UsbBus) -> String {
    let slot = instance.bus.speed.slot();
    let readings = [
        ("t_A by the mean", bused.mean.as_ref().map(|mean| mean.left)),
        ("t_A by [USB 2023, eq. 6 and 8]", bused.equations),
        ("left in the fullest slot", bused.fullest().map(|load| slot - load)),
        ("needed in every slot, whatever the pattern", bused.sound),
    ];
    let rows = readings.map(|(name, time): (&str, Option<Picos>)| {
        vec![name.to_owned(), time.map_or("–".to_owned(), |time| time.to_string())]
    });
    table(&["for bulk, of a slot", &format!("of {slot}")], &rows)
}
