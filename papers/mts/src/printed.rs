//! The tests of [EMERALDS 1998, §7.3.6] as they are printed, and the test for ED*.
//!
//! "There is a t in S with f(t) ≤ t" is computed as the least fixed point of f: f does not fall
//! as t grows, so if any t will do, the fixed point will, and it is no later.

use crate::workload::{BIT, MessageStream, Workload};

/// Bits that a renewal of identifiers adds, as the dissertation counts.
pub const UPDATE_BITS: u64 = 16;

/// Delays of a workload besides its frames; 0 is as §7.5.2 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Bits of each renewal.
    pub update_bits: u64,
    /// The bus is idle so long after each sporadic high-speed and each low-speed message.
    pub idle: u64,
    /// A frame that inherited priority goes first for so long (§7.5.5): before the most urgent
    /// message, or before every message.
    pub inherited: u64,
    pub before_all: bool,
}

impl Extra {
    /// As in figures 7.6 to 7.10.
    pub const USUAL: Extra =
        Extra { update_bits: UPDATE_BITS, idle: 0, inherited: 0, before_all: false };
}

/// The answer of a test, and the class that is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtsVerdict {
    Feasible,
    /// Some high-speed message is late.
    High,
    /// Only low-speed messages are.
    Low,
}

fn overloaded(workload: &Workload) -> bool {
    workload.load_ppm() > 1_000_000
}

/// Returns the cost of a stream: its frame, and the idle time after it.
fn cost(workload: &Workload, stream: &MessageStream, is_high: bool, extra: Extra) -> u64 {
    let idles = !is_high || stream.sporadic;
    workload.costs(stream).0 + if idles { extra.idle } else { 0 }
}

/// The streams in the order of their deadlines with their costs, longest frame included.
fn by_deadline(workload: &Workload, extra: Extra) -> Vec<(MessageStream, u64)> {
    let high = workload.high.iter().map(|s| (*s, cost(workload, s, true, extra)));
    let low = workload.low.iter().map(|s| (*s, cost(workload, s, false, extra)));
    let mut all: Vec<(MessageStream, u64)> = high.chain(low).collect();
    all.sort_by_key(|(stream, _)| stream.deadline);
    all
}

/// Returns whether Σ ⌈t/T⌉·C + `blocked` ≤ t for some t up to `until`.
fn begins(above: &[(u64, u64)], blocked: u64, until: u64) -> bool {
    let mut t = 1u64;
    loop {
        let work: u64 = above.iter().map(|(period, cost)| t.div_ceil(*period) * cost).sum();
        let next = work + blocked;
        if next <= t {
            return true;
        }
        if next > until {
            return false;
        }
        t = next;
    }
}

/// DM: every message finds a beginning in time.
#[must_use]
pub fn dm(workload: &Workload, extra: Extra) -> bool {
    let all = by_deadline(workload, extra);
    !overloaded(workload) && dm_of(workload, &all, 0, &[], extra)
}

/// The streams from place `from` on fit under those before and `others`.
fn dm_of(
    workload: &Workload,
    all: &[(MessageStream, u64)],
    from: usize,
    others: &[(u64, u64)],
    extra: Extra,
) -> bool {
    let longest = workload.longest();
    let mut above: Vec<(u64, u64)> = others.to_vec();
    for (place, (stream, cost)) in all.iter().enumerate() {
        if place >= from {
            let waits = extra.before_all || (place == 0 && others.is_empty());
            let blocked = longest + if waits { extra.inherited } else { 0 };
            let until = stream.deadline.saturating_sub(workload.costs(stream).1);
            if !begins(&above, blocked, until) {
                return false;
            }
        }
        above.push((stream.period, *cost));
    }
    true
}

/// MTS: the printed condition for high-speed messages, and DM for those of low speed.
#[must_use]
pub fn mts(workload: &Workload, extra: Extra) -> MtsVerdict {
    let updates = (workload.epoch, extra.update_bits * BIT);
    let is_high = |index| high_begins(workload, index, updates, extra);
    if overloaded(workload) || !(0..workload.high.len()).all(is_high) {
        return MtsVerdict::High;
    }
    let streams = |streams: &[MessageStream], is_high| {
        let each = streams.iter().map(|s| (*s, cost(workload, s, is_high, extra)));
        each.collect::<Vec<_>>()
    };
    let mut all = streams(&workload.high, true);
    all.extend(streams(&workload.low, false));
    let low = dm_of(workload, &all, workload.high.len(), &[updates], extra);
    if low { MtsVerdict::Feasible } else { MtsVerdict::Low }
}

/// §7.3.6: the bus is free for the first invocation of stream `index` before it is too late.
fn high_begins(workload: &Workload, index: usize, updates: (u64, u64), extra: Extra) -> bool {
    let start_by =
        |stream: &MessageStream| stream.deadline.saturating_sub(workload.costs(stream).1);
    let longest_deadline = workload.high.iter().map(|stream| stream.deadline).max().unwrap_or(0);
    let region = (workload.epoch + longest_deadline) / 32;
    let own = start_by(&workload.high[index]);
    let waits = extra.before_all || index == 0;
    let blocked = workload.longest() + if waits { extra.inherited } else { 0 };
    let mut t = 1u64;
    loop {
        let others = workload.high.iter().enumerate().filter(|(rank, _)| *rank != index);
        let work: u64 = others
            .map(|(rank, stream)| {
                let released = t.div_ceil(stream.period);
                let key = (released - 1) * stream.period + start_by(stream);
                let goes_first = key < own || (key <= own + region && rank < index);
                let count = if goes_first { released } else { released - 1 };
                count * cost(workload, stream, true, extra)
            })
            .sum();
        let next = work + blocked + t.div_ceil(updates.0) * updates.1;
        if next < t {
            return true;
        }
        if next + 1 > own {
            return false;
        }
        t = next + 1;
    }
}

/// ED*: EDF without preemption, by the test of the dissertation's reference 121.
#[must_use]
pub fn ed(workload: &Workload, extra: Extra) -> bool {
    let all = by_deadline(workload, extra);
    let ppm: u64 = all.iter().map(|(s, cost)| (cost * 1_000_000).div_ceil(s.period)).sum();
    if ppm >= 1_000_000 {
        return false;
    }
    let longest = workload.longest();
    let Some(end) = busy(&all, longest) else { return false };
    let mut instants: Vec<u64> = Vec::new();
    for (stream, _) in &all {
        instants
            .extend((0..).map(|n| stream.deadline + n * stream.period).take_while(|t| *t <= end));
    }
    instants.sort_unstable();
    instants.dedup();
    let first = all.first().map(|(stream, _)| stream.deadline);
    instants.into_iter().all(|t| {
        let due: u64 = all
            .iter()
            .map(|(s, cost)| t.checked_sub(s.deadline).map_or(0, |over| over / s.period + 1) * cost)
            .sum();
        let waits = extra.before_all || Some(t) == first;
        let inherited = if waits { extra.inherited } else { 0 };
        due + longest + inherited <= t
    })
}

/// Returns the end of the longest time in which the bus is never free.
fn busy(all: &[(MessageStream, u64)], longest: u64) -> Option<u64> {
    const HORIZON: u64 = 20_000_000_000;
    let mut t = longest;
    while t <= HORIZON {
        let next: u64 =
            all.iter().map(|(s, cost)| t.div_ceil(s.period) * cost).sum::<u64>() + longest;
        if next <= t {
            return Some(t);
        }
        t = next;
    }
    None
}
