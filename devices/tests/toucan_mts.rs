//! A TouCAN under MTS: its driver keeps the common time of the bus and renews identifiers by its
//! clock, among units that do the same.

use crate::support::desk::Desk;
use diapason_abi::Nanos;
use diapason_can::mts::{
    BusClock, Epochs, HighSpeed, IdentifierClass, MtsSet, NodeDuty, NodeTime, Oscillator, Queued,
    Renewal, Renewing, TIME_BYTES, TimeBase, TimeFrame, TimeTerms, classify, high_speed, low_speed,
    low_speed_id,
};
use diapason_can::response::{AnalysedMessage, Errors};
use diapason_can::toucan::{
    BufferedFrame, BufferedOutbox, FrameSource, STREAMS, ToucanDriver, ended,
};
use diapason_can::wire::{length, worst};
use diapason_can::{BitRate, CanFrame, Filter, Id, StandardId};
use diapason_devices::can::{
    CanBus, Sent, TimedMessage, TimedName, TimedTerms, TimedUnit, numbered,
};
use diapason_random::Random;
use std::cell::{Cell, RefCell};

/// The driver has this node and the first codes of the set; the others are units.
const DRIVER: usize = 0;
const NODES: usize = 4;
const SHARED: usize = 3;
const SPARE: usize = 2;
/// The buffer that hears the frames of the time.
const TIME_BUFFER: usize = 13;
const MEGABIT: u32 = 1_000_000;

fn rate() -> BitRate {
    BitRate::new(MEGABIT).unwrap()
}

/// A promised set on four nodes.
struct Drive {
    set: MtsSet,
    terms: TimeTerms,
    pace: Pace,
    /// The driver is the master of the time.
    leads: bool,
    /// Streams of the driver with a buffer of their own.
    own: usize,
    /// By code: the node and the bytes.
    of: Vec<(usize, u8)>,
    /// By code: when the first comes by the clock of its node, after that began.
    first: Vec<u64>,
    ppm: [i64; NODES],
    offsets: [u64; NODES],
}

/// Messages of units come from this instant of their clocks on.
const FIRST: u64 = 1_000_000;
/// How slow a driver is.
#[derive(Clone, Copy)]
struct Pace {
    /// A message is in the queue within this time, unless identifiers are renewed.
    busy: u64,
    /// The driver may be preempted for so long while it renews all identifiers.
    preempted: u64,
}

impl Pace {
    const SLOW: Pace = Pace { busy: 120_000, preempted: 480_000 };
    const QUICK: Pace = Pace { busy: 45_000, preempted: 15_000 };

    fn whole(self) -> u64 {
        self.busy + self.preempted
    }
}

/// Returns the high-speed messages of these nodes and bytes, the most urgent first, on a bus with
/// such a load. If they come `together`, those of the driver come at once each time.
fn high(
    random: &mut Random,
    of: Vec<(usize, u8)>,
    (load, pace, together): (u64, Pace, bool),
) -> Vec<(HighSpeed, (usize, u8))> {
    let count = of.len() as u64;
    let mut high: Vec<(HighSpeed, (usize, u8))> = of
        .into_iter()
        .map(|(node, bytes)| {
            let bits = worst(false, bytes.into());
            let period = u64::from(bits + 3) * 100_000 * count * random.between(60, 140);
            let period = period / (100 * load);
            let deadline = (period * random.between(70, 100) / 100).max(1_500_000);
            let jitter = if node == DRIVER { pace.whole() } else { 0 };
            let [period, jitter, deadline] = [period.max(deadline), jitter, deadline].map(Nanos);
            (HighSpeed { bits, period, jitter, deadline }, (node, bytes))
        })
        .collect();
    high.sort_by_key(|(message, _)| message.deadline);
    let longest = high.iter().map(|(message, _)| message.period).max().unwrap_or_default();
    for (message, _) in high.iter_mut().filter(|(_, (node, _))| together && *node == DRIVER) {
        message.period = longest;
    }
    high
}

fn drive(random: &mut Random) -> Option<Drive> {
    let pace = if random.one_in(2) { Pace::SLOW } else { Pace::QUICK };
    let is_busy = random.one_in(2);
    let count = random.between(2, if is_busy { 18 } else { 8 }) as usize;
    let load = if is_busy { random.between(4, 25) } else { random.between(15, 70) };
    let of: Vec<(usize, u8)> = (0..count)
        .map(|_| {
            let node = random.below(NODES as u64) as usize;
            let node = if is_busy && !random.one_in(4) { DRIVER } else { node };
            (node, random.below(9) as u8)
        })
        .collect();
    let together = is_busy && random.one_in(2);
    let (high, of) = high(random, of, (load, pace, together)).into_iter().unzip();
    let interval = Nanos::from_micros(random.between(4_000, 9_000));
    let base = TimeBase {
        interval,
        late: Nanos(interval.0 / 2),
        losses: 1,
        drift_ppm: 100,
        stamp: Nanos::from_micros(12),
        grain: Nanos(1),
    };
    let terms = TimeTerms::new(base).unwrap();
    let leads = random.one_in(3);
    let time = AnalysedMessage::new(low_speed_id(0).unwrap(), 8, interval);
    let time = AnalysedMessage {
        deadline: base.late,
        jitter: if leads { Nanos(pace.whole()) } else { Nanos::ZERO },
        ..time
    };
    let other = AnalysedMessage::new(low_speed_id(1).unwrap(), 8, Nanos::from_millis(7));
    let within = Nanos(pace.whole());
    let of: Vec<(usize, u8)> = of;
    let streams: Vec<usize> = (0..count).filter(|code| of[*code].0 == DRIVER).collect();
    let repeating = streams.len() as u32;
    let own = if is_busy { random.below(3) as usize } else { 8 };
    let queued = Queued {
        high: streams.iter().skip(own).copied().collect(),
        low: if leads { vec![0] } else { Vec::new() },
        again: Nanos::ZERO,
    };
    let set = MtsSet {
        rate: rate(),
        epochs: Epochs::new(Nanos(1), Nanos(1)).unwrap(),
        high,
        low: vec![time, other],
        other: 0,
        clocks: terms.clocks(),
        renewing: Renewing::ByClock { within, repeating },
        queued,
        errors: Errors::NONE,
    };
    let set = set.with_epoch(Nanos::from_micros(random.between(2_500, 12_000))).ok()?;
    let promised = (0..set.high.len())
        .all(|index| high_speed(&set, index).is_ok_and(|unmet| unmet.is_none()))
        && (0..2).all(|index| low_speed(&set, index).is_ok_and(|found| found.is_ok()));
    let ppm =
        [(); NODES].map(|()| [100, -100, random.below(201) as i64 - 100][random.below(3) as usize]);
    let first = of.iter().zip(&set.high).map(|((node, _), message)| {
        FIRST + if *node == DRIVER && !together { random.below(message.period.0) } else { 0 }
    });
    let first = first.collect();
    let offsets = [(); NODES].map(|()| random.below(5_000_000_000));
    promised.then_some(Drive { set, terms, pace, leads, own, of, first, ppm, offsets })
}

impl Drive {
    fn clock(&self, node: usize) -> Oscillator {
        Oscillator { offset: self.offsets[node], ppm: self.ppm[node], grain: Nanos(1) }
    }

    /// Returns when the first message of this code comes by the clock of its node.
    fn first(&self, code: usize) -> u64 {
        self.offsets[self.of[code].0] + self.first[code]
    }

    /// Returns how long after it came a message has to begin at most.
    fn distance(&self, code: usize) -> Nanos {
        let message = &self.set.high[code];
        message.deadline - self.set.rate.time(message.bits.into())
    }

    /// Returns a time by which all nodes know the time that hear the master.
    fn ready(&self) -> u64 {
        self.terms.silence().0 + 8 * self.terms.base().interval.0
    }

    /// Returns the bus with all nodes but the driver. The second unit is the master if the driver
    /// is not.
    fn bus(&self, seed: u64) -> CanBus {
        let bus = CanBus::new(rate());
        bus.record(usize::MAX);
        let id = |rank| Id::from(low_speed_id(rank).unwrap());
        let units = (1..NODES).map(|node| {
            let own = self.of.iter().enumerate().filter(|(_, (of, _))| *of == node);
            let mut messages: Vec<TimedMessage> = own
                .map(|(code, (_, length))| {
                    let (distance, period) = (self.distance(code), self.set.high[code].period);
                    let name = TimedName::Code { code: code as u16, distance };
                    message(name, *length, period)
                })
                .collect();
            if node == 1 && !self.leads {
                let period = self.set.low[0].period;
                messages.push(message(TimedName::Time(id(0)), 8, period));
            }
            if node == 1 {
                let period = self.set.low[1].period;
                messages.push(message(TimedName::Fixed(id(1)), 8, period));
            }
            let (in_order, upsets) = (false, Vec::new());
            TimedUnit { clock: self.clock(node), messages, in_order, upsets }
        });
        let terms = TimedTerms {
            time: Some((self.terms, id(0))),
            epochs: self.set.epochs,
            clocks: self.set.clocks,
            renewing: self.set.renewing,
        };
        bus.add_timed(Some(terms), units.collect(), seed);
        bus
    }
}

/// Returns a message of a unit, whose first comes after a millisecond.
fn message(name: TimedName, length: u8, period: Nanos) -> TimedMessage {
    let (first, jitter, deadline) = (Nanos(FIRST), Nanos::ZERO, None);
    TimedMessage { name, length, fd: false, period: Some(period), first, jitter, deadline }
}

/// Returns how many messages of units were never sent.
fn lost(bus: &CanBus) -> u64 {
    let books = bus.books(Nanos::ZERO);
    books.iter().flatten().map(|books| books.early + books.lost).sum()
}

/// The newest message of each stream of the driver: its length and its number. The time is the
/// stream after them.
#[derive(Default)]
struct Newest(RefCell<Vec<(u8, u64)>>, Cell<[u8; TIME_BYTES]>);

impl FrameSource for Newest {
    fn frame(&self, stream: u8, id: Id) -> Option<CanFrame> {
        let all = self.0.borrow();
        let Some((length, number)) = all.get(usize::from(stream)).copied() else {
            return CanFrame::data(id, &self.1.get()).ok();
        };
        numbered(id, length, number)?.classic()
    }
}

/// The driver, as the process has it.
struct Driver<'a> {
    drive: &'a Drive,
    desk: &'a Desk,
    clock: Oscillator,
    module: ToucanDriver<&'a Desk>,
    outbox: BufferedOutbox,
    newest: Newest,
    time: NodeTime,
    /// By stream: its code, and the start-by time of what waits.
    streams: Vec<(usize, Nanos)>,
    came: Vec<u64>,
    untimed: u64,
    lost: u64,
    /// The driver begins what is due up to so much later.
    busy: u64,
}

impl<'a> Driver<'a> {
    fn new(drive: &'a Drive, desk: &'a Desk) -> Driver<'a> {
        let module = ToucanDriver::start(desk, rate()).unwrap();
        let codes = drive.of.iter().enumerate().filter(|(_, (node, _))| *node == DRIVER);
        let streams: Vec<(usize, Nanos)> = codes.map(|(code, _)| (code, Nanos::ZERO)).collect();
        let mut outbox =
            BufferedOutbox::new(rate(), drive.own.min(streams.len()), SHARED, SPARE).unwrap();
        if drive.leads {
            outbox.tell(streams.len() as u8);
        } else {
            let time = Filter::only(false, low_speed_id(0).unwrap().as_raw().into());
            assert_eq!(outbox.listen(&module, time), Ok(TIME_BUFFER));
        }
        let newest = Newest::default();
        *newest.0.borrow_mut() = streams.iter().map(|(code, _)| (drive.of[*code].1, 0)).collect();
        let clock = drive.clock(DRIVER);
        let start = clock.local(desk.time());
        let set = &drive.set;
        let number = drive.leads.then_some(0);
        let learns = BusClock::new(drive.terms, number, start);
        let renewal = Renewal::new(set.epochs, set.clocks, set.renewing);
        let time = NodeTime::new(Some(learns), renewal);
        let came = vec![0; streams.len()];
        let (untimed, lost, busy) = (0, 0, drive.pace.busy - 40_000);
        Driver {
            drive,
            desk,
            clock,
            module,
            outbox,
            newest,
            time,
            streams,
            came,
            untimed,
            lost,
            busy,
        }
    }

    fn local(&self) -> Nanos {
        self.clock.local(self.desk.time())
    }

    fn attend(&mut self) {
        let now = self.desk.time();
        self.outbox.attend(&self.module, &self.newest, now);
        if let Some(BufferedFrame { frame, begun }) = self.outbox.heard(&self.module, TIME_BUFFER) {
            let timer = self.module.timer();
            let end = ended(rate(), (begun, timer), length(&frame), self.local());
            let frame = TimeFrame::read(frame.bytes()).unwrap();
            self.time.clock().unwrap().heard(end, 0, &frame);
        }
    }

    /// Sends a frame of the time if one is due, and notes those that are through.
    fn lead(&mut self) {
        let (stream, id) = (self.streams.len() as u8, low_speed_id(0).unwrap().into());
        while let Some(through) = self.outbox.take_sent() {
            if through.stream == stream {
                let frame = self.newest.frame(stream, id).unwrap();
                let timer = self.module.timer();
                let end = ended(rate(), (through.begun, timer), length(&frame), self.local());
                self.time.clock().unwrap().sent(end, true);
            }
        }
        let local = self.local();
        if let Some(frame) = self.time.clock().unwrap().look(local) {
            self.newest.1.set(frame.bytes());
            let now = self.desk.time();
            self.outbox.post(&self.module, &self.newest, now, stream, id).unwrap();
        }
    }

    fn id(&self, stream: usize) -> Option<StandardId> {
        let (code, start_by) = self.streams[stream];
        let epoch = self.time.epoch()?;
        Some(self.drive.set.epochs.id(code as u16, start_by, epoch).unwrap())
    }

    /// Renews what waits if it is time to. The driver may be preempted between two messages.
    fn renew(&mut self, random: &mut Random) {
        let local = self.local();
        if local < self.time.next_look(local) {
            return;
        }
        let duty = self.time.look(local);
        if duty == NodeDuty::Renew {
            self.time.renewed();
        }
        if duty != NodeDuty::None {
            let most = 1 + self.drive.pace.preempted / self.streams.len().max(8) as u64;
            for stream in 0..self.streams.len() {
                self.desk.pass(random.below(most));
                let id = self.id(stream);
                let waited = self.outbox.rename(&self.module, stream as u8, id);
                self.lost += u64::from(waited && id.is_none());
            }
            self.outbox.settle(&self.module, &self.newest, self.desk.time());
        }
    }

    /// A message comes, and is handed over now.
    fn post(&mut self, stream: usize, came: Nanos) {
        let code = self.streams[stream].0;
        let number = self.came[stream];
        self.came[stream] += 1;
        let common = self.time.common(self.clock.local(came));
        let (Some(common), Some(_)) = (common, self.time.epoch()) else {
            self.untimed += 1;
            return;
        };
        self.streams[stream].1 = common + self.drive.distance(code);
        self.newest.0.borrow_mut()[stream].1 = number;
        let id = self.id(stream).unwrap().into();
        let now = self.desk.time();
        self.outbox.post(&self.module, &self.newest, now, stream as u8, id).unwrap();
    }

    /// Returns when message `number` of a stream comes.
    fn comes(&self, stream: usize, number: u64) -> Nanos {
        let code = self.streams[stream].0;
        let period = self.drive.set.high[code].period;
        self.clock.when(Nanos(self.drive.first(code) + period.0 * number))
    }

    fn run(&mut self, end: u64, random: &mut Random) {
        while self.desk.now.get() < end {
            let local = self.local();
            let look = self.clock.when(self.time.next_look(local)).0;
            let all = 0..self.streams.len();
            let next = all.map(|stream| (self.comes(stream, self.came[stream]).0, stream)).min();
            let (comes, _) = next.unwrap_or((u64::MAX, 0));
            let due = self.outbox.due().map_or(u64::MAX, |due| due.0);
            let wake = look.min(comes).min(due).min(end);
            let rang = self.desk.wait(wake.max(self.desk.now.get()));
            self.desk.pass(random.below(self.busy));
            if rang || due <= self.desk.now.get() {
                self.attend();
            }
            self.lead();
            self.renew(random);
            let (count, turn) = (self.streams.len(), random.below(STREAMS as u64) as usize);
            // The least urgent first, from anywhere on.
            for stream in (0..count).rev().map(|at| (at + turn) % count) {
                let came = self.comes(stream, self.came[stream]);
                if came <= self.desk.time() {
                    self.post(stream, came);
                }
            }
        }
    }
}

/// The outcome of a life.
#[derive(Debug, Default)]
struct Seen {
    late: Vec<(usize, u64)>,
    /// Messages that went twice, and that never went.
    twice: u64,
    missing: u64,
    frames: u64,
}

/// Looks at all frames of high-speed messages that came from `from` on.
fn judge(drive: &Drive, record: &[Sent], from: u64, until: u64) -> Seen {
    let mut seen = Seen::default();
    let mut sent: Vec<Vec<u64>> = vec![Vec::new(); drive.of.len()];
    for it in record {
        let frame = it.frame.classic().unwrap();
        let Id::Standard(id) = frame.id() else { panic!("an extended one") };
        let Some(IdentifierClass::HighSpeed { code, .. }) = classify(id) else { continue };
        let code = usize::from(code);
        let (node, bytes) = drive.of[code];
        let counted = usize::from(bytes.min(8));
        let mut number = [0; 8];
        number[..counted].copy_from_slice(&frame.bytes()[..counted]);
        let mask = if counted == 8 { u64::MAX } else { (1 << (8 * counted)) - 1 };
        // The newest message of that number that came before its frame ended.
        let clock = drive.clock(node);
        let first = drive.first(code);
        let period = drive.set.high[code].period.0;
        let newest = (clock.local(it.time).0.saturating_sub(first)) / period;
        let back = newest.wrapping_sub(u64::from_le_bytes(number)) & mask;
        let came = clock.when(Nanos(first + (newest - back.min(newest)) * period));
        if came.0 < from || came.0 >= until {
            continue;
        }
        seen.frames += 1;
        sent[code].push(newest - back.min(newest));
        if it.time > came + drive.set.high[code].deadline {
            seen.late.push((code, newest - back));
        }
    }
    for (code, sent) in sent.iter().enumerate() {
        let clock = drive.clock(drive.of[code].0);
        let (first, period) = (drive.first(code), drive.set.high[code].period.0);
        let number = |at: u64| (clock.local(Nanos(at)).0.saturating_sub(first)).div_ceil(period);
        let mut once = sent.clone();
        once.sort_unstable();
        once.dedup();
        seen.twice += (sent.len() - once.len()) as u64;
        let came = number(until) - number(from);
        // Messages without data have no number.
        if drive.of[code].1 > 0 {
            seen.missing += came.saturating_sub(once.len() as u64 + 1);
        }
    }
    seen
}

#[test]
fn a_driver_that_renews_by_its_clock_is_in_time_among_units_that_do() {
    let (mut lives, mut frames, mut twice) = (0, 0, 0);
    let (mut sharing, mut preempted, mut leading) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let Some(drive) = drive(&mut random) else { continue };
        let bus = drive.bus(seed);
        let desk = Desk::new(&bus, random.below(400));
        let mut driver = Driver::new(&drive, &desk);
        let ready = drive.ready();
        let end = ready + 60_000_000;
        driver.run(ready, &mut random);
        let untimed = (driver.untimed, lost(&bus));
        driver.run(end + 20_000_000, &mut random);
        assert_eq!((driver.untimed, lost(&bus)), untimed, "seed {seed}: all know the time");
        let counts = driver.outbox.counts();
        // The bound assumes that the driver refills shared buffers before they are empty.
        if counts.dry > 0 {
            continue;
        }
        let seen = judge(&drive, &bus.take_record(), ready, end);
        assert!(seen.late.is_empty() && seen.missing == 0, "seed {seed}: {seen:?}");
        assert_eq!(driver.lost, 0, "seed {seed}");
        (lives, frames, twice) = (lives + 1, frames + seen.frames, twice + seen.twice);
        sharing += u64::from(!drive.set.queued.high.is_empty());
        preempted += counts.preempted;
        leading += u64::from(drive.leads);
    }
    assert!(lives > 1_000 && frames > 150_000, "{lives} lives, {frames} frames");
    assert!(leading > 400, "{leading} lives in which the driver is the master");
    assert!(sharing > 400 && preempted > 3_000, "{sharing} share buffers, {preempted} preempted");
    // A frame that was on the wire when its node renewed.
    assert!(twice > 0 && twice * 100 < frames, "{twice} of {frames}");
}

#[test]
fn a_driver_that_is_slower_than_it_promised_is_late() {
    let mut late = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let Some(drive) = drive(&mut random) else { continue };
        let bus = drive.bus(seed);
        let desk = Desk::new(&bus, 100);
        let mut driver = Driver::new(&drive, &desk);
        let ready = drive.ready();
        driver.busy = 60 * drive.pace.busy;
        driver.run(ready + 80_000_000, &mut random);
        late += judge(&drive, &bus.take_record(), ready, ready + 60_000_000).late.len();
    }
    assert!(late > 100, "{late}");
}

/// A module that loses its set-up is started again, listens again, and all is as before.
#[test]
fn a_module_that_was_reset_keeps_the_time_again() {
    let mut lives = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let Some(drive) = drive(&mut random) else { continue };
        let bus = drive.bus(seed);
        let desk = Desk::new(&bus, 100);
        let mut driver = Driver::new(&drive, &desk);
        let ready = drive.ready();
        driver.run(ready + random.below(20_000_000), &mut random);
        desk.model.borrow_mut().reset(desk.time());
        // The driver looks although nothing interrupts.
        driver.run(desk.now.get() + random.below(20_000_000), &mut random);
        driver.attend();
        let again = desk.now.get() + ready;
        driver.run(again + 80_000_000, &mut random);
        let seen = judge(&drive, &bus.take_record(), again, again + 60_000_000);
        assert!(seen.late.is_empty() && seen.missing == 0, "seed {seed}: {seen:?}");
        assert!(driver.time.epoch().is_some());
        lives += 1;
    }
    assert!(lives > 20, "{lives}");
}
