//! Makes the plan of a system: asks every test, and collects what is refused.

use crate::bus;
use crate::cameras;
use crate::can;
use crate::chains;
use crate::core::{self, is_by_period};
use crate::jobs;
use crate::machine;
use crate::modes;
use crate::mutexes::Mutexes;
use crate::pipes::{self, Plant};
use crate::refusal;
use crate::sockets;
use crate::start;
use crate::states;
use crate::traffic;
use crate::tuned::{self, refusals_of_places};
use crate::verdict::{Plan, Sum};
use diapason_analysis::server::{admit, equation_one, wide};
use diapason_system::{Diagnostics, System};
use std::sync::OnceLock;

impl Plan {
    /// Returns the plan of `system`.
    #[must_use]
    pub fn of(system: &System) -> Plan {
        let costs = system.kernel_times();
        let core = core::core(system, &costs);
        let says = if is_by_period(&core.system) { Sum::Says } else { Sum::Silent };
        let mut mutexes = Mutexes::new(system, &core, &costs);
        let jobs = jobs::jobs(system, &core, &mut mutexes);
        let system = &Plant::new(system, &core, &costs, &mutexes).with_lateness();
        let plant = Plant::new(system, &core, &costs, &mutexes);
        let pipes = pipes::pipes(&plant);
        let mut plan = Plan {
            chains: chains::chains(&plant, &pipes),
            buses: bus::buses(system),
            modes: modes::modes(system),
            cans: can::plans(&plant, &pipes, &jobs),
            pipes,
            jobs,
            sockets: sockets::sockets(&plant),
            came: sockets::came(&plant),
            tuned: tuned::tuned(&plant),
            exact: admit(&core.system),
            equation_one: says(equation_one(&core.system)),
            wide: says(wide(&core.system)),
            findings: Vec::new(),
            lacking: pipes::lacking(&plant),
            unsaid: mutexes.unsaid(),
            system: system.clone(),
            margin: OnceLock::new(),
            cheapest: OnceLock::new(),
            core,
            costs,
        };
        plan.findings = plan.judged();
        plan
    }

    /// Returns whether the test that the description asks for admits it.
    fn is_admitted(&self, system: &System) -> bool {
        if system.scheduling.exact { self.exact.is_ok() } else { self.wide.holds() }
    }

    fn judged(&self) -> Vec<Diagnostics> {
        let system = &self.system;
        let refused = (!self.is_admitted(system)).then(|| refusal::refusal(self, system));
        let refused = refused.into_iter().chain(system.overcrowded()).chain(system.unservable());
        let refused = refused.chain(system.strangers());
        let refused = refused.chain(bus::refusals(&self.buses, system));
        let refused = refused.chain(modes::refusals(&self.modes, system));
        let refused = refused.chain(jobs::refusals(&self.jobs, &self.core, system));
        let refused = refused.chain(refusal::of_pipes(self, system));
        let refused = refused.chain(refusals_of_places(&self.tuned, &self.lacking, system));
        let refused = refused.chain(chains::refusals(&self.chains, system));
        let refused = refused.chain(states::refusals(system, &self.core, &self.costs));
        let refused = refused.chain(sockets::refusals(system, &self.sockets));
        let refused = refused.chain(cameras::refusals(system, &self.core));
        let refused = refused.chain(can::refusals(system, &self.cans, &self.pipes));
        let refused = refused.chain(can::contradictions(system, &self.cans));
        let refused = refused.chain(start::refusals(system)).chain(traffic::refusals(system));
        refused.chain(machine::refusals(system, &self.costs)).collect()
    }
}
