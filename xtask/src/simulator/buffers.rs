//! Messages that a CAN controller with message buffers sends: those of the example are in time, and
//! a run whose driver gets to run too seldom, or whose program sends too much, says so.

use super::session;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::RunVerdict;
use diapason::session::Session;
use diapason::simulate::{Simulation, usual};
use diapason_system::{RunOptions, parse};

const EXAMPLE: &str = "examples/can-controller.toml";
const HORIZON_NS: u64 = 2_500_000_000;

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
            "budget = \"300us\"\nperiod = \"500us\"",
            "budget = \"60us\"\nperiod = \"4ms\"",
            "can-dry",
        ),
        ("jitter = \"300us\" ", "jitter = \"1us\" ", "can-jitter"),
    ];
    for (from, to, wanted) in cases {
        if !text.contains(from) {
            return Err(format!("{EXAMPLE} has no `{from}`"));
        }
        let system = parse(EXAMPLE, &text.replacen(from, to, 1)).map_err(|bad| bad.plain())?;
        let options = RunOptions { horizon_ns: HORIZON_NS, record_bytes: 0, watch: false };
        let session = Session::assemble(system, built.clone(), options);
        let (_, alarms) = simulated(&session.map_err(|failure| failure.to_string())?)?;
        if !alarms.contains(&wanted) {
            return Err(format!("`{to}` rings {alarms:?}, and not {wanted}"));
        }
    }
    Ok(())
}

/// Returns the verdict on a simulation of a session, and the names of its alarms.
fn simulated(session: &Session) -> Result<(RunVerdict, Vec<&'static str>), String> {
    let how = usual(session, None);
    let simulated = Simulation::new(session, &how).run(&mut ());
    let simulated = simulated.map_err(|failure| failure.to_string())?;
    let alarms = session.alarms(&simulated.run).iter().map(|alarm| alarm.name).collect();
    Ok((session.judge(&simulated.run), alarms))
}
