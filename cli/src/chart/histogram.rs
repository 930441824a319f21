//! A histogram of lengths of time, on a terminal and as a picture, with the line not to cross.

use super::axis::{Axis, MARGIN, SIZE, horizontal, vertical};
use super::{Distribution, colour, document, escaped, line, rectangle, text};
use crate::duration::human;

/// Lines of a histogram on a terminal, and bars of a picture.
const LINES: usize = 12;
const BARS: usize = 60;
/// Longest bar on a terminal, in characters.
const WIDTH: usize = 48;
const BOUND: &str = "stroke=\"#d00\" stroke-width=\"2\" stroke-dasharray=\"6 3\"";

/// How many values are from `from` on and below `to`; the last bin has its end, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bin {
    from: u64,
    to: u64,
    count: usize,
}

/// Equal bins from the least value to the greatest, as many as there are different values at most.
fn bins(of: &Distribution, most: usize) -> Vec<Bin> {
    let (low, high) = (of.min(), of.max());
    let step = (high - low).div_ceil(most as u64).max(1);
    let count = ((high - low) / step + 1).min(most as u64);
    let below = |end: u64| of.values().partition_point(|value| *value < end);
    let bin = |index: u64| {
        let (from, to) = (low + index * step, (low + index * step).saturating_add(step));
        let end = if index + 1 == count { of.values().len() } else { below(to) };
        Bin { from, to, count: end - below(from) }
    };
    if of.values().is_empty() { Vec::new() } else { (0..count).map(bin).collect() }
}

/// Returns the summary and a bar for each bin, for a terminal.
#[must_use]
pub fn terminal(of: &Distribution) -> String {
    let bins = bins(of, LINES);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let mut drawn = of.summary() + "\n";
    let mut bound = of.bound;
    for bin in &bins {
        if let Some(line) = bound.take_if(|bound| *bound < bin.from) {
            drawn += &bound_line(line);
        }
        let length = (bin.count * WIDTH).div_ceil(most);
        drawn += &format!(
            "{:>12} .. {:>12} {:>9} {}\n",
            human(bin.from),
            human(bin.to),
            bin.count,
            "#".repeat(length)
        )
        .replace(" \n", "\n");
    }
    if bound.is_some_and(|bound| bins.last().is_some_and(|last| bound <= last.to)) {
        drawn += &bound.map(bound_line).unwrap_or_default();
    }
    drawn
}

fn bound_line(bound: u64) -> String {
    format!("{:>12} {}\n", human(bound), "-".repeat(16 + WIDTH) + " bound")
}

/// Returns the picture; times in microseconds.
#[must_use]
pub fn svg(of: &Distribution) -> String {
    let bins = bins(of, BARS);
    let ends = bins.iter().flat_map(|bin| [bin.from, bin.to]).chain(of.bound);
    let x = Axis::fitting(ends.map(micros), MARGIN.0, SIZE.0 - MARGIN.2);
    let heights = bins.iter().map(|bin| bin.count as f64).chain([0.0]);
    let y = Axis::fitting(heights, SIZE.1 - MARGIN.3, MARGIN.1);
    let labels: Vec<(f64, String)> =
        x.ticks().into_iter().map(|tick| (x.place(tick), x.label(tick))).collect();
    let mut content = vertical(&y, "count") + &horizontal(&labels, "us");
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let (left, right) = (x.place(micros(bin.from)), x.place(micros(bin.to)));
        let (top, bottom) = (y.place(bin.count as f64), y.place(0.0));
        let hint = format!("{} .. {}: {}", human(bin.from), human(bin.to), bin.count);
        content += &rectangle((left, top), (right - left, bottom - top), colour(0), &hint);
    }
    content += &bound(of, &x);
    document(SIZE.0, SIZE.1, &of.summary(), &content)
}

/// Returns the line that must not be crossed.
pub(super) fn bound(of: &Distribution, x: &Axis) -> String {
    let Some(bound) = of.bound else { return String::new() };
    let (place, name) = (x.place(micros(bound)), escaped(&format!("bound {}", human(bound))));
    line((place, MARGIN.1), (place, SIZE.1 - MARGIN.3), BOUND)
        + &text(place + 4.0, MARGIN.1 + 10.0, "start", &name)
}

pub(super) fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use diapason_random::Random;

    fn distribution(values: &[u64], bound: Option<u64>) -> Distribution {
        Distribution::new("engine.ctrl".into(), values.to_vec(), bound)
    }

    #[test]
    fn bars_are_as_agreed() {
        let values = [vec![1_000; 48], vec![1_001; 24], vec![1_003]].concat();
        let expected = "\
engine.ctrl: 73, min 1.000 us, mean 1.000 us, p99 1.003 us, max 1.003 us, bound 1.002 us, 1 beyond
    1.000 us ..     1.001 us        48 ################################################
    1.001 us ..     1.002 us        24 ########################
    1.002 us ..     1.003 us         0
    1.002 us ---------------------------------------------------------------- bound
    1.003 us ..     1.004 us         1 #
";
        assert_eq!(terminal(&distribution(&values, Some(1_002))), expected);
    }

    #[test]
    fn every_value_is_in_one_bin() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let (count, width) = (random.index(200), random.bits() >> random.index(64));
            let values: Vec<u64> = (0..count).map(|_| random.between(0, width)).collect();
            let of = distribution(&values, random.one_in(2).then_some(width / 2));
            for most in [1, LINES, BARS] {
                let bins = bins(&of, most);
                assert!(bins.len() <= most);
                assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), count, "{values:?}");
            }
            assert!(terminal(&of).lines().count() <= LINES + 2);
            assert!(!svg(&of).contains("NaN"));
        }
    }

    #[test]
    fn the_picture_has_the_bound_and_a_bar_for_what_there_is() {
        let svg = svg(&distribution(&[10, 10, 20], Some(1_000)));
        assert!(svg.contains("bound 1.000 us") && svg.contains("stroke-dasharray"));
        assert_eq!(svg.matches("fill=\"#0072b2\"").count(), 2);
    }
}
