//! Makes the plan of a system: asks every test, and collects what is refused.

use crate::bus;
use crate::cameras;
use crate::can;
use crate::chains;
use crate::core::{self, Core, is_by_period};
use crate::jobs::{self, Jobs};
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
use crate::verdict::{FarPiped, Plan, Sum};
use diapason_analysis::server::{admit, equation_one, wide};
use diapason_costs::KernelTimes;
use diapason_system::{Diagnostics, FarPipe, System};
use std::sync::OnceLock;

/// Returns the plan of one core, without what is judged last.
fn of_plant(plant: &Plant<'_>, costs: &KernelTimes, jobs: &Jobs) -> Plan {
    let Plant { system, core, mutexes, .. } = *plant;
    let says = if is_by_period(&core.system) { Sum::Says } else { Sum::Silent };
    let pipes = pipes::pipes(plant);
    Plan {
        chains: chains::chains(plant, &pipes),
        buses: bus::buses(system),
        modes: modes::modes(system),
        cans: can::plans(plant, &pipes, jobs),
        pipes,
        far: Vec::new(),
        jobs: jobs.clone(),
        sockets: sockets::sockets(plant),
        came: sockets::came(plant),
        tuned: tuned::tuned(plant),
        exact: admit(&core.system),
        equation_one: says(equation_one(&core.system)),
        wide: says(wide(&core.system)),
        findings: Vec::new(),
        lacking: pipes::lacking(plant),
        unsaid: mutexes.unsaid(),
        system: system.clone(),
        margin: OnceLock::new(),
        cheapest: OnceLock::new(),
        core: core.clone(),
        costs: *costs,
    }
}

/// Returns the plans of pipes that `system` reads from other cores.
fn far(system: &System, plans: &[Plan]) -> Vec<FarPiped> {
    let of = |far: &FarPipe| {
        plans.iter().find_map(|plan| {
            let mut pipes = plan.system.pipes.iter().zip(&plan.pipes);
            let (pipe, piped) = pipes.find(|(pipe, _)| pipe.name == far.name)?;
            let drift = plan.system.usb[pipe.usb].drift;
            Some(FarPiped { reader: far.process, pipe: pipe.clone(), drift, piped: piped.clone() })
        })
    };
    system.far.iter().filter_map(of).collect()
}

impl Plan {
    /// Returns the plan of `system`.
    #[must_use]
    pub fn of(system: &System) -> Plan {
        let mut plans = Plan::of_cores(std::slice::from_ref(system));
        plans.swap_remove(0)
    }

    /// Returns the plans of all cores of a host, in their order. The reader of a pipe may be on
    /// another core than the server: its bill is in the plan of the server's core.
    #[must_use]
    pub fn of_cores(systems: &[System]) -> Vec<Plan> {
        let costs: Vec<KernelTimes> = systems.iter().map(System::kernel_times).collect();
        let cores: Vec<Core> =
            systems.iter().zip(&costs).map(|(system, costs)| core::core(system, costs)).collect();
        let parts = || systems.iter().zip(&cores).zip(&costs);
        let (mutexes, jobs): (Vec<Mutexes<'_>>, Vec<Jobs>) = parts()
            .map(|((system, core), costs)| {
                let mut mutexes = Mutexes::new(system, core, costs);
                let jobs = jobs::jobs(system, core, &mut mutexes);
                (mutexes, jobs)
            })
            .unzip();
        let late: Vec<System> = parts()
            .zip(mutexes.iter().zip(&jobs))
            .map(|(((system, core), costs), (mutexes, jobs))| {
                Plant::new(system, core, costs, mutexes).with_jobs(jobs).with_lateness()
            })
            .collect();
        let plants = || {
            let parts = late.iter().zip(&cores).zip(&costs).zip(mutexes.iter().zip(&jobs));
            parts.map(|(((system, core), costs), (mutexes, jobs))| {
                Plant::new(system, core, costs, mutexes).with_jobs(jobs)
            })
        };
        let all: Vec<Plant<'_>> = plants().collect();
        let each = plants().zip(costs.iter().zip(&jobs));
        let mut plans: Vec<Plan> =
            each.map(|(plant, (costs, jobs))| of_plant(&plant.among(&all), costs, jobs)).collect();
        let far: Vec<Vec<FarPiped>> = systems.iter().map(|it| far(it, &plans)).collect();
        for (plan, far) in plans.iter_mut().zip(far) {
            plan.far = far;
            plan.findings = plan.judged();
        }
        plans
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
