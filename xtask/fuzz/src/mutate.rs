//! The changes of an input. Some take values that the code compared something with, so that a
//! magic number or a length is found soon.

use crate::corpus::INPUT_MAX;
use diapason_random::Random;

/// Two values that the code compared, and their width in bytes.
pub type Compared = (u64, u64, usize);

const EDGES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xfe, 0xff, b'\n', b' '];

/// Changes an input a few times. `others` are inputs to take parts from, `compared` values to put
/// in.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>, others: &[Vec<u8>], compared: &[Compared]) {
    for _ in 0..1 + random.below(4) {
        once(random, bytes, others, compared);
    }
    bytes.truncate(INPUT_MAX);
}

fn once(random: &mut Random, bytes: &mut Vec<u8>, others: &[Vec<u8>], compared: &[Compared]) {
    let at = random.index(bytes.len());
    let end = (at + 1 + random.index(8)).min(bytes.len());
    match random.below(12) {
        _ if bytes.is_empty() => bytes.push(random.bits() as u8),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.bits() as u8,
        2 => bytes[at] = random.pick(&EDGES),
        3 => bytes[at] = bytes[at].wrapping_add(random.pick(&[1, 255, 16, 240])),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => bytes.insert(at, random.bits() as u8),
        7 => {
            let part = bytes[at..end].to_vec();
            let to = random.index(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        8 | 9 if !others.is_empty() => {
            let other = &others[random.index(others.len())];
            splice(random, bytes, other);
        }
        _ if !compared.is_empty() => replace(random, bytes, compared),
        _ => bytes[at..end].fill(random.bits() as u8),
    }
}

/// Puts a part of another input somewhere: over what is there, or between.
fn splice(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let from = random.index(other.len());
    let most = random.pick(&[24, 24, 24, 256]);
    let length = (1 + random.index(most)).min(other.len() - from);
    let part = other[from..from + length].to_vec();
    let at = random.index(bytes.len() + 1);
    let end = if random.one_in(2) { (at + length).min(bytes.len()) } else { at };
    bytes.splice(at..end, part);
}

/// Looks for one side of a comparison in the input, and puts the other one there.
fn replace(random: &mut Random, bytes: &mut [u8], compared: &[Compared]) {
    for _ in 0..8 {
        let (left, right, width) = compared[random.index(compared.len())];
        let near = random.pick(&[0, 0, 0, 1, u64::MAX]);
        let (old, new) = if random.one_in(2) { (left, right) } else { (right, left) };
        let new = new.wrapping_add(near);
        let (mut old, mut new) = (old.to_le_bytes(), new.to_le_bytes());
        if random.one_in(3) {
            old[..width].reverse();
            new[..width].reverse();
        }
        // Narrow values are compared as wide ones, too.
        let wide = old[..width].iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let width = if random.one_in(2) { wide } else { width };
        let (old, new) = (&old[..width], &new[..width]);
        let places: Vec<usize> = bytes
            .windows(width)
            .enumerate()
            .filter_map(|(at, window)| (window == old).then_some(at))
            .collect();
        if !places.is_empty() && old != new {
            let at = random.pick(&places);
            bytes[at..at + width].copy_from_slice(new);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_was_compared_takes_the_place_of_the_other() {
        let mut random = Random::new(3);
        let found = (0..200).any(|_| {
            let mut bytes = vec![9, 0x34, 0x12, 9];
            replace(&mut random, &mut bytes, &[(0x1234, 0xabcd, 2)]);
            bytes == [9, 0xcd, 0xab, 9]
        });
        assert!(found);
    }

    #[test]
    fn any_input_can_be_changed_and_none_grows_without_end() {
        let mut random = Random::new(4);
        let mut bytes = Vec::new();
        let (mut longest, others) = (0, [vec![1; 300], vec![]]);
        for _ in 0..20_000 {
            mutate(&mut random, &mut bytes, &others, &[(1, 2, 1), (0, 7, 8)]);
            longest = longest.max(bytes.len());
        }
        assert!((64..=INPUT_MAX).contains(&longest), "{longest}");
    }
}
