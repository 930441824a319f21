//! The network of several hosts, as tables and as JSON.

use super::flow_tables;
use super::json::finding;
use super::wires;
use crate::table::{Align, TextTable};
use diapason_plan::NetworkPlan;
use diapason_system::{Cable, End, Hosts, Socket};
use diapason_topology::{Act, Occurrence, rounds};
use serde_json::{Value, json};

/// Returns the tables of cables and hosts, and the order of what hosts do.
pub(super) fn render(network: &NetworkPlan, hosts: &Hosts) -> String {
    let cables = if hosts.cables.is_empty() { String::new() } else { cables(network, hosts) };
    let wires = [
        wires::render(hosts),
        wires::render_credits(network, hosts),
        wires::render_times(network, hosts),
    ];
    let parts = [cables, lists(network, hosts), order(network, hosts)].into_iter().chain(wires);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn cables(network: &NetworkPlan, hosts: &Hosts) -> String {
    let mut table = TextTable::new(&[
        ("cable", Align::Left),
        ("kind", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("", Align::Left),
    ]);
    for (number, cable) in hosts.cables.iter().enumerate() {
        let [from, to] = ends(cable).map(|end| written(&end, hosts));
        let idle = network.idle.iter().filter(|idle| idle.cable == number);
        let mut idle: Vec<&str> = idle.map(|idle| hosts.hosts[idle.host].name.as_str()).collect();
        idle.dedup();
        let remark = match &idle[..] {
            [] => String::new(),
            names => format!("no program serves it in {}", names.join(", ")),
        };
        table.row(vec![cable.name.clone(), kind(cable).to_owned(), from, to, remark]);
    }
    table.render()
}

/// Returns the ends of a cable, the target's first.
fn ends(cable: &Cable) -> [End; 2] {
    match cable.ends {
        [one, other] if other.socket == Socket::Debug => [other, one],
        ends => ends,
    }
}

fn kind(cable: &Cable) -> &'static str {
    let is_debug = cable.ends.iter().any(|end| end.socket == Socket::Debug);
    if is_debug { "debug" } else { "bridge" }
}

fn written(end: &End, hosts: &Hosts) -> String {
    let host = &hosts.hosts[end.host];
    let socket = match end.socket {
        Socket::Port(port) => port.to_string(),
        Socket::Debug => "debug".to_owned(),
    };
    format!("{}:{}:{socket}", host.name, host.system.devices[end.device].name)
}

/// Returns what Algorithm 4 is told of each host; nothing if there is no debug cable.
fn lists(network: &NetworkPlan, hosts: &Hosts) -> String {
    let lists = &network.lists;
    let mut table = TextTable::new(&[
        ("host", Align::Left),
        ("waits for", Align::Left),
        ("enables", Align::Left),
    ]);
    let takes_part = |host: &usize| takes_part(network, *host);
    for host in (0..hosts.hosts.len()).filter(takes_part) {
        let awaits: Vec<&str> = awaits(network, hosts, host);
        let enables = match (lists.enables[host], lists.leads(host)) {
            (false, _) => "never",
            (true, true) => "first: it is the leader",
            (true, false) => "when it has enumerated",
        };
        let awaits = if awaits.is_empty() { "nobody".to_owned() } else { awaits.join(", ") };
        table.row(vec![hosts.hosts[host].name.clone(), awaits, enables.to_owned()]);
    }
    table.render()
}

fn awaits<'h>(network: &NetworkPlan, hosts: &'h Hosts, host: usize) -> Vec<&'h str> {
    let awaits = network.lists.awaits[host].iter();
    awaits.map(|other| hosts.hosts[*other].name.as_str()).collect()
}

/// Returns one line for each round, in which hosts do the same at any time relative to each other.
fn order(network: &NetworkPlan, hosts: &Hosts) -> String {
    let of = |round: &[Occurrence], act: Act| -> Option<String> {
        let named = round.iter().filter(|it| it.act == act && takes_part(network, it.host));
        let named: Vec<&str> = named.map(|it| hosts.hosts[it.host].name.as_str()).collect();
        (!named.is_empty()).then(|| format!("{}: {}", named.join(", "), word(act)))
    };
    let mut text = String::new();
    for round in rounds(&network.lists) {
        let acts = [Act::Enable, Act::Enumerate].into_iter().filter_map(|act| of(&round, act));
        let acts = acts.collect::<Vec<String>>().join("; ");
        if !acts.is_empty() {
            text += &format!("{} {acts}\n", if text.is_empty() { "order:" } else { "  then" });
        }
    }
    text
}

fn takes_part(network: &NetworkPlan, host: usize) -> bool {
    network.lists.enables[host] || !network.lists.awaits[host].is_empty()
}

const fn word(act: Act) -> &'static str {
    match act {
        Act::Enumerate => "enumerate",
        Act::Enable => "enable",
    }
}

/// Returns the network as an object. `docs/plan.md` documents it.
pub(super) fn to_json(network: &NetworkPlan, hosts: &Hosts) -> Value {
    let lists = &network.lists;
    let name = |host: usize| hosts.hosts[host].name.as_str();
    let cable = |(number, cable): (usize, &Cable)| {
        let idle = network.idle.iter().filter(|idle| idle.cable == number);
        json!({
            "cable": cable.name,
            "kind": kind(cable),
            "ends": ends(cable).map(|end| written(&end, hosts)),
            "unserved_in": idle.map(|idle| name(idle.host)).collect::<Vec<&str>>(),
        })
    };
    let host = |host: usize| {
        json!({
            "host": name(host),
            "awaits": awaits(network, hosts, host),
            "enables": lists.enables[host],
        })
    };
    let moment = |it: &Occurrence| json!({ "host": name(it.host), "act": word(it.act) });
    let round = |round: &Vec<Occurrence>| round.iter().map(moment).collect::<Value>();
    json!({
        "forms": network.forms(),
        "findings": network.wrong().flat_map(finding).collect::<Vec<Value>>(),
        "leader": lists.leader.map(name),
        "cables": hosts.cables.iter().enumerate().map(cable).collect::<Vec<Value>>(),
        "lists": (0..hosts.hosts.len()).map(host).collect::<Vec<Value>>(),
        "rounds": rounds(lists).iter().map(round).collect::<Vec<Value>>(),
        "ethernet": wires::to_json(hosts),
        "times": wires::times_to_json(network, hosts),
        "credits": wires::credits_to_json(network, hosts),
        "flows": flow_tables::to_json(network, hosts),
    })
}
