//! A chart of lines through points.

use super::axis::{Axis, MARGIN, SIZE, horizontal, legend, vertical, width};
use super::{colour, document};

/// The points of one line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The line's name in the legend.
    pub name: String,
    /// The line's points by rising x.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common axis.
#[derive(Clone, PartialEq, Debug)]
pub struct LineChart {
    /// The title of the picture.
    pub title: String,
    /// Name and unit of the horizontal axis.
    pub x: String,
    /// Name and unit of the vertical axis.
    pub y: String,
    /// The lines, in the order of the legend.
    pub series: Vec<Series>,
}

impl LineChart {
    /// Returns the picture as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Axis::fitting(points().map(|point| point.0), MARGIN.0, SIZE.0 - MARGIN.2);
        let y = Axis::fitting(points().map(|point| point.1), SIZE.1 - MARGIN.3, MARGIN.1);
        let labels: Vec<(f64, String)> =
            x.ticks().into_iter().map(|tick| (x.place(tick), x.label(tick))).collect();
        let mut content = vertical(&y, &self.y) + &horizontal(&labels, &self.x);
        for (index, series) in self.series.iter().enumerate() {
            content += &curve(series, &x, &y, index);
        }
        let names = self.series.iter().map(|series| series.name.as_str());
        document(width(names), SIZE.1, &self.title, &content)
    }
}

/// Line, points and name of one series.
fn curve(series: &Series, x: &Axis, y: &Axis, index: usize) -> String {
    let ink = colour(index);
    let places = series.points.iter().map(|point| (x.place(point.0), y.place(point.1)));
    let path: Vec<String> = places.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut drawn = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"2\"/>\n",
        path.join(" ")
    );
    for ((x, y), (at, value)) in places.zip(&series.points) {
        let name = super::escaped(&series.name);
        drawn += &format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{ink}\">\
             <title>{name}: {at} → {value:.4}</title></circle>\n"
        );
    }
    drawn + &legend(index, &series.name, &series.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_and_name_is_in_the_picture() {
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.into(),
            points: points.to_vec(),
        };
        let chart = LineChart {
            title: "breakdown".into(),
            x: "n".into(),
            y: "U".into(),
            series: vec![
                series("RM", &[(5.0, 0.9), (50.0, 0.5)]),
                series("EDF", &[(5.0, 1.0), (50.0, 0.6)]),
                series("empty", &[]),
            ],
        };
        let svg = chart.svg();
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert!([">RM<", ">EDF<", ">empty<", ">n<", ">U<"].iter().all(|name| svg.contains(name)));
        // From 0 to 50 in tens and from 0.5 to 1 in tenths, higher values higher up.
        assert!(svg.contains("points=\"117.6,103.2 600.0,372.0\""), "{svg}");
    }
}
