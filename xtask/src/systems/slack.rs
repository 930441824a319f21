//! Says why bounds of pipes are longer than what was seen: which items of their bills make the
//! difference, summed over a campaign.
//!
//! Of each pipe the message counts that took longest. Each item is a share of its pipe's bound, so
//! that a slow pipe counts no more than a fast one.

use diapason::simulate::Life;
use diapason::table::{Align, TextTable};
use diapason_pipe::bill::{Basis, Item};
use std::collections::BTreeMap;

/// The whole of a bound. Items are parts of it.
const WHOLE: u128 = 1_000_000;

/// The items of all bills that were compared with messages.
#[derive(Clone, Default, Debug)]
pub(crate) struct Slack {
    rows: BTreeMap<Key, Row>,
    pipes: u64,
}

/// One kind of item: pipes to a device or from one, the stage, and why its value holds.
type Key = (bool, &'static str, &'static str);

/// All items of a kind, as parts of the bounds of their pipes.
#[derive(Clone, Copy, Default, Debug)]
struct Row {
    pipes: u64,
    planned: u64,
    seen: u64,
}

impl Row {
    /// Returns the part of the bounds that was not seen; negative if a message was longer at a
    /// stage than its item, which is no breach.
    const fn slack(self) -> i64 {
        self.planned as i64 - self.seen as i64
    }

    const fn plus(self, other: Row) -> Row {
        Row {
            pipes: self.pipes + other.pipes,
            planned: self.planned + other.planned,
            seen: self.seen + other.seen,
        }
    }
}

impl Slack {
    /// Adds the message of a pipe that took longest.
    pub(crate) fn note(&mut self, life: &Life) {
        let Some(bill) = &life.bill else { return };
        let seen = |item: &Item| (*item, life.took(item.what).0);
        self.add(life.to_device, bill.items().iter().map(seen));
    }

    /// Adds a bill, each item with the time that a message was at its stage.
    fn add(&mut self, to_device: bool, items: impl Iterator<Item = (Item, u64)> + Clone) {
        let bound: u128 = items.clone().map(|(item, _)| u128::from(item.value.0)).sum();
        let part = |time: u64| (u128::from(time) * WHOLE / bound.max(1)) as u64;
        self.pipes += 1;
        for (item, seen) in items {
            let key = (to_device, item.what.name(), reason(item.basis));
            let row = Row { pipes: 1, planned: part(item.value.0), seen: part(seen) };
            let all = self.rows.entry(key).or_default();
            *all = all.plus(row);
        }
    }

    /// Adds everything that another one has.
    pub(crate) fn extend(&mut self, other: Slack) {
        self.pipes += other.pipes;
        for (key, row) in other.rows {
            let all = self.rows.entry(key).or_default();
            *all = all.plus(row);
        }
    }

    /// Returns the items as a table, those first that make most of the difference.
    pub(crate) fn render(&self) -> String {
        let (left, right) = (Align::Left, Align::Right);
        let mut table = TextTable::new(&[
            ("pipe", left),
            ("item", left),
            ("why", left),
            ("pipes", right),
            ("of bounds", right),
            ("seen", right),
            ("not seen", right),
            ("of all", right),
        ]);
        let mut rows: Vec<(&Key, &Row)> = self.rows.iter().collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.slack()));
        let all = rows.iter().fold(Row::default(), |sum, (_, row)| sum.plus(**row));
        let mean = |sum: i64| percent(sum, self.pipes.saturating_mul(WHOLE as u64));
        let mut put = |names: [&str; 3], count: u64, row: Row| {
            let names = names.map(String::from);
            let parts = [row.planned as i64, row.seen as i64, row.slack()].map(mean);
            let share = percent(row.slack(), all.slack().max(0) as u64);
            table.row([&names[..], &[count.to_string()], &parts[..], &[share]].concat());
        };
        for ((to_device, what, why), row) in rows {
            put([if *to_device { "to" } else { "from" }, what, why], row.pipes, *row);
        }
        put(["in all", "", ""], self.pipes, all);
        table.render()
    }
}

/// Returns `part` of `whole` in percent.
fn percent(part: i64, whole: u64) -> String {
    let tenths = i128::from(part) * 1_000 / i128::from(whole.max(1));
    let sign = if tenths < 0 { "-" } else { "" };
    format!("{sign}{}.{} %", tenths.abs() / 10, tenths.abs() % 10)
}

/// Returns why a value holds, without numbers.
const fn reason(basis: Basis) -> &'static str {
    match basis {
        Basis::Given => "given",
        Basis::EnoughQueued { .. } => "enough requests",
        Basis::Round { .. } => "a round of requests",
        Basis::Conformant => "never waits for budget",
        Basis::Backlog => "bursts wait for budget",
        Basis::Outstanding => "after any use of the budget",
        Basis::Full { .. } => "the pipe is full",
        Basis::Merged => "replenishments may merge",
        Basis::Places { .. } => "waits for a place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_abi::Nanos;
    use diapason_pipe::bill::What;

    fn item(what: What, value: u64, basis: Basis) -> Item {
        Item { what, value: Nanos(value), basis }
    }

    /// A long pipe counts no more than a short one, and what was seen is no slack.
    #[test]
    fn items_are_parts_of_the_bounds_of_their_pipes() {
        let mut slack = Slack::default();
        let short = [
            (item(What::Bus, 20, Basis::Given), 20),
            (item(What::User, 80, Basis::Conformant), 20),
        ];
        slack.add(false, short.into_iter());
        let long = [
            (item(What::Bus, 5_000, Basis::Given), 5_500),
            (item(What::User, 5_000, Basis::Merged), 0),
        ];
        let mut more = Slack::default();
        more.add(false, long.into_iter());
        slack.extend(more);
        let text = slack.render();
        let rows: Vec<String> = text.lines().skip(2).map(str::to_owned).collect();
        let row = |words: &[&str]| {
            let found = rows.iter().find(|row| words.iter().all(|word| row.contains(word)));
            found.map(|row| row.split_whitespace().filter(|it| it.contains('.')).count())
        };
        assert_eq!(slack.pipes, 2);
        assert_eq!(row(&["bus", "given", " 2 ", "35.0 %", "37.5 %", "-2.5 %", "-4.7 %"]), Some(4));
        assert_eq!(row(&["user", "never", " 1 ", "40.0 %", "10.0 %", "30.0 %", "57.1 %"]), Some(4));
        assert!(rows[0].contains("never waits"), "{text}");
        assert_eq!(row(&["in all", " 2 ", "100.0 %", "47.5 %", "52.5 %"]), Some(4), "{text}");
    }

    #[test]
    fn without_pipes_nothing_is_divided() {
        assert!(Slack::default().render().contains("in all"));
    }
}
