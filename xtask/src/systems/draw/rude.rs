//! Draws programs that misbehave, and their seats.

use super::{PERIODS, spread};
use crate::systems::drawn::{Budget, Perch, Rude, STORM};
use diapason_random::Random;

/// Priorities of programs that misbehave: below, among and above those of the others.
const PRIORITIES: [u64; 6] = [0, 1, 10, 29, 31, 60];

/// The behaviours of `rude` that are drawn, and the storm.
const BEHAVIOURS: [u64; 22] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, BREED, BELL, 18, 19, 20, STORM];
/// The behaviour that starts a process and ends it.
const BREED: u64 = 16;
/// The behaviour that rings a doorbell which it answers itself.
const BELL: u64 = 17;
/// The behaviour that makes calls which change nothing.
const IDLE: u64 = 13;

/// Draws a program that misbehaves, with its place and priority.
pub fn seat(random: &mut Random) -> Rude {
    let period = spread(random, 500, 40_000);
    let seat = match random.below(8) {
        0 | 1 => Perch::Background,
        2 => Perch::Beside,
        _ => {
            let budget = spread(random, 5, period / 2);
            let server = Budget { budget: budget * 1_000, period: period * 1_000 };
            Perch::Own(server, random.pick(&[2, 4, 8]))
        }
    };
    Rude { arguments: behaviour(random), seat, priority: random.pick(&PRIORITIES), core: 0 }
}

/// Returns whether a program that misbehaves shares nothing with others, so that it may run on
/// another core.
pub fn is_alone(rude: &Rude) -> bool {
    const ALONE: [u64; 10] = [0, 1, 2, 3, 4, 8, 11, BELL, 18, 20];
    ALONE.contains(&rude.arguments[0]) && rude.seat != Perch::Beside
}

/// Leaves one of those that answer the doorbell, and one of those that start the process: one
/// process answers a doorbell, and one supervises another.
pub fn leave_one(all: &mut [Rude]) {
    for how in [BELL, BREED] {
        let same = all.iter_mut().filter(|rude| rude.arguments[0] == how);
        same.skip(1).for_each(|rude| rude.arguments[0] = IDLE);
    }
}

/// Returns one of the behaviours that the README of `rude` lists, or the storm.
fn behaviour(random: &mut Random) -> [u64; 4] {
    let how = random.pick(&BEHAVIOURS);
    let [a, b, c] = match how {
        1 => [random.between(1, 64), spread(random, 200, 5_000), spread(random, 500, 5_000)],
        2 => [random.between(1, 64), random.pick(&PERIODS), random.between(1, 50)],
        3 => [random.pick(&PERIODS), random.between(1, 4), spread(random, 1, 400_000)],
        4 => [spread(random, 50, 10_000), 0, 0],
        5 => [random.between(2, 1_024), spread(random, 10, 5_000), 0],
        6 => [random.between(1, 16), spread(random, 100, 50_000), 0],
        7 => [random.between(1, 31), spread(random, 500, 20_000), 0],
        8 => [spread(random, 1, 1_000), spread(random, 1, 100), 0],
        9 => [spread(random, 1, 2_000), spread(random, 10, 5_000), 0],
        10 | 11 | 13 | 19 | 20 => [spread(random, 1, 5_000), 0, 0],
        12 => [random.between(1, 31), spread(random, 100, 50_000), random.below(5)],
        15 => [random.between(1, 256), spread(random, 1, 5_000), 0],
        BELL => [spread(random, 1, 5_000), 0, 0],
        BREED => [spread(random, 10, 20_000), spread(random, 10, 20_000), 0],
        14 | 18 => [random.between(2, 32), spread(random, 50, 5_000), 0],
        STORM => [random.below(1 << 32), 0, 0],
        _ => [0, 0, 0],
    };
    [how, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behaviour_takes_a_seat() {
        let mut random = Random::new(1);
        let all: Vec<u64> = (0..500).map(|_| seat(&mut random).arguments[0]).collect();
        assert!(BEHAVIOURS.iter().all(|how| all.contains(how)));
    }
}
