//! Virtual CPUs and their queues as the text has them: the keys of `[[vcpu]]` and `[scheduling]`.

use crate::declared::{DeclaredScheduling, DeclaredVcpu, Dynamic, Named};
use crate::diagnostics::{Problem, Report};
use crate::keys;
use crate::limits::INTERVALS;
use crate::source::At;
use crate::system::ServerSpec;
use crate::table::{Raw, Table};
use crate::units;
use diapason_abi::archive::{
    BUDGET_MIN, PERIOD_MAX, PERIOD_MIN, REPLENISHMENTS_MAX, REPLENISHMENTS_MIN, WAKES_MAX,
    WHOLE_PPM,
};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;

const KINDS: [(&str, bool); 2] = [("main", false), ("io", true)];
const FORMS: [(&str, bool); 2] = [("exact", true), ("closed", false)];
const MAIN_KEYS: [&str; 5] = ["budget", "period", "replenishments", "background", "job"];
const IO_KEYS: [&str; 3] = ["utilization", "cap", "serves"];
/// Keys of both kinds.
const WAKE_KEYS: [&str; 2] = ["interval", "wakes"];
const PERIODS: RangeInclusive<u64> = PERIOD_MIN.0..=PERIOD_MAX.0;

pub(crate) fn vcpu(raw: Raw<'_>, report: &mut Report) -> Named<DeclaredVcpu> {
    let mut table = Table::new("[[vcpu]]", "VCPU", raw, report);
    let name = keys::name(&mut table);
    let is_io = match table.get("kind") {
        None => Some(false),
        Some(_) => table.choice("kind", &KINDS, "").map(|kind| kind.value),
    };
    let what = match is_io {
        Some(false) => main(&mut table),
        Some(true) => io(&mut table),
        None => None,
    };
    // If the kind of a VCPU is unknown, no key can be called wrong.
    for key in MAIN_KEYS.into_iter().chain(IO_KEYS).chain(WAKE_KEYS) {
        table.get(key);
    }
    table.report_unknown();
    Named { name, what: what.unwrap_or(DeclaredVcpu::Unusable) }
}

fn main(table: &mut Table<'_, '_>) -> Option<DeclaredVcpu> {
    let help = "remove it, or add `kind = \"io\"` if bottom halves run here";
    foreign(table, "a Main VCPU", &IO_KEYS, help);
    table.needs("budget", "add `budget = \"1ms\"`: the time it may use in every period");
    table.needs("period", "add `period = \"10ms\"`: how often its budget comes back");
    let budget = table.duration("budget", BUDGET_MIN.0..=PERIOD_MAX.0);
    let period = table.duration("period", PERIODS);
    let lengths = u64::from(REPLENISHMENTS_MIN)..=u64::from(REPLENISHMENTS_MAX);
    let length = table.number("replenishments", lengths, ", the length of its list");
    let length = length.and_then(|number| u8::try_from(number.value).ok());
    let background = table.flag("background").unwrap_or(false);
    let job = table.duration("job", 1_000..=PERIOD_MAX.0);
    let wakes = wakes(table, ", how often a job wakes it");
    let interval = table.duration("interval", INTERVALS);
    if job.is_none() {
        let help = "add `job`, the most budget of the jobs that it speaks of, or `kind = \"io\"` \
                    if bottom halves run here";
        foreign(table, "a Main VCPU without `job`", &WAKE_KEYS, help);
    }
    let (budget, period) = (budget?, period?);
    let server = ServerSpec::Main {
        budget_ns: budget.value,
        period_ns: period.value,
        replenishments: length.unwrap_or(REPLENISHMENTS_MAX),
        background,
        job_ns: job.map(|job| job.value),
        interval_ns: interval.map(|interval| interval.value),
        wakes: wakes?,
    };
    Some(DeclaredVcpu::Main { server, budget: budget.span, period: period.span })
}

fn io(table: &mut Table<'_, '_>) -> Option<DeclaredVcpu> {
    let help = "remove it: an I/O VCPU has a `utilization` and takes the period of the Main VCPU \
                it works for";
    foreign(table, "an I/O VCPU", &MAIN_KEYS, help);
    table.needs("utilization", "add `utilization = \"5%\"`: its share of the processor");
    match table.get("serves").map(|entry| (entry.span(), entry.get_ref().as_array())) {
        None => table.needs("serves", "add `serves = [\"…\"]`: the Main VCPUs it works for"),
        Some((span, Some(list))) if list.is_empty() => {
            let help = "name the Main VCPUs it works for: it takes their period";
            table.report.push(Problem::new(&span, "an I/O VCPU that serves nobody", help));
        }
        Some(_) => {}
    }
    let help = "add `interval = \"1ms\"`: the shortest time between two of its wake-ups";
    table.needs("interval", help);
    let utilization = table.parsed("utilization", "a share", EXAMPLE, units::share);
    let utilization = utilization.and_then(|share| possible(table, share));
    let cap = table.duration("cap", PERIODS);
    let interval = table.duration("interval", INTERVALS);
    let wakes = wakes(table, ", its wake-ups in an `interval`");
    let serves = table.texts("serves", "serves = [\"control\"]");
    let utilization = utilization?;
    let server = ServerSpec::Io {
        utilization_ppm: utilization.value,
        cap_ns: cap.map(|cap| cap.value),
        interval_ns: interval?.value,
        wakes: wakes?,
        serves: Vec::new(),
    };
    Some(DeclaredVcpu::Io { server, utilization: utilization.span, serves })
}

/// Returns the wake-ups in an interval, which are one if nothing is said.
fn wakes(table: &mut Table<'_, '_>, what: &'static str) -> Option<u8> {
    let wakes = table.number("wakes", 1..=WAKES_MAX.into(), what);
    wakes.map_or(Some(1), |wakes| u8::try_from(wakes.value).ok())
}

const EXAMPLE: &str = "utilization = \"5%\"";

/// Returns a share between nothing and everything.
fn possible(table: &mut Table<'_, '_>, share: At<u32>) -> Option<At<u32>> {
    if (1..=WHOLE_PPM).contains(&share.value) {
        return Some(share);
    }
    let title = format!("`utilization` is {}, out of range", units::show_share(share.value));
    let help = "write a share above `\"0%\"`, of at most `\"100%\"`";
    table.report.push(Problem::new(&share.span, title, help));
    None
}

/// Reports keys that belong to the other kind.
fn foreign(table: &mut Table<'_, '_>, what: &str, keys: &[&'static str], help: &str) {
    for key in keys {
        if let Some(entry) = table.get(key) {
            let title = format!("{what} has no `{key}`");
            table.report.push(Problem::new(&entry.span(), title, help));
        }
    }
}

/// `[scheduling]`, or what holds without it: rate monotonic, admitted by the exact test.
pub(crate) fn scheduling(raw: Option<Raw<'_>>, report: &mut Report) -> DeclaredScheduling {
    let Some(raw) = raw else { return without_table() };
    let mut table = Table::new("[scheduling]", "scheduling", raw, report);
    let fixed = table.get("fixed").map(Spanned::span);
    let scheduling = DeclaredScheduling {
        dynamic: dynamic(&mut table),
        fixed_place: fixed.clone().unwrap_or(0..0),
        fixed: fixed.map(|_| table.texts("fixed", "fixed = [\"log\"]")),
        exact: table.choice("admission", &FORMS, "").is_none_or(|form| form.value),
        place: table.place(),
    };
    table.report_unknown();
    scheduling
}

fn without_table() -> DeclaredScheduling {
    DeclaredScheduling {
        dynamic: Dynamic::Queues(Vec::new()),
        fixed: None,
        fixed_place: 0..0,
        exact: true,
        place: 0..0,
    }
}

fn dynamic(table: &mut Table<'_, '_>) -> Dynamic {
    match table.get("dynamic").map(Spanned::get_ref) {
        Some(DeValue::String(_)) => {
            table.choice("dynamic", &[("all", ())], ", or a list of queues such as `[[\"a\"]]`");
            Dynamic::All
        }
        _ => Dynamic::Queues(table.lists("dynamic", "dynamic = [[\"control\"], [\"log\"]]")),
    }
}
