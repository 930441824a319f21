//! `tpipe` as a decision: the worked examples, every refusal with its reason, and pipes that come
//! and go.

use crate::interface::{MS, US, interface};
use diapason_abi::Nanos;
use diapason_abi::pipe::Envelope;
use diapason_pipe::size::Bucket;
use diapason_pipe::tuned::*;
use diapason_random::Random;

const SECOND: Nanos = Nanos::from_secs(1);

/// The periods that [USB 2023] prints, in whole milliseconds.
#[test]
fn little_s_law_to_the_digit() {
    let printed = |amount, rate| little(amount, rate, SECOND).0 / 1_000_000;
    assert_eq!(printed(128 * 8, 512_000), 2);
    assert_eq!(printed(4096 * 8, 2_250_000), 14);
    assert_eq!(printed(128, 2752), 46);
    assert_eq!(printed(128, 3073), 41);
    assert_eq!(little(1, 0, SECOND), Nanos::FOREVER);
}

/// `frames` of 16 bytes a second, a buffer of `slots`.
fn frames(frames: u64, slots: u64) -> Qos {
    Qos {
        latency: MS(50),
        tput: frames * 16 * 8 / 20,
        buffer: slots * 16,
        execution: US(400),
        burst: 1,
    }
}

type Five = PipeEndpoint<5>;

fn reason(qos: Qos) -> (WhyRefused, WouldFit) {
    let refused = Five::new(interface()).open(qos, &mut |_| true).unwrap_err();
    println!("{refused}");
    (refused.reason, refused.would_fit)
}

#[test]
fn a_pipe_gets_a_period_that_is_sound() {
    let mut endpoint = Five::new(interface());
    let pipe = endpoint.open(frames(2_000, 128), &mut |_| true).unwrap();
    let terms = endpoint.agreement().pipes[pipe].unwrap();
    println!("{}\n{terms:?}", terms.bill);
    // Little: 128 frames at 2,000 a second.
    assert_eq!((terms.budget, terms.little), (US(400), MS(64)));
    assert!(terms.period < terms.little && terms.period > MS(5), "{:?}", terms.period);
    assert!(terms.bill.total <= MS(50) && terms.bill.slots <= 128);
}

#[test]
fn each_refusal_has_its_reason() {
    let good = frames(1_000, 64);
    let small = Qos { buffer: 15, ..good };
    assert_eq!(reason(small).0, WhyRefused::SmallBuffer { buffer: 15, packet: 16 });
    let (why, instead) = reason(Qos { latency: US(900), tput: 115, ..good });
    assert!(
        matches!(why, WhyRefused::Latency { wanted, fixed } if wanted == US(900) && fixed > MS(2))
    );
    assert!(matches!(instead, WouldFit::Latency(latency) if latency > MS(2) && latency < MS(20)));
    let (why, instead) = reason(frames(20_000, 128));
    assert_eq!(why, WhyRefused::Device { wanted: 2_560_000, given: 2_250_000 });
    assert!(matches!(instead, WouldFit::Tput(bits) if bits > 60_000 && bits < 112_500));
    let (why, instead) = reason(frames(2_000, 3));
    assert!(matches!(why, WhyRefused::Overflow { slots: 3, needed } if needed > 3));
    assert!(matches!(instead, WouldFit::Buffer(bytes) if bytes > 48), "{instead:?}");
    assert_eq!(reason(Qos { burst: 0, ..good }).0, WhyRefused::Nothing);
    let mut empty = interface();
    empty.attributes.packet = (9, 8);
    let refused = Five::new(empty).open(good, &mut |_| true).unwrap_err();
    assert_eq!(refused.reason, WhyRefused::Nothing);
    assert!(matches!(
        reason(Qos { burst: 65, buffer: 4096, ..good }).0,
        WhyRefused::DeviceBuffer { holds: 64, .. }
    ));

    let mut endpoint = Five::new(interface());
    let refused = endpoint.open(good, &mut |_| false).unwrap_err();
    assert!(
        matches!(refused.reason, WhyRefused::Processor { thread: (budget, _) } if budget == US(400))
    );
    for pipe in 0..5 {
        assert_eq!(endpoint.open(good, &mut |_| true), Ok(pipe));
    }
    let sixth = endpoint.open(good, &mut |_| true).unwrap_err();
    assert_eq!(sixth.reason, WhyRefused::NoChannel { channels: 5 });
    assert!(endpoint.close(3) && !endpoint.close(3));
    assert_eq!(
        endpoint.renegotiate(3, good, &mut |_| true).unwrap_err().reason,
        WhyRefused::NoPipe
    );
    assert_eq!(endpoint.open(good, &mut |_| true), Ok(3));
}

/// Every wish of a hostile client is refused or given, soon.
#[test]
fn the_largest_and_the_smallest_wishes_are_decided_soon() {
    let most = u64::MAX;
    let mut random = Random::new(77);
    let mut extreme = |usual: u64| [0, 1, usual, usual * 1_000, most / 2, most][random.index(6)];
    for _ in 0..2_000 {
        let mut endpoint = Five::new(interface());
        for _ in 0..3 {
            let qos = Qos {
                latency: Nanos(extreme(20_000_000)),
                tput: extreme(10_000),
                buffer: extreme(2_048),
                execution: Nanos(extreme(400_000)),
                burst: extreme(4),
            };
            let _ = endpoint.open(qos, &mut |_| true);
        }
    }
}

#[test]
fn pipes_of_the_description_take_places_and_traffic() {
    let good = frames(1_000, 64);
    let standing = [(0, Bucket::per_second(3_200).with_burst(4)), (1, Bucket::per_second(400))];
    let mut alone = Five::new(interface());
    let mut beside = Five::beside(interface(), &standing);
    let bound = |endpoint: &mut Five| {
        let pipe = endpoint.open(good, &mut |_| true).unwrap();
        endpoint.agreement().pipes[pipe].unwrap().bill
    };
    let (alone, first) = (bound(&mut alone), bound(&mut beside));
    assert!(first.device > alone.device, "{} {}", first.device, alone.device);
    for _ in 1..3 {
        bound(&mut beside);
    }
    let refused = beside.open(good, &mut |_| true).unwrap_err();
    assert_eq!(refused.reason, WhyRefused::NoChannel { channels: 5 });
    // 2.25 Mbit/s are 17,578 frames a second, of which 3,600 are taken.
    let wanted = |rate| Five::beside(interface(), &standing).open(rate, &mut |_| true).err();
    let refused = wanted(frames(14_000, 256)).unwrap().reason;
    assert!(
        matches!(refused, WhyRefused::Device { wanted: 2_252_800, given: 2_250_000 }),
        "{refused}"
    );
    // A pipe from a channel that has one adds nothing, and gets what comes there.
    let mut shared = Five::beside(interface(), &standing);
    let pipe = shared.open_on(Route::From(0), good, &mut |_| true).unwrap();
    let same = shared.agreement().pipes[pipe].unwrap().bill;
    assert!(same.device < first.device && same.slots > first.slots, "{same}");
    let refused = wanted(Qos { buffer: 257 * 16, ..good }).unwrap().reason;
    assert_eq!(refused, WhyRefused::LargeBuffer { buffer: 4_112, most: 4_096 });
}

/// The envelope of a description is the most that is given. Within it, the answers are those of an
/// endpoint without one.
#[test]
fn nothing_beyond_its_envelope_is_given() {
    let good = frames(1_000, 64);
    let declared = Envelope {
        channels: 0b100,
        to: 0,
        rate: 1_000,
        burst: good.burst,
        budget: good.execution,
        period: good.execution,
    };
    let open = |envelope: &Envelope, channel, qos| {
        let mut endpoint = Five::new(interface());
        let opened = endpoint.open_within(envelope, (Route::From(channel), qos), &mut |_| true);
        opened.map(|pipe| (endpoint.agreement().pipes[pipe].unwrap(), endpoint))
    };
    let (terms, mut endpoint) = open(&declared, 2, good).unwrap();
    let mut free = Five::new(interface());
    free.open_on(Route::From(2), good, &mut |_| true).unwrap();
    assert_eq!(Some(terms), free.agreement().pipes[0]);

    let why = |envelope: &Envelope, channel, qos| {
        let refused = open(envelope, channel, qos).err().unwrap();
        println!("{refused}");
        (refused.reason, refused.would_fit)
    };
    assert_eq!(why(&declared, 1, good).0, WhyRefused::Undeclared { channel: 1 });
    let (reason, instead) = why(&declared, 2, Qos { tput: good.tput + 1, ..good });
    assert_eq!(reason, WhyRefused::Rate { wanted: 1_001, declared: 1_000 });
    assert!(matches!(instead, WouldFit::Tput(bits) if bits <= good.tput), "{instead:?}");
    let more = Qos { burst: good.burst + 1, ..good };
    let expected = WhyRefused::Burst { wanted: good.burst + 1, declared: good.burst };
    assert_eq!(why(&declared, 2, more).0, expected);
    let long = Qos { execution: good.execution + Nanos(1), ..good };
    assert!(matches!(
        why(&declared, 2, long).0, WhyRefused::Budget { declared, .. } if declared == US(400)
    ));
    // With a longer period than its terms have, its latency cannot be kept.
    let slow = Envelope { period: terms.period + MS(2), ..declared };
    assert!(matches!(
        why(&slow, 2, good).0,
        WhyRefused::Latency { .. } | WhyRefused::Overflow { .. }
    ));
    // A change must stay within it, too.
    let refused = endpoint.renegotiate(0, more, &mut |_| true).unwrap_err();
    assert_eq!((refused.reason, endpoint.qos(0)), (expected, Some(good)));
}

fn same(a: &Five, b: &Five) -> bool {
    a.agreement() == b.agreement() && (0..5).all(|pipe| a.qos(pipe) == b.qos(pipe))
}

fn any_qos(random: &mut Random) -> Qos {
    let slots = random.between(1, 200);
    Qos {
        latency: US(random.between(500, 60_000)),
        tput: random.between(1, 40_000),
        buffer: slots * 16 + random.below(16),
        execution: US(random.between(10, 2_000)),
        burst: random.between(1, 6),
    }
}

/// Returns whether one core has room for all of it: three quarters of the core.
fn fits(agreement: &Agreement<5>) -> bool {
    let pipes = agreement.pipes.iter().flatten();
    let load = pipes.map(|terms| terms.budget.0 * 1_000_000 / terms.period.0.max(1));
    load.sum::<u64>() + u64::from(agreement.share) <= 750_000
}

#[test]
fn pipes_come_and_go_and_keep_what_they_were_promised() {
    let (mut opened, mut refused, mut suggested) = (0, 0, 0);
    for life in 0..8 {
        let mut random = Random::stream(7, life);
        let mut endpoint = Five::new(interface());
        for _ in 0..12 {
            let before = endpoint.clone();
            let (pipe, qos) = (random.index(5), any_qos(&mut random));
            let open = random.one_in(2);
            let answer = if open {
                endpoint.open(qos, &mut fits)
            } else if random.one_in(2) {
                endpoint.renegotiate(pipe, qos, &mut fits).map(|()| pipe)
            } else {
                endpoint.close(pipe);
                continue;
            };
            match answer {
                Ok(pipe) => {
                    opened += 1;
                    assert_eq!(endpoint.qos(pipe), Some(qos));
                }
                Err(why) => {
                    refused += 1;
                    assert!(same(&endpoint, &before), "changed: {why}");
                    suggested += u32::from(suggestion_is_taken(before, why, qos, open, pipe));
                }
            }
            kept(&endpoint);
        }
        for pipe in 0..5 {
            let was_open = endpoint.qos(pipe).is_some();
            assert_eq!(endpoint.close(pipe), was_open);
        }
        assert!(endpoint.agreement().pipes.iter().all(Option::is_none));
    }
    println!("{opened} opened, {refused} refused, {suggested} suggestions taken");
    assert!(opened > 15 && suggested > 10, "{opened} {suggested}");
}

/// Every pipe has what it asked for.
fn kept(endpoint: &Five) {
    assert!(fits(endpoint.agreement()));
    for (pipe, terms) in endpoint.agreement().pipes.iter().enumerate() {
        let Some((terms, qos)) = terms.zip(endpoint.qos(pipe)) else { continue };
        assert!(terms.bill.total <= qos.latency && terms.bill.slots <= qos.buffer / 16);
        assert!(terms.period <= terms.little.max(terms.budget) && terms.budget == qos.execution);
    }
}

/// Checks that a suggested wish is granted. Returns whether there was a suggestion.
fn suggestion_is_taken(
    mut endpoint: Five,
    why: RefusedPipe,
    qos: Qos,
    open: bool,
    pipe: usize,
) -> bool {
    let grown = |part: u64, of: u64, value: u64| {
        (u128::from(value) * u128::from(part) / u128::from(of)) as u64
    };
    let other = match why.would_fit {
        WouldFit::Latency(latency) => {
            // As many bits more as gives no higher rate.
            Qos { latency, tput: grown(latency.0, qos.latency.0, qos.tput).max(1), ..qos }
        }
        WouldFit::Buffer(buffer) => {
            let slots = (qos.buffer / 16).max(1);
            let execution = Nanos(grown(buffer / 16, slots, qos.execution.0));
            Qos { buffer, execution, ..qos }
        }
        WouldFit::Tput(tput) => Qos { tput, ..qos },
        WouldFit::Nothing => return false,
    };
    let answer = if open {
        endpoint.open(other, &mut fits).map(|_| ())
    } else {
        endpoint.renegotiate(pipe, other, &mut fits)
    };
    assert_eq!(answer, Ok(()), "{why}");
    true
}
