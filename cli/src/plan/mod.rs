//! `diapason plan`: what can be promised about a described system before anything runs.
//!
//! `diapason-plan` decides; here its plan becomes tables and JSON.

mod bills;
mod bus;
mod can;
mod chain_tables;
mod flow_tables;
mod json;
mod modes;
mod network;
mod place;
mod render;
mod sockets;
mod states;
mod tuned;
mod view;
mod whole;
mod wires;

pub use diapason_plan::{
    Bused, Cleared, CommonTerms, CommonTime, FlowBill, NetworkPlan, Plan, Sum, Unproved, Verdict,
    chains, pipes, start, states::read_instructions,
};

use crate::computer::Computer;
use crate::describe::{describe_any, judged_file};
use crate::duration;
use crate::failure::{BROKEN, Failure, HOLDS, UNPROVED};
use crate::formats::PlanFormat;
use crate::formats::sarif::{self, FindingRule};
use crate::output::{is_coloured, tell, write};
use crate::project;
use diapason_abi::archive::CORES_MAX;
use diapason_system::{Description, Diagnostics, System};
pub(crate) use render::rate;
use serde_json::Value;
use std::path::{Path, PathBuf};
use whole::Whole;
pub(crate) use wires::credit_limits;

/// The request to `plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
    #[command(flatten)]
    pub computer: Computer,
    /// Say on which cores the processes may be: as few as the plan holds with.
    #[arg(long, conflicts_with_all = ["json", "format", "machine"])]
    pub place: bool,
    /// With `--place`: on so many cores, so that the fullest has as much left as possible.
    #[arg(long, value_name = "N", requires = "place", value_parser = cores())]
    pub cores: Option<u16>,
    /// Print the plan as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print the plan in this format; `--json` is short for `--format json`.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    pub format: Option<PlanFormat>,
}

/// Reads a number of cores that a host can have.
fn cores() -> impl clap::builder::TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(1..=CORES_MAX as i64)
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
    if request.place {
        return place::place(request);
    }
    if request.format == Some(PlanFormat::Sarif) {
        return in_sarif(request);
    }
    let description = request.computer.apply(&request.system, describe_any(&request.system)?)?;
    let whole = Whole::of(&description).with_witnesses(&request.system);
    for absent in project::absent(&request.system, &systems(&description)) {
        tell(&absent.as_warnings(is_coloured(&std::io::stderr())));
    }
    write(&if request.is_json() {
        format!("{:#}\n", whole.to_json())
    } else {
        whole.render(is_coloured(&std::io::stdout()))
    });
    Ok(code(whole.verdict()))
}

/// Returns the system of a description, or those of its cores or hosts.
fn systems(description: &Description) -> Vec<&System> {
    match description {
        Description::One(system) => vec![system],
        Description::Cores(cores) => cores.iter().collect(),
        Description::Several(list) => list.systems().map(|(_, system)| system).collect(),
    }
}

/// Returns the plan of the description in a file for programs.
///
/// # Errors
/// If the description makes no sense.
pub(crate) fn as_json(path: &Path) -> Result<Value, Failure> {
    Ok(Whole::of(&describe_any(path)?).to_json())
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
    let say = |found: &[(FindingRule, Vec<Diagnostics>)]| {
        write(&format!("{:#}\n", sarif::log(found)));
    };
    let description = match judged_file(&request.system)? {
        Ok(description) => description,
        Err(mistakes) => {
            say(&[(FindingRule::Description, vec![mistakes.clone()])]);
            return Err(crate::describe::refused(&mistakes));
        }
    };
    let description = request.computer.apply(&request.system, description)?;
    let whole = Whole::of(&description);
    let absent = project::absent(&request.system, &systems(&description));
    say(&[(FindingRule::Promise, whole.findings()), (FindingRule::Program, absent)]);
    Ok(code(whole.verdict()))
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

/// Checks that the network of several hosts is proved to form, and its flows to be in time.
///
/// # Errors
/// The first reason why it may not form, or a flow be late, unless the hosts may boot
/// [`Unproved`].
pub fn cleared_network(network: &NetworkPlan, unproved: Option<Unproved>) -> Result<(), Failure> {
    match network.wrong().next() {
        Some(found) if unproved.is_none() => Err(refused(found)),
        _ => Ok(()),
    }
}

fn refused(found: &Diagnostics) -> Failure {
    let for_a_person = is_coloured(&std::io::stderr());
    Failure::NotAdmitted(if for_a_person { found.coloured() } else { found.plain() })
}

#[cfg(test)]
mod tests {
    use super::view::View;
    use super::{Plan, clock, describe_any};
    use crate::documented::agrees;
    use crate::outcome::Closeness;
    use crate::witness::{Witness, Witnesses};
    use diapason_abi::Nanos;
    use diapason_system::{Gap, MachineProfile, MemoryStress};
    use serde_json::Value;

    #[test]
    fn the_keys_of_a_plan_are_documented() {
        let page = include_str!("../../../docs/plan.md");
        let template = "../cli/templates/state/system";
        let examples = [
            "can-gateway",
            "can-dashboard",
            "can-mts",
            "tuned-output",
            "udp",
            "usb-devices",
            "vcpus",
            template,
        ];
        let mut plans: Vec<Value> = examples
            .iter()
            .map(|name| {
                let path = format!("{}/../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
                let text = std::fs::read_to_string(path).unwrap();
                let mut system = diapason_system::parse(name, &text).unwrap();
                system.plan_for(measured());
                View(&Plan::of(&system)).to_json(&system)
            })
            .collect();
        let goldens = [
            include_str!("../../tests/plan/late.json"),
            include_str!("../../tests/plan/usb-ninety.json"),
            include_str!("../../tests/plan/can.json"),
            include_str!("../../tests/plan/camera-modes.json"),
        ];
        plans.extend(goldens.map(|golden| serde_json::from_str(golden).unwrap()));
        let of = String::from("engine");
        let close = Closeness { of, is_pipe: true, longest_ns: 1, bound_ns: 2 };
        let mut kept = Witnesses::empty();
        kept.note(Witness::new(7, close));
        plans[0]["witnesses"] = kept.to_json();
        agrees(page, "JSON", &plans);
    }

    /// Returns a computer of which everything was measured.
    fn measured() -> MachineProfile {
        let time = Nanos::from_micros(1);
        MachineProfile {
            processor: String::from("fast"),
            real: true,
            kernel: 1,
            measured: time,
            clock_hz: 1_000_000_000,
            slowest: String::from("yield_switch"),
            late: time,
            interrupt: Some(time),
            gap: Some(Gap { longest: time, apart: Nanos::from_millis(100) }),
            register: Some(time),
            stress: Some(MemoryStress { cores: 2, alone: time, beside: time, ring: Some(time) }),
        }
    }

    #[test]
    fn the_keys_of_a_network_are_documented() {
        let page = include_str!("../../../docs/network.md");
        let lists = [
            "../examples/figure-9.toml",
            "../examples/flow.toml",
            "../examples/detour.toml",
            "../examples/ethernet.toml",
            "../examples/ethernet-gates.toml",
            "../examples/ethernet-credit.toml",
            "../examples/ethernet-credit-adapter.toml",
            "../examples/ethernet-time.toml",
            "../examples/ethernet-gates-time.toml",
            "../examples/ethernet-gates-both.toml",
            "../examples/ethernet-gates-step.toml",
            "tests/plan/ring.toml",
        ];
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
