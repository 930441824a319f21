//! `diapason diff`: what changed between two results of a system, so that a change of the
//! description, of a program or of Diapason can be judged by its bounds, costs and verdicts.

mod compare;
mod render;
mod results;

use crate::failure::{BROKEN, Failure, HOLDS};
use crate::output::write;
pub use compare::{Difference, differences};
pub use render::{cells, is_shown};
use results::Results;
use std::path::PathBuf;

/// The request to `diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct DiffRequest {
    /// A description, which is planned, or what `plan`, `sim` or `run` printed with `--json`.
    pub before: PathBuf,
    /// A description or a result of another state of the system.
    pub after: PathBuf,
    /// Print every difference as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Compares two results. The exit code is that of a broken promise if the first one holds and the
/// second one does not.
///
/// # Errors
/// If one of the files is no result, or they are results of different commands.
pub fn diff(request: &DiffRequest) -> Result<u8, Failure> {
    let before = Results::read(&request.before)?;
    let after = Results::read(&request.after)?;
    before.comparable(&after)?;
    let found = differences(&before.value, &after.value);
    write(&if request.json {
        format!("{:#}\n", render::as_json(&before, &after, &found))
    } else {
        render::as_tables(&before, &after, &found)
    });
    Ok(if before.holds && !after.holds { BROKEN } else { HOLDS })
}
