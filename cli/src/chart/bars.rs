//! A chart of groups of bars.

use super::axis::{self, Axis, MARGIN, SIZE, horizontal, legend, vertical};
use super::{colour, document, rectangle};

/// The bars of one colour.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// Their name in the legend.
    pub name: String,
    /// One height for each group; a missing one leaves a gap.
    pub heights: Vec<Option<f64>>,
}

/// Groups of bars, from 0 up.
#[derive(Clone, PartialEq, Debug)]
pub struct BarChart {
    /// The title of the picture.
    pub title: String,
    /// Name of the groups.
    pub x: String,
    /// Name and unit of the heights.
    pub y: String,
    pub groups: Vec<String>,
    /// The bars, in the order of the legend.
    pub bars: Vec<Bars>,
}

impl BarChart {
    /// Returns the picture as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let heights = self.bars.iter().flat_map(|bars| bars.heights.iter().copied().flatten());
        let y = Axis::fitting(heights.chain([0.0]), SIZE.1 - MARGIN.3, MARGIN.1);
        let room = (SIZE.0 - MARGIN.0 - MARGIN.2) / self.groups.len().max(1) as f64;
        let start = |group: usize| MARGIN.0 + room * group as f64;
        let names = self.groups.iter().enumerate();
        let labels: Vec<(f64, String)> =
            names.map(|(group, name)| (start(group) + room / 2.0, name.clone())).collect();
        let mut content = vertical(&y, &self.y) + &horizontal(&labels, &self.x);
        let width = room * 0.8 / self.bars.len().max(1) as f64;
        for (index, bars) in self.bars.iter().enumerate() {
            for (group, height) in bars.heights.iter().enumerate().take(self.groups.len()) {
                let Some(height) = height else { continue };
                let left = start(group) + room * 0.1 + width * index as f64;
                let (top, bottom) = (y.place(height.max(0.0)), y.place(height.min(0.0)));
                let hint = format!("{}, {}: {height}", bars.name, self.groups[group]);
                let size = (width, (bottom - top).max(0.5));
                content += &rectangle((left, top), size, colour(index), &hint);
            }
            content += &legend(index, &bars.name, &bars.name);
        }
        let names = self.bars.iter().map(|bars| bars.name.as_str());
        document(axis::width(names), SIZE.1, &self.title, &content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bar_for_each_height() {
        let bars = |name: &str, heights: &[Option<f64>]| Bars {
            name: name.into(),
            heights: heights.to_vec(),
        };
        let chart = BarChart {
            title: "instructions".into(),
            x: "tasks".into(),
            y: "count".into(),
            groups: vec!["5".into(), "10".into()],
            bars: vec![
                bars("new", &[Some(10.0), Some(12.0)]),
                bars("standard", &[Some(20.0), None]),
            ],
        };
        let svg = chart.svg();
        // The background, two in the legend, three bars.
        assert_eq!(svg.matches("<rect").count(), 1 + 2 + 3);
        assert!(svg.contains("<title>standard, 5: 20</title>"));
    }
}
