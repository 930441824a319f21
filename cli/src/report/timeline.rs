//! The running threads in a window of the run: one row for each thread, and one for the kernel.

use super::Facts;
use super::svg::{COLOURS, Picture};
use crate::chart::Axis;
use crate::duration::human;
use diapason_abi::Nanos;
use diapason_core::ThreadId;

const LEFT: f64 = 150.0;
const ROW: f64 = 22.0;
const WIDTH: f64 = 960.0;
/// Room at the right for half of the last label.
const RIGHT: f64 = 24.0;

/// Returns the schedule; nothing if nobody ran in the window.
pub fn timeline(facts: &Facts<'_>) -> String {
    let watch = facts.watch;
    let (begin, end) = (watch.window.from, watch.window.to);
    let mut rows: Vec<Option<ThreadId>> = Vec::new();
    for stretch in &watch.stretches {
        if !rows.contains(&stretch.thread) {
            rows.push(stretch.thread);
        }
    }
    rows.sort_by_key(|thread| thread.map(|thread| thread.index()));
    if rows.is_empty() {
        return String::new();
    }
    let height = ROW * (rows.len() as f64 + 2.0);
    let mut picture = Picture::new(WIDTH, height);
    let span = (end - begin).0 as f64;
    let x = |time: Nanos| LEFT + (time - begin).0 as f64 / span * (WIDTH - LEFT - RIGHT);
    let base = |row: usize| ROW * (row as f64 + 1.0);
    let axis = Axis::up_to(span / 1e6, 0.0, 1.0);
    for tick in axis.ticks().into_iter().filter(|tick| tick * 1e6 <= span) {
        let at = x(begin + Nanos((tick * 1e6) as u64));
        let label = format!("{} ms", axis.label(tick));
        picture.line((at, 4.0), (at, base(rows.len())), "grid");
        picture.text((at, base(rows.len()) + 14.0), "middle", "small", &label);
    }
    let name = |thread: &Option<ThreadId>| match thread {
        Some(thread) => watch.cast.name(*thread, &facts.session.names),
        None => "kernel".to_owned(),
    };
    for (row, thread) in rows.iter().enumerate() {
        let y = base(row);
        picture.text((LEFT - 8.0, y - 5.0), "end", "small", &name(thread));
        picture.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
    }
    for stretch in &watch.stretches {
        let Some(row) = rows.iter().position(|thread| *thread == stretch.thread) else { continue };
        let (from, to) = (x(stretch.from), x(stretch.to));
        let size = ((to - from).max(0.3), ROW - 8.0);
        let class = match stretch.thread {
            None => "kernel".to_owned(),
            Some(_) => format!("c{}", row % COLOURS),
        };
        let hint = format!(
            "{}: {} from {} on",
            name(&stretch.thread),
            human((stretch.to - stretch.from).0),
            human(stretch.from.0)
        );
        picture.rectangle((from, base(row) - size.1), size, &class, &hint);
    }
    picture.finish("threads over time")
}
