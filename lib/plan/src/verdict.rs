//! The plan of a system, and what can be asked of it.

use crate::allocate;
use crate::bus::Bused;
use crate::can::CanPlan;
use crate::chains::Chained;
use crate::core::Core;
use crate::jobs::{JobBound, Jobs};
use crate::missing::Missing;
use crate::modes::Modes;
use crate::pipes::Piped;
use crate::sockets::Socketed;
use crate::tuned::Tuned;
use diapason_abi::Nanos;
use diapason_analysis::server::{Admission, ClosedForm, Queue, Response, Unfit, breakdown};
use diapason_costs::KernelTimes;
use diapason_system::{CanNetwork, Diagnostics, PipeSpec, System, UsbBus};
use std::sync::OnceLock;

/// The statement of a sum against a bound about a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sum {
    Says(ClosedForm),
    /// The sum's theorem does not cover these queues.
    Silent(ClosedForm),
}

/// The answer of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every promise of the description can be kept.
    Holds,
    /// Some promise cannot be kept.
    DoesNotHold,
    /// The description asks for no promise: no VCPU, no pipe, no chain, no endpoint, no mode with
    /// cameras, no message.
    PromisesNothing,
}

/// The plan of a pipe that a process of this core reads, and whose server is on another one.
#[derive(Clone, Debug)]
pub struct FarPiped {
    /// The number of the process.
    pub reader: u16,
    /// The pipe, as the core of its server has it.
    pub pipe: PipeSpec,
    /// By how many millionths the clocks of its device and of the host run apart at most.
    pub drift: u32,
    pub piped: Piped,
}

/// Everything that can be told without running the system.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The VCPUs and what they compete with.
    pub core: Core,
    /// The assumed costs of the kernel.
    pub costs: KernelTimes,
    /// The result of the exact test.
    pub exact: Result<Admission, Unfit>,
    /// The sum of [USB 2023, eq. 1].
    pub equation_one: Sum,
    /// The wider closed form, with kernel costs.
    pub wide: Sum,
    /// The bounds of jobs, by Main VCPU.
    pub jobs: Jobs,
    /// The bill of every pipe.
    pub pipes: Vec<Piped>,
    /// The plans of pipes that come from the servers of other cores.
    pub far: Vec<FarPiped>,
    /// The servers' costs of pipes that may be opened.
    pub tuned: Tuned,
    /// The promise for every socket.
    pub sockets: Vec<Socketed>,
    /// How long a frame takes at most until the server of each adapter has taken it, if a common
    /// time relies on that.
    pub(crate) came: Vec<Option<Nanos>>,
    /// The bill of every chain.
    pub chains: Vec<Chained>,
    /// The schedule of every USB bus that something is declared of.
    pub buses: Vec<Bused>,
    /// The modes of every bus with cameras that modes start and stop.
    pub modes: Modes,
    /// The plan of every CAN bus whose messages are described.
    pub cans: Vec<CanPlan>,
    /// Why the system is not admitted, the first reason first; empty: it is.
    pub findings: Vec<Diagnostics>,
    /// Mutexes that several VCPUs share, and of which not every holder says how long.
    pub unsaid: Vec<String>,
    /// The needs of each pipe's bill that the description lacks.
    pub(crate) lacking: Vec<Vec<Missing>>,
    pub(crate) system: System,
    pub(crate) margin: OnceLock<Option<u64>>,
    pub(crate) cheapest: OnceLock<Option<Vec<Queue>>>,
}

impl Sum {
    /// Returns whether it promises that the system holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Sum::Says(form) if form.holds())
    }

    /// Returns both sides, whatever they mean.
    #[must_use]
    pub const fn form(&self) -> ClosedForm {
        match self {
            Sum::Says(form) | Sum::Silent(form) => *form,
        }
    }
}

impl Plan {
    /// Returns the system that is planned.
    #[must_use]
    pub const fn system(&self) -> &System {
        &self.system
    }

    /// Returns the part of its budget, in per mille, that every VCPU could have.
    #[must_use]
    pub fn margin(&self) -> Option<u64> {
        *self.margin.get_or_init(|| breakdown(&self.core.system))
    }

    /// Returns the cheapest queues that hold, one for each Main VCPU.
    #[must_use]
    pub fn cheapest(&self) -> Option<&[Queue]> {
        let found = || allocate::cheapest(&self.system);
        self.cheapest.get_or_init(found).as_deref()
    }

    /// Returns whether every VCPU gets what it was promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the verdict on the whole description.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let system = &self.system;
        let endpoints = |bus: &UsbBus| bus.periodic.is_empty() && bus.asyncs.is_empty();
        let due = |can: &CanNetwork| can.messages.iter().any(|it| it.deadline_ns.is_some());
        let empty = system.vcpus.is_empty()
            && system.pipes.is_empty()
            && system.tpipes.is_empty()
            && system.chains.is_empty()
            && system.states.is_empty()
            && self.sockets.iter().all(|socket| matches!(socket, Socketed::Unpromised))
            && !system.cans.iter().any(due)
            && system.modes.iter().all(|mode| mode.cameras.is_empty())
            && system.buses.iter().all(endpoints);
        match (self.holds(), empty) {
            (false, _) => Verdict::DoesNotHold,
            (true, true) => Verdict::PromisesNothing,
            (true, false) => Verdict::Holds,
        }
    }

    /// Returns the shortest grant of an I/O VCPU and the time in which it is its share.
    #[must_use]
    pub fn grant(&self, io: usize) -> (Nanos, Nanos) {
        let io = &self.core.system.ios[io];
        let periods = io.serves.iter().map(|main| self.core.system.mains[*main].period);
        let grant = periods.map(|period| io.quantum(period)).min().unwrap_or_default();
        (grant, Nanos(io.share.time_for(grant.0)))
    }

    /// Returns the response of a Main VCPU, if the exact test admits the system.
    #[must_use]
    pub fn response(&self, main: usize) -> Option<&Response> {
        self.exact.as_ref().ok()?.responses.get(main)
    }

    /// Returns the bound of the job that is described of a VCPU, if the VCPU works for nothing else
    /// and the exact test admits the system.
    #[must_use]
    pub fn job(&self, main: usize) -> Option<&JobBound> {
        self.exact.as_ref().ok()?;
        self.jobs.get(main)?.as_ref()?.as_ref().ok()
    }

    /// Σ C/T + Σ U, rounded up.
    #[must_use]
    pub fn utilization_ppm(&self) -> u64 {
        let system = &self.core.system;
        let mains = system.mains.iter().map(|main| {
            let ppm =
                (u128::from(main.budget.0) * 1_000_000).div_ceil(u128::from(main.period.0.max(1)));
            u64::try_from(ppm).unwrap_or(u64::MAX)
        });
        let ios = system.ios.iter().map(|io| u64::from(io.share.ppm()));
        mains.chain(ios).sum()
    }
}
