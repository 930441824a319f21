//! Each forbidden deed beside a sum over the memory of all others: whenever the process that does
//! them ran, every byte of the other processes, and of the segments that it does not show, is what
//! it was before.

use super::session;
use crate::qemu_tests::observed::{Observed, strict};
use crate::qemu_tests::victims;
use diapason::Workspace;
use diapason::metal::Built;
use diapason::surroundings::functions;
use diapason_abi::Nanos;
use diapason_core::{Kernel, ThreadId};
use diapason_sim::{Glance, Observer};

const HORIZON_NS: u64 = 1_000_000_000;
/// The process that does the deeds runs so often at least: each of some 300 lives is several runs.
const RUNS: u64 = 1_000;

/// The sums before and after each run of one process.
struct Sums {
    process: u16,
    before: Option<u64>,
    runs: u64,
    wrong: Vec<Nanos>,
}

impl Sums {
    fn is_own(&self, kernel: &Kernel<'_>, thread: ThreadId) -> bool {
        thread.is_some() && kernel.threads[thread].process.index() == self.process
    }
}

impl Observer for Sums {
    fn look(&mut self, glance: &Glance<'_, '_>) {
        let runs_next = self.is_own(glance.kernel, glance.running);
        self.before = runs_next.then(|| glance.sum_beside(self.process));
    }

    fn trapped(&mut self, glance: &Glance<'_, '_>) {
        if let Some(before) = self.before.take() {
            self.runs += 1;
            if glance.sum_beside(self.process) != before {
                self.wrong.push(glance.now);
            }
        }
    }
}

/// Simulates all deeds, and compares the sums around each run of the victim.
pub fn check(workspace: &Workspace, built: &Built) -> Result<(), String> {
    let session = session(workspace, built, victims::SYSTEM, HORIZON_NS)?;
    let functions = functions(&session.system, &[]);
    let mut sums = Sums { process: victims::VICTIM, before: None, runs: 0, wrong: Vec::new() };
    let boot = Observed::simulate_watched(&session, functions, &strict(), &mut sums)?;
    victims::each_deed_natively(&boot)?;
    if let Some(first) = sums.wrong.first() {
        let count = sums.wrong.len();
        return Err(format!("memory of others changed in {count} runs, first up to {first:?}"));
    }
    println!("in {} runs no byte of another process changed", sums.runs);
    if sums.runs < RUNS { Err(format!("only {} runs", sums.runs)) } else { Ok(()) }
}
