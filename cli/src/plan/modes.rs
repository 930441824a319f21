//! The modes of operation and the changes between them, for people and for programs.

use super::bus::{slot_name, speed_name};
use super::view::View;
use crate::table::{Align, TextTable};
use diapason_bus::Picos;
use diapason_plan::bus::name;
use diapason_plan::modes::{Changed, ModedBus};
use diapason_plan::share;
use diapason_system::System;
use serde_json::{Value, json};

/// The scope of the proof: nobody bounds the duration of a change.
const SCOPE: &str =
    "modes: this is proved of the bus alone; how long a change takes has no bound\n";
const NO_SERVER: &str = "modes: no USB server changes them, so this system does not run\n";

impl View<'_> {
    /// Returns the modes of each bus; nothing without any.
    pub(super) fn mode_tables(&self, system: &System) -> Vec<String> {
        let Ok(buses) = &self.modes else { return Vec::new() };
        let tables = buses.iter().filter(|bus| bus.plan.is_ok());
        let mut tables: Vec<String> = tables.map(|bus| section(bus, system)).collect();
        if !tables.is_empty() {
            let has_server = system.changes_modes();
            tables.push(SCOPE.to_owned() + if has_server { "" } else { NO_SERVER });
        }
        tables
    }

    /// Returns the modes of each bus for programs.
    pub(super) fn moded(&self, system: &System) -> Vec<Value> {
        let buses = self.modes.iter().flatten();
        buses.map(|bus| of_bus(bus, system)).collect()
    }
}

fn section(bus: &ModedBus, system: &System) -> String {
    let head = format!(
        "modes on the USB bus of `{}`, {} speed: in each slot, {} % may be periodic\n",
        controller(bus, system).unwrap_or_default(),
        speed_name(bus.bus.speed),
        bus.bus.periodic_percent
    );
    let parts = [head, modes_table(bus, system), changes_table(bus, system), worst(bus, system)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn modes_table(bus: &ModedBus, system: &System) -> String {
    let slot = slot_name(bus.bus.speed);
    let mut table = TextTable::new(&[
        ("mode", Align::Left),
        ("cameras, bytes of an interval", Align::Left),
        (&format!("periodic in each {slot}"), Align::Right),
        ("share", Align::Right),
    ]);
    for ((mode, runs), load) in system.modes.iter().zip(&bus.runs).zip(bus.fullest()) {
        let ppm = load.0 * 1_000_000 / bus.bus.speed.slot().0;
        let row = vec![mode.name.clone(), streams(bus, system, runs), load.to_string(), share(ppm)];
        table.row(row);
    }
    table.render()
}

fn changes_table(bus: &ModedBus, system: &System) -> String {
    let mut table = TextTable::new(&[
        ("change", Align::Left),
        ("only in the first", Align::Left),
        ("undisturbed", Align::Left),
        ("only in the second", Align::Left),
    ]);
    for Changed { modes: (from, to), stops, stays, starts } in bus.changes() {
        let named = |mode: usize| system.modes[mode].name.as_str();
        table.row(vec![
            format!("{}, {}", named(from), named(to)),
            streams(bus, system, &stops),
            streams(bus, system, &stays),
            streams(bus, system, &starts),
        ]);
    }
    table.render()
}

/// Returns a line for each guarantee, with its longest time in any mode and change.
fn worst(bus: &ModedBus, system: &System) -> String {
    let line = |(id, time): (diapason_bus::EndpointId, Option<Picos>)| {
        let time = time.map_or("longer than guaranteed".to_owned(), |time| time.to_string());
        format!("`{}` takes at most {time} in any mode and while one changes\n", name(system, id))
    };
    let mut text: String = bus.worst().into_iter().map(line).collect();
    if let Some(rest) = bus.plan.as_ref().ok().map(|plan| plan.rest).filter(|rest| *rest > 0) {
        let slot = slot_name(bus.bus.speed);
        let slots = if rest == 1 { slot.to_owned() } else { format!("{slot}s") };
        text += &format!("from one change to the next, {rest} {slots} must pass\n");
    }
    text
}

/// Returns streams by the names of their cameras, with bytes of an interval.
fn streams(bus: &ModedBus, system: &System, places: &[usize]) -> String {
    let one = |place: &usize| {
        let stream = &bus.streams[*place];
        format!("{} {}", system.usb[stream.usb].name, stream.bytes)
    };
    let all: Vec<String> = places.iter().map(one).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn controller<'s>(bus: &ModedBus, system: &'s System) -> Option<&'s str> {
    system.device_name(u16::try_from(bus.controller).ok()?)
}

fn of_bus(bus: &ModedBus, system: &System) -> Value {
    let stream = |place: &usize| {
        let stream = &bus.streams[*place];
        json!({
            "camera": system.usb[stream.usb].name,
            "bytes": stream.bytes,
            "setting": stream.alternate,
        })
    };
    let all = |places: &[usize]| places.iter().map(stream).collect::<Vec<Value>>();
    let named = |mode: usize| system.modes[mode].name.as_str();
    let change = |it: Changed| {
        let modes = [named(it.modes.0), named(it.modes.1)];
        let (stops, stays, starts) = (all(&it.stops), all(&it.stays), all(&it.starts));
        json!({ "modes": modes, "stops": stops, "stays": stays, "starts": starts })
    };
    let loads = bus.fullest();
    let mode = |(number, runs): (usize, &Vec<usize>)| {
        let load = loads.get(number).map(|load| load.0);
        json!({ "mode": named(number), "cameras": all(runs), "periodic_ps": load })
    };
    let guarantee = |(id, time): (diapason_bus::EndpointId, Option<Picos>)| {
        let worst = time.map(|time| time.0);
        json!({ "endpoint": name(system, id), "worst_ps": worst })
    };
    json!({
        "controller": controller(bus, system),
        "speed": speed_name(bus.bus.speed),
        "holds": bus.holds(),
        "modes": bus.runs.iter().enumerate().map(mode).collect::<Vec<Value>>(),
        "changes": bus.changes().into_iter().map(change).collect::<Vec<Value>>(),
        "guarantees": bus.worst().into_iter().map(guarantee).collect::<Vec<Value>>(),
        "rest_slots": bus.plan.as_ref().ok().map(|plan| plan.rest),
    })
}
