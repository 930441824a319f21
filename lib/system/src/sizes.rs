//! The costs of the kernel in a system: they follow from its clock, its sizes and its queues.

use crate::archive::{objects, process_records, vcpu_records};
use crate::machine::MachineProfile;
use crate::system::System;
use diapason_abi::Nanos;
use diapason_costs::{Dimensions, KERNEL, KernelTimes, Tables};

impl System {
    /// Returns the costs of the kernel at the clock of the system, on the computer that was
    /// measured if there is one.
    #[must_use]
    pub fn kernel_times(&self) -> KernelTimes {
        let away = self.machine.as_ref().map_or(Nanos::ZERO, MachineProfile::away);
        KernelTimes::new(KERNEL.among(&self.sizes()), self.clock_hz).on_computer(away)
    }

    /// Returns the sizes that make paths of the kernel longer.
    #[must_use]
    pub fn sizes(&self) -> Dimensions {
        let objects: Vec<_> = objects(self).collect();
        let vcpus: Vec<_> = vcpu_records(self).collect();
        Dimensions::of(&Tables {
            processes: &process_records(self),
            objects: &objects,
            segments: self.segments.len(),
            devices: self.devices.len(),
            vcpus: &vcpus,
            dp_queues: self.scheduling.dp_queues,
        })
    }

    /// Returns the queue by deadline of each VCPU, or `None`: of the declared ones, and of those
    /// that programs may make. These join a queue by deadline if all VCPUs are in it.
    pub fn deadline_queues(&self) -> impl Iterator<Item = Option<u8>> + '_ {
        let queues = self.scheduling.dp_queues;
        let all = queues == 1 && self.vcpus.iter().all(|vcpu| vcpu.queue == 0);
        let made = self.processes.iter().map(|process| usize::from(process.vcpus)).sum();
        let declared = self.vcpus.iter().map(move |vcpu| Some(vcpu.queue).filter(|q| *q < queues));
        declared.chain(std::iter::repeat_n(all.then_some(0), made))
    }
}
