//! The meter of arrivals against α itself, window by window.

use diapason_abi::Nanos;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;
use diapason_random::Random;

/// Returns whether all windows that end with the last of `times` keep the contract.
fn keeps(contract: &Bucket, times: &[u64]) -> bool {
    let last = times[times.len() - 1];
    let windows = times.iter().enumerate();
    windows
        .map(|(first, at)| ((times.len() - first) as u64, last - at))
        .all(|(messages, length)| messages <= contract.most(Nanos(length)))
}

fn any_contract(random: &mut Random) -> Bucket {
    Bucket {
        burst: random.between(1, 6),
        messages: random.between(1, 9),
        per: Nanos(random.between(1, 40)),
        jitter: Nanos(random.below(2) * random.below(30)),
    }
}

#[test]
fn the_meter_says_what_every_window_says() {
    let (mut within, mut outside) = (0, 0);
    for life in 0..300 {
        let mut random = Random::stream(41, life);
        let contract = any_contract(&mut random);
        let mut meter = Meter::new(contract);
        let (mut now, mut taken) = (0, Vec::new());
        for _ in 0..80 {
            now += random.below(2) * random.below(3 * contract.per.0 / contract.messages + 2);
            taken.push(now);
            let keeps = keeps(&contract, &taken);
            assert_eq!(meter.admits(Nanos(now)), keeps, "{contract:?} {taken:?}");
            if keeps {
                within += 1;
            } else {
                // A message too many counts as not there.
                taken.pop();
                outside += 1;
            }
        }
        assert_eq!(meter.outside(), 80 - taken.len() as u64);
    }
    assert!(within > 5_000 && outside > 5_000, "{within} {outside}");
}

#[test]
fn a_meter_opens_at_the_first_time_at_which_it_admits() {
    let mut waited = 0;
    for life in 0..3_000 {
        let mut random = Random::stream(43, life);
        let contract = any_contract(&mut random);
        let mut meter = Meter::new(contract);
        let mut now = random.below(100);
        for _ in 0..20 {
            let _ = meter.admits(Nanos(now));
            let opens = meter.opens();
            assert!(opens >= Nanos(now), "{contract:?}");
            let admits = |at: Nanos| { meter }.admits(at);
            assert!(admits(opens), "{contract:?} {now} {opens:?}");
            if opens > Nanos(now) {
                waited += 1;
                assert!(!admits(opens - Nanos(1)), "{contract:?} {now} {opens:?}");
            }
            now += random.below(3) * random.below(contract.per.0 / contract.messages + 2);
        }
    }
    assert!(waited > 5_000, "{waited}");
}

#[test]
fn a_contract_without_messages_never_opens() {
    let never = Nanos(u64::MAX);
    let bucket = Bucket { burst: 1, messages: 0, per: Nanos(10), jitter: Nanos(0) };
    let mut meter = Meter::new(bucket);
    assert!(meter.admits(Nanos(5)));
    assert_eq!(meter.opens(), never);
    assert_eq!(Meter::new(Bucket { burst: 0, ..bucket }).opens(), never);
}

#[test]
fn a_clock_may_stop_go_back_and_begin_anew() {
    let mut meter = Meter::new(Bucket::periodic(Nanos(10)).with_burst(2));
    assert!(meter.admits(Nanos(100)) && meter.admits(Nanos(100)));
    assert!(!meter.admits(Nanos(100)) && !meter.admits(Nanos(50)) && !meter.admits(Nanos(109)));
    assert!(meter.admits(Nanos(110)));
    meter.restart();
    assert!(meter.admits(Nanos(3)) && meter.admits(Nanos(4)) && !meter.admits(Nanos(5)));
    assert_eq!(meter.outside(), 4);
}

#[test]
fn the_largest_numbers_do_no_harm() {
    let most = u64::MAX;
    for burst in [0, 1, most] {
        for (messages, per) in [(0, 1), (1, 0), (0, 0), (most, most), (most, 1), (1, most)] {
            for jitter in [0, most] {
                let (per, jitter) = (Nanos(per), Nanos(jitter));
                let mut meter = Meter::new(Bucket { burst, messages, per, jitter });
                let _ = [0, 1, most, most, 0].map(|at| (meter.admits(Nanos(at)), meter.opens()));
                assert!(meter.outside() <= 5);
            }
        }
    }
}

#[test]
fn many_at_once_are_counted_as_one_after_the_other() {
    let mut outside = 0;
    for life in 0..300 {
        let mut random = Random::stream(43, life);
        let contract = any_contract(&mut random);
        let (mut all, mut each) = (Meter::new(contract), Meter::new(contract));
        let mut now = 0;
        for _ in 0..60 {
            now += random.below(4 * contract.per.0);
            let messages = random.below(9);
            let refused = all.admit_all(Nanos(now), messages);
            let admitted = (0..messages).filter(|_| each.admits(Nanos(now))).count() as u64;
            assert_eq!(refused, messages - admitted);
            assert_eq!(all, each, "{contract:?}");
            outside += refused;
        }
    }
    assert!(outside > 1_000);
    // A contract of no time and one of no messages.
    let mut never = Meter::new(Bucket { messages: 0, ..Bucket::periodic(Nanos(0)) });
    assert_eq!(never.admit_all(Nanos(1), u64::MAX), 0);
    let mut full = Meter::new(Bucket { messages: 0, ..Bucket::periodic(Nanos(7)) });
    assert_eq!(full.admit_all(Nanos(1), u64::MAX), u64::MAX - 1);
}
