//! The bills of pipes for people: one row per pipe, one column per item.

use super::view::View;
use crate::duration::human;
use crate::table::{Align, TextTable};
use diapason_abi::pipe::SLOTS;
use diapason_contract::source::PipeSource;
use diapason_pipe::bill::{Basis, Bill, What};
use diapason_plan::pipes::{NoBill, Piped};
use diapason_system::{PipeDirection, PipeSpec, System};

/// The columns of pipes from devices, in the order in which a message meets them.
const INPUT: [(What, &str); 10] = [
    (What::Asked, "asked"),
    (What::Request, "wait"),
    (What::Bus, "bus"),
    (What::Device, "device"),
    (What::Moderation, "moderation"),
    (What::TopHalf, "top half"),
    (What::BottomHalf, "bottom half"),
    (What::Driver, "driver"),
    (What::Look, "look"),
    (What::User, "user"),
];
/// The items of pipes to devices.
const OUTPUT: [(What, &str); 6] = [
    (What::Written, "writer"),
    (What::Taken, "taken"),
    (What::Bus, "bus"),
    (What::Device, "device"),
    (What::Drain, "its own bus"),
    (What::Back, "acknowledged"),
];

/// A pipe and what `plan` says of it.
type Row<'a> = (&'a PipeSpec, &'a Piped);

impl View<'_> {
    /// Returns every pipe with its bill; nothing without pipes.
    pub(super) fn pipe_table(&self, system: &System) -> String {
        if system.pipes.is_empty() {
            return String::new();
        }
        let rows = |way| {
            let all = system.pipes.iter().zip(&self.pipes);
            all.filter(|(pipe, _)| pipe.way == way).collect::<Vec<Row<'_>>>()
        };
        let from = table(&rows(PipeDirection::FromDevice), "pipe", &INPUT, ["slots", "in device"]);
        let to =
            table(&rows(PipeDirection::ToDevice), "pipe to", &OUTPUT, ["under way", "in device"]);
        let apart = if from.is_empty() || to.is_empty() { "" } else { "\n" };
        from + apart + &to + &self.bases(system)
    }

    /// Returns the assumptions of the bills, each once.
    fn bases(&self, system: &System) -> String {
        let bills = || self.pipes.iter().filter_map(|piped| piped.bill.as_ref().ok());
        let mut lines: Vec<String> = Vec::new();
        for item in bills().flat_map(Bill::items) {
            let line = format!("{}: {}\n", item.what.name(), item.basis);
            if item.basis != Basis::Given && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let source = |pipe: &PipeSpec| PipeSource::numbered(pipe.number.into());
        let from =
            |pipe: &PipeSpec| pipe.way == PipeDirection::FromDevice && source(pipe).is_none();
        if bills().next().is_some() && system.pipes.iter().any(from) {
            lines.push(format!("a buffer has {SLOTS} slots\n"));
        }
        for pipe in &system.pipes {
            let slots = source(pipe).map(|source| source.attributes.slots);
            let line = slots.map(|slots| format!("the buffer of {} has {slots}\n", pipe.name));
            lines.extend(line);
        }
        let refused =
            self.pipes.iter().filter(|piped| matches!(piped.bill, Err(NoBill::Refused(_))));
        if refused.count() > 0 {
            lines.push("NONE: a stage cannot keep up\n".to_owned());
        }
        lines.concat()
    }
}

/// Returns the bills of pipes of one way; nothing without any.
fn table(
    rows: &[Row<'_>],
    title: &'static str,
    items: &[(What, &'static str)],
    counts: [&'static str; 2],
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let bills = || rows.iter().flat_map(|(_, piped)| &piped.bill);
    let used = |(what, _): &&(What, &str)| bills().any(|bill| bill.item(*what).is_some());
    let items: Vec<&(What, &str)> = items.iter().filter(used).collect();
    let nine = rows.iter().any(|(_, piped)| piped.equation_nine.is_some());
    let mut columns = vec![(title, Align::Left), ("rate", Align::Right)];
    columns.extend(items.iter().map(|(_, name)| (*name, Align::Right)));
    columns.extend(["bound", "wanted"].map(|name| (name, Align::Right)));
    columns.extend(nine.then_some(("[USB 2023, eq. 9]", Align::Right)));
    columns.extend(counts.map(|name| (name, Align::Right)));
    let mut table = TextTable::new(&columns);
    for (pipe, piped) in rows {
        let mut row = vec![pipe.name.clone(), format!("{}/s", pipe.rate)];
        let bill = piped.bill.as_ref().ok();
        row.extend(items.iter().map(|(what, _)| {
            let item = bill.and_then(|bill| bill.item(*what));
            item.map_or("-".to_owned(), |item| human(item.value.0))
        }));
        let time = |time: Option<u64>| time.map_or("-".to_owned(), human);
        let count = |count: Option<u64>| count.map_or("-".to_owned(), |n| n.to_string());
        row.push(bill.map_or("NONE".to_owned(), |bill| human(bill.total.0)));
        row.push(time(pipe.latency_ns));
        row.extend(nine.then(|| time(piped.equation_nine.map(|time| time.0))));
        row.push(count(bill.map(|bill| bill.slots)));
        row.push(count(bill.map(|bill| bill.device)));
        table.row(row);
    }
    table.render()
}
