//! The short campaign of `cargo xtask test`: some random systems, shared out among processes, and
//! all cases.

use super::cases;
use crate::tally::Tally;
use diapason::Workspace;
use diapason::metal::Built;
use std::process::{Child, Command, Stdio};

/// The campaign and the number of systems that every test run judges.
const SEED: &str = "22";
const COUNT: &str = "200";

/// Runs both steps, if their names contain `part`.
pub fn steps(workspace: &Workspace, built: &Built, part: &str, tally: &mut Tally) {
    let random = "each of 200 random systems holds if plan admits it";
    if random.contains(part) {
        tally.step(random, campaign);
    }
    let cases = "each system that once broke a promise is refused or holds";
    if cases.contains(part) {
        tally.step(cases, || cases::check(workspace, built));
    }
}

/// Each processor judges its share of the systems.
fn campaign() -> Result<(), String> {
    let shares = std::thread::available_parallelism().map_or(1, usize::from);
    let started: Result<Vec<Child>, String> = (0..shares).map(|it| share(it, shares)).collect();
    let mut broken = 0;
    for child in started? {
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        print!("{}", String::from_utf8_lossy(&output.stdout));
        broken += usize::from(!output.status.success());
    }
    if broken == 0 { Ok(()) } else { Err(String::from("a promise was broken")) }
}

fn share(number: usize, of: usize) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let share = format!("{number}/{of}");
    let arguments = ["attack", "systems", "--seed", SEED, "--count", COUNT, "--shard", &share];
    let mut command = Command::new(program);
    let child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    child.map_err(|error| format!("cannot start a share of the campaign: {error}"))
}
