//! Frames of CAN FD on the wire: against vectors, a slow implementation on text, and the bounds.

use crate::support::{Draw, Random};
use diapason_can::decode::{acknowledged, decode_any};
use diapason_can::fd::{AnyFrame, Checksum, FdFrame, FdLength, stuff_count};
use diapason_can::frame::{FrameRefusal, extended, standard};
use diapason_can::{FrameDecoder, WireError, decode};

/// Returns the remainder of polynomial division, on paper.
fn slow_crc(message: &str, divisor: &str, first: u32) -> String {
    let width = divisor.len() - 1;
    // The first value of the register is the same as other bits in front.
    let mut work: Vec<u8> =
        message.bytes().map(|digit| digit - b'0').chain(vec![0; width]).collect();
    for (at, digit) in format!("{first:0width$b}").bytes().enumerate() {
        work[at] ^= digit - b'0';
    }
    for at in 0..message.len() {
        if work[at] == 1 {
            for (offset, digit) in divisor.bytes().enumerate() {
                work[at + offset] ^= digit - b'0';
            }
        }
    }
    work[message.len()..].iter().map(|bit| char::from(b'0' + bit)).collect()
}

fn digits(value: u32, width: usize) -> String {
    format!("{value:0width$b}")
}

fn invert(digit: char) -> char {
    if digit == '0' { '1' } else { '0' }
}

/// Returns the stuffed part up to the data, and how many stuff bits are in it.
fn slow_stuffed(frame: &FdFrame) -> (String, usize) {
    let any = AnyFrame::from(*frame);
    let id = any.raw_id();
    let mut plain = match any.is_extended() {
        true => format!("0{}11{}0", digits(id >> 18, 11), digits(id & 0x3ffff, 18)),
        false => format!("0{}00", digits(id, 11)),
    };
    plain += "10";
    plain += &format!("{}{}", u8::from(frame.is_fast()), u8::from(frame.is_passive()));
    plain += &digits(frame.code().into(), 4);
    frame.bytes().iter().for_each(|byte| plain += &digits((*byte).into(), 8));
    let (mut out, mut stuffed) = (String::new(), 0);
    for digit in plain.chars() {
        if out.ends_with("00000") || out.ends_with("11111") {
            out.push(invert(out.chars().last().unwrap()));
            stuffed += 1;
        }
        out.push(digit);
    }
    (out, stuffed)
}

/// Returns the frame as it is transmitted.
fn slow_wire(frame: &FdFrame) -> String {
    let (mut wire, stuffed) = slow_stuffed(frame);
    let counts = ["0000", "0011", "0110", "0101", "1100", "1111", "1010", "1001"];
    let message = format!("{wire}{}", counts[stuffed % 8]);
    let (divisor, first) = match frame.bytes().len() {
        0..=16 => ("110110100001011011", 1 << 16),
        _ => ("1100000010100010011001", 1 << 20),
    };
    let check = format!("{}{}", counts[stuffed % 8], slow_crc(&message, divisor, first));
    for (at, digit) in check.chars().enumerate() {
        if at % 4 == 0 {
            wire.push(invert(wire.chars().last().unwrap()));
        }
        wire.push(digit);
    }
    wire + "1111111111"
}

fn text(bits: impl Iterator<Item = bool>) -> String {
    bits.map(|bit| if bit { '1' } else { '0' }).collect()
}

fn base(id: u32, data: &[u8]) -> FdFrame {
    FdFrame::new(standard(id).unwrap(), data).unwrap()
}

#[test]
fn checksums_of_a_known_text() {
    let check = |checksum: Checksum, first: u32| {
        let width = checksum.width() as usize;
        // A register that begins with 0 is one that sees its first value again.
        let bits: String = b"123456789".iter().map(|byte| digits((*byte).into(), 8)).collect();
        let mut begun: Vec<u8> = bits.bytes().map(|digit| digit - b'0').collect();
        for (at, digit) in format!("{first:0width$b}").bytes().enumerate() {
            begun[at] ^= digit - b'0';
        }
        let mut checksum = checksum;
        begun.into_iter().for_each(|bit| checksum.push(bit == 1));
        checksum.value()
    };
    assert_eq!(check(Checksum::SHORT, 1 << 16), 0x04f03);
    assert_eq!(check(Checksum::LONG, 1 << 20), 0x0e_d841);
    let counts = [0, 3, 6, 5, 0xc, 0xf, 0xa, 9, 0];
    assert!((0..).zip(counts).all(|(stuffed, count)| stuff_count(stuffed) == count));
}

/// A frame, its bits at the two rates, and its stuff bits and checksum.
type Vector = (FdFrame, u32, u32, usize, u32);

fn vectors() -> [Vector; 6] {
    let twelve = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc];
    let long: Vec<u8> = (0..64).collect();
    let extended = FdFrame::new(extended(0x1234_5678).unwrap(), &long).unwrap();
    [
        (base(0x123, &[]), 60, 0, 1, 0x0515a),
        (base(0x555, &[0x1f]).with_fast(true), 26, 41, 0, 0x10716),
        (base(0x123, &twelve).with_fast(true), 26, 129, 0, 0x0c893),
        (base(0, &[0; 16]).with_fast(true), 28, 186, 27, 0x17ec7),
        (base(0x7ff, &[0xff; 20]).with_fast(true), 28, 230, 34, 0x0_7446a),
        (extended.with_fast(true).with_passive(true), 45, 576, 26, 0x18_e2a9),
    ]
}

#[test]
fn frames_have_the_bits_of_the_vectors() {
    for (frame, slow, fast, stuffed, crc) in vectors() {
        let wire = frame.encode();
        assert_eq!((wire.bits.len() - wire.fast_bits(), wire.fast_bits()), (slow, fast));
        assert_eq!(slow_stuffed(&frame).1, stuffed, "{frame:?}");
        // The checksum without its fixed stuff bits.
        let bits = text(wire.bits.iter());
        let width = Checksum::of(frame.bytes().len()).width() as usize;
        let all = 4 + width;
        let check = &bits[wire.stuffed as usize - all - all.div_ceil(4)..wire.stuffed as usize];
        let plain = check.chars().enumerate().filter(|(at, _)| at % 5 != 0);
        let plain: String = plain.map(|(_, digit)| digit).collect();
        assert_eq!(u32::from_str_radix(&plain[4..], 2), Ok(crc));
    }
    let first = "000100100011001000001001001100010110001101011101001011111111";
    assert_eq!(text(acknowledged(&base(0x123, &[]).encode()).iter()), first);
}

#[test]
fn frames_are_what_the_slow_implementation_says_and_are_read_back() {
    let mut random = Random::new(7);
    for _ in 0..4_000 {
        let frame = random.fd_frame();
        let wire = frame.encode();
        assert_eq!(text(wire.bits.iter()), slow_wire(&frame), "{frame:?}");
        let longest =
            FdLength::worst(AnyFrame::from(frame).is_extended(), frame.bytes().len() as u32);
        if frame.is_fast() {
            assert!(wire.fast_bits() <= longest.data);
            assert!(wire.bits.len() - wire.fast_bits() + 2 <= longest.nominal);
        }
        assert!(wire.bits.len() + 2 <= longest.nominal + longest.data);
        assert_eq!(decode_any(acknowledged(&wire).iter()), Ok(AnyFrame::Fd(frame)));
        let classic = random.frame();
        let wire = diapason_can::wire::encode(&classic);
        assert_eq!(decode_any(acknowledged(&wire).iter()), Ok(AnyFrame::Classic(classic)));
    }
}

#[test]
fn one_wrong_bit_is_found() {
    let mut random = Random::new(11);
    for _ in 0..3_000 {
        let wire = random.fd_frame().encode();
        let mut bits: Vec<bool> = acknowledged(&wire).iter().collect();
        let at = random.below(u64::from(wire.stuffed) + 9) as usize;
        // Where FDF is flipped the frame is a classic one, which is found out later.
        bits[at] = !bits[at];
        assert!(decode_any(bits.iter().copied()).is_err(), "bit {at}");
        assert!(decode_any(bits[..at].iter().copied()).is_err());
    }
}

#[test]
fn any_bits_get_an_answer() {
    let mut random = Random::new(13);
    for _ in 0..20_000 {
        let many = random.below(800);
        let bits: Vec<bool> = (0..many).map(|at| at > 0 && random.one_in(2)).collect();
        let _ = decode_any(bits.iter().copied());
    }
    // With a header that is right, more than the header is looked at.
    for _ in 0..5_000 {
        let wire = random.fd_frame().encode();
        let keep = 30 + random.below(60) as usize;
        let mut bits: Vec<bool> = wire.bits.iter().take(keep).collect();
        bits.extend((0..700).map(|_| random.one_in(2)));
        let _ = decode_any(bits);
    }
}

#[test]
fn classic_decoders_do_not_read_them_and_receivers_that_refuse_say_where() {
    let wire = base(0x123, &[1, 2, 3]).encode();
    assert!(decode(acknowledged(&wire).iter()).is_err());
    let mut decoder = FrameDecoder::supporting(diapason_can::fd::FdSupport::Refuses);
    let results: Vec<_> = wire.bits.iter().map(|bit| decoder.push(bit)).collect();
    // Start of frame, identifier, RRS, IDE, then the bit itself; 0x123 has no stuff bit so far.
    assert_eq!(results.iter().position(|result| *result == Err(WireError::Form)), Some(14));
}

#[test]
fn lengths_that_no_frame_has_are_refused() {
    let nine = FdFrame::new(standard(1).unwrap(), &[0; 9]).unwrap_err();
    assert_eq!(nine, FrameRefusal::FdLength { bytes: 9 });
    assert!(nine.to_string().contains("12, 16, 20"));
    assert!(FdFrame::new(standard(1).unwrap(), &[0; 65]).is_err());
}
