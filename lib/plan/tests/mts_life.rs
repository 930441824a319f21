//! The units of `examples/can-mts.toml` on the simulated bus, with the identifiers and the epochs
//! of the plan: they keep their clocks by the message `time`, and renew their identifiers.

use diapason_abi::Nanos;
use diapason_can::mts::life::{
    Frames, LifeClock, LifeMessage, LifeOutcome, LifeStream, LifeTime, LifeUnit, live_on_bus_time,
};
use diapason_can::mts::{
    Epochs, HighSpeed, MtsSet, Queued, Renewing, TimeBase, TimeTerms, UPDATE_BITS, longest_renewal,
    low_speed, low_speed_id,
};
use diapason_can::response::{AnalysedMessage, Errors};
use diapason_can::wire::worst;
use diapason_can::{BitRate, CanFrame, StandardId};
use diapason_plan::Plan;
use diapason_random::Random;
use diapason_system::{CanClass, CanMessage, CanSender, parse};

const EXAMPLE: &str = include_str!("../../../examples/can-mts.toml");
/// The unit that sends the time, and others, by their places in [`UNITS`].
const UNITS: [&str; 4] = ["control-unit", "motor-left", "motor-right", "frame-unit"];
const MASTER: usize = 0;

/// The bus of the example as its plan has it.
#[derive(Clone)]
struct Drive {
    set: MtsSet,
    frames: Frames,
    terms: TimeTerms,
    /// Each stream, its unit, and the shortest time between two of its messages.
    streams: Vec<(LifeStream, usize, u64)>,
    /// A unit sends its other frame all the time from here to there.
    babbles: Option<(u64, u64)>,
}

/// Returns the bus with units that renew together, or each by its clock within 60 us.
fn drives() -> [Drive; 2] {
    let by_clock = EXAMPLE.replace("time =", "renewal = \"60us\"\ntime =");
    [drive(EXAMPLE), drive(&by_clock)]
}

fn drive(text: &str) -> Drive {
    let system = parse("f", text).unwrap_or_else(|found| panic!("{}", found.plain()));
    let plan = Plan::of(&system);
    let (network, plan) = (&system.cans[0], &plan.cans[0]);
    let all = || network.messages.iter().zip(&plan.messages);
    let of = |class| {
        let of_class = all().filter(|(_, it)| it.class == class);
        let mut found: Vec<&CanMessage> = of_class.map(|(message, _)| message).collect();
        found.sort_by_key(|message| message.deadline_ns);
        found
    };
    let (high, low) = (of(CanClass::High), of(CanClass::Low));
    assert_eq!((low[0].name.as_str(), high.len(), low.len()), ("time", 10, 11));
    let content = |message: &&CanMessage| {
        CanFrame::data(StandardId::MAX, &[0; 8][..usize::from(message.bytes)]).unwrap()
    };
    let frames = Frames {
        high: high.iter().map(content).collect(),
        low: low.iter().map(content).collect(),
        other: Vec::new(),
    };
    let found = plan.clocks.as_ref().unwrap();
    let (rate, clocks) = (BitRate::new(network.rate).unwrap(), found.counted);
    let speedy = |message: &&CanMessage| HighSpeed {
        bits: worst(false, message.bytes.into()),
        period: Nanos(message.period_ns.unwrap()),
        jitter: Nanos::ZERO,
        deadline: Nanos(message.deadline_ns.unwrap()),
    };
    let slow = |(rank, message): (u16, &&CanMessage)| {
        let (id, period) = (low_speed_id(rank).unwrap(), Nanos(message.period_ns.unwrap()));
        AnalysedMessage::new(id, message.bytes.into(), period)
    };
    let last = longest_renewal(rate, worst(false, 8) + UPDATE_BITS / 2, clocks);
    let by_clock = |within| Renewing::ByClock { within: Nanos(within), repeating: 0 };
    let renewing = network.renewal_ns.map_or(Renewing::OnSignal { last }, by_clock);
    let set = MtsSet {
        rate,
        epochs: Epochs::new(Nanos(1), Nanos(1)).unwrap(),
        high: high.iter().map(speedy).collect(),
        low: (0..).zip(&low).map(slow).collect(),
        other: worst(false, 0),
        clocks,
        queued: Queued::default(),
        errors: Errors::NONE,
        renewing,
    };
    let (set, _) = set.best_epoch().unwrap();
    assert_eq!(set.epochs, plan.epochs.as_ref().unwrap().epochs, "they are the plan's");
    let terms = TimeTerms::new(TimeBase {
        interval: Nanos::from_micros(10_001),
        late: low_speed(&set, 0).unwrap().unwrap(),
        losses: 1,
        drift_ppm: 100,
        stamp: Nanos::from_micros(5),
        grain: Nanos(100),
    })
    .unwrap();
    assert_eq!(found.time.as_ref(), Some(&terms), "it follows from the message of the plan");
    assert!(terms.clocks() <= clocks && clocks - terms.clocks() < Nanos::from_micros(1));
    let unit = |message: &CanMessage| match &message.sender {
        CanSender::Node(name) => UNITS.iter().position(|unit| unit == name).unwrap(),
        CanSender::Process(_) => panic!("a process"),
    };
    let high = (0..).zip(&high).map(|(code, it)| (LifeStream::High(code), it));
    let low = (0..).zip(&low).skip(1).map(|(rank, it)| (LifeStream::Low(rank), it));
    let streams = high.chain(low).map(|(of, it)| (of, unit(it), it.period_ns.unwrap()));
    let streams = streams.collect();
    Drive { set, frames, terms, streams, babbles: None }
}

/// The faults of one unit.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// It loses one of so many frames of the time, and one of so many that tell to renew.
    deaf: u64,
    off: Option<(Nanos, Nanos)>,
    joins: Nanos,
}

impl Drive {
    /// Lets all messages come from `from` to `until`, some at once, some anyhow.
    fn live(&self, seed: u64, (from, until): (u64, u64), faults: [Faults; 4]) -> LifeOutcome {
        let mut random = Random::new(seed);
        let together = random.one_in(2);
        let mut comings = Vec::new();
        for (which, node, period) in &self.streams {
            let mut came = from + if together { 0 } else { random.below(*period) };
            while came < until {
                let (which, node, came_at) = (*which, *node, Nanos(came));
                comings.push(LifeMessage { came: came_at, queued: came_at, which, node });
                came += period;
            }
        }
        let babble = self.babbles.map_or(0..0, |(from, until)| from..until);
        comings.extend(babble.step_by(100_000).map(|at| {
            let (came, which) = (Nanos(at), LifeStream::Other(0));
            LifeMessage { came, queued: came, which, node: 3 }
        }));
        let clock = |(node, it): (usize, &Faults)| LifeClock {
            offset: random.below(10_000_000_000),
            ppm: [100, -100, 0][random.below(3) as usize],
            candidate: (node == MASTER).then_some(0),
            deaf: it.deaf,
            off: it.off,
        };
        let clocks = faults.iter().enumerate().map(clock).collect();
        let unit = |it: &Faults| LifeUnit { offset: 0, joins: it.joins, deaf: it.deaf };
        let units: Vec<LifeUnit> = faults.iter().map(unit).collect();
        let time = LifeTime { terms: self.terms, clocks };
        let draw = &mut |bound| random.below(bound);
        live_on_bus_time(&self.set, &self.frames, (&units, &time), &comings, draw).unwrap()
    }

    /// By then each unit that hears the master knows the time.
    fn ready(&self) -> u64 {
        self.terms.silence().0 + 5 * self.terms.base().interval.0
    }
}

/// Nothing is sent by an identifier that is older than is proved, nor without the time.
fn orderly(outcome: &LifeOutcome) -> bool {
    let LifeOutcome { inverted, beyond, unknown, stale, .. } = *outcome;
    (inverted, beyond, unknown, stale) == (0, 0, 0, 0) && outcome.sent > 100
}

#[test]
fn the_example_is_in_time_on_the_bus() {
    for (drive, seed) in drives().iter().flat_map(|drive| (0..40).map(move |it| (drive, it))) {
        let start = drive.ready();
        let outcome = drive.live(seed, (start, start + 100_000_000), [Faults::default(); 4]);
        assert!(orderly(&outcome) && outcome.late.is_empty(), "seed {seed}: {outcome:?}");
        assert_eq!((outcome.lost, outcome.missed), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_unit_that_loses_frames_is_reset_or_joins_late_delays_no_other() {
    let (mut lost, mut missed) = (0, 0);
    for (drive, seed) in drives().iter().flat_map(|drive| (0..40).map(move |it| (drive, it))) {
        let start = drive.ready();
        let end = start + 200_000_000;
        let mut faults = [Faults::default(); 4];
        faults[1].deaf = 2;
        let off = start + 20_000_000 + seed * 1_000_003;
        faults[2].off = Some((Nanos(off), Nanos(off + 30_000_000)));
        faults[3].joins = Nanos(start + 40_000_000);
        let outcome = drive.live(seed, (start, end), faults);
        let others = outcome.late.iter().filter(|(node, _)| *node == MASTER).count();
        assert!(orderly(&outcome) && others == 0, "seed {seed}: {outcome:?}");
        (lost, missed) = (lost + outcome.lost, missed + outcome.missed);
    }
    assert!(lost > 10 && missed > 100, "{lost} {missed}");
}

/// A unit that babbles leaves the others no bit of the bus. Once it ends, all is as before.
#[test]
fn after_a_unit_has_babbled_all_is_as_before() {
    for (drive, seed) in drives().iter().flat_map(|drive| (0..20).map(move |it| (drive, it))) {
        let urgent = CanFrame::data(StandardId::ZERO, &[0; 8]).unwrap();
        let mut drive = Drive {
            frames: Frames { other: vec![urgent], ..drive.frames.clone() },
            ..drive.clone()
        };
        let start = drive.ready();
        let babbles = (start + 10_000_000, start + 30_000_000 + 1_000_000 * seed);
        drive.babbles = Some(babbles);
        let whole = drive.live(seed, (start, babbles.1 + start), [Faults::default(); 4]);
        assert!(!whole.late.is_empty(), "seed {seed}: nobody is late");
        let settled = babbles.1 + start;
        let after = drive.live(seed, (settled, settled + 50_000_000), [Faults::default(); 4]);
        // The frame of the time that had to wait for the end.
        let time = |it: &(usize, LifeStream)| *it == (MASTER, LifeStream::Low(0));
        assert!(after.late.iter().all(time) && after.late.len() < 3, "seed {seed}: {after:?}");
        assert!(after.sent > 100, "seed {seed}: {after:?}");
    }
}

#[test]
fn after_a_reset_of_the_unit_that_sends_the_time_all_is_as_before() {
    for (drive, seed) in drives().iter().flat_map(|drive| (0..20).map(move |it| (drive, it))) {
        let (start, off) = (drive.ready(), drive.ready() + 50_000_000 + seed * 777_777);
        let on = off + 1_000_000 + 5_000_000 * seed;
        let mut faults = [Faults::default(); 4];
        faults[MASTER].off = Some((Nanos(off), Nanos(on)));
        let whole = drive.live(seed, (start, on + start + 50_000_000), faults);
        assert!(orderly(&whole) && whole.lost == 3, "seed {seed}: {whole:?}");
        let after = drive.live(seed, (on + start, on + start + 50_000_000), faults);
        assert!(orderly(&after) && after.late.is_empty(), "seed {seed}: {after:?}");
    }
}
