//! Systems that are admitted, most of them barely, and what the world does to them.

use super::{Campaign, CampaignFindings};
use crate::server::{
    InterruptSource, IoVcpu, MainVcpu, Queue, SharedCore, Utilization, first_failure,
    largest_budget,
};
use alloc::vec;
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_vcpu::sim::{Arrival, Happening, Random};

/// How long each world lasts, in ticks: many times the longest period.
pub const HORIZON: Nanos = Nanos(260);

/// Returns the next system that is admitted, and what it is believed to be (`forget` says; the test
/// and the bounds see only that). Half of them have one budget as large as the test allows.
pub fn admitted(
    campaign: &Campaign,
    random: &mut Random,
    report: &mut CampaignFindings,
    forget: impl Fn(&mut SharedCore),
) -> (SharedCore, SharedCore) {
    loop {
        let mut system = drawn(campaign, random);
        let mut believed = system.clone();
        forget(&mut believed);
        if system.check().is_err() || first_failure(&believed) != Ok(None) {
            report.refused += 1;
            continue;
        }
        let vcpu = random.below(system.mains.len() as u64) as usize;
        let edge = random.one_in(2) && system.mains[vcpu] == believed.mains[vcpu];
        if edge && let Some(largest) = largest_budget(&believed, vcpu) {
            system.mains[vcpu].budget = largest;
            believed.mains[vcpu].budget = largest;
        }
        if campaign.woken {
            know(&mut system, &mut believed, random);
        }
        return (system, believed);
    }
}

/// Draws what I/O VCPUs do each time they are woken, of those that never wait for a grant then.
fn know(system: &mut SharedCore, believed: &mut SharedCore, random: &mut Random) {
    for io in 0..system.ios.len() {
        let server = &system.ios[io];
        let whole = server.share.of(server.wake_gap.0).max(1);
        let work = if random.one_in(2) { whole } else { random.between(1, whole) };
        let Some(known) = system.knowing(io, Nanos(work)) else { continue };
        *system = known;
        if let Some(believed) = believed.ios.get_mut(io).filter(|io| io.woken.is_none()) {
            believed.woken = system.ios[io].woken;
        }
    }
}

fn drawn(campaign: &Campaign, random: &mut Random) -> SharedCore {
    let count = random.between(2, 5);
    let periods: Vec<u64> = (0..count).map(|_| random.between(4, 32)).collect();
    let mut periods = periods;
    periods.sort_unstable();
    let mains = periods.iter().map(|period| {
        let share = random.between(1, 1 + 2 * period / count);
        MainVcpu {
            chunks: campaign.chunks,
            ..MainVcpu::new(Nanos(share.min(*period)), Nanos(*period))
        }
    });
    let mut system = SharedCore::new(mains.collect(), vec![]);
    place(campaign, random, &mut system);
    for _ in 0..random.below(3) {
        let io = io(campaign, random, &system);
        system.ios.push(io);
    }
    // In ticks a section that has begun blocks for one less.
    system.kernel_section = Nanos(campaign.section.saturating_sub(1));
    if campaign.top_halves {
        let gap = random.between(6, 20);
        system.sources.push(InterruptSource::free(Nanos(gap), Nanos(random.between(1, 2))));
    }
    system
}

/// Shorter periods to higher queues, as CSD does.
fn place(campaign: &Campaign, random: &mut Random, system: &mut SharedCore) {
    let count = system.mains.len() as u64;
    let queues = u64::from(campaign.dp_queues) + u64::from(campaign.fp);
    let mut ends: Vec<u64> = (1..queues).map(|_| random.between(1, count)).collect();
    ends.sort_unstable();
    for (index, main) in system.mains.iter_mut().enumerate() {
        let number = ends.iter().filter(|end| **end <= index as u64).count() as u8;
        main.queue = if number < campaign.dp_queues { Queue::Dp(number) } else { Queue::Fp };
    }
}

fn io(campaign: &Campaign, random: &mut Random, system: &SharedCore) -> IoVcpu {
    let ppm = if campaign.uneven {
        50_000 * random.between(1, 8) as u32
    } else {
        1_000_000 / [4, 5, 8, 10, 16, 20][random.below(6) as usize]
    };
    let share = Utilization::from_ppm(ppm).unwrap_or_else(|| unreachable!("a share above zero"));
    let count = system.mains.len() as u64;
    let first = random.below(count) as usize;
    let mut serves = vec![first];
    if campaign.shared {
        serves.extend((0..count as usize).filter(|other| *other != first && random.one_in(2)));
    }
    let mut io = IoVcpu::new(share, serves);
    if campaign.woken {
        io.wake_gap = Nanos(random.between(4, 32));
    }
    if campaign.shared {
        let periods = io.serves.iter().map(|main| system.mains[*main].period);
        io.cap = periods.min().unwrap_or(Nanos::FOREVER);
    }
    io
}

/// Returns the arrivals of one run, by one of several plans, with kernel sections of at most
/// `section` ticks, and top halves.
pub fn world(system: &SharedCore, section: u64, random: &mut Random) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut moment = random.below(20);
    match random.below(3) {
        0 => bursts(system, random, &mut arrivals),
        1 => moment = drained_then_hit(system, random, &mut arrivals),
        _ => {
            crumbs(system, random, &mut arrivals);
            bursts(system, random, &mut arrivals);
        }
    }
    if section > 0 {
        sections(section, moment, random, &mut arrivals);
    }
    for source in &system.sources {
        top_halves(*source, moment, random, &mut arrivals);
    }
    // Sections and top halves first: those who arrive with them find them begun.
    arrivals.sort_by_key(|arrival| arrival.at);
    as_known(system, &mut arrivals);
    arrivals
}

/// Takes away what breaks the distance of known wake-ups, and shortens what is too much for one.
fn as_known(system: &SharedCore, arrivals: &mut Vec<Arrival>) {
    let mut next = vec![Nanos::ZERO; system.ios.len()];
    arrivals.retain_mut(|arrival| {
        let Happening::BottomHalf { io, units, .. } = &mut arrival.what else { return true };
        let server = &system.ios[*io];
        let Some(most) = server.woken else { return true };
        *units = (*units).min(most.used);
        let comes = arrival.at >= next[*io];
        if comes {
            next[*io] = arrival.at + server.wake_gap;
        }
        comes
    });
}

fn work(at: u64, main: usize, units: u64) -> Arrival {
    Arrival::new(Nanos(at), Happening::Work { main, units: Nanos(units) })
}

fn bottom_half(at: u64, io: usize, units: u64, beneficiary: usize) -> Arrival {
    let units = Nanos(units);
    Arrival::new(Nanos(at), Happening::BottomHalf { io, units, beneficiary })
}

fn beneficiary(system: &SharedCore, io: usize, random: &mut Random) -> usize {
    let serves = &system.ios[io].serves;
    serves[random.below(serves.len() as u64) as usize]
}

/// Everybody: bursts of up to three budgets, with pauses of up to three periods.
fn bursts(system: &SharedCore, random: &mut Random, arrivals: &mut Vec<Arrival>) {
    for (index, main) in system.mains.iter().enumerate() {
        let mut at = random.below(main.period.0);
        while at < HORIZON.0 {
            let units = match random.below(3) {
                0 => main.budget.0,
                1 => random.between(1, main.budget.0),
                _ => random.between(1, 3 * main.budget.0),
            };
            arrivals.push(work(at, index, units));
            let pause = if random.one_in(2) { main.period.0 } else { 3 * main.period.0 };
            at += random.between(1, pause);
        }
    }
    for io in 0..system.ios.len() {
        let mut at = random.below(16);
        while at < HORIZON.0 {
            let whom = beneficiary(system, io, random);
            let most = system.ios[io].quantum(system.mains[whom].period).0;
            arrivals.push(bottom_half(at, io, random.between(1, 2 * most), whom));
            at += random.between(1, 3 * system.mains[whom].period.0);
        }
    }
}

/// Small pieces one after the other: they split budgets and use up lists.
fn crumbs(system: &SharedCore, random: &mut Random, arrivals: &mut Vec<Arrival>) {
    let (begin, length) = (random.below(HORIZON.0 / 2), random.between(4, 64));
    for at in begin..begin + length {
        let index = random.below((system.mains.len() + system.ios.len()) as u64) as usize;
        if index < system.mains.len() {
            arrivals.push(work(at, index, 1));
        } else {
            let io = index - system.mains.len();
            let whom = beneficiary(system, io, random);
            arrivals.push(bottom_half(at, io, 1, whom));
        }
    }
}

/// A victim uses its budget up late and alone; when it comes back, everybody has work for ever.
/// Returns that moment.
fn drained_then_hit(system: &SharedCore, random: &mut Random, arrivals: &mut Vec<Arrival>) -> u64 {
    let victim = random.below(system.mains.len() as u64) as usize;
    let main = &system.mains[victim];
    let begin = random.below(20);
    let apart = if random.one_in(2) { main.budget.0 } else { random.between(1, main.period.0) };
    arrivals.push(work(begin, victim, main.budget.0));
    arrivals.push(work(begin + apart, victim, random.between(1, 2 * main.budget.0)));
    let hit = (begin + main.period.0 + random.below(3)).saturating_sub(random.below(3));
    for (index, other) in system.mains.iter().enumerate() {
        if index != victim {
            let late = if random.one_in(3) { random.below(other.period.0) } else { 0 };
            let phase = if random.one_in(3) { random.between(1, other.budget.0) } else { 0 };
            if phase > 0 {
                arrivals.push(work(begin.saturating_sub(1), index, phase));
            }
            arrivals.push(work(hit + late, index, HORIZON.0));
        }
    }
    for io in 0..system.ios.len() {
        let whom = beneficiary(system, io, random);
        if random.one_in(2) {
            arrivals.push(bottom_half(hit.saturating_sub(random.below(8)), io, 1, whom));
        }
        arrivals.push(bottom_half(hit, io, 64, whom));
    }
    hit
}

/// One just before the moment, and many.
fn sections(longest: u64, moment: u64, random: &mut Random, arrivals: &mut Vec<Arrival>) {
    let before = moment.saturating_sub(1);
    arrivals.insert(0, Arrival::new(Nanos(before), Happening::Section(Nanos(longest))));
    let mut at = if random.one_in(2) { moment + 1 + longest } else { random.below(10) };
    while at < HORIZON.0 {
        let length = if random.one_in(3) { random.between(1, longest) } else { longest };
        arrivals.insert(0, Arrival::new(Nanos(at), Happening::Section(Nanos(length))));
        at += random.between(1, 12);
    }
}

/// As often as they may be, one of them at the moment; or now and then.
fn top_halves(
    source: InterruptSource,
    moment: u64,
    random: &mut Random,
    arrivals: &mut Vec<Arrival>,
) {
    let (mut at, often) = (moment % source.gap.0, random.one_in(2));
    while at < HORIZON.0 {
        arrivals.insert(0, Arrival::new(Nanos(at), Happening::TopHalf(source.cost)));
        at += source.gap.0 + if often { 0 } else { random.below(source.gap.0) };
    }
}
