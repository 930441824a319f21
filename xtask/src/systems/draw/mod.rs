//! Draws systems: every part of a description that can matter to a promise, down to the smallest
//! that is legal.

mod afford;
mod aim;
mod bus;
mod can;
mod cores;
mod rude;
mod servers;

use super::drawn::{Budget, Drawn, DrawnTask, Queues, SERVERS};
use diapason_random::Random;

/// Periods of tasks, in microseconds.
const PERIODS: [u64; 12] =
    [500, 1_000, 1_250, 2_000, 2_500, 4_000, 5_000, 7_000, 10_000, 20_000, 40_000, 100_000];
/// Most steps until no budget is too small. A longer one makes other VCPUs wait.
const AFFORDED: usize = 12;
/// Clocks, in MHz; the first one is QEMU's.
const CLOCKS: [u64; 7] = [1_000, 1_000, 1_000, 20, 100, 512, 4_000];
/// The slowest clock, in MHz, of a system that has a controller with message buffers or an
/// actuator.
const FAST: u64 = 512;

/// Returns the system number `number` of a campaign. Of eight, seven are at the margin of what
/// `refuses` admits; the eighth is as chance has it, so that refusals are seen, too.
#[must_use]
pub fn system(seed: u64, number: u64, refuses: aim::Plans<'_>) -> Drawn {
    let mut drawn = raw(seed, number);
    let random = &mut Random::stream(!seed, number);
    // One of 64 keeps budgets that are too small.
    if number % 64 < 63 {
        afford_all(random, &mut drawn, refuses);
    }
    if number % 8 == 7 {
        return drawn;
    }
    aim::aim(random, drawn, refuses)
}

/// Makes budgets large enough for what the kernel takes of them, so that other rules are asked.
fn afford_all(random: &mut Random, drawn: &mut Drawn, refuses: aim::Plans<'_>) {
    for _ in 0..AFFORDED {
        let Some(why) = refuses(drawn) else { return };
        if !afford::afford(random, drawn, &why) {
            return;
        }
    }
}

/// Returns the system number `number` of a campaign, as chance has it.
#[must_use]
pub fn raw(seed: u64, number: u64) -> Drawn {
    let random = &mut Random::stream(seed, number);
    let clock_mhz = random.pick(&CLOCKS);
    let mut drawn = Drawn {
        clock_mhz,
        queues: Queues::Periods,
        closed: random.one_in(10),
        tasks: Vec::new(),
        servers: Vec::new(),
        can: None,
        bus: None,
        board: None,
        rude: Vec::new(),
        watch: Budget { budget: 100_000, period: 20_000_000 },
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
        drawn.can = Some(can::interface(random));
        if random.one_in(3) {
            drawn.drift_ppm = random.between(0, 200) as i64 - 100;
        }
    }
    if random.below(3) > 0 {
        let seats = random.between(1, 3);
        drawn.rude = (0..seats).map(|_| rude::seat(random)).collect();
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
    let has_cores = random.below(8) < 3;
    if random.one_in(6) {
        drawn.can.iter_mut().filter(|can| !can.tuned).for_each(|can| can::second(random, can));
    }
    rude::leave_one(&mut drawn.rude);
    // The rest of a system is drawn as it was before these were.
    let random = &mut Random::stream(seed.rotate_left(32), number);
    // A tuned pipe says 4 for a channel that others read, too.
    let even = drawn.can.iter_mut().filter(|can| !can.tuned);
    for pipe in even.flat_map(|can| can.pipes.iter_mut().chain(&mut can.second)) {
        pipe.burst = random.pick(&[1, 1, 1, 2, 4]);
    }
    drawn.can.iter_mut().for_each(|can| can.bursts = random.below(4) > 0);
    sink(&mut Random::stream(seed.rotate_left(16), number), &mut drawn);
    drawn.can.iter_mut().for_each(|can| can::seconds((seed, number), can));
    if random.one_in(3) {
        servers::serve(random, &mut drawn);
    }
    // On a slow processor no driver of a controller is in time, and it knows one core.
    if random.one_in(4) && clock_mhz >= FAST {
        bus::join(random, &mut drawn);
    } else if has_cores {
        cores::spread_out(&mut Random::stream(seed.rotate_left(8), number), &mut drawn);
    }
    can::datagrams((seed, number), &mut drawn);
    drawn
}

/// Adds an actuator to one interface of three. Its interrupts are close to each other: hardly any
/// such system is admitted on a slow processor, or with much else.
fn sink(random: &mut Random, drawn: &mut Drawn) {
    let Some(can) = drawn.can.as_mut().filter(|_| random.one_in(3)) else { return };
    drawn.clock_mhz = drawn.clock_mhz.max(FAST);
    drawn.tasks.truncate(1);
    can::sink(random, can);
}

/// Returns a number whose logarithm is spread evenly: as many small ones as large ones.
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
    let help = if section > 0 { random.below(most) } else { 0 };
    let spare = (spare + help).min(period - work);
    let replenishments = random.pick(&[2, 2, 4, 8, 8]);
    let often = if random.one_in(4) { random.between(2, 6) } else { 1 };
    let phase = random.below(period);
    DrawnTask {
        period,
        often,
        phase,
        work,
        section,
        spare,
        replenishments,
        core: 0,
        asks: [0; SERVERS],
        patience: 0,
        background: false,
    }
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
            let text = description(&raw(5, number), "drawn");
            match diapason_system::parse_cores("drawn", &text) {
                Ok(_) => read += 1,
                Err(why) => wrong.push(why.plain()),
            }
        }
        assert!(read >= 270, "{read} of 300 are read: {}", wrong.join("\n"));
    }

    #[test]
    fn a_number_draws_the_same_again_and_neighbours_differ() {
        assert_eq!(raw(1, 7), raw(1, 7));
        assert_ne!(raw(1, 7), raw(1, 8));
        assert_ne!(raw(1, 7), raw(2, 7));
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
