//! Delays between two clocks that drift: from a device, which stamps its messages, to the host.
//!
//! Nobody knows when the device's clock began, so one distance between the two says nothing; only
//! differences of distances do. Its rate is not known either: the distance itself grows or
//! shrinks, by at most a stated rate d. So a message that came at t with distance D was late by at
//! least D − min(Dⱼ + d·(t − tⱼ)) beyond the fastest message j before it. If the clock keeps within
//! d, this is never more than the truth, and no false alarm can follow. All these lines rise alike,
//! so the lowest of them needs one point of memory, for ever.
//!
//! It may be less than the truth. Against any message k of the last seconds it lacks at most
//! 2d·(t − tₖ): that is reported with it. A lack against older ones cannot be told from a
//! clock that changes its rate.
//!
//! A clock beyond the stated rate does not look like messages that are late now and then: the
//! fastest message of each second is on a line. [`beyond`] finds that line.

use diapason_abi::Nanos;

/// The inexactness is stated against the messages of a span of this length and the one before.
const SPAN: Nanos = Nanos::from_secs(1);

/// The arrival of a message, and the distance of the two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    at: Nanos,
    distance: u64,
}

/// The delay of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delay {
    /// The delay beyond the fastest message is at least so long.
    pub beyond: Nanos,
    /// The delay is at most so much longer, against any message of the last seconds.
    pub inexact: Nanos,
}

/// A device's clock, as its messages show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceClock {
    drift: u32,
    lowest: Option<Point>,
    /// The arrival of the first message of the span before, and of this one.
    spans: Option<[Nanos; 2]>,
}

/// Returns the change of a time by a drift of so many millionths, rounded up.
const fn drifted(time: Nanos, drift: u32) -> u64 {
    const MILLION: u64 = 1_000_000;
    // Times between messages are short.
    if let Some(millionths) = time.0.checked_mul(drift as u64) {
        return millionths.div_ceil(MILLION);
    }
    let (whole, rest) = (time.0 / MILLION, time.0 % MILLION);
    let of_rest = (rest * drift as u64).div_ceil(MILLION);
    whole.saturating_mul(drift as u64).saturating_add(of_rest)
}

impl Point {
    /// Returns by how much another message is above the line that rises from here.
    fn above(self, other: Point, drift: u32) -> i64 {
        let line = self.distance.wrapping_add(drifted(other.at - self.at, drift));
        other.distance.wrapping_sub(line).cast_signed()
    }
}

impl DeviceClock {
    /// Returns one that runs at most so many millionths faster or slower than the host's.
    #[must_use]
    pub const fn new(drift: u32) -> DeviceClock {
        DeviceClock { drift, lowest: None, spans: None }
    }

    /// Starts over, because the device's clock may have restarted.
    pub const fn restart(&mut self) {
        *self = DeviceClock::new(self.drift);
    }

    /// Takes in a message that has this time of its device and came now.
    pub fn measure(&mut self, now: Nanos, time: Nanos) -> Delay {
        let point = Point { at: now, distance: now.0.wrapping_sub(time.0) };
        let above = self.lowest.map_or(0, |lowest| lowest.above(point, self.drift));
        if above <= 0 {
            self.lowest = Some(point);
        }
        let lacks = drifted(now - self.oldest(now), self.drift).saturating_mul(2);
        Delay { beyond: Nanos(above.max(0).unsigned_abs()), inexact: Nanos(lacks) }
    }

    /// Returns the arrival of the oldest message that this one is compared with.
    fn oldest(&mut self, now: Nanos) -> Nanos {
        let [before, this] = self.spans.unwrap_or([now; 2]);
        let spans = if now - this < SPAN { [before, this] } else { [this, now] };
        self.spans = Some(spans);
        spans[0]
    }
}

/// The smallest distance in one interval, and the time of its report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Floor {
    /// The time of the report.
    pub at: Nanos,
    /// The smallest distance of the two clocks since the report before, modulo 2^64.
    pub distance: u64,
}

/// Fewest floors that make a line.
const FEWEST: usize = 4;

/// Returns by how many millionths the device's clock ran slower than the host's (faster if
/// negative), if that is more than `drift` and explains what was seen: of at least [`FEWEST`]
/// reports in a row, the floors are on one line, from which they differ by no more than a quarter
/// of `variation`, the most by which delays may differ, and a sixteenth of its rise. Between its
/// ends the distance changed by half of `variation` more than a clock within `drift` allows.
#[must_use]
pub fn beyond(floors: &[Floor], drift: u32, variation: Nanos) -> Option<i64> {
    let mut length = floors.len();
    while length >= FEWEST {
        let step = (length / 2).max(1);
        let mut start = floors.len() - length;
        loop {
            let found = floors.get(start..start + length).and_then(|of| line(of, drift, variation));
            if found.is_some() {
                return found;
            }
            match start.checked_sub(step) {
                Some(before) => start = before,
                None => break,
            }
        }
        length /= 2;
    }
    None
}

/// Returns the slope of the line through these floors, as above.
fn line(floors: &[Floor], drift: u32, variation: Nanos) -> Option<i64> {
    let (first, last) = (floors.first()?, floors.last()?);
    let rise = |floor: &Floor| floor.distance.wrapping_sub(first.distance).cast_signed();
    let (span, change) = (i128::from((last.at - first.at).0), i128::from(rise(last)));
    let allowed = drifted(last.at - first.at, drift).saturating_add(variation.0 / 2);
    if span == 0 || change.unsigned_abs() <= u128::from(allowed) {
        return None;
    }
    // The fastest message of a report came somewhen before it.
    let tolerance = u128::from(variation.0 / 4) + change.unsigned_abs() / 16;
    let on_it = |floor: &Floor| {
        let expected = change * i128::from((floor.at - first.at).0) / span;
        (i128::from(rise(floor)) - expected).unsigned_abs() <= tolerance
    };
    let rate = i64::try_from(change * 1_000_000 / span).ok()?;
    floors.iter().all(on_it).then_some(rate)
}

#[cfg(test)]
mod tests;
