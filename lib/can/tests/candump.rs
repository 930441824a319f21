//! Logs: what is written is read, what is not a log is refused with its place.

use crate::support::{Draw, Random};
use diapason_abi::Nanos;
use diapason_can::candump::{LineContent, LogLine, LogTrouble, parse};
use diapason_can::frame::{extended, standard};
use diapason_can::{AnyFrame, CanFrame};

#[test]
fn lines_of_real_logs() {
    let line = "(1436509052.249713) vcan0 044#2A366C2BBA";
    let record = parse(line).unwrap();
    let frame = CanFrame::data(standard(0x44).unwrap(), &[0x2a, 0x36, 0x6c, 0x2b, 0xba]).unwrap();
    assert_eq!(record.report, LineContent::Frame(frame.into()));
    assert_eq!((record.time, record.interface), (Nanos(1_436_509_052_249_713_000), "vcan0"));
    assert_eq!(record.to_string(), line);
    let dotted = parse(" (0000000001.5) can1  1ABCDE00#02.01.0d T\r\n").unwrap();
    let frame = CanFrame::data(extended(0x1abc_de00).unwrap(), &[2, 1, 13]).unwrap();
    assert_eq!(
        (dotted.time, dotted.report),
        (Nanos(1_500_000_000), LineContent::Frame(frame.into()))
    );
    // As Linux writes and as cansend takes them.
    let long = parse("(1.0) can0 123##5112233445566778899AABBCC").unwrap();
    let LineContent::Frame(AnyFrame::Fd(frame)) = long.report else { panic!() };
    assert_eq!((frame.bytes().len(), frame.is_fast(), frame.is_passive()), (12, true, false));
    assert_eq!(parse("(1.0) can0 123##1112233445566778899AABBCC").unwrap(), long);
    assert_eq!(long.to_string(), "(0000000001.000000) can0 123##5112233445566778899AABBCC");
    let error = parse("(1.000000001) can0 20000080#0000000000000000").unwrap();
    assert_eq!(error.report, LineContent::Error { class: 0x80, details: [0; 8] });
    assert_eq!(error.to_string(), "(0000000001.000000001) can0 20000080#0000000000000000");
}

#[test]
fn refusals_say_what_and_where() {
    let cases = [
        ("", 0, LogTrouble::Time),
        ("(1)", 2, LogTrouble::Time),
        ("(1.1234567890) can0 1#", 1, LogTrouble::Time),
        ("(99999999999.0) can0 123#", 1, LogTrouble::TimeTooLarge),
        ("(1.0)", 5, LogTrouble::Interface),
        ("(1.0) can0", 10, LogTrouble::Interface),
        ("(1.0) can0 123", 14, LogTrouble::Separator),
        ("(1.0) can0 1234#", 11, LogTrouble::Identifier),
        ("(1.0) can0 800#", 11, LogTrouble::IdentifierTooLarge { id: 0x800, max: 0x7ff }),
        ("(1.0) can0 123##8", 16, LogTrouble::Flags),
        ("(1.0) can0 123##", 16, LogTrouble::Flags),
        ("(1.0) can0 123##1112233445566778899", 17, LogTrouble::FdLength { bytes: 9 }),
        ("(1.0) can0 123##11_9", 17, LogTrouble::Data),
        ("(1.0) can0 123#123", 17, LogTrouble::Data),
        ("(1.0) can0 123#112233445566778899", 31, LogTrouble::DataTooLong),
        ("(1.0) can0 123#R99", 18, LogTrouble::Code),
        ("(1.0) can0 123#11_9", 19, LogTrouble::Code),
        ("(1.0) can0 123#11 X", 18, LogTrouble::Rest),
    ];
    for (line, at, what) in cases {
        let error = parse(line).unwrap_err();
        assert_eq!((error.at, error.what), (at, what), "{line}");
        assert!(error.to_string().starts_with(&format!("column {}: ", at + 1)));
    }
}

#[test]
fn whatever_is_written_is_read_and_nothing_panics() {
    let mut random = Random::new(7);
    let symbols: Vec<char> = "(0123456789.)ABCDEFabcdef#_RT \tvxän".chars().collect();
    for _ in 0..40_000 {
        let report = match random.below(10) {
            0 => LineContent::Error {
                class: random.bits() as u32 & 0x1fff_ffff,
                details: random.bits().to_le_bytes(),
            },
            1..=3 => LineContent::Frame(random.fd_frame().into()),
            _ => LineContent::Frame(random.frame().into()),
        };
        let time = if random.one_in(2) { random.bits() } else { random.bits() / 1_000 * 1_000 };
        let record = LogLine { time: Nanos(time), interface: "can0", report };
        let line = record.to_string();
        assert_eq!(parse(&line), Ok(record), "{line}");
        // A line with a few symbols changed is read as something that is written and read again.
        let mut damaged: Vec<char> = line.chars().collect();
        for _ in 0..random.between(1, 3) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = symbols[random.below(symbols.len() as u64) as usize];
        }
        let damaged: String = damaged.into_iter().collect();
        match parse(&damaged) {
            Ok(record) => assert_eq!(parse(&record.to_string()), Ok(record), "{damaged}"),
            Err(error) => assert!(error.at <= damaged.len()),
        }
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.bits() as u8).collect();
        let _ = parse(&String::from_utf8_lossy(&noise));
    }
}
