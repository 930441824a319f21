//! The network of several hosts: who waits for whom, in which order hosts enable and enumerate, and
//! why the network may never form; and the bills of the flows that cross its cables.

mod credit;
mod crossing;
mod detour;
mod ended;
mod ethernet;
mod flows;
mod gated;
mod instruct;
mod net;
mod passing;
mod refusals;
mod route;
mod served;
mod serving;
mod site;
mod step;
mod timed;
mod wired;

pub use credit::PlannedCredit;
use diapason_system::{Cable, Diagnostics, Hosts, Socket};
use diapason_topology::{Edge, Jack, Lists, Topology, flaws};
pub use flows::{FlowBill, FlowItem, FlowStage, Flowed, OtherWay};
pub use route::{FlowLeg, FlowLegs, LinkEnd, flow_legs};
pub use served::Idle;
pub use step::GateStep;
pub use timed::{CommonTerms, CommonTime};

/// Everything that can be told of the cables between hosts without running them.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// The hosts and cables, by their numbers in the list.
    pub topology: Topology,
    /// The inputs of Algorithm 4 of every host: derived from the cables, or written by hand.
    pub lists: Lists,
    /// Cables whose ends no program serves.
    pub idle: Vec<Idle>,
    /// Why the network may not form, the first reason first; empty: it always forms.
    pub findings: Vec<Diagnostics>,
    /// The bill of every flow.
    pub flows: Vec<Flowed>,
    /// The common time of every wire that has one.
    pub times: Vec<CommonTime>,
    /// The credit of every port that has some.
    pub credits: Vec<PlannedCredit>,
    /// Why flows, common times, credit and programs at cables without flows are refused.
    pub refused: Vec<Diagnostics>,
}

impl NetworkPlan {
    /// Returns the plan of the network of `hosts`.
    #[must_use]
    pub fn of(hosts: &Hosts) -> NetworkPlan {
        let topology = topology(hosts);
        let mut lists = Lists::of(&topology, hosts.leader);
        for (number, host) in hosts.hosts.iter().enumerate() {
            if let Some(written) = &host.depends {
                lists.awaits[number].clone_from(written);
            }
            lists.enables[number] = host.enables.unwrap_or(lists.enables[number]);
        }
        let found = flaws(&topology, &lists);
        let mut findings = refusals::refusals(hosts, &topology, &lists, &found);
        let (idle, unserved) = served::served(hosts);
        findings.extend(unserved);
        let (flows, times, credits) = flows::flows(hosts);
        let refused = flows::refusals(hosts, &flows).chain(timed::refusals(hosts, &times));
        let refused = refused.chain(credit::refusals(hosts, &credits));
        let refused = refused.chain(route::forgetful(hosts)).collect();
        NetworkPlan { topology, lists, idle, findings, flows, times, credits, refused }
    }

    /// Returns whether the network always forms.
    #[must_use]
    pub fn forms(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns whether the network always forms, and every flow and common time keeps its promise.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.forms() && self.refused.is_empty()
    }

    /// Returns everything that is wrong with the network and its flows.
    pub fn wrong(&self) -> impl Iterator<Item = &Diagnostics> {
        self.findings.iter().chain(&self.refused)
    }
}

/// Returns the graph of a list of hosts.
fn topology(hosts: &Hosts) -> Topology {
    let edge = |cable: &Cable| {
        let [one, other] = cable.ends.map(|end| Jack { host: end.host, controller: end.device });
        match cable.ends.map(|end| end.socket) {
            [Socket::Debug, _] => Edge::Debug { target: one, host: other },
            [_, Socket::Debug] => Edge::Debug { target: other, host: one },
            _ => Edge::Bridge([one, other]),
        }
    };
    Topology { hosts: hosts.hosts.len(), edges: hosts.cables.iter().map(edge).collect() }
}
