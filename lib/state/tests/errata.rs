//! The counter-example to [EMERALDS 1998, §3.4.2] run with the real code under EDF: its two slots
//! tear, three do not.
//!
//! Writer: period 5, one slot of work, deadline 1. Reader: six slots of work, all of them the read
//! of a five-word value, deadline 8. The writer always has the earlier deadline, so each of its
//! jobs runs as soon as it is released; its releases are chosen against the reader.

use std::cell::RefCell;

use diapason_state::{NoStep, StateBuffer, StateWriter, Step};

const PERIOD: u64 = 5;
const READER_DEADLINE: u64 = 8;
type Value = [u64; 5];

/// The core of the example: a clock in slots, and the writer's next job.
struct Core {
    now: u64,
    next_release: u64,
    job: Box<dyn FnMut()>,
}

thread_local! {
    static CORE: RefCell<Option<Core>> = const { RefCell::new(None) };
}

/// Called before each access of the reader: due jobs of the writer run first, one slot each, and
/// then the reader has its slot.
struct Slot;

impl Step for Slot {
    fn step() {
        CORE.with_borrow_mut(|core| {
            let core = core.as_mut().expect("a read happens on the core");
            while core.next_release <= core.now {
                (core.job)();
                core.now += 1;
                core.next_release += PERIOD;
            }
            core.now += 1;
        });
    }
}

/// Reads once while the writer is released at `phase` and every period after it.
fn read_under_edf<const N: usize>(phase: u64) -> Value {
    let cell: &'static mut StateBuffer<Value, N> = Box::leak(Box::new(StateBuffer::new()));
    let (mut writer, reader): (StateWriter<'static, _, NoStep>, _) = cell.split();
    let mut number = 0;
    let job = Box::new(move || {
        number += 1;
        writer.write([number; 5]);
    });
    CORE.set(Some(Core { now: 0, next_release: phase, job }));
    let value = reader.with_step::<Slot>().read();
    let core = CORE.take().expect("set above");
    assert!(core.now <= READER_DEADLINE, "the reader meets its deadline");
    value
}

fn is_whole(value: Value) -> bool {
    value == [value[0]; 5]
}

#[test]
fn the_papers_two_slots_tear_and_three_hold() {
    let torn: Vec<u64> = (1..=9).filter(|phase| !is_whole(read_under_edf::<2>(*phase))).collect();
    assert_eq!(torn, [1], "released one slot after the read began, the second write hits it");
    assert!((1..=9).all(|phase| is_whole(read_under_edf::<3>(phase))));
}
