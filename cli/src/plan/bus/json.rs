//! The schedules of buses for programs; times are in picoseconds, which are exact.

use super::tables::ppm;
use super::words::{direction_name, speed_name, transfer_name};
use diapason_bus::{Async, Coding, Periodic, Picos, Unfit};
use diapason_plan::bus::{Bused, name, why};
use diapason_system::{System, UsbBus};
use serde_json::{Value, json};

/// One object for each bus.
#[must_use]
pub fn buses(buses: &[Bused], system: &System) -> Vec<Value> {
    system.buses.iter().zip(buses).map(|(instance, bused)| of(instance, bused, system)).collect()
}

fn of(instance: &UsbBus, bused: &Bused, system: &System) -> Value {
    let UsbBus { bus, periodic, asyncs, .. } = instance;
    let ps = |time: Option<Picos>| time.map(|time| time.0);
    let plan = bused.plan.as_ref().ok();
    let left = bused.fullest().map(|load| bus.speed.slot() - load);
    let controller = u16::try_from(instance.device).ok();
    let periodic = periodic.iter().enumerate().map(|(index, e)| {
        let refused = match &bused.plan {
            Ok(plan) => plan.refused.iter().find(|refusal| refusal.id == e.id),
            Err(Unfit::Refused(refusal)) => Some(refusal).filter(|refusal| refusal.id == e.id),
            Err(Unfit::Nonsense(_)) => None,
        };
        let mut object = periodic_object(instance, bused, index, e, name(system, e.id));
        object["refused"] = refused.map(|refusal| why(refusal, system).join("; ")).into();
        object
    });
    let asyncs = asyncs.iter().map(|e| bulk_object(instance, bused, e, name(system, e.id)));
    json!({
        "controller": controller.and_then(|device| system.device_name(device)),
        "speed": speed_name(bus.speed),
        "line_code_counted": bus.coding == Coding::EightTen,
        "periodic_percent": bus.periodic_percent,
        "slot_ps": bus.speed.slot().0,
        "periodic": periodic.collect::<Vec<Value>>(),
        "load_ps": plan.map(|plan| plan.load.iter().map(|load| load.0).collect::<Vec<u64>>()),
        "t_a": {
            "mean_ps": ps(bused.mean.as_ref().map(|mean| mean.left)),
            "equations_ps": ps(bused.equations),
            "fullest_ps": ps(left),
            "exact_ps": ps(bused.sound),
        },
        "asynchronous": asyncs.collect::<Vec<Value>>(),
    })
}

fn periodic_object(
    instance: &UsbBus,
    bused: &Bused,
    index: usize,
    endpoint: &Periodic,
    name: &str,
) -> Value {
    let plan = bused.plan.as_ref().ok();
    let at = plan.and_then(|plan| plan.placed.iter().find(|at| at.id == endpoint.id));
    json!({
        "endpoint": name,
        "type": transfer_name(endpoint.transfer),
        "direction": direction_name(endpoint.direction),
        "packet": endpoint.packet,
        "burst": endpoint.burst,
        "mult": endpoint.mult,
        "period": endpoint.period,
        "packet_ps": endpoint.packet_time(&instance.bus).0,
        "cost_ps": endpoint.cost(&instance.bus).0,
        "share_ppm": ppm(instance, endpoint),
        "start": at.map(|at| at.start),
        "given_period": at.map(|at| at.period),
        "kept_by_the_mean": bused.mean.as_ref().is_some_and(|mean| mean.kept[index]),
        "kept_by_the_algorithms": bused.literal.as_ref().is_some_and(|o| o.starts[index].is_some()),
    })
}

fn bulk_object(instance: &UsbBus, bused: &Bused, endpoint: &Async, name: &str) -> Value {
    let plan = bused.plan.as_ref().ok();
    let promise = plan.and_then(|plan| plan.promises.iter().find(|p| p.id == endpoint.id));
    let [mean, letter] = bused.slots(instance, endpoint);
    json!({
        "endpoint": name,
        "type": transfer_name(endpoint.transfer),
        "direction": direction_name(endpoint.direction),
        "packet": endpoint.packet,
        "burst": endpoint.burst,
        "packet_ps": endpoint.packet_time(&instance.bus).0,
        "bytes": endpoint.guarantee.map(|g| g.bytes),
        "within": endpoint.guarantee.map(|g| g.period),
        "c_by_the_mean": mean,
        "c_by_the_equations": letter,
        "worst_ps": promise.map(|promise| promise.worst.0),
        "any_order_ps": promise.and_then(|promise| Some(promise.any_order?.0)),
    })
}
