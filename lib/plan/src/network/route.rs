//! The way of a flow: which link of which server carries it over each cable.

use crate::missing::Missing;
use diapason_abi::Nanos;
use diapason_contract::carried::Contract;
use diapason_contract::link::{DATA, LINKS, NAMES, READY};
use diapason_contract::threads::{Home, LINK};
use diapason_pipe::size::Bucket;
use diapason_system::link::{DEBUG, ServedLink};
use diapason_system::{
    Detour, Diagnostics, Flow, FlowHop, FlowStop, FlowWay, HostSpec, Hosts, HostsPlace, Restart,
};

/// The time from one look of a debug target's server to the next, if its argument says none.
const LOOK: Nanos = Nanos::from_micros(125);

/// An end of a cable, with the link that serves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Port {
    pub host: usize,
    /// The number of the server's process.
    pub server: u16,
    /// The number of the link.
    pub link: usize,
    pub by: By,
}

/// How a link is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// By a bottom half of the USB server.
    Usb(&'static Home),
    /// By the debug target's server, which looks so often.
    Target(Nanos),
}

/// A cable that a flow crosses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crossing {
    pub cable: usize,
    /// The program that sends, and its link.
    pub from: (FlowStop, Port),
    /// The program that receives, and its link.
    pub to: (FlowStop, Port),
    /// Messages for which the receiver lends memory.
    pub slots: u64,
}

/// A flow with its way, or with another way around one of its hops.
#[derive(Clone, Debug)]
pub(super) struct Route<'a> {
    pub flow: &'a Flow,
    /// The hop that it goes around, if it is another way.
    pub around: Option<&'a Detour>,
    pub crossings: Vec<Crossing>,
    /// The mailbox before the first crossing, and the one behind the last, if it has them.
    pub mailed: Option<[Mailed; 2]>,
}

/// A mailbox on the way of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mailed {
    /// The program that sends to it.
    pub from: FlowStop,
    /// The program that takes its messages.
    pub to: FlowStop,
    /// Its number in its host.
    pub number: usize,
    /// Messages that it holds.
    pub room: u64,
}

impl Route<'_> {
    /// Returns the programs of the way.
    pub fn stops(&self) -> impl Iterator<Item = &FlowStop> {
        let first = self.crossings.first().map_or(&self.flow.from, |it| &it.from.0);
        let own = std::iter::once(first).chain(self.crossings.iter().map(|it| &it.to.0));
        own.chain(self.mailed.iter().flat_map(|[post, delivery]| [&post.from, &delivery.to]))
    }

    /// Returns the contract of the flow by the clock of any host.
    pub fn bucket(&self) -> Bucket {
        steady(self.flow)
    }
}

/// Returns the contract of a flow by the clock of any host.
pub(super) fn steady(flow: &Flow) -> Bucket {
    let Contract { messages, per, burst, jitter } = flow.steady();
    Bucket { burst, messages: messages.into(), per, jitter }
}

/// Returns the way of a flow, and behind it the other ways around its hops.
pub(super) fn routes<'a>(hosts: &'a Hosts, flow: &'a Flow) -> Result<Vec<Route<'a>>, Missing> {
    let crossed = crossings(hosts, flow.from, &flow.hops)?;
    let own = Route { flow, around: None, crossings: crossed, mailed: mailed(flow) };
    let mut all = vec![own];
    for detour in &flow.detours {
        let from = flow.stops().nth(detour.hop).copied().unwrap_or(flow.from);
        let crossings = crossings(hosts, from, &detour.hops)?;
        all.push(Route { flow, around: Some(detour), crossings, mailed: None });
    }
    Ok(all)
}

/// Returns the ways of each flow over cables that has some, with the number of the flow.
pub(super) fn known(hosts: &Hosts) -> Vec<(usize, Vec<Route<'_>>)> {
    let flows = hosts.flows.iter().enumerate().filter(|(_, flow)| !flow.is_on_ethernet());
    flows.filter_map(|(number, flow)| Some((number, routes(hosts, flow).ok()?))).collect()
}

fn crossings(hosts: &Hosts, from: FlowStop, hops: &[FlowHop]) -> Result<Vec<Crossing>, Missing> {
    let mut before = from;
    let mut crossings = Vec::new();
    for hop in hops {
        // A flow over Ethernet has a plan of its own.
        let FlowWay::Cable(cable) = hop.way else {
            before = hop.to;
            continue;
        };
        let side = |stop: FlowStop| port(hosts, stop, cable).map(|port| (stop, port));
        let (from, to) = (side(before)?, side(hop.to)?);
        crossings.push(Crossing { cable, from, to, slots: hop.slots });
        before = hop.to;
    }
    Ok(crossings)
}

/// Returns the mailboxes of a flow that has them: before its first cable, and behind its last.
fn mailed(flow: &Flow) -> Option<[Mailed; 2]> {
    flow.mailbox()?;
    let (first, [.., before, last]) = (flow.hops.first()?, &flow.hops[..]) else { return None };
    let [post, delivery] =
        [(flow.from, first), (before.to, last)].map(|(from, hop)| match hop.way {
            FlowWay::Mailbox(number) => Some(Mailed { from, to: hop.to, number, room: hop.slots }),
            _ => None,
        });
    Some([post?, delivery?])
}

/// A link at one end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEnd {
    /// The number of the host.
    pub host: usize,
    /// The number of the link in its host.
    pub link: usize,
}

/// A cable on the way of a flow: the link that the message goes into, and the one it comes out of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowLeg {
    /// The link of the program that sends.
    pub from: LinkEnd,
    /// The link of the program that receives.
    pub to: LinkEnd,
}

/// The cables of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowLegs {
    /// Those of its way.
    pub own: Vec<FlowLeg>,
    /// The hop that each other way goes around, and the cables of the way.
    pub others: Vec<(usize, Vec<FlowLeg>)>,
}

/// Returns the cables that a flow crosses, or `None` if no link serves one of them.
#[must_use]
pub fn flow_legs(hosts: &Hosts, flow: &Flow) -> Option<FlowLegs> {
    let end = |port: Port| LinkEnd { host: port.host, link: port.link };
    let leg = |it: &Crossing| FlowLeg { from: end(it.from.1), to: end(it.to.1) };
    let all = routes(hosts, flow).ok()?;
    let legs = |route: &Route<'_>| route.crossings.iter().map(leg).collect();
    let (own, others) = all.split_first()?;
    let others = others.iter().filter_map(|it| Some((it.around?.hop, legs(it))));
    Some(FlowLegs { own: legs(own), others: others.collect() })
}

/// Returns the link of a program's host that serves a cable, which the program must be the one
/// client of.
fn port(hosts: &Hosts, stop: FlowStop, cable: usize) -> Result<Port, Missing> {
    let host = &hosts.hosts[stop.host];
    let name = &hosts.cables[cable].name;
    let all = hosts.links(stop.host);
    let Some(served @ ServedLink { process: server, number, port, .. }) =
        all.iter().copied().find(|link| link.cable == Some(cable))
    else {
        return Err((
            format!("no program of `{}` serves the cable `{name}`", host.name),
            format!("add a link for it in `{}`", host.file),
        ));
    };
    let link = number % LINKS;
    let asks = NAMES[link][0];
    let processes = &host.system.processes;
    if stop.process == server {
        let own = &processes[usize::from(server)].name;
        return Err((
            format!("`{own}` in `{}` serves `{name}`, and passes no messages on", host.name),
            format!("name the process of `{}` that uses `{asks}`", host.file),
        ));
    }
    if !served.clients(host).any(|it| it == stop.process) {
        let own = &processes[usize::from(stop.process)].name;
        return Err((
            format!("`{own}` in `{}` does not use link {link}, of `{name}`", host.name),
            format!(
                "add `{asks}` and the other names of the link to its `uses` in `{}`",
                host.file
            ),
        ));
    }
    if let Some(wrong) = strange(host, &all, (served, stop.process), name) {
        return Err(wrong);
    }
    if let Some(wrong) = [stop.process, server].into_iter().find_map(|it| restarted(host, it, name))
    {
        return Err(wrong);
    }
    let by = if port == DEBUG {
        let look = processes[usize::from(server)].arguments[0];
        By::Target(if look == 0 { LOOK } else { Nanos::from_micros(look) })
    } else {
        By::Usb(&LINK[link])
    };
    Ok(Port { host: stop.host, server, link, by })
}

/// Checks that nobody but its server and `client` uses the objects of a link of `cable`, and nobody
/// but the servers of `links` and `client` those of all links of the host. Another process can give
/// the server work, take a sign that is for another, or write into a message.
fn strange(
    host: &HostSpec,
    links: &[ServedLink],
    (served, client): (ServedLink, u16),
    cable: &str,
) -> Option<Missing> {
    let serves_some = |process: u16| links.iter().any(|link| link.process == process);
    let processes = (0u16..).zip(&host.system.processes).filter(|it| it.0 != client);
    let names = NAMES[served.number % LINKS].map(|name| (name, "a link has one client"));
    let common = [READY, DATA].map(|name| (name, "all links of a host have one client"));
    let mut found = processes.filter_map(|(place, process)| {
        let uses = |name: &str| process.uses.iter().any(|used| used == name);
        let own = names.iter().filter(|_| place != served.process);
        let of_all = common.iter().filter(|_| !serves_some(place));
        let (object, why) = own.chain(of_all).find(|(name, _)| uses(name))?;
        Some((&process.name, object, why))
    });
    let (other, object, why) = found.next()?;
    Some((
        format!("`{other}` in `{}` may use `{object}` of `{cable}`, too", host.name),
        format!("take `{object}` out of its `uses` in `{}`: {why}", host.file),
    ))
}

/// Returns the refusals of processes that may be restarted at the links of cables that no flow
/// crosses. A flow names those at its own cables.
pub(super) fn forgetful(hosts: &Hosts) -> impl Iterator<Item = Diagnostics> + '_ {
    let hops = || {
        hosts
            .flows
            .iter()
            .flat_map(|flow| flow.hops.iter().chain(flow.detours.iter().flat_map(|it| &it.hops)))
    };
    let is_crossed = move |cable: usize| hops().any(|hop| hop.way == FlowWay::Cable(cable));
    hosts.hosts.iter().enumerate().flat_map(move |(number, host)| {
        let links = hosts.links(number).into_iter();
        let joined = links.filter_map(|link| Some((link, link.cable?)));
        let bare = joined.filter(move |(_, cable)| !is_crossed(*cable));
        bare.flat_map(move |(link, cable)| {
            let users = std::iter::once(link.process).chain(link.clients(host));
            users.filter_map(move |user| {
                let (what, remedy) = restarted(host, user, &hosts.cables[cable].name)?;
                Some(hosts.problem(HostsPlace::Cable(cable), [&what, "", &remedy]))
            })
        })
    })
}

/// Checks that a process at an end of `cable` is never restarted. The server of a link forgets the
/// memory that it was lent: no message comes over the link any more. A client that starts again
/// lends memory that the server still has, so two messages can come into the same memory.
fn restarted(host: &HostSpec, process: u16, cable: &str) -> Option<Missing> {
    let process = &host.system.processes[usize::from(process)];
    (process.restart != Restart::Never).then(|| {
        (
            format!(
                "`{}` in `{}` may be restarted, and forgets which memory `{cable}` has",
                process.name, host.name
            ),
            format!("remove `restart` from it in `{}`", host.file),
        )
    })
}

/// Checks that every link of every program on the way is one that some flow crosses: what a
/// program carries over others is in no contract.
pub(super) fn undeclared(hosts: &Hosts, route: &Route<'_>, all: &[Route<'_>]) -> Option<Missing> {
    let crossings = || all.iter().flat_map(|route| &route.crossings);
    let is_crossed = |stop: &FlowStop, link: usize| {
        let mut sides = crossings().flat_map(|it| [it.from, it.to]);
        sides.any(|(other, port)| {
            (other.host, other.process, port.link) == (stop.host, stop.process, link)
        })
    };
    route.stops().find_map(|stop| {
        let host = &hosts.hosts[stop.host];
        let process = &host.system.processes[usize::from(stop.process)];
        let uses = |link: &usize| process.uses.iter().any(|used| used == NAMES[*link][0]);
        let link = (0..LINKS).filter(uses).find(|link| !is_crossed(stop, *link))?;
        Some((
            format!("`{}` in `{}` also uses link {link}, and no flow", process.name, host.name),
            "declare a `[[flow]]` of what it carries there, or take the link out of its `uses`"
                .to_owned(),
        ))
    })
}

/// Checks that every mailbox of every program at a mailbox on the way is one that some flow passes:
/// what comes by others is in no contract.
pub(super) fn unmailed(hosts: &Hosts, route: &Route<'_>, all: &[Route<'_>]) -> Option<Missing> {
    let known = || all.iter().filter_map(|route| route.mailed).flatten();
    route.mailed.iter().flatten().flat_map(|it| [it.from, it.to]).find_map(|stop| {
        let host = &hosts.hosts[stop.host];
        let mailboxes = host.system.mailboxes.iter().enumerate();
        let own = |it: &Mailed| it.from.host == stop.host;
        let is_passed = |number: usize| known().any(|it| own(&it) && it.number == number);
        let (_, mailbox) = mailboxes
            .filter(|(_, mailbox)| mailbox.allowed >> stop.process & 1 != 0)
            .find(|(number, _)| !is_passed(*number))?;
        let name = host.system.process_name(stop.process).unwrap_or_default();
        Some((
            format!(
                "`{name}` in `{}` also uses the mailbox `{}`, and no flow",
                host.name, mailbox.name
            ),
            format!(
                "declare a `[[flow]]` of its messages, or take it out of the `uses` of `{name}`"
            ),
        ))
    })
}
