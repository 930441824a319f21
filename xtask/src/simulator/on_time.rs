//! Messages that a CAN controller with message buffers sends under MTS: those of the example are in
//! time, by a common time that another unit sends and identifiers that the driver renews. A run in
//! which the bus or the controller fails says so, and the messages go on.

use super::buffers::{HORIZON_NS, breaks, changed, simulated, survives};
use super::session;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::outcome::RunVerdict;

const EXAMPLE: &str = "examples/can-mts-host.toml";

/// The sender of the time, and the driver in its place.
const FOLLOWS: &str = "node = \"frame-unit\"\nclass = \"low\"\n";
const LEADS: &str = "process = \"driver\"\njitter = \"600us\"\nclass = \"low\"\n";

/// Faults of the bus and of the controller, and an alarm that each rings.
const FAULTS: &[(&str, &str)] = &[
    ("1s can-errors toucan0 5", "can-errors"),
    ("1s babble toucan0 20ms", "can-replaced"),
    // No frame of the time comes through for longer than the driver knows it.
    ("1s babble toucan0 150ms", "can-time"),
    ("1s bus-off toucan0", "can-off"),
    ("1s controller-error toucan0", "can-off"),
    ("1s double-interrupt toucan0 10us", "interrupt-distance"),
];

/// Checks the messages of the example.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let text = std::fs::read_to_string(workspace.root().join(EXAMPLE));
    let text = text.map_err(|error| error.to_string())?;
    let good = session(workspace, built, EXAMPLE, HORIZON_NS)?;
    // Messages share buffers, and the driver renews those that wait in its queue.
    let shared = text.replacen("renewal =", "own_buffers = 0\nrenewal =", 1);
    // The driver is the master of the time.
    let leads = shared.replacen(FOLLOWS, LEADS, 1);
    // A master knows the time always, and its frames of the time are late.
    let of_master: Vec<(&str, &str)> = FAULTS
        .iter()
        .map(|(fault, alarm)| (*fault, if *alarm == "can-time" { "can-late" } else { alarm }))
        .collect();
    let shared = changed(EXAMPLE, built, &shared)?;
    let leads = changed(EXAMPLE, built, &leads)?;
    for (session, faults) in [(good, FAULTS), (shared, FAULTS), (leads, &of_master)] {
        let (verdict, alarms) = simulated(&session)?;
        if verdict != RunVerdict::Holds {
            return Err(format!("{verdict:?}: {alarms:?}"));
        }
        survives(&session, faults)?;
    }
    let cases = [
        // The driver runs for a short while every twenty milliseconds.
        (
            "budget = \"120us\"\nperiod = \"200us\"",
            "budget = \"50us\"\nperiod = \"20ms\"",
            "can-jitter",
        ),
        // A message of this host is said to be in its buffer at once.
        ("jitter = \"1000us\" ", "jitter = \"1us\" ", "can-jitter"),
    ];
    breaks(EXAMPLE, built, &text, &cases)
}
