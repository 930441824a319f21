//! `diapason plan`: what can be promised about a described system before anything runs.
//!
//! The theory is in `diapason-analysis`; here a description becomes its input (`core`, with what
//! the kernel costs from `diapason_costs`), and its answers become tables, JSON and one verdict. What
//! boots asks the same [`objection`] first, so nothing boots that `plan` refuses.

mod allocate;
mod bills;
mod bus;
mod calls;
mod chain_tables;
pub mod chains;
mod core;
mod json;
mod outputs;
pub mod pipes;
mod refusal;
mod render;
mod tuned;
mod verdict;

pub use bus::Bused;
pub use tuned::told;
pub use verdict::{Plan, Sum, objection};

use crate::describe::describe_any;
use crate::failure::{BROKEN, HOLDS};
use crate::{Failure, duration};
use diapason_system::{Description, System};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// What `plan` was asked to do.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The description.
    pub system: PathBuf,
    /// Instructions a second, instead of the description's.
    pub clock_hz: Option<u64>,
    /// Print JSON instead of tables?
    pub json: bool,
}

/// Proves a described system, or says what fails first.
///
/// # Errors
/// If the description makes no sense.
pub fn plan(request: &PlanRequest) -> Result<u8, Failure> {
    let (text, holds) = match describe_any(&request.system)? {
        Description::One(system) => {
            let plan = planned(&system, request);
            let text = if request.json {
                format!("{:#}\n", plan.to_json(&system))
            } else {
                shown(&plan, &system, std::io::stdout().is_terminal())
            };
            (text, plan.holds())
        }
        Description::Cores(cores) => {
            let named: Vec<(String, &System)> =
                cores.iter().map(|system| (system.core.to_string(), system)).collect();
            several("core", &named, request)
        }
        Description::Several(hosts) => {
            let named: Vec<(String, &System)> =
                hosts.hosts.iter().map(|host| (host.name.clone(), &host.system)).collect();
            several("host", &named, request)
        }
    };
    // A reader who has seen enough does not make the system worse.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if holds { HOLDS } else { BROKEN })
}

fn planned(system: &System, request: &PlanRequest) -> Plan {
    Plan::of(system, request.clock_hz.unwrap_or(system.clock_hz))
}

/// The plan of each host, or of each core; do they all hold?
fn several(noun: &str, parts: &[(String, &System)], request: &PlanRequest) -> (String, bool) {
    let plans: Vec<Plan> = parts.iter().map(|(_, system)| planned(system, request)).collect();
    let holds = plans.iter().all(Plan::holds);
    let each = parts.iter().zip(&plans);
    if request.json {
        let each = each.map(|((name, system), plan)| {
            let mut object = plan.to_json(system);
            object[noun] = name.as_str().into();
            object
        });
        let json = json!({ "holds": holds, format!("{noun}s"): each.collect::<Vec<Value>>() });
        return (format!("{json:#}\n"), holds);
    }
    let coloured = std::io::stdout().is_terminal();
    let texts = each.map(|((name, system), plan)| {
        format!("{noun} {name}\n\n{}", shown(plan, system, coloured))
    });
    (texts.collect::<Vec<String>>().join("\n"), holds)
}

/// Tables, then what is wrong, then the verdict.
fn shown(plan: &Plan, system: &System, coloured: bool) -> String {
    let mut text = plan.render(system);
    for found in &plan.findings {
        let found = if coloured { found.coloured() } else { found.plain() };
        text += &format!("\n{found}\n");
    }
    let verdict = if plan.holds() { "holds" } else { "does not hold" };
    text + &format!("\n{}: {verdict}\n", system.name)
}

/// A clock rate such as `25MHz` or `2.4GHz`.
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

/// Refuses a system whose VCPUs do not hold.
///
/// # Errors
/// The first thing that fails, as `plan` says it.
pub fn insist(system: &System) -> Result<(), Failure> {
    match objection(system) {
        None => Ok(()),
        Some(found) if std::io::stderr().is_terminal() => {
            Err(Failure::NotAdmitted(found.coloured()))
        }
        Some(found) => Err(Failure::NotAdmitted(found.plain())),
    }
}

#[cfg(test)]
mod tests {
    use super::clock;

    #[test]
    fn clocks() {
        assert_eq!(clock("25MHz"), Ok(25_000_000));
        assert_eq!(clock("2.4GHz"), Ok(2_400_000_000));
        for bad in ["", "1", "GHz", "0MHz", "999kHz", "11GHz", "-1GHz", "1 GHz"] {
            assert!(clock(bad).is_err(), "{bad}");
        }
    }
}
