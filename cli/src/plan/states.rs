//! State messages and their slots, for people and for programs.

use super::view::View;
use crate::table::{Columns, cell, time};
use diapason_system::{StateSpec, System};
use serde_json::Value;

impl View<'_> {
    /// Returns every state message with its slots; nothing without any.
    pub(super) fn state_table(&self, system: &System) -> String {
        if system.states.is_empty() {
            return String::new();
        }
        columns().table(&system.states).render()
    }
}

fn columns<'a>() -> Columns<'a, StateSpec> {
    let readers = |state: &StateSpec| -> Vec<String> {
        state.readers.iter().map(|reader| reader.name.clone()).collect()
    };
    let longest = |state: &StateSpec| {
        let windows = state.readers.iter().map(|reader| reader.window_ns);
        windows.max().unwrap_or_default()
    };
    Columns::<StateSpec>::default()
        .left(("state message", "state"), |it| it.name.clone())
        .right(("bytes", "bytes"), StateSpec::bytes)
        .left(("written by", "writer"), |it| it.writer.clone())
        .right(("at most every", "period_ns"), |it| time(it.period_ns))
        .left(("read by", "readers"), move |it| cell(readers(it).join(", "), readers(it)))
        .right(("a read ends within", "read_ns"), move |it| time(longest(it)))
        .right(("slots", "slots"), |it| it.slots)
}

/// Returns the state messages for programs.
pub(super) fn to_json(system: &System) -> Value {
    columns().objects(&system.states)
}
