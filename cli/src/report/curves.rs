//! Curves: which share of a pipe's messages took at most how long, and how many came each second.

use super::Facts;
use super::bills::key;
use super::svg::{Picture, colour};
use crate::chart::{Axis, escaped};
use crate::duration::human;
use crate::outcome::PipeRow;
use diapason_abi::Nanos;
use diapason_pipe::measured::longest_of;

const LEFT: f64 = 60.0;
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 260.0;
const BOTTOM: f64 = HEIGHT - 34.0;

/// The pipes' names with what their readers said.
fn rows<'a>(facts: &'a Facts<'_>) -> Vec<(String, &'a PipeRow)> {
    let promises = facts.session.promises();
    let outcome = facts.outcome();
    promises
        .iter()
        .filter_map(|promise| Some((promise.name.clone(), promise.row(outcome)?)))
        .collect()
}

fn legend(rows: &[(String, &PipeRow)]) -> String {
    let keys = rows.iter().enumerate();
    let keys = keys.map(|(index, (name, _))| key(&colour(index), &escaped(name)));
    format!("<p class=\"legend\">{}</p>\n", keys.collect::<String>())
}

fn frame(picture: &mut Picture) {
    picture.line((LEFT, BOTTOM), (WIDTH - 20.0, BOTTOM), "axis");
    picture.line((LEFT, 10.0), (LEFT, BOTTOM), "axis");
}

/// Delays beyond the fastest message, as the readers counted them; nothing without any.
pub fn delays(facts: &Facts<'_>) -> String {
    let rows = rows(facts);
    let counted = rows.iter().filter(|(_, row)| row.delays.iter().any(|count| *count > 0));
    let sizes = counted.flat_map(|(_, row)| {
        row.delays.iter().enumerate().filter(|(_, count)| **count > 0).map(|(size, _)| size)
    });
    let Some(last) = sizes.max() else { return String::new() };
    let axis = Axis::up_to(longest_of(last).0 as f64 / 1e6, LEFT, WIDTH - 20.0);
    let x = |time: Nanos| axis.place(time.0 as f64 / 1e6);
    let y = |share: f64| BOTTOM - share * (BOTTOM - 12.0);
    let mut picture = Picture::new(WIDTH, HEIGHT);
    for percent in [0, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        picture.line((LEFT, at), (WIDTH - 20.0, at), "grid");
        picture.text((LEFT - 6.0, at + 4.0), "end", "small", &format!("{percent} %"));
    }
    for tick in axis.ticks() {
        let label = format!("{} ms", axis.label(tick));
        picture.text((axis.place(tick), BOTTOM + 16.0), "middle", "small", &label);
    }
    frame(&mut picture);
    for (index, (name, row)) in rows.iter().enumerate() {
        let all: u64 = row.delays.iter().map(|count| u64::from(*count)).sum();
        let mut sum = 0;
        let mut points = vec![(x(Nanos::ZERO), y(0.0))];
        for (size, count) in row.delays.iter().enumerate().take(last + 1) {
            let before = y(sum as f64 / all.max(1) as f64);
            sum += u64::from(*count);
            let at = x(longest_of(size));
            points.extend([(at, before), (at, y(sum as f64 / all.max(1) as f64))]);
        }
        let hint = format!("{name}: at most {}", human(row.whole_max_ns));
        picture.path(&points, &colour(index), &hint);
    }
    picture.finish("delays beyond the fastest message") + &legend(&rows)
}

/// Messages a second over the run; nothing without any.
pub fn rates(facts: &Facts<'_>) -> String {
    let rows = rows(facts);
    let most = rows.iter().flat_map(|(_, row)| row.rates.iter()).max().copied().unwrap_or(0);
    let seconds = rows.iter().map(|(_, row)| row.rates.len()).max().unwrap_or(0);
    if most == 0 || seconds < 2 {
        return String::new();
    }
    let axis = Axis::up_to(most as f64, BOTTOM, 12.0);
    let x = |at: usize| LEFT + at as f64 / (seconds - 1) as f64 * (WIDTH - LEFT - 20.0);
    let mut picture = Picture::new(WIDTH, HEIGHT);
    for tick in axis.ticks() {
        let y = axis.place(tick);
        picture.line((LEFT, y), (WIDTH - 20.0, y), "grid");
        picture.text((LEFT - 6.0, y + 4.0), "end", "small", &axis.label(tick));
    }
    for second in (0..seconds).step_by(seconds.div_ceil(12)) {
        picture.text((x(second), BOTTOM + 16.0), "middle", "small", &format!("{} s", second + 1));
    }
    frame(&mut picture);
    for (index, (name, row)) in rows.iter().enumerate() {
        let points =
            row.rates.iter().enumerate().map(|(at, rate)| (x(at), axis.place(*rate as f64)));
        let points: Vec<(f64, f64)> = points.collect();
        picture.path(&points, &colour(index), name);
    }
    picture.finish("messages a second") + &legend(&rows)
}
