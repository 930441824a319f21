//! The bills of flows over cables, for people and for programs.

use crate::duration::human;
use crate::table::{Columns, cell, time};
use diapason_plan::{FlowBill, FlowItem, NetworkPlan};
use diapason_system::{Flow, Hosts};
use serde_json::{Value, json};

/// Returns every flow with its bill, a line for each item; nothing without flows.
pub(super) fn render(network: &NetworkPlan, hosts: &Hosts) -> String {
    let named = hosts.flows.iter().zip(&network.flows);
    let parts = named.map(|(flow, flowed)| match &flowed.bill {
        Ok(bill) => table(flow, bill, hosts),
        Err(_) => format!("flow {}: NONE\n", flow.name),
    });
    parts.collect::<Vec<String>>().join("\n")
}

/// Returns every flow with its bill as a JSON object.
pub(super) fn to_json(network: &NetworkPlan, hosts: &Hosts) -> Vec<Value> {
    let named = hosts.flows.iter().zip(&network.flows);
    let object = named.map(|(flow, flowed)| {
        let bill = flowed.bill.as_ref().ok();
        let items = bill.map(|bill| columns(flow, hosts).objects(bill.items.iter().enumerate()));
        json!({
            "flow": flow.name,
            "wanted_ns": flow.latency_ns,
            "bound_ns": bill.map(|bill| bill.total.0),
            "items": items,
        })
    });
    object.collect()
}

/// An item of a bill, with its number.
type Numbered<'a> = (usize, &'a FlowItem);

fn columns<'h>(flow: &'h Flow, hosts: &'h Hosts) -> Columns<'h, Numbered<'h>> {
    let waiting = |item: &FlowItem| match item.waiting {
        Some((waiting, room)) => cell(format!("{waiting} of {room}"), waiting),
        None => cell("", Value::Null),
    };
    let host = move |item: &FlowItem| item.host.map(|host| hosts.hosts[host].name.clone());
    Columns::<Numbered<'h>>::default()
        .left("flow", |it| if it.0 == 0 { flow.name.as_str() } else { "" })
        .left("where", move |it| it.1.place(hosts))
        .json("host", move |it| host(it.1))
        .json("name", |it| it.1.name.clone())
        .left(("does", "stage"), |it| it.1.stage.word())
        .right(("at most", "ns"), |it| time(it.1.value.0))
        .right(("after", "after_ns"), |it| time(it.1.after.0))
        .right(("waiting", "waiting"), move |it| waiting(it.1))
        .json("room", |it| it.1.waiting.map(|(_, room)| room))
}

fn table(flow: &Flow, bill: &FlowBill, hosts: &Hosts) -> String {
    let table = columns(flow, hosts).table(bill.items.iter().enumerate());
    let wanted = flow.latency_ns.map_or(String::new(), |ns| format!(", {} wanted", human(ns)));
    table.render() + &format!("flow {}: {} at most{wanted}\n", flow.name, human(bill.total.0))
}
