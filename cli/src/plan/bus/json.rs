//! The schedules of buses for programs; times are in picoseconds, which are exact.

use super::tables::{bulk, periodic};
use super::words::speed_name;
use diapason_bus::{Coding, Picos};
use diapason_plan::bus::Bused;
use diapason_system::{System, UsbBus};
use serde_json::{Value, json};

/// Returns one object for each bus.
#[must_use]
pub fn buses(buses: &[Bused], system: &System) -> Vec<Value> {
    system.buses.iter().zip(buses).map(|(instance, bused)| of(instance, bused, system)).collect()
}

fn of(instance: &UsbBus, bused: &Bused, system: &System) -> Value {
    let bus = &instance.bus;
    let ps = |time: Option<Picos>| time.map(|time| time.0);
    let plan = bused.plan.as_ref().ok();
    let controller = u16::try_from(instance.device).ok();
    let numbered = instance.periodic.iter().enumerate();
    json!({
        "controller": controller.and_then(|device| system.device_name(device)),
        "speed": speed_name(bus.speed),
        "line_code_counted": bus.coding == Coding::EightTen,
        "periodic_percent": bus.periodic_percent,
        "slot_ps": bus.speed.slot().0,
        "periodic": periodic(instance, bused, system).objects(numbered),
        "load_ps": plan.map(|plan| plan.load.iter().map(|load| load.0).collect::<Vec<u64>>()),
        "t_a": {
            "mean_ps": ps(bused.mean.as_ref().map(|mean| mean.left)),
            "equations_ps": ps(bused.equations),
            "fullest_ps": ps(bused.fullest().map(|load| bus.speed.slot() - load)),
            "exact_ps": ps(bused.sound),
        },
        "asynchronous": bulk(instance, bused, system).objects(&instance.asyncs),
    })
}
