//! Packets with their answers, and acknowledgements.

use super::super::records::RECORDS;
use super::*;
use diapason_contract::disk;
use diapason_contract::network::{Ask, BACK, BEGIN, News, SEND, SINK, STATE};
use diapason_contract::sink::{FAILED, PacketAnswer};
use std::mem::offset_of;

/// Returns the pipe of an endpoint with packets that were written at these times.
fn written(times: &[u64]) -> Line {
    let by = (Nanos(0), ThreadId::new(0));
    let packet = |(number, time): (u64, &u64)| Record {
        number,
        message: Some(Followed::Packet { made: Nanos(*time), length: 1, digest: *time }),
        put: (Nanos(*time), by.1),
        taken: Some((Nanos(*time), by.1)),
        looked: Nanos::ZERO,
        known: None,
        tells_loss: false,
    };
    Line {
        way: PipeDirection::ToDevice,
        channel: 0,
        number: 0,
        vector: Some(1),
        device: 0,
        tap: 0,
        kind: Origin::Sink(&diapason_contract::sink::SOURCE),
        bound: None,
        bill: None,
        heard: VecDeque::new(),
        carried: VecDeque::new(),
        acknowledged: VecDeque::new(),
        asks: VecDeque::new(),
        records: (1..).zip(times).map(packet).collect(),
        bus_free: Nanos::ZERO,
        ring_free: Nanos::ZERO,
        segments: [0; 2],
        clock: OwnClock::default(),
        works: false,
        lost: 0,
        far: None,
    }
}

/// Returns the memory of a pipe with these answers: to which packet, and its status.
fn answers(all: &[(u64, u32)]) -> Vec<u8> {
    let mut memory = vec![0; RECORDS];
    for (written, status) in all {
        let mut answer = [0; size_of::<PacketAnswer>()];
        answer[..8].copy_from_slice(&written.to_le_bytes());
        let place = offset_of!(PacketAnswer, status);
        answer[place..place + 4].copy_from_slice(&status.to_le_bytes());
        memory.extend(answer);
    }
    memory
}

#[test]
fn a_packet_is_known_by_its_own_answer_and_lost_without_one() {
    let mut line = written(&[10, 20, 20, 30, 40]);
    let told = (Nanos(50), ThreadId::new(1));
    // The answer to the first packet was lost, and the third one failed.
    let memory = answers(&[(20, DONE), (20, FAILED), (30, DONE), (70, DONE)]);
    line.changed(2, told, (0, 4), &memory);
    let known: Vec<(u64, bool)> =
        line.records.iter().map(|record| (record.number, record.known.is_some())).collect();
    assert_eq!(known, [(2, true), (4, true), (5, false)]);
    assert_eq!(line.lost, 1);
    assert_eq!(line.waiting(Nanos(100)), Nanos(60), "the last one was not answered");
}

#[test]
fn an_acknowledgement_that_comes_too_late_is_of_another_message() {
    let told = |transaction, over: u64| {
        let passing = Passing { channel: 0, load: FrameContent::Acknowledgement, transaction };
        let what = Content::Command(passing);
        let over = Nanos(over);
        Carried { what, place: (1, 2), from: over, to: over, over, vector: 0 }
    };
    let mut all = VecDeque::from([told(7, 10), told(8, 20), told(7, 30)]);
    assert_eq!(acknowledgement(&mut all, 7, Nanos(9)).map(|back| back.over), None);
    assert_eq!(all.len(), 3, "nothing is lost");
    let mut taken = |number, known| acknowledgement(&mut all, number, Nanos(known));
    assert_eq!(taken(7, 10).map(|back| back.over), Some(Nanos(10)));
    assert_eq!(taken(7, 25).map(|back| back.over), None);
    assert_eq!(taken(8, 25).map(|back| back.over), Some(Nanos(20)));
}

/// Until the device has come, an answer that it is gone is no loss.
#[test]
fn a_packet_that_finds_no_device_is_lost_if_there_was_one() {
    let mut line = written(&[10, 20, 30, 40]);
    let told = (Nanos(50), ThreadId::new(1));
    let memory = answers(&[(10, GONE), (20, DONE), (30, GONE), (40, FAILED)]);
    for (answers, lost) in [(1, 0), (2, 0), (3, 1), (4, 2)] {
        line.changed(2, told, (answers - 1, answers), &memory);
        assert_eq!(line.lost, lost);
    }
}

/// Returns the memory of a pipe with records of so many bytes, which have these fields: where each
/// is, its bytes, and its value.
fn memory<const N: usize>(length: usize, all: &[[(usize, usize, u64); N]]) -> Vec<u8> {
    let mut memory = vec![0; RECORDS];
    for fields in all {
        let mut record = vec![0; length];
        for (at, bytes, value) in fields {
            record[*at..at + bytes].copy_from_slice(&value.to_le_bytes()[..*bytes]);
        }
        memory.extend(record);
    }
    memory
}

/// The records of a writer of frames and the answers to them have another form than packets.
#[test]
fn a_frame_is_known_by_its_own_answer_and_other_news_answer_nothing() {
    let ask = |what: u16, written| {
        [(offset_of!(Ask, what), 2, what.into()), (offset_of!(Ask, written), 8, written)]
    };
    let mut line = Line { kind: Origin::Sink(&SINK), ..written(&[]) };
    let by = (Nanos(12), ThreadId::new(0));
    line.changed(0, by, (0, 2), &memory(size_of::<Ask>(), &[ask(BEGIN, 0), ask(SEND, 10)]));
    let numbers: Vec<u64> = line.records.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [2], "a writer that begins writes no frame");
    let news = |what: u32, time| {
        [(offset_of!(News, what), 4, what.into()), (offset_of!(News, time), 8, time)]
    };
    let told = memory(size_of::<News>(), &[news(STATE, 10), news(BACK, 11), news(BACK, 10)]);
    let known = |line: &Line| line.records.front().is_some_and(|record| record.known.is_some());
    line.changed(2, by, (0, 2), &told);
    assert!(!known(&line));
    line.changed(2, by, (2, 3), &told);
    assert!(known(&line));
}

/// The answer to a run of blocks says which ask it is to, and so when the run was due.
#[test]
fn a_run_of_blocks_begins_when_it_was_due() {
    let mut line = Line {
        way: PipeDirection::FromDevice,
        kind: Origin::Source(&disk::SOURCES[0], 0),
        ..written(&[])
    };
    let (reader, server) = (ThreadId::new(0), ThreadId::new(1));
    let ask = |what: u32, block: u64, due| {
        use disk::Ask;
        let (at, count) = (offset_of!(Ask, due), offset_of!(Ask, count));
        [(0, 4, what.into()), (offset_of!(Ask, block), 4, block), (count, 4, 8), (at, 8, due)]
    };
    let asks = [ask(disk::SIZE, 0, 5), ask(READ, 64, 10), ask(READ, 72, 20)];
    line.changed(2, (Nanos(12), reader), (0, 2), &memory(size_of::<disk::Ask>(), &asks));
    line.changed(3, (Nanos(14), server), (0, 2), &[]);
    let told = |asks: &[[(usize, usize, u64); 4]]| {
        let behind = offset_of!(disk::DiskAnswer, ask);
        let all: Vec<_> =
            asks.iter().map(|ask| ask.map(|(at, n, v)| (behind + at, n, v))).collect();
        memory(size_of::<disk::DiskAnswer>(), &all)
    };
    let carried = |block, over| {
        let over = Nanos(over);
        let what = Content::Run(block, 8);
        Carried { what, place: (1, 0x81), from: Nanos(15), to: over, over, vector: 1 }
    };
    line.passed(0, carried(64, 30));
    line.changed(0, (Nanos(33), server), (0, 2), &told(&asks[..2]));
    line.changed(1, (Nanos(40), reader), (0, 2), &[]);
    let journey = line.next(0).expect("the run has arrived");
    assert_eq!((journey.number, journey.from, journey.to), (2, Nanos(10), Nanos(40)));
    let Road::FromDisk { asked, heard, free, put, .. } = journey.road else { panic!("no disk") };
    assert_eq!([asked.0, heard.0, free, put.0], [12, 14, 0, 33].map(Nanos));
    assert!(line.next(0).is_none());
    // The next one waits for the command before it.
    line.changed(2, (Nanos(22), reader), (2, 3), &memory(size_of::<disk::Ask>(), &asks));
    line.changed(3, (Nanos(34), server), (2, 3), &[]);
    line.passed(0, carried(72, 50));
    line.changed(0, (Nanos(52), server), (2, 3), &told(&asks));
    line.changed(1, (Nanos(60), reader), (2, 3), &[]);
    let journey = line.next(0).expect("the next run has arrived");
    let Road::FromDisk { free, .. } = journey.road else { panic!("no disk") };
    assert_eq!((journey.from, free), (Nanos(20), Nanos(33)));
}

/// An ask for the size of the disk writes nothing, and its answer is to nothing.
#[test]
fn the_answer_to_a_written_run_is_known_by_its_time() {
    let mut line = Line { kind: Origin::Sink(&disk::SOURCES[0]), ..written(&[]) };
    let by = (Nanos(12), ThreadId::new(0));
    let run = |what: u32, due: u64| [(0, 4, what.into()), (offset_of!(disk::Ask, due), 8, due)];
    let asks = [run(disk::SIZE, 5), run(WRITE, 10)];
    line.changed(0, by, (0, 2), &memory(size_of::<disk::Ask>(), &asks));
    assert_eq!(line.records.iter().map(|record| record.number).collect::<Vec<_>>(), [2]);
    let behind = offset_of!(disk::DiskAnswer, ask);
    let all = asks.map(|ask| ask.map(|(at, bytes, value)| (behind + at, bytes, value)));
    line.changed(2, by, (0, 2), &memory(size_of::<disk::DiskAnswer>(), &all));
    assert!(line.records.front().is_some_and(|record| record.known.is_some()));
}
