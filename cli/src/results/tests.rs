//! Sticks in every state that they may come back in.

use super::*;
use diapason_contract::results::{PARTITION, TEXT};
use proptest::prelude::*;
use std::io::Cursor;

/// The sector of the header on the sticks of these tests.
const START: usize = 3;
const IMAGE: u32 = 0x1234_5678;

/// A stick with a partition of so many blocks.
fn empty(blocks: u32) -> Vec<Sector> {
    let mut sectors = vec![[0; SECTOR]; START + 1 + blocks as usize];
    sectors[0][510..].copy_from_slice(&[0x55, 0xaa]);
    sectors[0][450] = PARTITION;
    sectors[0][454..458].copy_from_slice(&(START as u32).to_le_bytes());
    sectors[0][458..462].copy_from_slice(&(1 + blocks).to_le_bytes());
    let header = ResultsHeader { sectors: 1 + blocks, image: IMAGE, system: "engine" };
    sectors[START] = header.to_sector();
    sectors
}

/// Writes a run as the program does: `texts` as blocks, and the end behind the last of them.
fn written(sectors: &mut [Sector], run: u32, texts: &[&[u8]], kind: BlockKind) {
    for (number, text) in texts.iter().enumerate() {
        let kind = if number + 1 == texts.len() { kind } else { BlockKind::Middle };
        let block = ResultsBlock { image: IMAGE, run, number: number as u32, lost: 0, kind, text };
        sectors[START + 1 + number] = block.to_sector();
    }
}

fn read_from(sectors: &[Sector]) -> Result<Kept, String> {
    read(&mut Cursor::new(sectors.concat()))
}

/// A stick with a run of three blocks, which came to its end.
fn usual() -> Vec<Sector> {
    let mut stick = empty(8);
    written(&mut stick, 2, &[b"~1 7 0\n", b"=0 hello\n", b"~10 5\n"], BlockKind::Last);
    stick
}

#[test]
fn a_whole_run_is_read_byte_for_byte() {
    let kept = read_from(&usual()).unwrap();
    assert_eq!((kept.system.as_str(), kept.run, kept.end), ("engine", 2, KeptEnd::Whole));
    assert_eq!(kept.console, b"~1 7 0\n=0 hello\n~10 5\n");
    assert_eq!((kept.flaws(), kept.code()), (vec![], HOLDS));
}

#[test]
fn a_stick_that_was_never_run_says_so() {
    let said = read_from(&empty(8)).unwrap_err();
    assert!(said.contains("has not run"), "{said}");
}

#[test]
fn what_is_no_stick_with_results_says_so() {
    let mut other = usual();
    other[0][450] = 0x83;
    let mut foreign = usual();
    foreign[START] = [0; SECTOR];
    let mut damaged = usual();
    damaged[START][30] ^= 1;
    let mut moved = usual();
    moved[0][458] ^= 1;
    let mut far = usual();
    far[0][456] = 0xff;
    let short = usual()[..START + 5].to_vec();
    for (stick, wanted) in [
        (vec![], "it ends before"),
        (vec![[0; SECTOR]], "no partition for results"),
        (other, "no partition for results"),
        (foreign, "not one of Diapason's"),
        (damaged, "header of the partition for results is damaged"),
        (moved, "header of the partition for results is damaged"),
        (far, "it ends before"),
    ] {
        let said = read_from(&stick).unwrap_err();
        assert!(said.contains(wanted), "{said}");
    }
    // A run that is whole lies before the end of a copy that is not.
    assert_eq!(read_from(&short).map(|kept| kept.end), Ok(KeptEnd::Whole));
}

#[test]
fn results_of_another_image_are_not_used() {
    let mut stick = usual();
    let header = ResultsHeader { sectors: 9, image: 7, system: "other" };
    stick[START] = header.to_sector();
    let said = read_from(&stick).unwrap_err();
    assert!(said.contains("results of another image"), "{said}");
}

#[test]
fn a_run_without_its_end_is_no_evidence() {
    let mut stick = empty(8);
    written(&mut stick, 1, &[b"a\n", b"b\n"], BlockKind::Middle);
    let kept = read_from(&stick).unwrap();
    assert_eq!((kept.end, kept.code()), (KeptEnd::Open, UNPROVED));
    assert!(kept.flaws()[0].contains("the end of the run is missing"));
}

#[test]
fn a_partition_that_is_full_is_no_whole_run() {
    let mut stick = empty(2);
    written(&mut stick, 1, &[b"a\n", b"b\n"], BlockKind::Full);
    let kept = read_from(&stick).unwrap();
    assert_eq!((kept.end, kept.code()), (KeptEnd::Full, BROKEN));
}

#[test]
fn lines_that_were_lost_are_told_and_break_a_whole_run() {
    let mut stick = empty(2);
    let block =
        ResultsBlock { image: IMAGE, run: 1, number: 0, lost: 3, kind: BlockKind::Last, text: b"" };
    stick[START + 1] = block.to_sector();
    let kept = read_from(&stick).unwrap();
    assert_eq!((kept.lost, kept.end, kept.code()), (3, KeptEnd::Whole, BROKEN));
    assert_eq!(kept.flaws(), ["3 lines came faster than the stick was written, and are missing"]);
}

#[test]
fn what_an_earlier_run_left_is_not_of_the_later_one() {
    let mut stick = usual();
    written(&mut stick, 3, &[b"new\n"], BlockKind::Middle);
    let kept = read_from(&stick).unwrap();
    assert_eq!((kept.run, kept.end, &*kept.console), (3, KeptEnd::Open, &b"new\n"[..]));
}

#[test]
fn a_damaged_block_ends_what_is_used() {
    let mut stick = usual();
    stick[START + 2][100] ^= 0x10;
    let kept = read_from(&stick).unwrap();
    assert_eq!((kept.end, kept.code()), (KeptEnd::Damaged(1), BROKEN));
    assert_eq!(kept.console, b"~1 7 0\n");
    stick[START + 1][100] ^= 0x10;
    let said = read_from(&stick).unwrap_err();
    assert!(said.contains("first block of its results is damaged"), "{said}");
}

#[test]
fn sizes_are_read_and_others_refused() {
    assert_eq!([size("4M"), size("64K"), size("1G")], [Ok(4 << 20), Ok(64 << 10), Ok(1 << 30)]);
    for wrong in ["", "4", "M", "0M", "63K", "2G", "-4M", "4 m", "99999999999999999999G"] {
        assert!(size(wrong).unwrap_err().contains("is no size for results"), "{wrong}");
    }
}

/// A system that has everything.
fn system() -> Vec<System> {
    let text = include_str!("../../../tests/systems/results.toml");
    vec![diapason_system::parse("results.toml", text).unwrap_or_else(|bad| panic!("{bad}"))]
}

#[test]
fn an_image_is_refused_with_what_its_system_lacks() {
    let path = Path::new("results.toml");
    assert_eq!(require(path, &system()), Ok(()));
    let said = |systems: &[System]| require(path, systems).unwrap_err().to_string();
    let mut none = system();
    none[0].processes.retain(|process| process.program != PROGRAM);
    assert!(said(&none).contains("writes the stick, and it has 0"), "{}", said(&none));
    for name in [SEGMENT].into_iter().chain(NAMES[0].all()) {
        let mut lacking = system();
        let writer = lacking[0].processes.iter_mut().find(|it| it.program == PROGRAM).unwrap();
        writer.uses.retain(|used| used != name);
        assert!(said(&lacking).contains(&format!("does not use `{name}`")));
    }
    let mut lacking = system();
    lacking[0].segments.retain(|segment| segment.name != SEGMENT);
    assert!(said(&lacking).contains("has no segment `kernel.console`"));
    let mut unserved = system();
    unserved[0].processes.retain(|process| process.program != settings::PROGRAM);
    assert!(said(&unserved).contains("no USB server of it serves disks"));
    for name in [SEGMENT, NAMES[0].data] {
        let mut other = system();
        other[0].processes[0].uses.push(name.into());
        assert!(said(&other).contains("`reader-0` could change the results"));
    }
    let without = |change: fn(&mut System)| {
        let mut other = system().remove(0);
        change(&mut other);
        other
    };
    let quiet = without(|core| core.processes.retain(|process| process.program != PROGRAM));
    let plain = without(|core| core.processes.retain(|process| process.name == "reader-0"));
    let first = system().remove(0);
    assert_eq!(require(path, &[first.clone(), plain]), Ok(()));
    let wrong = said(&[quiet, first.clone()]);
    assert!(wrong.contains("writes the stick on core 0, and it has 0"), "{wrong}");
    let elsewhere = without(|core| {
        core.processes.retain(|process| process.program != settings::PROGRAM);
    });
    let said = said(&[elsewhere, first.clone()]);
    assert!(said.contains("no USB server of it on core 0 serves disks"), "{said}");
    let forger = without(|core| {
        core.processes.retain(|process| process.name == "reader-0");
        core.processes[0].uses.push(SEGMENT.into());
    });
    let said = require(path, &[first.clone(), forger]).unwrap_err().to_string();
    assert!(said.contains("`reader-0` could change the results"), "{said}");
}

#[test]
fn the_command_writes_what_is_there_and_refuses_what_is_no_stick() {
    let folder = std::env::temp_dir().join(format!("diapason-results-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let [stick, out] = ["stick.img", "console"].map(|name| folder.join(name));
    fs::write(&stick, usual().concat()).unwrap();
    let of = |stick: &Path| {
        results(&ResultsRequest { stick: stick.to_path_buf(), out: Some(out.clone()) })
    };
    assert_eq!(of(&stick), Ok(HOLDS));
    assert_eq!(fs::read(&out).unwrap(), b"~1 7 0\n=0 hello\n~10 5\n");
    for (path, wanted) in [
        (Path::new("/dev/zero"), "neither a disk nor a file"),
        (&folder, "neither a disk nor a file"),
        (Path::new("/no/such/stick"), "cannot read"),
    ] {
        let failure = of(path).unwrap_err();
        assert!(failure.exit_code() == 2 && failure.to_string().contains(wanted), "{failure}");
    }
    fs::remove_dir_all(folder).unwrap();
}

proptest! {
    /// The reader answers for any stick.
    #[test]
    fn no_stick_upsets_the_reader(
        noise in prop::collection::vec((0..12 * SECTOR, any::<u8>()), 0..40),
        cut in 0..13 * SECTOR,
    ) {
        let mut bytes = usual().concat();
        for (at, byte) in noise {
            bytes[at] = byte;
        }
        bytes.truncate(cut);
        if let Ok(kept) = read(&mut Cursor::new(bytes)) {
            prop_assert!(b"~1 7 0\n=0 hello\n~10 5\n".starts_with(&kept.console));
        }
    }

    /// The power goes within a write: any of its sectors were written, the others are of the run
    /// before. The reader finds a prefix, which is whole only if everything is there.
    #[test]
    fn a_torn_write_leaves_a_prefix(
        lengths in prop::collection::vec(0..=TEXT, 1..8),
        arrived in prop::collection::vec(any::<bool>(), 8),
    ) {
        let text: Vec<u8> = (0..8 * TEXT).map(|at| at as u8).collect();
        let texts: Vec<&[u8]> = lengths.iter().map(|length| &text[..*length]).collect();
        let mut stick = empty(8);
        written(&mut stick, 1, &[&b"old"[..]; 8], BlockKind::Last);
        let mut whole = stick.clone();
        written(&mut whole, 2, &texts, BlockKind::Last);
        for (number, _) in arrived.iter().enumerate().filter(|(_, arrived)| **arrived) {
            stick[START + 1 + number] = whole[START + 1 + number];
        }
        let there = arrived.iter().take(texts.len()).take_while(|arrived| **arrived).count();
        let kept = read_from(&stick).unwrap();
        if there > 0 {
            prop_assert_eq!(kept.run, 2);
            prop_assert_eq!(kept.console, texts[..there].concat());
            prop_assert_eq!(kept.end == KeptEnd::Whole, there == texts.len());
        } else {
            // Nothing of the run can be used: the one before is what is there.
            prop_assert_eq!(kept.run, 1);
            prop_assert!(kept.end != KeptEnd::Whole || !arrived[..texts.len()].contains(&true));
        }
    }
}
