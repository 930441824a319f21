//! The traffic of sockets and adapters, derived from flows and common times if descriptions of
//! hosts do not say it. A socket sends no longer datagrams than its flow has, whatever it says.

use super::{Flow, FlowWay};
use crate::hosts::HostSpec;
use crate::wires::{EthernetLink, WireEnd};
use diapason_contract::carried::Contract;
use diapason_contract::time::{TIME_BURST, TIME_RATE};
use std::collections::BTreeMap;

impl Flow {
    /// Returns the longest time until the last program is done with a message that is acceptable:
    /// the latency of the flow, less that of the pipe to a device that it ends with.
    #[must_use]
    pub fn latency_of_programs(&self, hosts: &[HostSpec]) -> Option<u64> {
        let pipe = self.into.and_then(|pipe| hosts[self.end().host].system.pipes.get(pipe));
        let behind = pipe.and_then(|pipe| pipe.latency_ns).unwrap_or(0);
        self.latency_ns.map(|latency| latency.saturating_sub(behind))
    }

    /// Returns the shortest time from one message to the next in the long run, by the clock of any
    /// host, and the messages that come at once if each is late by up to its latency.
    fn at_the_end(&self, hosts: &[HostSpec]) -> Option<(u64, u64)> {
        let Contract { messages, per, burst, jitter } = self.steady();
        let period = (per.0 / u64::from(messages.max(1))).max(1);
        let late = (self.latency_of_programs(hosts)? + jitter.0).div_ceil(period);
        Some((period, burst + late))
    }
}

/// Lets what comes to sockets and their adapters follow from the flows and common times, where
/// descriptions of the hosts do not say it. A message is late by no more than the `latency` of its
/// flow: the plan refuses the flow otherwise.
pub(crate) fn derive(hosts: &mut [HostSpec], flows: &[Flow], wires: &[EthernetLink]) {
    let ends = flows.iter().filter_map(|flow| {
        let hop = flow.hops.first()?;
        let FlowWay::Sockets { from, to } = hop.way else { return None };
        let terms = flow.at_the_end(hosts);
        let sender = &mut hosts[flow.from.host].system.sockets[from];
        // `netd` sends no longer ones, so no program takes more of a wire than its flow says.
        sender.bytes = sender.bytes.min(flow.bytes.into());
        Some((hop.to.host, to, hop.to.work_ns, terms))
    });
    let ends: Vec<_> = ends.collect();
    let mut sums: BTreeMap<(usize, usize), Option<(u64, u64)>> = BTreeMap::new();
    for (host, socket, work_ns, terms) in ends {
        let port = &mut hosts[host].system.sockets[socket];
        port.work_ns = port.work_ns.or(work_ns);
        if let (None, Some((period, burst))) = (port.period_ns, terms) {
            (port.period_ns, port.burst) = (Some(period), burst);
        }
        let sum = sums.entry((host, port.adapter)).or_insert(Some((0, 0)));
        let rate = |period: u64| 1_000_000_000_u64.div_ceil(period);
        *sum = sum
            .zip(terms)
            .map(|((all, at_once), (period, burst))| (all + rate(period), at_once + burst));
    }
    for end in wires.iter().filter(|wire| wire.time.is_some()).flat_map(|wire| wire.ends) {
        let WireEnd::Adapter { host, adapter } = end else { continue };
        hosts[host].system.adapters[adapter].keeps_time = true;
        let sum = sums.entry((host, adapter)).or_insert(Some((0, 0)));
        *sum = sum.map(|(all, at_once)| (all + TIME_RATE, at_once + TIME_BURST));
    }
    for ((host, adapter), sum) in sums {
        let adapter = &mut hosts[host].system.adapters[adapter];
        adapter.traffic = adapter.traffic.or(sum);
    }
}
