//! MTS: identifiers, and its promises attacked on the bus, those of [EMERALDS 1998] and ours.

use crate::support::{Draw, Random};
use diapason_abi::Nanos;
use diapason_can::bus::{EventKind, NodeId, NodeSetup, Ticket, WireFault};
use diapason_can::mts::{
    Epochs, HighSpeed, IdentifierClass, MtsRefusal, MtsSet, NoPromise, Queued, Renewing,
    UPDATE_BITS, classify, high_speed, low_speed, low_speed_id, non_real_time_id, read_update,
    signal_update,
};
use diapason_can::response::{AnalysedMessage, Errors};
use diapason_can::wire::{length, worst};
use diapason_can::{BitRate, Bus, CanFrame, StandardId};
use std::collections::BTreeMap;

#[test]
fn identifiers_keep_the_classes_apart_and_in_order() {
    let mut seen = BTreeMap::new();
    for raw in 0..0x800 {
        let id = StandardId::new(raw).unwrap();
        let key = match classify(id) {
            Some(IdentifierClass::HighSpeed { region, code }) => {
                (0, u16::from(region), u16::from(code))
            }
            Some(IdentifierClass::LowSpeed { priority }) => {
                assert_eq!(low_speed_id(priority), Ok(id));
                (1, priority, 0)
            }
            Some(IdentifierClass::NonRealTime { number }) => {
                assert_eq!(non_real_time_id(number), Ok(id));
                (2, number, 0)
            }
            None => {
                assert_eq!(raw >> 4, 0x7f, "seven recessive bits and nothing else");
                continue;
            }
        };
        seen.insert(key, raw);
    }
    assert!(seen.values().is_sorted(), "smaller wins, in the order of the classes");
    let of = |class| seen.keys().filter(|key| key.0 == class).count();
    assert_eq!((of(0), of(1), of(2)), (1024, 512, 496));
    assert_eq!(non_real_time_id(496), Err(MtsRefusal::TooMany { given: 496, holds: 496 }));
}

#[test]
fn regions_are_the_same_in_every_epoch() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let (epoch, reach) = (random.between(1, 5_000_000), random.between(1, 5_000_000));
        let epochs = Epochs::new(Nanos(epoch), Nanos(reach)).unwrap();
        let base = random.below(1_000) * epochs.epoch().0;
        let now = base + random.below(epochs.epoch().0);
        assert_eq!(epochs.start(Nanos(now)), Nanos(base));
        let (a, b) = (random.below(reach + 1), random.below(reach + 1));
        let ids = |epoch: u64| {
            [a, b].map(|reach| epochs.id(3, Nanos(now + reach), Nanos(epoch)).unwrap().as_raw())
        };
        let [first, second] = ids(base);
        // One epoch later the order is the same, unless a time is over by then.
        if base > 0 && a.min(b) + now >= base + epochs.epoch().0 {
            let [later_first, later_second] = ids(base + epochs.epoch().0);
            assert_eq!(first.cmp(&second), later_first.cmp(&later_second));
        }
        assert_eq!(
            first.cmp(&second),
            ((now + a) / epochs.region().0).cmp(&((now + b) / epochs.region().0))
        );
    }
    let epochs = Epochs::new(Nanos::from_millis(2), Nanos::from_millis(2)).unwrap();
    assert_eq!((epochs.region(), epochs.epoch()), (Nanos(125_001), Nanos(2_000_016)));
    let end = Nanos(125_001 * 32);
    assert_eq!(epochs.id(0, end, Nanos(0)), Err(MtsRefusal::TooFar { distance: end, end }));
}

#[test]
fn the_update_signal_is_read_back() {
    let mut random = Random::new(2);
    for _ in 0..5_000 {
        let frame = random.frame();
        let len = frame.bytes().len();
        let Ok(signal) = signal_update(&frame) else {
            assert!(frame.is_remote() || frame.code() > 8);
            continue;
        };
        assert_eq!(read_update(&signal, len), (true, frame));
        assert_eq!(read_update(&frame, len), (false, frame));
        assert!(length(&signal) <= worst(frame.is_extended(), len as u32) + UPDATE_BITS / 2);
    }
}

/// A set, and the frames it sends.
struct Traffic {
    set: MtsSet,
    high: Vec<CanFrame>,
    low: Vec<CanFrame>,
    other: CanFrame,
}

fn traffic(random: &mut Random) -> Traffic {
    let rate = BitRate::new(1_000_000).unwrap();
    let plain = |random: &mut Random| loop {
        let frame = random.frame();
        if !frame.is_remote() && frame.code() <= 8 {
            break frame.with_id(StandardId::MAX);
        }
    };
    let count = random.between(2, 9);
    let load = random.between(40, 100);
    let mut high: Vec<(HighSpeed, CanFrame)> = (0..count)
        .map(|_| {
            let frame = plain(random);
            // Identifiers change, and with them the stuff bits.
            let bits = worst(false, frame.bytes().len() as u32);
            let share = random.between(50, 150);
            let period = u64::from(bits + 3) * 100_000 * count * share / (100 * load);
            let deadline = (period * random.between(60, 100) / 100).max(260_000);
            let jitter = if random.one_in(3) { random.below(period / 8) } else { 0 };
            let [period, jitter, deadline] = [period, jitter, deadline].map(Nanos);
            (HighSpeed { bits, period, jitter, deadline }, frame)
        })
        .collect();
    high.sort_by_key(|(message, _)| message.deadline);
    let (messages, high): (Vec<HighSpeed>, Vec<CanFrame>) = high.into_iter().unzip();
    let low: Vec<CanFrame> = (0..random.below(4)).map(|_| plain(random)).collect();
    let other = plain(random).with_id(non_real_time_id(random.below(496) as u16).unwrap());
    let longest = messages.last().unwrap().deadline;
    let epoch = Nanos::from_micros(random.between(500, 4_000));
    // A reach longer than needed makes coarse regions, in which ranks decide.
    let reach = Nanos(longest.0 * random.between(1, 6));
    let interval = Nanos::from_micros(random.between(3_000, 20_000));
    let errors = if random.one_in(2) { Errors { burst: 1, interval } } else { Errors::NONE };
    let low_messages = low.iter().enumerate().map(|(rank, frame)| {
        let period = Nanos::from_micros(random.between(3_000, 30_000));
        AnalysedMessage {
            bits: length(frame),
            ..AnalysedMessage::new(low_speed_id(rank as u16).unwrap(), 8, period)
        }
    });
    let set = MtsSet {
        rate,
        epochs: Epochs::new(epoch, reach).unwrap(),
        high: messages,
        low: low_messages.collect(),
        other: length(&other),
        clocks: Nanos::ZERO,
        renewing: Renewing::OnSignal { last: Nanos::ZERO },
        queued: Queued::default(),
        errors,
    };
    Traffic { set, high, low, other }
}

/// The test of §7.3.6 as printed, for the frames between the instant t = 0 and D − C.
fn paper_accepts(set: &MtsSet, index: usize) -> bool {
    let cost = |m: &HighSpeed| set.rate.time(u64::from(m.bits) + 3).0;
    let start_by = |m: &HighSpeed| m.deadline.0 - set.rate.time(m.bits.into()).0;
    let load: f64 = set.high.iter().map(|m| cost(m) as f64 / m.period.0 as f64).sum();
    let own = start_by(&set.high[index]);
    let longest = set.high.iter().map(|m| m.bits).chain(set.low.iter().map(|m| m.bits));
    let longest = set.rate.time(u64::from(longest.chain([set.other]).max().unwrap()) + 3).0;
    let mut times = vec![own];
    let others = || set.high.iter().enumerate().filter(|(rank, _)| *rank != index);
    for (_, message) in others() {
        times.extend((0..=own / message.period.0).map(|n| n * message.period.0));
    }
    let works = |time: u64| {
        let work: u64 = others()
            .map(|(rank, m)| {
                let released = time.div_ceil(m.period.0);
                let Some(last) = released.checked_sub(1) else { return 0 };
                let key = last * m.period.0 + start_by(m);
                let first = key < own || (key <= own + set.epochs.region().0 && rank < index);
                (if first { released } else { last }) * cost(m)
            })
            .sum();
        work + longest < time
    };
    load <= 1.0 && times.into_iter().any(works)
}

struct Pending {
    due: u64,
    start_by: Option<Nanos>,
    code: u16,
    node: NodeId,
}

/// Returns when a high-speed message comes first so that one of its instances must be started
/// together with one of `target`: in the same region, but after it if of higher rank.
fn aligned(set: &MtsSet, index: usize, target: usize, critical: u64) -> Option<u64> {
    let start_by = |m: &HighSpeed| m.deadline.0 - set.rate.time(m.bits.into()).0;
    let region = set.epochs.region().0;
    let own = start_by(&set.high[target]);
    let boundary = (critical + own).div_ceil(region) * region;
    let message = set.high.get(index)?;
    let late = if index < target { region - 1 } else { 0 };
    let came = (boundary + late).checked_sub(start_by(message))?;
    Some(came - came.checked_sub(critical)? / message.period.0 * message.period.0)
}

/// Messages that were late on the bus, over adversarial arrivals.
fn late(traffic: &Traffic, random: &mut Random) -> usize {
    let set = &traffic.set;
    let mut bus = Bus::new(set.rate);
    let nodes: Vec<_> = (0..4).map(|_| bus.add_node(NodeSetup::default())).collect();
    let epoch = set.epochs.epoch().0;
    let critical = epoch * 8 + random.below(epoch);
    let mode = random.below(3);
    let target = random.below(set.high.len() as u64) as usize;
    let mut calendar: Vec<(u64, u64, usize)> = Vec::new();
    let high = set.high.iter().map(|m| (m.period.0, m.jitter.0));
    let low = set.low.iter().map(|m| (m.period.0, m.jitter.0));
    for (index, (period, jitter)) in high.chain(low).enumerate() {
        let mut came = match mode {
            0 => critical - jitter,
            1 => aligned(set, index, target, critical).unwrap_or(critical),
            _ => critical - jitter + random.below(period),
        };
        for _ in 0..random.between(4, 14) {
            let queued = came + if random.one_in(2) { jitter } else { random.below(jitter + 1) };
            calendar.push((queued.max(critical), came, index));
            came += period;
        }
    }
    let last = calendar.iter().map(|entry| entry.0).max().unwrap();
    calendar.extend((0..=last / epoch).map(|n| (n * epoch, 0, usize::MAX)));
    // An epoch's identifiers are for what is queued at its very beginning, too.
    calendar.sort_unstable_by_key(|entry| (entry.0, entry.2 != usize::MAX));
    bus.send(Nanos(critical - 1), nodes[3], traffic.other).unwrap();
    let mut waiting: BTreeMap<Ticket, Pending> = BTreeMap::new();
    let (mut missed, mut destroys) = (0, critical);
    for (now, came, index) in calendar.into_iter().filter(|entry| entry.0 >= critical) {
        let now = Nanos(now);
        if set.errors != Errors::NONE && now.0 >= destroys {
            let (bit, seen_by) = (random.below(130) as u32, random.between(1, 15));
            bus.arm(now, WireFault::Flip { bit, seen_by });
            destroys = now.0 + 4 * set.errors.interval.0;
        }
        if index == usize::MAX {
            bus.advance(now);
            missed += collect(&mut bus, &mut waiting);
            for (ticket, pending) in &waiting {
                let Some(start_by) = pending.start_by else { continue };
                let id = set.epochs.id(pending.code, start_by, now).unwrap();
                bus.rename(now, pending.node, *ticket, id.into());
            }
            continue;
        }
        let node = nodes[index % 4];
        let (frame, due, start_by) = match set.high.get(index) {
            Some(message) => {
                let due = came + message.deadline.0;
                let start_by = Nanos(due) - set.rate.time(message.bits.into());
                let id = set.epochs.id(index as u16, start_by, set.epochs.start(now)).unwrap();
                (traffic.high[index].with_id(id), due, Some(start_by))
            }
            None => {
                let message = &set.low[index - set.high.len()];
                let frame = traffic.low[index - set.high.len()].with_id(message.id);
                (frame, came + message.deadline.0, None)
            }
        };
        let ticket = bus.send(now, node, frame).unwrap();
        waiting.insert(ticket, Pending { due, start_by, code: index as u16, node });
    }
    while let Some(time) = bus.next_event() {
        bus.advance(time);
        missed += collect(&mut bus, &mut waiting);
    }
    missed + waiting.len()
}

fn collect(bus: &mut Bus, waiting: &mut BTreeMap<Ticket, Pending>) -> usize {
    let mut missed = 0;
    while let Some(event) = bus.poll() {
        let EventKind::Sent { ticket: Some(ticket), .. } = event.kind else { continue };
        let pending = waiting.remove(&ticket);
        missed += usize::from(pending.is_some_and(|pending| event.time.0 > pending.due));
    }
    missed
}

#[derive(Debug, Default)]
struct Tally {
    promised: u64,
    broken: u64,
    by_paper: u64,
    broken_by_paper: u64,
}

fn campaign(seeds: std::ops::Range<u64>, lives: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let traffic = traffic(&mut random);
        let set = &traffic.set;
        let verdicts: Result<Vec<_>, NoPromise> =
            (0..set.high.len()).map(|index| high_speed(set, index)).collect();
        let Ok(verdicts) = verdicts else { continue };
        let low = (0..set.low.len()).all(|index| low_speed(set, index).unwrap().is_ok());
        let ours = low && verdicts.iter().all(Option::is_none);
        let paper = low
            && set.high.iter().all(|m| m.jitter == Nanos::ZERO && m.deadline <= m.period)
            && (0..set.high.len()).all(|index| paper_accepts(set, index));
        if !ours && !paper {
            continue;
        }
        let missed = (0..lives).map(|_| late(&traffic, &mut random)).sum::<usize>() > 0;
        tally.promised += u64::from(ours);
        tally.broken += u64::from(ours && missed);
        tally.by_paper += u64::from(paper);
        tally.broken_by_paper += u64::from(paper && missed);
        assert!(!(ours && missed), "seed {seed}: {:?}", set);
    }
    tally
}

#[test]
fn what_is_promised_is_kept() {
    let tally = campaign(0..6_000, 3);
    assert!(tally.promised > 500, "{tally:?}");
}

#[test]
#[ignore = "minutes: 200,000 sets; prints how often the test of [EMERALDS 1998] is wrong"]
fn a_long_attack() {
    println!("{:?}", campaign(100_000..300_000, 3));
}

/// Four high-speed messages, found by the attack: D ≤ T, no jitter, 79 % of the bus.
fn counter_example() -> Traffic {
    let high = [(0, 272_986, 260_000), (3, 286_520, 260_000), (5, 631_561, 517_880)];
    let high = [high[0], high[1], high[2], (5, 687_452, 529_338)];
    let plain = |bytes: usize| CanFrame::data(StandardId::MAX, &[0x3c; 8][..bytes]).unwrap();
    let messages = high.map(|(bytes, period, deadline)| HighSpeed {
        bits: worst(false, bytes),
        period: Nanos(period),
        jitter: Nanos::ZERO,
        deadline: Nanos(deadline),
    });
    let other = CanFrame::data(non_real_time_id(0).unwrap(), &[0; 6]).unwrap();
    let set = MtsSet {
        rate: BitRate::new(1_000_000).unwrap(),
        epochs: Epochs::new(Nanos::from_micros(680), Nanos(529_338)).unwrap(),
        high: messages.to_vec(),
        low: Vec::new(),
        other: length(&other),
        clocks: Nanos::ZERO,
        renewing: Renewing::OnSignal { last: Nanos::ZERO },
        queued: Queued::default(),
        errors: Errors::NONE,
    };
    let high = high.iter().map(|(bytes, ..)| plain(*bytes as usize)).collect();
    Traffic { set, high, low: Vec::new(), other }
}

#[test]
fn the_test_of_the_paper_accepts_a_set_that_is_late() {
    let traffic = counter_example();
    let set = &traffic.set;
    assert!((0..4).all(|index| paper_accepts(set, index)));
    assert!((0..4).any(|index| high_speed(set, index).unwrap().is_some()));
    let mut random = Random::new(5);
    let missed: usize = (0..3_000).map(|_| late(&traffic, &mut random)).sum();
    assert!(missed > 0);
}

#[test]
fn deadlines_in_one_region_are_not_told_apart() {
    // A message of higher rank goes first for a whole region of 500 us: pure EDF would be in time.
    let message = |period: u64, deadline: u64| HighSpeed {
        bits: worst(false, 8),
        period: Nanos::from_micros(period),
        jitter: Nanos::ZERO,
        deadline: Nanos::from_micros(deadline),
    };
    let other = CanFrame::data(non_real_time_id(0).unwrap(), &[0; 8]).unwrap();
    let set = MtsSet {
        rate: BitRate::new(1_000_000).unwrap(),
        epochs: Epochs::new(Nanos::from_millis(4), Nanos::from_millis(12)).unwrap(),
        high: vec![message(145, 400), message(10_000, 980)],
        low: Vec::new(),
        other: length(&other),
        clocks: Nanos::ZERO,
        renewing: Renewing::OnSignal { last: Nanos::ZERO },
        queued: Queued::default(),
        errors: Errors::NONE,
    };
    assert_eq!(set.epochs.region(), Nanos(500_001));
    assert_eq!([0, 1].map(|index| high_speed(&set, index).unwrap().is_none()), [true, false]);
    let frame = CanFrame::data(StandardId::MAX, &[0x3c; 8]).unwrap();
    let traffic = Traffic { set, high: vec![frame; 2], low: Vec::new(), other };
    let mut random = Random::new(6);
    assert!((0..2_000).map(|_| late(&traffic, &mut random)).sum::<usize>() > 0);
}
