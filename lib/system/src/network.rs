//! The network in a list of hosts: its leader, and dependency lists written by hand.

use crate::diagnostics::{Diagnostics, Problem, Report};
use crate::hosts::{Cable, Declared, HostSpec, Hosts, Socket};
use crate::source::At;
use crate::suggest::{listed, nearest};
use crate::table::{Raw, Table};
use toml::Spanned;
use toml::de::DeValue;

/// Names of hosts, each with its place, and the place of the list.
pub(crate) type NameList = At<Vec<At<String>>>;

/// The keys of `[network]`.
#[derive(Default)]
pub(crate) struct DeclaredNetwork {
    pub leader: Option<At<String>>,
}

/// A place in a list of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostsPlace {
    /// The name of this host.
    Host(usize),
    /// The list of this host, or its name if it has none.
    Depends(usize),
    /// The name of this cable.
    Cable(usize),
    /// The name of this wire.
    Ethernet(usize),
    /// The leader, or the beginning of the text if there is none.
    Leader,
    /// The name of this flow.
    Flow(usize),
    /// The credit with this number of a switch.
    Credit { switch: usize, number: usize },
    /// The credit with this number of a wire.
    WireCredit { link: usize, number: usize },
}

impl Hosts {
    /// Returns a problem that another stage found with the network: what is wrong, facts, and the
    /// remedy.
    #[must_use]
    pub fn problem(&self, place: HostsPlace, [title, note, help]: [&str; 3]) -> Diagnostics {
        let origin = &self.origin;
        let span = match place {
            HostsPlace::Host(host) => origin.hosts.get(host),
            HostsPlace::Depends(host) => origin.depends.get(host),
            HostsPlace::Cable(cable) => origin.cables.get(cable),
            HostsPlace::Ethernet(link) => origin.ethernet.get(link),
            HostsPlace::Leader => origin.leader.as_ref(),
            HostsPlace::Flow(flow) => origin.flows.get(flow),
            HostsPlace::Credit { switch, number } => {
                origin.credits.get(switch).and_then(|credits| credits.get(number))
            }
            HostsPlace::WireCredit { link, number } => {
                origin.wire_credits.get(link).and_then(|credits| credits.get(number))
            }
        };
        let mut problem = Problem::new(span.unwrap_or(&(0..0)), title, help);
        if !note.is_empty() {
            problem = problem.note(note);
        }
        let mut report = Report::new();
        report.push(problem);
        Diagnostics::new(origin.source.clone(), report)
    }
}

/// Reads the table `[network]`.
pub(crate) fn read(entry: &Spanned<DeValue<'_>>, report: &mut Report) -> DeclaredNetwork {
    let DeValue::Table(entries) = entry.get_ref() else {
        let help = "write `[network]` with single brackets: there is one";
        report.push(Problem::new(&entry.span(), "`network` is no table", help));
        return DeclaredNetwork::default();
    };
    let raw = Raw { entries, place: entry.span() };
    let mut table = Table::new("[network]", "network", raw, report);
    let leader = match table.get("leader").map(|entry| (entry.span(), entry.get_ref())) {
        Some((span, DeValue::Array(all))) => {
            let title = format!("`leader` names {} hosts, and one leads", all.len());
            let help = "write one name, as in `leader = \"a\"`";
            table.report.push(Problem::new(&span, title, help));
            None
        }
        _ => table.text("leader", "leader = \"a\""),
    };
    table.report_unknown();
    DeclaredNetwork { leader }
}

/// Reads the list of a host that somebody wrote by hand.
pub(crate) fn list(table: &mut Table<'_, '_>) -> Option<NameList> {
    let place = table.get("depends").map(Spanned::span);
    let names = table.texts("depends", "depends = [\"b\", \"c\"]");
    place.map(|place| At::new(names, place))
}

/// Finds the hosts that lists and the leader name, and returns the leader.
pub(crate) fn resolve(
    declared: &Declared,
    hosts: &mut [HostSpec],
    cables: &[Cable],
    report: &mut Report,
) -> Option<usize> {
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for (number, host) in declared.hosts.iter().enumerate() {
        let Some(list) = &host.depends else { continue };
        let mut found: Vec<usize> = Vec::new();
        for name in &list.value {
            match called(name, &names, report) {
                Some(other) if other == number => {
                    let title = format!("`{}` is on its own list", name.value);
                    report.push(Problem::new(&name.span, title, "remove it"));
                }
                Some(other) if found.contains(&other) => {
                    let title = format!("`{}` is on this list twice", name.value);
                    report.push(Problem::new(&name.span, title, "remove one of them"));
                }
                other => found.extend(other),
            }
        }
        hosts[number].depends = Some(found);
    }
    let name = declared.network.leader.as_ref()?;
    let leader = called(name, &names, report)?;
    let is_target = |cable: &Cable| {
        let mut ends = cable.ends.iter();
        ends.any(|end| end.host == leader && end.socket == Socket::Debug)
    };
    if !cables.iter().any(is_target) && hosts[leader].enables != Some(true) {
        let title = format!("the leader `{}` is no debug target", name.value);
        let help = "name a host at whose debug capability a cable ends, or no leader";
        report.push(Problem::new(&name.span, title, help));
    }
    Some(leader)
}

/// Returns the number of the host that is called so.
fn called(name: &At<String>, names: &[String], report: &mut Report) -> Option<usize> {
    let found = names.iter().position(|known| *known == name.value);
    if found.is_none() {
        let known = || names.iter().map(String::as_str);
        let help = match nearest(&name.value, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", listed(known().take(8), "and")),
        };
        let title = format!("no host is called `{}`", name.value);
        report.push(Problem::new(&name.span, title, help));
    }
    found
}
