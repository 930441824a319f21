//! Pipes that programs may open, for people and for programs.

use super::view::View;
use crate::table::{Columns, cell, time};
use diapason_abi::pipe::Envelope;
use diapason_contract::can::EACH;
use diapason_system::{System, Tpipe};
use serde_json::Value;

impl View<'_> {
    /// Returns every place for a tuned pipe with the most that it may be; nothing without any.
    pub(super) fn tpipe_table(&self, system: &System) -> String {
        if system.tpipes.is_empty() {
            return String::new();
        }
        let table = columns(system).table(&system.tpipes).render();
        table + "the bills count all of it, and the server gives no more\n"
    }
}

fn columns(system: &System) -> Columns<'_, Tpipe> {
    let from = |tpipe: &Tpipe| channels(tpipe, |envelope, channel| envelope.has(channel));
    let to = |tpipe: &Tpipe| channels(tpipe, |envelope, channel| envelope.writes(channel));
    let rate = |rate| cell(format!("{rate}/s"), rate);
    Columns::<Tpipe>::default()
        .left(("may be opened", "tpipe"), |it| it.name.clone())
        .left("by", |it| system.process_name(it.process).unwrap_or_default())
        .right(("channels", "channels"), move |it| cell(ways(&from(it), &to(it)), from(it)))
        .json("to", to)
        .right(("rate", "rate"), move |it| rate(it.envelope.rate))
        .right(("at once", "burst"), |it| it.envelope.burst)
        .right(("budget", "budget_ns"), |it| time(it.envelope.budget.0))
        .right(("period", "period_ns"), |it| time(it.envelope.period.0))
}

/// The channels it may listen to, or write to.
fn channels(tpipe: &Tpipe, is: fn(&Envelope, u8) -> bool) -> Vec<u8> {
    (0..EACH as u8).filter(|channel| is(&tpipe.envelope, *channel)).collect()
}

/// Returns the channels in words.
fn ways(from: &[u8], to: &[u8]) -> String {
    let list = |channels: &[u8]| channels.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let (from, to) = (list(from), list(to));
    match (from.is_empty(), to.is_empty()) {
        (_, true) => from,
        (true, false) => format!("to {to}"),
        (false, false) => format!("{from} to {to}"),
    }
}

/// Returns the places for programs.
pub(super) fn to_json(system: &System) -> Value {
    columns(system).objects(&system.tpipes)
}
