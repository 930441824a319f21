//! Reports go into words and come out of them as they were.

use super::*;
use diapason_random::Random;

fn any(random: &mut Random) -> Measurement {
    let mut time = || Nanos(random.bits());
    let (a, b, c, d) = (time(), time(), time(), time());
    let small = |word: Nanos| word.0 as u32;
    let (channel, place) = (a.0 as u8, b.0 as u8);
    match c.0 % 17 {
        16 => any_of_machine([a.0, b.0, c.0, d.0]),
        0 => Measurement::Pipe(PipeReport {
            to_device: d.0 & 1 == 1,
            channel,
            messages: a.0,
            lost: small(a),
            outside: small(b),
            peak: small(c),
            inexact: small(d),
            reading: a,
            moving: b,
            whole: c,
            taking: d,
            distance: b.0 ^ c.0,
        }),
        1 => {
            let counts = [small(a); 16];
            let part = b.0 as u8 % PARTS as u8;
            Measurement::Delays(PipeDelays { to_device: d.0 & 1 == 1, channel, part, counts })
        }
        2 => Measurement::Chain(ChainReport {
            source: place,
            messages: a.0,
            lost: small(b),
            before: small(c),
            replaced: c.0,
            whole: d,
            reached: [a, b, c, d],
        }),
        3 => Measurement::Tuned(TunedReport {
            place,
            channel,
            messages: a.0,
            lost: b.0,
            overruns: small(a),
            outside: small(b),
            outages: small(c),
            inexact: small(d),
            peak: small(b),
            slots: small(a),
            longest: c,
            bound: d,
        }),
        13 | 14 => any_of_can(c.0 % 17, [a.0, b.0, c.0, d.0]),
        12 => Measurement::State(StateReport {
            number: place,
            overtaken: a.0,
            writes: c.0,
            early: b.0,
        }),
        7 => any_cost([a, b, c, d].map(small)),
        4..=6 | 9 => any_of_usb(c.0 % 17, [a.0, b.0, c.0, d.0]),
        10 | 11 | 15 => any_of_frames(c.0 % 17, [a.0, b.0, c.0, d.0]),
        _ => Measurement::Written(WrittenReport {
            place,
            channel,
            through: a.0,
            lost: b.0,
            outages: c.0,
            taken: (a, b),
            whole: (c, d),
        }),
    }
}

fn any_of_frames(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
    let number = a as u8;
    if kind == 10 {
        return Measurement::Frames(FrameReport {
            offered: a,
            passed: b,
            outside: c,
            peak: d as u32,
            longest: Nanos(a),
            slowest: b,
            sent: c,
            foreign: d,
            link: c as u32,
            ..FrameReport::new(FrameEnd::Program, number)
        });
    }
    if kind == 15 {
        let common = (d & 1 == 0).then_some(Nanos(a));
        let known = (c & 1 == 0).then_some(Nanos(b));
        let (begun, without, unsent) = (Nanos(a ^ b), a ^ c, a ^ d);
        return Measurement::Time(TimeReport {
            common,
            grandmaster: b,
            unstamped: c,
            lost: d,
            known,
            without,
            unsent,
            ..TimeReport::new(number, begun)
        });
    }
    let (end, part, counts) = (FrameEnd::Server, (d & 1) as u8, [a as u32; 16]);
    Measurement::Discards(DiscardReport { end, number, part, counts })
}

fn any_of_can(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
    match kind {
        13 => Measurement::Can(CanReport::of(d as u16, [a; 8])),
        _ => Measurement::Heard(HeardReport::of(d as u16, [a, b, c, d, a, b, 0, 0])),
    }
}

fn any_cost([a, b, c, d]: [u32; 4]) -> Measurement {
    Measurement::Cost(CostReport {
        is_part: d & 1 == 1,
        median: a,
        max: b,
        runs: c,
        expensive: [d, a, b],
        ..CostReport::named("an operation with a name of many words, some of them long")
    })
}

fn any_of_machine([a, b, c, d]: [u64; 4]) -> Measurement {
    let (count, late) = (b as u32, Nanos(c));
    Measurement::Machine(match d % 6 {
        0 => {
            let (emulated, hybrid) = (b & 1 == 1, b & 2 == 2);
            MachineReport::Processor { name: [a as u8; PROCESSOR_BYTES], emulated, hybrid }
        }
        4 => {
            let (alone, beside) = (Nanos(a), Nanos(d));
            MachineReport::Beside { cores: a as u32, rings: count, ring: late, alone, beside }
        }
        5 => MachineReport::Stress { read: a, updated: b, wrested: c },
        1 => MachineReport::Gaps { measured: Nanos(a), count, longest: late, apart: Nanos(d) },
        2 => MachineReport::Timers { count, late },
        _ => MachineReport::Device { count, late, read: Nanos(d) },
    })
}

fn any_of_usb(kind: u64, [a, b, c, d]: [u64; 4]) -> Measurement {
    let (number, odd) = (b as u8, d & 1 == 1);
    match kind {
        4 => Measurement::Device(DeviceReport {
            connector: (a as u8).max(1),
            route: b as u32,
            identity: (c as u16, d as u16),
            fate: [Fate::Works, Fate::Failed, Fate::Dead][(d % 3) as usize],
        }),
        9 => {
            let step = [NetworkStep::Enumerate, NetworkStep::Stranger][(d % 2) as usize];
            Measurement::Network(NetworkReport { step, port: number, peer: a })
        }
        5 => Measurement::Link(LinkReport { number, here: odd, found: a, came: b, sent: c }),
        8 => {
            let step = [ModeStep::Stops, ModeStep::Starts, ModeStep::Runs, ModeStep::Without];
            let (step, taken, begun) = (step[(a % 4) as usize], Nanos(c), Nanos(d));
            Measurement::Mode(ModeReport { mode: number, step, wanted: a as u8, taken, begun })
        }
        _ => {
            let (whole, broken, missed, period, late) = (a, b, c, Nanos(d), Nanos(a ^ c));
            Measurement::Camera(CameraReport {
                stream: odd,
                number,
                whole,
                broken,
                missed,
                breaks: b ^ d,
                period,
                late,
            })
        }
    }
}

#[test]
fn what_is_reported_is_read() {
    let mut random = Random::new(7);
    for _ in 0..10_000 {
        let report = Reported { at: Nanos(random.bits()), said: any(&mut random) };
        assert_eq!(Reported::of(&report.words()), Some(report));
    }
}

#[test]
fn other_words_are_no_report() {
    let words = Reported { at: Nanos(1), said: Measurement::Chain(ChainReport::default()) }.words();
    assert_eq!(Reported::of(&words[..9]), None);
    for what in
        [0, 6, 2 << 8 | 9, 1 << 32, 2 << 8 | 1, 1 << 24 | 3, u64::MAX, (PARTS as u64) << 24 | 2]
            .into_iter()
            .chain([
                1 << 16 | 23,
                6 << 8 | 23,
                1 << 16 | 11,
                3 << 8 | 20,
                3 << 8 | 21,
                1 << 24 | 20,
                2 << 24 | 21,
            ])
    {
        let mut words = words;
        words[1] = what;
        assert_eq!(Reported::of(&words), None, "{what:#x}");
    }
}
