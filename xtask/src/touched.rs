//! Whether the kernel touches no more than before on the way of each operation: lines of data,
//! bytes of code, and dear instructions.

use crate::tally::Tally;
use diapason::bench::{self, PLACEMENTS, TouchLimits};
use diapason::metal::Built;
use diapason::{Failure, Workspace};
use diapason_costs::targets::Placement;

/// Runs the step of each placement whose name contains `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    for placement in PLACEMENTS {
        let name = format!("{}: operations touch no more than before", bench::name(placement));
        if name.contains(part) {
            tally.step(&name, || {
                check(workspace, built, placement).map_err(|failure| failure.to_string())?
            });
        }
    }
}

fn check(
    workspace: &Workspace,
    built: &Built,
    placement: Placement,
) -> Result<Result<(), String>, Failure> {
    let limits = TouchLimits::read(workspace)?;
    let measured = bench::measure_placement(workspace, built, placement)?;
    let operations = measured.of(placement);
    println!("{} operations", operations.len());
    for unneeded in limits.unneeded(placement, &operations) {
        println!("`cargo xtask bench --bless` lowers a limit: {unneeded}");
    }
    let exceeded = limits.exceeded(placement, &operations);
    Ok(if exceeded.is_empty() { Ok(()) } else { Err(exceeded.join("\n")) })
}
