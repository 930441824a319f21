//! The common results of all messages of a pipe: the longest time at each stage, beside the plan,
//! and the life of the worst.

use super::life::{Journey, JourneyPart, Life};
use crate::names::Names;
use crate::simulate::explain::shown;
use crate::table::{Align, TextTable};
use diapason_abi::Nanos;
use diapason_pipe::bill::{Bill, What};
use diapason_system::{PipeDirection, PipeSpec, System};
use serde_json::{Value, json};

/// One stage, of all messages.
#[derive(Clone, Copy, Default, Debug)]
struct Longest {
    within: Nanos,
    by_end: Nanos,
}

/// The results of one pipe.
#[derive(Clone, Debug)]
pub struct Seen {
    /// How long a message is at each stage, by the plan.
    bill: Option<Bill>,
    /// Messages that were followed to their end.
    pub messages: u64,
    /// The life of the one that took longest.
    pub worst: Option<Life>,
    /// The name of its reader, if that is on another core than the server.
    pub far_reader: Option<String>,
    stages: [Longest; What::ALL.len()],
}

impl Seen {
    /// Returns results without messages.
    #[must_use]
    pub fn new(bill: Option<Bill>) -> Seen {
        let stages = [Longest::default(); What::ALL.len()];
        Seen { bill, messages: 0, worst: None, far_reader: None, stages }
    }

    /// Adds one more message, and returns whether no other took so long.
    pub fn note(&mut self, journey: &Journey, parts: &[JourneyPart]) -> bool {
        self.messages += 1;
        let mut within = [Nanos::ZERO; What::ALL.len()];
        for part in parts {
            within[part.stage as usize] += part.to - part.from;
        }
        let mut by_end = Nanos::ZERO;
        for (longest, within) in self.stages.iter_mut().zip(within) {
            // A command of a disk is on the bus and in the disk by turns, so a stage counts until
            // its end without the stages behind it.
            by_end += within;
            longest.within = longest.within.max(within);
            longest.by_end = longest.by_end.max(by_end);
        }
        let took = journey.to - journey.from;
        self.worst.as_ref().is_none_or(|worst| took > worst.latency())
    }

    /// Returns its stages, with what the plan says of them.
    #[must_use]
    pub fn stages(&self) -> Vec<SeenStage> {
        let mut planned_by_end = Nanos::ZERO;
        let stage = |(longest, what): (&Longest, What)| {
            let planned = self.bill.and_then(|bill| bill.item(what)).map(|item| item.value);
            planned_by_end += planned.unwrap_or_default();
            let never = planned.is_none() && longest.within == Nanos::ZERO;
            let Longest { within, by_end } = *longest;
            (!never).then_some(SeenStage { what, longest: within, planned, by_end, planned_by_end })
        };
        self.stages.iter().zip(What::ALL).filter_map(stage).collect()
    }
}

/// A stage of a pipe: seen and planned.
#[derive(Clone, Copy, Debug)]
pub struct SeenStage {
    pub what: What,
    /// The longest that a message was at it.
    pub longest: Nanos,
    /// The longest by the plan.
    pub planned: Option<Nanos>,
    /// The longest from its beginning until it had left the stage.
    pub by_end: Nanos,
    /// The longest by the plan from its beginning until it has left the stage.
    pub planned_by_end: Nanos,
}

/// Returns all pipes of a system, as a table for each way.
#[must_use]
pub fn render(system: &System, seen: &[Seen], names: &Names) -> String {
    let (left, right) = (Align::Left, Align::Right);
    let mut text = String::new();
    for (way, pipe, process) in [
        (PipeDirection::FromDevice, "pipe", "reader"),
        (PipeDirection::ToDevice, "pipe to", "writer"),
    ] {
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
        let mut table = TextTable::new(&columns);
        for (pipe, seen) in system.pipes.iter().zip(seen).filter(|(pipe, _)| pipe.way == way) {
            let far = || seen.far_reader.clone().unwrap_or_default();
            let process = pipe.process().map_or_else(far, |it| names.process(it.into()));
            let head = [pipe.name.clone(), process, seen.messages.to_string()];
            rows(seen, head).into_iter().for_each(|row| table.row(row));
        }
        let table = table.render();
        text += if text.is_empty() || table.is_empty() { "" } else { "\n" };
        text += &table;
    }
    text
}

/// Returns the rows of one pipe: its stages, then its messages from end to end.
fn rows(seen: &Seen, head: [String; 3]) -> Vec<Vec<String>> {
    let planned = |value: Option<Nanos>| value.map_or_else(|| String::from("-"), shown);
    let stages = seen.stages().into_iter().map(|stage| {
        let name = stage.what.name().to_owned();
        let of_it = [shown(stage.longest), planned(stage.planned)];
        let by_end = [shown(stage.by_end), shown(stage.planned_by_end)];
        [vec![name], of_it.to_vec(), by_end.to_vec()].concat()
    });
    let worst = seen.worst.as_ref().map(Life::latency);
    let total =
        vec![String::from("in all"), planned(worst), planned(seen.bill.map(|bill| bill.total))];
    let mut head = Some(head);
    let heads = std::iter::from_fn(|| Some(head.take().unwrap_or_default()));
    heads.zip(stages.chain([total])).map(|(head, row)| [head.to_vec(), row].concat()).collect()
}

/// Returns all pipes of a system as JSON.
#[must_use]
pub fn to_json(system: &System, seen: &[Seen]) -> Value {
    let pipe = |(pipe, seen): (&PipeSpec, &Seen)| {
        let stage = |stage: SeenStage| {
            json!({
                "stage": stage.what.name(),
                "longest_ns": stage.longest.0,
                "planned_ns": stage.planned.map(|planned| planned.0),
                "by_end_ns": stage.by_end.0,
                "planned_by_end_ns": stage.planned_by_end.0,
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
