//! Chapter 4 of the EMERALDS dissertation: CSD scheduling against EDF and RM.
//!
//! The drawn schedules of table 4.1, the breakdown utilizations of figures 4.3 to 4.5 with the
//! dissertation's prices, what its claims depend on, the same figures with the counts of this
//! kernel, and the attack on its test and ours.

mod attack;
mod claims;
mod figures;
mod kernel;
mod sampling;
mod schedules;

use super::{Effort, Progress, ReproductionReport};
use diapason::Failure;

/// The seed of all workloads.
const SEED: u64 = 0x0d1a_9a50;

/// Everything of chapter 4.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let mut report = ReproductionReport::new("csd", Vec::new(), Vec::new(), Vec::new());
    schedules::add(&mut report);
    figures::add(effort, progress, &mut report)?;
    claims::add(effort, progress, &mut report)?;
    kernel::add(effort, progress, &mut report)?;
    attack::add(effort, progress, &mut report);
    progress.end();
    Ok(report)
}
