//! The bills of chains as stacked bars, with what was seen at their ends.

use super::Facts;
use super::bills::key;
use super::svg::{Picture, colour};
use crate::chart::Axis;
use crate::duration::human;
use crate::outcome::ChainPromise;
use crate::plan::chains::ChainBill;

const LEFT: f64 = 110.0;
const ROW: f64 = 46.0;
const WIDTH: f64 = 960.0;

/// Returns one bar for each chain, and what its colours mean; nothing without any.
pub fn chains(facts: &Facts<'_>) -> String {
    let named = facts.session.system.chains.iter().zip(&facts.plan.chains);
    let promises = facts.session.assumptions(facts.run).chains;
    let bars = named.filter_map(|(chain, chained)| {
        let bill = chained.bill.as_ref().ok()?;
        let promise = promises.iter().find(|promise| promise.name == chain.name);
        let seen = |p: &ChainPromise| Some(p.row(facts.outcome())?.whole_max_ns + p.least_ns);
        Some(bar(&chain.name, bill, promise.and_then(seen), chain.latency_ns))
    });
    bars.collect()
}

fn bar(name: &str, bill: &ChainBill, seen: Option<u64>, wanted: Option<u64>) -> String {
    let longest = bill.total.0.max(wanted.unwrap_or(0)).max(seen.unwrap_or(0));
    let axis = Axis::up_to(longest as f64 / 1e6, LEFT, WIDTH - 20.0);
    let x = |ns: u64| axis.place(ns as f64 / 1e6);
    let mut picture = Picture::new(WIDTH, ROW + 36.0);
    for tick in axis.ticks() {
        let (at, label) = (axis.place(tick), format!("{} ms", axis.label(tick)));
        picture.line((at, 4.0), (at, ROW + 8.0), "grid");
        picture.text((at, ROW + 24.0), "middle", "small", &label);
    }
    picture.text((LEFT - 8.0, 29.0), "end", "", name);
    let mut legend = String::new();
    for (index, item) in bill.items.iter().enumerate() {
        let (from, to) = (item.after.0 - item.value.0, item.after.0);
        let class = colour(index);
        let hint = format!("{}: {}", item.what, human(item.value.0));
        picture.rectangle((x(from), 12.0), ((x(to) - x(from)).max(0.5), 24.0), &class, &hint);
        legend += &key(&class, &item.what);
    }
    let marks = [(seen, "seen", "longest seen"), (wanted, "wanted", "wanted")];
    for (at, class, what) in marks {
        let Some(at) = at else { continue };
        picture.line((x(at), 7.0), (x(at), 41.0), class);
        let hint = format!("{what}: {}", human(at));
        picture.rectangle((x(at) - 3.0, 4.0), (6.0, 4.0), class, &hint);
        legend += &key(class, what);
    }
    let title = format!("the bill of chain {name}");
    picture.finish(&title) + &format!("<p class=\"legend\">{legend}</p>\n")
}
