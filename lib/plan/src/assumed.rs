//! The plan's assumptions about a run, for observers.

use crate::Plan;
use crate::chains::{Chained, processes};
use crate::pipes::Piped;
use crate::sockets::Socketed;
use crate::verdict::FarPiped;
use diapason_abi::Nanos;
use diapason_analysis::server::IoVcpu;
use diapason_costs::KERNEL;
use diapason_pipe::bill::What;
use diapason_system::{
    ChainSpec, PipeDirection, PipeSpec, SemaphoreKind, ServerSpec, System, UdpPort, VcpuSpec,
};

/// The plan's assumptions about the kernel, VCPUs and devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumed {
    /// Instructions of the longest kernel path, and the time that takes (B).
    pub path: (u64, u64),
    /// The longest that an interrupt waits for the kernel.
    pub late: Nanos,
    /// Instructions of a top half, and of one that leads to a switch.
    pub top_half: [u64; 2],
    /// One entry for each described VCPU.
    pub vcpus: Vec<AssumedVcpu>,
    /// The described shortest time between two interrupts of each device.
    pub intervals: Vec<Option<u64>>,
    /// Time of a switch that no budget pays.
    pub switch_grace: Nanos,
    /// Whether VCPUs pay for all time of the threads, process by process.
    pub paid: Vec<bool>,
    /// The VCPU of the threads of each process, if it has one.
    pub seats: Vec<Option<u16>>,
}

/// The assumptions about one described VCPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssumedVcpu {
    Main {
        /// The VCPU's response R(C), or its period if that is all that is known.
        response: u64,
        /// The length of its replenishment list.
        list: u64,
        /// Whether what is promised of it relies on that list never being full.
        relied: bool,
        /// The most wake-ups in a period with which what is promised of it holds, if that matters.
        wakes: Option<u64>,
        /// The longest job described.
        job: Option<u64>,
    },
    Io {
        /// The I/O VCPU, as it is described.
        io: IoVcpu,
        /// Whether what is promised to others relies on how often it is woken. The kernel spares it
        /// no more switches than its `interval` says; it pays for all others itself.
        relied: bool,
    },
}

/// Returns whether VCPUs pay for all time of the threads of each process. They do if it has a VCPU.
/// But the owner of a mutex runs in the place of a thread that waits for it, and a thread without a
/// VCPU pays nothing: if such a thread may use a mutex of others, nothing is known of anybody.
fn paid(system: &System) -> Vec<bool> {
    let paid: Vec<bool> = system.processes.iter().map(|it| it.vcpu.is_some()).collect();
    let reserved = (0..).zip(&paid).filter(|(_, paid)| **paid);
    let reserved = reserved.fold(0u64, |all, (process, _)| all | 1 << process);
    let mut mutexes = system.semaphores.iter().filter(|it| it.kind == SemaphoreKind::Mutex);
    let mixes = mutexes.any(|it| it.allowed & reserved != 0 && it.allowed & !reserved != 0);
    if mixes { vec![false; paid.len()] } else { paid }
}

impl Plan {
    /// Returns the assumptions of this plan.
    #[must_use]
    pub fn assumed(&self) -> Assumed {
        let (system, core) = (self.system(), &self.core);
        let mut vcpus: Vec<(u16, AssumedVcpu)> = Vec::new();
        for (place, (number, main)) in core.mains.iter().zip(&core.system.mains).enumerate() {
            let response = self.response(place).map_or(main.period.0, |found| found.response.0);
            let list = u64::from(main.chunks);
            let job = match system.vcpus[usize::from(*number)].server {
                ServerSpec::Main { job_ns, .. } => job_ns,
                ServerSpec::Io { .. } => None,
            };
            let bound = self.job(place);
            let carries = self.relies(*number);
            let relied = carries || bound.is_some_and(|job| job.relies);
            // A list has room for all wake-ups but one.
            let wakes = match carries {
                true => Some(list.saturating_sub(1)),
                false => bound.map(|job| job.wakes),
            };
            vcpus.push((*number, AssumedVcpu::Main { response, list, relied, wakes, job }));
        }
        let ios = core.ios.iter().zip(&core.system.ios);
        vcpus.extend(ios.map(|(number, io)| {
            let (io, relied) = (io.clone(), self.is_in_a_bill(*number));
            (*number, AssumedVcpu::Io { io, relied })
        }));
        vcpus.sort_by_key(|(number, _)| *number);
        let switch = KERNEL.switch_among(system.deadline_queues());
        let interrupts = system.devices.iter().map(|device| device.interrupt);
        let sources = interrupts.clone().flatten().count() as u64;
        Assumed {
            path: (self.costs.path_instructions(), self.costs.longest_path().0),
            late: self.costs.late(system.deadline_queues(), sources),
            top_half: [0, switch].map(|switch| KERNEL.top_half + switch),
            vcpus: vcpus.into_iter().map(|(_, assumed)| assumed).collect(),
            intervals: interrupts.map(|interrupt| interrupt?.interval_ns).collect(),
            switch_grace: self.costs.switch(system.deadline_queues()),
            paid: paid(system),
            seats: system.processes.iter().map(|process| process.vcpu).collect(),
        }
    }

    /// Returns whether an I/O VCPU serves an end of a pipe, so that its work is in a bill.
    fn is_in_a_bill(&self, vcpu: u16) -> bool {
        let system = self.system();
        let VcpuSpec { server, name, allowed, .. } = &system.vcpus[usize::from(vcpu)];
        let ServerSpec::Io { serves, .. } = server else { return false };
        // It serves nobody on another core, so a pipe that leads there is known by its thread.
        let is_its_half = |pipe: &PipeSpec| {
            let home = pipe.source().map(|source| source.home.vcpu);
            allowed >> pipe.server & 1 == 1 && home.is_some_and(|home| home == name)
        };
        let mut far = system.pipes.iter().filter(|pipe| pipe.process().is_none());
        if far.any(is_its_half) {
            return true;
        }
        let near = system.pipes.iter().filter_map(PipeSpec::process);
        let ends = near.filter_map(|process| system.processes[usize::from(process)].vcpu);
        let bounded =
            system.sockets.iter().zip(&self.sockets).filter(|(_, it)| it.bill().is_some());
        let readers =
            bounded.filter_map(|(socket, _)| system.processes[usize::from(socket.process)].vcpu);
        let ends = ends.chain(readers).chain(system.tpipes.iter().map(|it| it.vcpu));
        ends.into_iter().any(|end| serves.contains(&end))
    }

    /// Returns whether what is promised of a Main VCPU relies on its list never being full: the
    /// bill of a pipe or of a chain whose thread it is says so.
    fn relies(&self, vcpu: u16) -> bool {
        let system = self.system();
        let own = |process: u16| system.processes[usize::from(process)].vcpu == Some(vcpu);
        let of_pipe = |(pipe, piped): (&PipeSpec, &Piped)| {
            let item = piped.bill.as_ref().ok().and_then(|bill| bill.item(What::User));
            let relies = item.is_some_and(|item| !item.basis.may_merge());
            let process = pipe.process();
            pipe.way == PipeDirection::FromDevice && process.is_some_and(own) && relies
        };
        let of_far = |it: &FarPiped| {
            let item = it.piped.bill.as_ref().ok().and_then(|bill| bill.item(What::User));
            own(it.reader) && item.is_some_and(|item| !item.basis.may_merge())
        };
        let of_chain = |(chain, chained): (&ChainSpec, &Chained)| {
            let Ok(bill) = &chained.bill else { return false };
            let threads = processes(chain, system).into_iter().zip(&bill.apart);
            threads.skip(1).any(|(process, apart)| own(process) && *apart)
        };
        let of_socket = |(socket, socketed): (&UdpPort, &Socketed)| {
            let item = socketed.bill().and_then(|bill| bill.item(What::User));
            own(socket.process) && item.is_some_and(|item| !item.basis.may_merge())
        };
        system.pipes.iter().zip(&self.pipes).any(of_pipe)
            || self.far.iter().any(of_far)
            || system.sockets.iter().zip(&self.sockets).any(of_socket)
            || system.chains.iter().zip(&self.chains).any(of_chain)
    }
}
