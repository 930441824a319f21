//! The short campaign of `cargo xtask test`: some random systems, shared out among processes, and
//! all cases.

use super::cases;
use crate::campaign;
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;

/// The campaign and the number of systems that every test run judges.
const SEED: u64 = 22;
const COUNT: u64 = 200;

/// Runs both steps, if their names contain `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let random = "each of 200 random systems holds if plan admits it";
    if random.contains(part) {
        tally.step(random, || campaign::short(workspace, "systems", COUNT, SEED));
    }
    let cases = "each system that once broke a promise is refused or holds";
    if cases.contains(part) {
        tally.step(cases, || cases::check(workspace, built));
    }
}
