//! The plans of everything that a file describes: one system, the cores of one host, or hosts with
//! the network between them.

use super::view::View;
use super::{flow_tables, json, network};
use crate::formats::named;
use crate::several::{Joined, Joints};
use crate::witness::Witnesses;
use diapason_plan::{NetworkPlan, Plan, Verdict};
use diapason_system::{Description, Diagnostics, Hosts, System};
use serde_json::Value;
use std::path::Path;

/// A described system with its plan, and with its name among others.
struct Part<'a> {
    name: String,
    system: &'a System,
    plan: Plan,
    /// How close runs came to its bounds, as tables and as JSON, if a search kept it.
    witnesses: Option<(String, Value)>,
}

/// The plans of a description.
pub(super) struct Whole<'a> {
    parts: Vec<Part<'a>>,
    /// The name of a part, if there may be several: `core` or `host`.
    noun: Option<&'static str>,
    network: Option<(&'a Hosts, NetworkPlan)>,
}

impl Whole<'_> {
    /// Plans every system of a description, and the network between its hosts.
    pub(super) fn of(description: &Description) -> Whole<'_> {
        let part = |name: String, system| {
            let system: &System = system;
            let plan = Plan::of(system);
            Part { name, system, plan, witnesses: None }
        };
        match description {
            Description::One(system) => {
                Whole { parts: vec![part(String::new(), system)], noun: None, network: None }
            }
            Description::Cores(cores) => {
                let parts = cores.iter().zip(Plan::of_cores(cores)).map(|(system, plan)| Part {
                    name: system.core.to_string(),
                    system,
                    plan,
                    witnesses: None,
                });
                Whole { parts: parts.collect(), noun: Some("core"), network: None }
            }
            Description::Several(list) => {
                let joints = Joints { others: list.others(), ..Joints::default() };
                let (names, systems): (Vec<String>, Vec<System>) = list.named().into_iter().unzip();
                let plans = Joined::By(Box::new(joints)).plans(&systems);
                let parts = names.into_iter().zip(list.systems()).zip(plans);
                let parts = parts.map(|((name, (_, system)), plan)| Part {
                    name,
                    system,
                    plan,
                    witnesses: None,
                });
                let network = Some((list, NetworkPlan::of(list)));
                Whole { parts: parts.collect(), noun: Some("host"), network }
            }
        }
    }

    /// Returns the plans with the witnesses that a search kept beside the description at `path`.
    pub(super) fn with_witnesses(mut self, path: &Path) -> Self {
        if let (None, [part]) = (self.noun, &mut self.parts[..]) {
            let known = Witnesses::beside(path, part.system, &part.plan);
            part.witnesses = known.map(|known| (known.render(path), known.to_json()));
        }
        self
    }

    /// Returns the verdict: some promise that cannot be kept decides, then some that can.
    pub(super) fn verdict(&self) -> Verdict {
        if self.network.as_ref().is_some_and(|(_, network)| !network.holds()) {
            return Verdict::DoesNotHold;
        }
        let flows = self.network.iter().flat_map(|(hosts, _)| &hosts.flows);
        let parts = self.parts.iter().map(|part| part.plan.verdict());
        let each: Vec<Verdict> = flows.map(|_| Verdict::Holds).chain(parts).collect();
        let first = [Verdict::DoesNotHold, Verdict::Holds].into_iter().find(|it| each.contains(it));
        first.unwrap_or(Verdict::PromisesNothing)
    }

    /// Returns everything that is wrong.
    pub(super) fn findings(&self) -> Vec<Diagnostics> {
        let of_plans = self.parts.iter().flat_map(|part| &part.plan.findings);
        let of_network = self.network.iter().flat_map(|(_, network)| network.wrong());
        of_plans.chain(of_network).cloned().collect()
    }

    /// Returns the plans for programs.
    pub(super) fn to_json(&self) -> Value {
        let object = |part: &Part<'_>| {
            let mut object = View(&part.plan).to_json(part.system);
            if let Some((_, witnesses)) = &part.witnesses {
                object["witnesses"] = witnesses.clone();
            }
            object
        };
        let Some(noun) = self.noun else { return object(&self.parts[0]) };
        let each = self.parts.iter().map(|part| named(noun, &part.name, object(part)));
        let holds = self.verdict() != Verdict::DoesNotHold;
        let each = each.collect::<Vec<Value>>();
        let mut all = json::result(holds, format!("{noun}s"), each);
        if let Some((hosts, network)) = &self.network {
            all["network"] = network::to_json(network, hosts);
        }
        all
    }

    /// Returns the plans for people.
    pub(super) fn render(&self, coloured: bool) -> String {
        let Some(noun) = self.noun else { return shown(&self.parts[0], coloured) };
        let of_parts = self
            .parts
            .iter()
            .map(|part| format!("{noun} {}\n\n{}", part.name, shown(part, coloured)));
        let is_joined = |hosts: &Hosts| !hosts.cables.is_empty() || !hosts.ethernet.is_empty();
        let of_network = self.network.iter().filter(|(hosts, _)| is_joined(hosts));
        let of_network = of_network.map(|(hosts, network)| {
            let formed = findings(&network.findings, coloured);
            let word =
                if network.forms() { "forms in every order of power-on" } else { "may not form" };
            let tables = network::render(network, hosts);
            let text = match hosts.cables.is_empty() {
                true => tables,
                false => format!("{tables}{formed}\nnetwork: {word}\n"),
            };
            let flows = flow_tables::render(network, hosts);
            let refused = findings(&network.refused, coloured);
            if flows.is_empty() {
                return text + &refused;
            }
            let verdict = self.of_flows(network);
            format!("{text}\n{flows}{refused}\nflows: {verdict}\n")
        });
        of_parts.chain(of_network).collect::<Vec<String>>().join("\n")
    }
}

impl Whole<'_> {
    /// Returns the verdict on the flows. Their bounds rest on hosts that hold.
    fn of_flows(&self, network: &NetworkPlan) -> String {
        if !network.refused.is_empty() {
            return "do not hold".to_owned();
        }
        let breaks = |part: &&Part<'_>| part.plan.verdict() == Verdict::DoesNotHold;
        match self.parts.iter().find(breaks) {
            Some(part) => format!("would hold, but host `{}` does not", part.name),
            None => "hold".to_owned(),
        }
    }
}

/// Tables, then what is wrong, then the verdict.
fn shown(part: &Part<'_>, coloured: bool) -> String {
    let mut text = View(&part.plan).render(part.system);
    if let Some((witnesses, _)) = &part.witnesses {
        text += &format!("\n{witnesses}");
    }
    text += &findings(&part.plan.findings, coloured);
    let verdict = match part.plan.verdict() {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "does not hold",
        Verdict::PromisesNothing => "promises nothing",
    };
    text + &format!("\n{}: {verdict}\n", part.system.name)
}

/// Returns what is wrong, as a compiler says it.
fn findings(found: &[Diagnostics], coloured: bool) -> String {
    let shown = |found: &Diagnostics| if coloured { found.coloured() } else { found.plain() };
    found.iter().map(|found| format!("\n{}\n", shown(found))).collect()
}
