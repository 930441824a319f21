//! Chapter 7 of the EMERALDS dissertation: MTS against DM and ED* on CAN.
//!
//! Figures 7.6 to 7.13 as shares of random workloads that fit, by the printed tests and by sound
//! ones; the printed test shown late on the simulated bus; the avionics workload; tables 7.3 and
//! 7.4 as far as their arithmetic goes, and table 7.3 in instructions of our own driver.

mod avionics;
mod claims;
mod driver;
mod figures;
mod overheads;
mod refuted;
mod sampling;

use super::{Effort, Progress, ReproductionReport};
use diapason::Failure;

/// The seed of all workloads.
const SEED: u64 = 0x0d1a_9a57;

/// Everything of chapter 7.
pub fn reproduce(effort: Effort, progress: &Progress) -> Result<ReproductionReport, Failure> {
    let mut report = ReproductionReport::new("mts", Vec::new(), Vec::new(), Vec::new());
    figures::add(effort, progress, &mut report);
    refuted::add(effort, progress, &mut report)?;
    avionics::add(&mut report)?;
    overheads::add(&mut report);
    driver::add(&mut report)?;
    progress.end();
    Ok(report)
}
