//! Draws a bus on which programs send and read by a controller with message buffers.

use super::{aim, spread, task};
use crate::systems::drawn::{Budget, Drawn, DrawnBus, DrawnEar, DrawnSender};
use diapason_random::Random;

/// Periods of messages, in milliseconds.
const PERIODS: [u64; 6] = [5, 8, 10, 20, 25, 50];
/// How many times too often a program sends that keeps to no contract.
const OFTEN: u64 = 8;
/// The longest period of a message that is read, in microseconds.
const SLOWEST: u64 = 400_000;
/// The longest from the release of a message until the controller has it, in microseconds.
const JITTER_MAX: u64 = 4_500;

/// Adds a bus. Its driver takes much of the processor, so that most have little beside it.
pub fn join(random: &mut Random, drawn: &mut Drawn) {
    if random.below(3) > 0 {
        (drawn.can, drawn.drift_ppm) = (None, 0);
        drawn.tasks.truncate(2);
    }
    if drawn.tasks.iter().all(|task| drawn.asked(task).is_empty()) {
        drawn.servers.clear();
    }
    // A program that misbehaves may sit beside the first task.
    if drawn.tasks.is_empty() && drawn.can.is_none() {
        drawn.tasks.push(task(random, 4, false, drawn.clock_mhz));
    }
    drawn.bus = Some(bus(random));
}

/// Draws a bus with its driver and its programs.
fn bus(random: &mut Random) -> DrawnBus {
    let on_time = random.one_in(2);
    let senders = random.between(1, 3);
    let period = random.pick(&[450, 470, 500, 700, 1_000, 2_000]);
    DrawnBus {
        kbits: random.pick(&[500, 1_000]),
        own: random.below(5),
        senders: (0..senders).map(|_| sender(random)).collect(),
        readers: (0..random.below(3)).map(|_| reader(random)).collect(),
        driver: Budget { budget: period * random.between(200, 550), period: period * 1_000 },
        replenishments: random.between(2, 8),
        works: [
            spread(random, 1_000, 8_000),
            spread(random, 200, 1_000),
            spread(random, 500, 8_000),
        ],
        jitter: random.between(1_000, JITTER_MAX),
        others: random.pick(&[2_000, 5_000]),
        on_time,
        errors: random.pick(&[0, 0, 50, 200]),
    }
}

fn sender(random: &mut Random) -> DrawnSender {
    let count = random.between(1, 5);
    let message = |random: &mut Random| (random.pick(&PERIODS), random.below(9));
    DrawnSender {
        messages: (0..count).map(|_| message(random)).collect(),
        apart: random.pick(&[0, 0, 7, 100, 333]),
        often: if random.one_in(5) { OFTEN } else { 0 },
        server: Budget { budget: 25_000, period: 1_000 * random.pick(&[400, 600, 1_000]) },
    }
}

fn reader(random: &mut Random) -> DrawnEar {
    let count = random.between(1, 3);
    let message = |random: &mut Random| {
        let period = 1_000 * random.pick(&PERIODS);
        (period, period * random.between(2, 9) / 10)
    };
    DrawnEar {
        messages: (0..count).map(|_| message(random)).collect(),
        work: random.between(1, 60),
        server: Budget { budget: 200_000, period: 1_000 * random.pick(&[4_000, 6_000, 10_000]) },
    }
}

/// Returns the budget of the VCPU with this name, if it is of a program about a bus.
pub fn seat<'a>(drawn: &'a mut Drawn, name: &str) -> Option<&'a mut Budget> {
    let bus = drawn.bus.as_mut()?;
    if name == "driver-own" {
        return Some(&mut bus.driver);
    }
    if let Some(number) = name.strip_prefix("hear-") {
        let number: usize = number.parse().ok()?;
        return bus.readers.get_mut(number).map(|reader| &mut reader.server);
    }
    let number: usize = name.strip_prefix("send-")?.parse().ok()?;
    bus.senders.get_mut(number).map(|sender| &mut sender.server)
}

/// Makes the driver faster or its messages fewer, so that a planner may admit the bus.
pub fn loosen(random: &mut Random, bus: &mut DrawnBus) {
    match random.below(8) {
        6 => bus.readers.iter_mut().for_each(|reader| {
            reader.work = aim::scale(reader.work, 5);
            reader.server.scale(11);
        }),
        7 => bus.readers.iter_mut().flat_map(|reader| &mut reader.messages).for_each(|message| {
            message.0 = (message.0 * 2).min(SLOWEST);
        }),
        5 => bus.errors *= 4,
        0 => bus.driver.scale(11),
        1 => bus.replenishments = 8,
        2 => bus.works = bus.works.map(|work| aim::scale(work, 5)),
        3 if bus.senders.len() > 1 => drop(bus.senders.pop()),
        _ => bus.jitter = aim::scale(bus.jitter, 11).min(JITTER_MAX),
    }
}

/// Brings the bus nearer to the margin of what a planner admits.
pub fn tighten(random: &mut Random, bus: &mut DrawnBus) {
    match random.below(4) {
        0 => bus.driver.scale(7),
        1 => bus.replenishments = (bus.replenishments - 1).max(2),
        2 => bus.works = bus.works.map(|work| aim::scale(work, 10)),
        _ => bus.jitter = aim::scale(bus.jitter, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::raw;
    use super::*;

    #[test]
    fn every_kind_of_bus_is_drawn() {
        let all: Vec<Drawn> = (0..400).map(|number| raw(5, number)).collect();
        let buses: Vec<&DrawnBus> = all.iter().filter_map(|drawn| drawn.bus.as_ref()).collect();
        assert!((30..110).contains(&buses.len()), "{}", buses.len());
        let some = |what: &dyn Fn(&DrawnBus) -> bool| {
            let count = buses.iter().filter(|bus| what(bus)).count();
            assert!(count > 3, "{count}");
        };
        some(&|bus| bus.own == 0);
        some(&|bus| bus.on_time);
        some(&|bus| bus.on_time && !bus.readers.is_empty());
        some(&|bus| bus.readers.len() > 1);
        some(&|bus| bus.errors > 0);
        some(&|bus| bus.senders.iter().any(|sender| sender.often > 0));
        some(&|bus| bus.senders.iter().map(|sender| sender.messages.len()).sum::<usize>() > 9);
        some(&|bus| bus.senders.iter().all(|sender| sender.apart == 0));
    }
}
