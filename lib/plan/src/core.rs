//! From a description to what the analysis calls a system: the VCPUs of one core, and what the
//! kernel and the devices take from them.

use diapason_abi::Nanos;
use diapason_analysis::server::{
    InterruptSource, IoVcpu, Losses, MainVcpu, Queue, SharedCore, Utilization,
};
use diapason_costs::KernelTimes;
use diapason_system::ServerSpec;

/// One core, as the analysis sees it.
#[derive(Clone, Debug)]
pub struct Core {
    pub system: SharedCore,
    /// The numbers of the Main VCPUs in the description.
    pub mains: Vec<u16>,
    /// The numbers of the I/O VCPUs in the description.
    pub ios: Vec<u16>,
}

/// Returns the core that `described` asks for.
#[must_use]
pub fn core(described: &diapason_system::System, costs: &KernelTimes) -> Core {
    let mut core = Core { system: SharedCore::default(), mains: Vec::new(), ios: Vec::new() };
    let queues = described.scheduling.dp_queues;
    for (number, vcpu) in (0u16..).zip(&described.vcpus) {
        if let ServerSpec::Main { budget_ns, period_ns, replenishments, .. } = vcpu.server {
            // A tuned pipe's thread counts with the most that it may ever have.
            let tuned = described.tpipes.iter().find(|tpipe| tpipe.vcpu == number);
            let (budget, period) = tuned.map_or((Nanos(budget_ns), Nanos(period_ns)), |tpipe| {
                (tpipe.envelope.budget, tpipe.envelope.period)
            });
            let queue = if vcpu.queue < queues { Queue::Dp(vcpu.queue) } else { Queue::Fp };
            core.mains.push(number);
            core.system.mains.push(MainVcpu {
                budget,
                period,
                chunks: u32::from(replenishments),
                queue,
            });
        }
    }
    for (number, vcpu) in (0u16..).zip(&described.vcpus) {
        if let Some(io) = io(&vcpu.server, &core.mains) {
            core.ios.push(number);
            core.system.ios.push(io);
        }
    }
    let interrupts = described.devices.iter().filter_map(|device| device.interrupt?.interval_ns);
    let prices = costs.prices(described.deadline_queues());
    let cost = prices.top_half;
    core.system.sources = interrupts.map(|ns| InterruptSource::free(Nanos(ns), cost)).collect();
    let devices = core.system.sources.len() as u64;
    core.system.sources.extend(gaps(described));
    core.system.kernel_section = prices.with_early(prices.path, devices);
    core.system.overrun = prices.overrun();
    core.system.switch = prices.switch;
    core.system.open = described.processes.iter().any(|process| process.vcpus > 0);
    core.system.losses = Losses { rare: costs.lost(), ..Losses::default() };
    core
}

/// Returns the times in which the processor is away, if the computer is known to have such. They
/// delay everybody, and whoever has the processor before or after one pays for it.
fn gaps(described: &diapason_system::System) -> Option<InterruptSource> {
    let gap = described.machine.as_ref()?.gap?;
    Some(InterruptSource { gap: gap.apart, cost: gap.longest, charged: gap.longest })
}

fn io(server: &ServerSpec, mains: &[u16]) -> Option<IoVcpu> {
    let ServerSpec::Io { utilization_ppm, cap_ns, interval_ns, wakes, serves } = server else {
        return None;
    };
    let place = |number: &u16| mains.iter().position(|main| main == number);
    Some(IoVcpu {
        share: Utilization::from_ppm(*utilization_ppm)?,
        cap: cap_ns.map_or(Nanos::FOREVER, Nanos),
        serves: serves.iter().filter_map(place).collect(),
        wake_gap: Nanos(*interval_ns),
        wakes: (*wakes).into(),
        woken: None,
    })
}

/// Returns a queue as tables show it: `DP1` is the most urgent.
#[must_use]
pub fn queue_name(queue: Queue) -> String {
    match queue {
        Queue::Dp(number) => format!("DP{}", u16::from(number) + 1),
        Queue::Fp => "FP".to_owned(),
    }
}

/// Returns whether the queues are in the order of periods, every VCPU of a higher queue no longer
/// than any of a lower one. Closed forms speak only of that case.
#[must_use]
pub fn is_by_period(system: &SharedCore) -> bool {
    let order = system.precedence();
    order.windows(2).all(|pair| system.mains[pair[0]].period <= system.mains[pair[1]].period)
}
