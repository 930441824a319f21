//! The ring against a queue that cannot be wrong: any pushes and pops, alone and in batches.

use std::collections::VecDeque;

use diapason_pipe::{Ring, RingFull};
use diapason_random::Random;

type Record = [u64; 2];

struct Model<const N: usize> {
    queue: VecDeque<Record>,
    next: u64,
    lost: u64,
    peak: usize,
}

impl<const N: usize> Model<N> {
    fn fresh(&mut self) -> Record {
        self.next += 1;
        [self.next, !self.next]
    }

    fn push(&mut self, record: Record) -> bool {
        let room = self.queue.len() < N;
        if room {
            self.queue.push_back(record);
        }
        self.lost += u64::from(!room);
        self.peak = self.peak.max(self.queue.len());
        room
    }
}

fn one_life<const N: usize>(random: &mut Random) {
    let mut model = Model::<N> { queue: VecDeque::new(), next: 0, lost: 0, peak: 0 };
    let mut ring = Ring::<Record, N>::new();
    let (mut writer, mut reader) = ring.split();
    for _ in 0..200 {
        match random.below(4) {
            0 => {
                let record = model.fresh();
                let expected = if model.push(record) { Ok(()) } else { Err(RingFull) };
                assert_eq!(writer.push(&record), expected);
            }
            1 => {
                let records: Vec<Record> =
                    (0..random.index(N + 3)).map(|_| model.fresh()).collect();
                let accepted = records.iter().filter(|record| model.push(**record)).count();
                assert_eq!(writer.push_many(&records), accepted);
            }
            2 => assert_eq!(reader.pop(), model.queue.pop_front()),
            _ => {
                let mut records = vec![[0; 2]; random.index(N + 3)];
                let count = reader.pop_many(&mut records);
                let most = records.len().min(model.queue.len());
                assert_eq!(records[..count], model.queue.drain(..most).collect::<Vec<_>>());
            }
        }
        assert_eq!([writer.len(), reader.len()], [Ok(model.queue.len()); 2]);
        assert_eq!([writer.lost(), reader.lost()], [model.lost; 2]);
        assert_eq!([writer.peak(), reader.peak()], [model.peak as u64; 2]);
    }
}

#[test]
fn a_ring_is_a_bounded_queue() {
    for case in 0..500 {
        let mut random = Random::stream(1, case);
        one_life::<1>(&mut random);
        one_life::<2>(&mut random);
        one_life::<3>(&mut random);
        one_life::<7>(&mut random);
        one_life::<64>(&mut random);
    }
}

#[test]
fn a_restarted_end_goes_on_where_it_stopped() {
    let mut ring = Ring::<u64, 3>::new();
    let mut expected = 1..;
    for round in 0..50 {
        let (mut writer, mut reader) = ring.split();
        let first = 2 * round + 1;
        assert_eq!(writer.push_many(&[first, first + 1]), 2);
        assert_eq!(reader.pop(), expected.next());
        let (mut writer, mut reader) = ring.split();
        assert_eq!(writer.len(), Ok(1));
        assert_eq!(writer.push_many(&[0, 0, 0]), 2, "one is still in there");
        assert_eq!(reader.pop(), expected.next());
        assert_eq!(reader.pop_many(&mut [9; 4]), 2);
        assert_eq!((reader.lost(), writer.peak()), (round + 1, 3));
    }
}
