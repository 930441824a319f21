//! How close a run came to each bound.

use super::{Assumptions, Outcome};

/// The bound of a pipe or a chain, and the longest that a run saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Closeness {
    pub of: String,
    pub is_pipe: bool,
    pub longest_ns: u64,
    pub bound_ns: u64,
}

impl Assumptions {
    /// Returns how close a simulated run came to the bound of each pipe and chain that carried
    /// messages.
    #[must_use]
    pub fn closeness(&self, outcome: &Outcome) -> Vec<Closeness> {
        let pipes = self.pipes.iter().filter_map(|pipe| {
            let (of, bound_ns) = (pipe.name.clone(), pipe.bound_ns);
            let longest_ns = pipe.observed(outcome).filter(|longest| *longest > 0)?;
            Some(Closeness { of, is_pipe: true, longest_ns, bound_ns })
        });
        let chains = self.chains.iter().filter_map(|chain| {
            let (of, bound_ns) = (chain.name.clone(), chain.bound_ns);
            let row = chain.row(outcome).filter(|row| row.messages > 0)?;
            // The fastest way to the server is in every message's time, and a chain sees only what
            // is beyond it.
            let longest_ns = row.whole_max_ns.saturating_add(chain.least_ns);
            Some(Closeness { of, is_pipe: false, longest_ns, bound_ns })
        });
        pipes.chain(chains).collect()
    }
}
