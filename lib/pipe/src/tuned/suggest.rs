//! The nearest quality of service that would be given.

use super::refused::WouldFit;
use super::wish::{Attributes, Qos};
use diapason_abi::Nanos;

/// How much more of something is tried, in powers of two.
const DOUBLINGS: u32 = 5;
/// Steps of halving: within one part in 64.
const HALVINGS: u32 = 6;

/// More latency at the same rate; else more buffer; else less throughput.
pub(super) fn nearest(
    qos: &Qos,
    attributes: &Attributes,
    fits: &mut dyn FnMut(Qos) -> bool,
) -> WouldFit {
    let (latency, tput) = (qos.latency, qos.tput);
    let later = |qos: &Qos, times: u64| {
        // In 256ths; the number of bits grows with the time, and the rate with neither.
        let part = |value: u64, of: u64, whole: u64| {
            let scaled = u128::from(value) * u128::from(of) / u128::from(whole.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let grown = part(latency.0, times, 256);
        Qos { latency: Nanos(grown), tput: part(tput, grown, latency.0).max(1), ..*qos }
    };
    if let Some(times) = least(256, &mut |times| fits(later(qos, times))) {
        return WouldFit::Latency(later(qos, times).latency);
    }
    let slot = attributes.packet.1.max(1);
    let buffer = |slots: u64| Qos { buffer: slots.saturating_mul(slot), ..*qos };
    // A larger buffer takes as long per message.
    let slots = (qos.buffer / slot).max(1);
    let scaled = |count: u64| {
        let time = u128::from(qos.execution.0) * u128::from(count) / u128::from(slots);
        Qos { execution: Nanos(u64::try_from(time).unwrap_or(u64::MAX)), ..buffer(count) }
    };
    if let Some(count) = least(slots, &mut |count| fits(scaled(count))) {
        return WouldFit::Buffer(scaled(count).buffer);
    }
    let less = |bits: u64| Qos { tput: bits, ..*qos };
    match most(tput, &mut |bits| fits(less(bits))) {
        Some(bits) => WouldFit::Tput(bits),
        None => WouldFit::Nothing,
    }
}

/// Returns the least value from `start` on that fits, nearly, if one of its doubles does.
fn least(start: u64, fits: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
    let mut small = start;
    let mut large = (0..DOUBLINGS).find_map(|_| {
        let next = small.checked_mul(2)?;
        if fits(next) {
            return Some(next);
        }
        small = next;
        None
    })?;
    for _ in 0..HALVINGS {
        let middle = small + (large - small) / 2;
        if middle > small && fits(middle) { large = middle } else { small = middle }
    }
    Some(large)
}

/// Returns the largest value below `start` that fits, nearly, if one of its halves does.
fn most(start: u64, fits: &mut dyn FnMut(u64) -> bool) -> Option<u64> {
    let mut large = start;
    let mut small = (0..DOUBLINGS).find_map(|_| {
        let next = large / 2;
        if next > 0 && fits(next) {
            return Some(next);
        }
        large = next;
        None
    })?;
    for _ in 0..HALVINGS {
        let middle = small + (large - small) / 2;
        if middle > small && fits(middle) { small = middle } else { large = middle }
    }
    Some(small)
}
