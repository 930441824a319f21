//! Messages that a CAN controller with message buffers sends: those of the example are in time, and
//! a run whose driver gets to run too seldom, or whose program sends too much, says so. So does a
//! run in which the bus or the controller fails, and the messages go on. A program that sends too
//! often makes no message of another late.

use super::session;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::RunVerdict;
use diapason::plan::{Plan, Unproved};
use diapason::session::Session;
use diapason::simulate::{Simulation, usual};
use diapason_system::{RunOptions, parse, parse_fault};

const EXAMPLE: &str = "examples/can-controller.toml";
pub(super) const HORIZON_NS: u64 = 2_500_000_000;

/// Checks the messages of the example.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let good = session(workspace, built, EXAMPLE, HORIZON_NS)?;
    let (verdict, alarms) = simulated(&good)?;
    if verdict != RunVerdict::Holds {
        return Err(format!("{verdict:?}: {alarms:?}"));
    }
    let text = std::fs::read_to_string(workspace.root().join(EXAMPLE));
    let text = text.map_err(|error| error.to_string())?;
    let cases = [
        // The driver runs for a short while every four milliseconds.
        (
            "budget = \"120us\"\nperiod = \"200us\"",
            "budget = \"60us\"\nperiod = \"4ms\"",
            "can-dry",
        ),
        ("jitter = \"1300us\" ", "jitter = \"1us\" ", "can-jitter"),
    ];
    survives(&good, FAULTS)?;
    destroyed(built, &text)?;
    breaks(EXAMPLE, built, &text, &cases)?;
    flooded(built, &text)
}

/// Checks that one destroyed frame breaks nothing if the plan counts with it, and that many do.
fn destroyed(built: &Built, text: &str) -> Result<(), String> {
    let text = text.replacen("rate =", "error_interval = \"100ms\"\nrate =", 1);
    let text = text.replace("deadline = \"4ms\"", "deadline = \"5ms\"");
    let session = changed(EXAMPLE, built, &text)?;
    let one = disturbed(&session, "1s can-errors toucan0 1")?;
    if !session.proved || !one.is_empty() {
        return Err(format!("one destroyed frame, {}: {one:?}", session.proved));
    }
    survives(&session, &[("1s can-errors toucan0 40", "can-errors")])
}

/// Checks that each fault rings its alarm, and that messages go on after it.
pub(super) fn survives(session: &Session, faults: &[(&str, &str)]) -> Result<(), String> {
    for (fault, wanted) in faults {
        let alarms = disturbed(session, fault)?;
        if !alarms.contains(wanted) {
            return Err(format!("`{fault}` rings {alarms:?}, and not {wanted}"));
        }
        if alarms.contains(&"can-unmeasured") || alarms.contains(&"can-empty") {
            return Err(format!("`{fault}` ends it: {alarms:?}"));
        }
    }
    Ok(())
}

/// Checks that the plan refuses each change of a description, and that a run of it rings an alarm.
pub(super) fn breaks(
    file: &str,
    built: &Built,
    text: &str,
    cases: &[(&str, &str, &str)],
) -> Result<(), String> {
    for (from, to, wanted) in cases {
        if !text.contains(from) {
            return Err(format!("{file} has no `{from}`"));
        }
        let session = changed(file, built, &text.replacen(from, to, 1))?;
        if session.proved {
            return Err(format!("the plan says that `{to}` holds"));
        }
        let (_, alarms) = simulated(&session)?;
        if !alarms.contains(wanted) {
            return Err(format!("`{to}` rings {alarms:?}, and not {wanted}"));
        }
    }
    Ok(())
}

/// A second program, which sends its message sixteen times too often.
pub(super) const CHATTERBOX: &str = r#"
[[message]]
name = "chatter"
bus = "drive"
process = "chatterbox"
period = "5ms"
deadline = "2900us"
jitter = "1300us"
bytes = 8

[[process]]
name = "chatterbox"
program = "message-sender"
priority = 10
vcpu = "chatterbox-cpu"
stack = "32K"
arguments = [0, 0, 16]

[[vcpu]]
name = "chatterbox-cpu"
budget = "60us"
period = "5ms"
"#;

/// Checks that a program that sends too often is the only one that is late.
fn flooded(built: &Built, text: &str) -> Result<(), String> {
    let session = changed(EXAMPLE, built, &(text.to_owned() + CHATTERBOX))?;
    let (_, alarms) = simulated(&session)?;
    if !session.proved || alarms != ["can-contract"] {
        return Err(format!("sixteen times too often, {}: {alarms:?}", session.proved));
    }
    Ok(())
}

/// Returns a run of a description with another text, whether it holds or not.
pub(super) fn changed(file: &str, built: &Built, text: &str) -> Result<Session, String> {
    let system = parse(file, text).map_err(|bad| bad.plain())?;
    let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
    let plan = Plan::of(&system);
    let session = Session::planned(plan, built.clone(), options, Some(Unproved));
    session.map_err(|failure| failure.to_string())
}

/// Faults of the bus and of the controller, and an alarm that each rings.
const FAULTS: &[(&str, &str)] = &[
    ("1s can-errors toucan0 5", "can-errors"),
    ("1s babble toucan0 20ms", "can-late"),
    ("1s bus-off toucan0", "can-off"),
    ("1s controller-error toucan0", "can-off"),
    ("1040ms lost-interrupt toucan0", "can-dry"),
    ("1040ms late-interrupt toucan0 3ms", "can-dry"),
    ("1s double-interrupt toucan0 10us", "interrupt-distance"),
];

/// Returns the names of the alarms of a run with a fault. The fault must have happened.
fn disturbed(session: &Session, fault: &str) -> Result<Vec<&'static str>, String> {
    let faults = [parse_fault(&session.system, fault).map_err(|bad| bad.plain())?];
    let how = usual(session, None);
    let simulated = Simulation::new(session, &how).with_faults(&faults).run(&mut ());
    let simulated = simulated.map_err(|failure| failure.to_string())?;
    Ok(session.alarms(&simulated.run).iter().map(|alarm| alarm.name).collect())
}

/// Returns the verdict on a simulation of a session, and the names of its alarms.
pub(super) fn simulated(session: &Session) -> Result<(RunVerdict, Vec<&'static str>), String> {
    let how = usual(session, None);
    let simulated = Simulation::new(session, &how).run(&mut ());
    let simulated = simulated.map_err(|failure| failure.to_string())?;
    let alarms = session.alarms(&simulated.run).iter().map(|alarm| alarm.name).collect();
    Ok((session.judge(&simulated.run), alarms))
}
