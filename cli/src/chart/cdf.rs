//! Distribution functions as a picture: the part of many lengths of time up to each length.

use super::axis::{Axis, MARGIN, SIZE, horizontal, legend, vertical, width};
use super::histogram::{bound, micros};
use super::{Distribution, colour, document};
use crate::duration::human;

/// Most steps of a curve: more than a picture has pixels across.
const STEPS: usize = 1_000;

/// Returns a curve for each, over a common axis; times in microseconds.
#[must_use]
pub fn svg(title: &str, of: &[Distribution]) -> String {
    let values = of.iter().flat_map(|one| [one.min(), one.max()].into_iter().chain(one.bound));
    let x = Axis::fitting(values.map(micros), MARGIN.0, SIZE.0 - MARGIN.2);
    let y = Axis::fitting([0.0, 1.0].into_iter(), SIZE.1 - MARGIN.3, MARGIN.1);
    let labels: Vec<(f64, String)> =
        x.ticks().into_iter().map(|tick| (x.place(tick), x.label(tick))).collect();
    let mut content = vertical(&y, "part") + &horizontal(&labels, "us");
    for (index, one) in of.iter().enumerate() {
        content += &curve(one, &x, &y, index);
    }
    // A line for each of many curves would only be in the way.
    if let [one] = of {
        content += &bound(one, &x);
    }
    document(width(of.iter().map(|one| one.name.as_str())), SIZE.1, title, &content)
}

fn curve(of: &Distribution, x: &Axis, y: &Axis, index: usize) -> String {
    let mut path = Vec::new();
    let mut height = y.place(0.0);
    for (value, part) in steps(of) {
        let (right, top) = (x.place(micros(value)), y.place(part));
        path.push(format!("{right:.1},{height:.1} {right:.1},{top:.1}"));
        height = top;
    }
    let ink = colour(index);
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\"/>\n",
        path.join(" ")
    ) + &legend(index, &of.name, &format!("max {}", human(of.max())))
}

/// Values and the part that is no greater, by rising value; the least and the greatest are there.
fn steps(of: &Distribution) -> Vec<(u64, f64)> {
    let (values, count) = (of.values(), of.values().len());
    let stride = count.div_ceil(STEPS).max(1);
    let last = count.checked_sub(1);
    let ranks = (0..count).step_by(stride).chain(last);
    let mut steps: Vec<(u64, f64)> = Vec::new();
    for rank in ranks {
        let value = values[rank];
        let within = values.partition_point(|other| *other <= value);
        if steps.last().is_none_or(|(known, _)| *known < value) {
            steps.push((value, within as f64 / count as f64));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_rise_to_one() {
        let of = Distribution::new("a".into(), vec![5, 5, 7, 9], Some(9));
        assert_eq!(steps(&of), [(5, 0.5), (7, 0.75), (9, 1.0)]);
        let many = Distribution::new("b".into(), (0..100_000).collect(), None);
        let steps = steps(&many);
        assert!(steps.len() <= STEPS + 1 && steps.last() == Some(&(99_999, 1.0)));
    }

    #[test]
    fn curves_have_names_and_one_has_its_bound() {
        let one = Distribution::new("a".into(), vec![1_000, 2_000], Some(3_000));
        let none = Distribution::new("b".into(), Vec::new(), None);
        let single = svg("responses", std::slice::from_ref(&one));
        assert!(single.contains("bound 3.000 us") && single.contains(">a<"));
        let both = svg("responses", &[one, none]);
        assert!(!both.contains("bound") && both.contains(">b<") && !both.contains("NaN"));
    }
}
