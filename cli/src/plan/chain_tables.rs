//! The bills of chains for people and for programs.

use super::view::View;
use crate::duration::human;
use crate::table::{Columns, cell, time};
use diapason_abi::pipe::OUT_SLOTS;
use diapason_plan::chains::{ChainBill, ChainItem};
use diapason_system::{ChainSpec, System};
use serde_json::{Value, json};

impl View<'_> {
    /// Returns every chain with its bill, a line for each item; nothing without chains.
    pub(super) fn chain_table(&self, system: &System) -> String {
        let named = system.chains.iter().zip(&self.chains);
        let parts = named.map(|(chain, chained)| match &chained.bill {
            Ok(bill) => table(chain, bill),
            Err(_) => format!("chain {}: NONE\n", chain.name),
        });
        parts.collect::<Vec<String>>().join("\n")
    }

    /// Returns every chain with its bill as a JSON object.
    pub(super) fn chained(&self, system: &System) -> Vec<Value> {
        let named = system.chains.iter().zip(&self.chains);
        let object = named.map(|(chain, chained)| {
            let bill = chained.bill.as_ref().ok();
            let items = bill.map(|bill| columns(chain).objects(bill.items.iter().enumerate()));
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

/// An item of a bill, with its number.
type Numbered<'a> = (usize, &'a ChainItem);

fn columns(chain: &ChainSpec) -> Columns<'_, Numbered<'_>> {
    let by = |item: &ChainItem| {
        let link = item.thread.and_then(|place| chain.links.get(place.checked_sub(1)?));
        link.map_or(String::new(), |link| format!(" ({})", link.by))
    };
    let waiting = |item: &ChainItem| match item.waiting {
        Some((waiting, room)) => cell(format!("{waiting} of {room}"), waiting),
        None => cell("", Value::Null),
    };
    Columns::<Numbered<'_>>::default()
        .left("chain", |it| if it.0 == 0 { chain.name.as_str() } else { "" })
        .left(("item", "item"), move |it| cell(it.1.what.clone() + &by(it.1), it.1.what.clone()))
        .json("thread", |it| it.1.thread)
        .right(("at most", "ns"), |it| time(it.1.value.0))
        .right(("after", "after_ns"), |it| time(it.1.after.0))
        .right(("waiting", "waiting"), move |it| waiting(it.1))
        .json("room", |it| it.1.waiting.map(|(_, room)| room))
}

fn table(chain: &ChainSpec, bill: &ChainBill) -> String {
    let table = columns(chain).table(bill.items.iter().enumerate());
    let wanted = chain.latency_ns.map_or(String::new(), |ns| format!(", {} wanted", human(ns)));
    let ring = bill
        .ring
        .map_or(String::new(), |ring| format!("; {ring} of {OUT_SLOTS} in the ring of its pipe"));
    let (total, name) = (human(bill.total.0), &chain.name);
    table.render() + &format!("chain {name}: {total} at most{wanted}{ring}\n")
}
