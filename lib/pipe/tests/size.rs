//! Each formula against what it counts, and against a ring that the worst arrivals fill.

use diapason_abi::Nanos;
use diapason_pipe::Ring;
use diapason_pipe::size::*;
use diapason_random::Random;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn any_bucket(random: &mut Random) -> Bucket {
    Bucket {
        burst: random.between(1, 6),
        messages: random.between(1, 4),
        per: Nanos(random.between(1, 15)),
        jitter: Nanos(random.below(2) * random.below(12)),
    }
}

fn any_contract(random: &mut Random) -> Vec<Bucket> {
    (0..random.between(1, 3)).map(|_| any_bucket(random)).collect()
}

/// Returns one message every so often, perhaps with jitter or bursts: no fraction of a message.
fn even_bucket(random: &mut Random) -> Bucket {
    Bucket { messages: 1, ..any_bucket(random) }
}

/// Bursts on a wire that carries them no faster than it can.
fn bursts_on_a_wire(random: &mut Random) -> Vec<Bucket> {
    let bursts = Bucket {
        burst: random.between(5, 30),
        per: Nanos(random.between(5, 30)),
        ..even_bucket(random)
    };
    let wire = Bucket { per: Nanos(random.between(1, 4)), ..any_bucket(random) };
    vec![bursts, wire]
}

/// Arrivals until `end` that keep the contract in every closed window, each as early as that
/// allows if `greedy`, else sometimes later.
fn arrivals_within(contract: &[Bucket], end: u64, mut random: Option<&mut Random>) -> Vec<u64> {
    let mut times: Vec<u64> = Vec::new();
    for now in 0..=end {
        let allowed = |times: &[u64]| {
            let windows = times.iter().rev().zip(2..);
            contract.iter().all(|bucket| bucket.most(Nanos(0)) >= 1)
                && windows
                    .into_iter()
                    .all(|(then, count)| arrivals(contract, Nanos(now - then)) >= count)
        };
        while allowed(&times) && !random.as_mut().is_some_and(|random| random.one_in(4)) {
            times.push(now);
            assert!(times.len() < 100_000, "nothing bounds {contract:?}");
        }
    }
    times
}

/// A pipe: how the way in varies, when reads come, how much each takes.
#[derive(Clone, Copy, Debug)]
struct Pipe {
    shortest: u64,
    way_in: u64,
    gap: u64,
    per_read: usize,
}

const SLOTS: usize = 512;
type Big = Ring<u64, SLOTS>;

/// Returns the highest fill when `times` come through `pipe`. At one instant, reads come before
/// arrivals or after, by `reads_first`: both orders are possible.
fn highest_fill(times: &[u64], pipe: Pipe, mut random: Option<&mut Random>) -> usize {
    let longest = pipe.shortest + pipe.way_in;
    let mut ring = Big::new();
    let (mut writer, mut reader) = ring.split();
    let mut entries = entries(times, pipe, random.as_deref_mut()).into_iter().peekable();
    // The first read has just happened when the first record can enter, as late as it may be.
    let mut next_read = longest + pipe.gap;
    for now in 0..=times.last().unwrap_or(&0) + longest + 2 * pipe.gap {
        let reads_first = random.as_mut().is_some_and(|random| random.one_in(2));
        let mut read = |reader: &mut diapason_pipe::Reader<'_, u64, SLOTS>| {
            if now == next_read {
                reader.pop_many(&mut [0; SLOTS][..pipe.per_read]);
                let early = random.as_mut().map_or(0, |random| random.below(pipe.gap));
                next_read += pipe.gap - early;
            }
        };
        if reads_first {
            read(&mut reader);
        }
        while let Some(entry) = entries.next_if(|entry| *entry <= now) {
            writer.push(&entry).expect("there is room to see how much is needed");
        }
        read(&mut reader);
    }
    reader.peak() as usize
}

/// When records enter the ring, in order: those that come within the variation of the way in are
/// held until its end and then enter at once, all others take the shortest way; or at random.
fn entries(times: &[u64], pipe: Pipe, mut random: Option<&mut Random>) -> Vec<u64> {
    let mut last = 0;
    let enter = times.iter().map(|time| {
        let bunched = (time + pipe.shortest).max(pipe.shortest + pipe.way_in);
        let any = |random: &mut &mut Random| time + pipe.shortest + random.below(pipe.way_in + 1);
        last = last.max(random.as_mut().map_or(bunched, any));
        last
    });
    enter.collect()
}

fn any_pipe(random: &mut Random) -> Pipe {
    Pipe {
        shortest: random.below(5),
        way_in: random.below(2) * random.below(15),
        gap: random.between(1, 25),
        per_read: SLOTS,
    }
}

fn sized(contract: &[Bucket], pipe: Pipe) -> usize {
    capacity(contract, Nanos(pipe.way_in), Nanos(pipe.gap))
}

fn sized_for_short_reads(contract: &[Bucket], pipe: Pipe) -> Option<usize> {
    let (way_in, gap) = (Nanos(pipe.way_in), Nanos(pipe.gap));
    capacity_of_short_reads(contract, way_in, gap, pipe.per_read as u64)
}

#[test]
fn the_worst_arrivals_fill_what_was_sized_and_not_one_more() {
    let (mut cases, mut reached) = (0, 0);
    for case in 0..1_500 {
        let mut random = Random::stream(6, case);
        let contract = any_contract(&mut random);
        let pipe = any_pipe(&mut random);
        let size = sized(&contract, pipe);
        let end = pipe.way_in + 3 * pipe.gap;
        if size > SLOTS / 4 {
            continue;
        }
        let greedy = arrivals_within(&contract, end, None);
        let worst = highest_fill(&greedy, pipe, None);
        assert!(worst <= size, "{contract:?} {pipe:?}: {worst} > {size}");
        let loose = arrivals_within(&contract, end, Some(&mut random));
        let fill = highest_fill(&loose, pipe, Some(&mut random));
        assert!(fill <= size, "{contract:?} {pipe:?}: {fill} > {size}");
        cases += 1;
        reached += u32::from(worst == size);
    }
    println!("{reached} of {cases} sizes reached");
    assert!(cases > 1_000 && reached * 4 > cases * 3);
}

#[test]
fn even_arrivals_reach_every_size() {
    for case in 0..1_000 {
        let mut random = Random::stream(7, case);
        let contract = [even_bucket(&mut random)];
        let pipe = any_pipe(&mut random);
        let greedy = arrivals_within(&contract, pipe.way_in + 2 * pipe.gap, None);
        assert_eq!(
            highest_fill(&greedy, pipe, None),
            sized(&contract, pipe),
            "{contract:?} {pipe:?}"
        );
    }
}

#[test]
fn short_reads_fill_what_was_sized_and_not_one_more() {
    let (mut cases, mut reached, mut beyond_one_gap) = (0, 0, 0);
    for case in 0..2_000 {
        let mut random = Random::stream(8, case);
        let contract = bursts_on_a_wire(&mut random);
        let pipe = Pipe { per_read: random.between(1, 12) as usize, ..any_pipe(&mut random) };
        let Some(size) = sized_for_short_reads(&contract, pipe) else { continue };
        let greedy = arrivals_within(&contract, pipe.way_in + 8 * pipe.gap, None);
        let worst = highest_fill(&greedy, pipe, None);
        assert!(worst <= size, "{contract:?} {pipe:?}: {worst} > {size}");
        let loose = arrivals_within(&contract, pipe.way_in + 8 * pipe.gap, Some(&mut random));
        let fill = highest_fill(&loose, pipe, Some(&mut random));
        assert!(fill <= size, "{contract:?} {pipe:?}: {fill} > {size}");
        cases += 1;
        reached += u32::from(worst == size);
        beyond_one_gap += u32::from(size > sized(&contract, pipe));
    }
    println!("{reached} of {cases} sizes reached, {beyond_one_gap} larger than for one gap");
    assert!(cases > 300 && reached * 3 > cases * 2 && beyond_one_gap > 20);
}

/// The search by halving against looking at every k, and its refusals against arrivals that grow.
#[test]
fn the_search_finds_the_largest_backlog() {
    let mut refused = 0;
    for case in 0..5_000 {
        let mut random = Random::stream(9, case);
        let contract =
            if case % 2 == 0 { any_contract(&mut random) } else { bursts_on_a_wire(&mut random) };
        let pipe = Pipe { per_read: random.between(0, 12) as usize, ..any_pipe(&mut random) };
        let fill = |k: u64| {
            let most = arrivals(&contract, Nanos(pipe.way_in + k * pipe.gap));
            most.saturating_sub((k - 1) * pipe.per_read as u64)
        };
        match sized_for_short_reads(&contract, pipe) {
            Some(size) => assert_eq!(Some(size as u64), (1..500).map(fill).max(), "{pipe:?}"),
            None => {
                refused += 1;
                assert!(fill(1_000_000) > fill(1_000), "{contract:?} {pipe:?} does not grow");
            }
        }
    }
    assert!((500..4_500).contains(&refused));
}

#[test]
fn the_longest_window_is_the_longest() {
    for case in 0..5_000 {
        let mut random = Random::stream(10, case);
        let contract = any_contract(&mut random);
        let slots = random.between(1, 40) as usize;
        match longest_window(&contract, slots) {
            Some(window) => {
                assert!(arrivals(&contract, window) <= slots as u64);
                assert!(arrivals(&contract, window + Nanos(1)) > slots as u64);
            }
            None => assert!(arrivals(&contract, Nanos(0)) > slots as u64),
        }
    }
}

#[test]
fn a_reader_of_the_longest_period_does_not_overflow_and_a_slower_one_does() {
    for case in 0..2_000 {
        let mut random = Random::stream(11, case);
        let contract = [even_bucket(&mut random)];
        let (slots, way_in) = (random.between(4, 40) as usize, Nanos(random.below(10)));
        let earliest = Nanos(random.below(4));
        let Some(period) = longest_period(&contract, slots, way_in, earliest) else { continue };
        let size = |period| capacity(&contract, way_in, read_gap(period, period, earliest));
        if period >= earliest {
            assert!(size(period) <= slots);
            assert!(size(period + Nanos(1)) > slots);
        }
    }
}

/// One message every tick, a user of 1 in 3 that finishes 2 after its release: slots are given
/// back at 1 and then at 5. Little's law says 3 slots.
#[test]
fn littles_law_is_too_small() {
    let contract = [Bucket::periodic(Nanos(1))];
    let gap = read_gap(Nanos(3), Nanos(2), Nanos(1));
    assert_eq!((gap, capacity(&contract, Nanos(0), gap)), (Nanos(4), 5));
    let pipe = Pipe { shortest: 0, way_in: 0, gap: gap.0, per_read: SLOTS };
    let times: Vec<u64> = (0..40).collect();
    assert_eq!(highest_fill(&times, pipe, None), 5);
}

/// 2752 frames a second, and how long one may be on its way in three designs of a concentrator.
#[test]
fn the_concentrator_by_hand() {
    let frames = [Bucket::per_second(2752)];
    let slots = |micros| capacity(&frames, Nanos::ZERO, Nanos::from_micros(micros));
    assert_eq!([36_800, 47_100, 142_800].map(slots), [102, 130, 393]);
    assert_eq!(longest_window(&frames, 128), Some(Nanos(46_511_627)));
    assert_eq!(arrivals(&frames, MS(0)), 1);
}

#[test]
fn what_cannot_be_bounded_is_not() {
    let still = Bucket { messages: 0, ..Bucket::periodic(MS(1)) }.with_burst(7);
    assert_eq!(capacity(&[still], Nanos::FOREVER, Nanos::FOREVER), 7);
    assert_eq!(longest_window(&[still], 7), Some(Nanos::FOREVER));
    let timeless = Bucket::periodic(Nanos(0));
    for contract in [&[][..], &[timeless][..]] {
        assert_eq!(capacity(contract, MS(1), MS(1)), usize::MAX);
        assert_eq!(longest_window(contract, 100), None);
        assert_eq!(capacity_of_short_reads(contract, MS(1), MS(1), 9), None);
    }
    let late = Bucket::periodic(MS(1)).with_jitter(Nanos::FOREVER);
    assert_eq!(capacity(&[late], MS(1), MS(1)), usize::MAX);
    assert_eq!(capacity_of_short_reads(&[late], MS(1), MS(1), 9), None);
    let fast = Bucket::periodic(Nanos(1));
    assert_eq!(capacity(&[fast], Nanos(u64::MAX - 2), Nanos(9)), usize::MAX);
    assert_eq!(capacity_of_short_reads(&[fast], Nanos::FOREVER, MS(1), u64::MAX), None);
}

#[test]
fn no_number_panics() {
    let mut random = Random::new(12);
    let edge = |random: &mut Random| match random.below(4) {
        0 => random.below(3),
        1 => u64::MAX - random.below(3),
        2 => 1 << random.below(64),
        _ => random.bits(),
    };
    for _ in 0..100_000 {
        let mut any = || edge(&mut random);
        let buckets = [(); 2].map(|()| Bucket {
            burst: any(),
            messages: any(),
            per: Nanos(any()),
            jitter: Nanos(any()),
        });
        let (way_in, gap, earliest) = (Nanos(any()), Nanos(any()), Nanos(any()));
        let slots = any() as usize;
        assert!(capacity(&buckets, way_in, read_gap(gap, gap, earliest)) >= 1);
        let _ = longest_period(&buckets, slots, way_in, earliest);
        let _ = capacity_of_short_reads(&buckets, way_in, gap, any());
        if let Some(window) = longest_window(&buckets, slots) {
            assert!(arrivals(&buckets, window) <= slots as u64);
        }
    }
}
