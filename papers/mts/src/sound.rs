//! The same workloads by tests that are sound.
//!
//! DM and MTS by `diapason-can`, with frames as long as the workload says and renewals as long as
//! they are at worst. For ED* the printed test is sound already: deadlines of whole frames, from
//! every instant, under the longest frame.

use crate::printed::MtsVerdict;
use crate::workload::{MessageStream, Workload};
use diapason_abi::Nanos;
use diapason_can::mts::{
    Epochs, HighSpeed, MtsSet, Queued, Renewing, high_speed, low_speed, low_speed_id,
};
use diapason_can::response::{AnalysedMessage, Errors, response};
use diapason_can::{BitRate, ExtendedId};

fn rate() -> Option<BitRate> {
    BitRate::new(1_000_000).ok()
}

fn message(workload: &Workload, stream: &MessageStream, place: u32) -> Option<AnalysedMessage> {
    let bits = workload.lengths.bits(stream.bytes);
    // Only the order of identifiers counts; there are more streams than one class has codes.
    let id = ExtendedId::new(place)?.into();
    let [period, deadline] = [stream.period, stream.deadline].map(Nanos);
    Some(AnalysedMessage { id, bits, period, jitter: Nanos::ZERO, deadline })
}

/// DM: every response is within its deadline.
#[must_use]
pub fn dm(workload: &Workload) -> bool {
    let mut all: Vec<&MessageStream> = workload.streams().collect();
    all.sort_by_key(|stream| stream.deadline);
    let messages = (0..).zip(all).map(|(place, stream)| message(workload, stream, place));
    let (Some(rate), Some(messages)) = (rate(), messages.collect::<Option<Vec<_>>>()) else {
        return false;
    };
    let other = workload.lengths.bits(8);
    (0..messages.len()).all(|index| {
        let found = response(rate, &messages, index, Errors::NONE, other);
        found.is_ok_and(|response| response <= messages[index].deadline)
    })
}

/// Returns the set of a workload, with perfect clocks and renewals that take no time, as §7.3.6 has
/// them.
#[must_use]
pub fn set(workload: &Workload) -> Option<MtsSet> {
    let high = workload.high.iter().map(|stream| HighSpeed {
        bits: workload.lengths.bits(stream.bytes),
        period: Nanos(stream.period),
        jitter: Nanos::ZERO,
        deadline: Nanos(stream.deadline),
    });
    let low = workload.low.iter().enumerate().map(|(rank, stream)| {
        let id = low_speed_id(u16::try_from(rank).ok()?).ok()?.into();
        Some(AnalysedMessage { id, ..message(workload, stream, 0)? })
    });
    let set = MtsSet {
        rate: rate()?,
        epochs: Epochs::new(Nanos(1), Nanos(1)).ok()?,
        high: high.collect(),
        low: low.collect::<Option<_>>()?,
        other: workload.lengths.bits(8),
        clocks: Nanos::ZERO,
        renewing: Renewing::OnSignal { last: Nanos::ZERO },
        queued: Queued::default(),
        errors: Errors::NONE,
    };
    set.with_epoch(Nanos(workload.epoch)).ok()
}

/// MTS: every high-speed message is begun in time, and every low-speed one is through.
#[must_use]
pub fn mts(workload: &Workload) -> MtsVerdict {
    let Some(set) = set(workload) else { return MtsVerdict::High };
    let in_time = |index| high_speed(&set, index).is_ok_and(|unmet| unmet.is_none());
    if !(0..set.high.len()).all(in_time) {
        return MtsVerdict::High;
    }
    let through = |index| low_speed(&set, index).is_ok_and(|found| found.is_ok());
    if (0..set.low.len()).all(through) { MtsVerdict::Feasible } else { MtsVerdict::Low }
}
