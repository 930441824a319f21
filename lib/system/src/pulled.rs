//! Cables and wires that are pulled and plugged in again in a simulation, and hosts without power:
//! `pulled` of a list of hosts, and `--fault` for one.

use crate::diagnostics::{Problem, Report};
use crate::fault::Words;
use crate::fault::kinds::{FaultKind, InjectedFault, TIME_MAX};
use crate::hosts::Hosts;
use crate::source::At;
use crate::suggest::{listed, nearest};
use crate::table::Table;
use crate::units;

/// A time in which a cable or wire is pulled, by the clock of the world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pulled {
    pub at_ns: u64,
    /// How long it is away; at least 1.
    pub for_ns: u64,
}

/// A cable of a list, a wire for Ethernet, or the power of a host, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pullable {
    Cable(usize),
    Wire(usize),
    Host(usize),
}

const EXAMPLE: &str = "pulled = [\"2s 300ms\"]";
/// The form of a fault of a list, for a message about an empty text.
const FAULT: &str = "write it as in `2s unplug bridge 300ms`";

impl Pulled {
    fn of(text: &str) -> Option<Pulled> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[at, length] = &words[..] else { return None };
        let [at_ns, for_ns] = [units::duration(at)?, units::duration(length)?];
        (at_ns <= TIME_MAX && (1..=TIME_MAX).contains(&for_ns)).then_some(Pulled { at_ns, for_ns })
    }

    /// Returns the fault in the words of a command line.
    #[must_use]
    pub fn words(self, name: &str) -> String {
        let [at, length] = [self.at_ns, self.for_ns].map(units::show_duration);
        format!("{at} unplug {name} {length}")
    }

    /// Returns when it is plugged in again.
    #[must_use]
    pub const fn end_ns(self) -> u64 {
        self.at_ns + self.for_ns
    }
}

/// Returns when what a table declares is pulled, in order. Times that overlap are reported.
pub(crate) fn pulled(table: &mut Table<'_, '_>) -> Vec<Pulled> {
    let mut found: Vec<Pulled> = Vec::new();
    for At { value: text, span } in table.texts("pulled", EXAMPLE) {
        let Some(time) = Pulled::of(&text) else {
            let title = format!("`{text}` does not say when it is pulled");
            let help = format!("write when, and for how long, as in `{EXAMPLE}`");
            table.report.push(Problem::new(&span, title, help));
            continue;
        };
        if found.last().is_some_and(|last| last.end_ns() >= time.at_ns) {
            let title = format!("`{text}` begins before the time before it is over");
            table.report.push(Problem::new(&span, title, "write times in order, with pauses"));
            continue;
        }
        found.push(time);
    }
    found
}

/// Returns what a command line pulls: time, `unplug` and the name of a cable or wire, or `reboot`
/// and the name of a host, how long.
pub(crate) fn parse(hosts: &Hosts, text: &str, report: &mut Report) -> Option<(Pullable, Pulled)> {
    let mut words = Words::of(text);
    let (at, place) = words.next("time", FAULT, report)?;
    let (kind, kind_place) = words.next("kind", FAULT, report)?;
    let noun = match kind {
        "unplug" => "cable",
        "reboot" => "host",
        _ => {
            let title = format!("a list of hosts has no fault `{kind}`");
            let help = "write `unplug` and a cable, `reboot` and a host, or a `[[fault]]` into the \
                        description of a host";
            report.push(Problem::new(&kind_place, title, help));
            return None;
        }
    };
    let (name, name_place) = words.next(noun, FAULT, report)?;
    let (length, _) = words.next("`for`", "add `300ms`: how long it is away", report)?;
    if let Some((word, place)) = words.next_if_any() {
        let title = format!("`{word}` is more than `{kind}` asks for");
        report.push(Problem::new(&place, title, "leave it out"));
        return None;
    }
    let Some(time) = Pulled::of(&format!("{at} {length}")) else {
        let title = format!("`{at}` and `{length}` do not say when it is pulled");
        report.push(Problem::new(&place, title, FAULT));
        return None;
    };
    let powers = hosts.hosts.iter().enumerate();
    let powers = powers.map(|(number, it)| (it.name.as_str(), Pullable::Host(number)));
    let all = hosts.pullable().chain(powers);
    let all = all.filter(|(_, what)| matches!(what, Pullable::Host(_)) == (noun == "host"));
    let found = all.clone().find(|(own, _)| *own == name);
    if found.is_none() {
        let known = all.map(|(name, _)| name);
        let help = match nearest(name, known.clone()) {
            Some(word) => format!("did you mean `{word}`?"),
            None if known.clone().next().is_none() => format!("the list has no {noun}"),
            None => format!("name {}", listed(known, "or")),
        };
        let title = format!("no {noun} is called `{name}`");
        report.push(Problem::new(&name_place, title, help));
    }
    Some((found?.1, time))
}

impl Hosts {
    /// Returns the cables and wires by their names.
    pub fn pullable(&self) -> impl Iterator<Item = (&str, Pullable)> + Clone {
        let cables = self.cables.iter().enumerate();
        let cables = cables.map(|(number, it)| (it.name.as_str(), Pullable::Cable(number)));
        let wires = self.ethernet.iter().enumerate();
        cables.chain(wires.map(|(number, it)| (it.name.as_str(), Pullable::Wire(number))))
    }

    /// Pulls a cable or wire for a time, too, or takes the power of a host.
    pub fn pull(&mut self, what: Pullable, time: Pulled) {
        if let Pullable::Host(number) = what
            && let Some(host) = self.hosts.get_mut(number)
        {
            let (kind, arguments) = (FaultKind::Reboot, [time.for_ns, 0]);
            let fault = InjectedFault { at_ns: time.at_ns, kind, target: 0, arguments };
            host.system.faults.push(fault);
        }
        let times = match what {
            Pullable::Cable(number) => self.cables.get_mut(number).map(|it| &mut it.pulled),
            Pullable::Wire(number) => self.ethernet.get_mut(number).map(|it| &mut it.pulled),
            Pullable::Host(_) => None,
        };
        if let Some(times) = times {
            times.push(time);
            times.sort_unstable();
            // Times that touch are one.
            times.dedup_by(|later, first| {
                let touch = first.end_ns() >= later.at_ns;
                if touch {
                    first.for_ns = first.for_ns.max(later.end_ns() - first.at_ns);
                }
                touch
            });
        }
    }
}
