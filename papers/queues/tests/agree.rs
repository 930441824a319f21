//! Both structures choose the same task after every step of random lives, and it is the right one.

use diapason_queues::{DeadlineList, NOBODY, PeriodList, Ranks, TASKS_MAX, Task};
use diapason_random::Random;

#[test]
fn list_and_ranks_choose_the_most_urgent_task() {
    let mut random = Random::new(41);
    for _ in 0..400 {
        let count = 1 + random.index(TASKS_MAX);
        let periods: Vec<u64> = (0..count).map(|_| random.between(1, 20)).collect();
        let mut by_deadline = DeadlineList::new(count);
        let mut by_period = PeriodList::new(&periods);
        let mut ranks = Ranks::new(&periods);
        let mut ready: Vec<Option<u64>> = vec![None; count];
        for step in 0..300 {
            let task = random.index(count);
            // No two deadlines are equal: of those the structures may choose either.
            let deadline = random.below(1_000) * 1_000 + step;
            if ready[task].take().is_some() {
                by_deadline.block(task as Task);
                by_period.block(task as Task);
                ranks.block(task as Task);
            } else {
                ready[task] = Some(deadline);
                by_deadline.unblock(task as Task, deadline);
                by_period.unblock(task as Task);
                ranks.unblock(task as Task, deadline);
            }
            let able = || (0..count).filter(|task| ready[*task].is_some());
            let shortest = able().min_by_key(|task| (periods[*task], *task));
            let shortest = shortest.map_or(NOBODY, |task| task as Task);
            assert_eq!((by_period.select(), ranks.by_period()), (shortest, shortest));
            let earliest = able().min_by_key(|task| ready[*task]);
            let earliest = earliest.map_or(NOBODY, |task| task as Task);
            assert_eq!((by_deadline.select(), ranks.by_deadline()), (earliest, earliest));
        }
    }
}

#[test]
fn a_number_that_is_no_task_is_nobody() {
    let mut lists = (DeadlineList::new(TASKS_MAX + 1), PeriodList::new(&[]), Ranks::new(&[]));
    lists.0.unblock(NOBODY, 1);
    lists.0.block(64);
    lists.1.unblock(NOBODY);
    lists.1.block(64);
    lists.2.unblock(NOBODY, 1);
    lists.2.block(64);
    assert_eq!((lists.0.select(), lists.1.select()), (NOBODY, NOBODY));
    assert_eq!((lists.2.by_period(), lists.2.by_deadline()), (NOBODY, NOBODY));
}
