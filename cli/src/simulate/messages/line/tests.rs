//! Packets with their answers, and acknowledgements.

use super::*;
use diapason_contract::network::{BEGIN, SINK, STATE};
use diapason_contract::sink::FAILED;

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
        records: (1..).zip(times).map(packet).collect(),
        bus_free: Nanos::ZERO,
        ring_free: Nanos::ZERO,
        segments: [0; 2],
        clock: OwnClock::default(),
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
