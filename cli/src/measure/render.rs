//! The counts of a run as tables and as JSON.

use super::Measured;
use super::account::Seen;
use super::propose::{Chosen, ThreadCount, VcpuCount, WorkCount};
use crate::session::FinishedRun;
use crate::table::{Columns, cell, time};
use diapason_system::Revision;
use serde_json::{Value, json};
use std::fmt::Write;

/// The version of the format of `--json`.
pub const FORMAT: u32 = 1;

/// Returns tables of what was measured, what is proposed, and what becomes of it.
pub fn as_tables(about: &Measured<'_>, chosen: &Chosen) -> String {
    let Measured { name, request, counts: measured, .. } = about;
    let tables = [
        work_columns().table(&measured.works),
        thread_columns().table(&measured.threads),
        vcpu_columns().table(&measured.vcpus),
    ];
    let tables = tables.map(|table| table.render());
    let mut text =
        tables.iter().filter(|table| !table.is_empty()).fold(String::new(), |text, it| {
            let gap = if text.is_empty() { "" } else { "\n" };
            text + gap + it
        });
    text += "\nlongest: of this run, and no bound. Proposed: with a margin of ";
    let _ = writeln!(text, "{} %", request.margin);
    for work in measured.works.iter().filter(|work| work.seen.runs == 0) {
        let _ = writeln!(text, "not seen in this run: `{}`", work.shown());
    }
    for vcpu in measured.vcpus.iter().filter(|vcpu| vcpu.is_used_up()) {
        let name = &vcpu.name;
        let _ = writeln!(text, "`{name}` was used up: give it more budget, and measure again");
    }
    for change in &chosen.refused {
        let _ = writeln!(text, "stays as it is, or the plan would not hold: not {}", said(change));
    }
    let file = about.file.display();
    match (request.write, chosen.changes.len()) {
        (_, 0) => text += "nothing to change\n",
        (true, 1) => drop(writeln!(text, "{file}: 1 value written")),
        (true, count) => drop(writeln!(text, "{file}: {count} values written")),
        (false, _) => drop(writeln!(text, "`--write` writes what is proposed into {file}")),
    }
    let verdict = if chosen.holds { "holds" } else { "does not hold" };
    let with = if request.write { "now" } else { "with what is proposed" };
    let _ = writeln!(text, "\n{name}: {verdict} {with}");
    text
}

/// Returns the same for programs.
pub fn as_json(about: &Measured<'_>, run: &FinishedRun, chosen: &Chosen) -> Value {
    let Measured { name, request, counts: measured, .. } = about;
    let change = |change: &Revision| {
        json!({
            "list": change.list, "name": change.name, "key": change.key,
            "value": change.value.trim_matches('"'),
        })
    };
    json!({
        "format": FORMAT,
        "result": "measure",
        "system": name,
        "holds": chosen.holds,
        "time_ns": run.outcome.end.map(|end| end.time_ns),
        "margin_percent": request.margin,
        "written": request.write,
        "works": work_columns().objects(&measured.works),
        "threads": thread_columns().objects(&measured.threads),
        "vcpus": vcpu_columns().objects(&measured.vcpus),
        "changes": chosen.changes.iter().map(change).collect::<Value>(),
        "refused": chosen.refused.iter().map(change).collect::<Value>(),
    })
}

/// Returns a change in words.
fn said(change: &Revision) -> String {
    let Revision { list, name, key, value } = change;
    format!("`{key} = {value}` of the {list} `{name}`")
}

impl WorkCount {
    /// Returns its name, or its key.
    fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|key| format!("{key:#x}"))
    }
}

/// Adds the columns of something that was seen.
fn seen<'a, R: 'a>(columns: Columns<'a, R>, of: fn(&R) -> &Seen, each: &'a str) -> Columns<'a, R> {
    columns
        .right((each, "runs"), move |row| of(row).runs)
        .right(("longest", "longest_ns"), move |row| {
            Some(of(row)).filter(|seen| seen.runs > 0).map(|seen| time(seen.longest_ns))
        })
        .right(("mean", "mean_ns"), move |row| {
            Some(of(row)).filter(|seen| seen.runs > 0).map(|seen| time(seen.mean_ns()))
        })
}

fn work_columns() -> Columns<'static, WorkCount> {
    let name = Columns::<WorkCount>::default()
        .left(("work", "work"), |work| cell(work.shown(), work.name.clone().ok()));
    seen(name, |work| &work.seen, "runs")
        .right(("described", "described_ns"), |work| work.described_ns.map(time))
        .right(("proposed", "proposed_ns"), |work| work.proposed_ns.map(time))
}

fn thread_columns() -> Columns<'static, ThreadCount> {
    let names = Columns::<ThreadCount>::default()
        .left(("process", "process"), |thread| thread.process.clone())
        .left(("thread", "thread"), |thread| thread.thread.clone())
        .left(("VCPU", "vcpu"), |thread| thread.vcpu.clone());
    seen(names, |thread| &thread.seen, "wake-ups")
}

fn vcpu_columns() -> Columns<'static, VcpuCount> {
    Columns::<VcpuCount>::default()
        .left(("VCPU", "vcpu"), |vcpu| vcpu.name.clone())
        .right(("period", "period_ns"), |vcpu| time(vcpu.period_ns))
        .right(("most in a period", "most_ns"), |vcpu| time(vcpu.most_ns))
        .right(("waits", "waits"), |vcpu| vcpu.waits)
        .right(("budget", "budget_ns"), |vcpu| time(vcpu.budget_ns))
        .right(("proposed", "proposed_ns"), |vcpu| vcpu.proposed_ns.map(time))
        .right(("longest job", "job_ns"), |vcpu| vcpu.job_ns.map(time))
        .right(("job", "described_job_ns"), |vcpu| vcpu.described_job_ns.map(time))
        .right(("proposed job", "proposed_job_ns"), |vcpu| vcpu.proposed_job_ns.map(time))
}
