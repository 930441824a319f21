//! The flight recorder: what is recorded around the core replays equal; what is damaged diverges at
//! the damaged entry, and not before.

use crate::support::storm::{self, with_storm};
use diapason_abi::archive::Archive;
use diapason_abi::recorder::{ENTRY_BYTES, ENTRY_WORDS, Entry, EntryKind};
use diapason_core::host::{Divergence, replay, with_kernel};
use diapason_random::Random;

/// A recording of a storm.
fn recording(seed: u64, steps: u64) -> Vec<u8> {
    with_storm(seed, true, |storm| {
        for _ in 0..steps {
            storm.step();
        }
        storm.shell.memory.recording.take().expect("it was recorded")
    })
}

fn replayed(recording: &[u8]) -> Result<usize, Box<Divergence>> {
    let bytes = storm::plan().to_bytes();
    let archive = Archive::parse(&bytes).expect("a possible plan");
    with_kernel(&archive, |mut kernel| {
        kernel.lack_devices(storm::LACKING);
        replay(kernel, recording)
    })
}

fn entries(recording: &[u8]) -> Vec<[u64; ENTRY_WORDS]> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let entry = |bytes: &[u8]| std::array::from_fn(|i| word(&bytes[8 * i..8 * i + 8]));
    recording.chunks_exact(ENTRY_BYTES).map(entry).collect()
}

fn to_bytes(entries: &[[u64; ENTRY_WORDS]]) -> Vec<u8> {
    entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

fn is_bytes(words: &[u64; ENTRY_WORDS]) -> bool {
    EntryKind::decode(words[0] as u8) == Some(EntryKind::Bytes)
}

/// The place of `at` as the replayer counts: without `Bytes`.
fn number_of(entries: &[[u64; ENTRY_WORDS]], at: usize) -> usize {
    entries[..at].iter().filter(|words| !is_bytes(words)).count()
}

#[test]
fn a_recording_replays_equal_to_the_last_entry() {
    let mut faults = 0;
    for seed in 0..4 {
        let recording = recording(seed, 12_000);
        let all = entries(&recording);
        let decisions = number_of(&all, all.len());
        assert_eq!(replayed(&recording), Ok(decisions));
        let is = |w: &[u64; ENTRY_WORDS], kind| EntryKind::decode(w[0] as u8) == Some(kind);
        let count = |kind| all.iter().filter(|w| is(w, kind)).count();
        for kind in [EntryKind::Quick, EntryKind::Syscall, EntryKind::Timer, EntryKind::Irq] {
            assert!(count(kind) > 30, "{kind:?}");
        }
        assert!(count(EntryKind::Bytes) > 50);
        faults += count(EntryKind::Fault);
    }
    assert!(faults > 0);
}

/// Ways to damage one entry of a recording.
const DAMAGES: [fn(&mut [u64; ENTRY_WORDS]); 4] = [
    |words| words[0] ^= 1 << 32, // who ran
    |words| words[7] ^= 1,       // the result
    |words| words[8] ^= 1,       // the alarm
    |words| words[0] ^= 1 << 8,  // whether there was a result
];

#[test]
fn a_damaged_decision_diverges_at_its_entry() {
    let good = entries(&recording(77, 5_000));
    let mut random = Random::new(77);
    for round in 0..100 {
        let damage = DAMAGES[round % DAMAGES.len()];
        let at = loop {
            let at = random.below(good.len() as u64) as usize;
            let kind = EntryKind::decode(good[at][0] as u8);
            // The value of a machine counter is known from the recording alone.
            let counter = good[at][0] >> 16 & 0xffff == diapason_abi::CallNumber::Count as u64;
            let decides = !counter && !matches!(kind, Some(EntryKind::Bytes | EntryKind::Quick));
            // A quick call has a result and nothing else to damage.
            if decides || (kind == Some(EntryKind::Quick) && round % 4 == 1) {
                break at;
            }
        };
        let mut bad = good.clone();
        damage(&mut bad[at]);
        let divergence = replayed(&to_bytes(&bad)).expect_err("it was damaged");
        assert_eq!(divergence.entry, number_of(&good, at), "round {round}");
        assert_eq!(Some(divergence.recorded), Entry::from_words(&bad[at]));
        assert!(!divergence.decided.is_empty());
    }
}

#[test]
fn a_lost_entry_diverges_there_or_later_but_never_before() {
    let good = entries(&recording(5, 5_000));
    let mut random = Random::new(5);
    let mut diverged = 0;
    for _ in 0..40 {
        let at = random.below(good.len() as u64) as usize;
        let mut bad = good.clone();
        bad.remove(at);
        match replayed(&to_bytes(&bad)) {
            Ok(_) => {}
            Err(divergence) => {
                assert!(divergence.entry >= number_of(&good, at));
                diverged += 1;
            }
        }
    }
    // The rest had no effect that another entry would show.
    assert!(diverged > 5, "only {diverged} of 40 were noticed");
}

#[test]
fn an_access_that_was_not_made_is_noticed() {
    let good = entries(&recording(9, 5_000));
    let at = good.iter().position(is_bytes).expect("some access");
    let mut bad = good.clone();
    bad.insert(at, good[at]);
    let divergence = replayed(&to_bytes(&bad)).expect_err("one access too many");
    assert!(divergence.entry >= number_of(&good, at));
    let mut failed = good.clone();
    failed[at][0] |= 0xffff << 16;
    assert!(replayed(&to_bytes(&failed)).is_err(), "an access that failed here did not there");
}
