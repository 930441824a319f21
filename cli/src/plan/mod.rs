//! `diapason plan`: what can be promised about a described system before anything runs.
//!
//! `diapason-plan` decides; here its plan becomes tables and JSON.

mod bills;
mod bus;
mod can;
mod chain_tables;
mod json;
mod network;
mod render;
mod tuned;

pub use diapason_plan::{
    Bused, Cleared, NetworkPlan, Plan, Sum, Unproved, Verdict, chains, pipes, start,
};

use crate::describe::{describe_any, judged_file};
use crate::failure::{BROKEN, HOLDS, UNPROVED};
use crate::formats::PlanFormat;
use crate::formats::sarif::{self, Rule};
use crate::output::{is_coloured, write};
use crate::{Failure, duration};
use diapason_system::{Description, Diagnostics, Hosts, System};
use serde_json::{Value, json};
use std::ops::Deref;
use std::path::PathBuf;

/// A plan as it is shown.
struct View<'a>(&'a Plan);

impl Deref for View<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        self.0
    }
}

/// The request to `plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    /// Instructions a second, such as 25MHz or 2.4GHz [default: the description's `clock`].
    #[arg(long = "clock", value_name = "RATE", value_parser = clock)]
    pub clock_hz: Option<u64>,
    /// Print the plan as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the plan in this format; `--json` is short for `--format json`.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub format: Option<PlanFormat>,
}

impl PlanRequest {
    fn is_json(&self) -> bool {
        self.json || self.format == Some(PlanFormat::Json)
    }
}

/// Proves a described system, or says what fails first.
///
/// # Errors
/// If the description makes no sense.
pub fn plan(request: &PlanRequest) -> Result<u8, Failure> {
    if request.format == Some(PlanFormat::Sarif) {
        return in_sarif(request);
    }
    let (text, verdict) = match describe_any(&request.system)? {
        Description::One(system) => {
            let plan = planned(&system, request);
            let text = if request.is_json() {
                format!("{:#}\n", View(&plan).to_json(&system))
            } else {
                shown(&plan, &system, is_coloured(&std::io::stdout()))
            };
            (text, plan.verdict())
        }
        Description::Cores(cores) => {
            let named: Vec<(String, &System)> =
                cores.iter().map(|system| (system.core.to_string(), system)).collect();
            several("core", &named, None, request)
        }
        Description::Several(hosts) => {
            let named: Vec<(String, &System)> =
                hosts.hosts.iter().map(|host| (host.name.clone(), &host.system)).collect();
            several("host", &named, Some(&hosts), request)
        }
    };
    write(&text);
    Ok(code(verdict))
}

const fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Holds => HOLDS,
        Verdict::DoesNotHold => BROKEN,
        Verdict::PromisesNothing => UNPROVED,
    }
}

/// Prints the findings on all hosts or cores, or the mistakes of the description, in SARIF.
fn in_sarif(request: &PlanRequest) -> Result<u8, Failure> {
    let say = |rule, found: &[Diagnostics]| write(&format!("{:#}\n", sarif::log(rule, found)));
    let description = match judged_file(&request.system)? {
        Ok(description) => description,
        Err(mistakes) => {
            say(Rule::Description, std::slice::from_ref(&mistakes));
            return Err(crate::describe::refused(&mistakes));
        }
    };
    let systems: Vec<&System> = match &description {
        Description::One(system) => vec![system],
        Description::Cores(cores) => cores.iter().collect(),
        Description::Several(list) => list.hosts.iter().map(|host| &host.system).collect(),
    };
    let plans: Vec<Plan> = systems.iter().map(|system| planned(system, request)).collect();
    let network = match &description {
        Description::Several(hosts) => Some(NetworkPlan::of(hosts)),
        Description::One(_) | Description::Cores(_) => None,
    };
    let of_plans = plans.iter().flat_map(|plan| &plan.findings);
    let of_network = network.iter().flat_map(|network| &network.findings);
    let found: Vec<Diagnostics> = of_plans.chain(of_network).cloned().collect();
    say(Rule::Promise, &found);
    Ok(code(of_all(&plans, network.as_ref())))
}

fn planned(system: &System, request: &PlanRequest) -> Plan {
    Plan::of(system, request.clock_hz.unwrap_or(system.clock_hz))
}

/// Returns the plans of all hosts with their network, or of all cores, and the verdict on all.
fn several(
    noun: &str,
    parts: &[(String, &System)],
    hosts: Option<&Hosts>,
    request: &PlanRequest,
) -> (String, Verdict) {
    let plans: Vec<Plan> = parts.iter().map(|(_, system)| planned(system, request)).collect();
    let network = hosts.map(|hosts| (hosts, NetworkPlan::of(hosts)));
    let verdict = of_all(&plans, network.as_ref().map(|(_, network)| network));
    let holds = verdict != Verdict::DoesNotHold;
    let each = parts.iter().zip(&plans);
    if request.is_json() {
        let each = each.map(|((name, system), plan)| {
            let mut object = View(plan).to_json(system);
            object[noun] = name.as_str().into();
            object
        });
        let each = each.collect::<Vec<Value>>();
        let mut json = json!({ "holds": holds, format!("{noun}s"): each });
        if let Some((hosts, network)) = &network {
            json["network"] = network::to_json(network, hosts);
        }
        return (format!("{json:#}\n"), verdict);
    }
    let coloured = is_coloured(&std::io::stdout());
    let texts = each.map(|((name, system), plan)| {
        format!("{noun} {name}\n\n{}", shown(plan, system, coloured))
    });
    let of_network = network.iter().filter(|(hosts, _)| !hosts.cables.is_empty());
    let of_network = of_network.map(|(hosts, network)| {
        let findings = findings(&network.findings, coloured);
        let word =
            if network.holds() { "forms in every order of power-on" } else { "may not form" };
        format!("{}{findings}\nnetwork: {word}\n", network::render(network, hosts))
    });
    (texts.chain(of_network).collect::<Vec<String>>().join("\n"), verdict)
}

/// Some promise that cannot be kept decides, then some that can.
fn of_all(plans: &[Plan], network: Option<&NetworkPlan>) -> Verdict {
    if network.is_some_and(|network| !network.holds()) {
        return Verdict::DoesNotHold;
    }
    let each: Vec<Verdict> = plans.iter().map(Plan::verdict).collect();
    let first = [Verdict::DoesNotHold, Verdict::Holds].into_iter().find(|it| each.contains(it));
    first.unwrap_or(Verdict::PromisesNothing)
}

/// Tables, then what is wrong, then the verdict.
fn shown(plan: &Plan, system: &System, coloured: bool) -> String {
    let mut text = View(plan).render(system);
    text += &findings(&plan.findings, coloured);
    let verdict = match plan.verdict() {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "does not hold",
        Verdict::PromisesNothing => "promises nothing",
    };
    text + &format!("\n{}: {verdict}\n", system.name)
}

/// Returns what is wrong, as a compiler says it.
fn findings(found: &[Diagnostics], coloured: bool) -> String {
    let shown = |found: &Diagnostics| if coloured { found.coloured() } else { found.plain() };
    found.iter().map(|found| format!("\n{}\n", shown(found))).collect()
}

/// Returns a clock rate such as `25MHz` or `2.4GHz`.
///
/// # Errors
/// A sentence that says what one looks like.
pub fn clock(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 3] = [("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)];
    let number = UNITS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let hertz = number.and_then(|(number, scale)| duration::scaled(number, scale));
    hertz.filter(|hertz| (1_000_000..=10_000_000_000).contains(hertz)).ok_or_else(|| {
        format!("`{text}` is not a clock rate: write one from 1MHz to 10GHz, for example 2.4GHz")
    })
}

/// Clears a planned system for boot.
///
/// # Errors
/// The first thing that fails, as `plan` says it, unless it may boot [`Unproved`].
pub fn cleared(plan: &Plan, unproved: Option<Unproved>) -> Result<Cleared, Failure> {
    if let Some(unproved) = unproved {
        return Ok(plan.clear_anyway(unproved));
    }
    plan.clear().map_err(|found| refused(&found))
}

/// Returns whether the network of several hosts is proved to form.
///
/// # Errors
/// The first reason why it may not form, unless the hosts may boot [`Unproved`].
pub fn cleared_network(hosts: &Hosts, unproved: Option<Unproved>) -> Result<bool, Failure> {
    match NetworkPlan::of(hosts).findings.first() {
        Some(found) if unproved.is_none() => Err(refused(found)),
        found => Ok(found.is_none()),
    }
}

fn refused(found: &Diagnostics) -> Failure {
    let for_a_person = is_coloured(&std::io::stderr());
    Failure::NotAdmitted(if for_a_person { found.coloured() } else { found.plain() })
}

#[cfg(test)]
mod tests {
    use super::{Plan, View, clock, describe_any};
    use crate::documented::agrees;
    use serde_json::Value;

    #[test]
    fn the_keys_of_a_plan_are_documented() {
        let page = include_str!("../../../docs/plan.md");
        let examples = ["can-gateway", "can-mts", "tuned-output", "usb-devices", "vcpus"];
        let mut plans: Vec<Value> = examples
            .iter()
            .map(|name| {
                let path = format!("{}/../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(path).unwrap();
                let system = diapason_system::parse(name, &text).unwrap();
                View(&Plan::of(&system, system.clock_hz)).to_json(&system)
            })
            .collect();
        let goldens = [
            include_str!("../../tests/plan/late.json"),
            include_str!("../../tests/plan/usb-ninety.json"),
            include_str!("../../tests/plan/can.json"),
        ];
        plans.extend(goldens.map(|golden| serde_json::from_str(golden).unwrap()));
        agrees(page, "JSON", &plans);
    }

    #[test]
    fn the_keys_of_a_network_are_documented() {
        let page = include_str!("../../../docs/network.md");
        let lists = ["../examples/figure-9.toml", "tests/plan/ring.toml"];
        let networks = lists.map(|list| {
            let path = format!("{}/{list}", env!("CARGO_MANIFEST_DIR"));
            let described = describe_any(std::path::Path::new(&path)).unwrap();
            let diapason_system::Description::Several(hosts) = described else { panic!("{list}") };
            super::network::to_json(&super::NetworkPlan::of(&hosts), &hosts)
        });
        agrees(page, "JSON", &networks);
    }

    #[test]
    fn clocks() {
        assert_eq!(clock("25MHz"), Ok(25_000_000));
        assert_eq!(clock("2.4GHz"), Ok(2_400_000_000));
        for bad in ["", "1", "GHz", "0MHz", "999kHz", "11GHz", "-1GHz", "1 GHz"] {
            assert!(clock(bad).is_err(), "{bad}");
        }
    }
}
