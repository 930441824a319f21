//! Puts what a drawn system has on several cores.

use super::{can, rude, spread};
use crate::systems::drawn::{Budget, Drawn, DrawnBoard, Queues, reader};
use diapason_random::Random;

/// Most cores of a drawn system.
const CORES: u64 = 4;
/// The slowest clock, in MHz, of a system with a board: its controller has a job in every
/// millisecond.
const SLOWEST: u64 = 100;

/// Lets what shares nothing with others run on any of two to four cores. The readers of devices may
/// be on other cores than their server.
pub fn spread_out(random: &mut Random, drawn: &mut Drawn) {
    let count = random.between(2, CORES);
    // A program that misbehaves may be beside the first task.
    let keeps_first = usize::from(drawn.can.is_none());
    let alone: Vec<bool> =
        drawn.tasks.iter().map(|task| task.section == 0 && drawn.asked(task).is_empty()).collect();
    let tasks = drawn.tasks.iter_mut().zip(alone).skip(keeps_first);
    for (task, _) in tasks.filter(|(_, alone)| *alone) {
        task.core = random.below(count);
    }
    for rude in drawn.rude.iter_mut().filter(|rude| rude::is_alone(rude)) {
        rude.core = random.below(count);
    }
    drawn.can.iter_mut().for_each(|can| can::reads(random, can));
    let classes = drawn.can.iter_mut().flat_map(|can| &mut can.classes);
    for core in classes.filter_map(reader) {
        *core = random.below(count);
    }
    if random.one_in(2) && drawn.clock_mhz >= SLOWEST {
        drawn.board = Some(board(random, count));
    }
    // A queue by deadline is of one core.
    if matches!(drawn.queues, Queues::First(_)) && drawn.cores() > 1 {
        drawn.queues = Queues::Deadlines;
    }
}

fn board(random: &mut Random, count: u64) -> DrawnBoard {
    let control = random.below(count);
    let logger = (control + random.between(1, count - 1)) % count;
    let period = random.pick(&[2_500, 5_000, 10_000, 20_000]);
    DrawnBoard {
        control,
        logger,
        server: Budget { budget: 1_000 * spread(random, 40, period / 4), period: 1_000 * period },
        interval: random.pick(&[20, 200, 1_000, 9_000]),
        storm: random.one_in(2).then(|| random.below(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::raw;
    use super::*;

    #[test]
    fn every_number_of_cores_is_drawn_and_readers_are_far() {
        let all: Vec<Drawn> = (0..600).map(|number| raw(5, number)).collect();
        let several = |count: u64| all.iter().filter(|drawn| drawn.cores() == count).count();
        assert!((2..=CORES).all(|count| several(count) > 9), "{}", several(4));
        let far = |drawn: &&Drawn| {
            let mut copy = (*drawn).clone();
            let mut classes = copy.can.iter_mut().flat_map(|can| &mut can.classes);
            classes.any(|class| reader(class).is_some_and(|core| *core > 0))
        };
        assert!(all.iter().filter(far).count() > 40);
        let boards: Vec<&DrawnBoard> = all.iter().filter_map(|it| it.board.as_ref()).collect();
        assert!(boards.iter().all(|board| board.control != board.logger));
        let storms = boards.iter().filter(|board| board.storm.is_some()).count();
        assert!(storms > 9 && storms + 9 < boards.len(), "{storms} of {}", boards.len());
    }

    /// A core without a process would make a system no description.
    #[test]
    fn cores_without_anything_are_left_out() {
        let spread = (0..).map(|number| raw(5, number)).find(|drawn| drawn.cores() == 4);
        let mut drawn = spread.unwrap();
        drawn.tasks.iter_mut().for_each(|task| task.core *= 2);
        drawn.places().into_iter().for_each(|core| *core *= 2);
        let packed = drawn.packed();
        assert_eq!(packed.cores(), drawn.cores());
        let most = packed.clone().places().into_iter().map(|core| *core).max();
        assert_eq!(most, Some(packed.cores() - 1));
    }
}
