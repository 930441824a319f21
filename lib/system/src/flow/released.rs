//! `offset` of a flow: its messages are released in step with the gates of the adapter that sends
//! them.

use super::{DeclaredFlow, Flow, FlowWay};
use crate::diagnostics::{Problem, Report};
use crate::hosts::HostSpec;
use crate::wires::{EthernetLink, WireEnd};
use diapason_abi::Nanos;
use diapason_contract::carried::Contract;

const MILLION: u64 = 1_000_000;

/// The times at which the messages of a flow are released: once in each period of the time by which
/// the gates of its adapter go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRelease {
    /// The first release after time zero of the gates, in ns. Others follow in whole periods.
    pub first_ns: u64,
    /// By how many millionths the rates of that time and of the host's clock differ at most. Zero
    /// says that the gates go by the host's clock.
    pub rate_ppm: u64,
}

impl FlowRelease {
    /// Returns how early or late a release may be by the time of the gates. The program knows that
    /// time from one of the two messages before, and that reading and the sleep take three periods
    /// at most.
    #[must_use]
    pub const fn error_ns(self, period_ns: u64) -> u64 {
        match self.rate_ppm {
            0 => 0,
            rate => (3 * period_ns).saturating_mul(rate).div_ceil(MILLION) + 1,
        }
    }

    /// Returns by how much a period is shorter by the clock of a host at most.
    #[must_use]
    pub const fn shorter_ns(self, period_ns: u64) -> u64 {
        period_ns.saturating_mul(self.rate_ppm).div_ceil(MILLION)
    }
}

/// Returns when the messages of a flow with `offset` are released. Reports what cannot be.
pub(super) fn released(
    declared: &DeclaredFlow,
    flow: &Flow,
    (hosts, wires): (&[HostSpec], &[EthernetLink]),
    report: &mut Report,
) -> Option<FlowRelease> {
    let offset = declared.offset.as_ref()?;
    let mut refuse = |title: String, help: String| {
        report.push(Problem::new(&offset.span, title, help));
        None
    };
    let way = flow.hops.first().map(|hop| hop.way);
    let Some(FlowWay::Sockets { from, .. }) = way else {
        let help = "remove it: only adapters of Ethernet have gates".to_owned();
        return refuse("a flow with `offset` that does not go over Ethernet".to_owned(), help);
    };
    let HostSpec { name, system, .. } = &hosts[flow.from.host];
    let adapter = system.sockets[from].adapter;
    let end = WireEnd::Adapter { host: flow.from.host, adapter };
    let at = format!("{name}:{}", system.adapters[adapter].name());
    let link = wires.iter().find_map(|link| Some((link, link.gates(end)?)));
    let Some((link, gates)) = link else {
        let help = format!("add `[[ethernet.gates]]` with `end = \"{at}\"`, or remove `offset`");
        return refuse(format!("`{at}` has no gates from which an `offset` counts"), help);
    };
    let (period, cycle) = (flow.contract.per.0, gates.list.cycle_ns());
    let Flow { contract, .. } = flow;
    if contract.messages != 1 || contract.burst != 1 || contract.jitter.0 != 0 {
        let help = "write only a `period`, without `rate`, `burst` and `jitter`".to_owned();
        return refuse("one message is released at each `offset`".to_owned(), help);
    }
    if !period.is_multiple_of(cycle) {
        let title = format!("a `period` of {period} ns does not keep step with gates at `{at}`");
        let help = format!("write a multiple of their cycle of {cycle} ns");
        return refuse(title, help);
    }
    if offset.value >= period {
        let help = "write the time from the beginning of a cycle, shorter than the period";
        return refuse("an `offset` beyond the `period`".to_owned(), help.to_owned());
    }
    let first_ns = (gates.list.base_ns() + offset.value) % period;
    Some(FlowRelease { first_ns, rate_ppm: link.time.map_or(0, |time| time.rate_ppm()) })
}

/// Reports a flow in step whose socket sends the messages of another flow, too: its server could
/// not tell them apart.
pub(super) fn alone(declared: &[DeclaredFlow], flows: &[Option<Flow>], report: &mut Report) {
    let sends = |flow: &Flow| match flow.hops.first()?.way {
        FlowWay::Sockets { from, .. } => Some((flow.from.host, from)),
        _ => None,
    };
    for (number, flow) in flows.iter().enumerate() {
        let (Some(flow), Some(offset)) = (flow, &declared[number].offset) else { continue };
        let is_another = |(other, it): &(usize, &Option<Flow>)| {
            *other != number && it.as_ref().is_some_and(|it| sends(it) == sends(flow))
        };
        if let Some((other, _)) = flows.iter().enumerate().find(is_another) {
            let title = "the socket of a flow with `offset` sends another flow, too";
            let help = "let another program send it";
            let problem = Problem::new(&offset.span, title, help);
            report.push(problem.with(&declared[other].name.span, "the other"));
        }
    }
}

/// The clocks of two hosts run apart by less than one part of so many: 100 ppm each.
pub const CLOCKS_APART: u64 = 4_000;

impl Flow {
    /// Returns the contract of the flow by the clock of any host.
    #[must_use]
    pub const fn steady(&self) -> Contract {
        let Contract { per: Nanos(per), jitter, .. } = self.contract;
        let (shorter, early) = match self.release {
            None => (0, 0),
            Some(release) => (release.shorter_ns(per), release.error_ns(per)),
        };
        let apart = per / CLOCKS_APART + 1;
        let shorter = if shorter > apart { shorter } else { apart };
        let jitter = Nanos(jitter.0 + early);
        Contract { per: Nanos(per - shorter), jitter, ..self.contract }
    }
}
