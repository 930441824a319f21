//! The way of a flow that names only its last program: cables and routers from `lib/network`.
//!
//! The computed hops are checked and planned as written ones are, so a wrong way is refused and
//! never believed.

use super::{DeclaredFlow, DeclaredHop, List};
use crate::diagnostics::{Problem, Report};
use crate::hosts::HostSpec;
use crate::source::At;
use diapason_contract::routes::PROGRAM;
use diapason_topology::{Edge, Jack, Leg, Routes, Topology};

/// The computed routes of a list of hosts.
pub(super) struct Computed<'a> {
    list: &'a List<'a>,
    routes: Routes,
    /// Shortest routes if every host passed messages on, to tell why a host is not reached.
    all: Routes,
    /// The process of each host that passes messages on, if it has exactly one.
    routers: Vec<Option<&'a str>>,
}

impl<'a> Computed<'a> {
    /// Returns the routes of `list`: e-cube on a hypercube, else the shortest ones. If messages on
    /// those could wait for each other in a circle and all hosts pass messages on, they go up a
    /// tree and then down. The plan refuses a circle that is left.
    pub fn of(list: &'a List<'a>) -> Computed<'a> {
        let edge = |cable: &crate::hosts::Cable| {
            Edge::Bridge(cable.ends.map(|end| Jack { host: end.host, controller: end.device }))
        };
        let (hosts, edges) = (list.hosts.len(), list.cables.iter().map(edge).collect());
        let topology = Topology { hosts, edges };
        let routers: Vec<Option<&str>> = (0..hosts).map(|host| list.router(host)).collect();
        let shortest = Routes::shortest(&topology, |host| routers[host].is_some());
        let routes = if routers.iter().all(Option::is_some) {
            let dimensions = hosts.checked_ilog2().unwrap_or_default() as usize;
            let is_cube = topology.edges.len() * 2 == hosts * dimensions;
            let cube = Routes::e_cube(&topology).filter(|_| is_cube);
            cube.unwrap_or_else(|| match shortest.deadlock() {
                Some(_) => Routes::up_down(&topology),
                None => shortest,
            })
        } else {
            shortest
        };
        Computed { list, routes, all: Routes::shortest(&topology, |_| true), routers }
    }

    /// Returns the hops of a flow through the programs `via` to the program `to`. There are none if
    /// no way leads there.
    pub fn hops(
        &self,
        declared: &DeclaredFlow,
        to: &At<String>,
        report: &mut Report,
    ) -> Vec<DeclaredHop> {
        // A wrong `from` is reported where every flow is read.
        let host = |text: &str| {
            let name = text.split_once(':')?.0;
            self.list.hosts.iter().position(|host| host.name == name)
        };
        let Some(from) = declared.from.as_ref().and_then(|from| host(&from.value)) else {
            return Vec::new();
        };
        if let Some(mailbox) = &declared.mailbox {
            return self.mailed(declared, (from, mailbox), to, report);
        }
        let (mut hops, mut from) = (Vec::new(), from);
        for to in declared.via.iter().chain([to]) {
            let Some(end) = self.list.stop(Some(to), None, report) else { return Vec::new() };
            let leg = self.leg(declared, (from, end.host), to, report);
            if leg.is_empty() {
                return Vec::new();
            }
            hops.extend(leg);
            from = end.host;
        }
        hops
    }

    /// Returns the hops of a flow from a mailbox of a host to that of the same name at the program
    /// `to`: from the router of the one host to that of the other.
    fn mailed(
        &self,
        declared: &DeclaredFlow,
        (from, mailbox): (usize, &At<String>),
        to: &At<String>,
        report: &mut Report,
    ) -> Vec<DeclaredHop> {
        let Some(end) = self.list.stop(Some(to), None, report) else { return Vec::new() };
        let router = |host: usize| {
            let name = format!("{}:{}", self.list.hosts[host].name, self.routers[host]?);
            Some(At::new(name, to.span.clone()))
        };
        let [Some(first), Some(last)] = [from, end.host].map(router) else {
            let silent = if self.routers[from].is_none() { from } else { end.host };
            let (title, help) = self.silent(silent);
            report.push(Problem::new(&to.span, format!("no way to `{}`: {title}", to.value), help));
            return Vec::new();
        };
        let legs = self.leg(declared, (from, end.host), &last, report);
        if legs.is_empty() {
            return Vec::new();
        }
        let hop = |process: At<String>| DeclaredHop {
            place: to.span.clone(),
            process: Some(process),
            by: Some(At::new(mailbox.value.clone(), mailbox.span.clone())),
            slots: None,
            work_ns: declared.work_ns,
            patience: None,
            otherwise: Vec::new(),
        };
        let end = At::new(to.value.clone(), to.span.clone());
        std::iter::once(hop(first)).chain(legs).chain([hop(end)]).collect()
    }

    /// Returns the hops from one host to the program `to` of another.
    fn leg(
        &self,
        declared: &DeclaredFlow,
        (from, end): (usize, usize),
        to: &At<String>,
        report: &mut Report,
    ) -> Vec<DeclaredHop> {
        let Some(path) = self.routes.path(from, end).filter(|path| !path.is_empty()) else {
            let (title, help) = self.unreached(from, end);
            report.push(Problem::new(&to.span, title, help));
            return Vec::new();
        };
        let hop = |leg: &Leg| {
            let cable = &self.list.cables[leg.cable];
            let far = cable.ends.iter().map(|end| end.host).find(|host| *host != leg.from)?;
            let process = if far == end {
                to.value.clone()
            } else {
                format!("{}:{}", self.list.hosts[far].name, self.routers[far]?)
            };
            let at = |value: String| Some(At::new(value, to.span.clone()));
            Some(DeclaredHop {
                place: to.span.clone(),
                process: at(process),
                by: at(cable.name.clone()),
                slots: declared.slots.clone(),
                work_ns: declared.work_ns,
                patience: None,
                otherwise: Vec::new(),
            })
        };
        path.iter().filter_map(hop).collect()
    }

    /// Returns why no way leads from one host to another, and the remedy.
    fn unreached(&self, from: usize, to: usize) -> (String, String) {
        let host = |number: usize| &self.list.hosts[number];
        let [one, other] = [from, to].map(|number| host(number).name.as_str());
        if from == to {
            let help = "name a program of another host, or write each `[[flow.hop]]`";
            return (format!("the flow does not leave `{one}`"), help.to_owned());
        }
        let path = self.all.path(from, to).unwrap_or_default();
        let mut through = path.iter().skip(1).map(|leg| leg.from);
        match through.find(|number| self.routers[*number].is_none()) {
            Some(silent) => {
                let (title, help) = self.silent(silent);
                (format!("no way from `{one}` to `{other}`: {title}"), help)
            }
            None => {
                let title = format!("no cables lead from `{one}` to `{other}`");
                (title, "add a `[[cable]]`".to_owned())
            }
        }
    }
}

impl Computed<'_> {
    /// Returns why a host passes no messages on, and the remedy.
    fn silent(&self, host: usize) -> (String, String) {
        let has = self.list.routers(host).count();
        let HostSpec { name, file, .. } = &self.list.hosts[host];
        let title = format!(
            "`{name}` has {has} processes with `program = \"{PROGRAM}\"`, and 1 passes messages on"
        );
        (title, format!("give it one in `{file}`, or write each `[[flow.hop]]`"))
    }
}

impl List<'_> {
    /// Returns the names of the processes of a host that pass messages on.
    fn routers(&self, host: usize) -> impl Iterator<Item = &str> {
        let processes = self.hosts[host].system.processes.iter();
        processes.filter(|process| process.program == PROGRAM).map(|it| it.name.as_str())
    }

    /// Returns the one process of a host that passes messages on.
    fn router(&self, host: usize) -> Option<&str> {
        let mut all = self.routers(host);
        all.next().filter(|_| all.next().is_none())
    }
}
