//! What all messages of a pipe showed together: how long one was at each stage at most, beside the
//! plan, and the life of the worst.

use super::life::Life;
use crate::names::Names;
use crate::simulate::explain::shown;
use crate::table::{Align, Table};
use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_system::{Pipe, System, Way};
use serde_json::{Value, json};

/// One stage, of all messages.
#[derive(Clone, Copy, Default, Debug)]
struct Longest {
    within: Nanos,
    since: Nanos,
}

/// What was seen of one pipe.
#[derive(Clone, Debug)]
pub struct Seen {
    way: Way,
    /// How long a message is at each stage, by the plan.
    bill: Option<Bill>,
    /// Messages that were followed to their end.
    pub messages: u64,
    /// The life of the one that took longest.
    pub worst: Option<Life>,
    stages: [Longest; What::ALL.len()],
}

impl Seen {
    /// Nothing yet.
    #[must_use]
    pub fn new(way: Way, bill: Option<Bill>) -> Seen {
        let stages = [Longest::default(); What::ALL.len()];
        Seen { way, bill, messages: 0, worst: None, stages }
    }

    /// One more message.
    pub fn note(&mut self, life: Life) {
        self.messages += 1;
        for (longest, what) in self.stages.iter_mut().zip(What::ALL) {
            longest.within = longest.within.max(life.took(what));
            longest.since = longest.since.max(life.since(what));
        }
        if self.worst.as_ref().is_none_or(|worst| life.latency() > worst.latency()) {
            self.worst = Some(life);
        }
    }

    /// Its stages, with what the plan says of them.
    #[must_use]
    pub fn stages(&self) -> Vec<Stage> {
        let mut before = Nanos::ZERO;
        let stage = |(longest, what): (&Longest, What)| {
            let planned = self.bill.and_then(|bill| bill.item(what)).map(|item| item.value);
            before += planned.unwrap_or_default();
            let never = planned.is_none() && longest.within == Nanos::ZERO;
            // A message to a device comes to some stages twice.
            let since = (self.way == Way::FromDevice).then_some((longest.since, before));
            (!never).then_some(Stage { what, longest: longest.within, planned, since })
        };
        self.stages.iter().zip(What::ALL).filter_map(stage).collect()
    }
}

/// A stage of a pipe: seen and planned.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Which.
    pub what: What,
    /// The longest that a message was at it.
    pub longest: Nanos,
    /// The longest by the plan.
    pub planned: Option<Nanos>,
    /// Since the device had it, until it had left the stage; seen and planned.
    pub since: Option<(Nanos, Nanos)>,
}

/// All pipes of a system, as a table for each way.
#[must_use]
pub fn render(system: &System, seen: &[Seen], names: &Names) -> String {
    let (left, right) = (Align::Left, Align::Right);
    let mut text = String::new();
    for (way, pipe, process) in
        [(Way::FromDevice, "pipe", "reader"), (Way::ToDevice, "pipe to", "writer")]
    {
        let columns = [
            (pipe, left),
            (process, left),
            ("messages", right),
            ("stage", left),
            ("longest", right),
            ("planned", right),
            ("by its end", right),
            ("planned", right),
        ];
        let shown = if way == Way::FromDevice { columns.len() } else { columns.len() - 2 };
        let mut table = Table::new(&columns[..shown]);
        for (pipe, seen) in system.pipes.iter().zip(seen).filter(|(pipe, _)| pipe.way == way) {
            let process = names.process(pipe.process.into());
            let head = [pipe.name.clone(), process, seen.messages.to_string()];
            rows(seen, head).into_iter().for_each(|row| table.row(row));
        }
        let table = table.render();
        text += if text.is_empty() || table.is_empty() { "" } else { "\n" };
        text += &table;
    }
    text
}

/// Of one pipe: its stages, then its messages from end to end.
fn rows(seen: &Seen, head: [String; 3]) -> Vec<Vec<String>> {
    let planned = |value: Option<Nanos>| value.map_or_else(|| String::from("-"), shown);
    let stages = seen.stages().into_iter().map(|stage| {
        let since = stage.since.map(|(seen, planned)| [shown(seen), shown(planned)]);
        let of_it = [stage.what.name().to_owned(), shown(stage.longest), planned(stage.planned)];
        of_it.into_iter().chain(since.into_iter().flatten()).collect::<Vec<String>>()
    });
    let worst = seen.worst.as_ref().map(Life::latency);
    let total =
        vec![String::from("in all"), planned(worst), planned(seen.bill.map(|bill| bill.total))];
    let mut head = Some(head);
    let heads = std::iter::from_fn(|| Some(head.take().unwrap_or_default()));
    heads.zip(stages.chain([total])).map(|(head, row)| [head.to_vec(), row].concat()).collect()
}

/// The same as JSON.
#[must_use]
pub fn to_json(system: &System, seen: &[Seen]) -> Value {
    let pipe = |(pipe, seen): (&Pipe, &Seen)| {
        let stage = |stage: Stage| {
            json!({
                "stage": stage.what.name(),
                "longest_ns": stage.longest.0,
                "planned_ns": stage.planned.map(|planned| planned.0),
                "since_ns": stage.since.map(|(seen, _)| seen.0),
                "planned_since_ns": stage.since.map(|(_, planned)| planned.0),
            })
        };
        json!({
            "pipe": pipe.name,
            "messages": seen.messages,
            "longest_ns": seen.worst.as_ref().map(|worst| worst.latency().0),
            "bound_ns": seen.bill.map(|bill| bill.total.0),
            "stages": seen.stages().into_iter().map(stage).collect::<Vec<Value>>(),
        })
    };
    Value::Array(system.pipes.iter().zip(seen).map(pipe).collect())
}
