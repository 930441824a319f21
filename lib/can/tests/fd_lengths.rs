//! The longest frames of CAN FD: against a search over all contents, frames that are written out
//! bit by bit, and buses on which nodes send them.

use crate::support::Random;
use diapason_abi::Nanos;
use diapason_can::fd::{FdLength, LENGTHS};
use diapason_can::response::{AnalysedMessage, Errors, response};
use diapason_can::{BitRate, ExtendedId, StandardId};

/// A bit before the checksum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bit {
    Fixed(bool),
    Free,
}

use Bit::{Fixed, Free};

/// Returns the bits of a frame that stuffing looks at: those up to the switch of the rate, and
/// those of the data phase.
fn bits(extended: bool, code: u8, bytes: u32) -> (Vec<Bit>, Vec<Bit>) {
    let mut slow = vec![Fixed(false)];
    slow.extend([Free; 11]);
    if extended {
        // SRR and IDE, then 18 bits of the identifier.
        slow.extend([Fixed(true), Fixed(true)]);
        slow.extend([Free; 18]);
        // RRS, FDF, reserved, BRS.
        slow.extend([Fixed(false), Fixed(true), Fixed(false), Fixed(true)]);
    } else {
        // RRS, IDE, FDF, reserved, BRS.
        let rest = [false, false, true, false, true];
        slow.extend(rest.map(Fixed));
    }
    let mut fast = vec![Free];
    fast.extend((0..4).rev().map(|bit| Fixed(code >> bit & 1 == 1)));
    fast.extend(vec![Free; 8 * bytes as usize]);
    (slow, fast)
}

/// Returns the most stuff bits in a row of bits of which `counted` are looked at, over all
/// contents.
fn most(bits: &[Bit], counted: std::ops::Range<usize>) -> u32 {
    // By level and length of the run that ends here: the most so far.
    let mut states: Vec<((bool, u8), u32)> = Vec::new();
    for (place, bit) in bits.iter().enumerate() {
        let levels: &[bool] = match bit {
            Fixed(false) => &[false],
            Fixed(true) => &[true],
            Free => &[false, true],
        };
        let mut next: Vec<((bool, u8), u32)> = Vec::new();
        let mut put = |state: (bool, u8), count: u32| match next
            .iter_mut()
            .find(|(other, _)| *other == state)
        {
            Some((_, most)) => *most = count.max(*most),
            None => next.push((state, count)),
        };
        for level in levels {
            if place == 0 {
                put((*level, 1), 0);
            }
            for ((last, run), count) in &states {
                let (last, run, count) = match run {
                    // A stuff bit comes before this bit, and belongs to its phase.
                    5 => (!last, 1, count + u32::from(counted.contains(&place))),
                    _ => (*last, *run, *count),
                };
                let run = if last == *level { run + 1 } else { 1 };
                put((*level, run), count);
            }
        }
        states = next;
    }
    states.iter().map(|(_, count)| *count).max().unwrap_or(0)
}

#[test]
fn the_stuff_bits_of_the_table_are_those_of_the_worst_content() {
    for extended in [false, true] {
        for (code, (bytes, stuff)) in (0..).zip(LENGTHS) {
            let (slow, fast) = bits(extended, code, bytes);
            let all = [&slow[..], &fast[..]].concat();
            assert_eq!(most(&all, slow.len()..all.len()), stuff, "{bytes} bytes");
            assert_eq!(most(&all, 0..slow.len()), if extended { 7 } else { 3 });
            let length = FdLength::worst(extended, bytes);
            // Delimiter, acknowledgement, its delimiter, end of frame; two bits that come late.
            let before = slow.len() as u32 + if extended { 7 } else { 3 };
            assert_eq!(length.nominal, before + 2 + 7 + 2);
            // Count, parity and checksum with their fixed stuff bits, and the delimiter.
            let checksum = if bytes <= 16 { 4 + 17 + 6 } else { 4 + 21 + 7 };
            assert_eq!(length.data, fast.len() as u32 + stuff + checksum + 1);
        }
    }
}

/// Returns how long a frame with this identifier and data is, counted bit by bit.
fn counted(random: &mut Random, extended: bool, code: u8, bytes: u32) -> (u32, u32) {
    let (slow, fast) = bits(extended, code, bytes);
    let runs = random.one_in(2);
    let (mut last, mut run, mut kept) = (true, 0, false);
    let mut count = |part: &[Bit], random: &mut Random| {
        let mut length = 0;
        for bit in part {
            if run == 5 {
                (last, run, length) = (!last, 1, length + 1);
            }
            let level = match bit {
                Fixed(level) => *level,
                Free if runs && random.below(6) > 0 => kept,
                Free => random.one_in(2),
            };
            kept = if random.one_in(5) { !level } else { level };
            run = if level == last { run + 1 } else { 1 };
            (last, length) = (level, length + 1);
        }
        length
    };
    let (slow, fast) = (count(&slow, random), count(&fast, random));
    (slow + 9, fast + 1 + if bytes <= 16 { 27 } else { 32 })
}

#[test]
fn no_frame_is_longer_than_the_longest() {
    let mut random = Random::new(1);
    for _ in 0..40_000 {
        let (extended, code) = (random.one_in(2), random.below(16) as u8);
        let bytes = LENGTHS[usize::from(code)].0;
        let (slow, fast) = counted(&mut random, extended, code, bytes);
        let longest = FdLength::worst(extended, bytes);
        assert!(slow <= longest.nominal && fast <= longest.data, "{bytes}: {slow}, {fast}");
    }
}

#[test]
fn lengths_between_are_padded_and_rates_are_rounded_against_us() {
    let worst = |bytes| FdLength::worst(false, bytes);
    assert_eq!((worst(9), worst(33), worst(64)), (worst(12), worst(48), worst(999)));
    let rate = BitRate::new(500_000).unwrap();
    // 64 bytes at 500k and 2M: 707 bits and the interframe space without a switch, 403 us with it.
    let long = worst(64);
    assert_eq!((long.nominal - 2, long.data), (29, 678));
    assert_eq!(long.as_nominal(rate, 500_000), 31 + 678);
    assert_eq!(long.as_nominal(rate, 2_000_000), 31 + 170);
    assert_eq!(rate.time(u64::from(long.as_nominal(rate, 2_000_000) - 2 + 3)), Nanos(404_000));
}

/// A message of a random set: its frame as the analysis has it, and its exact times.
struct Stream {
    message: AnalysedMessage,
    /// Until the last bit, and until the next frame may begin.
    exact: (u64, u64),
}

/// Returns a random set of frames of both kinds, the most urgent first.
fn set(random: &mut Random, rate: BitRate, data_rate: u32) -> Vec<Stream> {
    let count = random.between(2, 8) as u32;
    let load = random.between(30, 95);
    let stream = |place: u32| {
        let (extended, is_fd) = (random.one_in(2), random.one_in(2));
        let bytes = random.below(if is_fd { 65 } else { 9 }) as u32;
        let id = match extended {
            true => ExtendedId::new(place << 18).unwrap().into(),
            false => StandardId::new(place as u16).unwrap().into(),
        };
        let length = FdLength::worst(extended, bytes);
        let (bits, exact) = match is_fd {
            true => {
                let slow = u64::from(length.nominal) * 1_000_000_000 / u64::from(rate.hertz());
                let fast = u64::from(length.data) * 1_000_000_000 / u64::from(data_rate);
                (length.as_nominal(rate, data_rate), slow + fast)
            }
            false => {
                let bits = diapason_can::wire::worst(extended, bytes);
                (bits, rate.time(bits.into()).0)
            }
        };
        let period = Nanos(exact * u64::from(count) * 100 / load * random.between(60, 160) / 100);
        let jitter = Nanos(if random.one_in(3) { random.below(period.0 / 2 + 1) } else { 0 });
        let message = AnalysedMessage { id, bits, period, jitter, deadline: Nanos::FOREVER };
        Stream { message, exact: (exact, exact + rate.time(3).0) }
    };
    (1..=count).map(stream).collect()
}

/// Returns the longest response of each stream in a life of a bus that serves the most urgent
/// first.
fn lived(random: &mut Random, streams: &[Stream], other: u64) -> Vec<u64> {
    let together = random.one_in(2);
    let critical = streams.iter().map(|stream| stream.message.jitter.0).max().unwrap_or(0);
    let mut comings: Vec<(u64, u64, usize)> = Vec::new();
    for (place, Stream { message, .. }) in streams.iter().enumerate() {
        let (period, jitter) = (message.period.0, message.jitter.0);
        let mut came = critical - jitter + if together { 0 } else { random.below(period) };
        for _ in 0..30 {
            // The first come as late as they may, and others follow at once.
            let late = if random.one_in(2) { 0 } else { random.below(jitter + 1) };
            comings.push(((came + late).max(critical), came, place));
            came += period;
        }
    }
    comings.sort_unstable();
    // A frame that is no message has just begun.
    let (mut now, mut longest) = (critical.saturating_sub(1) + other, vec![0; streams.len()]);
    while !comings.is_empty() {
        let waiting = (0..comings.len()).filter(|at| comings[*at].0 < now.max(comings[0].0 + 1));
        let Some(next) = waiting.min_by_key(|at| (comings[*at].2, comings[*at].1)) else { break };
        let (queued, came, place) = comings.remove(next);
        let begin = now.max(queued);
        let (through, free) = streams[place].exact;
        longest[place] = longest[place].max(begin + through - came);
        now = begin + free;
    }
    longest
}

#[test]
fn buses_with_frames_of_both_kinds_keep_their_bounds() {
    let (mut bounded, mut near) = (0, 0);
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let rate = BitRate::new([250_000, 500_000, 1_000_000][random.below(3) as usize]).unwrap();
        let data_rate = rate.hertz() * random.between(1, 8) as u32;
        let streams = set(&mut random, rate, data_rate);
        let messages: Vec<AnalysedMessage> = streams.iter().map(|stream| stream.message).collect();
        let other = FdLength::worst(true, 64);
        let other_bits = other.as_nominal(rate, data_rate);
        let blocks = rate.time(u64::from(other.nominal) + 3).0
            + u64::from(other.data) * 1_000_000_000 / u64::from(data_rate);
        let lived = lived(&mut random, &streams, blocks);
        for (index, longest) in lived.into_iter().enumerate() {
            let found = response(rate, &messages, index, Errors::NONE, other_bits);
            let Ok(bound) = found else { continue };
            assert!(longest <= bound.0, "seed {seed}, message {index}: {longest} > {bound}");
            bounded += 1;
            near += u64::from(longest * 100 >= bound.0 * 97);
        }
    }
    assert!(bounded > 10_000 && near > 1_000, "{bounded} bounds, {near} nearly met");
}
