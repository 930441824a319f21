//! The running threads in a window of the run: one row for each thread, and one for the kernel. All
//! hosts and cores of a page are on one axis of time.

use super::facts::{Facts, PageFacts};
use super::svg::{Picture, colour};
use super::tables::table;
use super::watch::{Stretch, Window};
use crate::chart::Axis;
use crate::duration::human;
use crate::table::share;
use diapason_abi::Nanos;
use diapason_core::ThreadId;

const LEFT: f64 = 150.0;
const ROW: f64 = 22.0;
const WIDTH: f64 = 960.0;
/// Room at the right for half of the last label.
const RIGHT: f64 = 24.0;
const PLOT: f64 = WIDTH - LEFT - RIGHT;

/// A thread of a host, or its kernel.
struct Row<'a> {
    facts: &'a Facts<'a>,
    thread: Option<ThreadId>,
}

impl Row<'_> {
    fn name(&self) -> String {
        let Facts { watch, session, .. } = self.facts;
        match self.thread {
            Some(thread) => watch.cast.name(thread, &session.names),
            None => "kernel".to_owned(),
        }
    }

    fn stretches(&self) -> impl Iterator<Item = &Stretch> {
        self.facts.watch.stretches.iter().filter(|stretch| stretch.thread == self.thread)
    }

    /// Returns how often it ran, how long in all, and how long at most at a time.
    fn sums(&self) -> (u64, u64, u64) {
        self.stretches().fold((0, 0, 0), |(count, sum, most), stretch| {
            let took = (stretch.to - stretch.from).0;
            (count + 1, sum + took, most.max(took))
        })
    }
}

/// Returns the schedule of all parts, and the same in numbers; nothing if nobody ran in the window.
pub fn timeline(page: &PageFacts<'_>) -> String {
    let groups: Vec<(String, Vec<Row<'_>>)> =
        page.parts.iter().map(|facts| (page.called(facts), rows(facts))).collect();
    let Some(window) = page.parts.first().map(|facts| facts.watch.window) else {
        return String::new();
    };
    if groups.iter().all(|(_, rows)| rows.is_empty()) {
        return String::new();
    }
    let words = format!(
        "<p>The running threads, from {} to {} of the run.</p>\n",
        human(window.from.0),
        human(window.to.0)
    );
    words + &picture(&groups, window, page.joined.is_some()) + &numbers(&groups, window)
}

/// Returns the rows of a host: its threads in their order, its kernel first.
fn rows<'a>(facts: &'a Facts<'a>) -> Vec<Row<'a>> {
    let mut threads: Vec<Option<ThreadId>> = Vec::new();
    for stretch in &facts.watch.stretches {
        if !threads.contains(&stretch.thread) {
            threads.push(stretch.thread);
        }
    }
    threads.sort_by_key(|thread| thread.map(|thread| thread.index()));
    threads.into_iter().map(|thread| Row { facts, thread }).collect()
}

fn picture(groups: &[(String, Vec<Row<'_>>)], window: Window, titled: bool) -> String {
    let lines: usize = groups.iter().map(|(_, rows)| rows.len() + usize::from(titled)).sum();
    let bottom = ROW * lines as f64 + 8.0;
    let mut picture = Picture::new(WIDTH, bottom + 26.0);
    let mut plot = Picture::new(PLOT, bottom);
    let span = (window.to - window.from).0 as f64;
    let x = |time: Nanos| (time - window.from).0 as f64 / span * PLOT;
    let mut base = 0.0;
    for (title, rows) in groups {
        if titled {
            base += ROW;
            picture.text((8.0, base - 5.0), "start", "", title);
        }
        for (number, row) in rows.iter().enumerate() {
            base += ROW;
            let name = row.name();
            picture.text((LEFT - 8.0, base - 5.0), "end", "small", &name);
            picture.line((LEFT, base), (WIDTH - RIGHT, base), "grid");
            let class = row.thread.map_or_else(|| "kernel".to_owned(), |_| colour(number));
            for stretch in row.stretches() {
                let (from, to) = (x(stretch.from), x(stretch.to));
                let took = human((stretch.to - stretch.from).0);
                let hint = format!("{name}: {took} from {} on", human(stretch.from.0));
                let size = ((to - from).max(0.02), ROW - 8.0);
                plot.rectangle((from, base - size.1), size, &class, &hint);
            }
        }
    }
    let hints = format!("data-from=\"{}\" data-span=\"{span}\"", window.from.0);
    picture.plot((LEFT, 0.0), &hints, plot);
    ticks(&mut picture, window, bottom + 16.0);
    picture.finish("threads over time")
}

/// Draws the times below the plot.
fn ticks(picture: &mut Picture, window: Window, y: f64) {
    let span = (window.to - window.from).0 as f64;
    let axis = Axis::up_to(span / 1e6, 0.0, 1.0);
    picture.group("ticks", |picture| {
        for tick in axis.ticks().into_iter().filter(|tick| tick * 1e6 <= span) {
            let at = LEFT + tick * 1e6 / span * PLOT;
            let label = format!("{} ms", axis.label(window.from.0 as f64 / 1e6 + tick));
            picture.text((at, y), "middle", "small", &label);
        }
    });
}

/// Returns the same in numbers.
fn numbers(groups: &[(String, Vec<Row<'_>>)], window: Window) -> String {
    let of_all = (window.to - window.from).0;
    let rows = groups.iter().flat_map(|(title, rows)| rows.iter().map(move |row| (title, row)));
    let cells = rows.map(|(title, row)| {
        let (count, sum, most) = row.sums();
        let name = if groups.len() > 1 { format!("{title}: {}", row.name()) } else { row.name() };
        vec![name, count.to_string(), human(most), human(sum), share(sum, of_all)]
    });
    let columns = ["thread", "times", "longest", "in all", "of the window"];
    let table = table(&columns, &cells.collect::<Vec<_>>());
    format!("<details><summary>The same in numbers</summary>\n{table}</details>\n")
}
