//! A drawn schedule: one row for each task, a box for each stretch it ran.

use super::{colour, document, line, rectangle, text};
use std::fmt::Write;

/// A stretch of time in which a task ran.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// The task's row, from 0.
    pub row: usize,
    pub start: f64,
    pub end: f64,
}

/// A schedule of tasks.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleChart {
    /// The title of the picture.
    pub title: String,
    pub unit: String,
    pub rows: Vec<String>,
    /// The stretches in which each thread ran.
    pub stretches: Vec<Stretch>,
    /// Releases: row and time.
    pub releases: Vec<(usize, f64)>,
    /// Missed deadlines: row and time.
    pub misses: Vec<(usize, f64)>,
    /// The end of the picture.
    pub end: f64,
}

const LEFT: f64 = 60.0;
const TOP: f64 = 36.0;
const ROW: f64 = 24.0;
const WIDTH: f64 = 720.0;

impl ScheduleChart {
    /// Returns the picture: arrows up are releases, a red cross is a missed deadline.
    #[must_use]
    pub fn svg(&self) -> String {
        let bottom = TOP + ROW * self.rows.len() as f64;
        let scale = (WIDTH - LEFT - 30.0) / self.end.max(f64::MIN_POSITIVE);
        let x = |time: f64| LEFT + time * scale;
        let base = |row: usize| TOP + ROW * (row + 1) as f64;
        let mut content = String::new();
        for (row, name) in self.rows.iter().enumerate() {
            content += &text(LEFT - 8.0, base(row) - 5.0, "end", name);
            content += &line((LEFT, base(row)), (x(self.end), base(row)), "stroke=\"#bbb\"");
        }
        for stretch in self.stretches.iter().filter(|stretch| stretch.start < self.end) {
            let Stretch { row, start, end } = *stretch;
            let size = ((end.min(self.end) - start) * scale, ROW - 8.0);
            let hint = format!("{}: {start} to {end} {}", self.rows[row], self.unit);
            content += &rectangle((x(start), base(row) - size.1), size, colour(row), &hint);
        }
        for (row, time) in self.releases.iter().filter(|(_, time)| *time <= self.end) {
            let (foot, tip) = ((x(*time), base(*row)), (x(*time), base(*row) - ROW + 4.0));
            content += &line(foot, tip, "stroke=\"black\"");
            let left = (tip.0 - 3.0, tip.1 + 5.0);
            content += &line(left, tip, "stroke=\"black\"");
            content += &line((tip.0 + 3.0, left.1), tip, "stroke=\"black\"");
        }
        for (row, time) in &self.misses {
            let (x, y) = (x(*time), base(*row) - ROW / 2.0);
            let red = "stroke=\"#c00\" stroke-width=\"3\"";
            content += &line((x - 6.0, y - 6.0), (x + 6.0, y + 6.0), red);
            content += &line((x - 6.0, y + 6.0), (x + 6.0, y - 6.0), red);
        }
        for tick in 0..=self.end as usize {
            content += &text(x(tick as f64), bottom + 16.0, "middle", &tick.to_string());
        }
        content += &text((LEFT + WIDTH) / 2.0, bottom + 34.0, "middle", &self.unit);
        document(WIDTH, bottom + 44.0, &self.title, &content)
    }

    /// Returns the rows as text, with `per_unit` characters for a unit of time: `#` ran, `X`
    /// missed.
    #[must_use]
    pub fn text(&self, per_unit: usize) -> String {
        let columns = (self.end * per_unit as f64).round() as usize;
        let column = |time: f64| (time * per_unit as f64).round() as usize;
        let mut out = String::new();
        for (row, name) in self.rows.iter().enumerate() {
            let mut cells = vec!['.'; columns + 1];
            for stretch in self.stretches.iter().filter(|stretch| stretch.row == row) {
                let until = column(stretch.end).min(columns);
                cells[column(stretch.start).min(columns)..until].fill('#');
            }
            for (_, time) in self.misses.iter().filter(|miss| miss.0 == row) {
                cells[column(*time).min(columns)] = 'X';
            }
            let cells: String = cells.into_iter().collect();
            let _ = writeln!(out, "{name:>5} {}", cells.trim_end_matches('.'));
        }
        let numbers = (0..=self.end as usize).map(|tick| format!("{tick:<per_unit$}"));
        let _ = writeln!(out, "      {} {}", numbers.collect::<String>().trim_end(), self.unit);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_arrows_and_crosses_are_where_they_belong() {
        let chart = ScheduleChart {
            title: "two tasks".into(),
            unit: "ms".into(),
            rows: vec!["a".into(), "b".into()],
            stretches: vec![
                Stretch { row: 0, start: 0.0, end: 1.0 },
                Stretch { row: 1, start: 1.0, end: 2.5 },
            ],
            releases: vec![(0, 0.0), (1, 0.0)],
            misses: vec![(1, 3.0)],
            end: 4.0,
        };
        assert_eq!(chart.text(2), "    a ##\n    b ..###.X\n      0 1 2 3 4 ms\n");
        let svg = chart.svg();
        assert_eq!(svg.matches("<rect").count(), 1 + 2);
        assert_eq!(svg.matches("#c00").count(), 2);
    }
}
