//! The bills of flows over cables, for people and for programs.

use crate::duration::human;
use crate::table::{Columns, cell, time};
use diapason_plan::{FlowBill, FlowItem, NetworkPlan, OtherWay};
use diapason_system::{Flow, FlowWay, Hosts};
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
        let objects = |items: &[FlowItem]| columns(flow, hosts).objects(items.iter().enumerate());
        let items = bill.map(|bill| objects(&bill.items));
        let other = |it: &OtherWay| {
            json!({
                "by": cable(it, flow, hosts),
                "patience_ns": it.patience.0,
                "least_ns": it.least.0,
                "lost": it.lost,
                "again_ns": it.again.map(|again| again.0),
                "items": objects(&it.items),
            })
        };
        let others = bill.map(|bill| bill.others.iter().map(other).collect::<Vec<Value>>());
        json!({
            "flow": flow.name,
            "wanted_ns": flow.latency_ns,
            "bound_ns": bill.map(|bill| bill.total.0),
            "items": items,
            "longest_ns": bill.map(|bill| bill.longest.0),
            "otherwise": others,
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

/// Returns the name of the cable that another way goes around.
fn cable<'h>(other: &OtherWay, flow: &Flow, hosts: &'h Hosts) -> &'h str {
    match flow.hops.get(other.hop).map(|hop| hop.way) {
        Some(FlowWay::Cable(cable)) => &hosts.cables[cable].name,
        _ => "",
    }
}

fn table(flow: &Flow, bill: &FlowBill, hosts: &Hosts) -> String {
    let table = |items: &[FlowItem]| columns(flow, hosts).table(items.iter().enumerate()).render();
    let mut text = table(&bill.items);
    for other in &bill.others {
        let program = flow.stops().nth(other.hop).map_or_else(String::new, |stop| {
            let host = &hosts.hosts[stop.host];
            let name = host.system.process_name(stop.process).unwrap_or_default();
            format!("{}:{name}", host.name)
        });
        text += &format!(
            "\notherwise, when `{}` has not taken a message of {program} for {}\n\n{}lost or late \
             when `{}` is lost and when it is back: at most {}{}\n",
            cable(other, flow, hosts),
            human(other.patience.0),
            table(&other.items),
            cable(other, flow, hosts),
            other.lost,
            other.again.map_or_else(String::new, |again| format!(
                "; as many again each {} while its other side takes nothing",
                human(again.0)
            )),
        );
    }
    let wanted = flow.latency_ns.map_or(String::new(), |ns| format!(", {} wanted", human(ns)));
    let longest = match bill.others.is_empty() {
        true => String::new(),
        false => {
            text += "\n";
            format!(", {} by other ways", human(bill.longest.0))
        }
    };
    let own = human(bill.total.0);
    text + &format!("flow {}: {own} at most{longest}{wanted}\n", flow.name)
}
