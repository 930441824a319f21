//! The bills of flows between hosts as stacked bars, and their stages as tables.

use super::bills::key;
use super::facts::{PageFacts, anchor};
use super::svg::{Picture, colour};
use super::tables::table;
use crate::chart::{Axis, escaped};
use crate::duration::human;
use crate::plan::FlowBill;
use diapason_system::{Flow, Hosts};

const LEFT: f64 = 110.0;
const ROW: f64 = 46.0;
const WIDTH: f64 = 960.0;
/// The class of the time between hosts.
const CABLE: &str = "kernel";

/// A flow with its bill, and the longest that its last program measured.
struct Billed<'a> {
    flow: &'a Flow,
    bill: &'a FlowBill,
    seen: Option<u64>,
}

/// Returns one bar for each flow, and below the stages of each; nothing without any.
pub fn flows(page: &PageFacts<'_>) -> String {
    let Some((hosts, network)) = page.network else { return String::new() };
    let named = hosts.flows.iter().zip(&network.flows);
    let billed = named.filter_map(|(flow, flowed)| {
        Some(Billed { flow, bill: flowed.bill.as_ref().ok()?, seen: seen(page, flow) })
    });
    let billed: Vec<Billed<'_>> = billed.collect();
    if billed.is_empty() {
        return String::new();
    }
    let tables: String = billed.iter().map(|it| stages(it, hosts)).collect();
    picture(&billed, hosts) + &legend(&billed, hosts) + &tables
}

/// Returns the longest that the program at the end of a flow measured.
fn seen(page: &PageFacts<'_>, flow: &Flow) -> Option<u64> {
    let end = page.parts.get(flow.end().host)?;
    let promise = end.session.flows.iter().find(|promise| promise.name == flow.name)?;
    Some(promise.row(end.outcome())?.whole_max_ns)
}

/// Returns the colour of a host; none stands for a cable.
fn class(host: Option<usize>) -> String {
    host.map_or_else(|| CABLE.to_owned(), colour)
}

fn picture(billed: &[Billed<'_>], hosts: &Hosts) -> String {
    let end = |it: &Billed<'_>| {
        it.bill.total.0.max(it.flow.latency_ns.unwrap_or(0)).max(it.seen.unwrap_or(0))
    };
    let longest = billed.iter().map(end).max().unwrap_or(0);
    let axis = Axis::up_to(longest as f64 / 1e6, LEFT, WIDTH - 20.0);
    let bottom = ROW * billed.len() as f64 + 8.0;
    let mut picture = Picture::of_bars(&axis, WIDTH, bottom);
    for (row, it) in billed.iter().enumerate() {
        let label = format!("{}: at most {}", it.flow.name, human(it.bill.total.0));
        picture.link(&anchor(&["flow", &it.flow.name]), &label, |picture| {
            bar(picture, &axis, ROW * row as f64 + 12.0, it, hosts);
        });
    }
    picture.finish("the bill of every flow")
}

fn bar(picture: &mut Picture, axis: &Axis, y: f64, it: &Billed<'_>, hosts: &Hosts) {
    let x = |ns: u64| axis.place(ns as f64 / 1e6);
    picture.text((LEFT - 8.0, y + 17.0), "end", "", &it.flow.name);
    for item in &it.bill.items {
        let (from, to) = (x(item.after.0.saturating_sub(item.value.0)), x(item.after.0));
        let (place, word) = (item.place(hosts), item.stage.word());
        let hint = format!("{place} {word}: {}", human(item.value.0));
        picture.rectangle((from, y), ((to - from).max(0.5), 24.0), &class(item.host), &hint);
    }
    let marks = [(it.seen, "seen", "longest measured"), (it.flow.latency_ns, "wanted", "wanted")];
    for (at, class, what) in marks {
        let Some(at) = at else { continue };
        picture.line((x(at), y - 5.0), (x(at), y + 29.0), class);
        let hint = format!("{what}: {}", human(at));
        picture.rectangle((x(at) - 3.0, y - 8.0), (6.0, 4.0), class, &hint);
    }
}

fn legend(billed: &[Billed<'_>], hosts: &Hosts) -> String {
    let items = billed.iter().flat_map(|it| &it.bill.items);
    let mut used: Vec<Option<usize>> = items.map(|item| item.host).collect();
    used.sort_unstable();
    used.dedup();
    let name = |host: Option<usize>| {
        host.map_or_else(|| "between hosts".to_owned(), |host| escaped(&hosts.hosts[host].name))
    };
    let hosts = used.into_iter().map(|host| key(&class(host), &name(host)));
    let marks = [key("seen", "longest measured"), key("wanted", "wanted")];
    format!("<p class=\"legend\">{}</p>\n", hosts.chain(marks).collect::<String>())
}

/// Returns the stages of a flow as a table. Only its last program measures: the simulation does not
/// follow a message through the servers of several hosts.
fn stages(it: &Billed<'_>, hosts: &Hosts) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for item in &it.bill.items {
        let waiting =
            item.waiting.map_or("–".to_owned(), |(most, room)| format!("{most} of {room}"));
        let (value, after) = (human(item.value.0), human(item.after.0));
        rows.push(vec![item.place(hosts), item.stage.word().to_owned(), value, after, waiting]);
    }
    let (id, name) = (anchor(&["flow", &it.flow.name]), escaped(&it.flow.name));
    let seen = it.seen.map_or_else(
        || "No message was measured.".to_owned(),
        |seen| format!("The slowest message of the run took {}, measured at its end.", human(seen)),
    );
    let table = table(&["where", "does", "at most", "after", "waiting"], &rows);
    format!(
        "<details><summary>The stages of {name}</summary>\n<p id=\"{id}\">{seen}</p>{table}\
         </details>\n"
    )
}
