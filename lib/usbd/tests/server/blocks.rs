//! A disk with a pipe: what its reader or writer asks for, judged by the contract of the pipe.

use crate::ground::{attach, detach, now};
use crate::machine::Machine;
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::disk::{
    self, Ask, BYTES_MAX, DONE, DiskAnswer, GONE, NONSENSE, PIPED, READ, RECORDS, SIZE, WRITE,
};
use diapason_contract::settings::SERVES;
use diapason_contract::source::{MessageShape, PipeSource, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_devices::disk::Disk;
use diapason_pipe::{Reader, Writer};
use diapason_usb::xhci::Dma as _;
use diapason_usbd::Platform as _;

const BYTES: u32 = 16_384;
const BLOCKS: u32 = BYTES / 512;
const PERIOD: Nanos = Nanos::from_millis(5);

/// A server with a pipe of a disk, and the ends of its reader or writer.
struct Read {
    machine: Machine,
    asks: Writer<'static, Ask, RECORDS>,
    answers: Reader<'static, DiskAnswer, RECORDS>,
}

impl Read {
    fn new(disk: Disk) -> Read {
        Read::piped(READ, disk)
    }

    /// Returns one whose pipe has asks of this kind.
    fn piped(what: u32, disk: Disk) -> Read {
        let (source, _) = PipeSource::of(ServiceKind::Disks).unwrap();
        let mut contracts = Contracts::default();
        let jitter = Nanos::ZERO;
        contracts.0[source] = Some(Contract { messages: 1, per: PERIOD, burst: 1, jitter });
        let shape = MessageShape { bytes: BYTES as usize, stamp: Some(0) }.word();
        let machine = Machine::with(&[
            (SERVES, &[ServiceKind::Disks as u64]),
            (CONTRACTS, &contracts.words()),
            (SHAPES, &[0, 0, 0, shape]),
            (PIPED, &[what.into()]),
        ]);
        let asks = machine.ground.writer(disk::NAMES[0].asks).unwrap();
        let answers = machine.ground.reader(disk::NAMES[0].answers).unwrap();
        let mut read = Read { machine, asks, answers };
        attach(1, Box::new(disk));
        read.machine.run(Nanos::from_secs(1));
        read
    }

    /// Asks for blocks, due now, and returns the answers after some time.
    fn ask(&mut self, count: u32, then: Nanos) -> Vec<DiskAnswer> {
        self.ask_for((READ, 0), count, then)
    }

    /// As [`Read::ask`], for blocks that come to or from this place.
    fn ask_for(&mut self, (what, place): (u32, u32), count: u32, then: Nanos) -> Vec<DiskAnswer> {
        let due = now().0;
        self.asks.push(&Ask { what, block: 0, count, place, due }).unwrap();
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

/// The disk has all that is written, and each answer says when the server took the ask in hand and
/// when it knew of the end. A program that reads through this pipe, or writes too soon, is outside
/// of its contract.
#[test]
fn a_writer_that_writes_once_a_period_keeps_its_contract() {
    let takes = Nanos::from_millis(1);
    let mut written = Read::piped(WRITE, Disk::new(2_048).taking(takes));
    let mut memory = written.machine.ground.memory(disk::NAMES[0].data).unwrap();
    for number in 1..=20u32 {
        memory.write(BYTES.into(), &number.to_le_bytes());
        memory.write(u64::from(2 * BYTES) - 4, &(!number).to_le_bytes());
        let before = now().0;
        let answers = written.ask_for((WRITE, BYTES), BLOCKS, PERIOD);
        let [answer] = answers[..] else { panic!("{answers:?}") };
        assert_eq!((answer.status, answer.outside, answer.ask.what), (DONE, 0, WRITE));
        assert!((before..before + 200_000).contains(&answer.begun), "{answer:?}");
        assert!(answer.taken >= answer.begun + takes.0, "{answer:?}");
    }
    let outside = |answers: Vec<DiskAnswer>| answers.iter().map(|it| it.outside).sum::<u64>();
    assert_eq!(outside(written.ask_for((READ, 4 * BYTES), BLOCKS, PERIOD)), 1, "it reads");
    let read = |at: u32| {
        let mut bytes = [0; 4];
        memory.read(at.into(), &mut bytes);
        u32::from_le_bytes(bytes)
    };
    assert_eq!((read(4 * BYTES), read(5 * BYTES - 4)), (20, !20), "what was written is there");
    assert_eq!(outside(written.ask_for((WRITE, 0), BLOCKS + 1, PERIOD)), 1, "too much");
    let soon = Nanos::from_millis(3);
    assert_eq!(outside(written.ask_for((WRITE, 0), BLOCKS, soon)), 0);
    assert_eq!(outside(written.ask_for((WRITE, 0), BLOCKS, PERIOD)), 1, "too soon");
}
