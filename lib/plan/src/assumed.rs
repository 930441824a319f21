//! What a plan assumes of a run, for whoever watches one.

use crate::Plan;
use diapason_analysis::server::{IoVcpu, dp_queues};
use diapason_costs::KERNEL;
use diapason_system::Server;

/// What a plan assumes of the kernel, of VCPUs and of devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumed {
    /// Instructions of the longest kernel path, and the time that takes (B).
    pub path: (u64, u64),
    /// Instructions of a top half, and of one that leads to a switch.
    pub top_half: [u64; 2],
    /// Of each described VCPU.
    pub vcpus: Vec<AssumedVcpu>,
    /// Of each device, the shortest time between two of its interrupts, if one was described.
    pub intervals: Vec<Option<u64>>,
    /// All time is paid for by VCPUs.
    pub reserved: bool,
}

/// What is assumed of one described VCPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssumedVcpu {
    /// A Main VCPU.
    Main {
        /// Its response R(C), or its period if that is all that is known.
        response: u64,
        /// The length of its replenishment list.
        list: u64,
        /// The longest job described.
        job: Option<u64>,
    },
    /// An I/O VCPU, as it is described.
    Io(IoVcpu),
}

impl Plan {
    /// What this plan assumes.
    #[must_use]
    pub fn assumed(&self) -> Assumed {
        let (system, core) = (self.system(), &self.core);
        let mut vcpus: Vec<(u16, AssumedVcpu)> = Vec::new();
        for (place, (number, main)) in core.mains.iter().zip(&core.system.mains).enumerate() {
            let response = self.response(place).map_or(main.period.0, |found| found.response.0);
            let list = u64::from(main.chunks);
            let job = match system.vcpus[usize::from(*number)].server {
                Server::Main { job_ns, .. } => job_ns,
                Server::Io { .. } => None,
            };
            vcpus.push((*number, AssumedVcpu::Main { response, list, job }));
        }
        let ios = core.ios.iter().zip(&core.system.ios);
        vcpus.extend(ios.map(|(number, io)| (*number, AssumedVcpu::Io(io.clone()))));
        vcpus.sort_by_key(|(number, _)| *number);
        let switch = KERNEL.switch_among(dp_queues(&core.system.mains));
        let interrupts = system.devices.iter().map(|device| device.interrupt);
        Assumed {
            path: (KERNEL.longest_path, self.costs.longest_path().0),
            top_half: [0, switch].map(|switch| KERNEL.top_half + switch),
            vcpus: vcpus.into_iter().map(|(_, assumed)| assumed).collect(),
            intervals: interrupts.map(|interrupt| interrupt?.interval_ns).collect(),
            reserved: system.processes.iter().all(|process| process.vcpu.is_some()),
        }
    }
}
