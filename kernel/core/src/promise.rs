//! The promises of a core to VCPUs, and what the kernel itself costs them.

use crate::ids::VcpuId;
use crate::pool::Id;
use diapason_abi::Nanos;
use diapason_abi::archive::{Archive, NONE, VcpuKind};
use diapason_costs::Prices;
use diapason_vcpu::admission::{Load, Overheads, Test};

/// Returns the kernel's time on the core that this archive describes, by the formula that `plan`
/// uses.
fn overheads(archive: &Archive<'_>) -> Overheads {
    let devices = archive.devices().filter(|device| device.interval > 0);
    let ios = archive.vcpus().filter(|vcpu| vcpu.kind == VcpuKind::Io);
    Fees::of(archive).prices().overheads(
        devices.map(|device| Nanos(device.interval)),
        ios.map(|io| (io.replenishments, Nanos(io.interval))),
    )
}

/// The promises of the core.
pub(crate) struct Promise {
    pub load: Load,
    pub test: Test,
    /// The exact test admitted more than the closed form would: nothing fits besides.
    pub full: bool,
    /// The queue of VCPUs made while the system runs, and whether it goes by deadline.
    pub queue: u8,
    pub by_deadline: bool,
    /// Some VCPU was abandoned by its process.
    pub abandoned: bool,
    /// The longest period ever promised: what is given back is free after that long.
    pub slowest: Nanos,
    /// When all that was given back so far is free, and by whom it was: nobody if by several, or by
    /// one that ended.
    pub settled: Nanos,
    /// Time that VCPUs paid which ended, and whose places others took.
    pub retired: Nanos,
    /// Time that VCPUs paid because others were spared it.
    pub levied: Nanos,
    pub giver: VcpuId,
}

impl Promise {
    /// Nothing is promised yet. If all Main VCPUs go by deadline in one queue, so do those that are
    /// made later, and the test is that of this case; else they go by period.
    #[inline(never)]
    pub fn of(archive: &Archive<'_>) -> Promise {
        let mains = || archive.vcpus().filter(|v| v.kind == VcpuKind::Main);
        let all = archive.header.dp_queues == 1 && mains().all(|v| v.queue == 0);
        // The closed form is proved for queues in the order of periods only.
        let longest = |queue| mains().filter(|v| v.queue == queue).map(|v| v.period).max();
        let in_order = mains().all(|v| {
            (0..v.queue).all(|above| longest(above).is_none_or(|longest| longest <= v.period))
        });
        Promise {
            load: Load::new(overheads(archive)),
            test: if all { Test::Deadline } else { Test::Wide },
            full: !in_order,
            queue: if all { 0 } else { archive.header.dp_queues },
            by_deadline: all,
            abandoned: false,
            slowest: Nanos::ZERO,
            settled: Nanos::ZERO,
            retired: Nanos::ZERO,
            levied: Nanos::ZERO,
            giver: Id::NONE,
        }
    }
}

/// The costs of kernel entries for the VCPUs that cause them.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Fees {
    /// An alarm that lets who is interrupted go on.
    pub interrupt: Nanos,
    /// The way back to the preempted thread.
    pub switch: Nanos,
    /// The longest path of the kernel.
    pub path: Nanos,
    /// The longest that an interrupt waits until the kernel takes it.
    pub late: Nanos,
}

impl Fees {
    /// Returns the fees that the plan of this description counts.
    pub fn of(archive: &Archive<'_>) -> Fees {
        let header = &archive.header;
        let prices = Prices {
            path: Nanos(header.longest_path.into()),
            top_half: Nanos(header.interrupt_grace.into()),
            switch: Nanos(header.switch_grace.into()),
        };
        let Prices { path, top_half, switch } = prices;
        let sources = archive.devices().filter(|device| device.irq != NONE).count() as u64;
        Fees { interrupt: top_half, switch, path, late: prices.late(sources) }
    }

    /// Returns the fees as prices of an admission.
    pub fn prices(&self) -> Prices {
        Prices { path: self.path, top_half: self.interrupt, switch: self.switch }
    }
}
