//! The links of a host's servers, the cable of each, and the programs that use it.
//!
//! A server reads from its settings which root ports its links are at. Both the search for the ways
//! of flows and the plan need to know which cable that is.

use crate::hosts::{Cable, End, HostSpec, Hosts};
use crate::system::ProcessSpec;
use diapason_contract::link::{LINKS as EACH_HOST, NAMES, TARGET};
use diapason_contract::needs::CONTROLLER;
use diapason_contract::settings::{LINKS, PROGRAM};

/// The argument of a debug target's server that is the number of its link.
pub const TARGET_LINK: usize = 2;
/// The debug capability, instead of a root port.
pub const DEBUG: u64 = u64::MAX;

/// A link of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedLink {
    /// The number of the server's process.
    pub process: u16,
    /// The number of the link.
    pub number: usize,
    /// The root port that it names; 0: any; or [`DEBUG`].
    pub port: u64,
    /// The number of its cable, if it has one.
    pub cable: Option<usize>,
}

impl ServedLink {
    /// Returns the processes of its host, other than its server, that may use it.
    pub fn clients(self, host: &HostSpec) -> impl Iterator<Item = u16> {
        let asks = NAMES[self.number % EACH_HOST][0];
        let processes = (0u16..).zip(&host.system.processes);
        let uses = move |it: &ProcessSpec| it.uses.iter().any(|used| used == asks);
        let clients = processes.filter(move |(place, it)| *place != self.process && uses(it));
        clients.map(|(place, _)| place)
    }
}

impl Hosts {
    /// Returns the links of the servers of the host with this number.
    #[must_use]
    pub fn links(&self, host: usize) -> Vec<ServedLink> {
        links((&self.hosts, &self.cables), host)
    }
}

/// Returns the links of the servers of one of these hosts.
pub(crate) fn links((hosts, cables): (&[HostSpec], &[Cable]), number: usize) -> Vec<ServedLink> {
    let host = &hosts[number];
    let mut taken = vec![[false; 2]; cables.len()];
    let mut found = Vec::new();
    for (place, process) in (0u16..).zip(&host.system.processes) {
        let (first, links) = match process.program.as_str() {
            PROGRAM => (0, process.setting(LINKS).to_vec()),
            TARGET => (process.arguments[TARGET_LINK] as usize, vec![DEBUG]),
            _ => continue,
        };
        let Some(device) = controller(host, process) else { continue };
        let own = |end: &End| (end.host, end.device) == (number, device);
        let joined = assign(cables, own, &links, &mut taken);
        let served = (first..).zip(&links).zip(joined);
        found.extend(served.map(|((number, port), cable)| ServedLink {
            process: place,
            number,
            port: *port,
            cable,
        }));
    }
    found
}

/// Returns the controller that a process drives, if it may use one. Servers know it by its name.
#[must_use]
pub fn controller(host: &HostSpec, process: &ProcessSpec) -> Option<usize> {
    let found = host.system.devices.iter().position(|device| device.name == CONTROLLER);
    found.filter(|_| process.uses.iter().any(|used| used == CONTROLLER))
}

/// Gives cables to the links of a server: first those that name a port, then those that take any.
/// Returns the number of the cable of each link.
fn assign(
    cables: &[Cable],
    own: impl Fn(&End) -> bool,
    links: &[u64],
    served: &mut [[bool; 2]],
) -> Vec<Option<usize>> {
    let mut joined = vec![None; links.len()];
    let (any, named): (Vec<_>, Vec<_>) =
        links.iter().copied().enumerate().partition(|(_, port)| *port == 0);
    for (number, port) in named.into_iter().chain(any) {
        let fits = |end: &End| match (port, end.root_port()) {
            (DEBUG, root) => root.is_none(),
            (0, root) => root.is_some(),
            (port, root) => root.is_some_and(|root| u64::from(root) == port),
        };
        let ends = cables.iter().map(|cable| &cable.ends).zip(served.iter_mut()).enumerate();
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
