//! `diapason explain`: what a description became.

use crate::describe::explained;
use crate::failure::{Failure, HOLDS};
use crate::output::write;
use std::path::PathBuf;

/// The request to `explain`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExplainRequest {
    #[arg(default_value = "system.toml")]
    pub system: PathBuf,
}

/// Prints a description with everything that its shorthands and parts bring. The text is a
/// description of the same system, and says beside each value where that is from.
///
/// # Errors
/// If the description makes no sense.
pub fn explain(request: &ExplainRequest) -> Result<u8, Failure> {
    write(&explained(&request.system)?);
    Ok(HOLDS)
}
