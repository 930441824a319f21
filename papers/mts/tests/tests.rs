//! The printed tests beside the sound ones and the simulated bus.

use diapason_abi::Nanos;
use diapason_mts::late::{life, real};
use diapason_mts::printed::{self, Extra, MtsVerdict};
use diapason_mts::sound;
use diapason_mts::workload::{FrameLengths, Workload, WorkloadKind};
use diapason_random::Random;

fn workload(high: usize, number: u64) -> Workload {
    Workload::random(WorkloadKind::usual(high), FrameLengths::Stuffed, 5, number)
}

#[test]
fn what_is_sound_is_also_printed() {
    // Without renewals, which the printed tests count as less than they are.
    let none = Extra { update_bits: 0, ..Extra::USUAL };
    let (mut sounds, mut prints) = (0, 0);
    for number in 0..300 {
        let workload = workload(11, number);
        let is_sound = sound::mts(&workload) == MtsVerdict::Feasible;
        let is_printed = printed::mts(&workload, none) == MtsVerdict::Feasible;
        assert!(!is_sound || is_printed, "{number}");
        assert!(!sound::dm(&workload) || printed::dm(&workload, none), "{number}");
        sounds += u64::from(is_sound);
        prints += u64::from(is_printed);
    }
    assert!(sounds > 50 && prints > sounds, "{sounds} of {prints}");
}

#[test]
fn edf_fits_whatever_deadline_monotonic_does() {
    for number in 0..300 {
        let workload = workload(7, number);
        assert!(!sound::dm(&workload) || printed::ed(&workload, Extra::USUAL), "{number}");
    }
}

/// Workloads that are promised live on the bus with random phases and clocks off by up to 20 us.
/// `DIAPASON_MTS_WORKLOADS` says how many, and `DIAPASON_MTS_SEED` which.
#[test]
fn promised_workloads_are_in_time_on_the_bus() {
    let (wanted, seed) =
        (setting("DIAPASON_MTS_WORKLOADS", 1_000), setting("DIAPASON_MTS_SEED", 0));
    let (mut lived, mut sent, mut tried) = (0, 0, 0);
    // Seeds are far apart: one needs fewer numbers than this.
    for number in (seed << 40).. {
        if lived == wanted {
            break;
        }
        tried += 1;
        let mut random = Random::new(number);
        let high = random.between(3, 12) as usize;
        let workload = workload(high, number);
        let Some(set) = real(&workload, Nanos(20_000)) else { continue };
        let holds = set.spare_ppm().ok().flatten().is_some_and(|spare| spare >= 0);
        if !holds {
            continue;
        }
        let outcome = life(&workload, &set, 10_000_000, &mut random).unwrap();
        assert!(outcome.late.is_empty(), "{number}: {outcome:?}");
        assert_eq!((outcome.inverted, outcome.missed, outcome.beyond), (0, 0, 0), "{number}");
        assert!(outcome.told > 0, "{number}");
        (lived, sent) = (lived + 1, sent + outcome.sent);
    }
    println!("{lived} of {tried} workloads are promised, and sent {sent} messages in time");
    assert!(sent > 40 * wanted, "{sent}");
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn the_avionics_workload_fits_at_any_usual_rate() {
    let workload = Workload::avionics(FrameLengths::Stuffed, 4_000_000);
    assert_eq!((workload.high.len(), workload.low.len()), (6, 11));
    assert!(sound::dm(&workload) && printed::dm(&workload, Extra::USUAL));
    assert_eq!(sound::mts(&workload), MtsVerdict::Feasible);
    assert!(printed::ed(&workload, Extra::USUAL));
    // Fifty times faster the bus is full.
    let faster = workload.faster(50_000);
    assert!(!sound::dm(&faster) && sound::mts(&faster) != MtsVerdict::Feasible);
}
