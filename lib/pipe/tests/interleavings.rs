//! The code of the ring under every interleaving of its shared accesses: whole programs of pushes
//! and pops behave as a bounded queue under every interleaving.

#[path = "../../state/tests/baton/mod.rs"]
mod baton;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use baton::{Handover, Runner, every_interleaving};
use diapason_pipe::{Reader, Ring, Writer};

const WORDS: usize = 2;
type Record = [u64; WORDS];

/// The operations that both ends have finished. Not a part of the ring, so nobody is preempted
/// here.
#[derive(Default)]
struct Done {
    pushed: AtomicUsize,
    popped: AtomicUsize,
}

/// The observations of one end.
#[derive(Default)]
struct Seen {
    records: Vec<Record>,
    refused: usize,
    /// An end was refused although there was room, or records, before it began.
    wrongly_refused: bool,
}

fn write<const N: usize>(
    mut writer: Writer<'_, Record, N, Handover>,
    batches: &[usize],
    done: &Done,
) -> Seen {
    let (mut seen, mut number) = (Seen::default(), 0);
    for length in batches {
        let batch: Vec<Record> = (1..=*length as u64).map(|at| [number + at; WORDS]).collect();
        number += *length as u64;
        let popped = done.popped.load(SeqCst);
        let accepted = match batch[..] {
            [one] => usize::from(writer.push(&one).is_ok()),
            _ => writer.push_many(&batch),
        };
        seen.records.extend(&batch[..accepted]);
        done.pushed.store(seen.records.len(), SeqCst);
        seen.refused += length - accepted;
        seen.wrongly_refused |= accepted < *length && seen.records.len() < popped + N;
    }
    seen
}

fn read<const N: usize>(
    mut reader: Reader<'_, Record, N, Handover>,
    batches: &[usize],
    done: &Done,
) -> Seen {
    let mut seen = Seen::default();
    for length in batches {
        let pushed = done.pushed.load(SeqCst);
        let mut into = vec![[0; WORDS]; *length];
        let taken = match *length {
            1 => reader.pop().into_iter().inspect(|record| into[0] = *record).count(),
            _ => reader.pop_many(&mut into),
        };
        seen.records.extend(&into[..taken]);
        done.popped.store(seen.records.len(), SeqCst);
        seen.refused += length - taken;
        seen.wrongly_refused |= taken < *length && seen.records.len() < pushed;
    }
    seen
}

/// Over all interleavings: how many there were, refused a push, found nothing, passed a record.
#[derive(Default, Debug)]
struct Outcomes {
    interleavings: u32,
    full: u32,
    empty: u32,
    passed: u32,
}

fn one_run<const N: usize>(
    runner: &mut Runner,
    pushes: &[usize],
    pops: &[usize],
    outcomes: &mut Outcomes,
) {
    let mut ring = Ring::<Record, N>::new();
    let (writer, reader) = ring.split();
    let (writer, reader) = (writer.with_step::<Handover>(), reader.with_step::<Handover>());
    let done = Done::default();
    let (mut written, mut read_out) = (Seen::default(), Seen::default());
    runner.run(|| written = write(writer, pushes, &done), || read_out = read(reader, pops, &done));
    outcomes.full += u32::from(written.refused > 0);
    outcomes.empty += u32::from(read_out.refused > 0);
    outcomes.passed += u32::from(!read_out.records.is_empty());
    assert!(!written.wrongly_refused && !read_out.wrongly_refused);

    let (_, mut reader) = ring.split();
    assert_eq!(reader.lost(), written.refused as u64);
    let left = written.records.len() - read_out.records.len();
    let peak = reader.peak() as usize;
    assert_eq!(reader.len(), Ok(left));
    assert!(left <= peak && peak <= N.min(written.records.len()));
    assert!(written.refused == 0 || peak == N);
    read_out.records.extend(std::iter::from_fn(|| reader.pop()));
    assert_eq!(read_out.records, written.records, "whole, once, in order");
}

fn explore<const N: usize>(pushes: &[usize], pops: &[usize]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    outcomes.interleavings =
        every_interleaving(|runner| one_run::<N>(runner, pushes, pops, &mut outcomes));
    println!("{N} slots, pushes {pushes:?}, pops {pops:?}: {outcomes:?}");
    outcomes
}

#[test]
fn one_slot_alternates() {
    let outcomes = explore::<1>(&[1, 1, 1], &[1, 1]);
    assert!(outcomes.interleavings > 1_000);
    assert!(outcomes.full > 0 && outcomes.empty > 0 && outcomes.passed > 0);
}

#[test]
fn a_slot_is_used_again_only_when_it_was_read() {
    // Two pushes fill the ring, the third needs the slot that the reader may be reading.
    let outcomes = explore::<2>(&[2, 1], &[1]);
    assert!(outcomes.full > 0 && outcomes.full < outcomes.interleavings);
}

#[test]
fn a_batch_appears_and_leaves_as_a_whole() {
    let outcomes = explore::<2>(&[2], &[2]);
    assert!(outcomes.empty > 0 && outcomes.passed > 0);
    assert_eq!(outcomes.empty + outcomes.passed, outcomes.interleavings, "never one of two");
    let outcomes = explore::<3>(&[2, 2], &[3]);
    assert!(outcomes.full > 0 && outcomes.full < outcomes.interleavings);
}

#[test]
fn more_slots_than_records_refuse_nothing() {
    let outcomes = explore::<3>(&[1, 1], &[1, 1]);
    assert_eq!(outcomes.full, 0);
    assert!(outcomes.empty > 0 && outcomes.passed > 0);
}
