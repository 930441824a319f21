//! The tables of the page.

use super::Facts;
use crate::chart::escaped;
use crate::duration::human;
use crate::outcome::{
    AdapterPromise, ChainPromise, PipePromise, SocketPromise, Station, ThreadRow,
};
use crate::table::{Columns, share};
use diapason_system::{PipeDirection, ServerSpec};
use std::borrow::Borrow;

/// Returns a table of HTML; the first column is text, the others are numbers.
pub fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: String =
        columns.iter().map(|name| format!("<th scope=\"col\">{}</th>", escaped(name))).collect();
    let row = |cells: &Vec<String>| {
        let cells: String =
            cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table>\
         <thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>\n"
    )
}

/// Rows of declared columns.
fn declared<R>(columns: &Columns<'_, R>, rows: impl Iterator<Item: Borrow<R>>) -> String {
    let rows = rows.map(|row| columns.cells(row.borrow(), "–")).collect::<Vec<_>>();
    table(&columns.titles().collect::<Vec<_>>(), &rows)
}

/// Pipes: what was promised, and what was seen; those from devices, and those to them.
pub fn pipes(facts: &Facts<'_>) -> String {
    let promises = facts.session.promises();
    let of = |way: PipeDirection| {
        let columns = PipePromise::columns(way, facts.outcome(), &facts.session.names);
        let columns = columns.without(&["reader", "writer", "a second"]);
        declared(&columns, promises.iter().filter(|promise| promise.way == way))
    };
    of(PipeDirection::FromDevice) + &of(PipeDirection::ToDevice)
}

/// Sockets and adapters: what was promised, and what was seen.
pub fn sockets(facts: &Facts<'_>) -> String {
    let (assumed, outcome) = (facts.session.assumptions(facts.run), facts.outcome());
    let names = &facts.session.names;
    declared(&SocketPromise::columns(outcome, names), assumed.sockets.iter())
        + &declared(&AdapterPromise::columns(outcome, names), assumed.adapters.iter())
}

/// Chains: how long after its arrival a message was behind each thread, and may be.
pub fn chains(facts: &Facts<'_>) -> String {
    let (promises, outcome) = (facts.session.assumptions(facts.run).chains, facts.outcome());
    let stations = promises.iter().flat_map(|promise| promise.stations(outcome));
    let counted = promises.iter().filter(|promise| promise.row(outcome).is_some());
    let counts = ["messages", "lost", "replaced"];
    declared(&Station::columns().without(&counts), stations)
        + &declared(&ChainPromise::columns(outcome), counted)
}

/// Returns the items of every bill.
pub fn bills(facts: &Facts<'_>) -> String {
    let named = facts.session.system.pipes.iter().zip(&facts.plan.pipes);
    let rows: Vec<Vec<String>> = named
        .filter_map(|(pipe, piped)| Some((pipe, piped.bill.as_ref().ok()?)))
        .flat_map(|(pipe, bill)| {
            bill.items().iter().map(|item| {
                let (what, assumption) = (item.what.name(), item.what.assumption());
                let (basis, time) = (item.basis.to_string(), human(item.value.0));
                vec![pipe.name.clone(), what.to_owned(), time, basis, assumption.to_owned()]
            })
        })
        .collect();
    table(&["pipe", "item", "at most", "why", "as long as"], &rows)
}

/// VCPUs: promised and used.
pub fn vcpus(facts: &Facts<'_>) -> String {
    let (system, plan) = (&facts.session.system, facts.plan);
    let time = facts.outcome().end.map_or(0, |end| end.time_ns);
    let rows: Vec<Vec<String>> = (0u64..)
        .zip(&system.vcpus)
        .map(|(number, vcpu)| {
            let row = facts.outcome().vcpus.iter().find(|row| row.vcpu == number);
            let main = plan.core.mains.iter().position(|main| u64::from(*main) == number);
            let response = main.and_then(|main| plan.response(main));
            let (budget, period) = match &vcpu.server {
                ServerSpec::Main { budget_ns, period_ns, .. } => {
                    (human(*budget_ns), human(*period_ns))
                }
                ServerSpec::Io { utilization_ppm, .. } => {
                    (format!("{} %", f64::from(*utilization_ppm) / 1e4), "as served".into())
                }
            };
            vec![
                vcpu.name.clone(),
                budget,
                period,
                response.map_or("–".into(), |response| human(response.response.0)),
                row.map_or("–".into(), |row| human(row.late_max_ns)),
                row.map_or("–".into(), |row| share(row.cpu_ns(), time)),
            ]
        })
        .collect();
    table(&["VCPU", "budget", "period", "response at most", "latest seen", "CPU"], &rows)
}

/// Threads: jobs and processor time.
pub fn threads(facts: &Facts<'_>) -> String {
    let names = &facts.session.names;
    let time = facts.outcome().end.map_or(0, |end| end.time_ns);
    let whole = |row: &ThreadRow| {
        let thread = crate::names::thread(row.name, row.slot);
        format!("{}.{thread}", names.process(row.process))
    };
    let rest = ThreadRow::columns(names, time);
    let rest = rest.without(&["process", "thread", "skipped", "longest job"]);
    declared(&Columns::default().left("thread", whole).then(rest), facts.outcome().threads.iter())
}
