//! Packets of a sensor at one host that a program of another takes, in the simulator: over a cable
//! and over Ethernet, within the bound of pipe and flow together, also while clocks run apart.

use super::ethernet::{APART_NS, Change, HORIZON_NS, SENSED, keeps};
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;

const FAST: &str = "name = \"board\"\ndrift = \"100ppm\"";
const SLOW: &str = "name = \"cabinet\"\ndrift = \"-100ppm\"";

/// Runs every test whose name contains `part`.
pub fn run(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let [cable, wire] = SENSED;
    let apart = |list| [(list, "name = \"board\"", FAST), (list, "name = \"cabinet\"", SLOW)];
    let cases: [(&str, &str, Vec<Change>); 4] = [
        ("over a cable as described", cable, Vec::new()),
        ("over a cable while clocks run apart", cable, apart(cable).to_vec()),
        ("over Ethernet as described", wire, Vec::new()),
        ("over Ethernet while clocks run apart", wire, apart(wire).to_vec()),
    ];
    for (name, list, changes) in cases {
        let name = format!("simulator: packets of a sensor reach another host {name}");
        let horizon_ns = if changes.is_empty() { HORIZON_NS } else { APART_NS };
        if name.contains(part) {
            tally.step(&name, || keeps(workspace, built, list, (&changes, horizon_ns)));
        }
    }
}
