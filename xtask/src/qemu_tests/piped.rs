//! Packets of a sensor at one host that a program of another takes, in the simulator: over a cable
//! and over Ethernet, within the bound of pipe and flow together, also while clocks run apart. The
//! program may write each to a device.

use super::ethernet::{ACTED, APART_NS, Change, HORIZON_NS, SENSED, keeps};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;

const FAST: &str = "name = \"board\"\ndrift = \"100ppm\"";
/// The names of the hosts that take packets.
const ENDS: [&str; 3] = ["name = \"cabinet\"", "name = \"acting\"", "name = \"actuating\""];
const SLOW: [&str; 3] = [
    "name = \"cabinet\"\ndrift = \"-100ppm\"",
    "name = \"acting\"\ndrift = \"-100ppm\"",
    "name = \"actuating\"\ndrift = \"-100ppm\"",
];

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let ([cable, wire], [packets, frames]) = (SENSED, ACTED);
    let apart =
        |list, end: usize| vec![(list, "name = \"board\"", FAST), (list, ENDS[end], SLOW[end])];
    let cases: [(&str, &str, Vec<Change>); 8] = [
        ("over a cable as described", cable, Vec::new()),
        ("over a cable while clocks run apart", cable, apart(cable, 0)),
        ("over Ethernet as described", wire, Vec::new()),
        ("over Ethernet while clocks run apart", wire, apart(wire, 0)),
        ("over a cable to an actuator as described", packets, Vec::new()),
        ("over a cable to an actuator while clocks run apart", packets, apart(packets, 1)),
        ("over Ethernet to a CAN bus as described", frames, Vec::new()),
        ("over Ethernet to a CAN bus while clocks run apart", frames, apart(frames, 2)),
    ];
    for (name, list, changes) in cases {
        let name = format!("simulator: packets of a sensor reach another host {name}");
        let horizon_ns = if changes.is_empty() { HORIZON_NS } else { APART_NS };
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, list, (&changes, horizon_ns)));
        }
    }
}
