//! The other end as an enemy: whatever is written over the shared memory, and whenever, an end
//! gets nonsense records or [`Corrupt`], touches nothing outside the ring, and does not panic.
//!
//! The attacker strikes inside the operations, at the preemption points between their accesses.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use diapason_pipe::{Corrupt, Reader, Ring, Writer};
use diapason_random::Random;
use diapason_state::Step;

const N: usize = 5;
type Record = [u64; 2];
const WORDS: usize = size_of::<Ring<Record, N>>() / 8;
/// Words of the ring that are counts: the line of the writer and that of the reader.
const COUNTS: u64 = 16;
/// The bytes around the ring. No record and no count is ever this.
const OUTSIDE: u64 = 0x0dd0_0dd0_0dd0_0dd0;

/// A ring with memory around it that nobody may touch.
#[repr(C, align(64))]
struct Field {
    before: [AtomicU64; 64],
    ring: [AtomicU64; WORDS],
    after: [AtomicU64; 64],
}

impl Field {
    fn new() -> UnsafeCell<Field> {
        let outside = || [const { AtomicU64::new(OUTSIDE) }; 64];
        let ring = [const { AtomicU64::new(0) }; WORDS];
        UnsafeCell::new(Field { before: outside(), ring, after: outside() })
    }

    fn is_intact(&self) -> bool {
        self.before.iter().chain(&self.after).all(|word| word.load(Relaxed) == OUTSIDE)
    }
}

struct Attacker {
    ring: *const [AtomicU64; WORDS],
    random: Random,
    /// Strikes about once in so many accesses.
    patience: u64,
}

thread_local! {
    static ATTACKER: RefCell<Option<Attacker>> = const { RefCell::new(None) };
    static STRIKES: Cell<u64> = const { Cell::new(0) };
}

/// The step hook that strikes.
struct Strike;

impl Step for Strike {
    fn step() {
        ATTACKER.with_borrow_mut(|attacker| {
            let Some(Attacker { ring, random, patience }) = attacker else { return };
            if random.one_in(*patience) {
                // SAFETY: the field outlives the attacker, and all its users are atomic.
                let ring = unsafe { &**ring };
                let most = if random.one_in(2) { COUNTS } else { WORDS as u64 };
                let word = &ring[random.index(most as usize)];
                word.store(evil(word.load(Relaxed), random), Relaxed);
                STRIKES.set(STRIKES.get() + 1);
            }
        });
    }
}

/// Returns a number near the old one, near an edge, or any.
fn evil(old: u64, random: &mut Random) -> u64 {
    let near = random.between(0, 2 * N as u64 + 2);
    match random.below(6) {
        0 => old.wrapping_add(near),
        1 => old.wrapping_sub(near),
        2 => near,
        3 => u64::MAX - near,
        4 => (1 << 63) + near,
        _ => random.bits() & !1,
    }
}

#[derive(Default, Debug)]
struct Seen {
    corrupt: u64,
    popped: u64,
    nonsense: u64,
    refused: u64,
}

fn note(seen: &mut Seen, records: &[Record]) {
    for record in records {
        assert!(!record.contains(&OUTSIDE), "read outside the ring");
        seen.popped += 1;
        seen.nonsense += u64::from(record[0] != !record[1]);
    }
}

/// One operation of either end, chosen at random.
fn operate(
    writer: &mut Writer<'_, Record, N, Strike>,
    reader: &mut Reader<'_, Record, N, Strike>,
    random: &mut Random,
    seen: &mut Seen,
) {
    let number = random.below(1000);
    let records = [[number, !number]; 2 * N];
    let length = random.index(2 * N + 1);
    let lost = writer.lost();
    match random.below(4) {
        0 => seen.refused += u64::from(writer.push(&records[0]).is_err()),
        1 => assert!(writer.push_many(&records[..length]) <= length.min(N)),
        2 => note(seen, reader.pop().as_slice()),
        _ => {
            let mut into = [[0; 2]; 2 * N];
            let count = reader.pop_many(&mut into[..length]);
            assert!(count <= length.min(N));
            note(seen, &into[..count]);
        }
    }
    assert!(writer.lost() >= lost && writer.peak() <= N as u64, "its own notes are its own");
    for len in [writer.len(), reader.len()] {
        assert!(len.is_err() || len.is_ok_and(|len| len <= N));
        seen.corrupt += u64::from(len == Err(Corrupt));
    }
}

#[test]
fn nothing_an_enemy_writes_does_more_than_spoil_the_records() {
    let mut seen = Seen::default();
    for case in 0..100_000 {
        let mut random = Random::stream(4, case);
        let field = Field::new();
        let raw = field.get();
        // SAFETY: inside the field, which outlives the ends; aligned to 64 bytes, as 64 words stand
        // before it; everybody's accesses are atomic.
        let ring = unsafe { &raw const (*raw).ring };
        // SAFETY: as above.
        let writer = unsafe { Writer::<Record, N>::from_raw(ring.cast()) };
        // SAFETY: as above.
        let reader = unsafe { Reader::<Record, N>::from_raw(ring.cast()) };
        let (mut writer, mut reader) = (writer.with_step::<Strike>(), reader.with_step::<Strike>());
        let patience = random.between(1, 30);
        let attacker = Attacker { ring, random: Random::stream(5, case), patience };
        ATTACKER.set(Some(attacker));
        for _ in 0..8 {
            operate(&mut writer, &mut reader, &mut random, &mut seen);
        }
        ATTACKER.set(None);
        // SAFETY: shared, atomic, alive.
        assert!(unsafe { &*raw }.is_intact(), "case {case} wrote outside the ring");
    }
    println!("{} strikes: {seen:?}", STRIKES.get());
    assert!(seen.corrupt > 10_000 && seen.nonsense > 1_000 && seen.refused > 1_000);
}

/// An end believes its own notes: what is written over its own count is repaired by its next use.
#[test]
fn an_end_does_not_read_its_own_count_back() {
    let field = Field::new();
    // SAFETY: as above.
    let ring = unsafe { &raw const (*field.get()).ring };
    // SAFETY: as above.
    let mut writer = unsafe { Writer::<Record, N>::from_raw(ring.cast()) };
    // SAFETY: as above.
    let mut reader = unsafe { Reader::<Record, N>::from_raw(ring.cast()) };
    assert_eq!(writer.push_many(&[[1, 1], [2, 2]]), 2);
    // SAFETY: as above. The first word is the count of records written.
    unsafe { &(*ring)[0] }.store(77, Relaxed);
    assert_eq!((reader.len(), reader.pop(), writer.len()), (Err(Corrupt), None, Ok(2)));
    assert_eq!(writer.push(&[3, 3]), Ok(()));
    let mut into = [[0; 2]; N];
    assert_eq!((reader.pop_many(&mut into), into[..3].to_vec()), (3, vec![[1, 1], [2, 2], [3, 3]]));
    // SAFETY: as above. Word 8 is the count of records taken.
    unsafe { &(*ring)[8] }.store(77, Relaxed);
    assert_eq!((writer.len(), writer.push(&[4, 4]).is_err()), (Err(Corrupt), true));
    assert_eq!((writer.lost(), reader.lost(), reader.len()), (1, 1, Ok(0)));
}
