//! The programs at the ends of cables, and the links that would never form.

use diapason_contract::link::{ENABLE, TARGET};
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{LINKS, PROGRAM};
use diapason_system::link::{DEBUG, TARGET_LINK, controller};
use diapason_system::{Diagnostics, End, Hosts, HostsPlace, ProcessSpec, Socket};

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
        for link in hosts.links(number) {
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

/// The argument that makes it wait for the USB server of its controller.
const WAITS: usize = 1;
fn absent(
    hosts: &Hosts,
    host: usize,
    process: &ProcessSpec,
    (link, port): (usize, u64),
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
/// knows of the other, or a third process can take the sign that one gives the other.
fn shared(hosts: &Hosts, number: usize) -> Option<Diagnostics> {
    let host = &hosts.hosts[number];
    let processes = || host.system.processes.iter();
    let drives = |program: &str| {
        let mut servers = processes().filter(|it| it.program == program);
        servers.find(|process| controller(host, process).is_some())
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
    } else if let Some(other) =
        processes().find(|it| uses(it) && it.name != server.name && it.name != target.name)
    {
        (
            format!("`{}` in `{name}` may take `{ENABLE}` from `{}`", other.name, target.name),
            format!("take `{ENABLE}` out of its `uses` in `{}`", host.file),
        )
    } else {
        let links = server.setting(LINKS).len() as u64;
        if target.arguments[TARGET_LINK] >= links {
            return None;
        }
        (
            format!(
                "`{PROGRAM}` and `{TARGET}` in `{name}` both serve link {}",
                target.arguments[TARGET_LINK]
            ),
            format!("write {links} as the third of the `arguments` of `{TARGET}`"),
        )
    };
    Some(hosts.problem(HostsPlace::Host(number), [&title, "", &help]))
}
