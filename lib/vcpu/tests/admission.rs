//! The closed forms: their numbers against integers of any length, their refusals against
//! themselves.

use diapason_abi::Nanos;
use diapason_vcpu::PERIOD_MAX;
use diapason_vcpu::admission::{Load, Overheads, Reason, Reservation, Share, Test, liu_layland};
use diapason_vcpu::sim::Random;

/// A natural number of any length, least digit first.
#[derive(Clone, PartialEq, Eq)]
struct Big(Vec<u32>);

impl Big {
    fn of(n: u64) -> Big {
        Big(vec![n as u32, (n >> 32) as u32]).trimmed()
    }

    fn trimmed(mut self) -> Big {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn times(&self, other: &Big) -> Big {
        let mut digits = vec![0u32; self.0.len() + other.0.len()];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.0.iter().enumerate() {
                let sum = u64::from(digits[i + j]) + u64::from(*a) * u64::from(*b) + carry;
                digits[i + j] = sum as u32;
                carry = sum >> 32;
            }
            digits[i + other.0.len()] = carry as u32;
        }
        Big(digits).trimmed()
    }

    fn power(&self, n: u32) -> Big {
        (0..n).fold(Big::of(1), |product, _| product.times(self))
    }

    fn at_most(&self, other: &Big) -> bool {
        let digits = |big: &Big| (big.0.len(), big.0.iter().rev().copied().collect::<Vec<_>>());
        digits(self) <= digits(other)
    }
}

/// Returns whether `v · 2⁻³² ≤ n(2^(1/n) − 1)`, that is `(n·2³² + v)ⁿ ≤ 2·(n·2³²)ⁿ`.
fn is_below_the_bound(v: u64, n: u32) -> bool {
    let whole = u64::from(n) << 32;
    let left = Big::of(whole + v).power(n);
    left.at_most(&Big::of(whole).power(n).times(&Big::of(2)))
}

#[test]
fn liu_and_laylands_bound_is_from_below_and_tight() {
    assert_eq!((liu_layland(0), liu_layland(1)), (Share::ONE, Share::ONE));
    for n in (2..=64).chain([100, 128, 200]) {
        let Share(v) = liu_layland(n);
        assert!(is_below_the_bound(v, n), "too high for {n}");
        assert!(!is_below_the_bound(v + 16, n), "too low for {n}");
    }
    assert_eq!(liu_layland(2).ppm(), 828_427);
    assert_eq!(liu_layland(3).ppm(), 779_763);
    assert_eq!(liu_layland(u32::MAX).ppm(), 693_147);
}

#[test]
fn shares_are_rounded_up_and_their_parts_down() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let most = PERIOD_MAX.0 >> random.below(40);
        let whole = random.between(1, most);
        let part = random.below(whole + 1);
        let exact = (u128::from(part) << 32).div_ceil(u128::from(whole)) as u64;
        assert_eq!(Share::of(Nanos(part), Nanos(whole)), Share(exact), "{part}/{whole}");
        let share = random.below(1 << 32);
        let time = (u128::from(share) * u128::from(whole)) >> 32;
        assert_eq!(Share(share).part_of(Nanos(whole)), Nanos(time as u64), "{share} of {whole}");
    }
    assert_eq!(Share::ONE.part_of(Nanos(7)), Nanos(7));
    assert!(Share::of(Nanos(1), Nanos::ZERO) > Share::ONE);
    assert!(Share::of(PERIOD_MAX, Nanos(3)) > Share::ONE);
}

/// Both sides of a test in floating point, from the list of what was admitted.
struct Exact {
    mains: Vec<(f64, f64)>,
    ios: Vec<f64>,
    section: f64,
    /// The overrun of each VCPU in a busy period.
    overrun: f64,
    top_halves: Vec<(f64, f64)>,
}

impl Exact {
    fn slack(&self, test: Test) -> f64 {
        let u: f64 = self.ios.iter().sum();
        let burst: f64 = self.ios.iter().map(|u| u * (1.0 - u)).sum();
        let rate: f64 = self.top_halves.iter().map(|(h, tau)| h / tau).sum();
        let overruns = self.overrun * (self.mains.len() + self.ios.len()) as f64;
        let once: f64 =
            self.section + overruns + self.top_halves.iter().map(|(h, _)| h).sum::<f64>();
        let shortest = self.mains.iter().fold(f64::INFINITY, |least, (_, t)| least.min(*t));
        let left = self.mains.iter().map(|(c, t)| c / t).sum::<f64>() + once / shortest;
        let n = self.mains.len().max(1) as f64;
        let bound = n * (2f64.powf(1.0 / n) - 1.0);
        match test {
            Test::Paper => bound - (left + burst + u + rate),
            Test::Wide => (1.0 - u - rate) * bound - (left + burst),
            Test::Deadline => 1.0 - (left + u + rate),
        }
    }
}

fn grow(random: &mut Random, test: Test) -> (Load, Exact) {
    let kernel = random.one_in(2);
    let mut overheads = Overheads::NONE;
    let mut exact =
        Exact { mains: vec![], ios: vec![], section: 0.0, overrun: 0.0, top_halves: vec![] };
    if kernel {
        overheads.overrun = Nanos(random.below(2_000));
        exact.overrun = overheads.overrun.0 as f64;
        overheads.section = Nanos(random.below(3_000));
        exact.section = overheads.section.0 as f64;
        let (h, tau) = (random.below(2_000), random.between(100_000, 1_000_000));
        overheads = overheads.with_top_half(Nanos(h), Nanos(tau));
        exact.top_halves.push((h as f64, tau as f64));
    }
    let mut load = Load::new(overheads);
    for _ in 0..random.between(1, 12) {
        if random.one_in(4) && !exact.mains.is_empty() {
            let share = random.between(1, 300_000) as u32;
            load = try_io(load, &mut exact, test, share);
        } else {
            let period = random.between(100_000, 100_000_000);
            let most = 2 * period / random.between(1, 20);
            let budget = random.between(1, most);
            load = try_main(load, &mut exact, test, budget, period);
        }
    }
    (load, exact)
}

fn try_main(load: Load, exact: &mut Exact, test: Test, budget: u64, period: u64) -> Load {
    let asked = |budget| Reservation { budget: Nanos(budget), period: Nanos(period) };
    match load.admit_main(test, asked(budget)) {
        Ok(load) => {
            exact.mains.push((budget as f64, period as f64));
            load
        }
        Err(refusal) => {
            let fits = refusal.fits.0;
            assert!(fits < budget);
            assert!(load.admit_main(test, asked(fits + 1)).is_err());
            if refusal.reason == Reason::MoreThanAll {
                assert!(budget > period);
            } else {
                assert!(refusal.reason == Reason::Overloaded && refusal.load > refusal.bound);
            }
            if fits == 0 {
                return load;
            }
            exact.mains.push((fits as f64, period as f64));
            load.admit_main(test, asked(fits)).expect("what fits is admitted")
        }
    }
}

fn try_io(load: Load, exact: &mut Exact, test: Test, share: u32) -> Load {
    match load.admit_io(test, share) {
        Ok(load) => {
            exact.ios.push(f64::from(share) / 1e6);
            load
        }
        Err(refusal) => {
            assert!(refusal.fits < share);
            assert!(load.admit_io(test, refusal.fits + 1).is_err());
            if refusal.fits == 0 {
                return load;
            }
            exact.ios.push(f64::from(refusal.fits) / 1e6);
            load.admit_io(test, refusal.fits).expect("what fits is admitted")
        }
    }
}

#[test]
fn what_is_admitted_satisfies_the_inequality_and_what_fits_is_the_most() {
    let mut random = Random::new(2);
    let mut full = 0;
    for round in 0..6_000 {
        let test = [Test::Paper, Test::Wide, Test::Deadline][round % 3];
        let (load, exact) = grow(&mut random, test);
        assert!(load.holds(test));
        assert!(exact.slack(test) >= -1e-9, "{test:?} {load:?} {}", exact.slack(test));
        full += usize::from(exact.slack(test) < 1e-6);
        assert!(test != Test::Paper || load.holds(Test::Wide), "the wide test is wider");
    }
    assert!(full > 300, "only {full} cores were filled to the brim");
}

#[test]
fn giving_back_restores_the_sums() {
    let empty = Load::new(Overheads::NONE);
    let one = Reservation { budget: Nanos(3), period: Nanos(7) };
    let two = Reservation { budget: Nanos(2), period: Nanos(10_000_019) };
    let with_one = empty.admit_main(Test::Wide, two).unwrap();
    let with_two = with_one.admit_main(Test::Wide, one).unwrap();
    assert_eq!(with_two.without_main(one, Nanos(10_000_019)), with_one);
    assert_eq!(with_one.without_main(two, Nanos::FOREVER), empty);
    let with_io = with_one.admit_io(Test::Wide, 123_457).unwrap();
    assert_eq!(with_io.without_io(123_457), with_one);
    let more = Reservation { budget: Nanos(6), ..one };
    let refusal = with_two.change_main(Test::Wide, one, more, two.period).unwrap_err();
    assert_eq!((refusal.reason, refusal.fits), (Reason::Overloaded, Nanos(5)));
}

#[test]
fn nonsense_is_refused_by_name() {
    let empty = Load::new(Overheads::NONE);
    let reason = |budget, period| {
        let asked = Reservation { budget: Nanos(budget), period: Nanos(period) };
        empty.admit_main(Test::Wide, asked).unwrap_err().reason
    };
    assert_eq!(reason(1, 0), Reason::NoPeriod);
    assert_eq!(reason(1, PERIOD_MAX.0 + 1), Reason::PeriodTooLong);
    assert_eq!(reason(u64::MAX, u64::MAX), Reason::PeriodTooLong);
    assert_eq!(reason(0, 5), Reason::NoBudget);
    assert_eq!(reason(6, 5), Reason::MoreThanAll);
    let short = Reservation { budget: Nanos(1), period: Nanos(1_000) };
    let core = empty.admit_main(Test::Wide, short).unwrap();
    let io = |share| core.admit_io(Test::Wide, share).unwrap_err().reason;
    assert_eq!(io(0), Reason::NoBudget);
    assert_eq!(io(1_000_001), Reason::MoreThanAll);
    assert_eq!(io(999), Reason::GrantTooSmall);
    assert_eq!(io(999_000), Reason::Overloaded);
    let all = empty.admit_io(Test::Wide, 1_000_000).unwrap();
    assert_eq!(all.admit_io(Test::Wide, 1_000_000).unwrap_err().reason, Reason::Overloaded);
}

#[test]
fn a_kernel_path_longer_than_the_shortest_period_admits_nothing() {
    let overheads = Overheads { section: Nanos(100), ..Overheads::NONE };
    let asked = |period| Reservation { budget: Nanos(1), period: Nanos(period) };
    let refusal = Load::new(overheads).admit_main(Test::Deadline, asked(90)).unwrap_err();
    assert_eq!((refusal.reason, refusal.fits), (Reason::Overloaded, Nanos::ZERO));
    assert!(Load::new(overheads).admit_main(Test::Deadline, asked(102)).is_ok());
}
