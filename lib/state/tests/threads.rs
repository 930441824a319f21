//! Real threads: no schedule is promised here, so the promise is enforced or its breach noticed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use diapason_state::{StateBuffer, StateReader, StateWord};

const WORDS: usize = 8;
type Value = [u64; WORDS];
const READS: u64 = 300_000;

/// Numbers that look nothing alike, so that a torn value cannot pass for a whole one.
fn value_of(number: u64) -> Value {
    core::array::from_fn(|word| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (word as u64) << 56)
}

fn is_whole(value: Value) -> bool {
    value == core::array::from_fn(|word| value[0] ^ (word as u64) << 56)
}

fn checked_reads<const N: usize>(reader: StateReader<'_, StateBuffer<Value, N>>) -> (u64, u64) {
    let (mut whole, mut alarms) = (0, 0);
    for _ in 0..READS {
        let before = reader.published();
        let read = reader.read_checked();
        let after = reader.published();
        match read {
            Ok(value) if before == after => assert_eq!(value, value_of(before)),
            Ok(value) => assert!(is_whole(value), "torn"),
            Err(overtaken) => assert!(overtaken.writes >= N as u64),
        }
        if read.is_ok() { whole += 1 } else { alarms += 1 }
    }
    (whole, alarms)
}

#[test]
fn an_unrestrained_writer_is_noticed() {
    let mut cell = StateBuffer::<Value, 3>::holding(value_of(0));
    let (mut writer, reader) = cell.split();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| checked_reads(reader)));
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                writer.write(value_of(number));
            }
        });
        let results = readers.map(|reader| reader.join());
        stop.store(true, Ordering::Relaxed);
        for result in results {
            let (whole, alarms) = result.expect("a reader saw a torn value");
            println!("{whole} whole, {alarms} overtaken");
            assert!(whole > 0);
        }
    });
}

/// The hypothesis of the theorem, enforced: before write `k` the writer waits until the read in
/// progress began after write `k − N` was published. Then plain reads must all be whole.
#[test]
fn plain_reads_are_whole_while_the_hypothesis_holds() {
    const N: u64 = 3;
    const IDLE: u64 = u64::MAX;
    let mut cell = StateBuffer::<Value, { N as usize }>::holding(value_of(0));
    let (mut writer, reader) = cell.split();
    let (began_at, stop) = (AtomicU64::new(IDLE), AtomicBool::new(false));
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            for _ in 0..READS {
                began_at.store(reader.published(), Ordering::SeqCst);
                // Published counts only grow, so the read begins at this one or a later one.
                let value = reader.read();
                began_at.store(IDLE, Ordering::SeqCst);
                assert!(is_whole(value), "torn");
            }
        });
        scope.spawn(|| {
            for number in 1.. {
                let may_write = || {
                    let began = began_at.load(Ordering::SeqCst);
                    began != IDLE && number < began + N
                };
                while !may_write() && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                writer.write(value_of(number));
            }
        });
        let result = reading.join();
        stop.store(true, Ordering::Relaxed);
        result.expect("a reader saw a torn value");
    });
}

#[test]
fn a_word_is_never_torn() {
    let mut cell = StateWord::<[u32; 2]>::new([0, !0]);
    let (mut writer, reader) = cell.split();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut last = 0;
            for _ in 0..READS {
                let [number, inverse] = reader.read();
                assert_eq!(number, !inverse);
                assert!(number >= last, "time does not run backwards");
                last = number;
            }
        });
        scope.spawn(|| {
            for number in 1..u32::MAX {
                writer.write([number, !number]);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let result = reading.join();
        stop.store(true, Ordering::Relaxed);
        result.expect("a reader saw a torn value");
    });
}
