//! The transmitter against a slow one that looks at every nanosecond, and its refusals.

use crate::support;
use crate::support::{Arriving, Gone, arrivals, flows, gates, run};
use diapason_random::Random;
use diapason_tsn::{CLASSES, Egress, GateEntry, GateList, GateRefusal, LinkRate, Shaping};

/// Sends by looking at each nanosecond: is every gate open that a frame needs, is there credit.
fn slow(
    list: &GateList,
    base: u64,
    idle: &[Option<i128>; CLASSES],
    rate: i128,
    arriving: &[Arriving],
    until: u64,
) -> Vec<Gone> {
    let open: Vec<u8> =
        list.entries().iter().flat_map(|it| vec![it.mask; it.interval_ns as usize]).collect();
    let cycle = open.len() as u64;
    let is_open = |class: usize, t: u64| {
        open[((t + 1_000 * cycle - base) % cycle) as usize] >> class & 1 == 1
    };
    let mut queues: Vec<Vec<usize>> = vec![Vec::new(); CLASSES];
    let (mut credit, mut free_at, mut sends, mut gone) = ([0_i128; CLASSES], 0, None, Vec::new());
    let mut next = 0;
    for t in 0..until {
        if free_at <= t {
            sends = None;
        }
        let resets = |credit: &mut [i128; CLASSES], queues: &[Vec<usize>], sends: Option<usize>| {
            for class in 0..CLASSES {
                if queues[class].is_empty() && sends != Some(class) {
                    credit[class] = credit[class].min(0);
                }
            }
        };
        resets(&mut credit, &queues, sends);
        while arriving.get(next).is_some_and(|it| it.0 <= t) {
            queues[arriving[next].1].push(next);
            next += 1;
        }
        if sends.is_none() {
            let fits = |class: &usize| {
                let Some(first) = queues[*class].first() else { return false };
                let wire = arriving[*first].2;
                credit[*class] >= 0 && (t..t + wire).all(|t| is_open(*class, t))
            };
            if let Some(class) = (0..CLASSES).rev().find(fits) {
                let first = queues[class].remove(0);
                free_at = t + arriving[first].2;
                sends = Some(class);
                gone.push((first, t, free_at));
            }
        }
        for class in 0..CLASSES {
            let Some(idle) = idle[class] else { continue };
            if sends == Some(class) {
                credit[class] += idle - rate;
            } else if !queues[class].is_empty() {
                credit[class] += idle;
            } else if credit[class] < 0 {
                credit[class] = (credit[class] + idle).min(0);
            }
        }
    }
    gone
}

#[test]
fn the_transmitter_is_that_which_looks_at_every_nanosecond() {
    let mut sent = 0;
    for seed in 0..3_000 {
        let random = &mut Random::stream(21, seed);
        let credit = random.one_in(3);
        let list = gates(random, 4);
        let mut shaping = [Shaping::Strict; CLASSES];
        let mut idle = [None; CLASSES];
        for class in [3, 2] {
            if credit && list.always(class) {
                let slope = random.between(1, 37) * 10_000_000;
                shaping[class] = Shaping::Credit { idle_bits_per_second: slope };
                idle[class] = Some(i128::from(slope));
            }
        }
        let flows = flows(random, &list, 4);
        let arriving = arrivals(random, &flows, 400);
        let base = (list.cycle_ns() - list.phase(0)) % list.cycle_ns();
        let mut egress = Egress::new(list.clone(), LinkRate::GIGABIT, shaping).unwrap();
        let mut ours = run(&mut egress, &arriving);
        let theirs = slow(&list, base, &idle, 1_000_000_000, &arriving, 2_500);
        ours.truncate(theirs.len());
        assert_eq!(ours, theirs, "seed {seed}");
        sent += theirs.len();
    }
    assert!(sent > 20_000, "only {sent} frames were sent");
}

#[test]
fn every_frame_stays_in_its_window_and_none_is_lost() {
    for seed in 0..2_000 {
        let random = &mut Random::stream(22, seed);
        let list = gates(random, 3);
        let flows = flows(random, &list, 3);
        let arriving = arrivals(random, &flows, 600);
        let gone = run(&mut support::strict(&list), &arriving);
        assert_eq!(gone.len(), arriving.len(), "seed {seed}");
        for (number, start, end) in gone {
            let (came, class, wire) = arriving[number];
            assert!(start >= came && end == start + wire);
            assert_eq!(list.next_start(class, start, wire), Some(start), "seed {seed}");
        }
    }
}

/// Returns the adapter of [Bridging]'s table: 8 of 125 us for class 1.
fn eight() -> GateList {
    let entries = [
        GateEntry { mask: 0b10, interval_ns: 8_000 },
        GateEntry { mask: 0b01, interval_ns: 117_000 },
    ];
    GateList::new(0, Some(125_000), &entries).unwrap()
}

#[test]
fn what_can_never_be_sent_is_refused_by_name() {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let refused = |cycle, entries: &[GateEntry]| GateList::new(0, cycle, entries).unwrap_err();
    assert_eq!(refused(None, &[]), GateRefusal::Empty);
    assert_eq!(refused(None, &[entry(1, 5), entry(2, 0)]), GateRefusal::EmptyEntry { entry: 1 });
    let gap = refused(Some(125_000), &[entry(1, 62_000), entry(2, 62_000)]);
    assert_eq!(gap, GateRefusal::Cycle { cycle_ns: 125_000, filled_ns: 124_000 });
    assert_eq!(
        gap.to_string(),
        "the entries of the gate list last 124000 ns and the cycle 125000 ns: make the entries \
         fill the cycle"
    );
    let mut egress = support::strict(&eight());
    let never = egress.push(0, 1, 12_336, 0).unwrap_err();
    let short = GateRefusal::ShortWindow { class: 1, longest_ns: 8_000, needed_ns: 12_336 };
    assert_eq!(never, short);
    assert!(never.to_string().contains("lengthen the window"), "{never}");
    assert_eq!(
        egress.push(0, 2, 1, 0).unwrap_err(),
        GateRefusal::ShortWindow { class: 2, longest_ns: 0, needed_ns: 1 }
    );
    assert_eq!(egress.push(0, 9, 1, 0), Err(GateRefusal::Class { class: 9 }));
    let mut shaping = [Shaping::Strict; CLASSES];
    shaping[1] = Shaping::Credit { idle_bits_per_second: 1_000_000 };
    let gated = Egress::<()>::new(eight(), LinkRate::GIGABIT, shaping).unwrap_err();
    assert_eq!(gated, GateRefusal::GatedCredit { class: 1 });
    let mut refused = |slopes: [u64; 2]| {
        for (class, idle_bits_per_second) in slopes.into_iter().enumerate() {
            shaping[class] = Shaping::Credit { idle_bits_per_second };
        }
        Egress::<()>::new(GateList::open(1), LinkRate::GIGABIT, shaping).err()
    };
    let greedy = Some(GateRefusal::Credits { ppm: 1_000_001 });
    assert_eq!(refused([200_000_001, 800_000_000]), greedy);
    assert_eq!(refused([200_000_000, 800_000_000]), None);
    assert_eq!(refused([0, 800_000_000]), Some(GateRefusal::NoSlope { class: 0 }));
}

#[test]
fn windows_of_neighbouring_entries_are_one_over_the_end_of_the_cycle_too() {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    let list = GateList::new(0, None, &[entry(1, 10), entry(2, 5), entry(3, 5)]).unwrap();
    let windows = list.windows(0);
    assert_eq!(windows.len(), 1);
    assert_eq!((windows[0].open_ns, windows[0].length_ns), (15, 15));
    assert_eq!(list.next_start(0, 11, 15), Some(15));
    assert_eq!(list.next_start(0, 5, 6), Some(15), "five are left");
    assert_eq!(list.next_start(0, 5, 16), None);
    assert!(list.overlap(0, 1) && !list.overlap(0, 2));
}

#[test]
fn a_frame_is_outside_by_what_reaches_out_of_the_nearest_window() {
    let entry = |mask, interval_ns| GateEntry { mask, interval_ns };
    // Class 1 from 0 to 40, class 0 from 40 to 100.
    let gates = GateList::new(0, None, &[entry(2, 40), entry(1, 60)]).unwrap();
    let cases =
        [(0, 40, 0), (0, 41, 1), (39, 4, 3), (95, 20, 5), (70, 10, 30), (60, 10, 30), (30, 90, 70)];
    for (at, length, outside) in cases {
        assert_eq!(gates.outside(1, 500 + at, length), outside, "{at} {length}");
        let fits = gates.next_start(1, 500 + at, length) == Some(500 + at);
        assert_eq!(fits, outside == 0);
    }
    assert_eq!(gates.outside(5, 7, 9), 9, "a class without a window");
    assert_eq!(GateList::open(10).outside(5, 7, 90), 0);
}
