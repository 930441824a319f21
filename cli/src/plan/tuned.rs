//! Pipes that programs may open, for people and for programs.

use super::View;
use crate::duration::human;
use crate::table::{Align, Table};
use diapason_abi::pipe::{CHANNELS, Envelope};
use diapason_system::{System, Tpipe};
use serde_json::{Value, json};

impl View<'_> {
    /// Every place for a tuned pipe with the most that it may be; nothing without any.
    pub(super) fn tpipe_table(&self, system: &System) -> String {
        if system.tpipes.is_empty() {
            return String::new();
        }
        let columns = ["channels", "rate", "at once", "budget", "period"];
        let columns = columns.map(|name| (name, Align::Right));
        let first = [("may be opened", Align::Left), ("by", Align::Left)];
        let mut table = Table::new(&[&first[..], &columns[..]].concat());
        for tpipe in &system.tpipes {
            let Envelope { rate, burst, budget, period, .. } = tpipe.envelope;
            let reader = system.process_name(tpipe.process).unwrap_or_default();
            table.row(vec![
                tpipe.name.clone(),
                reader.to_owned(),
                ways(tpipe),
                format!("{rate}/s"),
                burst.to_string(),
                human(budget.0),
                human(period.0),
            ]);
        }
        table.render() + "all of it is in the bills, and no more is given\n"
    }
}

/// The channels it may listen to, or write to.
fn channels(tpipe: &Tpipe, is: fn(&Envelope, u8) -> bool) -> Vec<u8> {
    (0..CHANNELS as u8).filter(|channel| is(&tpipe.envelope, *channel)).collect()
}

/// The same in words.
fn ways(tpipe: &Tpipe) -> String {
    let list =
        |channels: Vec<u8>| channels.iter().map(u8::to_string).collect::<Vec<String>>().join(", ");
    let from = list(channels(tpipe, |envelope, channel| envelope.has(channel)));
    let to = list(channels(tpipe, |envelope, channel| envelope.writes(channel)));
    match (from.is_empty(), to.is_empty()) {
        (_, true) => from,
        (true, false) => format!("to {to}"),
        (false, false) => format!("{from} to {to}"),
    }
}

/// The places for programs.
pub(super) fn to_json(system: &System) -> Vec<Value> {
    let place = |tpipe: &Tpipe| {
        let Envelope { rate, burst, budget, period, .. } = tpipe.envelope;
        json!({
            "tpipe": tpipe.name,
            "channels": channels(tpipe, |envelope, channel| envelope.has(channel)),
            "to": channels(tpipe, |envelope, channel| envelope.writes(channel)),
            "rate": rate,
            "burst": burst,
            "budget_ns": budget.0,
            "period_ns": period.0,
        })
    };
    system.tpipes.iter().map(place).collect()
}
