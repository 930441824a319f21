//! The findings of an attack.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use diapason_abi::Nanos;

/// A promise that an attack checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// Each chunk is used up at most R(C) after it became eligible.
    Response,
    /// Theorem 1: a server and its one stream.
    Own,
    /// D_any, or D_merge where a list was full.
    Any,
    /// Theorem 1 for an I/O VCPU with one period.
    Io,
    /// The bound for an I/O VCPU with several periods.
    Shared,
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub which: Which,
    /// The observed and the promised value.
    pub observed: Nanos,
    pub bound: Nanos,
    pub system: Box<crate::server::SharedCore>,
}

/// Observed by bound, in per mille, one counter per value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ratios(Vec<u64>);

impl Default for Ratios {
    fn default() -> Ratios {
        Ratios(vec![0; 1001])
    }
}

impl Ratios {
    pub(super) fn note(&mut self, observed: Nanos, bound: Nanos) {
        let ratio = observed.0.saturating_mul(1000).checked_div(bound.0).unwrap_or(1000);
        self.0[ratio.min(1000) as usize] += 1;
    }

    /// Returns how many were compared.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the ratio that a share (in per mille) of all do not exceed; `None` if there are
    /// none.
    #[must_use]
    pub fn at(&self, per_mille: u64) -> Option<u64> {
        let wanted = (self.count() * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map(|ratio| ratio as u64)
    }
}

/// The findings of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CampaignFindings {
    /// Admitted systems that were run.
    pub systems: u64,
    /// Systems that were drawn and not admitted.
    pub refused: u64,
    pub runs: u64,
    /// R(C) and the use of chunks.
    pub response: Ratios,
    /// Theorem 1, jobs of Main VCPUs.
    pub own: Ratios,
    /// D_any or D_merge, jobs of Main VCPUs.
    pub any: Ratios,
    /// Theorem 1, jobs of I/O VCPUs with one period.
    pub io: Ratios,
    /// Jobs of I/O VCPUs with several periods.
    pub shared: Ratios,
    /// Jobs of at most one budget that found their VCPU idle, and how many of them were done later
    /// than one period after: the bill of [USB 2023] for a pipe rules them out.
    pub single: (u64, u64),
    /// How many promises were broken.
    pub broken: u64,
    /// The first few of them.
    pub violations: Vec<Violation>,
}

/// Violations that are kept.
const KEPT: usize = 4;

impl CampaignFindings {
    pub(super) fn compare(
        &mut self,
        which: Which,
        observed: Nanos,
        bound: Nanos,
        system: &crate::server::SharedCore,
    ) {
        let ratios = match which {
            Which::Response => &mut self.response,
            Which::Own => &mut self.own,
            Which::Any => &mut self.any,
            Which::Io => &mut self.io,
            Which::Shared => &mut self.shared,
        };
        ratios.note(observed, bound);
        if observed > bound {
            self.broken += 1;
            if self.violations.len() < KEPT {
                let system = Box::new(system.clone());
                self.violations.push(Violation { which, observed, bound, system });
            }
        }
    }
}

impl fmt::Display for CampaignFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} systems ({} refused), {} runs", self.systems, self.refused, self.runs)?;
        let all = [
            ("R(C)", &self.response),
            ("own", &self.own),
            ("any", &self.any),
            ("io", &self.io),
            ("shared", &self.shared),
        ];
        for (name, ratios) in all {
            if let (Some(median), Some(high), Some(most)) =
                (ratios.at(500), ratios.at(990), ratios.at(1000))
            {
                let count = ratios.count();
                write!(f, "; {name}: {count} at {median}, {high}, {most}")?;
            }
        }
        let (single, late) = self.single;
        write!(f, "; later than T: {late} of {single}; broken: {}", self.broken)
    }
}
