//! The bounds behind the depth, held against every schedule of many small task sets.

mod explorer;

use diapason_abi::Nanos;
use diapason_state::depth::*;
use explorer::{Policy, Task, most_writes};

fn writer_timing(task: &Task) -> WriterTiming {
    WriterTiming::new(Nanos(task.period.into()), Nanos(task.deadline.into()))
        .with_jitter(Nanos(task.jitter.into()))
}

fn reader_timing(task: &Task) -> ReaderTiming {
    let read = task.section.1 - task.section.0;
    ReaderTiming::new(Nanos(task.deadline.into()), Nanos(task.work.into()), Nanos(read.into()))
}

/// The findings of a campaign about one bound.
#[derive(Default, Debug)]
struct Tally {
    sets: u32,
    /// Sets that reach the bound.
    tight: u32,
    /// Sets whose reader could not promise a shorter deadline, and those of them that reach it.
    sharp: u32,
    sharp_and_tight: u32,
    /// Sets beyond the bound for one core, and beyond that of [EMERALDS 1998].
    beyond_one_core: u32,
    beyond_published: u32,
}

impl Tally {
    /// Compares `bound` with the exact answer for one set, if its deadlines hold.
    fn check(
        &mut self,
        tasks: &[Task; 3],
        policy: Policy,
        bound: fn(WriterTiming, ReaderTiming) -> u64,
    ) {
        let Some(exact) = most_writes(tasks, policy).map(u64::from) else { return };
        let (writer, reader) = (writer_timing(&tasks[0]), reader_timing(&tasks[1]));
        let allowed = bound(writer, reader);
        assert!(exact <= allowed, "{exact} writes > {allowed}: {tasks:?} under {policy:?}");
        self.sets += 1;
        self.tight += u32::from(exact == allowed);
        if is_sharp(tasks, policy) {
            self.sharp += 1;
            self.sharp_and_tight += u32::from(exact == allowed);
        }
        self.beyond_one_core += u32::from(exact > overlaps_one_core(writer, reader));
        let published = overlaps_as_published(writer, reader).max(1);
        self.beyond_published += u32::from(exact > published);
    }
}

/// Returns whether the reader misses a deadline one slot shorter. With a slack deadline no bound
/// that is computed from it can be reached.
fn is_sharp(tasks: &[Task; 3], policy: Policy) -> bool {
    let mut shorter = *tasks;
    shorter[1].deadline -= 1;
    shorter[1].deadline < shorter[1].work || most_writes(&shorter, policy).is_none()
}

/// Writers with their write in the whole job, jittered or not.
fn writers(period_max: u8, jitter_max: u8) -> impl Iterator<Item = Task> + Clone {
    (2..=period_max).flat_map(move |period| {
        (1..=2_u8.min(period)).flat_map(move |work| {
            (work..=period).flat_map(move |deadline| {
                (0..=jitter_max.min(deadline - work)).map(move |jitter| Task {
                    period,
                    work,
                    deadline,
                    jitter,
                    section: (0, work),
                })
            })
        })
    })
}

/// Readers with their read anywhere in the job.
fn readers(deadline_max: u8, work_max: u8) -> impl Iterator<Item = Task> + Clone {
    (1..=work_max).flat_map(move |work| {
        (work..=deadline_max).flat_map(move |deadline| {
            (0..work).flat_map(move |begin| {
                (begin + 1..=work).map(move |end| Task {
                    period: deadline,
                    work,
                    deadline,
                    jitter: 0,
                    section: (begin, end),
                })
            })
        })
    })
}

const OTHERS: [Task; 3] = [
    Task::ABSENT,
    Task { period: 3, work: 1, deadline: 2, jitter: 0, section: (0, 0) },
    Task { period: 7, work: 3, deadline: 7, jitter: 0, section: (0, 0) },
];

fn systems(period_max: u8, deadline_max: u8) -> impl Iterator<Item = [Task; 3]> {
    writers(period_max, 1).flat_map(move |writer| {
        readers(deadline_max, 4)
            .flat_map(move |reader| OTHERS.map(move |other| [writer, reader, other]))
    })
}

/// The demand of three jobs must fit, or every schedule misses and the search is in vain.
fn may_be_schedulable(tasks: &[Task; 3]) -> bool {
    let share = |task: &Task| f64::from(task.work) / f64::from(task.period);
    tasks.iter().map(share).sum::<f64>() <= 1.0
}

#[test]
fn one_core_fixed_priorities() {
    const RANKS: [[u8; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut tally = Tally::default();
    for tasks in systems(4, 9).filter(may_be_schedulable) {
        for rank in RANKS {
            if tasks[2].work == 0 && rank[2] != 2 {
                continue;
            }
            // A reader that outranks the writer never meets more than one write.
            let senior = rank[1] < rank[0];
            let bound = if senior { |_, _| 1 } else { overlaps_one_core };
            tally.check(&tasks, Policy::Fixed(rank), bound);
        }
    }
    println!("one core, fixed priorities: {tally:?}");
    assert!(tally.sets > 1_000 && tally.sharp_and_tight > 0);
}

#[test]
fn one_core_earliest_deadline_first() {
    let mut tally = Tally::default();
    for tasks in systems(5, 9).filter(may_be_schedulable) {
        tally.check(&tasks, Policy::Edf, overlaps_one_core_edf);
    }
    println!("one core, EDF: {tally:?}");
    assert!(tally.sets > 1_000 && tally.sharp_and_tight > 0);
    assert!(tally.beyond_published > 0, "the published N should fail for some set");
}

/// Where slots are short against the periods, the bounds for one core are reached almost always.
#[test]
fn one_core_bounds_are_reached() {
    let (mut fixed, mut edf) = (Tally::default(), Tally::default());
    for period in 8..=12 {
        for (deadline, work) in (2..=30).flat_map(|deadline| [(deadline, deadline - deadline / 6)])
        {
            let writer = Task { period, work: 1, deadline: 1, jitter: 0, section: (0, 1) };
            let section = (0, work);
            let reader = Task { period: deadline, work, deadline, jitter: 0, section };
            let tasks = [writer, reader, Task::ABSENT];
            fixed.check(&tasks, Policy::Fixed([0, 1, 2]), overlaps_one_core);
            edf.check(&tasks, Policy::Edf, overlaps_one_core_edf);
        }
    }
    println!("short slots, fixed priorities: {fixed:?}");
    println!("short slots, EDF: {edf:?}");
    for tally in [fixed, edf] {
        assert!(tally.sharp > 50 && tally.sharp_and_tight * 10 > tally.sharp * 8);
        assert!(tally.beyond_published > 0, "the published N should fail here");
    }
}

#[test]
fn any_schedule_on_several_cores_is_bounded_tightly() {
    let mut tally = Tally::default();
    let reads = (1..=10).map(|deadline| Task {
        period: deadline,
        work: 1,
        deadline,
        jitter: 0,
        section: (0, 1),
    });
    for writer in writers(5, 0) {
        for reader in reads.clone() {
            // In half slots, so that a write may end just after the read begins.
            let tasks = [doubled(writer), doubled(reader), Task::ABSENT];
            tally.check(&tasks, Policy::AnyParallel, overlaps_any_schedule);
        }
    }
    println!("several cores: {tally:?}");
    assert!(tally.beyond_one_core > 0, "the shortcut for one core does not hold here");
    assert_eq!(tally.tight, tally.sets, "every set reaches its bound");
}

fn doubled(task: Task) -> Task {
    Task {
        period: 2 * task.period,
        work: 2 * task.work,
        deadline: 2 * task.deadline,
        jitter: 2 * task.jitter,
        section: (2 * task.section.0, 2 * task.section.1),
    }
}

#[test]
fn any_schedule_on_one_core_needs_the_general_bound() {
    let mut tally = Tally::default();
    for tasks in systems(4, 7) {
        tally.check(&tasks, Policy::AnyOneCore, overlaps_any_schedule);
    }
    println!("one core, jobs held back at will: {tally:?}");
    assert!(tally.beyond_one_core > 0, "being held back breaks the bound by priority");
}

/// Item 2 of the errata: writer P = 5, C = 1, d = 1; reader P = 8, C = 6, d = 8, under EDF.
#[test]
fn the_papers_depth_is_one_short() {
    let writer = Task { period: 5, work: 1, deadline: 1, jitter: 0, section: (0, 1) };
    let reader = Task { period: 8, work: 6, deadline: 8, jitter: 0, section: (0, 6) };
    let exact = most_writes(&[writer, reader, Task::ABSENT], Policy::Edf);
    assert_eq!(exact, Some(2), "schedulable, and two writes touch one read: three slots");
    let (writer, reader) = (writer_timing(&writer), [reader_timing(&reader)]);
    assert_eq!(depth_as_published(writer, &reader), 2, "one too few");
    assert_eq!(depth_one_core_edf(writer, &reader), 3);
    assert_eq!(depth_one_core(writer, &reader), 3);
    assert_eq!(depth_any_schedule(writer, &reader), 3);
}

/// A release noticed late comes closer to the next one than a period.
#[test]
fn jitter_cannot_be_left_out() {
    let writer = Task { period: 8, work: 1, deadline: 4, jitter: 3, section: (0, 1) };
    let reader = Task { period: 8, work: 6, deadline: 8, jitter: 0, section: (0, 6) };
    let tasks = [writer, reader, Task::ABSENT];
    let (timing, reader) = (writer_timing(&writer), reader_timing(&reader));
    assert_eq!(most_writes(&tasks, Policy::Fixed([0, 1, 2])), Some(2));
    assert_eq!(overlaps_one_core(timing, reader), 2);
    assert_eq!(overlaps_one_core(timing.with_jitter(Nanos::ZERO), reader), 1);

    let reader = Task { period: 10, work: 7, deadline: 10, jitter: 0, section: (0, 7) };
    let tasks = [writer, reader, Task::ABSENT];
    let reader = reader_timing(&reader);
    assert_eq!(most_writes(&tasks, Policy::Edf), Some(2));
    assert_eq!(overlaps_one_core_edf(timing, reader), 2);
    assert_eq!(overlaps_one_core_edf(timing.with_jitter(Nanos::ZERO), reader), 1);
}
