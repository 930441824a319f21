//! How delays of messages are spread: counts by size, four sizes to a doubling.

use diapason_abi::Nanos;
use diapason_abi::record::MEASURED_VALUES;

/// Sizes that are told apart: up to a microsecond, then a quarter of an octave each, up to a
/// second.
pub const SIZES: usize = 81;
/// Sizes in a report.
const IN_A_PART: usize = 2 * MEASURED_VALUES;
/// Reports that say all sizes.
pub const PARTS: usize = SIZES.div_ceil(IN_A_PART);

/// Returns the size of a delay.
#[must_use]
pub const fn size_of_delay(delay: Nanos) -> usize {
    let micros = delay.0.div_ceil(1_000);
    if micros <= 1 {
        return 0;
    }
    // Sizes begin above what they do not hold.
    let last = micros - 1;
    let octave = last.ilog2();
    let quarter = (last << 2 >> octave) & 3;
    let size = 1 + 4 * octave as usize + quarter as usize;
    if size < SIZES { size } else { SIZES - 1 }
}

/// Returns the longest delay of a size; the last size has everything longer, too.
#[must_use]
pub const fn longest_of(size: usize) -> Nanos {
    if size == 0 {
        return Nanos::from_micros(1);
    }
    let (octave, quarter) = ((size - 1) / 4, (size - 1) % 4);
    // The largest whole number of microseconds whose predecessor has this octave and quarter.
    let quarters = (4 + quarter as u64 + 1) << octave;
    Nanos(quarters.div_ceil(4) * 1_000)
}

/// Delays of a pipe's messages since the start, of a few neighbouring sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PipeDelays {
    /// The pipe goes to a device.
    pub to_device: bool,
    /// The channel of the device.
    pub channel: u8,
    /// The index among the [`PARTS`] of all sizes.
    pub part: u8,
    /// How many messages had each size.
    pub counts: [u32; IN_A_PART],
}

impl PipeDelays {
    /// Returns the first of its sizes.
    #[must_use]
    pub const fn first(&self) -> usize {
        self.part as usize * IN_A_PART
    }

    /// Returns the part that has this size.
    pub(super) const fn part_with(size: usize) -> usize {
        size / IN_A_PART
    }

    /// Returns one part of all counts.
    #[must_use]
    pub fn part_of(to_device: bool, channel: u8, part: u8, all: &[u32; SIZES]) -> PipeDelays {
        let mut counts = [0; IN_A_PART];
        let sizes = all.iter().skip(usize::from(part) * IN_A_PART);
        counts.iter_mut().zip(sizes).for_each(|(count, size)| *count = *size);
        PipeDelays { to_device, channel, part, counts }
    }

    pub(super) fn values(&self) -> [u64; MEASURED_VALUES] {
        let mut values = [0; MEASURED_VALUES];
        for (value, counts) in values.iter_mut().zip(self.counts.as_chunks::<2>().0) {
            *value = super::pair(counts[1], counts[0]);
        }
        values
    }

    pub(super) fn of(
        to_device: bool,
        channel: u8,
        part: u8,
        values: [u64; MEASURED_VALUES],
    ) -> Option<PipeDelays> {
        let mut counts = [0; IN_A_PART];
        for (counts, value) in counts.as_chunks_mut::<2>().0.iter_mut().zip(values) {
            (counts[1], counts[0]) = super::halves(value);
        }
        (usize::from(part) < PARTS).then_some(PipeDelays { to_device, channel, part, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_each_other_and_hold_what_they_say() {
        assert_eq!(size_of_delay(Nanos::ZERO), 0);
        let mut before = Nanos::ZERO;
        for micros in (1..2_000_000u64).step_by(7).chain(1..64) {
            let delay = Nanos::from_micros(micros);
            let size = size_of_delay(delay);
            assert!(size < SIZES);
            assert!(delay <= longest_of(size) || size == SIZES - 1, "{micros}");
            assert!(size == 0 || delay > longest_of(size - 1) || size < 12, "{micros} {size}");
        }
        for size in 0..SIZES {
            assert!(longest_of(size) >= before);
            before = longest_of(size);
        }
    }
}
