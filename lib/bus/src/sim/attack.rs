//! Campaigns: random sets are planned, simulated, and compared with what others would accept.

use super::exhaustive::exhaustive;
use super::set::Set;
use super::wire::AttackedBus;
use crate::endpoint::Starts;
use crate::judge::Judge;
use crate::plan::{BusPlan, Placed, plan};
use crate::refusal::NoSchedule;
use crate::rotation::Rotation;
use crate::time::Picos;
use crate::uniform;
use crate::worst::Pattern;
use alloc::vec::Vec;
use diapason_random::Random;

/// The results of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CampaignReport {
    pub sets: u64,
    /// Sets that got a plan.
    pub accepted: u64,
    /// Periodic endpoints asked for, and placed, in accepted sets.
    pub endpoints: (u64, u64),
    pub transfers: u64,
    /// The sets (by index) in which something planned did not hold.
    pub broken: Vec<u64>,
    /// Largest observed time in millionths of its bound.
    pub closest: u64,
    /// Runs by how close the longest transfer came to its bound, in tenths; the last is 0.9 to 1.
    pub ratios: [u64; 11],
    /// Runs with a transfer that took longer than the worst of those queued at the start of a slot:
    /// a planner that forgot the other starts would be caught.
    pub beyond_slot_starts: u64,
    /// Sets uniform schedules accept, and those of them whose schedule breaks a guarantee.
    pub uniform: (u64, u64),
    /// Sets where uniform schedules keep more than the plan without breaking anything.
    pub beaten: Vec<u64>,
    /// Sets where Linux's first fit places all, and those of them that break a guarantee.
    pub linux: (u64, u64),
    /// Sets of [`compare`] that an exhaustive search accepts.
    pub exhaustive: u64,
    /// Sets with a uniform schedule that hold.
    pub uniform_holds: u64,
}

/// Plan `sets` random sets, simulate each accepted one `runs` times, and compare with uniform
/// schedules.
#[must_use]
pub fn attack(seed: u64, sets: core::ops::Range<u64>, runs: u32) -> CampaignReport {
    let mut report = CampaignReport::default();
    for index in sets {
        let mut random = Random::stream(seed, index);
        let mut set = Set::draw(&mut random);
        if index % 8 == 7 {
            set.bus.starts = Starts::Unknown;
        }
        report.sets += 1;
        let planned = plan(&set.bus, &set.periodic, &set.asyncs);
        if set.bus.starts == Starts::Chosen {
            against_uniform(&set, planned.as_ref().ok(), index, &mut report);
        }
        match planned {
            Ok(plan) => {
                report.accepted += 1;
                report.endpoints.0 += set.periodic.len() as u64;
                report.endpoints.1 += plan.placed.len() as u64;
                for _ in 0..runs {
                    simulate(&set, &plan, index, &mut random, &mut report);
                }
            }
            Err(NoSchedule::Refused(_)) => {}
            Err(NoSchedule::Nonsense(_)) => report.broken.push(index),
        }
    }
    report
}

fn simulate(
    set: &Set,
    plan: &BusPlan,
    index: u64,
    random: &mut Random,
    report: &mut CampaignReport,
) {
    let wire = AttackedBus::new(&set.bus, &set.periodic, &plan.placed, &set.asyncs, random);
    let seen = wire.run(96, random);
    report.transfers += seen.transfers;
    let mut holds = (seen.overfull, seen.crossed, seen.late) == (0, 0, 0);
    let pattern = Pattern { load: &plan.load, slot: set.bus.speed.slot() };
    for promise in &plan.promises {
        let at = set.asyncs.iter().position(|endpoint| endpoint.id == promise.id);
        let Some((at, longest)) = at.map(|at| (at, seen.longest[at])) else { continue };
        if longest == 0 {
            continue;
        }
        let bound = (promise.worst - set.bus.doorbell).0;
        holds &= longest <= bound && promise.worst.0 <= guaranteed(set, promise.guarantee.period);
        holds &= promise.any_order.is_none_or(|any| promise.worst <= any);
        let rotations = Rotation::all(&set.bus, &set.asyncs, at, promise.guarantee);
        let starts = |r: &Rotation| pattern.worst_at_slot_starts(r, promise.worst);
        let at_starts = rotations.iter().filter_map(starts).max();
        report.beyond_slot_starts += u64::from(at_starts.is_some_and(|worst| longest > worst.0));
        let ratio = (u128::from(longest) * 1_000_000 / u128::from(bound.max(1))) as u64;
        report.closest = report.closest.max(ratio);
        report.ratios[(ratio / 100_000).min(10) as usize] += 1;
    }
    if !holds {
        report.broken.push(index);
    }
}

fn guaranteed(set: &Set, period: u32) -> u64 {
    set.bus.speed.slot().times(period.into()).0
}

/// Uniform schedules, with steps of a tenth of a slot and with the smallest reservation.
fn against_uniform(set: &Set, ours: Option<&BusPlan>, index: u64, report: &mut CampaignReport) {
    let (bus, periodic, asyncs) = (&set.bus, set.periodic.as_slice(), set.asyncs.as_slice());
    let judge = Judge::new(bus, asyncs);
    let fine = uniform::least_enough(bus, asyncs, periodic);
    let coarse = uniform::reservation(bus, asyncs, periodic, Picos(bus.speed.slot().0 / 10));
    let (mut accepts, mut holds) = (false, false);
    for t_a in [fine, coarse].into_iter().flatten() {
        let Some(outcome) = uniform::schedule(bus, periodic, t_a) else { continue };
        accepts = true;
        if judge.holds(&outcome.load) {
            holds = true;
            let kept = outcome.starts.iter().flatten().count();
            if ours.is_none_or(|plan| plan.placed.len() < kept) {
                report.beaten.push(index);
            }
        }
    }
    report.uniform.0 += u64::from(accepts);
    report.uniform.1 += u64::from(accepts && !holds);
    report.uniform_holds += u64::from(holds);
    let starts = uniform::linux_first_fit(bus, periodic);
    if starts.iter().all(Option::is_some) {
        report.linux.0 += 1;
        let places = periodic.iter().zip(&starts);
        let slots = periodic.iter().map(|p| p.period).max().unwrap_or(1) as usize;
        let mut load = alloc::vec![Picos::ZERO; slots];
        for (endpoint, start) in places {
            let first = start.unwrap_or(0) as usize;
            for f in (first..slots).step_by(endpoint.period as usize) {
                load[f] = load[f] + endpoint.cost(bus);
            }
        }
        report.linux.1 += u64::from(!judge.holds(&load));
    }
}

/// Uniform schedules under the same attack: sets in which one breaks a guarantee by the exact
/// test, and those of them in which the simulated bus was late, too.
#[must_use]
pub fn attack_uniform(seed: u64, sets: core::ops::Range<u64>, runs: u32) -> (u64, u64) {
    let (mut unsound, mut caught) = (0, 0);
    for index in sets {
        let mut random = Random::stream(seed, index);
        let set = Set::draw(&mut random);
        let (bus, periodic) = (&set.bus, set.periodic.as_slice());
        let judge = Judge::new(bus, &set.asyncs);
        let outcome = uniform::least_enough(bus, &set.asyncs, periodic)
            .and_then(|t_a| uniform::schedule(bus, periodic, t_a));
        let Some(outcome) = outcome.filter(|outcome| !judge.holds(&outcome.load)) else { continue };
        unsound += 1;
        let places = periodic.iter().zip(&outcome.starts);
        let placed: Vec<Placed> = places
            .filter_map(|(endpoint, start)| {
                start.map(|start| Placed { id: endpoint.id, start, period: endpoint.period })
            })
            .collect();
        let late = (0..runs).any(|_| {
            let wire = AttackedBus::new(bus, periodic, &placed, &set.asyncs, &mut random);
            wire.run(96, &mut random).late > 0
        });
        caught += u64::from(late);
    }
    (unsound, caught)
}

/// Sets with critical endpoints only: accepted by the plan against accepted at all. Every second
/// one is near the edge.
#[must_use]
pub fn compare(seed: u64, sets: core::ops::Range<u64>) -> CampaignReport {
    let mut report = CampaignReport::default();
    for index in sets {
        let mut random = Random::stream(seed, index);
        let set = match index % 2 {
            0 => Set::draw(&mut random).all_critical(),
            _ => Set::draw_tight(&mut random),
        };
        let choices: u64 = set.periodic.iter().map(|p| u64::from(p.period)).product();
        let judge = Judge::new(&set.bus, &set.asyncs);
        if choices > 1 << 15 || judge.broken(&[]).is_some() {
            continue;
        }
        report.sets += 1;
        let planned = plan(&set.bus, &set.periodic, &set.asyncs);
        against_uniform(&set, planned.as_ref().ok(), index, &mut report);
        let possible = exhaustive(&set.bus, &set.periodic, &set.asyncs);
        report.accepted += u64::from(planned.is_ok());
        report.exhaustive += u64::from(possible);
        if planned.is_ok() && !possible {
            report.broken.push(index);
        }
    }
    report
}
