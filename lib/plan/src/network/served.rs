//! The programs at the ends of cables, and the links that would never form.

use diapason_contract::link::{ENABLE, TARGET};
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{LINKS, PROGRAM};
use diapason_system::{Diagnostics, End, HostSpec, Hosts, HostsPlace, ProcessSpec, Socket};

/// The end of a cable that no program of its host serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// The number of the cable.
    pub cable: usize,
    /// The number of the host.
    pub host: usize,
}

/// A link of a server, with its cable if it has one.
pub(super) struct Served {
    /// The number of the server's process.
    pub process: u16,
    /// The number of the link.
    pub number: usize,
    /// The root port that it names; 0: any; or [`DEBUG`].
    pub port: u64,
    /// The number of its cable.
    pub cable: Option<usize>,
}

/// Returns the links of a host's servers.
pub(super) fn links(hosts: &Hosts, number: usize) -> Vec<Served> {
    let host = &hosts.hosts[number];
    let mut taken = vec![[false; 2]; hosts.cables.len()];
    let mut found = Vec::new();
    for (place, process) in (0u16..).zip(&host.system.processes) {
        let (first, links) = match process.program.as_str() {
            PROGRAM => (0, process.setting(LINKS).to_vec()),
            TARGET => (process.arguments[NUMBER] as usize, vec![DEBUG]),
            _ => continue,
        };
        let Some(device) = controller(host, process) else { continue };
        let own = |end: &End| (end.host, end.device) == (number, device);
        let cables = assign(hosts, own, &links, &mut taken);
        let served = (first..).zip(&links).zip(cables);
        found.extend(served.map(|((number, port), cable)| Served {
            process: place,
            number,
            port: *port,
            cable,
        }));
    }
    found
}

/// Returns the ends that nobody serves, and the refusals: a link without a cable, and a cable that
/// is served at one end only.
pub(super) fn served(hosts: &Hosts) -> (Vec<Idle>, Vec<Diagnostics>) {
    let mut served: Vec<[bool; 2]> = vec![[false; 2]; hosts.cables.len()];
    let mut found = Vec::new();
    for (number, host) in hosts.hosts.iter().enumerate() {
        for link in links(hosts, number) {
            let process = &host.system.processes[usize::from(link.process)];
            let Some(cable) = link.cable else {
                found.push(absent(hosts, number, process, (link.number, link.port)));
                continue;
            };
            let ends = hosts.cables[cable].ends.iter().zip(&mut served[cable]);
            let own = ends.filter(|(end, _)| {
                end.host == number && (end.socket == Socket::Debug) == (link.port == DEBUG)
            });
            own.for_each(|(_, served)| *served = true);
        }
        found.extend(shared(hosts, number));
    }
    let mut idle = Vec::new();
    for (cable, both) in served.iter().enumerate() {
        let ends = hosts.cables[cable].ends;
        let idle_ends = ends.iter().zip(both).filter(|(_, served)| !**served);
        let idle_ends: Vec<End> = idle_ends.map(|(end, _)| *end).collect();
        for end in &idle_ends {
            idle.push(Idle { cable, host: end.host });
            if idle_ends.len() == 1 || end.socket == Socket::Debug {
                found.push(one_sided(hosts, cable, end));
            }
        }
    }
    (idle, found)
}

/// The argument of a debug target's server that is the number of its link.
const NUMBER: usize = 2;
/// The argument that makes it wait for the USB server of its controller.
const WAITS: usize = 1;
/// Instead of a root port: the debug capability.
pub(super) const DEBUG: u64 = u64::MAX;

/// A link of a server without a cable: its number, and the root port it names, or 0.
type Unjoined = (usize, u64);

/// Returns the controller that a process drives, if it may use one. Servers know it by its name.
fn controller(host: &HostSpec, process: &ProcessSpec) -> Option<usize> {
    let found = host.system.devices.iter().position(|device| device.name == CONTROLLER);
    found.filter(|_| process.uses.iter().any(|used| used == CONTROLLER))
}

/// Gives cables to the links of a server: first those that name a port, then those that take any.
/// Returns the number of the cable of each link.
fn assign(
    hosts: &Hosts,
    own: impl Fn(&End) -> bool,
    links: &[u64],
    served: &mut [[bool; 2]],
) -> Vec<Option<usize>> {
    let mut joined = vec![None; links.len()];
    let (any, named): (Vec<Unjoined>, Vec<Unjoined>) =
        links.iter().copied().enumerate().partition(|(_, port)| *port == 0);
    for (number, port) in named.into_iter().chain(any) {
        let fits = |end: &End| match (port, end.root_port()) {
            (DEBUG, root) => root.is_none(),
            (0, root) => root.is_some(),
            (port, root) => root.is_some_and(|root| u64::from(root) == port),
        };
        let ends = hosts.cables.iter().map(|cable| &cable.ends).zip(served.iter_mut()).enumerate();
        let mut ends = ends.flat_map(|(cable, (ends, served))| {
            ends.iter().zip(served).map(move |(end, served)| (cable, end, served))
        });
        let free = ends.find(|(_, end, served)| own(end) && fits(end) && !**served);
        if let Some((cable, _, served)) = free {
            *served = true;
            joined[number] = Some(cable);
        }
    }
    joined
}

fn absent(
    hosts: &Hosts,
    host: usize,
    process: &ProcessSpec,
    (link, port): Unjoined,
) -> Diagnostics {
    let (name, file) = (&hosts.hosts[host].name, &hosts.hosts[host].file);
    let title = format!("link {link} of `{}` in `{name}` has no cable", process.name);
    let (note, help) = match port {
        DEBUG => (
            "no cable ends at the debug capability of its controller".to_owned(),
            format!("add a `[[cable]]` from `{name}:…:debug` to a port of another host"),
        ),
        0 => (
            "every cable at a port of its controller is another link's".to_owned(),
            format!("add a `[[cable]]`, or remove the link from its `links` in `{file}`"),
        ),
        _ => (
            format!("no cable ends at root port {port} of its controller"),
            format!("add a `[[cable]]` there, or write another port in `links` in `{file}`"),
        ),
    };
    hosts.problem(HostsPlace::Host(host), [&title, &note, &help])
}

fn one_sided(hosts: &Hosts, cable: usize, end: &End) -> Diagnostics {
    let host = &hosts.hosts[end.host];
    let (name, file) = (&host.name, &host.file);
    let controller = &host.system.devices[end.device].name;
    let (title, help) = match end.socket {
        Socket::Debug => (
            format!("`{name}` never enables its debug capability, where this cable ends"),
            format!("add a process `{TARGET}` with `{controller}` in its `uses` to `{file}`"),
        ),
        Socket::Port(_) => (
            format!("nobody serves this cable in `{name}`, and its other end waits"),
            format!(
                "add `{}` to the `links` of `{PROGRAM}` in `{file}`",
                end.root_port().unwrap_or_default()
            ),
        ),
    };
    hosts.problem(HostsPlace::Cable(cable), [&title, "", &help])
}

/// Returns the refusal if a USB server and a debug target server drive one controller, and neither
/// knows of the other.
fn shared(hosts: &Hosts, number: usize) -> Option<Diagnostics> {
    let host = &hosts.hosts[number];
    let drives = |program: &str| {
        let mut processes = host.system.processes.iter().filter(|it| it.program == program);
        processes.find(|process| controller(host, process).is_some())
    };
    let (server, target) = (drives(PROGRAM)?, drives(TARGET)?);
    let name = &host.name;
    let uses = |process: &ProcessSpec| process.uses.iter().any(|used| used == ENABLE);
    let (title, help) = if target.arguments[WAITS] == 0 || !uses(target) || !uses(server) {
        (
            format!("`{PROGRAM}` and `{TARGET}` in `{name}` both drive `{CONTROLLER}`, unordered"),
            format!(
                "declare a counting semaphore `{ENABLE}`, add it to the `uses` of both, and write \
                 1 as the second of the `arguments` of `{TARGET}`"
            ),
        )
    } else {
        let links = server.setting(LINKS).len() as u64;
        if target.arguments[NUMBER] >= links {
            return None;
        }
        (
            format!(
                "`{PROGRAM}` and `{TARGET}` in `{name}` both serve link {}",
                target.arguments[NUMBER]
            ),
            format!("write {links} as the third of the `arguments` of `{TARGET}`"),
        )
    };
    Some(hosts.problem(HostsPlace::Host(number), [&title, "", &help]))
}
