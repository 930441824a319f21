//! The wires between adapters and switches, as a table and as JSON.

use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_system::{EthernetLink, Hosts, WireEnd};
use serde_json::{Value, json};

/// Returns the table of wires; nothing without wires.
pub(super) fn render(hosts: &Hosts) -> String {
    let mut table = TextTable::new(&[
        ("wire", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("Mbit/s", Align::Right),
        ("delay", Align::Right),
    ]);
    for link in &hosts.ethernet {
        let [from, to] = link.ends.map(|end| written(end, hosts));
        let delay = Nanos(link.delay_ns).to_string();
        table.row(vec![link.name.clone(), from, to, link.speed.to_string(), delay]);
    }
    if hosts.ethernet.is_empty() { String::new() } else { table.render() }
}

fn written(end: WireEnd, hosts: &Hosts) -> String {
    match end {
        WireEnd::Adapter { host, adapter } => {
            let host = &hosts.hosts[host];
            let device = host.system.adapters[adapter].device;
            format!("{}:{}", host.name, host.system.devices[device].name)
        }
        WireEnd::Port { switch, port } => format!("{}:{}", hosts.switches[switch].name, port + 1),
    }
}

/// Returns the wires as JSON objects.
pub(super) fn to_json(hosts: &Hosts) -> Vec<Value> {
    let object = |link: &EthernetLink| {
        json!({
            "wire": link.name,
            "ends": link.ends.map(|end| written(end, hosts)),
            "mbit": link.speed,
            "delay_ns": link.delay_ns,
        })
    };
    hosts.ethernet.iter().map(object).collect()
}
