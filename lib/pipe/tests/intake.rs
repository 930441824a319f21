//! Writers that keep their contract and writers that do not, at one reader.

use diapason_abi::Nanos;
use diapason_pipe::intake::Intake;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_pipe::{Ring, RingFull};
use diapason_random::Random;
use diapason_state::plain;

plain! {
    /// A message: when it was made.
    pub struct Made { at: u64 }
}

const PERIOD: u64 = 100;
const JITTER: u64 = 20;

fn contract() -> Meter {
    Meter::new(Bucket::periodic(Nanos(PERIOD)).with_jitter(Nanos(JITTER)))
}

#[test]
fn one_that_keeps_its_contract_is_never_held_beside_one_that_floods() {
    let mut floods = 0;
    for life in 0..300 {
        let mut random = Random::stream(7, life);
        let (mut good, mut bad) = (Ring::<Made, 8>::new(), Ring::<Made, 8>::new());
        let ((mut to_good, good), (mut to_bad, bad)) = (good.split(), bad.split());
        let mut intake = Intake::<_, 3>::new([None, Some(bad), Some(good)]);
        let mut meters = [contract(), contract(), contract()];
        let mut taken: [Vec<u64>; 3] = Default::default();
        let (mut next, mut seen) = (random.below(PERIOD), 0);
        for now in 0..4_000 {
            if now == next {
                to_good.push(&Made { at: now }).unwrap();
                next += PERIOD + random.below(2) * random.below(30);
            }
            if random.below(3) == 0 {
                floods += u64::from(to_bad.push(&Made { at: now }) == Err(RingFull));
            }
            // The reader may be late by the jitter.
            if random.below(2) == 0 || now - seen >= JITTER {
                seen = now;
                while let Some(one) = intake.take(Nanos(now), |place, _| meters[place].opens()) {
                    assert!(meters[one.writer].admits(Nanos(now)), "one that was taken is within");
                    assert!(one.held.is_none() || one.writer == 1, "{:?}", one.held);
                    assert!(one.held.is_none_or(|opens| opens <= Nanos(now)));
                    taken[one.writer].push(now - one.message.at);
                }
                assert!(intake.due().is_none_or(|due| due > Nanos(now)));
            }
        }
        assert!(taken[2].len() >= 30 && taken[2].iter().all(|wait| *wait <= JITTER), "{taken:?}");
        let most = 1 + (4_000 + JITTER) / PERIOD;
        assert!(taken[1].len() as u64 <= most, "{} of {most}", taken[1].len());
    }
    assert!(floods > 100_000, "{floods}");
}

#[test]
fn writers_take_turns() {
    let mut rings = [const { Ring::<Made, 8>::new() }; 3];
    let mut ends = rings.iter_mut().map(Ring::split);
    let mut writers = Vec::new();
    let readers = [(); 3].map(|()| {
        let (writer, reader) = ends.next().unwrap();
        writers.push(writer);
        Some(reader)
    });
    for writer in &mut writers {
        (0..3).for_each(|at| writer.push(&Made { at }).unwrap());
    }
    let mut intake = Intake::new(readers);
    let order = std::iter::from_fn(|| intake.take(Nanos(0), |_, _| Nanos::ZERO));
    let order: Vec<usize> = order.map(|one| one.writer).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(intake.due(), None);
}

#[test]
fn a_message_that_waits_says_since_when_it_might_have_come() {
    let mut ring = Ring::<Made, 8>::new();
    let (mut writer, reader) = ring.split();
    (0..2).for_each(|at| writer.push(&Made { at }).unwrap());
    let mut intake = Intake::new([Some(reader)]);
    let opens = |_: usize, message: &Made| Nanos(message.at * 50);
    assert_eq!(intake.take(Nanos(10), opens).map(|one| one.held), Some(None));
    assert!(intake.take(Nanos(10), opens).is_none());
    assert_eq!(intake.due(), Some(Nanos(50)));
    assert!(intake.take(Nanos(49), opens).is_none());
    assert_eq!(intake.take(Nanos(60), opens).map(|one| one.held), Some(Some(Nanos(50))));
}
