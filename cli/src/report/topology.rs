//! The connections of devices, their servers, pipes, readers, and the other processes.

use super::Facts;
use super::svg::Picture;
use crate::plan::chains::processes;
use diapason_system::{PipeSpec, ServerSpec, System};

const WIDTH: f64 = 960.0;
const BOX: (f64, f64) = (170.0, 34.0);
const ROW: f64 = 52.0;
/// Left edges of the columns: devices, controllers, processes that drive them, readers.
const COLUMNS: [f64; 4] = [10.0, 270.0, 520.0, 780.0];

/// A box: where it is, and what it says.
struct Part {
    at: (f64, f64),
    /// The number of the process, if it is one.
    process: Option<usize>,
    name: String,
    below: String,
    hint: String,
}

/// Everything in the picture.
struct Layout<'a> {
    system: &'a System,
    parts: Vec<Part>,
    /// Lines from the right of a box to the left of another.
    wires: Vec<[(f64, f64); 2]>,
}

/// Returns the picture of the system.
pub fn topology(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let mut layout = Layout { system, parts: Vec::new(), wires: Vec::new() };
    let rows = layout.fill();
    let mut picture = Picture::new(WIDTH, ROW * rows as f64 + 20.0);
    for [from, to] in &layout.wires {
        let (from, to) = ((from.0 + BOX.0, from.1 + BOX.1 / 2.0), (to.0, to.1 + BOX.1 / 2.0));
        picture.line(from, to, "wire");
    }
    layout.chains(&mut picture);
    for part in &layout.parts {
        let class = if part.process.is_some() { "box process" } else { "box" };
        picture.rectangle(part.at, BOX, class, &part.hint);
        picture.text((part.at.0 + 10.0, part.at.1 + 15.0), "start", "", &part.name);
        picture.text((part.at.0 + 10.0, part.at.1 + 28.0), "start", "small", &part.below);
    }
    picture.finish("devices and processes")
}

impl Layout<'_> {
    /// Gives everything its place, and returns how many rows there are.
    fn fill(&mut self) -> usize {
        let system = self.system;
        let ends = system.pipes.iter().filter_map(|pipe| Some((pipe, pipe.process()?.into())));
        let piped: Vec<(&PipeSpec, usize)> = ends.collect();
        let servers: Vec<usize> = servers(system);
        let all = 0..system.processes.len();
        let others = all.filter(|p| !piped.iter().any(|(_, end)| end == p) && !servers.contains(p));
        let others: Vec<usize> = others.collect();
        let right = piped.len().max(system.usb.len()).max(1);
        let middle = ROW * right as f64 / 2.0 - ROW / 2.0 + 10.0;
        let place = |column: usize, row: f64| (COLUMNS[column], 10.0 + ROW * row);
        for (row, (pipe, reader)) in piped.iter().enumerate() {
            let at = place(3, row as f64);
            self.wires.push([(COLUMNS[2], middle), at]);
            self.process(at, *reader, format!("{}, {}/s", pipe.name, pipe.rate));
        }
        let above = right.saturating_sub(system.usb.len()) as f64 / 2.0;
        for (row, usb) in system.usb.iter().enumerate() {
            let at = place(0, above + row as f64);
            self.wires.push([at, (COLUMNS[1], middle)]);
            let below = format!("{} at port {}", usb.word(), usb.port);
            self.thing(at, &usb.name, below);
        }
        if let (Some(server), Some(usb)) = (servers.first(), system.usb.first()) {
            let (controller, server_at) = ((COLUMNS[1], middle), (COLUMNS[2], middle));
            self.wires.push([controller, server_at]);
            let name = &system.devices[usb.device].name;
            self.thing(controller, name, String::from("host controller"));
            self.process(server_at, *server, budget(system, *server));
        }
        for (index, other) in others.iter().enumerate() {
            let at = place(index % 4, (right + index / 4) as f64);
            self.process(at, *other, budget(system, *other));
        }
        right + others.len().div_ceil(4)
    }

    fn process(&mut self, at: (f64, f64), number: usize, below: String) {
        let process = &self.system.processes[number];
        let (name, hint) = (process.name.clone(), process.program.clone());
        self.parts.push(Part { at, process: Some(number), name, below, hint });
    }

    fn thing(&mut self, at: (f64, f64), name: &str, below: String) {
        let (name, hint) = (name.to_owned(), name.to_owned());
        self.parts.push(Part { at, process: None, name, below, hint });
    }

    /// Draws the way of every chain from process to process, with what hands messages over.
    fn chains(&self, picture: &mut Picture) {
        let place = |process: u16| {
            let is = |part: &&Part| part.process == Some(process.into());
            self.parts.iter().find(is).map(|part| part.at)
        };
        for chain in &self.system.chains {
            let way = processes(chain, self.system);
            for (pair, link) in way.windows(2).zip(&chain.links) {
                let [Some(from), Some(to)] = [place(pair[0]), place(pair[1])] else { continue };
                let edge = |at: (f64, f64), down: bool| {
                    (at.0 + BOX.0 / 2.0, at.1 + if down { BOX.1 } else { 0.0 })
                };
                let down = to.1 > from.1;
                let (start, end) = (edge(from, down), edge(to, !down));
                picture.line(start, end, "link");
                let at = (end.0, if down { end.1 - 4.0 } else { end.1 + 12.0 });
                let words = format!("{}: {}", chain.name, link.by);
                picture.text(at, "middle", "small", &words);
            }
        }
    }
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

/// Returns the promise to a process.
fn budget(system: &System, index: usize) -> String {
    let process = &system.processes[index];
    let vcpu = process.vcpu.and_then(|number| system.vcpus.get(usize::from(number)));
    let budget = vcpu.map(|vcpu| match &vcpu.server {
        ServerSpec::Main { budget_ns, period_ns, .. } => {
            let ms = |ns: &u64| *ns as f64 / 1e6;
            format!("{} ms in {} ms", ms(budget_ns), ms(period_ns))
        }
        ServerSpec::Io { utilization_ppm, .. } => {
            format!("{} %", f64::from(*utilization_ppm) / 1e4)
        }
    });
    budget.unwrap_or_else(|| format!("priority {}", process.priority))
}
