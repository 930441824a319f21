//! Attacks on the promises of [`server`](crate::server): random systems that are admitted,
//! simulated under the worst arrivals we can think of, and every job held against its bound.
//!
//! The simulator runs the very servers that the kernel embeds (`lib/vcpu`), so a violation is a
//! wrong bound or a wrong policy. The generator ([`generate`]), the judge ([`judge`]) and the
//! papers' own rules ([`paper`]) are apart. One seed, one campaign, one report.

mod generate;
mod judge;
mod paper;
mod report;

pub use paper::{PaperPibs, PaperReport, papers};
pub use report::{CampaignFindings, Ratios, Violation, Which};

use crate::server::SharedCore;
use alloc::vec::Vec;
use diapason_vcpu::sim::Random;

/// A kind of system and of world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Campaign {
    /// The name in reports.
    pub name: &'static str,
    /// Number of DP queues above the FP queue.
    pub dp_queues: u8,
    /// Whether there is an FP queue.
    pub fp: bool,
    /// Longest kernel section in ticks; 0: none.
    pub section: u64,
    /// Whether there are top halves.
    pub top_halves: bool,
    /// Whether I/O VCPUs have several beneficiaries.
    pub shared: bool,
    /// Length of replenishment lists.
    pub chunks: u32,
    /// Whether shares are any twentieth, or only one divided by a whole number.
    pub uneven: bool,
    /// Whether it is known what I/O VCPUs do each time they are woken.
    pub woken: bool,
}

/// Fixed priorities, nothing but servers.
const RMS: Campaign = Campaign {
    name: "rms",
    dp_queues: 0,
    fp: true,
    section: 0,
    top_halves: false,
    shared: false,
    chunks: 8,
    uneven: false,
    woken: false,
};

/// Every campaign there is; together, with 63,000 systems each, more than a million.
pub const CAMPAIGNS: [Campaign; 19] = [
    RMS,
    Campaign { name: "rms-sections", section: 3, ..RMS },
    Campaign { name: "rms-top-halves", section: 3, top_halves: true, ..RMS },
    Campaign { name: "rms-uneven-shares", uneven: true, ..RMS },
    Campaign { name: "rms-shared-io", shared: true, ..RMS },
    Campaign { name: "rms-shared-io-sections", shared: true, section: 3, ..RMS },
    Campaign { name: "rms-list-of-2", chunks: 2, ..RMS },
    Campaign { name: "rms-list-of-3", chunks: 3, ..RMS },
    Campaign { name: "edf", dp_queues: 1, fp: false, ..RMS },
    Campaign { name: "edf-sections", dp_queues: 1, fp: false, section: 3, top_halves: true, ..RMS },
    Campaign { name: "csd-2", dp_queues: 1, ..RMS },
    Campaign { name: "csd-2-sections", dp_queues: 1, section: 3, top_halves: true, ..RMS },
    Campaign { name: "csd-3", dp_queues: 2, ..RMS },
    Campaign { name: "csd-3-sections", dp_queues: 2, section: 3, top_halves: true, ..RMS },
    Campaign { name: "edf-shared-io", dp_queues: 1, fp: false, shared: true, ..RMS },
    Campaign { name: "csd-3-shared-io", dp_queues: 2, shared: true, ..RMS },
    Campaign { name: "rms-woken", woken: true, ..RMS },
    Campaign { name: "edf-woken", dp_queues: 1, fp: false, woken: true, ..RMS },
    Campaign { name: "csd-3-woken", dp_queues: 2, section: 3, woken: true, uneven: true, ..RMS },
];

/// Draws admitted systems until there are `systems`, runs each under `runs` worlds, and judges all.
#[must_use]
pub fn attack(campaign: &Campaign, seed: u64, systems: u64, runs: u32) -> CampaignFindings {
    attack_as_if(campaign, seed, systems, runs, |_| ())
}

/// Attacks systems that the test admits, and holds them against the bounds of what `forget` makes
/// of each: with something forgotten, promises must break, or the attack is no good.
#[must_use]
pub fn attack_as_if(
    campaign: &Campaign,
    seed: u64,
    systems: u64,
    runs: u32,
    forget: impl Fn(&mut SharedCore),
) -> CampaignFindings {
    let mut random = Random::new(seed);
    let mut report = CampaignFindings::default();
    while report.systems < systems {
        let (system, believed) = generate::admitted(campaign, &mut random, &mut report, &forget);
        report.systems += 1;
        let bounds = judge::Bounds::of(&believed);
        for _ in 0..runs {
            let world = generate::world(&system, campaign.section, &mut random);
            let block_first = random.one_in(2);
            let mut simulated = simulated(&system);
            simulated.block_first = block_first;
            let run = simulated.run(&world, generate::HORIZON);
            report.runs += 1;
            judge::judge(&system, &bounds, &run, &mut report);
        }
    }
    report
}

/// Returns a system of the analysis as one of the simulator.
fn simulated(system: &SharedCore) -> diapason_vcpu::sim::System {
    use crate::server::Queue;
    use diapason_abi::Nanos;
    use diapason_vcpu::{Pibs, SporadicServer, sim};
    let dp = system.mains.iter().filter_map(|main| match main.queue {
        Queue::Dp(number) => Some(usize::from(number) + 1),
        Queue::Fp => None,
    });
    let dp_queues = dp.max().unwrap_or(0);
    let mut all = sim::System::rate_monotonic();
    all.dp_queues = dp_queues;
    let mains = system.mains.iter().map(|main| {
        let chunks = main.chunks as usize;
        let server = SporadicServer::new(main.budget, main.period, chunks, Nanos::ZERO);
        let queue = match main.queue {
            Queue::Dp(number) => usize::from(number),
            Queue::Fp => dp_queues,
        };
        sim::Main { queue, ..sim::Main::new(server) }
    });
    all.mains = mains.collect::<Vec<_>>();
    let ios = system.ios.iter().map(|io| Pibs::new(io.share.ppm(), io.cap, Nanos::ZERO));
    all.ios = ios.collect();
    all
}
