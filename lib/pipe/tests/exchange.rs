//! Messages about pipes come out as they went in, and messages that make no sense do not come out
//! at all.

use diapason_abi::Nanos;
use diapason_pipe::bill::{BillRefusal, What};
use diapason_pipe::tuned::*;
use diapason_random::Random;

fn any(random: &mut Random) -> u64 {
    let bits = random.between(0, 64);
    if bits == 64 { random.bits() } else { random.below(1 << bits) }
}

fn any_request(random: &mut Random) -> PipeRequest {
    let qos = Qos {
        latency: Nanos(any(random)),
        tput: any(random),
        buffer: any(random),
        execution: Nanos(any(random)),
        burst: any(random),
    };
    let mut channel = || random.below(256) as u8;
    let routes = [Route::From(channel()), Route::To(channel()), {
        let from = channel();
        Route::Through(from, channel())
    }];
    let wanted = match random.below(3) {
        0 => PipeCommand::Open(routes[random.index(3)], qos),
        1 => PipeCommand::Change(qos),
        _ => PipeCommand::Close,
    };
    PipeRequest { token: any(random) as u32, wanted }
}

/// Returns one of each reason, with numbers by chance.
fn reasons(random: &mut Random) -> Vec<WhyRefused> {
    let (a, b) = (any(random), any(random));
    let (x, y) = (a as u32, b as u32);
    let (own, channels) = (a as usize, b as usize);
    let mut all = vec![
        WhyRefused::NoChannel { channels: x },
        WhyRefused::NoPipe,
        WhyRefused::AlreadyOpen,
        WhyRefused::Undeclared { channel: 3 },
        WhyRefused::Rate { wanted: 3_201, declared: 3_200 },
        WhyRefused::Burst { wanted: 9, declared: 8 },
        WhyRefused::Budget { wanted: Nanos::from_millis(8), declared: Nanos::from_micros(400) },
        WhyRefused::NoDevice,
        WhyRefused::NoSuchChannel { channel: x, channels: y },
        WhyRefused::Nothing,
        WhyRefused::SmallBuffer { buffer: a, packet: b },
        WhyRefused::LargeBuffer { buffer: a, most: b },
        WhyRefused::Device { wanted: a, given: b },
        WhyRefused::Latency { wanted: Nanos(a), fixed: Nanos(b) },
        WhyRefused::Overflow { slots: a, needed: b },
        WhyRefused::DeviceBuffer { holds: a, needed: b },
        WhyRefused::Processor { thread: (Nanos(a), Nanos(b)) },
    ];
    let mut refusals = vec![
        BillRefusal::NoChannel { own, channels },
        BillRefusal::NoTransfers,
        BillRefusal::NoContract,
        BillRefusal::TooFewQueued { queued: a, needed: b },
        BillRefusal::DeviceBuffer { holds: a, needed: b },
    ];
    for what in What::ALL {
        refusals.push(BillRefusal::TooSlow { what, wanted: a, given: b });
        refusals.push(BillRefusal::Endless { what, beyond: Nanos(a) });
    }
    all.extend(refusals.into_iter().map(WhyRefused::Stage));
    all
}

fn any_granted(random: &mut Random) -> Granted {
    let mut time = || Nanos(any(random));
    Granted {
        budget: time(),
        period: time(),
        bound: time(),
        least: time(),
        little: time(),
        equation_nine: time(),
        taken: time(),
        slots: time().0 as u16,
    }
}

#[test]
fn what_is_said_is_heard() {
    let mut random = Random::new(19);
    for _ in 0..2_000 {
        let request = any_request(&mut random);
        assert_eq!(PipeRequest::parse(&request.bytes()), Some(request));
        let token = any(&mut random) as u32;
        let mut outcomes =
            vec![RequestOutcome::Closed, RequestOutcome::Granted(any_granted(&mut random))];
        for reason in reasons(&mut random) {
            let fits = any(&mut random);
            let would_fit = match random.below(4) {
                0 => WouldFit::Nothing,
                1 => WouldFit::Latency(Nanos(fits)),
                2 => WouldFit::Buffer(fits),
                _ => WouldFit::Tput(fits),
            };
            let pipe = random.index(256);
            outcomes.push(RequestOutcome::Refused(RefusedPipe { pipe, reason, would_fit }));
        }
        for outcome in outcomes {
            let answer = PipeAnswer { token, outcome };
            assert_eq!(PipeAnswer::parse(&answer.bytes()), Some(answer));
        }
    }
}

#[test]
fn any_bytes_are_a_message_or_none() {
    let mut random = Random::new(20);
    let (mut requests, mut answers) = (0, 0);
    for _ in 0..200_000 {
        let mut bytes = [0; ANSWER_BYTES];
        bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
        // Codes that may exist.
        (4..8).for_each(|at| bytes[at] = random.below(3) as u8 * random.below(90) as u8);
        requests += u32::from(PipeRequest::parse(&bytes[..REQUEST_BYTES]).is_some());
        answers += u32::from(PipeAnswer::parse(&bytes).is_some());
        let cut = random.index(ANSWER_BYTES);
        assert_eq!(PipeAnswer::parse(&bytes[..cut]), None);
        assert!(cut == REQUEST_BYTES || PipeRequest::parse(&bytes[..cut]).is_none());
    }
    assert!(requests > 1_000 && answers > 1_000, "{requests} {answers}");
}
