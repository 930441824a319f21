//! Starting slots: the period tree against everything, the portfolio against the tree, Algorithm 3
//! against both.

use diapason_bus::place::{Bins, Fit, SlotDemand, orders, place_all, portfolio};
use diapason_bus::sim::Random;
use diapason_bus::tree::{SearchResult, exact};

const CAPACITY: u64 = 900;

/// `n` items of periods 1 to 16 that fill 75 to 100 % of the capacity on average.
fn draw(random: &mut Random, n: u32) -> Vec<SlotDemand> {
    let load = u64::from(random.within(750, 1000)) * CAPACITY / 1000;
    let shares: Vec<u64> = (0..n).map(|_| u64::from(random.within(1, 100))).collect();
    let sum: u64 = shares.iter().sum();
    let item = |share: u64| {
        let mut period = 1 << random.within(0, 4);
        let cost = |period: u32| (share * load * u64::from(period) / sum).max(1);
        while cost(period) > CAPACITY {
            period /= 2;
        }
        SlotDemand::new(cost(period), period)
    };
    shares.into_iter().map(item).collect()
}

fn empty(items: &[SlotDemand]) -> Bins {
    Bins::new(items.iter().map(|item| item.period).max().unwrap(), CAPACITY)
}

fn fits(items: &[SlotDemand], starts: &[u32]) -> bool {
    let mut bins = empty(items);
    items.iter().zip(starts).for_each(|(item, start)| bins.put(item, *start));
    let in_period = items.iter().zip(starts).all(|(item, start)| *start < item.period);
    in_period && bins.load().iter().all(|load| *load <= CAPACITY)
}

fn brute(items: &[SlotDemand], bins: &mut Bins) -> bool {
    let Some((item, rest)) = items.split_first() else { return true };
    (0..item.period).any(|start| {
        bins.fits(item, start) && {
            bins.put(item, start);
            let found = brute(rest, bins);
            bins.take(item, start);
            found
        }
    })
}

#[test]
fn the_tree_finds_a_placement_if_there_is_one() {
    let (mut possible, mut impossible) = (0, 0);
    for index in 0..1_500 {
        let random = &mut Random::stream(11, index);
        let n = random.within(1, 5);
        let items = draw(random, n);
        match exact(&items, CAPACITY, 100_000) {
            SearchResult::Placed(starts) => {
                possible += 1;
                assert!(fits(&items, &starts), "{items:?} {starts:?}");
            }
            SearchResult::Impossible => {
                impossible += 1;
                assert!(!brute(&items, &mut empty(&items)), "{items:?}");
            }
            SearchResult::Undecided => panic!("five items: {items:?}"),
        }
    }
    assert!(possible > 100 && impossible > 100, "{possible} {impossible}");
}

/// Counts the sets of `n` items that are placed by first fit decreasing, the portfolio, the tree.
fn count(n: u32, sets: u64) -> [u32; 3] {
    let mut counts = [0; 3];
    for index in 0..sets {
        let items = draw(&mut Random::stream(u64::from(n), index), n);
        let bins = empty(&items);
        let first = place_all(bins.clone(), &items, &orders(&items)[0], Fit::First).is_ok();
        let tried = portfolio(&bins, &items, |starts| fits(&items, starts)).is_some();
        let answer = exact(&items, CAPACITY, 1_000_000);
        assert_ne!(answer, SearchResult::Undecided);
        let exists = matches!(answer, SearchResult::Placed(_));
        assert!(exists || !tried, "placed what cannot be placed: {items:?}");
        assert!(tried || !first, "the portfolio begins with Algorithm 3");
        for (count, yes) in counts.iter_mut().zip([first, tried, exists]) {
            *count += u32::from(yes);
        }
    }
    counts
}

#[test]
fn the_portfolio_finds_nearly_everything() {
    for n in [6, 9] {
        let [first, portfolio, exact] = count(n, 300);
        assert!(exact > 50 && portfolio * 100 >= exact * 98, "{n}: {first} {portfolio} {exact}");
    }
}

#[test]
#[ignore = "minutes: for the table in docs/bus.md"]
fn table_of_placements() {
    for n in [6, 8, 10, 12] {
        println!("n = {n}: first fit, portfolio, possible of 1000: {:?}", count(n, 1_000));
    }
}

#[test]
fn a_given_up_search_says_so() {
    let items: Vec<SlotDemand> = (0..12).map(|i| SlotDemand::new(100 + i, 16)).collect();
    assert_eq!(exact(&items, 150, 5), SearchResult::Undecided);
    assert_eq!(exact(&[], 0, 5), SearchResult::Placed(vec![]));
}
