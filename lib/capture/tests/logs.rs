//! Logs in Vector's formats: what is written is read, real lines are read, and what cannot be read
//! is refused with its place.

mod support;

use diapason_abi::Nanos;
use diapason_can::candump::{self, LineContent};
use diapason_can::frame::{extended, standard};
use diapason_can::{CanFrame, FdFrame};
use diapason_capture::asc::{self, AscError, AscReader, AscTrouble};
use diapason_capture::blf::{self, BlfError, BlfTrouble, BlfWriter, CONTENT_MAX, HEADER_BYTES};
use diapason_capture::log::{LogEntry, LogFormat, as_candump};
use support::{Random, entry, log};

fn data(id: u32, bytes: &[u8]) -> LineContent {
    LineContent::Frame(CanFrame::data(standard(id).unwrap(), bytes).unwrap().into())
}

/// Returns the entries of a file.
fn lines(text: &str) -> Vec<LogEntry> {
    let mut reader = AscReader::default();
    text.lines().filter_map(|line| reader.line(line).unwrap()).collect()
}

#[test]
fn lines_of_real_asc_files() {
    let long = CanFrame::data(extended(0x1abc_de00).unwrap(), &[7]).unwrap();
    let remote = CanFrame::remote(standard(0x64).unwrap(), 4).unwrap();
    let coded = CanFrame::data(standard(1).unwrap(), &[9; 8]).unwrap().with_code(12).unwrap();
    let cases = [
        ("   2.501000 1  64              Rx   d 2 01 ff", 1, data(0x64, &[1, 255])),
        (
            "0.5 2 1ABCDE00x Tx d 1 07 Length = 240000 BitCount = 124",
            2,
            LineContent::Frame(long.into()),
        ),
        ("1.0 1 64 Rx r 4 Length = 0", 1, LineContent::Frame(remote.into())),
        ("1.0 3 1 Rx d C 09 09 09 09 09 09 09 09", 3, LineContent::Frame(coded.into())),
        ("1.0 1 64 RX D 0", 1, data(0x64, &[])),
        (
            "4.876870 2  ErrorFrame ECC: 10100010",
            2,
            LineContent::Error { class: 0x80, details: [0; 8] },
        ),
    ];
    for (line, channel, report) in cases {
        let entry = AscReader::default().line(line).unwrap().expect(line);
        assert_eq!((entry.channel, entry.report), (channel, report), "{line}");
    }
    assert_eq!(lines("2.000000001 1 1 Rx d 0")[0].time, Nanos(2_000_000_001));
    let remote = AscReader::default().line("1.0 1 64 Rx r").unwrap().unwrap();
    assert_eq!(
        remote.report,
        LineContent::Frame(CanFrame::remote(standard(0x64).unwrap(), 0).unwrap().into())
    );
}

#[test]
fn lines_about_anything_else_are_passed_over() {
    let text = format!(
        "{}// a comment\n\n   2.8 1  Statistic: D 0 R 0 XD 0\n   3.0 log trigger event\n\
         1.5 J1939TP FEE3p 6 0 0 - Rx d 23 A0 0F\n 1.6 SV: 3 0 1 ::x = 1\n\
         1.7 L1 12 Rx 2 1 2\n 1.8 1 123 TxRq d 0\n 1.9 1 CAN Status:chip status error active\n{}",
        asc::HEADER,
        asc::FOOTER
    );
    assert_eq!(lines(&text), []);
}

#[test]
fn the_header_says_how_numbers_and_times_are_written() {
    let decimal = "base dec  timestamps relative\n0.5 1 100 Rx d 2 10 255\n0.5 log x\n\
                   0.5 1 17x Rx d 9 1 1 1 1 1 1 1 1\n";
    let [first, second] = lines(decimal)[..] else { panic!() };
    assert_eq!((first.time, first.report), (Nanos(500_000_000), data(100, &[10, 255])));
    let LineContent::Frame(frame) = second.report else { panic!() };
    assert_eq!((second.time, frame.raw_id(), frame.code()), (Nanos(1_500_000_000), 17, 9));
}

#[test]
fn asc_lines_are_refused_with_the_place_of_the_mistake() {
    let cases = [
        ("base oct", 5, AscTrouble::Base),
        ("1,5 1 1 Rx d 0", 0, AscTrouble::Time),
        ("1.1234567890 1 1 Rx d 0", 0, AscTrouble::Time),
        ("99999999999.0 1 1 Rx d 0", 0, AscTrouble::TimeTooLarge),
        ("1.0 0 1 Rx d 0", 4, AscTrouble::Channel),
        ("1.0 65536 1 Rx d 0", 4, AscTrouble::Channel),
        ("1.0 CANFD 1 Rx 123 1 0 9 12 11", 30, AscTrouble::Data),
        ("1.0 1 800 Rx d 0", 6, AscTrouble::Identifier),
        ("1.0 1 20000000x Rx d 0", 6, AscTrouble::Identifier),
        ("1.0 1 Motor Rx d 0", 6, AscTrouble::Identifier),
        ("1.0 1 +1 Rx d 0", 6, AscTrouble::Identifier),
        ("1.0 1 1 Rx x 0", 11, AscTrouble::Kind),
        ("1.0 1 1 Rx", 10, AscTrouble::Kind),
        ("1.0 1 1 Rx d 10", 13, AscTrouble::Code),
        ("1.0 1 1 Rx d", 12, AscTrouble::Code),
        ("1.0 1 1 Rx d 2 11", 17, AscTrouble::Data),
        ("1.0 1 1 Rx d 1 111", 15, AscTrouble::Data),
    ];
    for (line, at, what) in cases {
        let error = AscReader::default().line(line).expect_err(line);
        assert_eq!((error.at, error.what), (at, what), "{line}");
        assert!(error.to_string().starts_with(&format!("column {}: ", error.at + 1)));
    }
}

/// Returns the bytes of a file with these entries.
fn written(entries: &[LogEntry]) -> Vec<u8> {
    let mut writer = BlfWriter::default();
    let mut containers: Vec<u8> = entries.iter().filter_map(|e| writer.put(e)).flatten().collect();
    let (last, header) = writer.finish();
    containers.extend(last.into_iter().flatten());
    let file = [&header[..], &containers].concat();
    assert_eq!(file[16..24], (file.len() as u64).to_le_bytes());
    file
}

fn read(file: &[u8]) -> Result<Vec<LogEntry>, BlfError> {
    let mut entries = Vec::new();
    let whole = blf::read(file, &mut |entry| {
        entries.push(entry);
        true
    })?;
    assert!(whole);
    Ok(entries)
}

#[test]
fn whatever_is_written_is_read_in_both_formats() {
    let mut random = Random::new(3);
    for count in [0, 1, 2, 100, 10_000] {
        let entries = log(&mut random, count);
        let text: String = entries.iter().map(asc::line).collect();
        let text = [asc::HEADER, &text, asc::FOOTER].concat();
        assert_eq!(lines(&text), entries);
        let file = written(&entries);
        assert!(count < 10_000 || file.len() > HEADER_BYTES + (128 << 10), "several containers");
        assert_eq!(read(&file).as_ref(), Ok(&entries));
        // The same in the words of candump, which knows what is in which file.
        let formats = [(LogFormat::Asc, text.as_bytes()), (LogFormat::Blf, &file)];
        for (format, bytes) in formats {
            assert_eq!(LogFormat::of(bytes), format);
            let log = as_candump(format, bytes, &text).unwrap();
            assert_eq!(log.lines().count(), count);
            for (line, entry) in log.lines().zip(&entries) {
                let record = candump::parse(line).unwrap();
                assert_eq!((record.time, record.report), (entry.time, entry.report));
                assert_eq!(record.interface, format!("can{}", entry.channel - 1));
            }
            assert!(count == 0 || LogFormat::of(log.as_bytes()) == LogFormat::Candump);
        }
    }
}

/// Returns a container of these contents without compression, or with a wrong kind of it.
fn container(contents: &[u8], compression: u16) -> Vec<u8> {
    let size = 32 + contents.len() as u32;
    let mut bytes = b"LOBJ\x10\0\x01\0".to_vec();
    [size, 10].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(compression.to_le_bytes());
    bytes.extend([0; 6]);
    bytes.extend((contents.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(contents);
    bytes
}

/// Returns the object of a message with this unit of time, channel, identifier and data length
/// code.
fn object(kind: u32, unit: u32, channel: u16, id: u32, code: u8) -> Vec<u8> {
    let mut bytes = b"LOBJ\x20\0\x01\0".to_vec();
    [48, kind, unit, 0].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(7u64.to_le_bytes());
    bytes.extend(channel.to_le_bytes());
    bytes.extend([0, code]);
    bytes.extend(id.to_le_bytes());
    bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
    bytes
}

fn file(parts: &[Vec<u8>]) -> Vec<u8> {
    [BlfWriter::default().header().to_vec(), parts.concat()].concat()
}

#[test]
fn objects_go_on_from_one_container_to_the_next() {
    // Two messages, with something else of odd length and padding between them.
    let mut other = b"LOBJ\x10\0\x01\0".to_vec();
    [19u32, 96].iter().for_each(|word| other.extend(word.to_le_bytes()));
    other.extend([1, 2, 3, 0, 0, 0]);
    let contents = [object(1, 2, 1, 0x12, 2), other, object(86, 1, 2, 0x13, 1)].concat();
    let wanted = [
        LogEntry { time: Nanos(7), channel: 1, report: data(0x12, &[1, 2]) },
        LogEntry { time: Nanos(70_000), channel: 2, report: data(0x13, &[1]) },
    ];
    for cut in 0..=contents.len() {
        let (first, second) = contents.split_at(cut);
        let parts = [container(first, 0), container(second, 0)];
        assert_eq!(read(&file(&parts)).as_deref(), Ok(&wanted[..]), "{cut}");
    }
    let taken = blf::read(&file(&[container(&contents, 0)]), &mut |_| false);
    assert_eq!(taken, Ok(false));
}

#[test]
fn blf_files_are_refused_with_the_place_of_the_mistake() {
    let good = object(1, 2, 1, 0x12, 2);
    let inside = |object: Vec<u8>| file(&[container(&[good.clone(), object].concat(), 0)]);
    let huge = {
        let mut bytes = container(&[], 0);
        bytes[8..12].copy_from_slice(&(CONTENT_MAX as u32 + 1).to_le_bytes());
        bytes
    };
    let bomb = {
        let mut bytes = container(&[0; 8], 2);
        bytes[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes
    };
    let small = {
        let mut bytes = good.clone();
        bytes[8..12].copy_from_slice(&40u32.to_le_bytes());
        bytes.truncate(40);
        bytes
    };
    let cases = [
        (b"LOGG".to_vec(), 0, None, BlfTrouble::Header),
        (file(&[b"LOBX".to_vec()]), 144, None, BlfTrouble::Object),
        (file(&[b"LOBJ".to_vec()]), 144, None, BlfTrouble::Cut),
        (file(&[huge]), 144, None, BlfTrouble::TooLarge),
        (file(&[bomb]), 144, None, BlfTrouble::TooLarge),
        (file(&[container(&good, 2)]), 144, None, BlfTrouble::Zlib),
        (file(&[container(&good, 7)]), 144, None, BlfTrouble::Compression(7)),
        (file(std::slice::from_ref(&good)), 144, None, BlfTrouble::Outside),
        (file(&[container(&good[..47], 0)]), 223, Some(0), BlfTrouble::Cut),
        (inside(vec![1; 20]), 144, Some(48), BlfTrouble::Object),
        (inside(small), 144, Some(48), BlfTrouble::Size),
        (inside(object(1, 3, 1, 1, 0)), 144, Some(48), BlfTrouble::Unit(3)),
        (inside(object(1, 2, 0, 1, 0)), 144, Some(48), BlfTrouble::Channel),
        (inside(object(1, 2, 1, 0x800, 0)), 144, Some(48), BlfTrouble::Identifier),
        (inside(object(1, 2, 1, 0xa000_0000, 0)), 144, Some(48), BlfTrouble::Identifier),
        (inside(object(1, 2, 1, 1, 16)), 144, Some(48), BlfTrouble::Code(16)),
        (inside(object(100, 2, 1, 1, 9)), 144, Some(48), BlfTrouble::Size),
        (inside(object(101, 2, 1, 1, 9)), 144, Some(48), BlfTrouble::Size),
    ];
    for (bytes, at, inside, what) in cases {
        let error = read(&bytes).unwrap_err();
        assert_eq!(error, BlfError { at, inside, what });
        assert!(error.to_string().starts_with(&format!("byte {at}")), "{error}");
    }
}

/// Returns an object for CAN FD of this kind, with a body.
fn fd_object(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut object = object(kind, 2, 1, 1, 0);
    object.truncate(32);
    object.extend_from_slice(body);
    let size = object.len() as u32;
    object[8..12].copy_from_slice(&size.to_le_bytes());
    object
}

#[test]
fn objects_of_can_fd_are_read() {
    let mut older = vec![0; 84];
    older[..8].copy_from_slice(&[2, 0, 0, 9, 0x23, 1, 0, 0x80]);
    (older[13], older[14]) = (1 | 2, 12);
    (20..32).for_each(|at| older[at] = at as u8);
    let data: Vec<u8> = (20..32).collect();
    let long = FdFrame::new(extended(0x123).unwrap(), &data).unwrap().with_fast(true);
    let entry = |object: Vec<u8>| read(&file(&[container(&object, 0)])).map(|all| all[0]);
    let first = entry(fd_object(100, &older)).unwrap();
    assert_eq!((first.channel, first.report), (2, LineContent::Frame(long.into())));
    let mut newer = vec![0; 40];
    newer[..8].copy_from_slice(&[2, 9, 12, 0, 0x23, 1, 0, 0x80]);
    newer[12..16].copy_from_slice(&0x3000u32.to_le_bytes());
    newer.extend(&data);
    assert_eq!(entry(fd_object(101, &newer)).unwrap().report, first.report);
    // Without the flag it is a classic frame on a bus that has both.
    (older[3], older[13], older[14]) = (2, 0, 2);
    let short = CanFrame::data(extended(0x123).unwrap(), &[20, 21]).unwrap();
    let classic = entry(fd_object(100, &older)).unwrap().report;
    assert_eq!(classic, LineContent::Frame(short.into()));
    (older[2], newer[12], newer[13]) = (0x80, 4 << 2, 0);
    let remote = |code| CanFrame::remote(extended(0x123).unwrap(), code).unwrap();
    let asked = [entry(fd_object(100, &older)), entry(fd_object(101, &newer))];
    let asked = asked.map(|entry| entry.unwrap().report);
    assert_eq!(asked, [2, 9].map(|code| LineContent::Frame(remote(code).into())));
    (newer[2], newer[13]) = (11, 0x30);
    let wrong = entry(fd_object(101, &newer)).unwrap_err();
    assert_eq!(wrong.what, BlfTrouble::Length { code: 9, bytes: 11 });
    for cut in 0..newer.len() {
        assert!(entry(fd_object(101, &newer[..cut])).is_err());
    }
}

#[test]
fn lines_of_can_fd_are_read() {
    let entry = |line: &str| AscReader::default().line(line);
    let data = "11 22 33 44 55 66 77 88 99 AA BB CC";
    let long = "0.5 CANFD 3 Rx 123x Engine_1 1 0 9 12";
    let flags = "102203 155 303000 bd 50a00250 50a00250 20000f08 2001040a";
    let frame = FdFrame::new(
        extended(0x123).unwrap(),
        &[0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc],
    );
    let frame = frame.unwrap().with_fast(true);
    for line in [format!("{long} {data} {flags}"), format!("{long} {data}")] {
        let entry = entry(&line).unwrap().unwrap();
        assert_eq!((entry.channel, entry.report), (3, LineContent::Frame(frame.into())), "{line}");
    }
    let classic = entry("0.5 CANFD 1 Tx 64 0 0 2 2 01 ff 0 0 0").unwrap().unwrap();
    assert_eq!(classic.report, self::data(0x64, &[1, 255]));
    let remote = entry("0.5 CANFD 1 Tx 64 0 0 4 0 0 0 10").unwrap().unwrap().report;
    let asked = CanFrame::remote(standard(0x64).unwrap(), 4).unwrap();
    assert_eq!(remote, LineContent::Frame(asked.into()));
    assert_eq!(entry("0.5 CANFD 1 TxRq 64 0 0 0 0"), Ok(None));
    let error = entry("0.5 CANFD 1 Rx ErrorFrame 1").unwrap().unwrap().report;
    assert!(matches!(error, LineContent::Error { .. }));
    let wrong = [
        ("0.5 CANFD 0 Rx 64 0 0 0 0", 10, AscTrouble::Channel),
        ("0.5 CANFD 1 Rx 800 0 0 0 0", 15, AscTrouble::Identifier),
        ("0.5 CANFD 1 Rx 64 2 0 0 0", 18, AscTrouble::Switch),
        ("0.5 CANFD 1 Rx 64 0 0 g 0", 22, AscTrouble::Code),
        ("0.5 CANFD 1 Rx 64 0 0 9 65", 24, AscTrouble::Length),
        ("0.5 CANFD 1 Rx 64 0 0 9 1 00", 24, AscTrouble::Length),
        ("0.5 CANFD 1 Rx 64 0 0 1 1 xx", 26, AscTrouble::Data),
    ];
    for (line, at, what) in wrong {
        assert_eq!(entry(line), Err(AscError { at, what }), "{line}");
    }
}

#[test]
fn the_format_of_a_log_is_known_by_its_beginning() {
    let of = |text: &str| LogFormat::of(text.as_bytes());
    for text in ["date Mon\n", "\n  Date x", "// version 8\n", "base hex", "no internal events"] {
        assert_eq!(of(text), LogFormat::Asc, "{text}");
    }
    for text in ["", "(1.0) can0 123#", "dated", "baseball", "nothing"] {
        assert_eq!(of(text), LogFormat::Candump, "{text}");
    }
}

#[test]
fn damage_is_refused_or_read_and_nothing_panics() {
    let mut random = Random::new(5);
    let symbols: Vec<char> = "0123456789.xXdrRT \tabcäJ:/".chars().collect();
    let entries = log(&mut random, 40);
    let good = written(&entries);
    for _ in 0..6_000 {
        let line = asc::line(&entry(&mut random, Nanos::ZERO));
        let mut damaged: Vec<char> = line.chars().collect();
        for _ in 0..random.between(1, 4) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = symbols[random.below(symbols.len() as u64) as usize];
        }
        let damaged: String = damaged.into_iter().collect();
        if let Err(error) = AscReader::default().line(&damaged) {
            assert!(error.at <= damaged.len());
        }
        let mut file = good.clone();
        for _ in 0..random.between(1, 6) {
            let at = random.below(file.len() as u64) as usize;
            file[at] = random.bits() as u8;
        }
        file.truncate(random.between(0, 2 * good.len() as u64) as usize);
        let _ = read(&file);
        // Damage without compression reaches the objects.
        let contents: Vec<u8> = (0..3).flat_map(|n| object(1 + n, 2, 1, n, 3)).collect();
        let mut plain = file_of(&contents);
        let at = random.between(HEADER_BYTES as u64, plain.len() as u64 - 1) as usize;
        plain[at] ^= random.bits() as u8;
        let _ = read(&plain);
    }
}

fn file_of(contents: &[u8]) -> Vec<u8> {
    file(&[container(contents, 0)])
}
