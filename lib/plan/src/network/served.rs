//! The programs at the ends of cables, and the links that would never form.

use diapason_contract::link::TARGET;
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{LINKS, PROGRAM};
use diapason_system::{Diagnostics, End, Host, Hosts, HostsPlace, Process, Socket};

/// The end of a cable that no program of its host serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// The number of the cable.
    pub cable: usize,
    /// The number of the host.
    pub host: usize,
}

/// Returns the ends that nobody serves, and the refusals: a link without a cable, and a cable that
/// is served at one end only.
pub(super) fn served(hosts: &Hosts) -> (Vec<Idle>, Vec<Diagnostics>) {
    let mut served: Vec<[bool; 2]> = vec![[false; 2]; hosts.cables.len()];
    let mut found = Vec::new();
    for (number, host) in hosts.hosts.iter().enumerate() {
        for process in &host.system.processes {
            let links = match process.program.as_str() {
                PROGRAM => process.setting(LINKS).to_vec(),
                TARGET => vec![DEBUG],
                _ => continue,
            };
            let Some(device) = controller(host, process) else { continue };
            let own = |end: &End| (end.host, end.device) == (number, device);
            let unjoined = assign(hosts, own, &links, &mut served).into_iter();
            found.extend(unjoined.map(|link| absent(hosts, number, process, link)));
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

/// Instead of a root port: the debug capability.
const DEBUG: u64 = u64::MAX;

/// A link of a server without a cable: its number, and the root port it names, or 0.
type Unjoined = (usize, u64);

/// Returns the controller that a process drives, if it may use one. Servers know it by its name.
fn controller(host: &Host, process: &Process) -> Option<usize> {
    let found = host.system.devices.iter().position(|device| device.name == CONTROLLER);
    found.filter(|_| process.uses.iter().any(|used| used == CONTROLLER))
}

/// Gives cables to the links of a server: first those that name a port, then those that take any.
fn assign(
    hosts: &Hosts,
    own: impl Fn(&End) -> bool,
    links: &[u64],
    served: &mut [[bool; 2]],
) -> Vec<Unjoined> {
    let mut unjoined = Vec::new();
    let (any, named): (Vec<Unjoined>, Vec<Unjoined>) =
        links.iter().copied().enumerate().partition(|(_, port)| *port == 0);
    for (number, port) in named.into_iter().chain(any) {
        let fits = |end: &End| match (port, end.root_port()) {
            (DEBUG, root) => root.is_none(),
            (0, root) => root.is_some(),
            (port, root) => root.is_some_and(|root| u64::from(root) == port),
        };
        let ends = hosts.cables.iter().map(|cable| &cable.ends).zip(served.iter_mut());
        let mut ends = ends.flat_map(|(ends, served)| ends.iter().zip(served));
        let free = ends.find(|(end, served)| own(end) && fits(end) && !**served);
        match free {
            Some((_, served)) => *served = true,
            None => unjoined.push((number, port)),
        }
    }
    unjoined
}

fn absent(hosts: &Hosts, host: usize, process: &Process, (link, port): Unjoined) -> Diagnostics {
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

/// Returns the refusal if a USB server and a debug target server would drive one controller.
fn shared(hosts: &Hosts, number: usize) -> Option<Diagnostics> {
    let host = &hosts.hosts[number];
    let drives = |program: &str| {
        let mut processes = host.system.processes.iter().filter(|it| it.program == program);
        processes.any(|process| controller(host, process).is_some())
    };
    if !drives(PROGRAM) || !drives(TARGET) {
        return None;
    }
    let name = &host.name;
    let title = format!("`{PROGRAM}` and `{TARGET}` in `{name}` both drive `{CONTROLLER}`");
    let help = "give each a controller of its own, or make one of its debug cables a bridge";
    Some(hosts.problem(HostsPlace::Host(number), [&title, "", help]))
}
