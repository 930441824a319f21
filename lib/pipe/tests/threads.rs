//! Two real threads, a million records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use diapason_pipe::{Reader, Ring, Writer};
use diapason_random::Random;

const RECORDS: u64 = 1_000_000;
type Record = [u64; 3];

/// Words that look nothing alike from record to record, so that a mixture is noticed.
fn record(number: u64) -> Record {
    [number, number.wrapping_mul(0x9e37_79b9_7f4a_7c15), !number]
}

/// Puts all records in, singly and in batches, those that were dropped again, unless the reader is
/// gone. Returns the drops.
fn write_all<const N: usize>(mut writer: Writer<'_, Record, N>, gone: &AtomicBool) -> u64 {
    let (mut random, mut next, mut dropped) = (Random::new(2), 0, 0);
    while next < RECORDS && !gone.load(Ordering::Relaxed) {
        let last = RECORDS.min(next + random.between(1, 5));
        let batch: Vec<Record> = (next..last).map(record).collect();
        let accepted = match batch[..] {
            [only] => usize::from(writer.push(&only).is_ok()),
            _ => writer.push_many(&batch),
        };
        next += accepted as u64;
        if accepted < batch.len() {
            dropped += (batch.len() - accepted) as u64;
            thread::yield_now();
        }
    }
    assert_eq!(writer.lost(), dropped);
    dropped
}

/// Takes records, singly and in batches, until all have come or no more will. Returns how many.
fn read_all<const N: usize>(reader: &mut Reader<'_, Record, N>, written: &AtomicBool) -> u64 {
    let (mut next, mut lost, mut random) = (0, 0, Random::new(3));
    while next < RECORDS {
        let over = written.load(Ordering::Acquire);
        let mut batch = [[0; 3]; 8];
        let most = random.index(9);
        let count = match reader.pop() {
            Some(one) => {
                assert_eq!(one, record(next));
                next += 1;
                reader.pop_many(&mut batch[..most])
            }
            None if over => return next,
            None => {
                thread::yield_now();
                0
            }
        };
        for one in &batch[..count] {
            assert_eq!(*one, record(next));
            next += 1;
        }
        assert!(reader.lost() >= lost, "the losses only grow");
        lost = reader.lost();
    }
    next
}

#[test]
fn a_million_records_arrive_whole_once_and_in_order() {
    let mut ring = Ring::<Record, 61>::new();
    let (writer, mut reader) = ring.split();
    let (written, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let dropped = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let dropped = write_all(writer, &gone);
            written.store(true, Ordering::Release);
            dropped
        });
        let reading = scope.spawn(|| read_all(&mut reader, &written)).join();
        gone.store(true, Ordering::Relaxed);
        assert_eq!(reading.expect("a record was wrong"), RECORDS);
        writing.join().expect("the writer saw what it did")
    });
    assert_eq!((reader.len(), reader.lost()), (Ok(0), dropped));
    assert!((1..=61).contains(&reader.peak()));
    println!("{dropped} refused on the way, peak {}", reader.peak());
}
