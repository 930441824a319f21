//! The bills of pipes as stacked bars, with what was seen on them.

use super::Facts;
use super::svg::Picture;
use crate::chart::Axis;
use crate::duration::human;
use crate::outcome::PipePromise;
use diapason_pipe::bill::{Bill, What};

const LEFT: f64 = 110.0;
const ROW: f64 = 46.0;
const WIDTH: f64 = 960.0;

/// One bar for each pipe; nothing without any.
pub fn bills(facts: &Facts<'_>) -> String {
    let system = &facts.session.system;
    let piped: Vec<(&str, &Bill, Option<u64>, Option<u64>)> = system
        .pipes
        .iter()
        .zip(&facts.plan.pipes)
        .filter_map(|(pipe, piped)| {
            let bill = piped.bill.as_ref().ok()?;
            let nine = piped.equation_nine.map(|time| time.0);
            Some((pipe.name.as_str(), bill, nine, pipe.latency_ns))
        })
        .collect();
    let ends = piped.iter().flat_map(|(_, bill, nine, wanted)| {
        [Some(bill.total.0), *nine, *wanted].into_iter().flatten()
    });
    let Some(longest) = ends.max() else { return String::new() };
    let axis = Axis::up_to(longest as f64 / 1e6, LEFT, WIDTH - 20.0);
    let x = |ns: u64| axis.place(ns as f64 / 1e6);
    let bottom = ROW * piped.len() as f64 + 8.0;
    let mut picture = Picture::new(WIDTH, bottom + 28.0);
    for tick in axis.ticks() {
        let (at, label) = (axis.place(tick), format!("{} ms", axis.label(tick)));
        picture.line((at, 4.0), (at, bottom), "grid");
        picture.text((at, bottom + 16.0), "middle", "small", &label);
    }
    let promises = facts.session.promises();
    for (row, (name, bill, nine, wanted)) in piped.iter().enumerate() {
        let y = ROW * row as f64 + 12.0;
        picture.text((LEFT - 8.0, y + 17.0), "end", "", name);
        let mut from = 0;
        for item in bill.items() {
            let to = from + item.value.0;
            let hint = format!("{}: {} ({})", item.what.name(), human(item.value.0), item.basis);
            let size = ((x(to) - x(from)).max(0.5), 24.0);
            picture.rectangle((x(from), y), size, colour(item.what), &hint);
            from = to;
        }
        let seen = promises.iter().find(|promise| promise.name == *name);
        let seen = seen
            .and_then(|p: &PipePromise| Some(p.row(facts.outcome())?.whole_max_ns + p.least_ns));
        let marks =
            [(seen, "seen", "seen"), (*nine, "nine", "eq. 9"), (*wanted, "wanted", "wanted")];
        for (at, class, what) in marks {
            let Some(at) = at else { continue };
            picture.line((x(at), y - 5.0), (x(at), y + 29.0), class);
            picture.rectangle(
                (x(at) - 3.0, y - 8.0),
                (6.0, 4.0),
                class,
                &format!("{what}: {}", human(at)),
            );
        }
    }
    picture.finish("the bill of every pipe") + &legend(piped.iter().map(|(_, bill, ..)| *bill))
}

/// The colour of an item; no bill has two of one colour.
const fn colour(what: What) -> &'static str {
    match what {
        What::Request | What::Drain => "c0",
        What::Bus => "c1",
        What::Moderation => "c2",
        What::TopHalf => "c3",
        What::BottomHalf => "c4",
        What::User => "c5",
        What::Driver | What::Taken => "c6",
        What::Back => "c7",
    }
}

/// What the colours mean.
fn legend<'b>(bills: impl Iterator<Item = &'b Bill>) -> String {
    let mut used: Vec<What> = Vec::new();
    for item in bills.flat_map(Bill::items) {
        if !used.contains(&item.what) {
            used.push(item.what);
        }
    }
    let items = used.iter().map(|what| key(colour(*what), what.name()));
    let marks = [("seen", "longest seen"), ("nine", "eq. 9 of the article"), ("wanted", "wanted")];
    let marks = marks.iter().map(|(class, what)| key(class, what));
    format!("<p class=\"legend\">{}</p>\n", items.chain(marks).collect::<String>())
}

/// A colour and its name.
pub fn key(class: &str, what: &str) -> String {
    format!(
        "<span><svg viewBox=\"0 0 12 12\" class=\"key\"><rect width=\"12\" height=\"12\" \
         class=\"{class}\"/></svg>{what}</span> "
    )
}
