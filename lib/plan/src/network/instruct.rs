//! The plan of a network, told to its hosts: for whom each server waits, who belongs at the other
//! end of each link, when the gates of an adapter open, for how long a program waits for a cable
//! that has another way, the table of each router, and the terms of a
//! common time.

use super::passing::{RouterTable, tables};
use super::route::known;
use super::wired::Sender;
use super::{CommonTerms, NetworkPlan};
use diapason_abi::Key;
use diapason_contract::ethernet::{GATES_SETTING, GateTerms};
use diapason_contract::link::{
    ENABLE, LABEL, LABELLING, LINKS, LONGEST, PATIENCE, TARGET, label_of,
};
use diapason_contract::mail::{BoxName, MAILBOXES};
use diapason_contract::release::RELEASE_SETTING;
use diapason_contract::routes::{LinkRoute, MEMORY, ROUTES};
use diapason_contract::settings::{Awaited, Expected, FormingOrder, ORDER, PROGRAM};
use diapason_contract::time::{GptpTerms, TIME_BASE, TIME_SETTING};
use diapason_system::{
    AdapterGates, ClassCredit, FarEnd, Flow, FlowStop, HostSpec, Hosts, Neighbours, ProcessSpec,
    Socket, WireEnd,
};
use diapason_tsn::GateEntry;
use std::collections::BTreeMap;

/// The argument of a debug target's server that is the key of its host's name.
const NAME: usize = 3;
/// The first priorities of a node of gPTP that leads, and of one that never does.
const LEADS: u8 = 1;
const FOLLOWS: u8 = u8::MAX;
/// No port has this number: a host waits there for ever.
const NOWHERE: u8 = u8::MAX;

impl NetworkPlan {
    /// Tells the servers of `hosts` their part in the order, and whom their links lead to; and the
    /// programs of flows the `patience` of the other ways.
    pub fn instruct(&self, hosts: &mut Hosts) {
        let names: Vec<String> = hosts.hosts.iter().map(|host| host.name.clone()).collect();
        let told: Vec<_> = (0..names.len()).map(|number| self.far_ends(hosts, number)).collect();
        let orders: Vec<_> = (0..names.len()).map(|number| self.order(hosts, number)).collect();
        for (host, (links, order)) in hosts.hosts.iter_mut().zip(told.into_iter().zip(orders)) {
            host.system.neighbours = Neighbours { hosts: names.clone(), links };
            let key = Key::new(&host.name).0;
            for process in &mut host.system.processes {
                match process.program.as_str() {
                    TARGET => process.arguments[NAME] = key,
                    PROGRAM if order.awaits[0].is_some() || enables(process) => {
                        process.set(ORDER, &order.words());
                    }
                    _ => {}
                }
            }
        }
        for (driver, words) in gates(hosts) {
            hosts.hosts[driver.0].system.processes[usize::from(driver.1)]
                .set(GATES_SETTING, &words);
        }
        for ((host, process), words) in self.steps(hosts) {
            hosts.hosts[host].system.processes[usize::from(process)].set(RELEASE_SETTING, &words);
        }
        for ((host, process), words) in self.times(hosts) {
            hosts.hosts[host].system.processes[usize::from(process)].set(TIME_SETTING, &words);
        }
        for ((host, process), RouterTable { ways, memory, mailboxes }) in self.routers(hosts) {
            let system = &mut hosts.hosts[host].system;
            let name = |number: &usize| BoxName::new(&system.mailboxes[*number].name).words();
            let names: Vec<u64> = mailboxes.iter().flat_map(name).collect();
            let words: Vec<u64> = ways.iter().flat_map(LinkRoute::words).collect();
            let process = &mut system.processes[usize::from(process)];
            process.set(ROUTES, &words);
            process.set(MEMORY, &[memory.word()]);
            if !names.is_empty() {
                process.set(MAILBOXES, &names);
            }
        }
        for ((host, server), words) in longest(hosts) {
            hosts.hosts[host].system.processes[usize::from(server)].set(LONGEST, &words);
        }
        for (stop, label) in labels(hosts) {
            let process = usize::from(stop.process);
            hosts.hosts[stop.host].system.processes[process].set(LABEL, &[label.into()]);
        }
        for (stop, patience_ns) in hosts.flows.iter().flat_map(patiences).collect::<Vec<_>>() {
            let process = usize::from(stop.process);
            hosts.hosts[stop.host].system.processes[process].set(PATIENCE, &[patience_ns]);
        }
    }

    /// Returns the other end of each link of a host that has a cable.
    fn far_ends(&self, hosts: &Hosts, number: usize) -> Vec<FarEnd> {
        let found = hosts.links(number).into_iter().filter_map(|served| {
            let ends = &hosts.cables[served.cable?].ends;
            let own = ends.iter().find(|end| end.host == number)?;
            let other = ends.iter().find(|end| end.host != number)?;
            Some(FarEnd {
                process: served.process,
                link: served.number as u8,
                port: own.root_port(),
                host: hosts.hosts[other.host].name.clone(),
            })
        });
        found.collect()
    }

    fn order(&self, hosts: &Hosts, number: usize) -> FormingOrder {
        let list = &self.lists.awaits[number];
        let cables = self.topology.debug_cables().filter(|(_, _, host)| host.host == number);
        let targets = cables.filter_map(|(cable, target, _)| {
            let ends = &hosts.cables[cable].ends;
            let port = ends.iter().find(|end| end.socket != Socket::Debug)?.root_port()?;
            let (serial, waits) = (serial(&hosts.hosts[target.host]), list.contains(&target.host));
            Some(Awaited { port, serial, waits })
        });
        let is_target = |other: &usize| {
            let mut cables = self.topology.debug_cables();
            cables.any(|(_, target, host)| (target.host, host.host) == (*other, number))
        };
        let strangers = list.iter().filter(|other| !is_target(other)).map(|other| Awaited {
            port: NOWHERE,
            serial: serial(&hosts.hosts[*other]),
            waits: true,
        });
        let awaits: Vec<Awaited> = targets.chain(strangers).collect();
        let mut order = FormingOrder { listed: true, ..FormingOrder::default() };
        order.awaits.iter_mut().zip(awaits).for_each(|(place, it)| *place = Some(it));
        let processes = &hosts.hosts[number].system.processes;
        let server = processes.iter().find(|process| process.program == PROGRAM);
        if server.is_some_and(enables) {
            order.enables = self.lists.enables[number];
            order.leads = self.lists.leads(number);
        }
        order
    }

    /// Returns what each server that keeps a common time is told, by host and process. One end
    /// leads, and the other one never does.
    fn times(&self, hosts: &Hosts) -> Vec<((usize, u16), [u64; 1 + TIME_BASE])> {
        let times = self.times.iter().filter_map(|it| Some((it.wire, it.terms.as_ref().ok()?)));
        let told = times.flat_map(|(wire, CommonTerms { sync, apart_ppm })| {
            let wire = &hosts.ethernet[wire];
            wire.ends.into_iter().filter_map(move |end| {
                let WireEnd::Adapter { host, adapter } = end else { return None };
                let leads = wire.time.is_some_and(|time| time.leads == end);
                let priority = if leads { LEADS } else { FOLLOWS };
                let base = sync.base().words();
                let driver = hosts.hosts[host].system.adapters[adapter].driver;
                let terms = GptpTerms { priority, apart_ppm: *apart_ppm, base };
                Some(((host, driver), terms.words()))
            })
        });
        told.collect()
    }

    /// Returns what programs of flows in step with gates and the servers of their adapters are
    /// told, by host and process.
    fn steps(&self, hosts: &Hosts) -> BTreeMap<(usize, u16), Vec<u64>> {
        let mut told: BTreeMap<(usize, u16), Vec<u64>> = BTreeMap::new();
        for (flow, flowed) in hosts.flows.iter().zip(&self.flows) {
            let step = flowed.bill.as_ref().ok().and_then(|bill| bill.step);
            let (Some(step), Some([from, _])) = (step, Sender::ends(flow)) else { continue };
            let system = &hosts.hosts[from.host].system;
            let server = system.adapters[from.port(hosts).adapter].driver;
            for process in [flow.from.process, server] {
                let words = told.entry((from.host, process)).or_default();
                words.extend(step.terms.words());
            }
        }
        told
    }

    /// Returns what each router is told, by host and process.
    fn routers(&self, hosts: &Hosts) -> BTreeMap<(usize, u16), RouterTable> {
        tables(hosts, &known(hosts), |flow, [way, step]| {
            let bill = self.flows[flow].bill.as_ref().ok()?;
            bill.passages.get(way)?.get(step).copied()
        })
    }
}

/// Returns the servers of adapters with gates, by host and process, and what each is told of them.
fn gates(hosts: &Hosts) -> Vec<((usize, u16), Vec<u64>)> {
    let links = hosts.ethernet.iter();
    let each = links.flat_map(|link| link.gates.iter().map(|gates| (link.speed, gates)));
    let told = each.filter_map(|(mbit, AdapterGates { end, list, guard_ns, credits })| {
        let WireEnd::Adapter { host, adapter } = *end else { return None };
        let entry = |it: &GateEntry| GateTerms::entry(it.mask, it.interval_ns);
        let entries: Vec<u64> = list.entries().iter().map(entry).collect();
        let credit = |(_, it): &(usize, ClassCredit)| GateTerms::credit(it.priority, it.idle_kbit);
        let credits: Vec<u64> = credits.iter().map(credit).collect();
        let (guard_ns, base_ns) = (*guard_ns, list.base_ns());
        let terms = GateTerms { guard_ns, base_ns, mbit, credits: &credits, entries: &entries };
        let driver = hosts.hosts[host].system.adapters[adapter].driver;
        Some(((host, driver), [&terms.head()[..], &credits, &entries].concat()))
    });
    told.collect()
}

/// Returns the most bytes of a message that each server of links takes, by host and process.
fn longest(hosts: &Hosts) -> BTreeMap<(usize, u16), [u64; LINKS]> {
    let mut told: BTreeMap<(usize, u16), [u64; LINKS]> = BTreeMap::new();
    for (flow, ways) in known(hosts) {
        let bytes = u64::from(hosts.flows[flow].bytes);
        for (_, port) in ways.iter().flat_map(|way| &way.crossings).map(|it| it.from) {
            let words = told.entry((port.host, port.server)).or_default();
            words[port.link] = words[port.link].max(bytes);
        }
    }
    told
}

/// Returns whether a USB server lets another program enable the debug capability.
fn enables(process: &ProcessSpec) -> bool {
    process.uses.iter().any(|used| used == ENABLE)
}

/// Returns the key of the serial number with which the debug target of a host shows itself.
fn serial(host: &HostSpec) -> u64 {
    Expected::key(&format!("{:016x}", Key::new(&host.name).0))
}

/// Returns the programs that begin a flow over cables and write its label into messages, with the
/// label. A router labels what it takes out of mailboxes.
fn labels(hosts: &Hosts) -> Vec<(FlowStop, u8)> {
    let flows = hosts.flows.iter().enumerate();
    let begun = flows.filter(|(_, flow)| !flow.is_on_ethernet() && flow.mailbox().is_none());
    let writes = |stop: &FlowStop| {
        let process = &hosts.hosts[stop.host].system.processes[usize::from(stop.process)];
        LABELLING.contains(&process.program.as_str())
    };
    let labelled = begun.map(|(number, flow)| (flow.from, label_of(number)));
    labelled.filter(|(stop, _)| writes(stop)).collect()
}

/// The programs of a flow that choose between two ways, with the patience of each in ns.
fn patiences(flow: &Flow) -> impl Iterator<Item = (FlowStop, u64)> + '_ {
    flow.detours.iter().filter_map(|detour| {
        let before = flow.stops().nth(detour.hop)?;
        Some((*before, detour.patience_ns))
    })
}
