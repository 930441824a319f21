//! Lists of gates in descriptions: those of a port of a switch, and those of an adapter, which its
//! server keeps. Both are written in the words of Linux's `taprio`.

use crate::credit::ClassCredit;
use crate::diagnostics::{Problem, Report};
use crate::flow::{Flow, FlowWay};
use crate::hosts::HostSpec;
use crate::source::{At, Span};
use crate::table::{Raw, Table};
use crate::wires::{DeclaredLink, EthernetLink, WireEnd};
use diapason_contract::ethernet::{GATE_ENTRIES, GATES_HEAP, GATES_SEMAPHORES};
use diapason_tsn::{CLASSES, GateEntry, GateList, LinkRate, paced_ns, wire_bytes};
use std::ops::RangeInclusive;

/// Ports of a switch, at most.
const PORTS: RangeInclusive<u64> = 1..=16;
/// Longest cycle of gates.
const CYCLES: RangeInclusive<u64> = 1_000..=1_000_000_000;
const GUARDS: RangeInclusive<u64> = 1..=1_000_000_000;
const ENTRY: &str = "entries = [\"S 20 62us\", \"S df 63us\"]";

/// The gates of an adapter: its server gives it a frame only if the frame ends in its window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterGates {
    pub end: WireEnd,
    /// Their list, by the common time of the wire, or by the clock of the adapter's host.
    pub list: GateList,
    /// The time in which the server is sure to have a frame on the wire, in ns.
    pub guard_ns: u64,
    /// The priorities that the server shapes by credit, each with its number among those of the
    /// wire.
    pub credits: Vec<(usize, ClassCredit)>,
}

pub(crate) struct DeclaredGates {
    pub of: Option<GatedEnd>,
    /// The place of the list, and the list.
    pub list: Option<(Span, GateList)>,
}

/// The end of a wire that has gates.
pub(crate) enum GatedEnd {
    Port(At<u64>),
    Adapter { end: At<String>, guard: At<u64> },
}

/// Reads the gates of a port of a switch.
pub(crate) fn of_port(raw: Raw<'_>, report: &mut Report) -> DeclaredGates {
    let mut table = Table::new("[[switch.gates]]", "list of gates", raw, report);
    let port = table.number("port", PORTS, "");
    table.needs("port", "add `port = 1`: the port whose gates open and close");
    let list = list(&mut table);
    DeclaredGates { of: port.map(GatedEnd::Port), list }
}

/// Reads the gates of an adapter.
pub(crate) fn of_adapter(raw: Raw<'_>, report: &mut Report) -> DeclaredGates {
    let mut table = Table::new("[[ethernet.gates]]", "list of gates", raw, report);
    let end = table.text("end", "end = \"left:nic0\"");
    table.needs("end", "add `end = \"left:nic0\"`: the adapter whose gates open and close");
    let guard = table.duration("guard", GUARDS);
    let help = "add `guard = \"60us\"`: the time in which its server has a frame on the wire";
    table.needs("guard", help);
    let list = list(&mut table);
    let of = end.zip(guard).map(|(end, guard)| GatedEnd::Adapter { end, guard });
    DeclaredGates { of, list }
}

/// Reads the list itself, which ends its table.
fn list(table: &mut Table<'_, '_>) -> Option<(Span, GateList)> {
    let place = table.place();
    let base = table.duration("base", 0..=*CYCLES.end());
    let cycle = table.duration("cycle", CYCLES);
    let texts = table.texts("entries", ENTRY);
    let span = table.place_of("entries").unwrap_or(place);
    table.needs("entries", &format!("add `{ENTRY}`: masks of classes, and for how long"));
    let mut entries = Vec::new();
    for text in &texts {
        match entry(&text.value) {
            Some(entry) => entries.push(entry),
            None => {
                let title = format!("`{}` is no entry of a list of gates", text.value);
                let help = "write `S`, the mask of the open classes in hexadecimal, and a time, as \
                            in `\"S 20 62us\"`";
                table.report.push(Problem::new(&text.span, title, help));
            }
        }
    }
    table.report_unknown();
    if entries.len() != texts.len() || texts.is_empty() {
        return None;
    }
    let base_ns = base.map_or(0, |base| base.value);
    match GateList::new(base_ns, cycle.map(|it| it.value), &entries) {
        Ok(list) if list.cycle_ns() <= *CYCLES.end() => Some((span, list)),
        Ok(_) => {
            let title = "the cycle is longer than 1 s";
            table.report.push(Problem::new(&span, title, "shorten the entries"));
            None
        }
        Err(refusal) => {
            let text = refusal.to_string();
            let (what, remedy) = text.split_once(": ").unwrap_or((&text, "change the entries"));
            table.report.push(Problem::new(&span, what, remedy));
            None
        }
    }
}

/// Reads an entry such as `S 20 62us`, in the words of Linux's `taprio`.
fn entry(text: &str) -> Option<GateEntry> {
    let mut words = text.split_whitespace();
    let (state, mask, time) = (words.next()?, words.next()?, words.next()?);
    let mask = mask.strip_prefix("0x").unwrap_or(mask);
    let digits = mask.bytes().all(|digit| digit.is_ascii_hexdigit());
    if state != "S" || words.next().is_some() || !digits {
        return None;
    }
    let mask = u8::from_str_radix(mask, 16).ok()?;
    let interval_ns = crate::units::duration(time)?;
    Some(GateEntry { mask, interval_ns })
}

/// Returns what is wrong with a list in which a class has windows, and the shortest frame with what
/// a server needs for it fits into none.
pub(crate) fn too_short(list: &GateList, span: &Span, mbit: u64, guard_ns: u64) -> Option<Problem> {
    let shortest = LinkRate::new(mbit * 1_000_000).time_ns(wire_bytes(0, true).ok()?);
    let needed = paced_ns(shortest, guard_ns);
    let has = |class: &usize| !list.windows(*class).is_empty();
    let refusal = (0..CLASSES).filter(has).find_map(|it| list.check(it, needed).err())?;
    let text = refusal.to_string();
    let (what, remedy) = text.split_once(": ").unwrap_or((&text, "lengthen the window"));
    Some(Problem::new(span, what, remedy))
}

/// Finds the adapters whose gates stand in a wire with these ends; what cannot be is reported.
pub(crate) fn resolve(
    declared: &[DeclaredGates],
    ends: &[(&str, WireEnd)],
    (mbit, hosts): (u64, &[HostSpec]),
    report: &mut Report,
) -> Vec<AdapterGates> {
    let mut found: Vec<AdapterGates> = Vec::new();
    for DeclaredGates { of, list } in declared {
        let (Some(GatedEnd::Adapter { end, guard }), Some((span, list))) = (of, list) else {
            continue;
        };
        let own = ends.iter().find(|(text, _)| *text == end.value).map(|(_, own)| *own);
        let Some(WireEnd::Adapter { host, adapter }) = own else {
            let title = format!("`{}` is no adapter at this wire", end.value);
            let help = "write an adapter of its `ends`; gates of a port stand in its `[[switch]]`";
            report.push(Problem::new(&end.span, title, help));
            continue;
        };
        let own = WireEnd::Adapter { host, adapter };
        if found.iter().any(|other| other.end == own) {
            let title = format!("`{}` has two lists of gates", end.value);
            report.push(Problem::new(&end.span, title, "remove one of them"));
        } else if list.entries().len() > GATE_ENTRIES {
            let title = format!("an adapter takes {GATE_ENTRIES} entries of gates at most");
            report.push(Problem::new(span, title, "remove some, or give gates to a switch"));
        } else if let Some(problem) =
            too_short(list, span, mbit, guard.value).or_else(|| too_poor(own, hosts, span))
        {
            report.push(problem);
        } else {
            let (list, guard_ns) = (list.clone(), guard.value);
            found.push(AdapterGates { end: own, list, guard_ns, credits: Vec::new() });
        }
    }
    found
}

/// Returns what a server lacks to keep gates.
fn too_poor(end: WireEnd, hosts: &[HostSpec], span: &Span) -> Option<Problem> {
    let WireEnd::Adapter { host, adapter } = end else { return None };
    let HostSpec { system, file, .. } = &hosts[host];
    let server = &system.processes[usize::from(system.adapters[adapter].driver)];
    if server.heap >= GATES_HEAP && server.semaphores >= GATES_SEMAPHORES {
        return None;
    }
    let title = format!("`{}` in `{file}` has no memory for gates", server.name);
    let (heap, semaphores) = (GATES_HEAP >> 10, GATES_SEMAPHORES);
    let help = format!("write `heap = \"{heap}K\"` and `semaphores = {semaphores}` there");
    Some(Problem::new(span, title, help))
}

/// Reports adapters with gates by which somebody sends whom no flow bounds: nothing would say how
/// late their server is.
pub(crate) fn bounded(
    (links, declared): (&[EthernetLink], &[DeclaredLink]),
    flows: &[Flow],
    hosts: &[HostSpec],
    report: &mut Report,
) {
    for (link, declared) in links.iter().zip(declared) {
        for gates in &link.gates {
            let WireEnd::Adapter { host, adapter } = gates.end else { continue };
            let is_bounded = |socket: usize| {
                flows.iter().any(|flow| {
                    let way = flow.hops.first().map(|hop| hop.way);
                    flow.from.host == host
                        && matches!(way, Some(FlowWay::Sockets { from, .. }) if from == socket)
                })
            };
            let sockets = hosts[host].system.sockets.iter().enumerate();
            let free = sockets
                .filter(|(number, it)| it.adapter == adapter && it.sends() && !is_bounded(*number));
            for (_, socket) in free {
                let named = format!("{}:{}", hosts[host].name, socket.name);
                let title = format!("`{named}` sends through gates, and nothing bounds it");
                let help = "declare a `[[flow]]` of what it sends, or remove the gates";
                report.push(Problem::new(&declared.name.span, title, help));
            }
        }
    }
}
