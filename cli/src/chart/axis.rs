//! Axes: from numbers to places on the paper, with round numbers at the ticks.

use super::{colour, line, rectangle, text};

/// Where charts leave room: left, top, right, bottom.
pub const MARGIN: (f64, f64, f64, f64) = (64.0, 36.0, 120.0, 48.0);
/// Size of a chart.
pub const SIZE: (f64, f64) = (720.0, 420.0);

const FRAME: &str = "stroke=\"#444\"";
const GRID: &str = "stroke=\"#ddd\"";

/// One direction: values from `low` to `high` at places from `from` to `to`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    /// Returns an axis that shows all of `values`, or 0 to 1 if there are none.
    pub fn fitting(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = match high - low {
            span if span > 0.0 => (low, high),
            _ if low.is_finite() => (low - 0.5, low + 0.5),
            _ => (0.0, 1.0),
        };
        let step = round_step((high - low) / 6.0);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Axis { low, high, from, to, step }
    }

    /// Returns an axis from 0 up to at least `most`.
    pub fn up_to(most: f64, from: f64, to: f64) -> Axis {
        Axis::fitting([0.0, if most > 0.0 { most } else { 1.0 }].into_iter(), from, to)
    }

    /// Returns the place of a value.
    pub fn place(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Round values from end to end.
    pub fn ticks(&self) -> Vec<f64> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|tick| self.low + tick as f64 * self.step).collect()
    }

    /// Returns a tick as text, with as many digits as the step needs.
    pub fn label(&self, tick: f64) -> String {
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        format!("{tick:.digits$}")
    }
}

/// Returns the least of 1, 2, 5 times a power of ten that is no less than `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * 0.999);
    factor.unwrap_or(10.0) * power
}

/// Horizontal grid lines with their numbers, and the name of the axis.
pub fn vertical(axis: &Axis, name: &str) -> String {
    let (left, right) = (MARGIN.0, SIZE.0 - MARGIN.2);
    let mut drawn: String = axis
        .ticks()
        .into_iter()
        .map(|tick| {
            let y = axis.place(tick);
            let number = text(left - 6.0, y + 4.0, "end", &axis.label(tick));
            line((left, y), (right, y), GRID) + &number
        })
        .collect();
    let middle = (MARGIN.1 + SIZE.1 - MARGIN.3) / 2.0;
    drawn += &format!(
        "<text transform=\"translate(16 {middle:.1}) rotate(-90)\" \
         text-anchor=\"middle\">{}</text>\n",
        super::escaped(name)
    );
    drawn + &line((left, MARGIN.1), (left, SIZE.1 - MARGIN.3), FRAME)
}

/// Returns the line below, with labels at places, and the name of the axis.
pub fn horizontal(labels: &[(f64, String)], name: &str) -> String {
    let bottom = SIZE.1 - MARGIN.3;
    let mut drawn = line((MARGIN.0, bottom), (SIZE.0 - MARGIN.2, bottom), FRAME);
    for (x, label) in labels {
        drawn += &line((*x, bottom), (*x, bottom + 4.0), FRAME);
        drawn += &text(*x, bottom + 18.0, "middle", label);
    }
    drawn + &text((MARGIN.0 + SIZE.0 - MARGIN.2) / 2.0, bottom + 38.0, "middle", name)
}

/// Where the names of a legend begin, right of the chart.
const LEGEND: f64 = 32.0;
/// The most that a character of a legend takes.
const CHARACTER: f64 = 7.5;

/// Returns the entry of a legend for the series of this number. Its mark shows `hint` under the
/// pointer.
pub fn legend(index: usize, name: &str, hint: &str) -> String {
    let left = SIZE.0 - MARGIN.2;
    let top = MARGIN.1 + 14.0 + 20.0 * index as f64;
    rectangle((left + 12.0, top - 6.0), (14.0, 4.0), colour(index), hint)
        + &text(left + LEGEND, top, "start", name)
}

/// Returns the width of a picture whose legend has these names.
pub fn width<'n>(names: impl Iterator<Item = &'n str>) -> f64 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    SIZE.0.max(SIZE.0 - MARGIN.2 + LEGEND + CHARACTER * longest as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::fitting([0.7337, 0.9906].into_iter(), 100.0, 0.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|tick| axis.label(tick)).collect();
        assert_eq!(labels, ["0.70", "0.75", "0.80", "0.85", "0.90", "0.95", "1.00"]);
        assert!((axis.place(0.7) - 100.0).abs() < 1e-9 && axis.place(1.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_name_makes_the_picture_wider() {
        assert_eq!(width(["RM", "EDF"].into_iter()), SIZE.0);
        let name = "w".repeat(30);
        let ends = SIZE.0 - MARGIN.2 + LEGEND + 30.0 * CHARACTER;
        assert_eq!(width(["RM", &name].into_iter()), ends);
    }

    #[test]
    fn odd_values_still_make_an_axis() {
        let places = |values: &[f64]| {
            let axis = Axis::fitting(values.iter().copied(), 0.0, 10.0);
            axis.ticks().into_iter().map(|tick| axis.place(tick)).collect::<Vec<f64>>()
        };
        for values in [&[][..], &[3.0], &[f64::NAN, 1.0], &[0.0, 0.0], &[-1e12, 1e12]] {
            let places = places(values);
            assert!(places.len() > 1 && places.iter().all(|place| place.is_finite()), "{values:?}");
        }
    }
}
