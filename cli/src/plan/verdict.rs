//! The plan of a system: every test asked, one verdict.

use super::allocate;
use super::bus::{self, Bused};
use super::chains::{self, Chained};
use super::core::{self, Core, is_by_period};
use super::pipes::{self, Piped};
use super::refusal;
use super::tuned::{self, Tuned};
use diapason_analysis::server::{
    Admission, ClosedForm, Queue, Unfit, admit, breakdown, equation_one, wide,
};
use diapason_costs::{KERNEL, KernelTimes};
use diapason_system::{Diagnostics, System};

/// What a sum against a bound says about a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    /// Both sides.
    Says(ClosedForm),
    /// Its theorem does not cover these queues.
    Silent(ClosedForm),
}

/// Everything that can be told without running the system.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The VCPUs and what they compete with.
    pub core: Core,
    /// What the kernel is assumed to cost.
    pub costs: KernelTimes,
    /// What the exact test says.
    pub exact: Result<Admission, Unfit>,
    /// Eq. 1 of the papers.
    pub equation_one: Sum,
    /// The wider closed form, with kernel costs.
    pub wide: Sum,
    /// So much of its budget, in per mille, every VCPU could have.
    pub margin: Option<u64>,
    /// The cheapest queues that hold, one for each Main VCPU.
    pub cheapest: Option<Vec<Queue>>,
    /// The bill of every pipe.
    pub pipes: Vec<Piped>,
    /// What servers are told about pipes that may be opened.
    pub tuned: Tuned,
    /// The bill of every chain.
    pub chains: Vec<Chained>,
    /// The schedule of every USB bus that something is declared of.
    pub buses: Vec<Bused>,
    /// Why the system is not admitted, the first reason first; empty: it is.
    pub findings: Vec<Diagnostics>,
}

impl Sum {
    /// Does it promise that the system holds?
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Sum::Says(form) if form.holds())
    }

    /// Both sides, whatever they mean.
    #[must_use]
    pub const fn form(&self) -> ClosedForm {
        match self {
            Sum::Says(form) | Sum::Silent(form) => *form,
        }
    }
}

impl Plan {
    /// The plan of `system` on a processor of `clock_hz` instructions a second.
    #[must_use]
    pub fn of(system: &System, clock_hz: u64) -> Plan {
        let mut plan = Plan::tests(system, clock_hz);
        plan.margin = breakdown(&plan.core.system);
        plan.cheapest = allocate::cheapest(&plan.core.system, &plan.costs);
        plan.findings = plan.judged(system);
        plan
    }

    /// Only what the verdict needs.
    #[must_use]
    pub fn tests(system: &System, clock_hz: u64) -> Plan {
        let costs = KernelTimes::new(KERNEL, clock_hz);
        let core = core::core(system, &costs);
        let says = if is_by_period(&core.system) { Sum::Says } else { Sum::Silent };
        let pipes = pipes::pipes(system, &core, &costs);
        Plan {
            chains: chains::chains(system, &core, &costs, &pipes),
            buses: bus::buses(system),
            pipes,
            tuned: tuned::tuned(system, &core, &costs),
            exact: admit(&core.system),
            equation_one: says(equation_one(&core.system)),
            wide: says(wide(&core.system)),
            margin: None,
            cheapest: None,
            findings: Vec::new(),
            core,
            costs,
        }
    }

    /// Does every VCPU get what it was promised?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    /// May it boot? Also of a plan of tests alone.
    #[must_use]
    pub fn admits(&self, system: &System) -> bool {
        self.is_admitted(system) && self.besides(system).is_none()
    }

    /// Does the test that the description asks for admit it?
    fn is_admitted(&self, system: &System) -> bool {
        if system.scheduling.exact { self.exact.is_ok() } else { self.wide.holds() }
    }

    /// What is wrong with it besides its VCPUs.
    fn besides(&self, system: &System) -> Option<Diagnostics> {
        let of_buses = || bus::refusals(&self.buses, system).next();
        let of_pipes = || refusal::of_pipes(self, system).next();
        let of_tpipes = || self.of_tpipes(system).next();
        let of_chains = || chains::refusals(&self.chains, system).next();
        let of_pipes = || of_pipes().or_else(of_tpipes).or_else(of_chains);
        system.overcrowded().or_else(of_buses).or_else(of_pipes)
    }

    fn judged(&self, system: &System) -> Vec<Diagnostics> {
        let refused = (!self.is_admitted(system)).then(|| refusal::refusal(self, system));
        let refused = refused.into_iter().chain(system.overcrowded());
        let refused = refused.chain(bus::refusals(&self.buses, system));
        let refused = refused.chain(refusal::of_pipes(self, system)).chain(self.of_tpipes(system));
        refused.chain(chains::refusals(&self.chains, system)).collect()
    }
}

/// Why `system` must not boot, in the words of the plan; `None`: it may.
#[must_use]
pub fn objection(system: &System) -> Option<Diagnostics> {
    let plan = Plan::tests(system, system.clock_hz);
    if plan.is_admitted(system) {
        return plan.besides(system);
    }
    Plan::of(system, system.clock_hz).findings.into_iter().next()
}
