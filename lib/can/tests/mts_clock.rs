//! The common time of a bus, attacked: clocks that drift, frames that are lost, late or repeated,
//! masters that reboot, and several masters. No node that knows the time is further off than is
//! proved, and no two nodes know different times.

use crate::support::Random;
use diapason_abi::Nanos;
use diapason_can::mts::{BusClock, TimeBase, TimeFrame, TimeRefusal, TimeTerms};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An oscillator: what it says at the beginning, and how fast it is.
#[derive(Clone, Copy, Debug)]
struct Oscillator {
    offset: i128,
    ppm: i128,
}

impl Oscillator {
    fn random(random: &mut Random, ppm: i128) -> Oscillator {
        let ppm = match random.below(4) {
            0 => ppm,
            1 => -ppm,
            _ => i128::from(random.below(2 * ppm as u64 + 1)) - ppm,
        };
        Oscillator { offset: i128::from(random.below(10_000_000_000)), ppm }
    }

    /// Returns its time in millionths of a nanosecond.
    fn exact(&self, now: Nanos) -> i128 {
        self.offset * 1_000_000 + i128::from(now.0) * (1_000_000 + self.ppm)
    }

    fn read(&self, now: Nanos, grain: Nanos) -> Nanos {
        let time = (self.exact(now) / 1_000_000) as u64;
        Nanos(time - time % grain.0.max(1))
    }

    /// Returns when it says at least `local`.
    fn when(&self, local: Nanos) -> Nanos {
        let local = (i128::from(local.0) - self.offset).max(0) * 1_000_000;
        let when = local / (1_000_000 + self.ppm) + 1;
        Nanos(when as u64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    On(usize),
    Look(usize),
    /// The frame of this number is through.
    End(usize),
    /// A node has read its clock, and is told of the frame.
    Told(usize, usize),
}

struct Unit {
    oscillator: Oscillator,
    clock: BusClock,
    on: bool,
    /// How often it was switched on: what is under way at a reset comes to nothing.
    lives: u32,
    /// Frames of each master that it lost in a row.
    lost: [u32; 4],
}

struct Flight {
    sender: usize,
    life: u32,
    frame: TimeFrame,
    clean: bool,
    oscillator: Oscillator,
}

/// The faults of a world.
#[derive(Clone, Copy, Debug)]
struct Faults {
    /// A node loses one of so many frames, and not more in a row than this.
    loses: u64,
    in_a_row: u32,
    /// One of so many frames is repeated after an error that only some nodes saw, and says so.
    repeats: u64,
    admits: bool,
    /// A node does not hear the master of this number at all.
    deaf: Option<(usize, usize)>,
    /// Candidates that are switched on for the first time start at once, without the silence.
    rude: bool,
}

const NONE: Faults =
    Faults { loses: 0, in_a_row: u32::MAX, repeats: 0, admits: true, deaf: None, rude: false };

struct World {
    terms: TimeTerms,
    units: Vec<Unit>,
    candidates: usize,
    faults: Faults,
    flights: Vec<Flight>,
    acts: BinaryHeap<Reverse<(Nanos, Act)>>,
    random: Random,
    now: Nanos,
    /// The clock of the master that sent last.
    scale: Option<Oscillator>,
    /// Furthest from the master's time that any node ever was, in millionths of a nanosecond.
    furthest: i128,
    /// Checks of nodes that knew the time.
    known: u64,
    unknown: u64,
    /// Pairs of nodes that knew different times.
    torn: u64,
}

impl World {
    fn new(terms: TimeTerms, units: usize, candidates: usize, ppm: i128, seed: u64) -> World {
        let mut random = Random::new(seed);
        let units: Vec<Unit> = (0..units)
            .map(|_| Unit {
                oscillator: Oscillator::random(&mut random, ppm),
                clock: BusClock::new(terms, None, Nanos::ZERO),
                on: false,
                lives: 0,
                lost: [0; 4],
            })
            .collect();
        let acts = BinaryHeap::new();
        let (flights, scale) = (Vec::new(), None);
        let (now, furthest, known, unknown, torn) = (Nanos::ZERO, 0, 0, 0, 0);
        let faults = NONE;
        World {
            terms,
            units,
            candidates,
            faults,
            flights,
            acts,
            random,
            now,
            scale,
            furthest,
            known,
            unknown,
            torn,
        }
    }

    fn at(&mut self, when: Nanos, act: Act) {
        self.acts.push(Reverse((when.max(self.now), act)));
    }

    fn all_on(&mut self) {
        (0..self.units.len()).for_each(|unit| self.at(Nanos::ZERO, Act::On(unit)));
    }

    fn reading(&self, unit: usize, now: Nanos) -> Nanos {
        self.units[unit].oscillator.read(now, self.terms.base().grain)
    }

    fn look_again(&mut self, unit: usize) {
        let next = self.units[unit].clock.next_look();
        if next < Nanos::FOREVER {
            let when = self.units[unit].oscillator.when(next).max(self.now + Nanos(1));
            self.at(when, Act::Look(unit));
        }
    }

    fn run(&mut self, until: Nanos) {
        while let Some(Reverse((when, act))) = self.acts.peek().copied() {
            if when > until {
                break;
            }
            self.acts.pop();
            // At some instant between, and at this one.
            let between = self.now.0 + self.random.below((when - self.now).0 + 1);
            self.check(Nanos(between));
            self.now = when;
            self.act(act);
            self.check(when);
        }
        self.now = until;
    }

    fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::On(unit) => {
                let candidate = (unit < self.candidates).then_some(unit as u8);
                let offset = i128::from(self.random.below(10_000_000_000));
                let it = &mut self.units[unit];
                if it.lives > 0 {
                    it.oscillator.offset = offset;
                }
                (it.on, it.lives) = (true, it.lives + 1);
                let local = self.reading(unit, now);
                let first = self.units[unit].lives == 1;
                let rude = self.faults.rude && candidate.is_some() && first;
                let since = if rude { local - self.terms.silence() } else { local };
                self.units[unit].clock = BusClock::new(self.terms, candidate, since);
                self.look_again(unit);
            }
            Act::Look(unit) => {
                if !self.units[unit].on {
                    return;
                }
                let local = self.reading(unit, now);
                if let Some(frame) = self.units[unit].clock.look(local) {
                    self.send(unit, frame);
                }
                self.look_again(unit);
            }
            Act::End(flight) => self.end(flight),
            Act::Told(flight, unit) => self.told(flight, unit),
        }
    }

    fn send(&mut self, sender: usize, frame: TimeFrame) {
        let late = self.terms.base().late.0;
        let end = self.now + Nanos(1 + self.random.below(late));
        let Unit { oscillator, lives: life, .. } = self.units[sender];
        let repeated = self.faults.repeats > 0 && self.random.one_in(self.faults.repeats);
        let clean = !repeated || !self.faults.admits;
        if repeated {
            // Some nodes accept it now, and all of them again at its end.
            let early = Flight { sender, life, frame, clean, oscillator };
            self.flights.push(early);
            for unit in 0..self.units.len() {
                if unit != sender && self.random.one_in(2) {
                    self.at(self.now, Act::Told(self.flights.len() - 1, unit));
                }
            }
        }
        self.flights.push(Flight { sender, life, frame, clean, oscillator });
        self.at(end, Act::End(self.flights.len() - 1));
    }

    fn end(&mut self, flight: usize) {
        let Flight { sender, life, oscillator, .. } = self.flights[flight];
        if self.units[sender].lives != life || !self.units[sender].on {
            return;
        }
        self.scale = Some(oscillator);
        for unit in 0..self.units.len() {
            let at = self.now + Nanos(self.random.below(self.terms.base().stamp.0 + 1));
            let deaf = self.faults.deaf == Some((unit, sender));
            let may = self.units[unit].lost[sender] < self.faults.in_a_row;
            let loses = may && self.faults.loses > 0 && self.random.one_in(self.faults.loses);
            if unit == sender || !(loses || deaf) {
                self.units[unit].lost[sender] = 0;
                self.at(at, Act::Told(flight, unit));
            } else {
                self.units[unit].lost[sender] += 1;
            }
        }
    }

    fn told(&mut self, flight: usize, unit: usize) {
        let local = self.reading(unit, self.now);
        let Flight { sender, life, frame, clean, .. } = self.flights[flight];
        let it = &mut self.units[unit];
        if !it.on {
            return;
        }
        if unit != sender {
            it.clock.heard(local, sender as u8, &frame);
        } else if it.lives == life {
            it.clock.sent(local, clean);
        }
        self.look_again(unit);
    }

    /// Nobody is wrong at this instant.
    fn check(&mut self, now: Nanos) {
        let on = (0..self.units.len()).filter(|unit| self.units[*unit].on);
        let times: Vec<Option<Nanos>> =
            on.map(|unit| self.units[unit].clock.common(self.reading(unit, now))).collect();
        self.unknown += times.iter().filter(|time| time.is_none()).count() as u64;
        let times: Vec<Nanos> = times.into_iter().flatten().collect();
        self.known += times.len() as u64;
        let clocks = i128::from(self.terms.clocks().0);
        for time in &times {
            let Some(scale) = self.scale else { panic!("nobody said what time it is") };
            let error = (i128::from(time.0) * 1_000_000 - scale.exact(now)).abs();
            if self.candidates < 2 {
                self.furthest = self.furthest.max(error);
            }
        }
        let (least, most) = (times.iter().min(), times.iter().max());
        if let (Some(least), Some(most)) = (least, most) {
            self.torn += u64::from(i128::from((*most - *least).0) > 2 * clocks);
        }
    }
}

fn base(random: &mut Random) -> TimeBase {
    let interval = Nanos::from_micros(random.between(2_000, 50_000));
    TimeBase {
        interval,
        late: Nanos(random.between(100_000, interval.0 / 2)),
        losses: random.below(3) as u32,
        drift_ppm: 100,
        stamp: Nanos(random.below(8_000)),
        grain: Nanos([1, 100, 1_000][random.below(3) as usize]),
    }
}

/// Returns how near to the bound nodes came, in per cent, and how often they knew the time.
fn one_master(seed: u64, faults: Faults, reboots: bool) -> (i128, u64, u64) {
    let mut random = Random::new(seed);
    let terms = TimeTerms::new(base(&mut random)).unwrap();
    let mut world = World::new(terms, 4, 1, 100, seed);
    world.faults = faults;
    world.all_on();
    let span = terms.silence().0 + 40 * terms.base().interval.0;
    let mut now = Nanos::ZERO;
    for _ in 0..if reboots { 4 } else { 1 } {
        now += Nanos(span + random.below(span));
        world.run(now);
        if reboots {
            let unit = if random.one_in(2) { 0 } else { 2 };
            world.units[unit].on = false;
            let again = now + Nanos(random.below(terms.silence().0));
            world.at(again, Act::On(unit));
        }
    }
    let bound = i128::from(terms.clocks().0) * 1_000_000;
    assert!(world.furthest <= bound, "seed {seed}: {} of {bound}", world.furthest);
    assert_eq!(world.torn, 0, "seed {seed}");
    (world.furthest * 100 / bound, world.known, world.unknown)
}

#[test]
fn no_clock_is_further_off_than_is_proved_whatever_is_lost() {
    let (mut nearest, mut known) = (0, 0);
    for seed in 0..600 {
        let loses = [0, 20, 4, 2][seed as usize % 4];
        let (near, knew, _) = one_master(seed, Faults { loses, ..NONE }, false);
        (nearest, known) = (nearest.max(near), known + knew);
    }
    assert!(nearest > 80, "the bound is far from anything that happens: {nearest} %");
    assert!(known > 100_000, "{known}");
}

#[test]
fn a_master_that_reboots_tears_no_two_nodes_apart() {
    let mut known = 0;
    for seed in 0..300 {
        let loses = [0, 10, 3, 2][seed as usize % 4];
        known += one_master(1_000 + seed, Faults { loses, ..NONE }, true).1;
    }
    assert!(known > 50_000, "{known}");
}

#[test]
fn as_many_losses_in_a_row_as_the_terms_allow_lose_no_time() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let terms = TimeTerms::new(base(&mut random)).unwrap();
        let losses = terms.base().losses;
        let mut world = World::new(terms, 4, 1, 100, seed);
        world.all_on();
        let start = times(terms.silence(), 2) + times(terms.base().interval, 8);
        world.run(start);
        (world.known, world.unknown) = (0, 0);
        // A fault of as many frames, and peace for as long as the time needs to be learnt again.
        for _ in 0..6 {
            let all = Faults { loses: 1, in_a_row: losses, ..NONE };
            world.faults = if losses == 0 { NONE } else { all };
            let frames = world.flights.len() + losses as usize;
            while world.flights.len() < frames {
                let next = world.acts.peek().unwrap().0.0;
                world.run(next);
            }
            let next = world.now + terms.base().late;
            world.run(next);
            world.faults = NONE;
            let next = world.now + times(terms.base().interval, 4);
            world.run(next);
        }
        assert_eq!(world.unknown, 0, "seed {seed}: {:?}", terms.base());
        assert!(world.known > 100);
    }
}

fn times(time: Nanos, count: u64) -> Nanos {
    Nanos(time.0 * count)
}

#[test]
fn a_repeated_frame_that_is_admitted_misleads_nobody() {
    for seed in 0..300 {
        let faults = Faults { repeats: 3, loses: 5, ..NONE };
        one_master(2_000 + seed, faults, false);
    }
}

#[test]
fn a_repeated_frame_that_is_not_admitted_would_mislead() {
    let base = TimeBase {
        interval: Nanos::from_millis(2),
        late: Nanos::from_micros(60),
        losses: 1,
        drift_ppm: 100,
        stamp: Nanos::from_micros(1),
        grain: Nanos(1),
    };
    let terms = TimeTerms::new(base).unwrap();
    let furthest = |admits| {
        let mut world = World::new(terms, 4, 1, 100, 3);
        world.faults = Faults { repeats: 2, loses: 2, admits, ..NONE };
        world.all_on();
        world.run(Nanos::from_secs(20));
        assert!(world.known > 100);
        world.furthest
    };
    let bound = i128::from(terms.clocks().0) * 1_000_000;
    assert!(furthest(true) <= bound && furthest(false) > bound);
}

/// Returns how often nodes knew the time, how often they did not, and how often two were torn.
fn many_masters(seed: u64, faults: Faults) -> (u64, u64, u64) {
    let mut random = Random::new(seed);
    let terms = TimeTerms::new(base(&mut random)).unwrap();
    let candidates = random.between(1, 3) as usize;
    let mut world = World::new(terms, 5, candidates, 100, seed);
    world.faults = faults;
    if random.one_in(2) {
        world.all_on();
    } else {
        for unit in 0..5 {
            let on = Nanos(random.below(3 * terms.silence().0));
            world.at(on, Act::On(unit));
        }
    }
    let mut now = Nanos::ZERO;
    for _ in 0..6 {
        now += Nanos(random.below(terms.silence().0 * 3));
        world.run(now);
        let unit = random.below(5) as usize;
        world.units[unit].on = false;
        let again = now + Nanos(random.below(3 * terms.silence().0));
        world.at(again, Act::On(unit));
    }
    world.run(times(now, 2));
    (world.known, world.unknown, world.torn)
}

#[test]
fn several_masters_never_make_two_times() {
    let mut known = 0;
    for seed in 0..1_500 {
        let loses = [0, 8, 2, 2][seed as usize % 4];
        let faults = Faults { loses, in_a_row: 1, ..NONE };
        let (knew, _, torn) = many_masters(seed, faults);
        assert_eq!(torn, 0, "seed {seed}");
        known += knew;
    }
    assert!(known > 200_000, "{known}");
}

#[test]
fn masters_that_are_not_silent_make_no_two_times_either() {
    let mut known = 0;
    for seed in 0..3_000 {
        let loses = [0, 8, 2, 2][seed as usize % 4];
        let faults = Faults { loses, in_a_row: 1, rude: true, ..NONE };
        let (knew, _, torn) = many_masters(seed, faults);
        assert_eq!(torn, 0, "seed {seed}");
        known += knew;
    }
    assert!(known > 200_000, "{known}");
}

#[test]
fn what_the_proof_assumes_of_two_masters_is_needed() {
    // Two masters that do not hear each other, and a node each that hears only one of them.
    let terms = TimeTerms::new(base(&mut Random::new(1))).unwrap();
    let mut world = World::new(terms, 2, 2, 100, 1);
    world.faults = Faults { deaf: Some((0, 1)), ..NONE };
    world.all_on();
    world.run(times(terms.silence(), 3));
    assert_eq!(world.torn, 0, "the second still hears the first");
    let mut world = World::new(terms, 2, 2, 100, 1);
    world.faults = Faults { loses: 1, ..NONE };
    world.all_on();
    world.run(times(terms.silence(), 3));
    assert!(world.torn > 0, "nobody hears anybody");
}

#[test]
fn of_several_candidates_the_first_leads_in_the_end_and_all_know_its_time() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let terms = TimeTerms::new(base(&mut random)).unwrap();
        let mut world = World::new(terms, 5, 3, 100, seed);
        world.faults.rude = random.one_in(2);
        for unit in 0..5 {
            world.at(Nanos(random.below(10_000_000)), Act::On(unit));
        }
        world.run(Nanos(10_000_000) + times(terms.silence(), 3));
        let leads = |unit: usize| world.units[unit].clock.leads();
        assert_eq!((0..5).filter(|unit| leads(*unit)).count(), 1, "seed {seed}");
        let knows = |unit: usize| world.units[unit].clock.common(world.reading(unit, world.now));
        assert!((0..5).all(|unit| knows(unit).is_some()), "seed {seed}");
    }
}

#[test]
fn a_frame_long_ago_is_not_taken_for_the_one_before() {
    let terms = TimeTerms::new(base(&mut Random::new(1))).unwrap();
    let mut clock = BusClock::new(terms, None, Nanos::ZERO);
    let (interval, start) = (terms.base().interval, Nanos::from_secs(9));
    clock.heard(Nanos(1), 0, &TimeFrame { sequence: 0, before: None });
    for sequence in 1..4 {
        // Nor is any instant known after the first.
        assert!(clock.common(start).is_none() && (sequence > 2 || clock.local(start).is_none()));
        let at = start + times(interval, sequence);
        let before = Some(at - interval);
        clock.heard(at, 0, &TimeFrame { sequence: sequence as u16, before });
    }
    assert!(clock.common(start + times(interval, 3)).is_some());
}

#[test]
fn a_clock_that_is_much_too_fast_is_found() {
    let base = TimeBase {
        interval: Nanos::from_millis(20),
        late: Nanos::from_millis(1),
        losses: 1,
        drift_ppm: 100,
        stamp: Nanos::from_micros(2),
        grain: Nanos(100),
    };
    let terms = TimeTerms::new(base).unwrap();
    let mut world = World::new(terms, 3, 1, 100, 7);
    world.units[2].oscillator.ppm = 1_000;
    world.all_on();
    world.run(Nanos::from_secs(3));
    let now = world.now;
    let known = |unit: usize| world.units[unit].clock.common(world.reading(unit, now)).is_some();
    assert!(known(0) && known(1) && !known(2));
}

#[test]
fn frames_are_read_as_they_were_written_and_any_bytes_are_read() {
    let mut random = Random::new(5);
    for _ in 0..10_000 {
        let before = (!random.one_in(4)).then(|| Nanos(random.bits() >> random.below(64)));
        let frame = TimeFrame { sequence: random.bits() as u16, before };
        let read = TimeFrame::read(&frame.bytes()).unwrap();
        assert_eq!(read.sequence, frame.sequence);
        match (read.before, before) {
            (Some(read), Some(before)) => assert_eq!(read.0, before.0 / 1_000 * 1_000),
            // A time beyond nine years.
            (None, Some(before)) => assert!(before.0 / 1_000 >= (1 << 48) - 1),
            (read, before) => assert_eq!(read, before),
        }
        let bytes = random.bits().to_be_bytes();
        let length = random.below(9) as usize;
        assert_eq!(TimeFrame::read(&bytes[..length]).is_some(), length == 8);
        assert_eq!(TimeFrame::read(&bytes).unwrap().bytes(), bytes);
    }
}

#[test]
fn the_times_of_the_documentation() {
    let terms = |interval, losses| {
        let base = TimeBase {
            interval: Nanos::from_millis(interval),
            late: Nanos::from_millis(2),
            losses,
            drift_ppm: 100,
            stamp: Nanos::from_micros(5),
            grain: Nanos(100),
        };
        let terms = TimeTerms::new(base).unwrap();
        (terms.clocks().0, terms.valid().0, terms.silence().0)
    };
    assert_eq!(terms(10, 0), (10_605, 22_009_602, 22_019_307));
    assert_eq!(terms(10, 1), (14_606, 42_013_602, 42_027_308));
    assert_eq!(terms(10, 3), (18_607, 62_017_603, 62_035_310));
    assert_eq!(terms(20, 1), (22_608, 82_021_603, 82_043_312));
    assert_eq!(terms(50, 1), (46_616, 202_045_606, 202_091_322));
}

#[test]
fn terms_that_make_no_sense_are_refused() {
    let good = base(&mut Random::new(9));
    let refused = |base: TimeBase| TimeTerms::new(base).unwrap_err();
    assert_eq!(refused(TimeBase { interval: Nanos::ZERO, ..good }), TimeRefusal::Interval);
    assert_eq!(refused(TimeBase { interval: Nanos::FOREVER, ..good }), TimeRefusal::Interval);
    assert_eq!(refused(TimeBase { stamp: Nanos::FOREVER, ..good }), TimeRefusal::Interval);
    assert_eq!(refused(TimeBase { late: good.interval, ..good }), TimeRefusal::Late);
    assert_eq!(refused(TimeBase { drift_ppm: 10_001, ..good }), TimeRefusal::Beyond);
    assert_eq!(refused(TimeBase { losses: 1_001, ..good }), TimeRefusal::Beyond);
}
