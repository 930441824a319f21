//! The bills of flows between hosts as stacked bars, each with its slowest message, and their
//! stages as tables.

use super::bills::key;
use super::facts::{PageFacts, anchor};
use super::svg::{Picture, colour};
use super::tables::table;
use crate::chart::{Axis, escaped};
use crate::duration::human;
use crate::simulate::{FlowLife, LinkLogs, ToldFlow, told_flows};
use diapason_system::{Flow, Hosts};

const LEFT: f64 = 110.0;
const ROW: f64 = 46.0;
const WIDTH: f64 = 960.0;
/// How high the bars are: what is planned, and the slowest message.
const PLANNED: f64 = 18.0;
const SEEN: f64 = 7.0;
/// The class of the time between hosts.
const CABLE: &str = "kernel";

/// A flow with its bill and its messages, and the longest that its last program measured.
struct Billed<'a> {
    flow: &'a Flow,
    told: ToldFlow<'a>,
    seen: Option<u64>,
}

impl Billed<'_> {
    /// Returns the life of its slowest message.
    fn worst(&self) -> Option<&FlowLife> {
        self.told.seen.worst.as_ref()
    }
}

/// Returns one bar for each flow, and below the stages of each; nothing without any.
pub fn flows(page: &PageFacts<'_>) -> String {
    let Some((hosts, network)) = page.network else { return String::new() };
    let logs: Vec<&LinkLogs> = page.parts.iter().map(|facts| facts.links).collect();
    let told = told_flows(hosts, network, &logs, None).into_iter();
    let billed = told.map(|told| {
        let flow = &hosts.flows[told.number];
        Billed { flow, told, seen: seen(page, flow) }
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
        it.told.bill.total.0.max(it.flow.latency_ns.unwrap_or(0)).max(it.seen.unwrap_or(0))
    };
    let longest = billed.iter().map(end).max().unwrap_or(0);
    let axis = Axis::up_to(longest as f64 / 1e6, LEFT, WIDTH - 20.0);
    let bottom = ROW * billed.len() as f64 + 8.0;
    let mut picture = Picture::of_bars(&axis, WIDTH, bottom);
    for (row, it) in billed.iter().enumerate() {
        let most = human(it.told.bill.total.0);
        let label = match it.worst() {
            Some(life) => {
                let took = human(life.latency().0);
                format!("{}: its slowest message took {took}, at most {most}", it.flow.name)
            }
            None => format!("{}: at most {most}", it.flow.name),
        };
        picture.link(&anchor(&["flow", &it.flow.name]), &label, |picture| {
            bar(picture, &axis, ROW * row as f64 + 12.0, it, hosts);
        });
    }
    picture.finish("the bill of every flow")
}

fn bar(picture: &mut Picture, axis: &Axis, y: f64, it: &Billed<'_>, hosts: &Hosts) {
    let x = |ns: u64| axis.place(ns as f64 / 1e6);
    picture.text((LEFT - 8.0, y + 17.0), "end", "", &it.flow.name);
    let mut part = |(from, to): (u64, u64), (y, high), host, hint: &str| {
        let size = ((x(to) - x(from)).max(0.5), high);
        picture.rectangle((x(from), y), size, &class(host), hint);
    };
    for item in &it.told.bill.items {
        let (place, word) = (item.place(hosts), item.stage.word());
        let hint = format!("{place} {word}: {}", human(item.value.0));
        let from = item.after.0.saturating_sub(item.value.0);
        part((from, item.after.0), (y, PLANNED), item.host, &hint);
    }
    let stages = it.worst().into_iter().flat_map(|life| it.told.steps.iter().zip(life.stages()));
    for (step, seen) in stages {
        let hint = format!("{} {}: took {}", step.place, step.does, human(seen.within.0));
        let end = seen.by_end.0;
        part((end - seen.within.0, end), (y + PLANNED + 1.0, SEEN), step.host, &hint);
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
    let items = billed.iter().flat_map(|it| &it.told.bill.items);
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

/// Returns the slowest message of a flow, then its planned stages. The place that the bar leads to
/// is inside what is folded up: a browser that goes there opens it.
fn stages(it: &Billed<'_>, hosts: &Hosts) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for item in &it.told.bill.items {
        let waiting =
            item.waiting.map_or("–".to_owned(), |(most, room)| format!("{most} of {room}"));
        let (value, after) = (human(item.value.0), human(item.after.0));
        rows.push(vec![item.place(hosts), item.stage.word().to_owned(), value, after, waiting]);
    }
    let (id, name) = (anchor(&["flow", &it.flow.name]), escaped(&it.flow.name));
    let seen = it.seen.map_or_else(
        || "No message was measured.".to_owned(),
        |seen| format!("The longest that the last program measured is {}.", human(seen)),
    );
    let life = it.worst().map_or_else(
        || "<p>No message was followed to its end.</p>".to_owned(),
        |life| format!("<pre>{}</pre>", escaped(&it.told.life(life))),
    );
    let table = table(&["where", "does", "at most", "after", "waiting"], &rows);
    format!(
        "<details><summary>The slowest message of {name}</summary>\n\
         <div id=\"{id}\" class=\"wide\" tabindex=\"0\" role=\"group\" \
         aria-label=\"the slowest message of {name}\">{life}</div><p>{seen}</p></details>\n\
         <details><summary>The planned stages of {name}</summary>\n{table}</details>\n"
    )
}
