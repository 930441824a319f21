//! The connections of devices, their servers, pipes, readers, and the other processes.

use super::Facts;
use super::svg::Picture;
use diapason_system::{ServerSpec, System};

const WIDTH: f64 = 960.0;
const BOX: (f64, f64) = (170.0, 34.0);
const ROW: f64 = 46.0;
/// Left edges of the columns: devices, controllers, processes that drive them, readers.
const COLUMNS: [f64; 4] = [10.0, 270.0, 520.0, 780.0];

/// Returns the picture of the system.
pub fn topology(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let piped: Vec<usize> = system.pipes.iter().map(|pipe| usize::from(pipe.process)).collect();
    let servers: Vec<usize> = servers(system);
    let others: Vec<usize> = (0..system.processes.len())
        .filter(|p| !piped.contains(p) && !servers.contains(p))
        .collect();
    let right = piped.len().max(system.usb.len()).max(1);
    let rows = right + others.len().div_ceil(4);
    let mut picture = Picture::new(WIDTH, ROW * rows as f64 + 20.0);
    let middle = ROW * right as f64 / 2.0 - ROW / 2.0 + 10.0;
    let place = |column: usize, row: f64| (COLUMNS[column], 10.0 + ROW * row);
    let join = |picture: &mut Picture, from: (f64, f64), to: (f64, f64)| {
        picture.line((from.0 + BOX.0, from.1 + BOX.1 / 2.0), (to.0, to.1 + BOX.1 / 2.0), "wire");
    };
    for (row, reader) in piped.iter().enumerate() {
        let at = place(3, row as f64);
        join(&mut picture, (COLUMNS[2], middle), at);
        let pipe = &system.pipes[row];
        process(&mut picture, at, system, *reader, &format!("{}, {}/s", pipe.name, pipe.rate));
    }
    let above = right.saturating_sub(system.usb.len()) as f64 / 2.0;
    for (row, usb) in system.usb.iter().enumerate() {
        let at = place(0, above + row as f64);
        join(&mut picture, at, (COLUMNS[1], middle));
        picture.rectangle(at, BOX, "box", &usb.name);
        picture.text((at.0 + 10.0, at.1 + 15.0), "start", "", &usb.name);
        let what = format!("{} at port {}", usb.model.name(), usb.port);
        picture.text((at.0 + 10.0, at.1 + 28.0), "start", "small", &what);
    }
    if let (Some(server), Some(usb)) = (servers.first(), system.usb.first()) {
        join(&mut picture, (COLUMNS[1], middle), (COLUMNS[2], middle));
        let controller = &system.devices[usb.device];
        picture.rectangle((COLUMNS[1], middle), BOX, "box", &controller.name);
        let (x, y) = (COLUMNS[1] + 10.0, middle);
        picture.text((x, y + 15.0), "start", "", &controller.name);
        picture.text((x, y + 28.0), "start", "small", "host controller");
        process(&mut picture, (COLUMNS[2], middle), system, *server, &budget(system, *server));
    }
    for (index, other) in others.iter().enumerate() {
        let at = (COLUMNS[index % 4], 10.0 + ROW * (right + index / 4) as f64);
        process(&mut picture, at, system, *other, &budget(system, *other));
    }
    picture.finish("devices and processes")
}

/// Processes that drive a controller with something plugged in.
fn servers(system: &System) -> Vec<usize> {
    let driven = |process: usize| {
        system.usb.iter().any(|usb| {
            let allowed = system.devices.get(usb.device).map_or(0, |device| device.allowed);
            process < 64 && allowed >> process & 1 == 1
        })
    };
    (0..system.processes.len()).filter(|process| driven(*process)).collect()
}

fn process(picture: &mut Picture, at: (f64, f64), system: &System, index: usize, below: &str) {
    let process = &system.processes[index];
    picture.rectangle(at, BOX, "box process", &process.program);
    picture.text((at.0 + 10.0, at.1 + 15.0), "start", "", &process.name);
    picture.text((at.0 + 10.0, at.1 + 28.0), "start", "small", below);
}

/// Returns the promise to a process.
fn budget(system: &System, index: usize) -> String {
    let process = &system.processes[index];
    let vcpu = process.vcpu.and_then(|number| system.vcpus.get(usize::from(number)));
    let budget = vcpu.map(|vcpu| match &vcpu.server {
        ServerSpec::Main { budget_ns, period_ns, .. } => {
            let ms = |ns: &u64| *ns as f64 / 1e6;
            format!("{} in {} ms", ms(budget_ns), ms(period_ns))
        }
        ServerSpec::Io { utilization_ppm, .. } => {
            format!("{} %", f64::from(*utilization_ppm) / 1e4)
        }
    });
    budget.unwrap_or_else(|| format!("priority {}", process.priority))
}
