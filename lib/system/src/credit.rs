//! Credit of ports of switches, and of adapters whose server keeps it: which priorities it shapes,
//! in the words of Linux's `cbs`.

use crate::diagnostics::{Problem, Report};
use crate::gates::AdapterGates;
use crate::source::{At, Span};
use crate::table::{Raw, Table};
use crate::wires::{Switch, WireEnd};
use diapason_tsn::{CLASSES, Egress, GateList, LinkRate, Shaping};
use std::ops::RangeInclusive;

const PORTS: RangeInclusive<u64> = 1..=16;
/// Idle slopes, in kbit/s: as much as the fastest wire.
const SLOPES: RangeInclusive<u64> = 1..=1_000_000;

/// A priority that is shaped by credit where frames leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassCredit {
    pub priority: u8,
    /// The rate at which its credit grows, in kbit/s.
    pub idle_kbit: u64,
}

/// Returns how each priority is shaped by this credit.
fn shaping(credits: impl Iterator<Item = ClassCredit>) -> [Shaping; CLASSES] {
    Shaping::by_credit(credits.map(|it| (it.priority, it.idle_kbit)))
}

impl Switch {
    /// Returns how each priority is shaped at a port, besides its gates.
    #[must_use]
    pub fn shaping(&self, port: usize) -> [Shaping; CLASSES] {
        shaping(self.credits.iter().filter(|it| it.0 == port).map(|it| it.1))
    }
}

impl AdapterGates {
    /// Returns how the server shapes each priority, besides the gates.
    #[must_use]
    pub fn shaping(&self) -> [Shaping; CLASSES] {
        shaping(self.credits.iter().map(|it| it.1))
    }
}

pub(crate) struct DeclaredCredit {
    /// The place of its idle slope, or of its table.
    pub span: Span,
    of: Option<CreditEnd>,
    priority: Option<At<u64>>,
    idle_kbit: Option<At<u64>>,
}

/// The end of a wire that shapes by credit.
enum CreditEnd {
    Port(At<u64>),
    Adapter(At<String>),
}

/// Reads the credit of a port of a switch.
pub(crate) fn of_port(raw: Raw<'_>, report: &mut Report) -> DeclaredCredit {
    let mut table = Table::new("[[switch.credit]]", "credit", raw, report);
    let port = table.number("port", PORTS, "");
    table.needs("port", "add `port = 1`: the port that sends the frames");
    read(table, port.map(CreditEnd::Port))
}

/// Reads the credit of an adapter.
pub(crate) fn of_adapter(raw: Raw<'_>, report: &mut Report) -> DeclaredCredit {
    let mut table = Table::new("[[ethernet.credit]]", "credit", raw, report);
    let end = table.text("end", "end = \"left:nic0\"");
    table.needs("end", "add `end = \"left:nic0\"`: the adapter that sends the frames");
    read(table, end.map(CreditEnd::Adapter))
}

/// Reads what follows the end.
fn read(mut table: Table<'_, '_>, of: Option<CreditEnd>) -> DeclaredCredit {
    let priority = table.number("priority", 0..=CLASSES as u64 - 1, "");
    table.needs("priority", "add `priority = 3`: the frames that it holds back");
    let idle_kbit = table.number("idle_slope", SLOPES, " kbit/s");
    table.needs("idle_slope", "add `idle_slope = 100000`: the kbit/s that they may have");
    let span = table.place_of("idle_slope").unwrap_or_else(|| table.place());
    table.report_unknown();
    DeclaredCredit { span, of, priority, idle_kbit }
}

/// Returns the credit of a switch with so many ports; what cannot be is reported.
pub(crate) fn whole(
    declared: &[DeclaredCredit],
    (name, ports): (&str, usize),
    report: &mut Report,
) -> Vec<(usize, ClassCredit)> {
    let mut found: Vec<(usize, ClassCredit)> = Vec::new();
    for it in declared {
        let (Some(CreditEnd::Port(port)), Some(priority), Some(idle)) =
            (&it.of, &it.priority, &it.idle_kbit)
        else {
            continue;
        };
        let (number, class) = (port.value as usize - 1, priority.value as u8);
        if number >= ports {
            let title = format!("`{name}` has no port {}", port.value);
            report.push(Problem::new(
                &port.span,
                title,
                format!("write a number from 1 to {ports}"),
            ));
        } else if found.iter().any(|(port, it)| (*port, it.priority) == (number, class)) {
            let title = format!("priority {class} has two idle slopes at port {}", port.value);
            report.push(Problem::new(&priority.span, title, "remove one of them"));
        } else {
            found.push((number, ClassCredit { priority: class, idle_kbit: idle.value }));
        }
    }
    found
}

/// Gives the adapters at a wire with these ends the credit that is declared for them; what cannot
/// be is reported.
pub(crate) fn resolve(
    declared: &[DeclaredCredit],
    ends: &[(&str, WireEnd)],
    (mbit, gates): (u64, &mut [AdapterGates]),
    report: &mut Report,
) {
    for (number, it) in declared.iter().enumerate() {
        let (Some(CreditEnd::Adapter(end)), Some(priority), Some(idle)) =
            (&it.of, &it.priority, &it.idle_kbit)
        else {
            continue;
        };
        let own = ends.iter().find(|(text, _)| *text == end.value).map(|(_, own)| *own);
        let Some(own) = own.filter(|own| matches!(own, WireEnd::Adapter { .. })) else {
            let title = format!("`{}` is no adapter at this wire", end.value);
            let help =
                "write an adapter of its `ends`; credit of a port stands in its `[[switch]]`";
            report.push(Problem::new(&end.span, title, help));
            continue;
        };
        let Some(gates) = gates.iter_mut().find(|it| it.end == own) else {
            let title = format!("`{}` has no gates, whose `guard` its credit needs", end.value);
            let help = "add an `[[ethernet.gates]]` for it; those of `entries = [\"S ff 1ms\"]` \
                        never close";
            report.push(Problem::new(&end.span, title, help));
            continue;
        };
        let class = priority.value as u8;
        if gates.credits.iter().any(|(_, it)| it.priority == class) {
            let title = format!("priority {class} has two idle slopes at `{}`", end.value);
            report.push(Problem::new(&priority.span, title, "remove one of them"));
            continue;
        }
        let credit = ClassCredit { priority: class, idle_kbit: idle.value };
        gates.credits.push((number, credit));
        if let Some((what, remedy)) = refusal(gates.list.clone(), mbit, gates.shaping()) {
            gates.credits.pop();
            let title = format!("at {}: {what}", end.value);
            report.push(Problem::new(&it.span, title, remedy));
        }
    }
}

/// Returns why a port of this speed cannot have such gates and credit, and the remedy.
fn refusal(list: GateList, mbit: u64, shaping: [Shaping; CLASSES]) -> Option<(String, String)> {
    let rate = LinkRate::new(mbit * 1_000_000);
    let text = Egress::<()>::new(list, rate, shaping).err()?.to_string();
    let (what, remedy) = text.split_once(": ").unwrap_or((&text, "lower an idle slope"));
    Some((what.to_owned(), remedy.to_owned()))
}

/// Reports idle slopes that a port with a wire of this speed cannot have, or not beside its gates.
pub(crate) fn check(
    switch: &Switch,
    declared: &[DeclaredCredit],
    mbit: impl Fn(usize) -> u64,
    report: &mut Report,
) {
    // Otherwise a credit was reported, and has no number.
    if switch.credits.len() != declared.len() {
        return;
    }
    for (number, ((port, _), declared)) in switch.credits.iter().zip(declared).enumerate() {
        let so_far = switch.credits[..=number].iter().filter(|it| it.0 == *port);
        let shaping = shaping(so_far.map(|it| it.1));
        if let Some((what, remedy)) = refusal(switch.gates(*port), mbit(*port), shaping) {
            let title = format!("at {}:{}: {what}", switch.name, port + 1);
            report.push(Problem::new(&declared.span, title, remedy));
        }
    }
}
