//! The bills of pipes for people: one row per pipe, one column per item.

use super::pipes::NoBill;
use super::verdict::Plan;
use crate::duration::human;
use crate::table::{Align, Table};
use diapason_abi::pipe::SLOTS;
use diapason_pipe::bill::{Basis, Bill, What};
use diapason_system::System;

/// The columns, in the order in which a message meets them.
const ITEMS: [(What, &str); 7] = [
    (What::Request, "wait"),
    (What::Bus, "bus"),
    (What::Moderation, "moderation"),
    (What::TopHalf, "top half"),
    (What::BottomHalf, "bottom half"),
    (What::Driver, "driver"),
    (What::User, "user"),
];

impl Plan {
    /// Every pipe with its bill; nothing without pipes.
    pub(super) fn pipe_table(&self, system: &System) -> String {
        let used = |(what, _): &&(What, &str)| {
            self.pipes.iter().flat_map(|piped| &piped.bill).any(|bill| bill.item(*what).is_some())
        };
        let items: Vec<&(What, &str)> = ITEMS.iter().filter(used).collect();
        let mut columns = vec![("pipe", Align::Left), ("rate", Align::Right)];
        columns.extend(items.iter().map(|(_, name)| (*name, Align::Right)));
        let rest = ["bound", "wanted", "eq. 9", "slots", "in device"];
        columns.extend(rest.map(|name| (name, Align::Right)));
        let mut table = Table::new(&columns);
        for (pipe, piped) in system.pipes.iter().zip(&self.pipes) {
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
            row.push(time(piped.equation_nine.map(|time| time.0)));
            row.push(count(bill.map(|bill| bill.slots)));
            row.push(count(bill.map(|bill| bill.device)));
            table.row(row);
        }
        if system.pipes.is_empty() { String::new() } else { table.render() + &self.bases() }
    }

    /// What the bills rest on, each said once.
    fn bases(&self) -> String {
        let bills = || self.pipes.iter().filter_map(|piped| piped.bill.as_ref().ok());
        let mut lines: Vec<String> = Vec::new();
        for item in bills().flat_map(Bill::items) {
            let line = format!("{}: {}\n", item.what.name(), item.basis);
            if item.basis != Basis::Given && !lines.contains(&line) {
                lines.push(line);
            }
        }
        if bills().next().is_some() {
            lines.push(format!("a buffer has {SLOTS} slots\n"));
        }
        let refused =
            self.pipes.iter().filter(|piped| matches!(piped.bill, Err(NoBill::Refused(_))));
        if refused.count() > 0 {
            lines.push("NONE: a stage cannot keep up\n".to_owned());
        }
        lines.concat()
    }
}
