//! Credit of ports of switches: which priorities it shapes, in the words of Linux's `cbs`.

use crate::diagnostics::{Problem, Report};
use crate::source::{At, Span};
use crate::table::{Raw, Table};
use crate::wires::Switch;
use diapason_tsn::{CLASSES, Egress, GateRefusal, LinkRate, Shaping};
use std::ops::RangeInclusive;

const PORTS: RangeInclusive<u64> = 1..=16;
/// Idle slopes, in kbit/s: as much as the fastest wire.
const SLOPES: RangeInclusive<u64> = 1..=1_000_000;

/// A priority that a port of a switch shapes by credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortCredit {
    /// The port, from 0.
    pub port: usize,
    pub priority: u8,
    /// The rate at which its credit grows, in kbit/s.
    pub idle_kbit: u64,
}

impl PortCredit {
    const fn shaping(self) -> Shaping {
        Shaping::Credit { idle_bits_per_second: self.idle_kbit * 1_000 }
    }
}

impl Switch {
    /// Returns how each priority is shaped at a port, besides its gates.
    #[must_use]
    pub fn shaping(&self, port: usize) -> [Shaping; CLASSES] {
        let mut shaping = [Shaping::Strict; CLASSES];
        for credit in self.credits.iter().filter(|it| it.port == port) {
            shaping[usize::from(credit.priority)] = credit.shaping();
        }
        shaping
    }
}

pub(crate) struct DeclaredCredit {
    /// The place of its idle slope, or of its table.
    pub span: Span,
    port: Option<At<u64>>,
    priority: Option<At<u64>>,
    idle_kbit: Option<At<u64>>,
}

pub(crate) fn read(raw: Raw<'_>, report: &mut Report) -> DeclaredCredit {
    let mut table = Table::new("[[switch.credit]]", "credit", raw, report);
    let port = table.number("port", PORTS, "");
    table.needs("port", "add `port = 1`: the port that sends the frames");
    let priority = table.number("priority", 0..=CLASSES as u64 - 1, "");
    table.needs("priority", "add `priority = 3`: the frames that it holds back");
    let idle_kbit = table.number("idle_slope", SLOPES, " kbit/s");
    table.needs("idle_slope", "add `idle_slope = 100000`: the kbit/s that they may have");
    let span = table.place_of("idle_slope").unwrap_or_else(|| table.place());
    table.report_unknown();
    DeclaredCredit { span, port, priority, idle_kbit }
}

/// Returns the credit of a switch with so many ports; what cannot be is reported.
pub(crate) fn whole(
    declared: &[DeclaredCredit],
    (name, ports): (&str, usize),
    report: &mut Report,
) -> Vec<PortCredit> {
    let mut found: Vec<PortCredit> = Vec::new();
    for it in declared {
        let (Some(port), Some(priority), Some(idle)) = (&it.port, &it.priority, &it.idle_kbit)
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
        } else if found.iter().any(|it| (it.port, it.priority) == (number, class)) {
            let title = format!("priority {class} has two idle slopes at port {}", port.value);
            report.push(Problem::new(&priority.span, title, "remove one of them"));
        } else {
            found.push(PortCredit { port: number, priority: class, idle_kbit: idle.value });
        }
    }
    found
}

/// Reports idle slopes that a port with a wire of this speed cannot have, or not beside its gates.
pub(crate) fn check(
    switch: &Switch,
    declared: &[DeclaredCredit],
    mbit: impl Fn(usize) -> u64,
    report: &mut Report,
) {
    // Otherwise a credit was reported, and has no number.
    let numbered = switch.credits.len() == declared.len();
    for port in (0..switch.ports).filter(|_| numbered) {
        let rate = LinkRate::new(mbit(port) * 1_000_000);
        let egress = Egress::<()>::new(switch.gates(port), rate, switch.shaping(port));
        let Err(refusal) = egress else { continue };
        let is_meant = |it: &PortCredit| match refusal {
            GateRefusal::GatedCredit { class } => usize::from(it.priority) == class,
            _ => true,
        };
        let mut own = switch.credits.iter().zip(declared);
        let place = own.rfind(|(it, _)| it.port == port && is_meant(it));
        let span = place.map_or(0..0, |(_, declared)| declared.span.clone());
        let text = refusal.to_string();
        let (what, remedy) = text.split_once(": ").unwrap_or((&text, "lower an idle slope"));
        let title = format!("at {}:{}: {what}", switch.name, port + 1);
        report.push(Problem::new(&span, title, remedy));
    }
}
