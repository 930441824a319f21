//! State messages between processes, over a shared segment.

use crate::check;
use crate::peer::{answer, begin};
use crate::why::{Outcome, Trial};
use diapason_rt::memory::{KernelCopy, Segment};
use diapason_rt::{Nanos, time};
use diapason_state::StateReader;
use diapason_trials::{Cell, Pair, order};

pub const TRIALS: &[(&str, Trial)] =
    &[("a reader sees whole and newer states", reads), ("a slow reader too", slow_reads)];

/// Jobs of the writer, one each 100 microseconds.
const WRITES: u64 = 100;

fn follow(read: impl Fn(&StateReader<'_, Cell>) -> Pair) -> Outcome {
    let segment = Segment::attach("state")?;
    // SAFETY: the description grants the segment to one writer and this reader; zero is a cell.
    let reader = unsafe { StateReader::from_raw(segment.address().cast::<Cell>().cast_const()) };
    begin(order::WRITE, WRITES)?;
    let (mut last, mut changes) = (0, 0);
    let end = time::now() + Nanos::from_millis(15);
    while last < WRITES && time::now() < end {
        let state = read(&reader);
        check!(state.is_whole());
        check!(state.first >= last);
        changes += u64::from(state.first > last);
        last = state.first;
        time::sleep(Nanos::from_micros(37));
    }
    check!(last == WRITES && changes == WRITES);
    answer(order::WRITE)?;
    Ok(())
}

fn reads() -> Outcome {
    follow(|reader| reader.read())
}

fn slow_reads() -> Outcome {
    follow(|reader| reader.read_slow(&KernelCopy))
}
