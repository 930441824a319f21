//! Framebuffers of any numbers, and pages drawn into memory and read back.

use diapason_abi::archive::Refusal;
use diapason_abi::record::{Record, exit};
use diapason_screen::font::{FIRST, LAST};
use diapason_screen::frame::{CELL_HEIGHT, TAG_WORDS};
use diapason_screen::sheet::{Sheet, SheetContent, flags, of_name};
use diapason_screen::{Canvas, Framebuffer, Page, Pixel};
use proptest::prelude::*;

/// Memory as large as the framebuffer says. A write beyond it panics.
struct Memory(Vec<u8>);

impl Canvas for Memory {
    fn put(&mut self, pixel: Pixel) {
        for (at, byte) in (pixel.offset..).take(pixel.bytes as usize).zip(pixel.value.to_le_bytes())
        {
            self.0[usize::try_from(at).unwrap()] = byte;
        }
    }
}

/// A tag of multiboot2: address, pitch, width, height, bits of a pixel, kind.
fn tag(address: u64, [pitch, width, height]: [u32; 3], bits: u8, kind: u8) -> [u32; TAG_WORDS] {
    let [low, high] = [address as u32, (address >> 32) as u32];
    [8, 32, low, high, pitch, width, height, u32::from(bits) | u32::from(kind) << 8]
}

fn frame() -> Framebuffer {
    Framebuffer::of_tag(&tag(0xfd00_0000, [2_560 + 64, 640, 480], 32, 1)).unwrap()
}

fn memory(frame: &Framebuffer) -> Memory {
    Memory(vec![0; usize::try_from(frame.length()).unwrap()])
}

/// Reads a line back: of every cell, the character with the same dots.
fn read(frame: &Framebuffer, memory: &Memory, line: u32) -> String {
    let rows = usize::try_from(frame.length()).unwrap() / 480 * CELL_HEIGHT as usize;
    let strip = &memory.0[line as usize * rows..][..rows];
    let shape = |column: u32, byte: u8| {
        let mut one = Memory(vec![0; rows]);
        frame.draw(0, column, byte, &mut one);
        one.0
    };
    let mut text = String::new();
    for column in 0..frame.columns() {
        let from = column as usize * 24;
        let dots = |bytes: &[u8]| -> Vec<u8> {
            let rows = bytes.chunks(2_624);
            rows.flat_map(|row| row[from..from + 24].to_vec()).collect()
        };
        let seen = dots(strip);
        let found = (FIRST..=LAST).find(|byte| dots(&shape(column, *byte)) == seen);
        text.push(char::from(found.unwrap_or(0)));
    }
    text.trim_end().into()
}

fn sheet(known: u8) -> Vec<u8> {
    let content = SheetContent {
        flags: known,
        memory_mib: 64,
        cores: 2,
        system: "car",
        processes: &[("brakes", 0), ("radio", of_name::MAY_FAULT)],
        devices: &["usb"],
    };
    let mut bytes = Vec::new();
    content.write(&mut bytes);
    bytes
}

/// Returns all lines after these records and this end.
fn lines(known: u8, records: &[(Record, &[u64])], status: u8) -> Vec<String> {
    let (bytes, frame) = (sheet(known), frame());
    let mut memory = memory(&frame);
    let mut page = Page::new(frame, Sheet::read(&bytes).unwrap_or_default());
    page.begin(&mut memory);
    for (record, words) in records {
        page.note(*record, words, &mut memory);
    }
    page.end(status, &mut memory);
    (0..12).map(|line| read(&frame, &memory, line)).collect()
}

const ALL: u8 = flags::PROVED | flags::WHOLE;
const GOOD: [(Record, &[u64]); 3] = [
    (Record::Thread, &[0, 1, 0, 60, 3, 0, 2_000_000, 0]),
    (Record::Process, &[1, 4, 3, 0, 0]),
    (Record::End, &[100, 40, 7, 0, 0, 0, 0, 0]),
];

#[test]
fn a_run_that_holds_says_so_with_what_was_measured() {
    let said = lines(ALL, &GOOD, exit::FINISHED);
    assert_eq!(said[0], "DIAPASON  car");
    assert_eq!(said[2], "HOLDS: every promise was kept.");
    assert_eq!(said[3], "0.001 ms, idle 40 %, 7 kernel entries, 3 jobs");
    assert_eq!(said[5], "brakes.1: 3 jobs, 0 skipped, longest response 2.000 ms");
    let said = lines(flags::PROVED, &GOOD, exit::FINISHED);
    assert!(said[2].starts_with("NOT JUDGED HERE"), "{said:?}");
    assert!(said[6].contains("diapason decode"), "{said:?}");
    let said = lines(0, &GOOD, exit::FINISHED);
    assert!(said[0].contains("UNPROVED") && said[2].contains("UNPROVED"), "{said:?}");
}

#[test]
fn every_problem_breaks_the_verdict_and_has_its_line() {
    let cases: [(Record, &[u64], &str); 8] = [
        (Record::Thread, &[1, 2, 0, 0, 3, 2, 9, 0], "Deadlines missed by radio.2: 2"),
        (Record::Process, &[0, 2, 1, 0, 0], "Faults of brakes, which may not fault: 1"),
        (Record::Process, &[7, 2, 1, 0, 0], "Faults of #7, which may not fault: 1"),
        (Record::Refused, &[0, 7], "Program refused, of process brakes:"),
        (Record::LinesLost, &[1, 5], "Lines lost of process radio: 5"),
        (Record::ConsoleLost, &[9], "Records that found no room on the console: 9"),
        (Record::CoreStopped, &[1], "Stopped: core 1"),
        (Record::MachineCheck, &[1, 2, 3], "Broken hardware: bank 1, status 0x2, address 0x3"),
    ];
    for (record, words, sentence) in cases {
        let records = [&[(record, words)], &GOOD[..]].concat();
        let said = lines(ALL, &records, exit::FINISHED);
        assert_eq!(said[2], "BROKEN: 1 finding, said below.", "{said:?}");
        assert_eq!(said[5].trim_end_matches(' '), sentence);
    }
}

#[test]
fn a_refusal_says_what_is_missing_and_what_was_found() {
    let records: [(Record, &[u64]); 3] = [
        (Record::Memory, &[31 << 20, 0, 0]),
        (Record::Absent, &[0, 1]),
        (Record::ArchiveRefused, &[Refusal::Memory as u64]),
    ];
    let said = lines(ALL, &records, exit::NO_ARCHIVE);
    assert_eq!(said[2], "NOTHING STARTS.");
    assert_eq!(said[5], "Device is absent: usb");
    assert_eq!(said[6], "the machine has no such PCI function");
    assert_eq!(said[7], "the machine has too little memory for it");
    assert_eq!(said[8], "Memory: 64 MiB needed, 31 MiB found");
    let records: [(Record, &[u64]); 2] = [
        (Record::Acpi, &[0xf_0000, 1, 1, 0]),
        (Record::ArchiveRefused, &[Refusal::Processors as u64]),
    ];
    let said = lines(ALL, &records, exit::NO_ARCHIVE);
    assert_eq!(said[5], Refusal::Processors.text());
    assert_eq!(said[6], "Processors: 2 needed, 1 found");
    // A sentence that is longer than a line goes on in the next.
    let long: [(Record, &[u64]); 1] = [(Record::ArchiveRefused, &[Refusal::Unsteady as u64])];
    let said = lines(ALL, &long, exit::NO_ARCHIVE);
    assert_eq!(format!("{} {}", said[5], said[6]), Refusal::Unsteady.text());
}

#[test]
fn a_screen_that_is_full_says_that_there_is_more() {
    let late: (Record, &[u64]) = (Record::Thread, &[0, 0, 0, 0, 1, 1, 1, 0]);
    let (frame, bytes) = (frame(), sheet(ALL));
    let mut memory = memory(&frame);
    let mut page = Page::new(frame, Sheet::read(&bytes).unwrap());
    for _ in 0..100 {
        page.note(late.0, late.1, &mut memory);
    }
    let last = read(&frame, &memory, frame.lines() - 1);
    assert_eq!(last, "... and more, without room here");
}

fn any_tag() -> impl Strategy<Value = [u32; TAG_WORDS]> {
    let numbers = prop_oneof![0u32..5_000, any::<u32>()];
    let sizes = prop::array::uniform3(numbers);
    let bits = prop_oneof![Just(32u8), Just(24), Just(15), Just(16), any::<u8>()];
    let kind = prop_oneof![Just(1u8), Just(2), any::<u8>()];
    (any::<u64>(), sizes, bits, kind)
        .prop_map(|(address, sizes, bits, kind)| tag(address >> 8, sizes, bits, kind))
}

/// Checks that writes stay within the framebuffer.
struct Bounds(u64);

impl Canvas for Bounds {
    fn put(&mut self, pixel: Pixel) {
        assert!(pixel.offset + u64::from(pixel.bytes) <= self.0, "{pixel:?} of {}", self.0);
    }
}

proptest! {
    #[test]
    fn no_tag_leads_beyond_its_framebuffer(
        tag in any_tag(), length in any::<u64>(), byte in any::<u8>(), at in any::<[u32; 2]>()
    ) {
        let frames = Framebuffer::of_tag(&tag).into_iter();
        let cut = length >> (length % 64);
        for frame in frames.flat_map(|frame| [Some(frame), frame.within(cut)]).flatten() {
            prop_assert!(frame.address.checked_add(frame.length()).is_some());
            let (lines, columns) = (frame.lines(), frame.columns());
            let mut bounds = Bounds(frame.length());
            let places = [[0, 0], [lines - 1, columns - 1], at, [lines, 0], [0, columns]];
            if frame.scale() < 20 {
                for [line, column] in places {
                    frame.draw(line, column, byte, &mut bounds);
                }
            }
        }
        let cut = Framebuffer::of_tag(&tag).and_then(|frame| frame.within(cut));
        prop_assert!(cut.is_none_or(|frame| frame.length() <= length));
    }

    #[test]
    fn any_words_are_a_tag_or_none(words in any::<[u32; TAG_WORDS]>()) {
        if let Some(frame) = Framebuffer::of_tag(&words) {
            prop_assert!(frame.length() > 0);
        }
    }

    #[test]
    fn no_bytes_are_a_sheet_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(Sheet::read(&bytes), None);
    }

    #[test]
    fn any_record_is_taken(
        number in 0u64..64, words in prop::collection::vec(any::<u64>(), 0..12)
    ) {
        let Some(record) = Record::decode(number) else { return Ok(()) };
        let frame = frame();
        let mut bounds = Bounds(frame.length());
        let mut page = Page::new(frame, Sheet::default());
        page.note(record, &words, &mut bounds);
        page.end(exit::FINISHED, &mut bounds);
    }
}

#[test]
fn numbers_that_make_no_screen_are_refused() {
    let good = [2_560, 640, 480];
    let is = |address, sizes, bits, kind| {
        Framebuffer::of_tag(&tag(address, sizes, bits, kind)).is_some()
    };
    assert!(is(0xfd00_0000, good, 32, 1) && is(0xb_8000, [160, 80, 25], 16, 2));
    assert!(is(1 << 40, [1_920, 640, 480], 24, 1) && is(1 << 40, [1_280, 640, 480], 15, 1));
    // A palette, an unknown kind, pixels of other sizes.
    assert!(!is(1, good, 8, 0) && !is(1, good, 32, 3) && !is(1, good, 8, 1) && !is(1, good, 0, 1));
    // A row longer than the way to the next; too few columns, lines, or nothing at all.
    assert!(!is(1, [2_559, 640, 480], 32, 1) && !is(1, [2_560, 640, 20], 32, 1));
    assert!(!is(1, [400, 100, 480], 32, 1) && !is(1, [0; 3], 32, 1) && !is(0, good, 32, 1));
    // Products and sums that do not fit.
    assert!(!is(1, [u32::MAX, 1 << 31, 480], 32, 1) && !is(u64::MAX, good, 32, 1));
    assert!(!is((1 << 52) - 1, good, 32, 1));
}
