//! A disk with a pipe: what its reader asks for, judged by the contract of the pipe.

use crate::ground::{attach, detach, now};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::disk::{
    self, Ask, BYTES_MAX, DONE, DiskAnswer, GONE, NONSENSE, READ, RECORDS, SIZE,
};
use diapason_contract::settings::SERVES;
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::disk::Disk;
use diapason_pipe::{Reader, Writer};
use diapason_usbd::Platform as _;

const BYTES: u32 = 16_384;
const BLOCKS: u32 = BYTES / 512;
const PERIOD: Nanos = Nanos::from_millis(5);

/// A server with a pipe from a disk, and the reader's ends.
struct Read {
    machine: Machine,
    asks: Writer<'static, Ask, RECORDS>,
    answers: Reader<'static, DiskAnswer, RECORDS>,
}

impl Read {
    fn new(disk: Disk) -> Read {
        let (source, _) = PipeSource::of(ServiceKind::Disks).unwrap();
        let mut contracts = Contracts::default();
        let jitter = Nanos::ZERO;
        contracts.0[source] = Some(Contract { messages: 1, per: PERIOD, burst: 1, jitter });
        let shape = MessageShape { bytes: BYTES as usize, stamp: Some(0) }.word();
        let machine = Machine::with(&[
            (SERVES, &[ServiceKind::Disks as u64]),
            (CONTRACTS, &contracts.words()),
            (SHAPES, &[0, 0, 0, shape]),
        ]);
        let asks = machine.ground.writer(disk::ASKS).unwrap();
        let answers = machine.ground.reader(disk::ANSWERS).unwrap();
        let mut read = Read { machine, asks, answers };
        attach(1, Box::new(disk));
        read.machine.run(Nanos::from_secs(1));
        read
    }

    /// Asks for blocks, due now, and returns the answers after some time.
    fn ask(&mut self, count: u32, then: Nanos) -> Vec<DiskAnswer> {
        let due = now().0;
        self.asks.push(&Ask { what: READ, block: 0, count, place: 0, due }).unwrap();
        self.machine.ask();
        self.machine.run(then);
        std::iter::from_fn(|| self.answers.pop()).collect()
    }
}

#[test]
fn a_reader_that_asks_once_a_period_keeps_its_contract() {
    let mut read = Read::new(Disk::new(2_048).taking(Nanos::from_millis(1)));
    for _ in 0..20 {
        let answers = read.ask(BLOCKS, PERIOD);
        let [answer] = answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer.status, answer.outside, answer.ask.count), (DONE, 0, BLOCKS));
        let took = answer.taken - answer.ask.due;
        assert!((1_000_000..3_000_000).contains(&took), "{took}");
    }
}

#[test]
fn asks_that_come_too_soon_or_for_too_much_are_outside() {
    let mut read = Read::new(Disk::new(2_048));
    let outside = |answers: Vec<DiskAnswer>| answers.iter().map(|it| it.outside).sum::<u64>();
    assert_eq!(outside(read.ask(BLOCKS, PERIOD)), 0);
    assert_eq!(outside(read.ask(BLOCKS + 1, PERIOD)), 1, "too much");
    assert_eq!(outside(read.ask(BLOCKS, Nanos::from_millis(3))), 0);
    assert_eq!(outside(read.ask(BLOCKS, PERIOD)), 1, "too soon");
    let due = now().0 + 9 * PERIOD.0;
    read.asks.push(&Ask { what: READ, block: 0, count: 1, place: 0, due }).unwrap();
    let both = outside(read.ask(BLOCKS, PERIOD));
    assert_eq!(both, 2, "one before it was due, and one that is due before the last");
}

#[test]
fn an_ask_ends_within_the_memory() {
    let mut read = Read::new(Disk::new(2_048));
    let mut status = |place| {
        let due = now().0;
        read.asks.push(&Ask { what: READ, block: 0, count: 1, place, due }).unwrap();
        read.machine.ask();
        read.machine.run(PERIOD);
        read.answers.pop().expect("an answer").status
    };
    let room = (4 * BYTES_MAX as u32..).step_by(4_096).find(|place| status(*place) != DONE);
    let room = room.expect("an end");
    assert_eq!(status(room - 512), DONE);
    assert_eq!(status(room - 511), NONSENSE);
    assert_eq!(status(room), NONSENSE);
}

#[test]
fn a_disk_that_takes_longer_than_a_period_is_outside() {
    let mut read = Read::new(Disk::new(2_048).taking(Nanos::from_millis(6)));
    let answers = read.ask(BLOCKS, Nanos::from_millis(20));
    let found: Vec<_> = answers.iter().map(|it| (it.status, it.outside)).collect();
    assert_eq!(found, [(DONE, 1)]);
}

#[test]
fn a_disk_that_goes_answers_what_was_asked() {
    let mut read = Read::new(Disk::new(2_048).taking(Nanos::from_millis(3)));
    assert!(read.ask(BLOCKS, Nanos::from_millis(1)).is_empty());
    detach(1);
    read.machine.run(Nanos::from_millis(200));
    let answer = read.answers.pop().expect("an answer");
    assert_eq!((answer.status, answer.ask.count), (GONE, BLOCKS));
    attach(1, Box::new(Disk::new(2_048)));
    read.machine.run(Nanos::from_secs(1));
    read.asks.push(&Ask { what: SIZE, block: 0, count: 0, place: 0, due: 0 }).unwrap();
    let answers = read.ask(BLOCKS, PERIOD);
    assert!(answers.iter().all(|it| it.status == DONE) && answers.len() == 2, "{answers:?}");
}
