//! Workloads on the simulated bus, with phases that are meant to make them late.

use crate::sound::set;
use crate::workload::{FrameLengths, MessageStream, Workload};
use diapason_abi::Nanos;
use diapason_can::CanFrame;
use diapason_can::mts::life::{Frames, LifeMessage, LifeOutcome, LifeStream, LifeUnit, live};
use diapason_can::mts::{
    MtsRefusal, MtsSet, Renewing, UPDATE_BITS, longest_renewal, non_real_time_id,
};
use diapason_random::Random;

/// Nodes that share the streams.
const NODES: usize = 4;

/// Returns a workload as nodes with clocks of their own send it, or `None` if it has no epochs.
#[must_use]
pub fn real(workload: &Workload, clocks: Nanos) -> Option<MtsSet> {
    let set = set(workload)?;
    let longest = FrameLengths::Stuffed.bits(8) + UPDATE_BITS / 2;
    let renewing = Renewing::OnSignal { last: longest_renewal(set.rate, longest, clocks) };
    MtsSet { clocks, renewing, ..set }.with_epoch(Nanos(workload.epoch)).ok()
}

/// Returns the frames of a workload. Zeros have the most stuff bits that are easily had.
#[must_use]
pub fn frames(workload: &Workload) -> Option<Frames> {
    let frame = |bytes: u32| {
        let id = non_real_time_id(0).ok()?;
        CanFrame::data(id, &[0; 8][..bytes as usize]).ok()
    };
    let each =
        |streams: &[MessageStream]| streams.iter().map(|s| frame(s.bytes)).collect::<Option<_>>();
    Some(Frames { high: each(&workload.high)?, low: each(&workload.low)?, other: vec![frame(8)?] })
}

/// Lets a workload live for about `long`, from an instant on at which it is worst, in one of three
/// ways: all at once; so that start-by times fall together; or anyhow.
///
/// # Errors
/// More nodes than there can be.
pub fn life(
    workload: &Workload,
    set: &MtsSet,
    long: u64,
    random: &mut Random,
) -> Result<LifeOutcome, MtsRefusal> {
    let Some(frames) = frames(workload) else { return Ok(LifeOutcome::default()) };
    let epoch = set.epochs.epoch().0;
    let critical = epoch * 8 + random.below(epoch);
    let (mode, target) = (random.below(3), random.below(workload.high.len().max(1) as u64));
    let mut comings = vec![LifeMessage {
        came: Nanos(critical - 1),
        queued: Nanos(critical - 1),
        which: LifeStream::Other(0),
        node: NODES - 1,
    }];
    let high = (0..).zip(&workload.high).map(|(code, s)| (LifeStream::High(code), code, s));
    let low = (0..).zip(&workload.low).map(|(rank, s)| (LifeStream::Low(rank), rank, s));
    for (which, rank, stream) in high.chain(low) {
        let first = match (mode, which) {
            (0, _) | (1, LifeStream::Low(_)) => critical,
            (1, _) => aligned(workload, set, rank, target as usize, critical),
            _ => critical + random.below(stream.period.min(long)),
        };
        let instants = (0..).map(|n| first + n * stream.period);
        for came in instants.take_while(|at| *at < critical + long).filter(|at| *at >= critical) {
            let came = Nanos(came);
            comings.push(LifeMessage { came, queued: came, which, node: rank % NODES });
        }
    }
    let error = set.clocks.0;
    let units: Vec<LifeUnit> = (0..NODES)
        .map(|_| {
            let offset = random.below(2 * error + 1).cast_signed() - error.cast_signed();
            LifeUnit { offset, joins: Nanos::ZERO, deaf: 0 }
        })
        .collect();
    live(set, &frames, &units, &comings, &mut |bound| random.below(bound))
}

/// When a stream comes first so that one of its messages is due with one of `target` of the
/// critical instant: in the same region, but after it if its code is lower.
fn aligned(workload: &Workload, set: &MtsSet, rank: usize, target: usize, critical: u64) -> u64 {
    let start_by = |s: &MessageStream| s.deadline.saturating_sub(workload.costs(s).1);
    let region = set.epochs.region().0;
    let boundary = (critical + start_by(&workload.high[target])).div_ceil(region) * region;
    let stream = &workload.high[rank];
    let late = if rank < target { region - 1 } else { 0 };
    let came = (boundary + late).saturating_sub(start_by(stream)).max(critical);
    came - (came - critical) / stream.period * stream.period
}
