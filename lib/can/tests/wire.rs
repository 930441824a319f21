//! Frames on the wire, held against a slow implementation on text that shares nothing with ours.

use crate::support::{Draw, Random};
use diapason_can::decode::{acknowledged, decode};
use diapason_can::frame::{extended, standard};
use diapason_can::wire::{Contest, contest, encode, length, longest, shortest, unstuffed, worst};
use diapason_can::{CanFrame, FrameDecoder, WireError};

/// `value` as `width` binary digits.
fn digits(value: u64, width: usize) -> String {
    format!("{value:0width$b}")
}

/// Returns the remainder of polynomial division, on paper: XOR the divisor under each leading 1.
fn slow_crc(message: &str) -> String {
    let divisor = "1100010110011001";
    let mut work: Vec<u8> = message.bytes().chain([b'0'; 15]).collect();
    for at in 0..message.len() {
        if work[at] == b'1' {
            for (offset, digit) in divisor.bytes().enumerate() {
                work[at + offset] = if work[at + offset] == digit { b'0' } else { b'1' };
            }
        }
    }
    String::from_utf8(work[message.len()..].to_vec()).unwrap()
}

/// Stuffed text: look back at what was written.
fn slow_stuff(plain: &str) -> String {
    let mut out = String::new();
    for digit in plain.chars() {
        out.push(digit);
        // The first five are never all recessive: start of frame is dominant.
        if out.ends_with("00000") || out.ends_with("11111") {
            let run_of_stuffed = out.chars().rev().take_while(|d| *d == digit).count();
            assert_eq!(run_of_stuffed, 5);
            out.push(if digit == '0' { '1' } else { '0' });
        }
    }
    out
}

fn slow_plain(frame: &CanFrame) -> String {
    let (id, rtr) = (u64::from(frame.raw_id()), u64::from(frame.is_remote()));
    let mut plain = if frame.is_extended() {
        format!("0{}11{}{rtr}00", digits(id >> 18, 11), digits(id & 0x3ffff, 18))
    } else {
        format!("0{}{rtr}00", digits(id, 11))
    };
    plain += &digits(frame.code().into(), 4);
    for byte in frame.bytes() {
        plain += &digits((*byte).into(), 8);
    }
    let crc = slow_crc(&plain);
    plain + &crc
}

fn text(bits: impl Iterator<Item = bool>) -> String {
    bits.map(|bit| if bit { '1' } else { '0' }).collect()
}

#[test]
fn every_frame_is_as_on_paper() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let frame = random.frame();
        let plain = slow_plain(&frame);
        assert_eq!(text(unstuffed(&frame).iter()), plain);
        let wire = encode(&frame);
        assert_eq!(text(wire.bits.iter()), slow_stuff(&plain) + "1111111111");
        assert_eq!(
            text((0..wire.stuffed).filter(|at| !wire.is_stuff(*at)).map(|at| wire.bits.get(at))),
            plain
        );
    }
}

#[test]
fn golden_frames() {
    // Identifier, data, CRC and stuff bits as the slow implementation has them.
    let cases = [
        (CanFrame::data(standard(0x000).unwrap(), &[]), 0x0000, 6),
        (CanFrame::data(standard(0x555).unwrap(), &[0x55; 8]), 0x1b04, 1),
        (CanFrame::data(standard(0x7ff).unwrap(), &[0xff; 8]), 0x4c89, 15),
        (CanFrame::data(extended(0x1fff_ffff).unwrap(), &[0; 8]), 0x7da3, 20),
        (CanFrame::remote(standard(0x123).unwrap(), 8), 0x6f9a, 1),
    ];
    let cases = cases.map(|(frame, crc, stuff)| (frame.unwrap(), crc, stuff));
    for (frame, crc, stuff) in cases {
        let plain = slow_plain(&frame);
        let found = u64::from_str_radix(&plain[plain.len() - 15..], 2).unwrap();
        let bytes = frame.bytes().len() as u32;
        let extra = length(&frame) - shortest(frame.is_extended(), bytes);
        assert_eq!((found, extra), (crc, stuff), "{frame:?} {plain}");
    }
}

#[test]
fn what_is_sent_is_received() {
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let frame = random.frame();
        assert_eq!(decode(acknowledged(&encode(&frame)).iter()), Ok(frame));
        let alone = decode(encode(&frame).bits.iter());
        assert_eq!(alone, Err((encode(&frame).ack_slot(), WireError::Acknowledge)));
    }
}

#[test]
fn no_single_flip_goes_unnoticed_and_no_bits_panic() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let frame = random.frame();
        let bits: Vec<bool> = acknowledged(&encode(&frame)).iter().collect();
        for at in 0..bits.len() {
            let mut wrong = bits.clone();
            wrong[at] = !wrong[at];
            let got = decode(wrong.iter().copied());
            assert_ne!(got, Ok(frame));
            assert!(got.is_err(), "bit {at} of {frame:?} made {got:?}");
            assert!(decode(bits[..at].iter().copied()).is_err());
        }
    }
    for _ in 0..20_000 {
        let (mut word, mut decoder) = (random.bits(), FrameDecoder::new());
        for at in 0..200 {
            if at % 64 == 0 {
                word = random.bits() & random.bits() | random.bits();
            }
            if decoder.push(word >> (at % 64) & 1 != 0).is_err() {
                break;
            }
            assert!(decoder.frame().is_none_or(|frame| frame.bytes().len() <= 8));
        }
    }
}

#[test]
fn lengths_lie_between_the_closed_forms() {
    // Everything there is with at most one byte.
    for id in 0..0x800 {
        let id = standard(id).unwrap();
        assert!(length(&CanFrame::data(id, &[]).unwrap()) <= longest(false, 0));
        for byte in 0..=255 {
            let bits = length(&CanFrame::data(id, &[byte]).unwrap());
            assert!((shortest(false, 1)..=longest(false, 1)).contains(&bits));
        }
    }
    let mut random = Random::new(4);
    for _ in 0..50_000 {
        let frame = random.frame();
        let bytes = frame.bytes().len() as u32;
        let bounds = shortest(frame.is_extended(), bytes)..=longest(frame.is_extended(), bytes);
        assert!(bounds.contains(&length(&frame)), "{frame:?}");
    }
}

/// Returns the longest frame of all, by dynamic programming over (CRC register, level, run): every
/// identifier, every content, exactly.
fn reachable_maximum(extended: bool, remote: bool, code: u32) -> u32 {
    let bytes = if remote { 0 } else { code.min(8) };
    let mut plain: Vec<Option<bool>> = vec![Some(false)];
    plain.extend([None; 11]);
    if extended {
        plain.extend([Some(true); 2]);
        plain.extend([None; 18]);
    }
    plain.extend([Some(remote), Some(false), Some(false)]);
    plain.extend(digits(u64::from(code), 4).chars().map(|digit| Some(digit == '1')));
    plain.extend(vec![None; 8 * bytes as usize]);
    // State: register * 10 + level * 5 + run - 1; value: stuff bits so far, or -1.
    let step = |level: usize, run: usize, bit: usize| {
        let run = if bit == level { run + 1 } else { 1 };
        if run == 5 { (1 - bit, 1, 1) } else { (bit, run, 0) }
    };
    let mut best = vec![-1i32; 0x8000 * 10];
    // After start of frame: register 0, a run of one dominant bit.
    best[0] = 0;
    for fixed in &plain[1..] {
        let mut next = vec![-1i32; best.len()];
        for (state, value) in best.iter().enumerate().filter(|(_, value)| **value >= 0) {
            let (register, level, run) = (state / 10, state / 5 % 2, state % 5 + 1);
            for bit in [0usize, 1].into_iter().filter(|bit| fixed.is_none_or(|f| f == (*bit == 1)))
            {
                let feedback = bit ^ (register >> 14 & 1);
                let register = ((register << 1) & 0x7fff) ^ (0x4599 * feedback);
                let (level, run, stuffed) = step(level, run, bit);
                let to = &mut next[register * 10 + level * 5 + run - 1];
                *to = (*to).max(value + stuffed);
            }
        }
        best = next;
    }
    let ends = best.iter().enumerate().filter(|(_, value)| **value >= 0).map(|(state, value)| {
        let (register, mut level, mut run, mut stuff) =
            (state / 10, state / 5 % 2, state % 5 + 1, *value);
        for at in (0..15).rev() {
            let stuffed;
            (level, run, stuffed) = step(level, run, register >> at & 1);
            stuff += stuffed;
        }
        stuff as u32
    });
    shortest(extended, bytes) + ends.max().unwrap()
}

fn all_codes(extended: bool, bytes: u32) -> u32 {
    let codes = if bytes == 8 { 8..=15 } else { bytes..=bytes };
    let data = codes.map(|code| reachable_maximum(extended, false, code));
    let remote =
        (0..=15).filter(|_| bytes == 0).map(|code| reachable_maximum(extended, true, code));
    data.chain(remote).max().unwrap()
}

#[test]
#[ignore = "half a minute: every length, every code"]
fn every_longest_frame_there_is() {
    for extended in [false, true] {
        let found: Vec<u32> = (0..=8).map(|bytes| all_codes(extended, bytes)).collect();
        let stated: Vec<u32> = (0..=8).map(|bytes| worst(extended, bytes)).collect();
        assert_eq!(stated, found);
    }
}

#[test]
fn the_longest_frames_there_are() {
    for (extended, bytes) in [(false, 0), (false, 7), (false, 8), (true, 8)] {
        let found = reachable_maximum(extended, false, bytes);
        assert!(
            found <= worst(extended, bytes) && worst(extended, bytes) <= longest(extended, bytes)
        );
    }
    // With the interframe space: 133 bits, not the 135 of the closed form.
    assert_eq!((worst(false, 8), longest(false, 8)), (130, 132));
}

#[test]
fn arbitration_is_the_order_of_identifiers() {
    let mut random = Random::new(5);
    let mut clashes = 0;
    for _ in 0..20_000 {
        let frames: Vec<CanFrame> = (0..random.between(1, 6)).map(|_| random.frame()).collect();
        let wires: Vec<_> = frames.iter().map(encode).collect();
        let least = frames.iter().map(CanFrame::priority).min().unwrap();
        let equal: Vec<&CanFrame> =
            frames.iter().filter(|frame| frame.priority() == least).collect();
        match contest(&wires) {
            Contest::Won { by } => {
                assert_eq!(frames[by].priority(), least);
                assert!(equal.iter().all(|frame| **frame == frames[by]));
            }
            Contest::Clash { .. } => {
                clashes += 1;
                assert!(equal.iter().any(|frame| **frame != *equal[0]));
            }
        }
    }
    assert!(clashes > 100);
}
