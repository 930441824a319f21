//! The code of the buffer itself under every interleaving of its shared accesses: `N` slots carry
//! `N − 1` writes during a read and not one more.

mod baton;

use baton::{Handover, every_interleaving};
use diapason_state::{CopyInOnePiece, Overtaken, StateBuffer, Step};

const WORDS: usize = 2;
type Cell<const N: usize> = StateBuffer<[u64; WORDS], N>;

fn is_whole(value: [u64; WORDS]) -> bool {
    value == [value[0]; WORDS]
}

/// The outcomes of all interleavings of one read with some writes.
#[derive(Default, Debug)]
struct Outcomes {
    interleavings: u32,
    torn: u32,
    alarms: u32,
    missed_alarms: u32,
    stale: u32,
}

fn one_read_against<const N: usize>(writes: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    outcomes.interleavings = every_interleaving(|runner| {
        let mut cell = Cell::<N>::new();
        let (writer, reader) = cell.split();
        let (mut writer, reader) = (writer.with_step::<Handover>(), reader.with_step::<Handover>());
        let (mut before, mut value) = (0, [0; WORDS]);
        let writing = || (1..=writes).for_each(|number| writer.write([number; WORDS]));
        let reading = || {
            before = reader.published();
            value = reader.read();
        };
        runner.run(writing, reading);
        outcomes.torn += u32::from(!is_whole(value));
        outcomes.stale += u32::from(is_whole(value) && value[0] < before);
    });
    outcomes
}

fn one_checked_read_against<const N: usize>(writes: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    outcomes.interleavings = every_interleaving(|runner| {
        let mut cell = Cell::<N>::new();
        let (writer, reader) = cell.split();
        let (mut writer, reader) = (writer.with_step::<Handover>(), reader.with_step::<Handover>());
        let mut result = Err(Overtaken { writes: 0 });
        let writing = || (1..=writes).for_each(|number| writer.write([number; WORDS]));
        runner.run(writing, || result = reader.read_checked());
        outcomes.alarms += u32::from(result.is_err());
        outcomes.missed_alarms += u32::from(result.is_ok_and(|value| !is_whole(value)));
    });
    outcomes
}

#[test]
fn n_slots_carry_n_minus_one_writes_and_not_one_more() {
    let enough = [one_read_against::<2>(1), one_read_against::<3>(2), one_read_against::<4>(3)];
    let short = [one_read_against::<2>(2), one_read_against::<3>(3)];
    println!("N slots, N - 1 writes: {enough:?}\nN slots, N writes: {short:?}");
    for outcomes in enough {
        assert!(outcomes.interleavings >= 35);
        assert_eq!((outcomes.torn, outcomes.stale), (0, 0));
    }
    for outcomes in short {
        assert!(outcomes.torn > 0, "one slot less is too few");
    }
}

#[test]
fn a_checked_read_is_never_torn_and_never_cries_wolf() {
    let enough = [one_checked_read_against::<2>(1), one_checked_read_against::<3>(2)];
    let short = [one_checked_read_against::<2>(2)];
    println!("checked, N - 1 writes: {enough:?}\nchecked, N writes or more: {short:?}");
    for outcomes in &enough {
        assert_eq!(outcomes.alarms, 0, "no alarm while the depth's assumption holds");
    }
    for outcomes in enough.iter().chain(&short) {
        assert_eq!(outcomes.missed_alarms, 0);
    }
    assert!(short.iter().all(|outcomes| outcomes.alarms > 0));
}

/// A kernel whose copy is one step: the baton may pass before it and not within.
struct InterruptsOff;

// SAFETY: the copy contains no step, so the other thread does not run during it.
unsafe impl CopyInOnePiece for InterruptsOff {
    unsafe fn copy(&self, destination: *mut u8, source: *const u8, length: usize) {
        Handover::step();
        // SAFETY: passed on to the caller.
        unsafe { destination.copy_from_nonoverlapping(source, length) }
    }
}

#[test]
fn slow_reads_need_two_slots_however_many_writes_pass() {
    let interleavings = every_interleaving(|runner| {
        let mut cell = Cell::<2>::new();
        let (writer, reader) = cell.split();
        let mut writer = writer.with_step::<Handover>();
        let mut values = [[0; WORDS]; 2];
        let writing = || (1..=4).for_each(|number| writer.write([number; WORDS]));
        runner.run(writing, || values = [(); 2].map(|()| reader.read_slow(&InterruptsOff)));
        assert!(values.iter().all(|value| is_whole(*value)));
        assert!(values[0][0] <= values[1][0], "time does not run backwards");
    });
    assert!(interleavings > 100);
}

#[test]
fn successive_reads_never_go_back() {
    let interleavings = every_interleaving(|runner| {
        let mut cell = Cell::<3>::new();
        let (writer, reader) = cell.split();
        let (mut writer, reader) = (writer.with_step::<Handover>(), reader.with_step::<Handover>());
        let mut values = [[0; WORDS]; 2];
        let writing = || (1..=2).for_each(|number| writer.write([number; WORDS]));
        runner.run(writing, || values = [(); 2].map(|()| reader.read()));
        assert!(values.iter().all(|value| is_whole(*value)));
        assert!(values[0][0] <= values[1][0]);
    });
    assert!(interleavings > 1_000);
}
