//! The way of a flow that names only its last program: cables and routers from `lib/network`.
//!
//! The computed hops are checked and planned as written ones are, so a wrong way is refused and
//! never believed.

use super::{DeclaredFlow, DeclaredHop, List};
use crate::diagnostics::{Problem, Report};
use crate::hosts::{Cable, HostSpec};
use crate::link::links;
use crate::source::At;
use diapason_contract::routes::PROGRAM;
use diapason_topology::{Edge, Jack, Leg, Routes, Topology};

/// The computed routes of a list of hosts.
pub(super) struct Computed<'a> {
    list: &'a List<'a>,
    clients: Clients,
    /// Routes over all cables, whatever program uses them.
    routes: Routes,
    /// Shortest routes if every host passed messages on, to tell why a host is not reached.
    all: Routes,
    /// The process of each host that passes messages on, if it has exactly one.
    routers: Vec<Option<&'a str>>,
}

/// The routes over cables whose links belong to the programs of the way.
struct Clients {
    routes: Routes,
    /// The number of each cable of `routes` in the list.
    cables: Vec<usize>,
    /// The host and process of each node of `routes`. The routers are the first, in the order of
    /// the hosts. A host without one has a node that no cable reaches.
    nodes: Vec<(usize, Option<u16>)>,
}

impl<'a> Computed<'a> {
    /// Returns the routes of `list`. A way over links that its programs do not use is a last
    /// resort: the plan refuses it and names the link.
    pub fn of(list: &'a List<'a>) -> Computed<'a> {
        let edge = |cable: &Cable| joined(cable.ends.map(|end| (end.host, end.device)));
        let (hosts, edges) = (list.hosts.len(), list.cables.iter().map(edge).collect());
        let topology = Topology { hosts, edges };
        let routers: Vec<Option<&str>> = (0..hosts).map(|host| list.router(host)).collect();
        let is_router = |node: usize| routers.get(node).is_some_and(Option::is_some);
        let routes = routes(&topology, hosts, is_router);
        let clients = Clients::of(list, is_router);
        Computed { list, clients, routes, all: Routes::shortest(&topology, |_| true), routers }
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
        let first = declared.from.as_ref().and_then(|from| self.process(from));
        let (mut hops, mut from) = (Vec::new(), (from, first));
        for to in declared.via.iter().chain([to]) {
            let Some(end) = self.list.stop(Some(to), None, report) else { return Vec::new() };
            let end = (end.host, Some(end.process));
            let leg = self.leg(declared, (from, end), to, report);
            if leg.is_empty() {
                return Vec::new();
            }
            hops.extend(leg);
            from = end;
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
        let ends = [&first, &last].map(|name| self.process(name));
        let legs = self.leg(declared, ((from, ends[0]), (end.host, ends[1])), &last, report);
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
        (first, last): (Node, Node),
        to: &At<String>,
        report: &mut Report,
    ) -> Vec<DeclaredHop> {
        let (from, end) = (first.0, last.0);
        let path = self.clients.path(first, last).or_else(|| self.routes.path(from, end));
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            let (title, help) = self.unreached(from, end);
            report.push(Problem::new(&to.span, title, help));
            return Vec::new();
        };
        let hop = |(number, leg): (usize, &Leg)| {
            let cable = &self.list.cables[leg.cable];
            let far = cable.ends.iter().map(|end| end.host).find(|host| *host != leg.from)?;
            let process = if number + 1 == path.len() {
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
        path.iter().enumerate().filter_map(hop).collect()
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

/// A host, and a process of it if it is known.
type Node = (usize, Option<u16>);

impl Clients {
    fn of(list: &List<'_>, is_router: impl Fn(usize) -> bool) -> Clients {
        let hosts = list.hosts.len();
        let links: Vec<_> = (0..hosts).map(|host| links((list.hosts, list.cables), host)).collect();
        let router = |host: usize| {
            let name = list.router(host)?;
            let processes = &list.hosts[host].system.processes;
            u16::try_from(processes.iter().position(|it| it.name == name)?).ok()
        };
        let mut nodes: Vec<Node> = (0..hosts).map(|host| (host, router(host))).collect();
        let (mut cables, mut edges) = (Vec::new(), Vec::new());
        for (number, cable) in list.cables.iter().enumerate() {
            let ends = cable.ends.map(|end| {
                let link = links[end.host].iter().find(|link| link.cable == Some(number))?;
                let mut clients = link.clients(&list.hosts[end.host]);
                // A link that several programs may use carries no flow.
                let client = clients.next().filter(|_| clients.next().is_none())?;
                Some(((end.host, Some(client)), end.device))
            });
            let [Some(one), Some(other)] = ends else { continue };
            let ends = [one, other].map(|(node, device)| {
                let known = nodes.iter().position(|it| *it == node);
                let place = known.unwrap_or_else(|| {
                    nodes.push(node);
                    nodes.len() - 1
                });
                (place, device)
            });
            cables.push(number);
            edges.push(joined(ends));
        }
        let topology = Topology { hosts: nodes.len(), edges };
        Clients { routes: routes(&topology, hosts, is_router), cables, nodes }
    }

    /// Returns the way from one program to another, with the numbers of cables and hosts of the
    /// list; `None` if there is none.
    fn path(&self, from: Node, to: Node) -> Option<Vec<Leg>> {
        let place = |node: Node| self.nodes.iter().position(|it| *it == node);
        let path = self.routes.path(place(from)?, place(to)?)?;
        let leg = |leg: Leg| Leg { cable: self.cables[leg.cable], from: self.nodes[leg.from].0 };
        Some(path.into_iter().map(leg).collect())
    }
}

/// Returns the cable between two controllers, each with its host.
fn joined(ends: [(usize, usize); 2]) -> Edge {
    Edge::Bridge(ends.map(|(host, controller)| Jack { host, controller }))
}

/// Returns the routes of a network whose first `hosts` nodes are hosts: e-cube on a hypercube, else
/// the shortest ones. If messages on those could wait for each other in a circle and all hosts pass
/// messages on, they go up a tree and then down. The plan refuses a circle that is left.
fn routes(topology: &Topology, hosts: usize, is_router: impl Fn(usize) -> bool) -> Routes {
    let shortest = Routes::shortest(topology, &is_router);
    if !(0..hosts).all(&is_router) {
        return shortest;
    }
    let dimensions = topology.hosts.checked_ilog2().unwrap_or_default() as usize;
    let is_cube = topology.edges.len() * 2 == topology.hosts * dimensions;
    let cube = Routes::e_cube(topology).filter(|_| is_cube && topology.hosts == hosts);
    cube.unwrap_or_else(|| match shortest.deadlock() {
        Some(_) => Routes::up_down(topology, is_router),
        None => shortest,
    })
}

impl Computed<'_> {
    /// Returns the number of the process that a text such as `left:sampler` names.
    fn process(&self, text: &At<String>) -> Option<u16> {
        let (host, name) = text.value.split_once(':')?;
        let host = self.list.hosts.iter().find(|it| it.name == host)?;
        let found = host.system.processes.iter().position(|it| it.name == name)?;
        u16::try_from(found).ok()
    }

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

/// Returns why `via` and `mailbox` of a computed way cannot be.
pub(super) fn wrong_way(
    to: &Option<At<String>>,
    via: Option<&At<String>>,
    mailbox: Option<&At<String>>,
) -> Option<Problem> {
    let add = "add `to`, the last program, or write each `[[flow.hop]]`";
    let end = "remove `via`: end the flow there, and let another begin at that program";
    let (place, title, help) = match (to, via, mailbox) {
        (None, Some(via), _) => (via, "a flow with `via` and no `to`", add),
        (None, None, Some(mailbox)) => (mailbox, "a flow with `mailbox` and no `to`", add),
        (Some(_), Some(via), Some(_)) => (via, "a flow with `mailbox` and `via`", end),
        _ => return None,
    };
    Some(Problem::new(&place.span, title, help))
}
