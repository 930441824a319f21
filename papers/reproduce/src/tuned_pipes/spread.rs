//! Figures 14 and 16: the fewest, the average and the most frames of a second, beside what is
//! wanted.

use crate::Picture;
use diapason::chart::{BarChart, Bars};

/// The seconds of each channel on each machine.
pub(crate) struct Spread {
    groups: Vec<String>,
    heights: [Vec<Option<f64>>; 3],
}

impl Spread {
    /// Nothing yet but what is wanted.
    pub fn wanted((least, most): (u64, u64)) -> Spread {
        let one = |height: Option<u64>| vec![height.map(|height| height as f64)];
        Spread {
            groups: vec!["wanted".into()],
            heights: [one(Some(least)), one(None), one(Some(most))],
        }
    }

    /// Returns the seconds of one more channel; the average of them.
    pub fn push(&mut self, name: String, rates: &[u64]) -> f64 {
        let average = rates.iter().sum::<u64>() as f64 / rates.len().max(1) as f64;
        let end = |rate: Option<&u64>| rate.map(|rate| *rate as f64);
        let all = [end(rates.iter().min()), Some(average), end(rates.iter().max())];
        self.groups.push(name);
        self.heights.iter_mut().zip(all).for_each(|(heights, height)| heights.push(height));
        average
    }

    /// Returns the picture with this name and title.
    pub fn figure(self, name: &str, title: &str) -> Picture {
        let names = ["fewest", "average", "most"].map(str::to_owned);
        let bars = names.into_iter().zip(self.heights);
        let chart = BarChart {
            title: title.into(),
            x: String::new(),
            y: "frames/s".into(),
            groups: self.groups,
            bars: bars.map(|(name, heights)| Bars { name, heights }).collect(),
        };
        Picture::drawing(name, chart.svg())
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_average_is_between_the_ends() {
        let mut spread = Spread::wanted((3_053, 3_073));
        assert_eq!(spread.push("CAN4 sim".into(), &[3_060, 3_066, 3_063]), 3_063.0);
        assert_eq!(spread.heights[0], [Some(3_053.0), Some(3_060.0)]);
        assert_eq!(spread.heights[1], [None, Some(3_063.0)]);
        assert_eq!(spread.heights[2], [Some(3_073.0), Some(3_066.0)]);
        let figure = spread.figure("f", "Frames a second");
        assert!(figure.svg.contains("CAN4 sim") && figure.svg.contains("wanted"));
    }
}
