//! The hosts of a page and the cables between them, or the cores of a host and what they share.

use super::facts::{Facts, PageFacts, anchor};
use super::svg::Picture;
use super::tables;
use crate::duration::human;
use diapason_system::{Cable, End, Hosts, Socket};
use std::f64::consts::TAU;

const WIDTH: f64 = 960.0;
const BOX: (f64, f64) = (190.0, 40.0);

/// Two parts that are joined, and by what.
struct Join {
    ends: [usize; 2],
    name: String,
    class: &'static str,
}

/// Returns the picture of all parts.
pub fn picture(page: &PageFacts<'_>) -> String {
    let joins = joins(page);
    let count = page.parts.len();
    let height = (70.0 * count.div_ceil(2) as f64 + 60.0).max(130.0);
    let places: Vec<(f64, f64)> = (0..count).map(|part| place(part, count, height)).collect();
    let mut picture = Picture::new(WIDTH, height);
    for (number, join) in joins.iter().enumerate() {
        let beside = joins[..number].iter().filter(|other| same(other, join)).count();
        draw(&mut picture, join, beside, &places);
    }
    for (facts, at) in page.parts.iter().zip(&places) {
        let (id, name) = (anchor(&["part", facts.name]), page.called(facts));
        let corner = (at.0 - BOX.0 / 2.0, at.1 - BOX.1 / 2.0);
        let label = format!("{name}: {}", facts.badge().words());
        picture.link(&id, &label, |picture| {
            picture.rectangle(corner, BOX, "box process", &label);
            picture.text((corner.0 + 10.0, corner.1 + 17.0), "start", "", &name);
            picture.text((corner.0 + 10.0, corner.1 + 32.0), "start", "small", &below(facts));
        });
    }
    picture.finish("hosts or cores, and what joins them")
}

/// Returns the middle of a part: they stand around an ellipse, the first at the left. So no line
/// between two passes a third.
fn place(part: usize, count: usize, height: f64) -> (f64, f64) {
    let (middle, turn) = ((WIDTH / 2.0, height / 2.0), TAU * part as f64 / count.max(1) as f64);
    let (wide, high) = ((WIDTH - BOX.0) / 2.0 - 10.0, (height - BOX.1) / 2.0 - 10.0);
    (middle.0 - wide * turn.cos(), middle.1 - high * turn.sin())
}

fn same(one: &Join, other: &Join) -> bool {
    let sorted = |join: &Join| {
        let [from, to] = join.ends;
        (from.min(to), from.max(to))
    };
    sorted(one) == sorted(other)
}

/// Draws a line between two parts. `beside` lines between the same two are there already.
fn draw(picture: &mut Picture, join: &Join, beside: usize, places: &[(f64, f64)]) {
    let [Some(from), Some(to)] = join.ends.map(|end| places.get(end).copied()) else { return };
    let down = 14.0 * beside as f64;
    let (from, to) = ((from.0, from.1 + down), (to.0, to.1 + down));
    picture.line(from, to, join.class);
    let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1) - 4.0);
    picture.text(middle, "middle", "small", &join.name);
}

fn below(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let count = |number: usize, one: &str, more: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {more}"),
    };
    let processes = count(system.processes.len(), "process", "processes");
    format!("{processes}, {}", count(system.vcpus.len(), "VCPU", "VCPUs"))
}

fn joins(page: &PageFacts<'_>) -> Vec<Join> {
    match page.network {
        Some((hosts, _)) => hosts.cables.iter().map(cable).collect(),
        None => shared(page),
    }
}

fn cable(cable: &Cable) -> Join {
    Join { ends: cable.ends.map(|end| end.host), name: cable.name.clone(), class: "wire" }
}

/// Returns the segments and doorbells that two cores have in common: each core has its own ends of
/// them, under one name.
fn shared(page: &PageFacts<'_>) -> Vec<Join> {
    let names = |facts: &Facts<'_>| -> Vec<String> {
        let system = &facts.session.system;
        let segments = system.segments.iter().filter(|it| it.common).map(|it| it.name.clone());
        segments.chain(system.devices.iter().map(|it| it.name.clone())).collect()
    };
    let all: Vec<Vec<String>> = page.parts.iter().map(names).collect();
    let mut joins = Vec::new();
    for (one, own) in all.iter().enumerate() {
        for (other, theirs) in all.iter().enumerate().skip(one + 1) {
            let common = own.iter().filter(|name| theirs.contains(name));
            joins.extend(common.map(|name| Join {
                ends: [one, other],
                name: name.clone(),
                class: "link",
            }));
        }
    }
    joins
}

/// Returns the cables, or what cores share, as a table.
pub fn table(page: &PageFacts<'_>) -> String {
    let Some((hosts, _)) = page.network else {
        let name = |end: usize| page.parts.get(end).map_or("", |facts| facts.name).to_owned();
        let row = |join: &Join| vec![join.name.clone(), name(join.ends[0]), name(join.ends[1])];
        let rows: Vec<Vec<String>> = joins(page).iter().map(row).collect();
        return tables::table(&["shared", "by core", "and core"], &rows);
    };
    let row = |cable: &Cable| {
        let [one, other] = cable.ends.map(|end| written(&end, hosts));
        vec![cable.name.clone(), one, other, human(cable.delay_ns)]
    };
    let rows: Vec<Vec<String>> = hosts.cables.iter().map(row).collect();
    tables::table(&["cable", "from", "to", "delay"], &rows)
}

fn written(end: &End, hosts: &Hosts) -> String {
    let host = &hosts.hosts[end.host];
    let socket = match end.socket {
        Socket::Port(port) => format!("port {port}"),
        Socket::Debug => "debug capability".to_owned(),
    };
    format!("{}, {} of {}", host.name, socket, host.system.devices[end.device].name)
}
