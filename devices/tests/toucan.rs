//! The model of a TouCAN on the bus, alone, under its driver, and under a hostile one.

use crate::support::desk::Desk;
use diapason_abi::Nanos;
use diapason_can::frame::standard;
use diapason_can::in_order::{BusErrors, Sends, responses_in_order};
use diapason_can::response::{AnalysedMessage, Errors};
use diapason_can::toucan::{BufferedOutbox, FrameSource, ToucanDriver, code, pack, register};
use diapason_can::{BitRate, CanFrame, Id};
use diapason_devices::can::{BusMishap, CanBus, PeriodicMessage, Sent};
use diapason_random::Random;
use std::cell::RefCell;

const MEGABIT: u32 = 1_000_000;

fn bus() -> CanBus {
    let bus = CanBus::quiet(BitRate::new(MEGABIT).unwrap());
    bus.record(usize::MAX);
    bus
}

fn frame(id: u32, data: &[u8]) -> CanFrame {
    CanFrame::data(standard(id).unwrap(), data).unwrap()
}

fn started(desk: &Desk) -> ToucanDriver<&Desk> {
    let module = ToucanDriver::start(desk, BitRate::new(MEGABIT).unwrap()).unwrap();
    assert!(module.is_ready());
    // Eleven recessive bits, then it takes part.
    desk.wait(desk.now.get() + 20_000);
    module
}

fn ids(sent: &[Sent]) -> Vec<u32> {
    sent.iter().map(|sent| sent.frame.classic().unwrap().raw_id()).collect()
}

#[test]
fn the_lowest_identifier_goes_first_whatever_its_buffer() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    for (buffer, id) in [(3, 0x300), (9, 0x100), (0, 0x400), (15, 0x200)] {
        module.load(buffer, &frame(id, b"abc"));
    }
    desk.wait(desk.now.get() + 1_000_000);
    assert_eq!(ids(&bus.take_record()), [0x100, 0x200, 0x300, 0x400]);
    assert_eq!(module.take_flags(), 1 << 3 | 1 << 9 | 1 | 1 << 15);
    assert_eq!(module.take_flags(), 0);
    assert!(desk.model.borrow_mut().take_notes().is_empty());
}

#[test]
fn only_buffers_that_may_interrupt_do() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    module.load(1, &frame(0x100, b""));
    assert!(!desk.wait(desk.now.get() + 1_000_000));
    // The flag is there already when the mask allows it.
    module.interrupts(1 << 1);
    assert!(desk.wait(desk.now.get()));
    assert_eq!(module.take_flags(), 1 << 1);
    module.load(1, &frame(0x100, b""));
    assert!(desk.wait(desk.now.get() + 1_000_000));
}

#[test]
fn a_frame_on_the_wire_cannot_be_taken_back_and_leaves_no_flag() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    module.expect(15, standard(0x100).unwrap());
    module.load(0, &frame(0x100, b"12345678"));
    module.load(1, &frame(0x200, b"12345678"));
    desk.wait(desk.now.get() + 50_000);
    assert!(module.sends());
    module.withdraw(0);
    module.withdraw(1);
    desk.wait(desk.now.get() + 1_000_000);
    assert_eq!(ids(&bus.take_record()), [0x100]);
    assert_eq!(module.take_flags(), 1 << 15);
    assert!(module.came(15));
}

#[test]
fn frames_go_to_the_lowest_buffer_that_matches_and_locks_hold_them_back() {
    let bus = CanBus::new(BitRate::new(MEGABIT).unwrap());
    let message = |id: u32, offset: u64| PeriodicMessage {
        id: standard(id).unwrap(),
        length: 2,
        period: Nanos::from_millis(10),
        offset: Nanos::from_micros(offset),
    };
    bus.add_unit(vec![message(0x123, 1_000), message(0x124, 2_000)]);
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    module.expect(5, standard(0x123).unwrap());
    module.expect(4, standard(0x124).unwrap());
    module.expect(6, standard(0x123).unwrap());
    desk.wait(3_000_000);
    assert_eq!(module.take_flags(), 1 << 4 | 1 << 5);
    let buffer = register::BUFFER + 5 * 16;
    let control = |desk: &Desk| desk.model.borrow_mut().read(desk.time(), buffer) >> 4 & 15;
    assert_eq!(control(&desk), u16::from(code::FULL));
    // Now it is locked: the next frame waits until the timer is read.
    desk.wait(12_000_000);
    assert_eq!(control(&desk), u16::from(code::FULL));
    assert_eq!(module.take_flags(), 0);
    let _ = module.timer();
    assert_eq!(module.take_flags(), 1 << 5);
    assert_eq!(control(&desk), u16::from(code::OVERRUN));
}

#[test]
fn stamps_say_when_a_frame_began() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    desk.wait(5_000_000);
    let before = module.timer();
    module.load(2, &frame(0x321, b"stamp"));
    desk.wait(6_000_000);
    let begun = module.stamp(2, standard(0x321).unwrap()).wrapping_sub(before);
    assert!(begun <= 1, "{begun}");
}

#[test]
fn a_module_at_another_rate_takes_no_part_and_says_so() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = ToucanDriver::start(&desk, BitRate::new(500_000).unwrap()).unwrap();
    assert!(!module.is_ready());
    assert!(!desk.model.borrow_mut().take_notes().is_empty());
    module.load(0, &frame(1, b""));
    desk.wait(2_000_000);
    assert!(bus.take_record().is_empty());
}

#[test]
fn silence_and_errors_are_in_the_registers() {
    let bus = CanBus::new(BitRate::new(MEGABIT).unwrap());
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    // Nobody acknowledges.
    module.load(0, &frame(0x55, b"x"));
    desk.wait(30_000_000);
    let status = desk.model.borrow_mut().read(desk.time(), register::ESTAT);
    assert_ne!(status & diapason_can::toucan::estat::ACK, 0);
    assert_ne!(status & diapason_can::toucan::estat::PASSIVE, 0);
    assert_eq!(module.errors(), (0, 128));
}

#[test]
fn no_access_whatever_panics_or_stops_the_time() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let bus = bus();
        bus.add_unit(vec![PeriodicMessage {
            id: standard(0x155).unwrap(),
            length: 8,
            period: Nanos::from_micros(300),
            offset: Nanos::ZERO,
        }]);
        let desk = Desk::new(&bus, 0);
        let module = started(&desk);
        for _ in 0..400 {
            let wild = random.below(8) == 0;
            let offset = random.below(if wild { 1 << 20 } else { 0x210 }) as usize & !1;
            let mut value = random.below(1 << 32) as u32;
            if random.below(3) == 0 {
                // Likely a code that sends or receives, of a standard identifier.
                let frame = frame(value & 0x7ff, &[1, 2, 3]);
                let words = pack([12, 4, 8, 14, 10, 2][random.below(6) as usize], &frame);
                value = u32::from(words[0]) << 16 | u32::from(words[1]);
            }
            let now = desk.time();
            match random.below(4) {
                0 => drop(desk.model.borrow_mut().read_long(now, offset)),
                1 => desk.model.borrow_mut().write(now, offset, value as u16),
                2 => desk.model.borrow_mut().write_long(now, offset, value),
                _ => drop(desk.wait(now.0 + random.below(400_000))),
            }
        }
        // After a reset it works as if nothing had been.
        let again = ToucanDriver::start(&desk, BitRate::new(MEGABIT).unwrap()).unwrap();
        assert!(again.is_ready() && module.is_ready(), "seed {seed}");
        desk.wait(desk.now.get() + 30_000_000);
        again.load(7, &frame(0, b"alive"));
        desk.wait(desk.now.get() + 2_000_000);
        assert_eq!(again.take_flags() & 1 << 7, 1 << 7, "seed {seed}");
    }
}

/// The newest number of each stream, as its sender's memory has it, and how long frames are.
struct Numbers {
    newest: RefCell<Vec<u8>>,
    lengths: Lengths,
}

/// How many bytes the frames of a life have.
#[derive(Clone, Copy)]
enum Lengths {
    Longest,
    Shortest,
    Mixed,
}

impl Lengths {
    fn of(seed: u64) -> Lengths {
        [Lengths::Longest, Lengths::Shortest, Lengths::Mixed][seed as usize % 3]
    }

    fn bytes(self, stream: u8) -> usize {
        match self {
            Lengths::Longest => 8,
            Lengths::Shortest => 1,
            Lengths::Mixed => [1, 8, 2][usize::from(stream) % 3],
        }
    }
}

impl FrameSource for Numbers {
    fn frame(&self, stream: u8, id: Id) -> Option<CanFrame> {
        let number = self.newest.borrow()[usize::from(stream)];
        let data = [number, 0, 0, 0, 0, 0, 0, 0];
        CanFrame::data(id, &data[..self.lengths.bytes(stream)]).ok()
    }
}

/// A posted message, and what has been seen of it.
struct Life {
    stream: u8,
    /// The stream has a buffer of its own.
    owns: bool,
    number: u8,
    /// When it came, and when it was handed over.
    came: u64,
    done: u64,
    replaced: bool,
    begun: Vec<u64>,
    ended: u64,
}

/// The shortest time between two messages of a stream, in ns: full and half-full buses.
fn period(seed: u64, streams: usize) -> u64 {
    let most = match Lengths::of(seed) {
        Lengths::Shortest => 70_000,
        Lengths::Longest | Lengths::Mixed => 140_000,
    };
    streams as u64 * if seed.is_multiple_of(4) { most } else { 5 * most / 2 }
}

/// The identifier of a stream.
fn name(stream: u8) -> u32 {
    0x100 + 0x20 * u32::from(stream)
}

/// Returns a bus on which a unit sends `other` again and again. If frames are `destroyed`, one is
/// each time that so much time is over.
fn busy_bus(random: &mut Random, other: u32, destroyed: Option<u64>) -> CanBus {
    let bus = bus();
    if let Some(apart) = destroyed {
        let times = (200_000..30_000_000).step_by(apart as usize);
        times.for_each(|at| bus.suffer(Nanos(at), BusMishap::Errors(1)));
    }
    bus.add_unit(vec![PeriodicMessage {
        id: standard(other).unwrap(),
        length: random.below(9) as u8,
        period: Nanos::from_micros(400 + random.below(1_000)),
        offset: Nanos::from_micros(random.below(300)),
    }]);
    bus
}

/// Runs an outbox with random messages beside other traffic. If frames are `destroyed`, one is each
/// time that so much time is over. Returns the lives of all messages, and
/// the identifiers of other frames with the times at which they began.
fn lives(seed: u64, destroyed: Option<u64>) -> (Vec<Life>, Vec<(u32, u64)>, BufferedOutbox) {
    let mut random = Random::new(seed);
    let other = 0x81 + 2 * random.below(0x180) as u32;
    let bus = busy_bus(&mut random, other, destroyed);
    // Now and then the driver is preempted between two accesses.
    let slow = if seed.is_multiple_of(5) { 6_000 } else { 700 };
    let desk = Desk::new(&bus, random.below(slow));
    let module = started(&desk);
    let own = random.below(4) as usize;
    let spare = 2;
    let shared = spare + 1 + random.below(4) as usize;
    let streams = own + shared + random.below(10) as usize;
    let mut outbox =
        BufferedOutbox::new(BitRate::new(MEGABIT).unwrap(), own, shared, spare).unwrap();
    let source = Numbers { newest: RefCell::new(vec![0; streams]), lengths: Lengths::of(seed) };
    let id = |stream: u8| standard(name(stream)).unwrap();
    let mut all: Vec<Life> = Vec::new();
    // In every other life all come nearly at once, again and again.
    let (spread, least) = match seed % 2 {
        0 => (100_000, 2 * period(seed, streams)),
        _ => (1_000_000, period(seed, streams)),
    };
    let mut next: Vec<u64> = (0..streams).map(|_| 100_000 + random.below(spread)).collect();
    let end = 30_000_000;
    while desk.now.get() < end {
        let (stream, at) = (0..).zip(&next).min_by_key(|(_, at)| **at).unwrap();
        let (stream, at): (u8, u64) = (stream, *at);
        let due = outbox.due().map_or(at, |due| due.0.min(at));
        if desk.wait(due) {
            // The driver takes a while to run: less than the shortest frame.
            desk.pass(random.below(40_000));
            outbox.attend(&module, &source, desk.time());
        } else if desk.now.get() >= at {
            let number = source.newest.borrow()[usize::from(stream)] + 1;
            source.newest.borrow_mut()[usize::from(stream)] = number;
            outbox.post(&module, &source, desk.time(), stream, id(stream)).unwrap();
            let before = all.iter_mut().rev().find(|life| life.stream == stream);
            before.into_iter().for_each(|life| life.replaced = true);
            let (done, begun) = (desk.now.get(), Vec::new());
            let owns = usize::from(stream) < own;
            all.push(Life {
                stream,
                owns,
                number,
                came: at,
                done,
                replaced: false,
                begun,
                ended: 0,
            });
            let gap = match seed.is_multiple_of(2) || random.below(4) == 0 {
                true => least,
                false => least + random.below(2 * least),
            };
            next[usize::from(stream)] = at + gap;
        } else {
            outbox.attend(&module, &source, desk.time());
        }
    }
    while desk.now.get() < end + 20_000_000 {
        desk.wait(outbox.due().map_or(end + 20_000_000, |due| due.0));
        outbox.attend(&module, &source, desk.time());
    }
    assert!(desk.model.borrow_mut().take_notes().is_empty(), "seed {seed}");
    let others = seen(&bus, other, &mut all);
    (all, others, outbox)
}

/// Notes in `all` when each message was on the bus. Returns the frames of `other` with the times at
/// which they began.
fn seen(bus: &CanBus, other: u32, all: &mut [Life]) -> Vec<(u32, u64)> {
    let mut others = Vec::new();
    for sent in bus.take_record() {
        let frame = sent.frame.classic().unwrap();
        let (stream, number) = (frame.raw_id().wrapping_sub(0x100) / 0x20, frame.padded()[0]);
        let begun = sent.time.0 - 1_000 * u64::from(diapason_can::wire::length(&frame));
        if frame.raw_id() == other {
            others.push((other, begun));
        } else if let Some(life) =
            all.iter_mut().find(|l| (u32::from(l.stream), l.number) == (stream, number))
        {
            life.begun.push(begun);
            life.ended = sent.time.0;
        }
    }
    others
}

struct Empty;

impl FrameSource for Empty {
    fn frame(&self, _: u8, id: Id) -> Option<CanFrame> {
        CanFrame::data(id, &[]).ok()
    }
}

/// Three messages come while a short frame is on the wire. The third one finds both echoes taken.
/// Short frames are over before the longest frame would be: the driver must not wait for that.
#[test]
fn a_message_that_finds_no_echo_waits_for_one_frame_more_and_not_two() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    let mut outbox = BufferedOutbox::new(BitRate::new(MEGABIT).unwrap(), 0, 3, 2).unwrap();
    let mut post = |stream: u8, id: u32| {
        outbox.post(&module, &Empty, desk.time(), stream, standard(id).unwrap()).unwrap();
    };
    post(5, 0x500);
    desk.wait(desk.now.get() + 3_000);
    for (stream, id) in [(6, 0x600), (7, 0x700), (3, 0x300), (4, 0x310), (1, 0x100)] {
        post(stream, id);
    }
    assert_eq!(outbox.counts().held, 1);
    let end = desk.now.get() + 2_000_000;
    while desk.now.get() < end {
        desk.wait(outbox.due().map_or(end, |due| due.0.min(end)));
        // The driver takes a while to run: less than the shortest frame.
        desk.pass(20_000);
        outbox.attend(&module, &Empty, desk.time());
    }
    assert_eq!(ids(&bus.take_record()), [0x500, 0x300, 0x100, 0x310, 0x600, 0x700]);
    assert_eq!((outbox.counts().sent, outbox.counts().dry), (6, 0));
}

/// The module loses everything while two messages have a buffer each and a third one waits.
#[test]
fn a_module_that_lost_its_set_up_gets_its_messages_again() {
    let bus = bus();
    let desk = Desk::new(&bus, 100);
    let module = started(&desk);
    let mut outbox = BufferedOutbox::new(BitRate::new(MEGABIT).unwrap(), 1, 1, 0).unwrap();
    desk.model.borrow_mut().reset(desk.time());
    for (stream, id) in [(0, 0x100), (1, 0x300), (2, 0x200)] {
        outbox.post(&module, &Empty, desk.time(), stream, standard(id).unwrap()).unwrap();
    }
    assert!(!module.is_ready());
    let end = desk.now.get() + 2_000_000;
    while desk.now.get() < end {
        outbox.attend(&module, &Empty, desk.time());
        desk.wait(outbox.due().map_or(end, |due| due.0.min(end)));
    }
    outbox.attend(&module, &Empty, desk.time());
    assert_eq!(ids(&bus.take_record()), [0x100, 0x200, 0x300]);
    assert_eq!((outbox.counts().off, outbox.counts().sent), (1, 3));
}

#[test]
fn a_driver_counts_errors_and_bus_off_and_sends_on() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    let mut outbox = BufferedOutbox::new(BitRate::new(MEGABIT).unwrap(), 1, 1, 0).unwrap();
    let live = |outbox: &mut BufferedOutbox| {
        outbox.post(&module, &Empty, desk.time(), 0, standard(0x100).unwrap()).unwrap();
        desk.wait(desk.now.get() + 5_000_000);
        outbox.attend(&module, &Empty, desk.time());
        outbox.attend(&module, &Empty, desk.time());
        let counts = outbox.counts();
        (counts.errors, counts.off, counts.sent)
    };
    assert_eq!(live(&mut outbox), (0, 0, 1));
    bus.suffer(desk.time(), BusMishap::Errors(2));
    assert_eq!(
        live(&mut outbox),
        (2, 0, 2),
        "one look finds both errors of its own frames, and only once"
    );
    bus.suffer(desk.time(), BusMishap::BusOff);
    let (_, off, sent) = live(&mut outbox);
    assert_eq!((off, sent), (1, 3));
}

/// Extended frames have half a stamp: it is at most 255 bits too late.
#[test]
fn the_stamp_of_an_extended_frame_is_late_and_not_early() {
    let bus = bus();
    let desk = Desk::new(&bus, 0);
    let module = started(&desk);
    let id = diapason_can::frame::extended(0x123_4567).unwrap();
    for pause in [10_000, 1_000_000, 17_000, 333_000, 40_000_000] {
        desk.wait(desk.now.get() + pause);
        let before = module.timer();
        module.load(3, &CanFrame::data(id, b"stamp").unwrap());
        desk.wait(desk.now.get() + 500_000);
        let after = module.timer();
        let begun = module.stamp(3, id);
        assert!(begun.wrapping_sub(before) <= 256, "{begun} after {before}");
        assert!(after.wrapping_sub(begun) <= 500, "{begun} before {after}");
    }
}

#[test]
fn every_message_goes_once_and_no_inversion_is_longer_than_a_frame() {
    let (mut messages, mut preempted, mut escaped) = (0, 0, 0);
    let (mut held, mut inverted, mut timely) = (0, 0, 0);
    for seed in 0..3_000 {
        let (all, others, outbox) = lives(seed, None);
        let counts = outbox.counts();
        preempted += counts.preempted;
        escaped += counts.escaped;
        held += counts.held;
        timely += u64::from(counts.dry == 0);
        assert_eq!(outbox.queued(), 0, "seed {seed}");
        for life in &all {
            messages += 1;
            let (stream, number) = (life.stream, life.number);
            assert!(life.begun.len() <= 1, "seed {seed}: {stream}/{number} went twice");
            if life.begun.is_empty() {
                assert!(life.replaced, "seed {seed}: {stream}/{number} never went");
                continue;
            }
            let begun = life.begun[0];
            let before = |other: &&Life| {
                let at = other.begun.first();
                other.stream > stream && at.is_some_and(|at| (life.done..begun).contains(at))
            };
            let within = |at: &&u64| (life.done..begun).contains(*at);
            let of_others = others.iter().filter(|(id, _)| *id > name(stream));
            let of_others = of_others.filter(|(_, at)| within(&at)).count();
            let inversions = all.iter().filter(before).count() + of_others;
            inverted += inversions;
            // A driver that is late costs more, and says that it was.
            let most = if counts.dry == 0 { 1 } else { usize::MAX };
            assert!(inversions <= most, "seed {seed}: {inversions} before {stream}/{number}");
        }
    }
    println!(
        "{messages} messages in {timely} timely lives: {preempted} preempted, {escaped} escaped"
    );
    println!("{held} held, {inverted} frames before more urgent messages");
    assert!(messages > 10_000 && preempted > 100 && escaped > 10 && timely > 200);
}

#[test]
fn no_message_takes_longer_than_the_bound_for_buffers() {
    let (bounded, beyond) = bounds(0..3_000, None);
    println!("{bounded} messages with a bound, {beyond} beyond that of the most urgent first");
    assert!(bounded > 5_000);
}

/// A frame is destroyed each 5 ms, and so it may take longer until its message is loaded again.
#[test]
fn no_message_takes_longer_than_the_bound_for_buffers_and_errors() {
    let (bounded, beyond) = bounds(0..3_000, Some(5_000_000));
    println!("{bounded} messages with a bound, {beyond} beyond that of the most urgent first");
    assert!(bounded > 5_000);
}

/// Returns how many messages have a bound, and how many are later than if their node sent the most
/// urgent first. None is later than its bound.
fn bounds(seeds: std::ops::Range<u64>, destroyed: Option<u64>) -> (u64, u64) {
    let rate = BitRate::new(MEGABIT).unwrap();
    let (mut bounded, mut beyond) = (0, 0);
    for seed in seeds {
        let (all, others, outbox) = lives(seed, destroyed);
        if outbox.counts().dry > 0 || outbox.counts().replaced > 0 {
            continue;
        }
        let streams = 1 + all.iter().map(|life| life.stream).max().unwrap();
        let jitter = all.iter().map(|life| life.done - life.came).max().unwrap();
        let of = |id: u32, bytes: u32, period: u64, jitter: u64| AnalysedMessage {
            jitter: Nanos(jitter),
            ..AnalysedMessage::new(standard(id).unwrap(), bytes, Nanos(period))
        };
        let bytes = |stream| Lengths::of(seed).bytes(stream) as u32;
        let own = period(seed, all.iter().map(|life| usize::from(life.stream)).max().unwrap() + 1);
        let mut messages: Vec<AnalysedMessage> =
            (0..streams).map(|at| of(name(at), bytes(at), own, jitter)).collect();
        let owns = |stream| all.iter().any(|life| life.owns && life.stream == stream);
        let sends = (0..streams).map(|it| if owns(it) { Sends::Urgent } else { Sends::Buffered });
        let mut sends: Vec<Sends> = sends.collect();
        if let [(id, _), ..] = others[..] {
            messages.push(of(id, 8, 400_000, 0));
            sends.push(Sends::Urgent);
        }
        // The driver looks at the module up to so late, and a longest frame later if it has to.
        let again = Nanos(jitter.max(60_000) + 2 * 135_000);
        let errors = destroyed.map_or(BusErrors::NONE, |apart| BusErrors {
            errors: Errors { burst: 2, interval: Nanos(apart) },
            again,
        });
        let Ok(bounds) = responses_in_order(rate, &messages, &sends, 0, errors) else { continue };
        let urgent = vec![Sends::Urgent; sends.len()];
        let alone = responses_in_order(rate, &messages, &urgent, 0, errors);
        for life in all.iter().filter(|life| !life.begun.is_empty()) {
            let (bound, urgent) = (
                bounds[usize::from(life.stream)],
                alone.as_ref().unwrap()[usize::from(life.stream)],
            );
            let response = life.ended - life.came;
            bounded += 1;
            beyond += u64::from(response > urgent.0);
            assert!(response <= bound.0, "seed {seed}: {response} of {}", bound.0);
        }
    }
    (bounded, beyond)
}
