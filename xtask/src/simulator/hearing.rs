//! Messages of other nodes that a CAN controller with message buffers hears: they are at their
//! readers in time, under fixed identifiers and under MTS. A run whose driver or reader gets to run
//! too seldom says what was lost.

use super::buffers::{HORIZON_NS, breaks, changed, simulated, survives};
use super::session;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::RunVerdict;
use diapason::simulate::{Simulation, usual};

const EXAMPLE: &str = "examples/can-dashboard.toml";
const UNDER_MTS: &str = "examples/can-mts-host.toml";

/// Faults of the bus and of the controller, and an alarm that each rings.
const FAULTS: &[(&str, &str)] = &[
    ("1s can-errors toucan0 5", "can-errors"),
    ("1s babble toucan0 40ms", "can-contract"),
    ("1s bus-off toucan0", "can-off"),
    ("1s controller-error toucan0", "can-off"),
    ("1s overrun driver 200 100ms", "can-heard"),
    ("1s overrun driver 200 100ms", "can-missed"),
    ("1s overrun display 100 100ms", "can-read"),
];

/// A reader under MTS, and what it needs.
const READER: &str = r#"
[[process]]
name = "display"
program = "message-reader"
priority = 10
vcpu = "display-cpu"
stack = "32K"

[[vcpu]]
name = "display-cpu"
budget = "200us"
period = "6ms"
replenishments = 8

[[work]]
name = "cand.hear"
worst = "3us"

[[work]]
name = "message.use"
worst = "20us"
"#;

/// Returns the example under MTS with a reader of two messages of high speed.
fn under_mts(text: &str) -> String {
    let read = "reader = \"display\"\nwork = \"20us\"\n";
    let motor = ("node = \"motor-left\"\nperiod = \"3ms\"", "deadline = \"2400us\"");
    let frame = ("node = \"frame-unit\"\nperiod = \"4ms\"", "deadline = \"3300us\"");
    let with = |text: String, (from, deadline): (&str, &str)| {
        text.replacen(from, &format!("{read}{from}\n{deadline}"), 1)
    };
    with(with(text.to_owned(), motor), frame) + READER
}

/// Checks the messages that the examples read.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let read = |file: &str| {
        std::fs::read_to_string(workspace.root().join(file)).map_err(|error| error.to_string())
    };
    let (text, on_time) = (read(EXAMPLE)?, under_mts(&read(UNDER_MTS)?));
    let good = session(workspace, built, EXAMPLE, HORIZON_NS)?;
    let on_time = changed(UNDER_MTS, built, &on_time)?;
    for (session, least) in [(&good, 190), (&on_time, 350)] {
        let how = usual(session, None);
        let run = Simulation::new(session, &how).run(&mut ()).map_err(|it| it.to_string())?.run;
        let verdict = session.judge(&run);
        let read: Vec<u64> = run.outcome.heard.iter().map(|row| row.last.heard).collect();
        // Both ends report on each message.
        let most = read.iter().max().copied().unwrap_or(0);
        if !session.proved || verdict != RunVerdict::Holds || most < least {
            return Err(format!("{verdict:?} of {}: {read:?}", session.system.name));
        }
    }
    survives(&good, FAULTS)?;
    destroyed(built, &text)?;
    let cases = [
        // The driver runs for a short while every 20 ms.
        (
            "budget = \"100us\"\nperiod = \"400us\"",
            "budget = \"40us\"\nperiod = \"20ms\"",
            "can-missed",
        ),
        // The reader is too slow for what comes.
        (
            "budget = \"200us\"\nperiod = \"2ms\"",
            "budget = \"50us\"\nperiod = \"100ms\"",
            "can-full",
        ),
    ];
    breaks(EXAMPLE, built, &text, &cases)?;
    lied_to(built, &text)
}

/// Checks that destroyed frames break nothing if the plan counts with them: a frame that is
/// destroyed in its last bit comes twice.
fn destroyed(built: &Built, text: &str) -> Result<(), String> {
    let text = text.replacen("rate =", "error_interval = \"100ms\"\nrate =", 1);
    let session = changed(EXAMPLE, built, &text)?;
    let (verdict, alarms) = simulated(&session)?;
    if !session.proved || verdict != RunVerdict::Holds {
        return Err(format!("with errors, {}: {alarms:?}", session.proved));
    }
    survives(&session, &[("1s can-errors toucan0 40", "can-errors")])
}

/// Checks that a reader that takes longer than `work` says is found out.
fn lied_to(built: &Built, text: &str) -> Result<(), String> {
    let text = text.replace("worst = \"20us\"", "worst = \"900us\"");
    let session = changed(EXAMPLE, built, &text)?;
    let (_, alarms) = simulated(&session)?;
    if !alarms.contains(&"can-read") {
        return Err(format!("a reader that takes longer than its `work` rings {alarms:?}"));
    }
    Ok(())
}
