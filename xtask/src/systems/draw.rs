//! Draws systems: every part of a description that can matter to a promise, down to the smallest
//! that is legal.

use super::drawn::{Budget, Drawn, DrawnPipe, DrawnTask, Gadget, Interface, Perch, Queues, Rude};
use super::text::GREEDY;
use diapason_random::Random;

/// Periods of tasks, in microseconds.
const PERIODS: [u64; 12] =
    [500, 1_000, 1_250, 2_000, 2_500, 4_000, 5_000, 7_000, 10_000, 20_000, 40_000, 100_000];
/// Clocks, in MHz; the first one is QEMU's.
const CLOCKS: [u64; 7] = [1_000, 1_000, 1_000, 20, 100, 512, 4_000];

/// The system number `number` of a campaign.
#[must_use]
pub fn system(seed: u64, number: u64) -> Drawn {
    let mut random = Random::stream(seed, number);
    let random = &mut random;
    let clock_mhz = random.pick(&CLOCKS);
    let mut drawn = Drawn {
        clock_mhz,
        queues: Queues::Periods,
        tasks: Vec::new(),
        can: None,
        rude: Vec::new(),
        drift_ppm: 0,
        faults: random.one_in(4),
    };
    let family = random.below(4);
    if family != 1 {
        let tasks = random.below(if family == 0 { 12 } else { 4 });
        let locks = random.one_in(3);
        drawn.tasks = (0..tasks).map(|_| task(random, tasks, locks, clock_mhz)).collect();
    }
    if family != 0 {
        drawn.can = Some(can(random));
        if random.one_in(3) {
            drawn.drift_ppm = random.between(0, 400) as i64 - 200;
        }
    }
    if random.below(3) > 0 {
        let seats = random.between(1, 3);
        drawn.rude = (0..seats).map(|_| rude(random)).collect();
    }
    let mains = drawn.tasks.len() + drawn.can.as_ref().map_or(0, |can| can.pipes.len());
    if drawn.tasks.is_empty() && drawn.can.is_none() {
        drawn.tasks.push(task(random, 1, false, clock_mhz));
    }
    drawn.queues = match random.below(4) {
        0 => Queues::Deadlines,
        1 => Queues::First(random.between(1, mains.max(1) as u64) as usize),
        _ => Queues::Periods,
    };
    drawn
}

/// A number whose logarithm is spread evenly: as many small ones as large ones.
fn spread(random: &mut Random, low: u64, high: u64) -> u64 {
    let (low, high) = (low.max(1), high.max(low.max(1)));
    let doublings = u64::from((high / low).max(1).ilog2());
    let from = low << random.between(0, doublings);
    random.between(from, (from * 2).min(high).max(from)).clamp(low, high)
}

fn task(random: &mut Random, count: u64, locks: bool, clock_mhz: u64) -> DrawnTask {
    let period = random.pick(&PERIODS);
    let most = (period * 1_200 / 1_000 / count.max(1)).min(period * 9 / 10).max(6);
    let work = spread(random, 5, most);
    let section = if locks && random.one_in(2) { random.between(1, work) } else { 0 };
    // Its calls and switches take longer on a slow processor.
    let spare = spread(random, 6, work.clamp(20, 400)) * (1_000 / clock_mhz).max(1);
    let spare = spare.min(period - work);
    let replenishments = random.pick(&[2, 2, 4, 8, 8]);
    DrawnTask { period, phase: random.below(period), work, section, spare, replenishments }
}

fn can(random: &mut Random) -> Interface {
    let mut channels = vec![0, 1, 2, 3, 4];
    let count = if random.one_in(3) { 5 } else { random.between(1, 5) };
    while channels.len() > count as usize {
        channels.remove(random.index(channels.len()));
    }
    let lies = random.one_in(8);
    let tuned = random.one_in(10);
    // A tuned pipe of a channel asks for what the channel's own pipe says.
    let pipes = channels.iter().map(|channel| pipe(random, *channel, lies && !tuned)).collect();
    let classes = if random.one_in(3) { classes(random) } else { Vec::new() };
    let manage = Budget {
        budget: 1_000 * spread(random, 10, 400),
        period: 1_000 * random.pick(&[1_000, 2_500, 5_000, 10_000]),
    };
    Interface {
        manage,
        share: random.between(3, 45),
        works: spread(random, 2, 100),
        pipes,
        behind_hub: random.one_in(12),
        classes,
        tuned,
    }
}

fn classes(random: &mut Random) -> Vec<Gadget> {
    let mut classes = Vec::new();
    if random.one_in(2) {
        classes.push(Gadget::Sensor);
    }
    if random.one_in(2) {
        classes.push(Gadget::Keyboard);
    }
    if random.one_in(2) {
        classes.push(Gadget::Disk(spread(random, 10, 3_000)));
    }
    classes
}

fn pipe(random: &mut Random, channel: u64, lies: bool) -> DrawnPipe {
    let work = spread(random, 300, 12_000);
    let takes = match random.below(6) {
        0 if lies => work * random.between(2, 100),
        1 => work / 2,
        _ => work,
    };
    let rate = if lies && random.one_in(4) { random.between(1, 99) } else { 100 };
    let period = 1_000 * random.pick(&[200, 500, 1_000, 2_500, 2_500, 5_000, 10_000, 20_000]);
    // The time that the messages of a period take, and a part or a multiple of it.
    let load = super::drawn::TRAFFIC[channel as usize] * work * (period / 1_000) / 1_000_000;
    let factor = spread(random, 80, 1_600);
    let budget = (load * factor / 100).clamp(1_000, period * 6 / 10);
    let replenishments = random.pick(&[2, 4, 8, 8, 8]);
    let shares = random.one_in(8);
    DrawnPipe {
        channel,
        rate,
        work,
        takes,
        server: Budget { budget, period },
        replenishments,
        shares,
    }
}

fn rude(random: &mut Random) -> Rude {
    let period = spread(random, 500, 40_000);
    let arguments = match random.below(10) {
        0 => [0, 0, 0, 0],
        1 => [1, random.between(1, 64), spread(random, 200, 5_000), spread(random, 500, 5_000)],
        2 => [2, random.between(1, 64), random.pick(&PERIODS), random.between(1, 50)],
        GREEDY => [GREEDY, random.pick(&PERIODS), random.between(1, 4), spread(random, 1, 400_000)],
        4 => [4, spread(random, 50, 10_000), 0, 0],
        5 => [5, random.between(2, 1_024), spread(random, 10, 5_000), 0],
        6 => [6, random.between(1, 16), spread(random, 100, 50_000), 0],
        7 => [7, random.between(1, 31), spread(random, 500, 20_000), 0],
        8 => [8, spread(random, 1, 1_000), spread(random, 1, 100), 0],
        _ => [9, spread(random, 1, 2_000), spread(random, 10, 5_000), 0],
    };
    let seat = match random.below(8) {
        0 | 1 => Perch::Background,
        2 => Perch::Beside,
        _ => {
            let budget = spread(random, 5, period / 2);
            let server = Budget { budget: budget * 1_000, period: period * 1_000 };
            Perch::Own(server, random.pick(&[2, 4, 8]))
        }
    };
    Rude { arguments, seat, priority: random.pick(&[0, 1, 10, 29, 31, 60]) }
}

#[cfg(test)]
mod tests {
    use super::super::text::description;
    use super::*;

    /// A description that the reader refuses proves nothing: nearly all must get to the planner.
    #[test]
    fn what_is_drawn_is_a_description() {
        let (mut read, mut wrong) = (0, Vec::new());
        for number in 0..300 {
            let text = description(&system(5, number), "drawn");
            match diapason_system::parse("drawn", &text) {
                Ok(_) => read += 1,
                Err(why) => wrong.push(why.plain()),
            }
        }
        assert!(read >= 270, "{read} of 300 are read: {}", wrong.join("\n"));
    }

    #[test]
    fn a_number_draws_the_same_again_and_neighbours_differ() {
        assert_eq!(system(1, 7), system(1, 7));
        assert_ne!(system(1, 7), system(1, 8));
        assert_ne!(system(1, 7), system(2, 7));
    }

    #[test]
    fn small_numbers_are_as_likely_as_large_ones() {
        let mut random = Random::new(3);
        let all: Vec<u64> = (0..1_000).map(|_| spread(&mut random, 10, 10_000)).collect();
        assert!(all.iter().all(|n| (10..=10_000).contains(n)));
        let small = all.iter().filter(|n| **n < 320).count();
        assert!((350..650).contains(&small), "{small}");
    }
}
