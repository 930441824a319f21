//! Brings drawn systems to the margin of what the planner admits. A system that is refused with
//! ease shows nothing, and one that is admitted with ease shows little: so a refused one is
//! loosened until it is admitted, and then tightened as long as it still is.

use super::afford::afford;
use super::bus;
use crate::systems::drawn::{
    Budget, Drawn, DrawnSamples, Gadget, Interface, Onward, Perch, Queues, samples,
};
use diapason_random::Random;

/// Most steps towards a system that is admitted.
const LOOSENED: u64 = 48;
/// Steps that are tried from there to the margin.
const TIGHTENED: u64 = 12;
/// Period of a pipe to an actuator that is not made longer, in microseconds.
const SLOWEST: u64 = 400_000;

/// The answer of a planner to a drawn system: nothing, or why it refuses the system.
pub type Plans<'a> = &'a dyn Fn(&Drawn) -> Option<String>;

/// Returns a system like `drawn` that `refuses` just about admits. Returns `drawn` if none is near.
pub fn aim(random: &mut Random, drawn: Drawn, refuses: Plans<'_>) -> Drawn {
    let mut next = drawn.clone();
    let mut steps = 0;
    while let Some(why) = refuses(&next) {
        if steps == LOOSENED {
            return drawn;
        }
        steps += 1;
        if steps == LOOSENED / 2 {
            next.can.iter_mut().for_each(ease);
            next.board = None;
        } else {
            answer(random, &mut next, &why);
        }
    }
    for _ in 0..TIGHTENED {
        let mut tighter = next.clone();
        tighten(random, &mut tighter);
        if tighter != next && refuses(&tighter).is_none() {
            next = tighter;
        }
    }
    next
}

/// Multiplies by so many eighths; the result is at least 1.
pub fn scale(value: u64, eighths: u64) -> u64 {
    (value * eighths / 8).max(1)
}

impl Budget {
    /// Another budget in the same period, at most most of it.
    pub fn scale(&mut self, eighths: u64) {
        self.budget = scale(self.budget, eighths).clamp(1_000, self.period * 6 / 10);
    }
}

/// Returns the VCPUs of the server's first thread, of readers, of writers and of chains.
fn seats(can: &mut Interface) -> Vec<&mut Budget> {
    let Interface { manage, outputs, second, pipes, classes, .. } = can;
    let mut all = vec![manage];
    all.extend(outputs.iter_mut().map(|output| &mut output.server));
    all.extend(second.iter_mut().map(|pipe| &mut pipe.server));
    all.extend(samples(classes).map(|samples| &mut samples.server));
    for pipe in pipes {
        all.push(&mut pipe.server);
        match &mut pipe.chain {
            None => {}
            Some(Onward::Shown(_, shown)) => all.push(shown),
            Some(Onward::Relayed(_, control, writer)) => all.extend([control, writer]),
        }
    }
    all
}

impl DrawnSamples {
    /// Lets its reader take so many eighths of what it took.
    fn work(&mut self, eighths: u64) {
        (self.work, self.takes) = (scale(self.work, eighths), scale(self.takes, eighths));
    }
}

/// Removes a device, if there is any. An actuator goes only if there is nothing else, and seldom:
/// without it the system shows nothing of its pipe.
fn drop_class(random: &mut Random, classes: &mut Vec<Gadget>) {
    let others = classes.iter().filter(|class| !matches!(class, Gadget::Sink(..))).count();
    let place = random.index(others.max(1));
    if place < classes.len() && (others > 0 || random.one_in(16)) {
        classes.remove(place);
    }
}

/// Lets packets to actuators be further apart.
fn slow_sinks(can: &mut Interface) {
    for class in &mut can.classes {
        if let Gadget::Sink(commands, _) = class {
            let times = if commands.period < SLOWEST { 2 } else { 1 };
            commands.period *= times;
        }
    }
}

/// Removes one, if there is any.
fn drop_one<T>(random: &mut Random, of: &mut Vec<T>) {
    if !of.is_empty() {
        of.remove(random.index(of.len()));
    }
}

/// Changes what a refusal is about, and now and then something else.
fn answer(random: &mut Random, drawn: &mut Drawn, why: &str) {
    let about = |what: &[&str]| what.iter().any(|part| why.contains(part));
    let of_bus = about(&["its controller", "`driver", "`send-", "`heard-", "`ear-"]);
    if random.one_in(5) {
        loosen(random, drawn);
    } else if about(&["`direct`", "`logging`"]) && random.one_in(4) {
        drawn.board = None;
    } else if of_bus && let Some(bus) = &mut drawn.bus {
        bus::loosen(random, bus);
    } else if about(&["take more than half"]) {
        match random.below(4) {
            0 => lengthen(drawn),
            1 => enlarge(drawn),
            _ => drop(afford(random, drawn, why)),
        }
    } else if about(&["whole processor", "only after", "is due", "never"]) {
        lighten(random, drawn);
    } else if about(&["jobs wake"]) {
        drawn.tasks.iter_mut().for_each(|task| task.replenishments = 8);
    } else if about(&["and one to `sink-device`", "and one to `pair-device`", "hear of a message"])
    {
        drawn.can.iter_mut().for_each(slow_sinks);
    } else if about(&["may take", "lasts not", "does not last"]) {
        lighten(random, drawn);
    } else if about(&["run out of places"]) {
        drawn.can.iter_mut().for_each(|can| can.stretch = 1);
    } else if about(&["and the pipe says"]) {
        drawn.can.iter_mut().for_each(tell_truth);
    } else if about(&["shares its VCPU"]) {
        unshare(drawn);
    } else if about(&["may hold the mutex"]) {
        drop_one(random, &mut drawn.rude);
    } else if about(&["its list has"]) {
        drawn.tasks.iter_mut().for_each(|task| {
            (task.replenishments, task.often) = (8, (task.often - 1).max(1));
        });
    } else if about(&["jobs on", "a job on"]) {
        drawn.tasks.iter_mut().for_each(|task| task.section = task.section * 3 / 4);
        serve(drawn, 6);
        enlarge(drawn);
    } else if drawn.can.is_some() {
        drawn.can.iter_mut().for_each(|can| loosen_can(random, can));
    } else {
        loosen(random, drawn);
    }
}

/// Makes every budget larger: switches take a part of each that does not depend on its length.
fn enlarge(drawn: &mut Drawn) {
    for task in &mut drawn.tasks {
        task.spare = (scale(task.spare, 12) + 2).min(task.period - task.work);
    }
    owned(drawn, 12);
    for seat in drawn.can.iter_mut().flat_map(seats) {
        seat.scale(12);
    }
}

/// Doubles budgets with their periods.
fn lengthen(drawn: &mut Drawn) {
    let own = drawn.rude.iter_mut().filter_map(|rude| match &mut rude.seat {
        Perch::Own(server, _) => Some(server),
        _ => None,
    });
    for seat in own.chain(drawn.can.iter_mut().flat_map(seats)) {
        (seat.budget, seat.period) = (seat.budget * 2, seat.period * 2);
    }
}

/// Asks for less of the processor.
fn lighten(random: &mut Random, drawn: &mut Drawn) {
    let usb = drawn.can.is_some();
    match random.below(6) {
        0 if drawn.tasks.len() > 1 || usb => drop_one(random, &mut drawn.tasks),
        1 if !drawn.rude.is_empty() => drop_one(random, &mut drawn.rude),
        2 if !drawn.rude.is_empty() => owned(drawn, 5),
        3 if usb => drawn.can.iter_mut().for_each(|can| drop_class(random, &mut can.classes)),
        4 if usb => drawn.can.iter_mut().flat_map(seats).for_each(|seat| seat.scale(6)),
        _ => {
            drawn.tasks.iter_mut().for_each(|task| {
                (task.work, task.section) = (scale(task.work, 5), task.section / 2);
                task.spare = scale(task.spare, 7);
            });
            serve(drawn, 6);
            drawn.bus.iter_mut().for_each(|bus| bus.driver.scale(6));
        }
    }
}

/// Lets every server take so many eighths of what it took.
fn serve(drawn: &mut Drawn, eighths: u64) {
    for server in &mut drawn.servers {
        server.work = scale(server.work, eighths);
        server.section = server.section.min(server.work);
    }
}

/// Gives everybody a VCPU of its own, or none.
fn unshare(drawn: &mut Drawn) {
    let beside = drawn.rude.iter_mut().filter(|rude| rude.seat == Perch::Beside);
    beside.for_each(|rude| rude.seat = Perch::Background);
    for pipe in drawn.can.iter_mut().flat_map(|can| &mut can.pipes) {
        pipe.shares = false;
    }
}

fn loosen(random: &mut Random, drawn: &mut Drawn) {
    match random.below(8) {
        0 => (drawn.queues, drawn.closed) = (Queues::Periods, false),
        1 | 2 => drawn.clock_mhz = (drawn.clock_mhz * 4).min(1_000).max(drawn.clock_mhz),
        3 => lengthen(drawn),
        4 => unshare(drawn),
        5 => drawn.tasks.iter_mut().for_each(|task| task.replenishments = 8),
        6 => lighten(random, drawn),
        _ => {
            drawn.can.iter_mut().for_each(|can| loosen_can(random, can));
            drawn.bus.iter_mut().for_each(|bus| bus::loosen(random, bus));
        }
    }
}

fn loosen_can(random: &mut Random, can: &mut Interface) {
    match random.below(12) {
        0 => drop_class(random, &mut can.classes),
        1 if can.pipes.len() > 1 => drop_one(random, &mut can.pipes),
        2 => drop_one(random, &mut can.outputs),
        3 => (can.tuned, can.second) = (false, None),
        4 => {
            can.works = scale(can.works, 5);
            samples(&mut can.classes).for_each(|samples| samples.half = scale(samples.half, 5));
        }
        5 => {
            can.share = (can.share + 8).min(60);
            samples(&mut can.classes)
                .for_each(|samples| samples.share = (samples.share + 6).min(40));
        }
        6 => can.pipes.iter_mut().for_each(|pipe| pipe.replenishments = 8),
        7 | 8 => {
            for pipe in can.pipes.iter_mut().chain(&mut can.second) {
                (pipe.work, pipe.takes) = (scale(pipe.work, 5), scale(pipe.takes, 5));
                pipe.jitter /= 2;
            }
            samples(&mut can.classes).for_each(|samples| samples.work(5));
        }
        9 => can.pipes.iter_mut().for_each(|pipe| pipe.shares = false),
        10 => can.behind_hub = false,
        _ => seats(can).into_iter().for_each(|seat| seat.scale(13)),
    }
}

/// Lets every pipe say what comes and what its reader takes.
fn tell_truth(can: &mut Interface) {
    let pipes = can.pipes.iter().chain(&can.second);
    let takes = pipes.map(|pipe| pipe.takes).max().unwrap_or_default();
    for pipe in can.pipes.iter_mut().chain(&mut can.second) {
        // All readers run one program, so the work of a message is one.
        (pipe.work, pipe.rate) = (pipe.work.max(takes).min(12_000), 100);
        pipe.takes = pipe.takes.min(pipe.work);
    }
}

/// Gives everybody about an interface more than enough.
fn ease(can: &mut Interface) {
    tell_truth(can);
    // The grants of an actuator come often, and those of the interface besides.
    let has_sink = can.classes.iter().any(|class| matches!(class, Gadget::Sink(..)));
    let (share, own) = if has_sink { (15, 12) } else { (30, 20) };
    (can.share, can.works) = (share, can.works.min(20));
    can.manage = Budget { budget: 100_000, period: 5_000_000 };
    for samples in samples(&mut can.classes) {
        (samples.half, samples.share, samples.replenishments) = (samples.half.min(20), own, 8);
        (samples.work, samples.takes) = (samples.work.min(10_000), samples.takes.min(10_000));
        samples.server = Budget { budget: 120_000, period: 2_500_000 };
    }
    for pipe in can.pipes.iter_mut().chain(&mut can.second) {
        (pipe.work, pipe.shares, pipe.replenishments) = (pipe.work.min(3_000), false, 8);
        pipe.takes = pipe.takes.min(pipe.work);
        pipe.server = Budget { budget: 120_000, period: 5_000_000 };
        match &mut pipe.chain {
            None => {}
            Some(Onward::Shown(_, shown)) => {
                *shown = Budget { budget: 150_000, period: 10_000_000 }
            }
            Some(Onward::Relayed(_, control, writer)) => {
                *control = Budget { budget: 300_000, period: 5_000_000 };
                *writer = Budget { budget: 300_000, period: 5_000_000 };
            }
        }
    }
}

/// Scales the budgets that programs that misbehave have of their own.
fn owned(drawn: &mut Drawn, eighths: u64) {
    for rude in &mut drawn.rude {
        if let Perch::Own(server, _) = &mut rude.seat {
            server.scale(eighths);
        }
    }
}

fn tighten(random: &mut Random, drawn: &mut Drawn) {
    let tasks = drawn.tasks.len();
    match random.below(8) {
        0 => {
            owned(drawn, 12);
            drawn.board.iter_mut().for_each(|board| board.server.scale(6));
        }
        1 | 2 if tasks > 0 => {
            let task = &mut drawn.tasks[random.index(tasks)];
            task.work = scale(task.work, 10).min(task.period - task.spare);
        }
        3 if tasks > 0 => {
            let task = &mut drawn.tasks[random.index(tasks)];
            task.spare = scale(task.spare, 6);
        }
        4 => drawn.tasks.iter_mut().for_each(|task| task.replenishments = 2),
        5 if !drawn.servers.is_empty() => serve(drawn, 10),
        _ => {
            drawn.can.iter_mut().for_each(|can| tighten_can(random, can));
            drawn.bus.iter_mut().for_each(|bus| bus::tighten(random, bus));
        }
    }
}

fn tighten_can(random: &mut Random, can: &mut Interface) {
    match random.below(8) {
        0 => {
            can.works = scale(can.works, 11);
            samples(&mut can.classes).for_each(|samples| samples.half = scale(samples.half, 11));
        }
        1 => {
            can.share = scale(can.share, 7);
            samples(&mut can.classes).for_each(|samples| samples.share = scale(samples.share, 7));
        }
        2 => {
            for pipe in can.pipes.iter_mut().chain(&mut can.second) {
                (pipe.work, pipe.takes) = (scale(pipe.work, 10), scale(pipe.takes, 10));
            }
            samples(&mut can.classes).for_each(|samples| samples.work(10));
        }
        3 => can.pipes.iter_mut().for_each(|pipe| pipe.replenishments = 4),
        _ => {
            let mut seats = seats(can);
            let place = random.index(seats.len());
            seats[place].scale(6);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::raw;
    use super::*;

    /// Returns the sum of all that is promised to tasks.
    fn load(drawn: &Drawn) -> u64 {
        drawn.tasks.iter().map(|task| task.work).sum()
    }

    #[test]
    fn what_is_refused_is_loosened_until_it_is_admitted() {
        let why = || String::from("more than the whole processor");
        let refuses = |drawn: &Drawn| (load(drawn) >= 1_000).then(why);
        let refused = |drawn: &Drawn| refuses(drawn).is_some() && drawn.can.is_none();
        let drawn = (0..).map(|number| raw(4, number)).filter(refused);
        let mut tight = 0;
        for (number, drawn) in (0..).zip(drawn.take(50)) {
            let aimed = aim(&mut Random::stream(4, number), drawn, &refuses);
            assert_eq!(refuses(&aimed), None, "{aimed:?}");
            tight += usize::from(load(&aimed) > 700);
        }
        assert!(tight > 25, "{tight} of 50 are near the margin");
    }

    #[test]
    fn what_nobody_admits_stays_as_it_is() {
        let drawn = raw(4, 7);
        assert_eq!(aim(&mut Random::new(1), drawn.clone(), &|_| Some(String::new())), drawn);
    }
}
