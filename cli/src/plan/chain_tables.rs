//! The bills of chains for people and for programs.

use super::View;
use crate::duration::human;
use crate::table::{Align, Table};
use diapason_abi::pipe::OUT_SLOTS;
use diapason_plan::chains::{ChainBill, ChainItem};
use diapason_system::{Chain, System};
use serde_json::{Value, json};

impl View<'_> {
    /// Every chain with its bill, a line for each item; nothing without chains.
    pub(super) fn chain_table(&self, system: &System) -> String {
        let named = system.chains.iter().zip(&self.chains);
        let parts = named.map(|(chain, chained)| match &chained.bill {
            Ok(bill) => table(chain, bill),
            Err(_) => format!("chain {}: NONE\n", chain.name),
        });
        parts.collect::<Vec<String>>().join("\n")
    }

    /// The same as objects.
    pub(super) fn chained(&self, system: &System) -> Vec<Value> {
        let named = system.chains.iter().zip(&self.chains);
        let object = named.map(|(chain, chained)| {
            let bill = chained.bill.as_ref().ok();
            let items: Option<Vec<Value>> = bill.map(|bill| bill.items.iter().map(item).collect());
            json!({
                "chain": chain.name,
                "wanted_ns": chain.latency_ns,
                "bound_ns": bill.map(|bill| bill.total.0),
                "least_ns": bill.map(|bill| bill.least.0),
                "in_ring": bill.and_then(|bill| bill.ring),
                "items": items,
            })
        });
        object.collect()
    }
}

fn item(item: &ChainItem) -> Value {
    json!({
        "item": item.what,
        "thread": item.thread,
        "ns": item.value.0,
        "after_ns": item.after.0,
        "waiting": item.waiting.map(|(waiting, _)| waiting),
        "room": item.waiting.map(|(_, room)| room),
    })
}

fn table(chain: &Chain, bill: &ChainBill) -> String {
    let mut table = Table::new(&[
        ("chain", Align::Left),
        ("item", Align::Left),
        ("at most", Align::Right),
        ("after", Align::Right),
        ("waiting", Align::Right),
    ]);
    let mut name = chain.name.clone();
    for item in &bill.items {
        let by = item.thread.and_then(|place| chain.links.get(place.checked_sub(1)?));
        let by = by.map_or(String::new(), |link| format!(" ({})", link.by));
        table.row(vec![
            std::mem::take(&mut name),
            item.what.clone() + &by,
            human(item.value.0),
            human(item.after.0),
            item.waiting.map_or(String::new(), |(waiting, room)| format!("{waiting} of {room}")),
        ]);
    }
    let wanted = chain.latency_ns.map_or(String::new(), |ns| format!(", {} wanted", human(ns)));
    let ring = bill
        .ring
        .map_or(String::new(), |ring| format!("; {ring} of {OUT_SLOTS} in the ring of its pipe"));
    let (total, name) = (human(bill.total.0), &chain.name);
    table.render() + &format!("chain {name}: {total} at most{wanted}{ring}\n")
}
